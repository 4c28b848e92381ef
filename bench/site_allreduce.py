#!/usr/bin/env python3
# All-reduces inside a site by torch.distributed: Longhaul beside Gloo. Each rank has a network namespace of
# its own on a bridge, and the kernel's token bucket bounds what it sends and what it receives.
#
# usage: BUILD=build site_allreduce.py [--quick]
#   Needs root, and torch in $BUILD/python-venv (ctest -L python makes it).
#
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import statistics
import subprocess
import sys

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
HERE = os.path.dirname(os.path.abspath(__file__))
QUICK = "--quick" in sys.argv
RANKS = 4
BUCKET = "rate 1gbit burst 64kb latency 5ms"
SIZES = ((1 << 16, 200, 20), (1 << 20, 50, 5), (16 << 20, 10, 2), (64 << 20, 4, 1)) # bytes, counted, before
LAUNCHES = 1 if QUICK else 3
BACKENDS = ("longhaul", "gloo")


def ip(command):
    done = subprocess.run(["ip", *command.split()], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"site_allreduce.py: not measured: ip {command}: {done.stderr.strip()}")


def set_up(bridge, names):
    ip(f"netns add {bridge}")
    ip(f"-n {bridge} link add bridge type bridge")
    ip(f"-n {bridge} link set bridge up")
    for rank, name in enumerate(names):
        ip(f"netns add {name}")
        ip(f"-n {name} link add eth0 type veth peer name port{rank} netns {bridge}")
        ip(f"-n {bridge} link set port{rank} master bridge up")
        ip(f"-n {name} addr add 10.98.0.{rank + 1}/24 dev eth0")
        for link in ("eth0", "lo"):
            ip(f"-n {name} link set {link} up")
        ip(f"netns exec {name} tc qdisc add dev eth0 root tbf {BUCKET}")
        ip(f"netns exec {bridge} tc qdisc add dev port{rank} root tbf {BUCKET}")


def run(names, backend, size, count, warm):
    """Rank 0's mean times in ms; None: it failed."""
    ranks = []
    for rank, name in enumerate(names):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "10.98.0.1",
                       "MASTER_PORT": "29500", "GLOO_SOCKET_IFNAME": "eth0", "LONGHAUL_LIBRARY": BUILD}
        ranks.append(subprocess.Popen(
            ["ip", "netns", "exec", name, os.path.join(BUILD, "python-venv", "bin", "python"),
             os.path.join(HERE, "torch_allreduce.py"), backend, str(size), str(count), str(warm)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    outputs = [rank.communicate(timeout=300) for rank in ranks]
    if any(rank.returncode for rank in ranks):
        print(f"    {backend}: {outputs[0][1].strip()[-300:]}")
        return None
    result = json.loads(outputs[0][0].strip().splitlines()[-1])
    return None if result["wrong"] else result


def main():
    bridge = f"lh-site-{os.getpid()}"
    names = [f"{bridge}-{rank}" for rank in range(RANKS)]
    try:
        set_up(bridge, names)
        print(f"  {RANKS} ranks, {BUCKET} each way; means of an all-reduce in ms, medians of {LAUNCHES} "
              "launches")
        for size, count, warm in SIZES:
            found = {backend: [] for backend in BACKENDS}
            for _ in range(LAUNCHES):
                for backend, means in found.items():
                    result = run(names, backend, size, count, warm)
                    if result:
                        means.append(1e3 * result["time_mean_s"])
            shown = [f"{backend} {statistics.median(means):8.2f} ({min(means):.2f} … {max(means):.2f})"
                     if means else f"{backend}: none" for backend, means in found.items()]
            print(f"  {size >> 10:>6} KiB  {'  '.join(shown)}", flush=True)
    finally:
        for name in (*names, bridge):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
