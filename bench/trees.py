#!/usr/bin/env python3
# Trees of files through longhaul-path, beside rsync over ssh and tar over TCP (BBR): whole commands, and a
# second run with nothing changed.
#
# usage: [BUILD=build] [LONGHAUL=COMMAND] trees.py [--quick] [--launches N] [--rate GBPS] [--loss LIST]
#            [--only TOOL] [--key] [--folder DIR] [--json FILE] [PART ...]
#   PART: small, 10,000 files of 10 kB; tree, 20,000 files of 0 to 40 kB in 500 folders, with links; file, one
#   of 256 MiB; short, one of 1 MiB. All by default.
#   --rate GBPS    of the path (2)
#   --loss LIST    shares of lost packets, with commas (0,1e-3)
#   --only TOOL    longhaul, rsync or tar alone
#   --key          longhaul with a key file; else with --insecure
#   --folder DIR   where the files are (/dev/shm)
#   --json FILE    appends a line a result, as bench/run does
# Needs rsync, sshd, nc (.ci/install-deps bench).
#
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
LONGHAUL = os.environ.get("LONGHAUL", os.path.join(BUILD, "longhaul"))
PATH = os.path.join(BUILD, "bench", "longhaul-path")
HERE, THERE = "10.99.0.1", "10.99.0.2"
DELAY_MS = 12.5
CAP_S = 60


def option(name, default):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


LAUNCHES = 1 if "--quick" in sys.argv else int(option("--launches", "3"))
OUTPUT = option("--json", None)
WHAT = "in"
RATE_GBPS = float(option("--rate", "2"))
LOSSES = option("--loss", "0,1e-3").split(",")
ALL_PARTS = ["small", "tree", "file", "short"]
PARTS = [part for part in ALL_PARTS if part in sys.argv] or ALL_PARTS


def make_small(folder, source):
    for number in range(10000):
        with open(f"{folder}/{number}", "wb") as file:
            file.write(source.randbytes(10000))


def make_file(folder, source):
    with open(f"{folder}/file", "wb") as file:
        for _ in range(64):
            file.write(source.randbytes(4 << 20))


def make_short(folder, source):
    with open(f"{folder}/file", "wb") as file:
        file.write(source.randbytes(1 << 20))


def make_tree(folder, source):
    for place in range(500):
        inside = f"{folder}/{place % 20}/{place}"
        os.makedirs(inside)
        for number in range(40):
            with open(f"{inside}/{number}", "wb") as file:
                file.write(source.randbytes(source.randrange(40000)))
        os.symlink("0", f"{inside}/link")
        os.link(f"{inside}/1", f"{inside}/hard")


# ---- tools -----------------------------------------------------------------------------------------------

# Buffers beyond the product of rate and round trip, BBR: the best that TCP has on this path.
TUNE = "sysctl -qw net.ipv4.tcp_congestion_control=bbr net.ipv4.tcp_rmem='4096 131072 67108864' " \
       "net.ipv4.tcp_wmem='4096 65536 67108864'"


def longhaul(work):
    security = "--insecure"
    if "--key" in sys.argv:
        security = f"--key-file {work}/key"
        if not os.path.exists(f"{work}/key"):
            subprocess.run([LONGHAUL, "key", "new", f"{work}/key"], check=True, stdout=subprocess.DEVNULL)
    return f"{LONGHAUL} send {security} {work}/{WHAT} {THERE} >{work}/send.log 2>&1", \
           f"umask 0; exec {LONGHAUL} recv {security} --output {work}/out --dotfiles >{work}/recv.log 2>&1"


def rsync_ssh(work):
    keys = f"{work}/keys"
    if not os.path.isdir(keys):
        os.makedirs(keys, mode=0o700)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{keys}/{name}"],
                           check=True)
        with open(f"{keys}/config", "w", encoding="ascii") as file:
            file.write(f"Port 2222\nHostKey {keys}/host\nAuthorizedKeysFile {keys}/user.pub\nStrictModes no\n"
                       f"PidFile none\nUsePAM no\nPermitRootLogin yes\n")
    shell = f"ssh -p 2222 -i {keys}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null " \
            "-o LogLevel=QUIET"
    return f"rsync -aH -e '{shell}' {work}/{WHAT} {THERE}:{work}/out/", \
           f"mkdir -p /run/sshd; exec $(command -v /usr/sbin/sshd) -D -f {keys}/config"


def tar(work):
    return f"tar -C $(dirname {work}/{WHAT}) -cf - $(basename {WHAT}) | nc -N {THERE} 5000", \
           f"nc -l 5000 | tar -C {work}/out -xf -"


TOOLS = {"longhaul": longhaul, "rsync -aH, ssh": rsync_ssh, "tar | nc": tar}
TOOLS = {name: tool for name, tool in TOOLS.items() if name.startswith(option("--only", ""))}


def launch(name, work, loss):
    """Seconds of the whole command at the sender; NaN: it failed, or took too long."""
    left, right = TOOLS[name](work)
    timed = f"{TUNE}; sleep 1; s=$(date +%s%N); {{ {left}; }} || exit 1; e=$(date +%s%N); " \
            f"echo $((e - s)) >{work}/time"
    path = [PATH, "--rate", f"{RATE_GBPS}Gbit", "--delay", f"{DELAY_MS}ms", "--loss", loss,
            "--json", "/dev/null"]
    if os.path.exists(f"{work}/time"):
        os.unlink(f"{work}/time")
    done = subprocess.run(["timeout", "--signal=TERM", str(CAP_S + 5), *path, "--", "timeout", str(CAP_S),
                           "sh", "-c", timed, ":::", "sh", "-c", f"{TUNE}; {right}"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": "/dev/null"})
    if done.returncode == 77:
        raise PermissionError(done.stderr.strip())
    if done.returncode or not os.path.exists(f"{work}/time"):
        print(f"    {name}: {done.stderr.strip() or 'failed'}", file=sys.stderr)
        return float("nan")
    return int(open(f"{work}/time", encoding="ascii").read()) / 1e9


def same(work):
    return subprocess.run(["diff", "-rq", "--no-dereference", f"{work}/{WHAT}",
                           f"{work}/out/{os.path.basename(WHAT)}"],
                          stdout=subprocess.DEVNULL, check=False).returncode == 0


def report(name, value, reference, reference_value):
    if OUTPUT:
        with open(OUTPUT, "a", encoding="ascii") as file:
            file.write(json.dumps({"name": name, "value": value, "unit": "s", "reference": reference,
                                   "reference_value": reference_value, "ratio": value / reference_value,
                                   "runs": LAUNCHES}) + "\n")


def measure(part, work, loss, ideal):
    for name in TOOLS:
        first, second = [], []
        for _ in range(LAUNCHES):
            shutil.rmtree(f"{work}/out", ignore_errors=True)
            os.mkdir(f"{work}/out")
            first.append(launch(name, work, loss))
            right = first[-1] == first[-1] and same(work)
            if name.startswith("tar") or not right:
                continue
            second.append(launch(name, work, loss))
        middle = statistics.median(first)
        again = f"{statistics.median(second):8.3f}" if second else "       -"
        print(f"  {part:6s} {loss:>5s}  {name:16s} {middle:8.3f} ({min(first):.3f} … {max(first):.3f})"
              f"   × ideal {middle / ideal:5.2f}   unchanged {again}{'' if right else '   NOT THE SAME'}",
              flush=True)
        report(f"trees {part} loss {loss} {name}", middle, "ideal", ideal)


def main():
    global WHAT  # pylint: disable=global-statement
    work = tempfile.mkdtemp(dir=option("--folder", "/dev/shm"))
    print(f"path {RATE_GBPS} Gbit/s, round trip {2 * DELAY_MS:g} ms; seconds of the whole command, "
          f"median (range) of {LAUNCHES}; ideal: the bytes of the files at that rate, and a round trip")
    try:
        for part in PARTS:
            shutil.rmtree(f"{work}/in", ignore_errors=True)
            os.mkdir(f"{work}/in")
            WHAT = "in/file" if part in ("file", "short") else "in"
            {"small": make_small, "tree": make_tree, "file": make_file, "short": make_short}[part](
                f"{work}/in", random.Random(1))
            size = sum(os.lstat(os.path.join(place, name)).st_size
                       for place, _, names in os.walk(f"{work}/in")
                       for name in names if name not in ("link", "hard"))
            for loss in LOSSES:
                measure(part, work, loss, 8 * size / (RATE_GBPS * 1e9) + 2 * DELAY_MS / 1e3)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
