"""The guests' file system: an initramfs of some programs of this machine, ours, and their libraries.

SPDX-License-Identifier: BSD-3-Clause
"""

import pathlib
import re
import shutil
import stat

import skip
from kernel import output_of

HERE = pathlib.Path(__file__).parent

# name: package that has it. Without these there is no machine.
TOOLS = {"ip": "iproute2", "tc": "iproute2", "rdma": "iproute2", "bash": "bash", "dash": "dash"}
# These go in where they are installed.
OPTIONAL_TOOLS = ["ibv_devinfo", "ib_write_bw", "ib_send_bw", "ib_write_lat", "strace", "gdb"]

# What is opened by name at run time, not linked: the provider of rxe alone (each other one whose library is
# missing would be complained about), distributions for netem, and what glibc opens to end a thread.
BY_NAME = ["/etc/libibverbs.d/rxe.driver", "/usr/lib/*/libibverbs/librxe-rdmav*.so", "/usr/lib/tc/*.dist",
           "/lib/*/libgcc_s.so.1", "/usr/lib/*/libgcc_s.so.1"]

TEXTS = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "/etc/group": "root:x:0:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "hosts: files\n",
}


def linked_with(path):
    """The shared libraries of a program, by the names under which it finds them."""
    shown = output_of("ldd", str(path))
    missing = re.findall(r"(\S+) => not found", shown)
    if missing:
        raise RuntimeError(f"{path} is linked with {', '.join(missing)}, which this machine does not have")
    return re.findall(r"(?:=> |^\s*)(/\S+) \(0x", shown, re.MULTILINE)


class Image:
    """Collects files, and writes them as an uncompressed newc archive, which a guest unpacks fastest."""

    def __init__(self):
        self.entries = {}

    def put(self, where, content, mode=0o644, kind=stat.S_IFREG, device=(0, 0)):
        where = where.strip("/")
        for parent in reversed(pathlib.PurePosixPath(where).parents[:-1]):
            self.entries.setdefault(str(parent), (b"", stat.S_IFDIR | 0o755, (0, 0)))
        self.entries[where] = (content, kind | mode, device)

    def folder(self, where, mode=0o755):
        self.put(where, b"", mode, stat.S_IFDIR)

    def link(self, where, target):
        if where.strip("/") not in self.entries:
            self.put(where, target.encode(), 0o777, stat.S_IFLNK)

    def add(self, path, where=None):
        """A file of this machine, with the libraries that it is linked with."""
        path = pathlib.Path(path)
        content = path.read_bytes()
        executable = path.stat().st_mode & 0o111 or content[:4] == b"\x7fELF"
        self.put(where or str(path), content, 0o755 if executable else 0o644)
        if content[:4] == b"\x7fELF":
            for library in linked_with(path):
                if library.strip("/") not in self.entries:
                    self.put(library, pathlib.Path(library).read_bytes(), 0o755)

    def write(self, out):
        end = ("TRAILER!!!", (b"", 0, (0, 0)))
        for number, (name, (content, mode, device)) in enumerate([*self.entries.items(), end]):
            fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name) + 1, 0]
            out.write(b"070701" + b"".join(b"%08X" % field for field in fields))
            out.write(name.encode() + b"\0")
            out.write(b"\0" * (-(110 + len(name) + 1) % 4))
            out.write(content)
            out.write(b"\0" * (-len(content) % 4))


def add_tools(image):
    for name, package in TOOLS.items():
        path = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
        if not path:
            raise skip.Skip(f"{name} is missing (Debian package {package})")
        image.add(path, f"/usr/bin/{name}")
    image.link("/bin/sh", "/usr/bin/dash")
    image.link("/bin/bash", "/usr/bin/bash")
    for name in OPTIONAL_TOOLS:
        if path := shutil.which(name):
            image.add(path, f"/usr/bin/{name}")
    for pattern in BY_NAME:
        for path in pathlib.Path("/").glob(pattern.strip("/")):
            image.add(path)
    if not any("librxe" in name for name in image.entries):
        raise skip.Skip("Soft-RoCE's verbs provider is missing (Debian package ibverbs-providers)")


def add_busybox(image):
    """Its applets, where no real program has the name: its ip and tc know too little."""
    path = shutil.which("busybox")
    if not path:
        raise skip.Skip("busybox is missing (Debian package busybox-static)")
    image.add(path, "/bin/busybox")
    for applet in output_of(path, "--list").split():
        if f"usr/bin/{applet}" not in image.entries:
            image.link(f"/bin/{applet}", "/bin/busybox")


def build(kernel, programs, files, out):
    """Writes the initramfs. programs go to /usr/bin; files is [(path here, path there)]."""
    image = Image()
    for folder in ("/proc", "/sys", "/dev", "/tmp", "/run", "/out", "/root"):
        image.folder(folder)
    image.put("/dev/console", b"", 0o600, stat.S_IFCHR, (5, 1))
    for where, text in TEXTS.items():
        image.put(where, text.encode())
    modules = kernel.modules()
    for name, content in modules:
        image.put(f"/modules/{name}.ko", content)
    image.put("/modules/order", "\n".join(name for name, _ in modules).encode() + b"\n")
    add_tools(image)
    add_busybox(image)
    image.put("/init", (HERE / "guest_init.sh").read_bytes(), 0o755)
    image.put("/usr/bin/netem", (HERE / "netem.sh").read_bytes(), 0o755)
    for path in programs:
        image.add(path, f"/usr/bin/{pathlib.Path(path).name}")
    for path, where in files:
        image.add(path, where)
    with open(out, "wb") as archive:
        image.write(archive)
