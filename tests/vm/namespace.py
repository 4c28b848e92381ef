"""A network of the run's own: namespaces, a bridge, a TAP device for each guest.

All that a run starts lives in a process namespace whose first process dies with the script, however that
ends; the kernel then kills the rest and takes the network away.

SPDX-License-Identifier: BSD-3-Clause
"""

import ctypes
import os
import signal
import subprocess

import skip

CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags):
    """0, or the errno."""
    return 0 if libc.unshare(flags) == 0 else ctypes.get_errno()


def check():
    """What can be known before anything is changed."""
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        raise skip.Skip(f"/dev/net/tun: {error.strerror}") from None


def enter():
    """Own network, own processes from the next fork on; an own user namespace where that is needed."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0 and unshare(CLONE_NEWNET | CLONE_NEWPID) == 0:
        return
    if error := unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID):
        raise skip.Skip(f"no user and network namespace: {os.strerror(error)}")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
        except OSError as error:
            raise skip.Skip(f"no user namespace: {name}: {error.strerror}") from None


def fork_bound():
    """Forks; the child is killed when this process ends, however that is. Returns what fork() returns."""
    alive, held = os.pipe()
    pid = os.fork()
    if pid:
        os.close(alive)
        os.set_inheritable(held, False)
        return pid
    os.close(held)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have died before that.
    os.set_blocking(alive, False)
    try:
        if os.read(alive, 1) == b"":
            os._exit(1)
    except BlockingIOError:
        pass
    return 0


def mac(number):
    return f"52:54:00:77:00:{number:02x}"


def tap(number):
    return f"tap{number}"


def ip(*words):
    done = subprocess.run(["ip", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise skip.Skip(f"ip {' '.join(words)}: {done.stderr.strip()}")


def build(guests, mtu):
    """lo, br0 with the host's addresses (number 1), and a TAP device for each guest (from number 2 on)."""
    ip("link", "set", "lo", "up")
    ip("link", "add", "br0", "address", mac(1), "type", "bridge", "mcast_snooping", "0")
    numbers = range(2, 2 + guests)
    for number in numbers:
        ip("tuntap", "add", "dev", tap(number), "mode", "tap")
        # A queue as long as a burst: what is to be lost, netem loses.
        ip("link", "set", tap(number), "mtu", str(mtu), "txqueuelen", "10000", "master", "br0", "up")
    ip("link", "set", "br0", "mtu", str(mtu), "up")
    ip("addr", "add", "10.77.0.1/24", "dev", "br0")
    ip("-6", "addr", "add", "fd77::1/64", "dev", "br0", "nodad")
    for number in numbers:
        for address in (f"10.77.0.{number}", f"fd77::{number}"):
            ip("neigh", "replace", address, "lladdr", mac(number), "nud", "permanent", "dev", "br0")
