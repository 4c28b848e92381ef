#!/usr/bin/env python3
# AllReduce of floats by Longhaul, Open MPI and Gloo, the latter over the kernel's TCP. Each measures alike: a
# barrier before each operation, the mean of the ranks' times. And a file to many ranks.
#
# usage: BUILD=build collectives.py [--quick] [--json FILE] [PART ...]
#   PART: loopback, 64 MiB and 4 ranks on this machine; sites, one rank at each end of longhaul-path with
#   25 ms, 2 Gbit/s and a loss of 1e-3, of which sites-bound is 1, 16 and 64 MiB beside the bound, sites-bbr
#   and sites-cubic 16 MiB beside TCP with either; distribute, 256 MiB to 8 ranks in three sites, joined by
#   three paths of 25 ms and 200 Mbit/s, by each schedule and by one send after another, without loss and with
#   1e-2; distribute-0 and distribute-1e-2 one of them; order, 16 MiB over four ranks, a path of 10 ms and
#   200 Mbit/s between each two but for one of 50 Mbit/s, without and with --measure;
#   torch, as sites, through torch.distributed: all-reduces of 1, 16 and 64 MiB, and backward passes under DDP
#   with 16 MiB of gradients, beside Gloo over BBR, by the Python of the tests (build/python-venv; PYTHON:
#   another one); site, four ranks at 1 Gbit/s on a bridge, likewise; multicast, 128 hosts in the simulator.
#   Default: loopback, sites, distribute.
#   --json FILE   appends a line a result, as bench/run does
#
# SPDX-License-Identifier: BSD-3-Clause
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from path_messages import BUILD, LONGHAUL, MIB, QUICK, report

MPI = os.path.join(BUILD, "bench", "bench_allreduce_mpi")
GLOO = os.path.join(BUILD, "bench", "bench_allreduce_gloo")
PATH = os.path.join(BUILD, "bench", "longhaul-path")
LAUNCHES = 1 if QUICK else 3
PATIENCE_S = 240
NAME = f"lh{os.getpid()}"
LEFT, RIGHT = "10.99.0.1", "10.99.0.2"
MPIRUN = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl",
          "tcp,self", "--mca", "btl_tcp_progress_thread", "0"]


def result_of(command, environment=None):
    """What rank 0 printed, as JSON; None: it failed or took too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                              env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        print(f"    {' '.join(command[:3])}: more than {PATIENCE_S} s")
        return None
    begin = min((done.stdout.find(c) for c in "[{" if c in done.stdout), default=-1)
    if done.returncode or begin < 0:
        print(f"    {' '.join(command[:3])}: {(done.stderr or done.stdout).strip()[-300:]}")
        return None
    value = json.loads(done.stdout[begin:])
    value = value[0] if isinstance(value, list) else value
    if value["wrong"]:
        sys.exit(f"bench: {' '.join(command)}: a wrong result")
    return value


def collective(size, iterations, warmup, options=()):
    return [LONGHAUL, "collective", "allreduce", "--insecure", "-b", str(size), "--iterations",
            str(iterations), "--warmup", str(warmup), "--json", "-", *options]


def rows(names, measure, name, launches):
    """All take their turn in each launch. Prints mean and p99, and reports each beside the first."""
    found = {each: [] for each in names}
    for _ in range(launches):
        for each in names:
            value = measure(each)
            if value:
                found[each].append((1e3 * value["time_mean_s"], 1e3 * value["time_p99_s"]))
    print("                              mean ms   p99 ms   of fresh launches: median")
    for each, values in found.items():
        if not values:
            print(f"    {each:24}  not measured")
            continue
        mean, p99 = (statistics.median(column) for column in zip(*values))
        print(f"    {each:24} {mean:9.1f} {p99:8.1f}   {len(values)}")
        ours = found[names[0]]
        if each != names[0] and ours:
            for i, figure in enumerate(("mean", "p99")):
                report(f"allreduce {name} {figure}", statistics.median(v[i] for v in ours), "ms", each,
                       (mean, p99)[i], len(values))


# ---- loopback ----------------------------------------------------------------------------------------------


def loopback():
    size, iterations, warmup = 64 * MIB, 5 if QUICK else 10, 2
    print(f"\n  loopback: {size // MIB} MiB, 4 ranks", flush=True)
    numbers = [str(size), str(iterations), str(warmup)]

    def measure(name):
        if name == "longhaul":
            return result_of([LONGHAUL, "run", "-n", "4", "--", *collective(size, iterations, warmup)])
        if name == "gloo":
            with tempfile.TemporaryDirectory() as store:
                return result_of([LONGHAUL, "run", "-n", "4", "--", GLOO, "127.0.0.1", store, *numbers])
        return result_of([*MPIRUN, "--mca", "btl_tcp_if_include", "lo", "-n", "4", MPI, *numbers])

    rows(["longhaul", *references()], measure, "64MiB loopback", LAUNCHES)


def references():
    names = []
    for name, program, tool in (("open mpi", MPI, "mpirun.openmpi"), ("gloo", GLOO, PATH)):
        if os.path.exists(program) and shutil.which(tool):
            names.append(name)
        else:
            print(f"    {name}: not installed (packages libopenmpi-dev openmpi-bin libgloo-dev)")
    return names


# ---- two sites ---------------------------------------------------------------------------------------------


# The path has the first processor to itself, as long as packets are due (cli/path/path_line.h).
PROCESSORS = ",".join(map(str, sorted(os.sched_getaffinity(0))[1:]))
PINNED = ["taskset", "-c", PROCESSORS] if PROCESSORS else []


def inside(side, command):
    return ["ip", "netns", "exec", f"{NAME}-{side}", *PINNED, *command]


def control(controller):
    """TCP between the two has that controller, by the route: only so may a namespace have one that is not the
    system's."""
    for side, address in (("left", LEFT), ("right", RIGHT)):
        subprocess.run(inside(side, ["ip", "route", "replace", "10.99.0.0/24", "dev", "path0", "src", address,
                                     "congctl", controller]), check=True)


def both(left, right):
    """One rank a side, started by hand. What the left one printed."""
    variables = {"WORLD_SIZE": "2", "MASTER_ADDR": LEFT, "MASTER_PORT": "29511",
                 "GLOO_SOCKET_IFNAME": "path0"}
    with subprocess.Popen(inside("right", right), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env={**os.environ, **variables, "RANK": "1", "LONGHAUL_SITE": "right"}) as other:
        value = result_of(inside("left", left), {**variables, "RANK": "0", "LONGHAUL_SITE": "left"})
        if not value:
            other.kill()
    return value


def mpi_between(numbers):
    """mpirun on the left starts the right rank by an agent in place of ssh."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as agent:
        start = " ".join(inside("right", ["sh", "-c"]))
        agent.write(f'#!/bin/sh\nshift\nexec {start} "$*"\n')
    os.chmod(agent.name, 0o700)
    try:
        between = ["--mca", "plm_rsh_agent", agent.name, "--mca", "btl_tcp_if_include", "10.99.0.0/24",
                   "--mca", "oob_tcp_if_include", "10.99.0.0/24", "--host", f"{LEFT},{RIGHT}", "-n", "2"]
        return result_of(inside("left", [*MPIRUN, *between, MPI, *numbers]))
    finally:
        os.unlink(agent.name)


RATE, RTT_S, LOSS = 2e9, 0.025, "1e-3"
SITE_LAUNCHES = 1 if QUICK else 2 # each part takes less than four minutes


def measure_between(name, size, iterations, warmup):
    """name: "longhaul SCHEME", which finds the rate, or "longhaul SCHEME told"; or program and controller."""
    words = name.split()
    if words[0] == "longhaul":
        told = ["--rate", "1.9Gbit"] if "told" in words else []
        command = collective(size, iterations, warmup, ["--reliability", words[1], *told])
        return both(command, command)
    numbers = [str(size), str(iterations), str(warmup)]
    control(words[-1])
    if words[0] == "gloo":
        with tempfile.TemporaryDirectory() as store:
            left, right = ([GLOO, address, store, *numbers] for address in (LEFT, RIGHT))
            return both(left, right)
    return mpi_between(numbers)


def over_path(measure_all, rate=RATE, rtt_s=RTT_S, loss=LOSS):
    """Within a path between two sites."""
    command = [PATH, "--rate", f"{rate / 1e6:.0f}Mbit", "--delay", f"{rtt_s / 2 * 1e6:.0f}us", "--loss", loss,
               "--name", NAME]
    path = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not any("ready" in line for line in path.stdout):
        print(f"    not measured: {path.stderr.read().strip()}")
        return
    try:
        measure_all()
    finally:
        path.terminate()
        path.wait()


def sites_beside(controller, iterations):
    size = 16 * MIB
    iterations = 10 if QUICK else iterations
    print(f"\n  two sites: {size // MIB} MiB, a rank each, 25 ms, 2 Gbit/s, loss {LOSS}", flush=True)
    names = ["longhaul auto", "longhaul auto told", "longhaul ec:mds told",
             *(f"{name} {controller}" for name in references())]
    over_path(lambda: rows(names, lambda name: measure_between(name, size, iterations, 3),
                           f"{size // MIB}MiB two sites", 1))


def sites_bound():
    """Direct exchange: the bytes at the path's rate, and half a round trip."""
    def measure_all():
        print("                       bound ms   mean ms    p99 ms   of bound   of fresh launches: median")
        for size, iterations, warmup in ((1, 200, 20), (16, 100, 5), (64, 25, 3)):
            bound = 1e3 * (8 * size * MIB / RATE + RTT_S / 2)
            for name in ("longhaul auto", "longhaul auto told"):
                values = [measure_between(name, size * MIB, 10 if QUICK else iterations, warmup)
                          for _ in range(SITE_LAUNCHES)]
                found = [tuple(1e3 * value[f"time_{figure}_s"] for figure in ("mean", "p99"))
                         for value in values if value]
                if not found:
                    continue
                mean, p99 = (statistics.median(column) for column in zip(*found))
                print(f"    {name:20} {size:2} MiB {bound:6.1f} {mean:9.1f} {p99:9.1f}  {mean / bound:4.2f} "
                      f"{p99 / bound:4.2f}   {len(found)}", flush=True)
                report(f"allreduce {size}MiB two sites {name} mean", mean, "ms", "bound", bound, len(found))
                report(f"allreduce {size}MiB two sites {name} p99", p99, "ms", "bound", bound, len(found))
    print(f"\n  two sites: a rank each, 25 ms, 2 Gbit/s, loss {LOSS}", flush=True)
    over_path(measure_all)


PYTHON = os.environ.get("PYTHON") or os.path.join(BUILD, "python-venv", "bin", "python")


def python_has(*modules):
    """Whether PYTHON imports them; else it says what is missing."""
    done = subprocess.run([PYTHON, "-c", f"import {', '.join(modules)}"], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        print(f"    {PYTHON}: {done.stderr.strip().splitlines()[-1]} "
              "(ctest -L python installs torch and longhaul there; others: its pip)")
    return done.returncode == 0


def torch_sites():
    """Each through the same calls of torch.distributed."""
    if not python_has("torch", "longhaul.torch"):
        return
    # Isolated: this folder has a profile.py, too, and torch imports Python's.
    program = [PYTHON, "-I", os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_allreduce.py")]

    def measure_all():
        control("bbr")
        for size, iterations, words in ((1, 200, []), (16, 60, []), (64, 20, []), (16, 40, ["ddp"])):
            numbers = [str(size * MIB), str(10 if QUICK else iterations), "5", *words]
            print(f"\n  torch, two sites: {' '.join([f'{size} MiB', *words])}", flush=True)
            rows(["longhaul", "gloo"], lambda name: both(*2 * [[*program, name, *numbers]]),
                 f"{size}MiB two sites torch{''.join(words)}", SITE_LAUNCHES)

    print(f"\n  torch, two sites: a rank each, 25 ms, 2 Gbit/s, loss {LOSS}; Gloo over BBR", flush=True)
    over_path(measure_all)


def sites_bbr():
    sites_beside("bbr", 100)


def sites_cubic():
    sites_beside("cubic", 20) # 3 to 6 s each


def sites():
    sites_bound()
    sites_bbr()
    sites_cubic()


# ---- a file to many ranks ----------------------------------------------------------------------------------

SITE_COUNT = 3
RANKS_PER_SITE = 3
METHODS = ("hybrid", "binomial-pipeline", "chain", "sequential", "send")
LINK_RATE = 200e6
LINK_DELAY_S = 0.0125
# Bytes of IP packets for a byte of data: RoCE write with immediate over IPv4 and UDP, 4 KiB.
WIRE = 4160 / 4096


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Sites:
    """Namespaces, each two joined by a longhaul-path, whose ends move there; site s is 10.98.s.1."""

    def __init__(self, loss, count=SITE_COUNT, delay_s=LINK_DELAY_S, slow=None):
        """slow: two of them, whose path has a quarter of the rate."""
        self.paths, self.namespaces, self.count = [], [], count
        links = list(itertools.combinations(range(count), 2))
        for i, ends in enumerate(links):
            rate = LINK_RATE / 4 if ends == slow else LINK_RATE
            command = [PATH, "--rate", f"{rate / 1e6:.0f}Mbit", "--delay", f"{delay_s * 1e6:.0f}us", "--loss",
                       loss, "--name", f"{NAME}-{i}", "--seed", str(i + 1)]
            self.paths.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                               text=True))
        for path in self.paths:
            if not any("ready" in line for line in path.stdout):
                reason = path.stderr.read().strip()
                self.close()
                raise PermissionError(reason)
        for s in range(count):
            ip("netns", "add", self.name(s))
            self.namespaces.append(self.name(s))
            ip("-n", self.name(s), "link", "set", "lo", "up")
            ip("-n", self.name(s), "address", "add", f"10.98.{s}.1/32", "dev", "lo")
        for i, ends in enumerate(links):
            for side, near, far in (("left", *ends), ("right", *reversed(ends))):
                ip("-n", f"{NAME}-{i}-{side}", "link", "set", "path0", "netns", self.name(near),
                   "name", f"to{far}")
                ip("-n", self.name(near), "link", "set", f"to{far}", "up")
                ip("-n", self.name(near), "route", "add", f"10.98.{far}.1", "dev", f"to{far}", "src",
                   f"10.98.{near}.1")

    @staticmethod
    def name(site):
        return f"{NAME}-site{site}"

    def inside(self, site, command):
        return ["ip", "netns", "exec", self.name(site), *command]

    def bytes_sent(self):
        """On each link, in each direction, as the kernel counts them: IP packets before the loss."""
        counts = {}
        for near in range(self.count):
            for far in range(self.count):
                if near != far:
                    file = f"/sys/class/net/to{far}/statistics/tx_bytes"
                    counts[near, far] = int(subprocess.run(self.inside(near, ["cat", file]), check=True,
                                                           capture_output=True, text=True).stdout)
        return counts

    def close(self):
        for path in self.paths:
            path.terminate()
            path.wait()
        for namespace in self.namespaces:
            ip("netns", "delete", namespace)


def run_ranks(sites, command, ranks_per_site, named):
    """What rank 0 printed, as JSON; None: it failed or took too long. named: ranks know their sites."""
    ranks = []
    total = sites.count * ranks_per_site
    for rank in range(total):
        site = rank // ranks_per_site
        variables = {"RANK": str(rank), "WORLD_SIZE": str(total), "MASTER_ADDR": "10.98.0.1",
                     "MASTER_PORT": "29511", "LONGHAUL_SITE": f"site{site}" if named else ""}
        ranks.append(subprocess.Popen(sites.inside(site, command), stdout=subprocess.PIPE, text=True,
                                      stderr=subprocess.PIPE, env={**os.environ, **variables}))
    try:
        outputs = [rank.communicate(timeout=PATIENCE_S) for rank in ranks]
    except subprocess.TimeoutExpired:
        outputs = []
    for rank in ranks:
        rank.kill()
        rank.wait()
    if not outputs or any(rank.returncode for rank in ranks):
        print(f"    {' '.join(command[1:])}: {outputs[0][1].strip() if outputs else 'took too long'}")
        return None
    return json.loads(outputs[0][0])


def distribute_once(sites, folder, schedule):
    """Seconds, as rank 0 reports them; None: it failed or took too long."""
    command = [LONGHAUL, "distribute", f"{folder}/file", "-o", f"{folder}/%r", "--schedule", schedule,
               "--insecure", "--json", "-"]
    result = run_ranks(sites, command, RANKS_PER_SITE, True)
    return result and result["time_s"]


def send_all(sites, folder):
    """The same by one 'longhaul send' after another, each with all links to itself: seconds."""
    started = time.monotonic()
    for rank in range(1, SITE_COUNT * RANKS_PER_SITE):
        site = rank // RANKS_PER_SITE
        receive = [LONGHAUL, "recv", "--insecure", "--output", f"{folder}/{rank}"]
        send = [LONGHAUL, "send", "--insecure", f"{folder}/file", f"10.98.{site}.1"]
        with subprocess.Popen(sites.inside(site, receive), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as receiver:
            receiver.stdout.readline()
            done = subprocess.run(sites.inside(0, send), capture_output=True, text=True, check=False,
                                  timeout=PATIENCE_S)
            if done.returncode:
                receiver.kill()
                print(f"    send to rank {rank}: {done.stderr.strip()}")
                return None
    return time.monotonic() - started


def check_files(folder):
    """That all have the file; then they are removed."""
    for rank in range(1, SITE_COUNT * RANKS_PER_SITE):
        if subprocess.run(["cmp", f"{folder}/file", f"{folder}/{rank}/file"], check=False).returncode:
            sys.exit(f"bench: rank {rank} has another file")
        os.unlink(f"{folder}/{rank}/file")


def distribute_over(loss, size):
    """One table: time, and what each link carried."""
    # Two links lead into each other site, and no byte need come twice.
    bound = 8 * size * WIRE / (2 * LINK_RATE) + LINK_DELAY_S
    others = range(1, SITE_COUNT * RANKS_PER_SITE)
    print(f"\n  distribute: {size // MIB} MiB to {len(others)} ranks, {SITE_COUNT} sites, "
          f"links of 25 ms and {LINK_RATE / 1e6:.0f} Mbit/s, loss {loss}; bound {bound:.2f} s", flush=True)
    try:
        sites = Sites(loss)
    except PermissionError as error:
        print(f"    not measured: {error}")
        return
    print("                          time s  of bound   into each site, in files   by link")
    try:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            with open(f"{folder}/file", "wb") as file:
                file.write(os.urandom(MIB) * (size // MIB))
            for rank in others:
                os.mkdir(f"{folder}/{rank}")
            for name in METHODS:
                before = sites.bytes_sent()
                seconds = send_all(sites, folder) if name == "send" else distribute_once(sites, folder, name)
                after = sites.bytes_sent()
                if not seconds:
                    continue
                check_files(folder)
                files = {link: (after[link] - before[link]) / (size * WIRE) for link in after}
                into = [sum(count for (_, far), count in files.items() if far == site)
                        for site in range(SITE_COUNT)]
                print(f"    {name:20} {seconds:8.2f} {seconds / bound:9.2f}   " +
                      " ".join(f"{count:6.2f}" for count in into) + "       " +
                      " ".join(f"{near}>{far} {count:.2f}" for (near, far), count in files.items()),
                      flush=True)
                report(f"distribute {size // MIB}MiB 3 sites, loss {loss}: {name}", seconds, "s", "bound",
                       bound, 1)
    finally:
        sites.close()


def distribute(losses=("0", "1e-2")):
    for loss in losses:
        distribute_over(loss, (32 if QUICK else 256) * MIB)


# ---- a slow path among four ranks --------------------------------------------------------------------------

ORDER_RANKS = 4
ORDER_DELAY_S = 0.005


def order():
    try:
        sites = Sites("0", ORDER_RANKS, ORDER_DELAY_S, (0, 1))
    except PermissionError as reason:
        print(f"    order: {reason}")
        return
    try:
        for schedule in ("ring", None):
            before = None
            for measured in (False, True):
                options = ["--schedule", schedule] if schedule else []
                command = collective(16 * MIB, 3 if QUICK else 5, 2,
                                     [*options, *(["--measure"] if measured else [])])
                result = run_ranks(sites, command, 1, False)
                if not result:
                    continue
                name = f"{schedule or 'chosen'}, {'measured' if measured else 'not measured'}"
                result = result[0]
                print(f"    {name}: {result['schedule']}, mean {result['time_mean_s']:.2f} s,"
                      f" p99 {result['time_p99_s']:.2f} s")
                report(f"allreduce 16MiB, a slow path: {name}", result["time_mean_s"], "s", "not measured",
                       before, 1)
                before = before or result["time_mean_s"]
    finally:
        sites.close()


# ---- multicast to 128 hosts, in virtual time ---------------------------------------------------------------

def multicast():
    program = os.path.join(BUILD, "bench", "bench_multicast_sim")
    with subprocess.Popen([program, *(["--quick", "gbn"] if QUICK else [])], stdout=subprocess.PIPE,
                          text=True) as running:
        for line in running.stdout:
            print(f"    {line}", end="", flush=True)
            if line.startswith("#"):
                continue
            transport, site_count, mib, rtt_ms, loss, *figures = line.split()
            for schedule, ms, model_ms in zip(METHODS[:4], figures[::3], figures[1::3]):
                name = f"multicast {mib}MiB, {site_count} sites, {rtt_ms} ms, loss {loss}"
                report(f"{name}: {transport}, {schedule}", float(ms) / 1e3, "s", "model",
                       float(model_ms) / 1e3, 1)
    if running.returncode:
        sys.exit(f"bench: {program}: exit status {running.returncode}")


PARTS = {"loopback": loopback, "sites": sites, "sites-bound": sites_bound, "sites-bbr": sites_bbr,
         "sites-cubic": sites_cubic, "torch": torch_sites, "distribute": distribute,
         "site": lambda: subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__),
                                                                      "site_allreduce.py"),
                                         *(["--quick"] if QUICK else [])], check=False),
         "order": order, "multicast": multicast, "distribute-0": lambda: distribute(["0"]),
         "distribute-1e-2": lambda: distribute(["1e-2"])}


def main():
    words = sys.argv[1:]
    if "--json" in words:
        del words[words.index("--json"):words.index("--json") + 2]
    wanted = [word for word in words if word != "--quick"] or ["loopback", "sites", "distribute"]
    for name in wanted:
        if name not in PARTS:
            print(f"collectives.py: no part {name!r}: {', '.join(PARTS)}", file=sys.stderr)
            return 2
        PARTS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
