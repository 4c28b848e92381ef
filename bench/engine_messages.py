#!/usr/bin/env python3
# One engine a process: small messages beside the kernel's TCP, libfabric and UCX; connections that are open.
#
# usage: BUILD=build engine_messages.py [--quick] [--json FILE] [PART ...]
#   PART: small, over loopback; path, over 25 ms and a loss of 1e-2; connections; peers. All by default.
#   --json FILE   appends a line a result, as bench/run does
#
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

from path_messages import BUILD, OUTPUT, QUICK, report, run_path

LAUNCHES = 2 if QUICK else 6
SIZES = {"64B": 64, "1KiB": 1024, "4KiB": 4096}
IN_FLIGHT = 256
ECHOES = 2000 if QUICK else 20000
STREAM = 10000 if QUICK else 200000
PATTERNS = (("echo", 1, ECHOES), ("stream", IN_FLIGHT, STREAM))
DATAGRAM_BYTES = "4096" # as long as ours over loopback
LOOPBACK = "127.0.0.1"
PATIENCE_S = 120
REFERENCE = {"poll": "kernel TCP, polling", "sleep": "kernel TCP, blocking"}


def bench(name):
    return os.path.join(BUILD, "bench", name)


def pinned(core):
    cpus = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(cpus[0] if core == 0 else cpus[-1])]


def fail(command, done):
    sys.exit(f"bench: {' '.join(command)}\n{done.stdout}{done.stderr}")


# ---- small messages over loopback --------------------------------------------------------------------------


def exchange(program, how, wait, pattern, size, in_flight, messages):
    """A fresh server and a fresh client, on a core each. The client's times."""
    with subprocess.Popen([*pinned(0), bench(program), "--server", LOOPBACK, "0", wait, how],
                          stdout=subprocess.PIPE, text=True) as server:
        line = server.stdout.readline()
        if "listening" not in line:
            sys.exit(f"bench: {program}: the server did not start")
        command = [*pinned(1), bench(program), LOOPBACK, LOOPBACK, line.split()[-1], wait, how, pattern,
                   str(size), str(in_flight), str(messages)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        if done.returncode:
            server.kill()
            fail(command, done)
    return json.loads(done.stdout)


def free_port():
    with socket.socket() as s:
        s.bind((LOOPBACK, 0))
        return str(s.getsockname()[1])


def both_ends(server, client, environment=None):
    """Output of a client of another library that is started a moment after its server; None: failed."""
    environment = {**os.environ, **(environment or {})}
    with subprocess.Popen([*pinned(0), *server], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=environment) as process:
        time.sleep(0.5)
        try:
            done = subprocess.run([*pinned(1), *client], capture_output=True, text=True, check=False,
                                  timeout=PATIENCE_S, env=environment)
        except subprocess.TimeoutExpired:
            return None
        finally:
            process.kill()
    return None if done.returncode else done.stdout


def libfabric_latency(size):
    """Half a round trip in us, the mean; polls."""
    port = free_port()
    command = ["fi_pingpong", "-p", "tcp", "-e", "rdm", "-I", str(ECHOES), "-S", str(size)]
    out = both_ends([*command, "-B", port], [*command, "-P", port, LOOPBACK])
    # bytes, sent, acknowledged, in all, time, MB/s, us a transfer, M transfers a second
    rows = re.findall(r"^\S+ .*\s([0-9.]+)\s+[0-9.]+\s*$", out or "", re.MULTILINE)
    return float(rows[-1]) if rows else None


def ucx(test, size, options):
    """(p50 in us, messages a second) of ucx_perftest over tcp; polls."""
    port = free_port()
    out = both_ends(["ucx_perftest", "-p", port],
                    ["ucx_perftest", LOOPBACK, "-p", port, "-t", test, "-s", str(size), *options],
                    {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"})
    # iterations, 50 %, mean, overall, MB/s twice, messages a second twice
    found = re.search(r"Final:\s+\d+\s+([0-9.]+)" + r"\s+[0-9.]+" * 5 + r"\s+([0-9.]+)", out or "")
    return (float(found[1]), float(found[2])) if found else (None, None)


def ours_and_tcp(size):
    """Takes turns: name -> results of the launches."""
    results = {}
    for _ in range(LAUNCHES):
        for wait in ("poll", "sleep"):
            for name, program, how in (("longhaul", "bench_small_messages", "sr-nack"),
                                       ("tcp", "bench_small_tcp", "cubic"),
                                       ("udp", "bench_small_udp", DATAGRAM_BYTES)):
                for pattern, in_flight, messages in PATTERNS[:1 if name == "udp" else 2]:
                    results.setdefault((name, wait, pattern), []).append(
                        exchange(program, how, wait, pattern, size, in_flight, messages))
        if shutil.which("fi_pingpong"):
            results.setdefault("libfabric", []).append(libfabric_latency(size))
        if shutil.which("ucx_perftest"):
            results.setdefault("ucx_latency", []).append(ucx("tag_lat", size, ["-n", str(ECHOES)])[0])
            results.setdefault("ucx_rate", []).append(
                ucx("tag_bw", size, ["-n", str(STREAM), "-O", str(IN_FLIGHT)])[1])
    return results


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def column(results, key, of, scale=1.0):
    return median([scale * launch[of] for launch in results[key]])


def cell(value, digits):
    return f"{'-':>10}" if value is None else f"{value:10.{digits}f}"


def small_latency(label, results):
    """An exchange is two messages: half of it is one."""
    for wait, name in (("poll", ""), ("sleep", "_sleeping")):
        ours = {of: column(results, ("longhaul", wait, "echo"), of, 0.5) for of in ("p50_us", "p99_us")}
        tcp = {of: column(results, ("tcp", wait, "echo"), of, 0.5) for of in ("p50_us", "p99_us")}
        others = [median(results.get(key, [])) if wait == "poll" else None
                  for key in ("libfabric", "ucx_latency")]
        udp = column(results, ("udp", wait, "echo"), "p50_us", 0.5)
        cells = [cell(value, 1) for value in [*ours.values(), *tcp.values(), udp, *others]]
        print(f"  {label:<6}{wait:<7}" + "".join(cells) + f"{ours['p50_us'] / tcp['p50_us']:10.2f}",
              flush=True)
        for of in ("p50", "p99"):
            report(f"small_{label}_latency_{of}{name}", ours[of + "_us"], "us",
                   REFERENCE[wait], tcp[of + "_us"], LAUNCHES)


def small_rate(label, results):
    for wait, name in (("poll", ""), ("sleep", "_sleeping")):
        ours, tcp = (column(results, (who, wait, "stream"), "per_s", 1e-3) for who in ("longhaul", "tcp"))
        other = median(results.get("ucx_rate", [])) if wait == "poll" else None
        print(f"  {label:<6}{wait:<7}{cell(ours, 1)}{cell(tcp, 1)}{cell(other and other / 1e3, 1)}"
              f"{ours / tcp:10.2f}", flush=True)
        report(f"small_{label}_rate{name}", 1e3 * ours, "messages/s",
               REFERENCE[wait], 1e3 * tcp, LAUNCHES)


def measure_small():
    print(f"\n  Over loopback, two processes, on a core each; medians of {LAUNCHES} launches. poll: the\n"
          "  caller's progress; sleep: a worker, and the caller sleeps; by polling or blocking sockets.\n"
          "  udp: the same datagrams, and nothing else. libfabric: the mean\n")
    results = {label: ours_and_tcp(size) for label, size in SIZES.items()}
    print(f"  one at a time, us a message (half of an exchange)\n  {'':<13}{'p50':>10}{'p99':>10}"
          f"{'tcp p50':>10}{'tcp p99':>10}{'udp p50':>10}{'libfabric':>10}{'UCX p50':>10}"
          f"{'of tcp':>10}")
    for label, of_size in results.items():
        small_latency(label, of_size)
    print(f"\n  {IN_FLIGHT} in flight, one way, thousand messages a second\n"
          f"  {'':<13}{'longhaul':>10}{'tcp':>10}{'UCX':>10}{'of tcp':>10}")
    for label, of_size in results.items():
        small_rate(label, of_size)
    for tool, package in (("fi_pingpong", "libfabric-bin"), ("ucx_perftest", "ucx-utils")):
        if not shutil.which(tool):
            print(f"  {tool} is missing (Debian package {package})")


# ---- small messages over a long, lossy path ----------------------------------------------------------------

RTT_MS, LOSS = 25, "1e-2"


def over_path(program, how, in_flight, count, seed):
    path = ["--rate", "2Gbit", "--delay", f"{RTT_MS / 2:g}ms", "--queue", "1bdp", "--loss", LOSS,
            "--seed", str(seed)]
    ran = run_path(path, [bench(program), "10.99.0.1", "10.99.0.2", "5000", "sleep", how, "echo", "64",
                          str(in_flight), str(count)],
                   [bench(program), "--server", "10.99.0.2", "5000", "sleep", how])
    return json.loads(ran[1].splitlines()[-1]) if ran else None # the server has printed, too


def measure_path():
    launches = 1 if QUICK else 3
    print(f"\n  64 B there and back over {RTT_MS} ms and a loss of {LOSS} each way, ms; medians of {launches}"
          " launches\n"
          f"  {'in flight':<13}{'':<10}{'p50':>10}{'p99':>10}{'max':>10}{'p99/rtt':>10}")
    for in_flight, count in ((1, 200 if QUICK else 1500), (16, 2000 if QUICK else 20000)):
        found = {"bbr": [], "sr-nack": [], "auto": []}
        for launch in range(launches):
            for how, results in found.items():
                program = "bench_small_tcp" if how == "bbr" else "bench_small_messages"
                results.append(over_path(program, how, in_flight, count, 1 + launch))
        for how, results in found.items():
            ran = [result for result in results if result]
            if not ran:
                continue
            times = {of: median([1e-3 * result[of + "_us"] for result in ran])
                     for of in ("p50", "p99", "max")}
            print(f"  {in_flight:<13}{how:<10}" + "".join(cell(value, 1) for value in times.values()) +
                  f"{times['p99'] / RTT_MS:10.2f}", flush=True)
            report(f"small_64B_path_{in_flight}_{how}_p99", times["p99"], "ms", "round trip", RTT_MS,
                   len(ran))


# ---- open connections --------------------------------------------------------------------------------------


def measure_connections():
    print("\n  Connections between two processes, two workers each; one of the two: memory, threads,\n"
          "  descriptors, ms to open, use (64 B each) and close all, and CPU while idle\n", flush=True)
    subprocess.run([bench("bench_connections"), *(["--json", OUTPUT] if OUTPUT else []),
                    *(["--quick"] if QUICK else [])], check=True)


# ---- many peers --------------------------------------------------------------------------------------------


def measure_peers():
    print("\n  One engine, many peers at once, beside one of them\n", flush=True)
    subprocess.run([bench("bench_engine_peers"), "--repeats", "1" if QUICK else "3",
                    *(["--json", OUTPUT] if OUTPUT else [])], check=True)


PARTS = {"small": measure_small, "path": measure_path, "connections": measure_connections,
         "peers": measure_peers}


def main():
    parts = [word for word in sys.argv[1:] if word not in ("--quick", "--json", OUTPUT)]
    for part in parts:
        if part not in PARTS:
            print(f"engine_messages.py: no part {part!r}: use {', '.join(PARTS)}", file=sys.stderr)
            return 2
    for part in parts or PARTS:
        try:
            PARTS[part]()
        except PermissionError as error:
            print(f"  not measured: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
