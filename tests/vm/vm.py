#!/usr/bin/env python3
"""Runs commands in one or two virtual machines that have RDMA: rxe0, the Linux kernel's own RoCE over UDP.

    vm.py --guest 'longhaul devices'                        one guest
    vm.py --guest './server' --host './client $VM_A4'       a guest, and this machine beside it
    vm.py --guest 'CMD' --guest 'CMD' --host 'CMD'          two guests and this machine on one bridge

Needs no root and no KVM: QEMU emulates the machine, its network is a bridge in namespaces of this run alone.
A guest runs Debian's kernel (the package is fetched with apt-get and only unpacked, once, into the build
folder) and a few programs of this machine: busybox, bash, ip, tc, rdma, perftest, and those of the build:
longhaul and tests/vm/*, with the libraries they need, under /usr/bin. --program and --file add more.

The commands are for sh; they start when all guests are up and reach the host. In a guest: the working folder
is an empty one in memory; what is left in $VM_OUT (/out) is found in DIR/a or DIR/b afterwards;
`netem in|out ...` impairs its network (netem.sh). A machine stays up until all commands have ended, and so do
processes that its command has left. In all commands:

    VM_MTU  VM_OUT  VM_NAME (a, b, host)
    in a guest    VM_SELF4 VM_SELF6  VM_HOST4 VM_HOST6  VM_PEER4 VM_PEER6 (the other guest, if there are two)
    on the host   VM_HOST4 VM_HOST6  VM_A4 VM_A6  VM_B4 VM_B6

Addresses: the host has 10.77.0.1 and fd77::1, guest a .2, b .3. rxe0's GIDs are all RoCE v2: 0 link-local,
then those of the IPv4 and the IPv6 address. An MTU of 1500 makes RoCE packets of 1024 bytes, 9000 of 4096.

All that is printed is shown line by line, "a| " before it, and kept in DIR/a.log; what the guest's kernel
says is in DIR/a.console. --capture writes what passes guest a's network device to DIR/a.pcap.

Exit status: that of the first command that failed; 0 when all ended with 0. When one fails, the others have
10 more seconds. 124: the time limit; 125: the machine failed; 77, with the reason: there can be none here.
Nothing stays behind, even when this script is killed.

SPDX-License-Identifier: BSD-3-Clause
"""

import argparse
import contextlib
import os
import pathlib
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import capture
import guest
import image
import kernel
import namespace
import skip

HERE = pathlib.Path(__file__).resolve().parent
GRACE_SECONDS = 10
TIME_IS_UP = 124
MACHINE_FAILED = 125
SKIPPED = 77


def arguments():
    what, _, words = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=what, epilog=words.rpartition("\n\nSPDX")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--guest", metavar="COMMAND", action="append", default=[], help="run it in a guest; once or twice")
    add("--host", metavar="COMMAND", help="run it here at the same time, in the guests' network")
    add("--mtu", type=int, default=1500, help="bytes of an IP packet (1500)")
    add("--seconds", type=int, default=120, help="time limit, all included but fetching the kernel (120)")
    add("--memory", type=int, default=512, metavar="MIB", help="of each guest (512)")
    add("--cpus", type=int, help="of each guest (1)", default=1)
    add("--program", metavar="FILE", action="append", default=[], help="another program for the guests")
    add("--file", metavar="FILE=PATH", action="append", default=[], help="another file, and where it goes")
    add("--out", metavar="DIR", help="keep what was left and printed, here (emptied first)")
    add("--capture", action="store_true", help="write pcap files")
    add("--build", metavar="DIR", default=os.environ.get("LH_BUILD_DIR", HERE.parents[1] / "build"),
        help="the build folder ($LH_BUILD_DIR, or build)")
    add("--kernel", metavar="DEB", help="this package, not Debian's current one")
    options = parser.parse_args()
    if not 1 <= len(options.guest) <= 2:
        parser.error("one or two --guest")
    if any("=" not in each for each in options.file):
        parser.error("--file wants FILE=PATH")
    options.build = pathlib.Path(options.build).resolve()
    return options


def programs_of(options):
    built = [options.build / "longhaul", *(options.build / "tests" / "vm").glob("*")]
    return [path for path in built if path.is_file() and os.access(path, os.X_OK)] + options.program


def environment(name, folder, options):
    more = {"VM_NAME": name, "VM_OUT": str(folder), "VM_MTU": str(options.mtu), "VM_HOST4": "10.77.0.1",
            "VM_HOST6": "fd77::1"}
    for number in range(2, 2 + len(options.guest)):
        letter = "AB"[number - 2]
        more |= {f"VM_{letter}4": f"10.77.0.{number}", f"VM_{letter}6": f"fd77::{number}"}
    return os.environ | more


class HostCommand:
    """The command beside the guests. Looks like a guest to those who wait for it."""

    def __init__(self, options, folder):
        self.name = "host"
        self.state = "ready"
        self.status = None
        self.options = options
        self.out = folder / "host"
        self.out.mkdir()
        self.output = guest.Output("host", folder / "host.log")
        self.process = None

    def go(self):
        self.state = "runs"
        self.process = subprocess.Popen(["sh", "-c", self.options.host], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env=environment("host", self.out, self.options))
        os.set_blocking(self.process.stdout.fileno(), False)

    def fileno(self):
        return self.process.stdout.fileno()

    def on_readable(self):
        if data := os.read(self.fileno(), 65536):
            self.output.add(data)
        else:
            self.end(self.process.wait())

    def end(self, status):
        self.state = "ended"
        self.status = 128 - status if status < 0 else status
        self.output.end()


def run_all(members, deadline):
    """Until all have ended. Returns the exit status of the run."""
    first = 0
    with selectors.DefaultSelector() as selector:
        for each in members:
            if each.state == "boots":
                selector.register(each, selectors.EVENT_READ)
        while any(each.state != "ended" for each in members):
            left = deadline - time.monotonic()
            if left <= 0:
                late = ", ".join(f"{each.name} {each.state}" for each in members if each.state != "ended")
                print(f"vm: the time is up: {late}")
                return first or TIME_IS_UP
            for key, _ in selector.select(left):
                each = key.fileobj
                descriptor = each.fileno()
                each.on_readable()
                if each.state != "ended":
                    continue
                selector.unregister(descriptor)
                if each.status and not first:
                    first = each.status
                    deadline = min(deadline, time.monotonic() + GRACE_SECONDS)
                    print(f"vm: {each.name} ends with status {each.status}")
            if first and any(each.state == "ready" for each in members):
                # Not all guests came up.
                return first
            if all(each.state in ("ready", "ended") for each in members):
                for each in members:
                    if each.state == "ready":
                        each.go()
                        if isinstance(each, HostCommand):
                            selector.register(each, selectors.EVENT_READ)
    return first


@contextlib.contextmanager
def captures(options, folder):
    """Writes pcap files while inside."""
    running = []
    for number in range(2, 2 + len(options.guest)) if options.capture else ():
        out = folder / f"{'ab'[number - 2]}.pcap"
        command = [sys.executable, capture.__file__, namespace.tap(number), str(out)]
        running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
        running[-1].stdout.readline()
    try:
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def inside(options, debian, folder, work):
    """The life of the namespaces' first process; returns the exit status."""
    deadline = time.monotonic() + options.seconds
    namespace.build(len(options.guest), options.mtu)
    files = [each.split("=", 1) for each in options.file]
    image.build(debian, programs_of(options), files, work / "initrd")
    with captures(options, folder):
        members = [guest.Guest(number, options, debian, work / "initrd", folder)
                   for number in range(2, 2 + len(options.guest))]
        machines = list(members)
        if options.host:
            members.append(HostCommand(options, folder))
        status = run_all(members, deadline)
        for each in machines:
            each.power_off()
        return status


def guarded(action):
    """The exit status of the action; what it raises becomes one, with a line that says why."""
    try:
        return action()
    except skip.Skip as reason:
        print(f"skipped: {reason}", flush=True)
        return SKIPPED
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        print(f"vm: {error}", flush=True)
        return MACHINE_FAILED


def work_folder(cache):
    """One that is this run's own; those of runs that were killed go away."""
    cache.mkdir(parents=True, exist_ok=True)
    for old in cache.glob("run-*"):
        with contextlib.suppress(ValueError):
            if not pathlib.Path(f"/proc/{int(old.name.split('-')[1])}").exists():
                shutil.rmtree(old, ignore_errors=True)
    return tempfile.TemporaryDirectory(prefix=f"run-{os.getpid()}-", dir=cache)


def run(options):
    if not shutil.which("qemu-system-x86_64"):
        raise skip.Skip("QEMU is missing (Debian package qemu-system-x86)")
    if os.uname().machine != "x86_64":
        raise skip.Skip("the guests are x86-64 machines, and run the programs of this one")
    namespace.check()
    cache = options.build / "vm"
    debian = kernel.fetch(cache, options.kernel)
    with work_folder(cache) as work:
        work = pathlib.Path(work)
        folder = pathlib.Path(options.out or work / "out").resolve()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        namespace.enter()
        sys.stdout.flush()
        child = namespace.fork_bound()
        if child == 0:
            os._exit(guarded(lambda: inside(options, debian, folder, work)))
        try:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        finally:
            # Interrupted: all processes of the namespace go with its first.
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def main():
    def on_signal(number, _):
        sys.exit(128 + number)

    options = arguments()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, on_signal)
    sys.exit(guarded(lambda: run(options)))


if __name__ == "__main__":
    main()
