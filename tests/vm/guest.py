"""One guest: its QEMU process and the port on which it tells how it is.

SPDX-License-Identifier: BSD-3-Clause
"""

import socket
import subprocess
import sys

import namespace

READY = b"\x01ready"
EXIT = b"\x01exit "


class Output:
    """Lines of one source: shown with its name before each, and kept in a file."""

    def __init__(self, name, path):
        self.name = name
        self.file = open(path, "wb")
        self.rest = b""

    def line(self, line):
        self.file.write(line + b"\n")
        self.file.flush()
        sys.stdout.buffer.write(f"{self.name}| ".encode() + line + b"\n")
        sys.stdout.flush()

    def add(self, data, marker=None):
        """Shows each line but those from the marker on; returns what follows the marker, once it is there."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            before, found, after = line.partition(marker) if marker else (line, b"", b"")
            if before or not found:
                self.line(before)
            if found:
                return after
        return None

    def end(self):
        if self.rest:
            self.line(self.rest)
        self.file.close()


class Guest:
    """state: "boots", "ready", "runs", "ended" (with its status).

    The machine itself goes on after its command has ended, since others may still talk to its kernel.
    """

    def __init__(self, number, options, kernel, initrd, folder):
        self.name = "ab"[number - 2]
        self.state = "boots"
        self.status = None
        self.out = folder / self.name
        self.out.mkdir()
        (self.out / ".command").write_text(options.guest[number - 2] + "\n", encoding="utf-8")
        self.console = folder / f"{self.name}.console"
        self.output = Output(self.name, folder / f"{self.name}.log")
        self.port, theirs = socket.socketpair()
        with theirs:
            command = self.command(number, options, kernel, initrd, theirs.fileno())
            self.qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])

    def command(self, number, options, kernel, initrd, port):
        words = (f"console=ttyS0 panic=-1 quiet mitigations=off vm_name={self.name} vm_number={number} "
                 f"vm_guests={len(options.guest)} vm_mtu={options.mtu}")
        mac, mtu = namespace.mac(number), options.mtu
        return ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", str(options.memory),
                "-smp", str(options.cpus), "-nographic", "-no-reboot", "-nodefaults", "-monitor", "none",
                "-serial", f"file:{self.console}", "-kernel", str(kernel.image), "-initrd", str(initrd),
                "-append", words,
                "-netdev", f"tap,id=n0,ifname={namespace.tap(number)},script=no,downscript=no",
                "-device", f"virtio-net-pci,netdev=n0,mac={mac},romfile=,host_mtu={mtu}",
                "-fsdev", f"local,id=out,path={self.out},security_model=none",
                "-device", "virtio-9p-pci,fsdev=out,mount_tag=out",
                "-device", "virtio-serial-pci", "-chardev", f"socket,id=port,fd={port}",
                "-device", "virtserialport,chardev=port,nr=1,name=longhaul"]

    def fileno(self):
        return self.port.fileno()

    def go(self):
        self.state = "runs"
        self.port.sendall(b"go\n")

    def on_readable(self):
        data = self.port.recv(65536)
        if not data:
            self.lost()
        elif self.state == "boots":
            if self.output.add(data, READY) is not None:
                self.state = "ready"
        elif (after := self.output.add(data, EXIT)) is not None:
            self.end(int(after))

    def lost(self):
        self.qemu.wait()
        sys.stdout.write(f"{self.name}: the machine ended by itself. The end of its console:\n")
        text = self.console.read_bytes().decode("utf-8", "replace") if self.console.exists() else ""
        sys.stdout.write("".join(f"{self.name}> {line.rstrip()}\n" for line in text.splitlines()[-30:]))
        self.end(125)

    def end(self, status):
        self.state = "ended"
        self.status = status
        self.output.end()
        (self.out / ".command").unlink(missing_ok=True)

    def power_off(self):
        """What it left behind was written through to our folder."""
        self.port.close()
        self.qemu.kill()
        self.qemu.wait()
