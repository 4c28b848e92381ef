#!/usr/bin/env python3
# AllReduce of floats by Longhaul, Open MPI and Gloo, the latter over the kernel's TCP. Each measures alike: a
# barrier before each operation, the mean of the ranks' times.
#
# usage: BUILD=build collectives.py [--quick] [--json FILE] [PART ...]
#   PART: loopback, 64 MiB and 4 ranks on this machine; sites, 16 MiB, one rank at each end of longhaul-path
#   with 25 ms, 2 Gbit/s and a loss of 1e-3, TCP with BBR and with CUBIC. All by default.
#   --json FILE   appends a line a result, as bench/run does
#
# SPDX-License-Identifier: BSD-3-Clause
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
    return [LONGHAUL, "collective", "allreduce", "-b", str(size), "--iterations", str(iterations), "--warmup",
            str(warmup), "--json", "-", *options]


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


def inside(side, command):
    return ["ip", "netns", "exec", f"{NAME}-{side}", *command]


def control(controller):
    """TCP between the two has that controller, by the route: only so may a namespace have one that is not the
    system's."""
    for side, address in (("left", LEFT), ("right", RIGHT)):
        subprocess.run(inside(side, ["ip", "route", "replace", "10.99.0.0/24", "dev", "path0", "src", address,
                                     "congctl", controller]), check=True)


def both(left, right):
    """One rank a side, started by hand. What the left one printed."""
    variables = {"WORLD_SIZE": "2", "MASTER_ADDR": LEFT, "MASTER_PORT": "29511"}
    with subprocess.Popen(inside("right", right), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env={**os.environ, **variables, "RANK": "1", "LONGHAUL_SITE": "right"}) as other:
        value = result_of(inside("left", left), {**variables, "RANK": "0", "LONGHAUL_SITE": "left"})
        if not value:
            other.kill()
    return value


def mpi_between(numbers):
    """mpirun on the left starts the right rank by an agent in place of ssh."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as agent:
        agent.write(f'#!/bin/sh\nshift\nexec ip netns exec {NAME}-right sh -c "$*"\n')
    os.chmod(agent.name, 0o700)
    try:
        between = ["--mca", "plm_rsh_agent", agent.name, "--mca", "btl_tcp_if_include", "10.99.0.0/24",
                   "--mca", "oob_tcp_if_include", "10.99.0.0/24", "--host", f"{LEFT},{RIGHT}", "-n", "2"]
        return result_of(inside("left", [*MPIRUN, *between, MPI, *numbers]))
    finally:
        os.unlink(agent.name)


def sites():
    size, iterations, warmup = 16 * MIB, 10 if QUICK else 100, 3
    print(f"\n  two sites: {size // MIB} MiB, a rank each, 25 ms, 2 Gbit/s, loss 1e-3", flush=True)
    numbers = [str(size), str(iterations), str(warmup)]
    path = subprocess.Popen([PATH, "--rate", "2Gbit", "--delay", "12500us", "--loss", "1e-3", "--name", NAME],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    if path.poll() is not None:
        print(f"    not measured: {path.stderr.read().strip()}")
        return

    def measure(name):
        if name.startswith("longhaul"):
            scheme = name.partition(" ")[2]
            command = collective(size, iterations, warmup, ["--reliability", scheme, "--rate", "1.9Gbit"])
            return both(command, command)
        control(name.split()[-1])
        if name.startswith("gloo"):
            with tempfile.TemporaryDirectory() as store:
                left, right = ([GLOO, address, store, *numbers] for address in (LEFT, RIGHT))
                return both(left, right)
        return mpi_between(numbers)

    names = [f"{name} {controller}" for name in references() for controller in ("cubic", "bbr")]
    try:
        rows(["longhaul auto", "longhaul ec:mds", *names], measure, "16MiB two sites", LAUNCHES)
    finally:
        path.terminate()
        path.wait()


PARTS = {"loopback": loopback, "sites": sites}


def main():
    words = sys.argv[1:]
    if "--json" in words:
        del words[words.index("--json"):words.index("--json") + 2]
    wanted = [word for word in words if word != "--quick"] or list(PARTS)
    for name in wanted:
        if name not in PARTS:
            print(f"collectives.py: no part {name!r}: {', '.join(PARTS)}", file=sys.stderr)
            return 2
        PARTS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
