#!/usr/bin/env python3
# Which schedule takes the least, for which size and distance, by 'longhaul plan --collective': an all-reduce
# of 8 ranks in a site each, and a multicast to 128 hosts in 2, 4 and 8 datacenters.
#
#   BUILD=build bench/crossover.py > bench/results/crossover.txt
#   gnuplot bench/results/collective-crossover.gp
#
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import subprocess
import sys

LONGHAUL = os.path.join(os.environ.get("BUILD", "build"), "longhaul")
LINK = ["--bandwidth", "2Gbit", "--loss", "1e-3"]
RANKS = 8
HOSTS = 128
DISTANCES_MS = (0.1, 1, 5, 25, 100)
SIZES_KIB = (4, 16, 64, 256, 1024, 4096, 16384, 65536)
MULTICAST_KIB = (64, 1024, 4096, 16384, 65536)
DATACENTERS = (2, 4, 8)
MULTICASTS = ("hybrid", "binomial-pipeline", "chain", "double-tree", "binomial-tree", "sequential")


def plan(collective, ranks, sites, size_kib, rtt_ms):
    """Mean times by schedule, in ms."""
    done = subprocess.run([LONGHAUL, "plan", "--collective", collective, "--ranks", str(ranks), "--sites",
                           str(sites), "--size", f"{size_kib}KiB", "--rtt", f"{rtt_ms * 1000:.0f}us", *LINK,
                           "--json", "-"], capture_output=True, text=True, check=True)
    value = json.loads(done.stdout[done.stdout.index("{"):])
    return {row["schedule"]: 1e3 * row["mean_s"] for row in value["choices"]}


def all_reduce():
    print(f"# all-reduce, {RANKS} ranks, a site each, 2 Gbit/s, loss 1e-3: the fastest and the next, ms")
    print(f"# {'rtt_ms':>6} {'size_KiB':>8}  {'fastest':16} {'mean':>9}  {'next':16} {'mean':>9}")
    for rtt_ms in DISTANCES_MS:
        for size_kib in SIZES_KIB:
            times = sorted(plan("allreduce", RANKS, RANKS, size_kib, rtt_ms).items(), key=lambda row: row[1])
            print(f"{rtt_ms:>8} {size_kib:>8}  " +
                  "  ".join(f"{name:16} {mean:9.2f}" for name, mean in times[:2]), flush=True)


def multicast():
    print(f"\n# multicast to {HOSTS} hosts, 25 ms and 2 Gbit/s between datacenters, loss 1e-3: mean, ms")
    print("# sites size_KiB " + " ".join(f"{name:>17}" for name in MULTICASTS))
    for sites in DATACENTERS:
        for size_kib in MULTICAST_KIB:
            times = plan("broadcast", HOSTS, sites, size_kib, 25)
            print(f"{sites:>7} {size_kib:>8} " + " ".join(f"{times[name]:>17.1f}" for name in MULTICASTS),
                  flush=True)


def main():
    all_reduce()
    multicast()
    return 0


if __name__ == "__main__":
    sys.exit(main())
