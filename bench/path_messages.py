#!/usr/bin/env python3
# Messages and flows through longhaul-path: a bottleneck that nobody has described to Longhaul, beside the
# kernel's TCP.
#
# usage: BUILD=build path_messages.py [--quick] [--json FILE] [PART ...]
#   PART: 1 to 8, a row of ROWS; first, the first message of a connection; fairness, flows at once; short,
#   short, shaped, policed, busy and lossy paths with an MTU of 1,500;
#   hybrid-1MiB, hybrid-16MiB and hybrid-128MiB, that scheme with the rate known, over six launches. All by
#   default.
#   --json FILE   appends a line a result, as bench/run does
#
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import accumulate

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
LONGHAUL = os.path.join(BUILD, "longhaul")
QUICK = "--quick" in sys.argv
OUTPUT = sys.argv[sys.argv.index("--json") + 1] if "--json" in sys.argv else None
MIB = 1 << 20


def report(name, value, unit, reference, reference_value, runs):
    if OUTPUT:
        line = {"name": name, "value": value, "unit": unit, "reference": reference,
                "reference_value": reference_value,
                "ratio": value / reference_value if reference_value else None, "runs": runs}
        with open(OUTPUT, "a", encoding="ascii") as file:
            file.write(json.dumps(line) + "\n")


def span(values):
    return f"{statistics.median(values):6.1f} ({min(values):.1f} … {max(values):.1f})"


# Rate in bit/s, round trip in ms, queue in BDP, loss at random.
ROWS = [(2e9, 25, queue, loss) for queue in ("1", "0.2") for loss in ("0", "1e-3", "1e-2")] + \
       [(1e8, 100, "1", loss) for loss in ("0", "1e-3")]
SENDERS = ("longhaul", "sr-nack", "known", "bbr", "cubic")
REMEMBERED = "remembered" # Longhaul that has used the path before
CAP_S = 60
WARM = 2 # messages that are not counted
# Bytes of IP packets for a byte of data: RoCE write with immediate over IPv4 and UDP, 4 KiB; TCP with
# timestamps, 4200.
LONGHAUL_WIRE = 4160 / 4096
WIRE = {**dict.fromkeys(("longhaul", "sr-nack", "known", REMEMBERED, "hybrid", "ec:mds"), LONGHAUL_WIRE),
        "bbr": 4200 / 4148, "cubic": 4200 / 4148}


def run_path(path, left, right):
    """A fresh path and a command at each end. The path's statistics and what the left command printed; None:
    it failed or took too long."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = ["timeout", "--signal=TERM", str(CAP_S + 5), os.path.join(BUILD, "bench", "longhaul-path"),
                   *path, "--json", file.name, "--", "timeout", str(CAP_S), *left, ":::", *right]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode == 77:
            raise PermissionError(done.stderr.strip())
        if done.returncode:
            reason = "more than 60 s" if done.returncode == 124 else done.stderr.strip()
            print(f"    {' '.join(left)}: {reason}")
            return None
        return json.load(open(file.name, encoding="ascii")), done.stdout


def run_tbf(limit, left, right):
    """As run_path, through the kernel's token bucket between two namespaces: it has no statistics."""
    names = [f"lh-tbf-{os.getpid()}-{end}" for end in ("left", "right")]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    setup = [f"ip netns add {name}" for name in names]
    setup += [f"ip -n {names[0]} link add veth0 type veth peer name veth0 netns {names[1]}"]
    for end, name in enumerate(names, 1):
        setup += [f"ip -n {name} addr add 10.99.0.{end}/24 dev veth0", f"ip -n {name} link set veth0 up",
                  f"ip -n {name} link set lo up"]
    setup += [f"ip netns exec {names[0]} tc qdisc add dev veth0 root tbf {limit}"]
    try:
        for command in setup:
            if subprocess.run(command.split(), check=False, **quiet).returncode:
                raise PermissionError(f"'{command}' failed")
        server = subprocess.Popen(["ip", "netns", "exec", names[1], *right], **quiet)
        time.sleep(0.5)
        done = subprocess.run(["ip", "netns", "exec", names[0], "timeout", str(CAP_S), *left],
                              capture_output=True, text=True, check=False)
        server.kill()
        server.wait()
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, **quiet)
    none = {"queueing_delay_p99_s": float("nan")}
    return ({"left_to_right": none}, done.stdout) if done.returncode == 0 else None


def run_through(path, left, right):
    return run_tbf(path, left, right) if isinstance(path, str) else run_path(path, left, right)


def send_longhaul(path, size, count, warm, options):
    """A result in ms and shares; None where there is none. path: of longhaul-path, or a text of tbf."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        left = [LONGHAUL, "perf", "--insecure", "10.99.0.2", "--size", str(size), "--iterations", str(count),
                "--warmup", str(warm), "--json", file.name, *options]
        ran = run_through(path, left, [LONGHAUL, "perf", "--insecure", "--server", "--once"])
        if not ran:
            return None
        result = json.load(open(file.name, encoding="utf-8"))
    return {"path": ran[0], "first": 1e3 * result["first_s"], "mean": 1e3 * result["completion_mean_s"],
            "p50": 1e3 * result["completion_p50_s"], "p99": 1e3 * result["completion_p99_s"], "count": count,
            "again": result["local"]["tx_retransmitted_bytes"] / max(1, result["local"]["tx_bytes"])}


def send_tcp(path, size, count, warm, congestion):
    program = os.path.join(BUILD, "bench", "bench_tcp_messages")
    left = [program, "10.99.0.2", "5000", congestion, str(size), str(warm + count), str(CAP_S - 10)]
    ran = run_through(path, left, [program, "--server", "10.99.0.2", "5000"])
    if not ran:
        return None
    result = json.loads(ran[1])
    times = [1e3 * s for s in result["completion_s"]]
    warmed = sorted(times[warm:])
    if not warmed:
        return None
    return {"path": ran[0], "first": times[0], "mean": statistics.fmean(warmed),
            "p50": statistics.median(warmed),
            "p99": warmed[max(0, -(-99 * len(warmed) // 100) - 1)], "count": len(warmed),
            "again": result["retransmitted_bytes"] / max(1, result["sent_bytes"])}


def measure(sender, row, size, count, warm, seed=1, path_file="none"):
    rate, rtt, queue, loss = row
    path = ["--rate", f"{rate / 1e6:g}Mbit", "--delay", f"{rtt / 2:g}ms", "--queue", f"{queue}bdp",
            "--loss", loss, "--seed", str(seed)]
    if sender in ("bbr", "cubic"):
        return send_tcp(path, size, count, warm, sender)
    known = ["--rate", f"{rate / 1e6:g}Mbit"]
    options = {"known": known, "sr-nack": ["--reliability", "sr-nack"],
               **{scheme: [*known, "--reliability", scheme] for scheme in ("hybrid", "ec:mds")}}
    return send_longhaul(path, size, count, warm, ["--path-file", path_file, *options.get(sender, [])])


def ideal_ms(sender, row, size):
    return 1e3 * size * 8 * WIRE[sender] / row[0] + row[1]


def print_line(name, row, size, sender, result):
    there = result["path"]["left_to_right"]
    ideal = ideal_ms(sender, row, size)
    dropped = there["queue_dropped_packets"] / max(1, there["packets"])
    print(f"  {name:<26}{size // MIB:>4}MiB {sender:<9}{result['count']:>4} {result['first']:9.1f} "
          f"{ideal:8.1f} "
          f"{result['mean']:8.1f} {result['p50']:8.1f} {result['p99']:8.1f} "
          f"{size * 8e-3 / result['mean']:8.1f} "
          f"{100 * result['again']:7.2f} {100 * dropped:7.2f} {1e3 * there['queueing_delay_p99_s']:8.2f} "
          f"{1e3 * there['late_p99_s']:7.2f}", flush=True)
    label = f"path_{name}_{size // MIB}MiB_{sender}".replace(" ", "_")
    for what in ("first", "mean", "p50", "p99"):
        report(f"{label}_{what}", result[what], "ms", "ideal", ideal, result["count"])
    report(label + "_retransmitted", result["again"], "of bytes sent", "loss of the path", float(row[3]),
           result["count"])
    report(label + "_dropped", dropped, "of packets", None, None, result["count"])
    report(label + "_queueing_p99", 1e3 * there["queueing_delay_p99_s"], "ms", "longest queue",
           1e3 * there["queue_bytes"] * 8 / row[0], result["count"])


def print_head(first, count):
    print("\n  Messages one after the other (ms); retransmitted and dropped by the path's queue, in %;\n"
          "  p99 of the delay in the queue; late99: what this machine has added. 'known' has --rate"
          " of the path,\n  'sr-nack' has --reliability sr-nack\n")
    print(f"  {'path: rate, rtt, queue, loss':<26} {'size':>5} {'sender':<9}{count:>4} {first:>9} "
          f"{'ideal':>8} {'mean':>8} "
          f"{'p50':>8} {'p99':>8} {'Mbit/s':>8} {'retr %':>7} {'drop %':>7} {'queue99':>8} {'late99':>7}")


def name_of(row):
    return f"{row[0] / 1e6:g}M {row[1]}ms {row[2]}bdp {row[3]}"


def measure_row(row):
    sizes = [(MIB, 20 if QUICK else 200), (16 * MIB, 6 if QUICK else 200), (128 * MIB, 2 if QUICK else 6)]
    for size, wanted in sizes:
        for sender in SENDERS:
            # What takes twice the ideal, warm-up included, ends within the time.
            fits = int(CAP_S * 1e3 / 2 / ideal_ms(sender, row, size)) - WARM
            warm = WARM if fits > 2 else 1
            result = measure(sender, row, size, max(2, min(wanted, fits)), warm)
            if result:
                print_line(name_of(row), row, size, sender, result)


# What hybrid is measured by, at a loss of 1e-2: bytes, messages of a launch, senders.
HYBRID = {"hybrid-1MiB": (MIB, 50, ("hybrid", "ec:mds")), "hybrid-16MiB": (16 * MIB, 100, ("hybrid",)),
          "hybrid-128MiB": (128 * MIB, 4, ("hybrid", "bbr"))}
HYBRID_ROW = ROWS[2]


def measure_hybrid(part):
    """The rate is known, and of 8 MiB the loss. Launches take turns."""
    size, count, senders = HYBRID[part]
    launches, warm = 2 if QUICK else 6, max(1, 8 * MIB // size)
    results = {sender: [] for sender in senders}
    for launch in range(launches):
        for sender, found in results.items():
            result = measure(sender, HYBRID_ROW, size, count, warm, 1 + launch)
            if result:
                found.append(result)
    for sender, found in results.items():
        if not found:
            continue
        ideal = ideal_ms(sender, HYBRID_ROW, size)
        repeats = (ideal - HYBRID_ROW[1]) / (1 - float(HYBRID_ROW[3])) + HYBRID_ROW[1]
        print(f"  {name_of(HYBRID_ROW):<26}{size // MIB:>4}MiB {sender:<9}{len(found)} launches of {count}: "
              f"ideal {ideal:.1f}, with retransmissions {repeats:.1f}", flush=True)
        for what in ("mean", "p50", "p99"):
            print(f"    {what:<6}{span([result[what] for result in found])}", flush=True)
            report(f"path_{part}_{sender}_{what}", statistics.median(result[what] for result in found), "ms",
                   "ideal with retransmissions",
                   repeats, len(found))


def measure_first():
    """The first message of a connection, each of one of its own."""
    launches = 2 if QUICK else 10
    print(f"\n  16 MiB, the first message of a connection: of {launches} connections\n")
    for row in ROWS[:1] + ROWS[1:2]:
        results = {sender: [] for sender in (*SENDERS, REMEMBERED)}
        with tempfile.TemporaryDirectory() as folder:
            path_file = os.path.join(folder, "paths")
            measure(REMEMBERED, row, 16 * MIB, 8, 0, 1, path_file)
            for launch in range(launches):
                for sender, found in results.items():
                    result = measure(sender, row, 16 * MIB, 1, 0, 1 + launch,
                                     path_file if sender == REMEMBERED else "none")
                    if result:
                        found.append(result)
        for sender, found in results.items():
            if not found:
                continue
            there = [result["path"]["left_to_right"] for result in found]
            firsts = [result["first"] for result in found]
            ideal = ideal_ms(sender, row, 16 * MIB)
            dropped = statistics.median([one["queue_dropped_packets"] / max(1, one["packets"])
                                         for one in there])
            print(f"  {name_of(row):<26} {sender:<10} ideal {ideal:6.1f} ms, first {span(firsts)}: ideal + "
                  f"{(statistics.median(firsts) - ideal) / row[1]:4.1f} round trips; "
                  f"{100 * dropped:5.2f} % lost to the queue",
                  flush=True)
            label = f"path_{name_of(row)}_first_16MiB_{sender}".replace(" ", "_")
            report(label, statistics.median(firsts), "ms", "ideal", ideal, len(found))
            report(label + "_dropped", dropped, "of packets", None, None, len(found))


# Flows at once: rate in Mbit/s, round trip in ms, that of the far ones, and senders.
FLOWS = {"2 flows": (500, 20, 20, ["longhaul"] * 2), "4 flows": (500, 20, 20, ["longhaul"] * 4),
         "16 flows": (500, 20, 20, ["longhaul"] * 16),
         "4 flows, two far": (500, 20, 60, ["longhaul"] * 2 + ["far longhaul"] * 2),
         "4 flows of bbr": (500, 20, 20, ["bbr"] * 4), "4 flows of cubic": (500, 20, 20, ["cubic"] * 4),
         "beside cubic": (500, 20, 20, ["longhaul", "cubic"]),
         "beside bbr": (500, 20, 20, ["longhaul", "bbr"])}
SHORT_FLOWS = {f"{what}, {rtt} ms": (200, rtt, rtt, senders) for rtt in (0.2, 1, 5)
               for what, senders in (("2 flows", ["longhaul"] * 2), ("16 flows", ["longhaul"] * 16),
                                     ("beside cubic", ["longhaul", "cubic"]),
                                     ("beside bbr", ["longhaul", "bbr"]))}
STARTING_S = 6 # at most: on few processors the processes take turns until their memory is ready
STARTED = 1 << 18 # bytes: more than connections exchange before their data
SETTLE = 200 # round trips
SETTLED_S = 4 if QUICK else 12 # measured after that


def jain(shares):
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0


def flow_commands(senders, seconds):
    """Shell commands for both ends, and the path's name of each flow: the last byte of its address."""
    tcp = os.path.join(BUILD, "bench", "bench_tcp_messages")
    left, right, names = [], [f"{tcp} --server 10.99.0.2 5000"], []
    for number, sender in enumerate(senders):
        host = (131 if sender.startswith("far") else 11) + number
        names.append(str(host))
        if sender.endswith("longhaul"):
            right.append(f"{LONGHAUL} perf --insecure --server --listen :{6000 + number} --once")
            left.append(f"{LONGHAUL} perf --insecure 10.99.0.2:{6000 + number} --device udp:10.99.0.{host} "
                        "--size 4MiB --in-flight 4 --iterations 100000")
        else:
            left.append(f"{tcp} 10.99.0.2 5000 {sender} {1 << 40} 1 {seconds} 10.99.0.{host}")
    quiet = ">/dev/null 2>&1 & "
    return ("sleep 1; " + "".join(f"timeout {seconds} {command} {quiet}" for command in left) + "wait",
            "".join(f"{command} {quiet}" for command in right) + "wait", names)


def measure_together(name, rate, rtt, far, senders, queue="1bdp"):
    seconds = 1 + STARTING_S + SETTLE * max(rtt, far) / 1e3 + SETTLED_S
    left, right, names = flow_commands(senders, seconds)
    ran = run_path(["--rate", f"{rate}Mbit", "--delay", f"{rtt / 2}ms", "--far", f"{(far - rtt) / 2}ms",
                    "--queue", queue, "--flows", "16"],
                   ["sh", "-c", left], ["sh", "-c", right])
    if not ran:
        return
    there = ran[0]["left_to_right"]
    bytes_of = [there["flows"].get(host, [0]) for host in names]
    if not any(any(b) for b in bytes_of):
        print(f"  {name:<20}nothing arrived")
        return
    first = next(i for i in range(len(bytes_of[0])) if any(i < len(b) and b[i] for b in bytes_of))
    end = first + int((seconds - 1) / there["interval_s"])
    # A flow that never starts is no reason not to measure the others.
    latest = first + round(STARTING_S / there["interval_s"])
    start = max(next((i for i, n in enumerate(accumulate(b[:latest])) if n > STARTED), latest)
                for b in bytes_of)
    settled = start + round(SETTLE * max(rtt, far) / 1e3 / there["interval_s"])
    window = max(1, round(50 * max(rtt, far) / 1e3 / there["interval_s"]))
    early = next((i for i in range(start, end - window)
                  if jain([sum(b[i:i + window]) for b in bytes_of]) >= 0.95), None)
    rest = [sum(b[settled:end]) for b in bytes_of]
    goodput = [8e-6 * total / ((end - settled) * there["interval_s"]) for total in rest]
    fair = "never"
    if early is not None:
        fair = f"{(early - start) * there['interval_s'] * 1e3 / max(rtt, far):.0f} rtt"
    print(f"  {name:<20}{jain(rest):6.3f} {fair:>9} "
          f"{100 * there['queue_dropped_packets'] / there['packets']:7.2f} "
          f"{1e3 * there['queueing_delay_p99_s']:8.2f} {1e3 * there['late_p99_s']:7.2f}  " +
          " ".join(f"{value:.0f}" for value in goodput), flush=True)
    label = "path_fairness_" + name.replace(",", "").replace(" ", "_")
    report(label + "_jain", jain(rest), "Jain's index", None, None, 1)
    report(label + "_first", goodput[0], "Mbit/s", "rate of the path", rate, 1)


def measure_fairness():
    print("\n  Flows at once through 500 Mbit/s and 20 ms (far: 60 ms), queue 1 BDP. Jain's index\n"
          f"  {SETTLE} round trips after the last has started; when 50 round trips first had 0.95; what\n"
          "  each flow got, in Mbit/s of packets\n")
    print(f"  {'':<20}{'Jain':>6} {'0.95 at':>9} {'drop %':>7} {'queue99':>8} {'late99':>7}  flows")
    for name, setting in FLOWS.items():
        measure_together(name, *setting)
    print("\n  The same through 200 Mbit/s on short paths, queue 5 ms\n")
    for name, (rate, rtt, far, senders) in SHORT_FLOWS.items():
        measure_together(name, rate, rtt, far, senders, str(rate * 625))


# Short, shaped, policed and busy paths: round trip in ms, rate in bit/s, options of the bottleneck; how many
# processes only use processors.
SHORT_RTTS = (0.2, 5) if QUICK else (0.02, 0.2, 1, 5, 25)
SHORT_RATES = (2e8, 1e9) if QUICK else (1e7, 2e8, 1e9, 5e9)
TBF = ("rate 200mbit burst 64kb latency 50ms", "rate 1gbit burst 64kb latency 10ms")
LIMITS = {"queue 5 ms": lambda rate, rtt: ["--queue", str(max(int(rate * max(rtt, 5) / 8e3), 15000))],
          "queue 0.1 BDP": lambda rate, rtt: ["--queue", str(max(int(rate * 0.1 * rtt / 8e3), 15000))],
          "queue 10 BDP": lambda rate, rtt: ["--queue", str(int(rate * max(10 * rtt, 5) / 8e3))],
          "policer 64 KiB": lambda rate, rtt: ["--bucket", "64KiB", "--queue", "0"],
          "shaper 64 KiB": lambda rate, rtt: ["--bucket", "64KiB", "--queue", str(int(rate / 160))]}
SHORT_SIZES = ((16 * MIB, 4),) if QUICK else ((1 << 16, 200), (MIB, 50), (16 * MIB, 20))
LOSSY = ((1e8, 50), (1e9, 200)) # rate, round trip
BUSY = 4


def measure_short_path(label, path, size, count):
    """Longhaul and kernel BBR in turns."""
    if size < 16 * MIB:
        label += f" {size >> 10}KiB"
    found = {"longhaul": send_longhaul(path, size, count, 1, ["--path-file", "none"]),
             "bbr": send_tcp(path, size, count, 1, "bbr")}
    for sender, result in found.items():
        if not result:
            print(f"  {label:<34} {sender:<9} none in {CAP_S} s", flush=True)
            continue
        there = result["path"]["left_to_right"]
        beside = found["bbr"]
        ratio = f"{beside['p50'] / result['p50']:6.2f}" if beside and sender != "bbr" else f"{'':6}"
        print(f"  {label:<34} {sender:<9}{result['p50']:9.1f} {result['p99']:9.1f} {ratio} "
              f"{100 * result['again']:7.2f} {1e3 * there['queueing_delay_p99_s']:8.2f}", flush=True)
        name = f"path_short_{label}_{sender}".replace(" ", "_")
        report(name + "_p50", result["p50"], "ms", "kernel BBR", beside["p50"] if beside else None, count)
        report(name + "_retransmitted", result["again"], "of bytes sent", None, None, count)


def measure_short():
    print(f"\n  Messages in ms, MTU 1,500; goodput beside kernel BBR's; retransmitted in %; p99 of the delay"
          f" in\n  the queue in ms\n\n  {'path: rate, rtt, bottleneck':<34} {'sender':<9}{'p50':>9} "
          f"{'p99':>9} "
          f"{'ratio':>6} {'retr %':>7} {'queue99':>8}")
    for rate in SHORT_RATES:
        for rtt in SHORT_RTTS:
            for name, limit in LIMITS.items():
                path = ["--rate", f"{rate / 1e6:g}Mbit", "--delay", f"{rtt / 2:g}ms", "--mtu", "1500",
                        *limit(rate, rtt)]
                if name == "queue 10 BDP" and 10 * rtt <= 5: # the same as "queue 5 ms"
                    continue
                for size, count in SHORT_SIZES:
                    if rate >= 1e8 or size <= MIB:
                        measure_short_path(f"{rate / 1e6:g}M {rtt}ms {name}", path, size, count)
    for limit in TBF:
        measure_short_path(f"tbf {limit.split(' latency')[0]}", limit, 16 * MIB, 4 if QUICK else 20)
    path = ["--rate", "200Mbit", "--delay", "0.5ms", "--mtu", "1500", "--queue", "1250000"]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
    try:
        measure_short_path(f"200M 1ms, {BUSY} busy processes", path, 16 * MIB, 4 if QUICK else 20)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    for rate, rtt in LOSSY:
        for loss in (0.1, 0.2, 0.3):
            path = ["--rate", f"{rate / 1e6:g}Mbit", "--delay", f"{rtt / 2}ms", "--mtu", "1500", "--loss",
                    f"{loss}/{loss}"]
            size = 8 * MIB if rate < 1e9 else 64 * MIB
            measure_short_path(f"{rate / 1e6:g}M {rtt}ms loss {loss}", path, size, 2)


def main():
    parts = [word for word in sys.argv[1:] if word not in ("--quick", "--json", OUTPUT)]
    known = [str(1 + number) for number in range(len(ROWS))] + ["first", "fairness", "short", *HYBRID]
    for part in parts:
        if part not in known:
            print(f"path_messages.py: no part {part!r}: use {', '.join(known)}", file=sys.stderr)
            return 2
    rows = [ROWS[int(part) - 1] for part in parts or known if part.isdigit()]
    try:
        if rows:
            print_head("first", "n")
        for row in rows:
            measure_row(row)
        if not parts or "first" in parts:
            measure_first()
        if not parts or "fairness" in parts:
            measure_fairness()
        if not parts or "short" in parts:
            measure_short()
        for part in HYBRID:
            if not parts or part in parts:
                measure_hybrid(part)
    except PermissionError as error:
        print(f"  not measured: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
