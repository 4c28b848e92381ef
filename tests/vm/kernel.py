"""The guests' kernel: Debian's package, only unpacked. Cached in the build folder.

SPDX-License-Identifier: BSD-3-Clause
"""

import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import skip

# What a guest needs, in this order; what these depend on comes before them. "?": only where the kernel has
# it (rxe 6.1 asks for "crc32" by name; the pclmul one is the faster of the two, under emulation too).
MODULES = ["virtio_pci", "virtio_net", "virtio_console", "9pnet_virtio", "9p", "crc32_generic?",
           "crc32_pclmul?", "rdma_rxe", "sch_netem", "ifb", "sch_ingress", "act_mirred", "cls_matchall"]

# The folders of the package that hold these and what they depend on: a twentieth of it.
FOLDERS = ["arch/x86/crypto", "crypto", "lib", "net", "fs/9p", "fs/netfs", "fs/fscache", "drivers/virtio",
           "drivers/char", "drivers/infiniband", "drivers/net"]
# Drivers of hardware that no guest has, most of what is in these folders.
LEAVE_OUT = ["drivers/net/*/*", "drivers/infiniband/hw/*"]


def output_of(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def package_name():
    """linux-image-amd64 depends on the package of today's version."""
    def look():
        shown = output_of("apt-cache", "show", "--no-all-versions", "linux-image-amd64")
        return re.search(r"^Depends:.*?\b(linux-image-\d[^ ,]*)", shown, re.MULTILINE)

    found = look()
    if not found and os.geteuid() == 0:
        output_of("apt-get", "update")
        found = look()
    if not found:
        raise skip.Skip("apt knows no package linux-image-amd64 (not Debian, or apt-get update never ran)")
    return found[1]


def download(folder):
    """Puts the package into the folder."""
    if not shutil.which("apt-get"):
        raise skip.Skip("the kernel comes from a Debian package, and there is no apt-get")
    os.chmod(folder, 0o755)
    for attempt in range(2):
        name = package_name()
        subprocess.run(["apt-get", "download", name], cwd=folder, stdin=subprocess.DEVNULL,
                       capture_output=True, check=False)
        for package in pathlib.Path(folder).glob("*.deb"):
            return package
        # The lists may be older than what the archive has.
        if attempt == 0 and os.geteuid() == 0:
            output_of("apt-get", "update")
    raise skip.Skip(f"apt-get download {name} fails")


def unpack(package, folder):
    """vmlinuz and the modules of one package, without its other 350 MB."""
    wanted = ["./boot/vmlinuz-*"]
    wanted += [f"./{top}lib/modules/*/kernel/{each}" for top in ("", "usr/") for each in FOLDERS]
    left_out = [f"--exclude=*/kernel/{each}" for each in LEAVE_OUT]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as source:
        # tar's status tells of each pattern without a match: one of the two tops never has any.
        subprocess.run(["tar", "-x", "-C", str(folder), "--wildcards", *left_out, *wanted],
                       stdin=source.stdout, stderr=subprocess.DEVNULL, check=False)
        source.stdout.close()
    if not list(folder.glob("boot/vmlinuz-*")):
        raise RuntimeError(f"{package} holds no kernel")


def bootable(vmlinuz, out):
    """What QEMU boots: the ELF image inside, by PVH, which saves seconds of firmware and decompression."""
    image = vmlinuz.read_bytes()
    start = image.find(b"\xfd7zXZ\x00")
    if start >= 0:
        image = lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(image[start:])
    out.write_bytes(image)


class Kernel:
    """A folder with `vmlinux` and a tree of modules."""

    def __init__(self, folder):
        self.image = folder / "vmlinux"
        self.files = {}
        for path in (folder / "modules").rglob("*.ko*"):
            self.files[path.name.split(".")[0].replace("-", "_")] = path

    @staticmethod
    def content(path):
        data = path.read_bytes()
        return lzma.decompress(data) if path.suffix == ".xz" else data

    def modules(self):
        """[(name, content)] in the order in which they go in."""
        done = {}

        def add(name, optional):
            if name in done:
                return
            if name not in self.files:
                # A dependency that has no file is built in.
                if optional:
                    return
                raise RuntimeError(f"the kernel package has no module {name}")
            content = self.content(self.files[name])
            needs = re.search(rb"\0depends=([^\0]*)\0", content)
            for each in needs[1].decode().split(",") if needs and needs[1] else []:
                add(each.replace("-", "_"), True)
            done[name] = content

        for name in MODULES:
            add(name.rstrip("?"), name.endswith("?"))
        return list(done.items())


def fetch(cache, package=None):
    """The cached kernel, or one that is fetched now (or taken from a .deb that the caller has)."""
    final = cache / ("kernel" if package is None else f"kernel-{pathlib.Path(package).stem}")
    if not final.exists():
        for tool in ("dpkg-deb", "tar"):
            if not shutil.which(tool):
                raise skip.Skip(f"the kernel comes from a Debian package, and there is no {tool}")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="unpack-", dir=cache) as work:
            work = pathlib.Path(work)
            unpack(package or download(work), work)
            ready = work / "ready"
            ready.mkdir()
            bootable(next(work.glob("boot/vmlinuz-*")), ready / "vmlinux")
            modules = [*work.glob("lib/modules"), *work.glob("usr/lib/modules")]
            shutil.move(modules[0], ready / "modules")
            try:
                ready.rename(final)
            except OSError:
                # Another run was first.
                if not final.exists():
                    raise
    return Kernel(final)
