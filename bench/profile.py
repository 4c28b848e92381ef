#!/usr/bin/env python3
# Where the CPU time of goodput over loopback goes: samples of both ends, by what they were in, as us of CPU
# for each 64 KiB. Messages of 64 KiB, 16 in flight, between two processes of a worker each, on a core each;
# and the raw blaster.
#
# usage: BUILD=build bench/profile.py [LABEL] >>bench/results/profile.txt
#   Needs Debian's linux-perf, and the right to see the kernel's symbols. LABEL names the build, "now" by
#   default. gnuplot bench/results/profile.gp draws the picture of the docs.
#
# SPDX-License-Identifier: BSD-3-Clause
import collections
import json
import os
import re
import socket
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
MESSAGE, IN_FLIGHT, MESSAGES = 65536, 16, 40000
FREQUENCY = 4999
RAW_SECONDS = 2.2 # with its warm-up

# The first that a stack has something of: its name in the table, and functions.
PLACES = [
    ("icrc", ("crc32_gzip_refl", "icrc_")),
    ("waking", ("__x64_sys_futex", "__x64_sys_write", "sock_def_readable")),
    ("copy", ("_copy_from_iter", "_copy_to_iter")),
    ("control", ("__sys_sendto", "do_recvmmsg")),
    ("data", ("___sys_sendmsg", "___sys_recvmsg", "__sys_sendmmsg", "__sys_sendmsg", "__sys_recvmsg")),
    ("sleeping", ("__x64_sys_ppoll", "__x64_sys_epoll_wait", "schedule")),
]
COLUMNS = [name for name, _ in PLACES] + ["own"] # the code of the library and the program


def place_of(stack):
    for name, functions in PLACES:
        if any(frame.startswith(functions) for frame in stack):
            return name
    return "own"


def record(command):
    """What the shell command printed, and of each process: samples by place and by thread."""
    with tempfile.NamedTemporaryFile(suffix=".data") as file:
        out = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-g", "-o",
                              file.name, "--", "bash", "-c", command], capture_output=True, text=True,
                             check=False)
        if out.returncode:
            sys.exit(f"profile.py: {command}\n{out.stdout}{out.stderr}")
        script = subprocess.run(["perf", "script", "-i", file.name, "-F", "comm,pid,tid,ip,sym",
                                 "--no-inline"], capture_output=True, text=True, check=True).stdout
    samples = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for block in script.split("\n\n"):
        lines = block.strip("\n").split("\n")
        head = re.match(r"(.*\S)\s+(\d+)/(\d+)\s*$", lines[0])
        if head:
            stack = [line.split(None, 1)[-1].strip() for line in lines[1:]]
            samples[int(head[2])][int(head[3])][place_of(stack)] += 1
    return out.stdout, samples


def print_row(label, who, places, messages):
    values = [1e6 / FREQUENCY * places[name] / messages for name in COLUMNS]
    cells = "".join(f"{value:10.2f}" for value in [*values, sum(values)])
    print(f"{label + ' ' + who:<18}{cells}", flush=True)


def of_process(threads):
    total = collections.Counter()
    for places in threads.values():
        total.update(places)
    return total


def profile_ours(label):
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as s:
        s.bind(("::1", 0))
        where = f"[::1]:{s.getsockname()[1]}"
    longhaul = os.path.join(BUILD, "longhaul")
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        out, samples = record(
            f"taskset -c 0 {longhaul} perf --server --listen {where} --once >/dev/null & echo $!; sleep 0.5; "
            f"taskset -c 1 {longhaul} perf {where} --reliability sr-nack --size {MESSAGE} "
            f"--in-flight {IN_FLIGHT} --iterations {MESSAGES} --json {file.name} >/dev/null; wait")
        goodput = json.load(open(file.name, encoding="utf-8"))["goodput_bps"]
    server = int(out.split()[0])
    client = max((pid for pid in samples if pid != server), key=lambda pid: of_process(samples[pid]).total())
    print_row(label, "sender", of_process(samples[client]), MESSAGES)
    print_row(label, "receiver", of_process(samples[server]), MESSAGES)
    return goodput


def profile_raw():
    out, samples = record(os.path.join(BUILD, "bench", "bench_udp_raw"))
    gbps = float(re.findall(r"([0-9.]+) Gbit/s", out)[-1])
    messages = gbps * 1e9 / 8 / MESSAGE * RAW_SECONDS
    busiest = max(samples.values(), key=lambda threads: of_process(threads).total())
    ends = sorted(busiest.values(), key=lambda places: -places.total())[:2]
    # The sender's copy is into the kernel, and the call that makes it the longer one.
    ends.sort(key=lambda places: -places["data"])
    print_row("raw", "sender", ends[0], messages)
    print_row("raw", "receiver", ends[1], messages)
    return gbps * 1e9


def main():
    label = sys.argv[1] if len(sys.argv) > 1 else "now"
    print(f"{'us per 64 KiB':<18}" + "".join(f"{name:>10}" for name in [*COLUMNS, "sum"]))
    ours, raw = profile_ours(label), profile_raw()
    print(f"# {label}: {ours / 1e9:.1f} Gbit/s, raw {raw / 1e9:.1f} Gbit/s, both while samples were taken\n")


if __name__ == "__main__":
    main()
