#!/usr/bin/env python3
"""What longhaul probe finds, beside what the emulated link was told.

Prints a row for each link, the medians over its seeds: round trip / truth, burst length / truth,
rate / truth, and how many of the 95 % intervals hold the true loss. --json FILE has every run. BUILD names
the build folder (build).

SPDX-License-Identifier: BSD-3-Clause
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess

COMMAND = pathlib.Path(os.environ.get("BUILD", "build")).resolve() / "longhaul"
# round trip ms, rate Gbit/s, loss, burst
LINKS = [(2.5, 1, 1e-2, 1), (10, 1, 1e-3, 1), (10, 0.2, 1e-2, 4), (25, 1, 1e-2, 1), (25, 1, 1e-2, 8),
         (25, 1, 5e-2, 3), (50, 0.5, 1e-2, 16), (100, 1, 1e-2, 8), (100, 0.1, 3e-2, 1)]


def probe(where, link, seed, time_s):
    rtt_ms, rate, loss, burst = link
    text = f"rtt={rtt_ms}ms,rate={rate}Gbit,loss={loss},seed={seed}"
    text += f",burst={burst}" if burst > 1 else ""
    done = subprocess.run([COMMAND, "probe", where, "--time", f"{time_s}s", "--link", text, "--json", "-"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{text} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def judge(found, link):
    rtt_ms, rate, loss, burst = link
    independent = 1 / (1 - loss)
    return {
        "rtt": found["rtt_s"] / (rtt_ms / 1e3),
        "rate": found["bandwidth_bps"] / (rate * 1e9),
        "burst": found["burst_packets"] / (burst if burst > 1 else independent),
        "loss": found["loss"] / loss,
        "holds": [found["loss_low"] <= loss <= found["loss_high"]]
                 + [size["loss_low"] <= loss <= size["loss_high"] for size in found["sizes"]],
        "excluded": found["trials_excluded"],
        "found": found,
    }


def print_row(link, runs):
    rtt_ms, rate, loss, burst = link

    def middle(name):
        values = [run[name] for run in runs]
        return f"{statistics.median(values):6.3f} ({min(values):.3f} … {max(values):.3f})"
    whole = sum(run["holds"][0] for run in runs)
    sizes = sum(sum(run["holds"][1:]) for run in runs)
    tried = sum(len(run["holds"]) - 1 for run in runs)
    print(f"{rtt_ms:6g} ms {rate:5g} Gbit/s {loss:8g} {burst:5d}  {middle('rtt'):>23}  {middle('burst'):>23}"
          f"  {middle('rate'):>23}  {whole:2d} of {len(runs)}  {sizes:3d} of {tried}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--time", type=int, default=10, help="seconds of each probe")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    server = subprocess.Popen([COMMAND, "probe", "--server", "--listen", "[::1]:0"],
                              stdout=subprocess.PIPE, text=True)
    where = server.stdout.readline().split()[-1]
    print(f"{'link: round trip, rate, loss, burst':36}  {'round trip / truth':>23}  {'burst / truth':>23}"
          f"  {'rate / truth':>23}  loss held  by size")
    results = []
    try:
        for link in LINKS:
            seeds = range(1, options.seeds + 1)
            runs = [judge(probe(where, link, seed, options.time), link) for seed in seeds]
            print_row(link, runs)
            results.append({"link": link, "runs": runs})
    finally:
        server.terminate()
        server.wait()
    held = [hold for result in results for run in result["runs"] for hold in run["holds"]]
    sure = 1.96 * math.sqrt(0.95 * 0.05 / len(held))
    print(f"{sum(held)} of {len(held)} intervals of 95 % hold the true loss: {sum(held) / len(held):.3f} "
          f"(0.95 ± {sure:.3f} by chance)")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


main()
