#!/usr/bin/env python3
# One sender and one receiver on a veth pair between two network namespaces, MTU 1,500: the fabrics udp and
# xdp in all combinations, beside the kernel's TCP. Goodput, packets a second, CPU time a byte of each side,
# and the part of it outside the kernel.
#
# usage: BUILD=build xdp_packets.py [--quick] [--json FILE]
#   --json FILE   appends a line a result, as bench/run does
#
# "xdp" sends by AF_XDP (send=xdp), "default" is xdp without this option: where the kernel copies, as on veth,
# it sends by UDP sockets.
# "cut": the interface takes no bursts (gso_max_segs 1), so that the kernel cuts them into packets, as for a
# wire without segmentation offload; veth passes bursts whole otherwise. An interface with an XDP program
# takes none in any case. Needs root; without, it reports that and ends.
#
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
LONGHAUL = os.path.join(BUILD, "longhaul")
QUICK = "--quick" in sys.argv
OUTPUT = sys.argv[sys.argv.index("--json") + 1] if "--json" in sys.argv else None
LAUNCHES = 2 if QUICK else 7
MIB = 1 << 20
SIZE, COUNT, WARM = 16 * MIB, 32 if QUICK else 64, 2
LEFT, RIGHT = "10.98.0.1", "10.98.0.2"
PAYLOAD = {"longhaul": 1408, "tcp": 1448} # of a packet
NAME = f"lhx{os.getpid()}"

# Sender, receiver, whether bursts are cut.
ROWS = [("udp", "udp", False), ("udp", "udp", True), ("xdp", "udp", False), ("udp", "xdp", False),
        ("xdp", "xdp", False), ("default", "default", False), ("tcp", "tcp", False), ("tcp", "tcp", True)]


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, stderr=subprocess.DEVNULL)


def inside(side, command):
    cpus = sorted(os.sched_getaffinity(0))
    cpu = cpus[0] if side == "left" else cpus[-1]
    return ["ip", "netns", "exec", f"{NAME}{side}", "taskset", "-c", str(cpu), *command]


def make_network(cut):
    remove_network()
    for side in ("left", "right"):
        ip("netns", "add", NAME + side)
    ip("link", "add", "name", "x0", "netns", NAME + "left", "type", "veth",
       "peer", "name", "x1", "netns", NAME + "right")
    for side, interface, address in (("left", "x0", LEFT), ("right", "x1", RIGHT)):
        ip("-n", NAME + side, "addr", "add", address + "/24", "dev", interface)
        if cut:
            ip("-n", NAME + side, "link", "set", interface, "gso_max_segs", "1")
        ip("-n", NAME + side, "link", "set", interface, "up")


def remove_network():
    for side in ("left", "right"):
        subprocess.run(["ip", "netns", "delete", NAME + side], stderr=subprocess.DEVNULL, check=False)


def seconds(process):
    """CPU time, and user time of it, of a process that has ended, or ends now."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_utime


def device(fabric, side):
    interface, address = ("x0", LEFT) if side == "left" else ("x1", RIGHT)
    return {"udp": f"udp:{address}", "xdp": f"xdp:{interface}/{address}/send=xdp",
            "default": f"xdp:{interface}/{address}"}[fabric]


def launch_longhaul(sender, receiver):
    server = subprocess.Popen(inside("right", [LONGHAUL, "perf", "--insecure", "--server", "--once",
                                               "--listen", RIGHT + ":0",
                                               "--device", device(receiver, "right")]),
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = re.search(r"listening on .*:(\d+)", server.stdout.readline()).group(1)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        client = subprocess.Popen(
            inside("left", [LONGHAUL, "perf", "--insecure", f"{RIGHT}:{port}",
                            "--device", device(sender, "left"), "--size", str(SIZE),
                            "--iterations", str(COUNT), "--warmup", str(WARM),
                            "--path-file", "none", "--json", file.name]),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        errors = client.stderr.read()
        times = [seconds(client)]
        if client.returncode:
            server.kill()
            sys.exit(f"bench: {sender} to {receiver}: {errors}")
        server.stdout.read()
        times.append(seconds(server))
        result = json.load(open(file.name, encoding="utf-8"))
    sent, repeated = (result["local"][name] for name in ("tx_packets", "tx_retransmitted_packets"))
    return result["goodput_bps"], times, repeated / max(1, sent)


def tcp_receiver(address):
    """Takes messages, answers each with a byte; prints its CPU time when the sender is done."""
    with socket.create_server((address, 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        with listener.accept()[0] as peer:
            buffer = memoryview(bytearray(MIB))
            before, left = os.times(), SIZE
            while taken := peer.recv_into(buffer):
                left -= taken
                if left <= 0:
                    left += SIZE
                    peer.sendall(b"x")
    print_times(before, [])


def tcp_sender(address, port):
    message = bytes(SIZE)
    with socket.create_connection((address, int(port))) as peer:
        before, moments = os.times(), [time.monotonic()]
        for _ in range(WARM + COUNT):
            peer.sendall(message)
            peer.recv(1)
            moments.append(time.monotonic())
    print_times(before, [later - earlier for earlier, later in zip(moments[WARM:], moments[WARM + 1:])])


def print_times(before, messages_s):
    after = os.times()
    user, system = after.user - before.user, after.system - before.system
    print(json.dumps({"cpu": [user + system, user], "messages_s": messages_s}), flush=True)


def launch_tcp():
    """Both ends are this script: its own part of the time is small, as it moves a MiB a call."""
    def start(side, *arguments):
        command = [sys.executable, __file__, *(["--quick"] if QUICK else []), *arguments]
        return subprocess.Popen(inside(side, command), stdout=subprocess.PIPE, text=True)

    receiver = start("right", "--tcp-receiver", RIGHT)
    port = receiver.stdout.readline().strip()
    sender = start("left", "--tcp-sender", RIGHT, port)
    sent, taken = json.loads(sender.stdout.read()), json.loads(receiver.stdout.read())
    sender.wait()
    receiver.wait()
    return 8 * SIZE * COUNT / sum(sent["messages_s"]), [sent["cpu"], taken["cpu"]], None


def measure(sender, receiver, cut):
    make_network(cut)
    return launch_tcp() if sender == "tcp" else launch_longhaul(sender, receiver)


def span(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} … {max(values):.{digits}f})"


def print_row(row, launches, reference):
    sender, receiver, cut = row
    name = f"{sender} to {receiver}" + (", cut" if cut else "")
    payload = PAYLOAD["tcp" if sender == "tcp" else "longhaul"]
    goodput = [bps / 1e9 for bps, _, _ in launches]
    packets = [bps / 8 / payload / 1e6 for bps, _, _ in launches]
    each = [[1e9 * times[side][part] / ((WARM + COUNT) * SIZE) for _, times, _ in launches]
            for side in (0, 1) for part in (0, 1)]
    repeated = "-" if sender == "tcp" else f"{100 * statistics.median(share for _, _, share in launches):.2f}"
    print(f"  {name:<17}{span(goodput, 2):>22}{span(packets, 3):>23}{span(each[0], 2):>22}"
          f"{statistics.median(each[1]):7.2f}{span(each[2], 2):>22}{statistics.median(each[3]):7.2f}"
          f"{repeated:>9}", flush=True)
    label = "xdp_" + name.replace(", ", "_").replace(" ", "_")
    report(label + "_goodput", statistics.median(goodput), "Gbit/s", reference, len(launches))
    report(label + "_packets", statistics.median(packets), "million/s", None, len(launches))
    for side, values in zip(("sender_cpu", "sender_user", "receiver_cpu", "receiver_user"), each):
        report(f"{label}_{side}", statistics.median(values), "ns a byte", None, len(launches))
    return statistics.median(goodput)


def report(name, value, unit, reference, runs):
    if not OUTPUT:
        return
    line = {"name": name, "value": value, "unit": unit, "reference": "udp to udp" if reference else None,
            "reference_value": reference, "ratio": value / reference if reference else None, "runs": runs}
    with open(OUTPUT, "a", encoding="ascii") as file:
        file.write(json.dumps(line) + "\n")


def main():
    if os.geteuid() != 0:
        print("  not measured: AF_XDP and network namespaces need root")
        return
    launches = {row: [] for row in ROWS}
    try:
        for _ in range(LAUNCHES): # all take turns, so that a slow spell of the machine hits all alike
            for row in ROWS:
                launches[row].append(measure(*row))
    finally:
        remove_network()
    print(f"\n  {COUNT} messages of {SIZE // MIB} MiB, one after the other, {LAUNCHES} launches; "
          "median (lowest … highest)\n"
          "  sender, receiver        goodput, Gbit/s      packets, million/s   sender CPU, ns/byte"
          "   user receiver CPU, ns/byte   user again, %")
    reference = None
    for row in ROWS:
        median = print_row(row, launches[row], reference)
        reference = reference or median


if __name__ == "__main__":
    if "--tcp-receiver" in sys.argv:
        tcp_receiver(sys.argv[-1])
    elif "--tcp-sender" in sys.argv:
        tcp_sender(*sys.argv[-2:])
    else:
        main()
