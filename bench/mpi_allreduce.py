#!/usr/bin/env python3
# MPI_Allreduce of floats by Open MPI, MPICH and Intel MPI, with the shim (docs/mpi.md) and over their own
# TCP. All take their turn in each launch.
#
# usage: BUILD=build mpi_allreduce.py [--quick] [PART ...]
#   PART: sites, two ranks at each end of longhaul-path with 25 ms, 2 Gbit/s and a loss of 1e-3, TCP with BBR;
#   small, the same with messages around the default of LONGHAUL_MPI_MIN_BYTES; loopback, four ranks on
#   this machine, each a site of its own, and MPI without shared memory. Of each, with a slash, one MPI:
#   sites/mpich. Default: all. --quick: fewer operations
#
# SPDX-License-Identifier: BSD-3-Clause
import os
import shutil
import sys
import tempfile

from collectives import LEFT, LOSS, RIGHT, control, inside, over_path, result_of, rows
from path_messages import BUILD, MIB, QUICK

KIB = 1 << 10
PROGRAMS = {"openmpi": "bench_allreduce_mpi", "mpich": "bench_allreduce_mpich",
            "intel": "bench_allreduce_mpich"} # of one ABI
INTEL = os.path.abspath(os.path.join(BUILD, "intelmpi-venv")) # by tests/libfabric/programs.sh intelmpi
OPEN_MPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "pml", "ob1", "--mca",
            "btl_tcp_progress_thread", "0"]
MPICH = ["mpirun.mpich"]
INTEL_MPI = [f"{INTEL}/bin/mpirun"]


def here(mpi):
    """Whether there are its programs; else it says what is missing."""
    launcher = INTEL_MPI[0] if mpi == "intel" else f"mpirun.{mpi}"
    found = shutil.which(launcher) and os.path.exists(os.path.join(BUILD, "bench", PROGRAMS[mpi]))
    if not found:
        print(f"    {mpi}: not measured (packages openmpi-bin libopenmpi-dev mpich libmpich-dev; Intel MPI: "
              f"LH_BUILD_DIR={BUILD} bash tests/libfabric/programs.sh intelmpi)")
    return found


def ranks(mpi, preload, sites, numbers):
    """The command of a rank: it knows its site. sites: of how many ranks one is."""
    abi = "openmpi" if mpi == "openmpi" else "mpich"
    shim = os.path.abspath(os.path.join(BUILD, f"liblonghaul-pmpi-{abi}.so"))
    setting = f"export LD_PRELOAD={shim};" if preload else ""
    script = (f'export LONGHAUL_SITE=site$((${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} / {sites})); {setting} '
              'exec "$@"')
    return ["sh", "-c", script, "rank", os.path.abspath(os.path.join(BUILD, "bench", PROGRAMS[mpi])),
            *map(str, numbers)]


def between(mpi, preload, numbers):
    """mpirun on the left starts the ranks on the right by an agent in place of ssh."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as agent:
        start = " ".join(inside("right", ["sh", "-c"]))
        left = " ".join(inside("left", ["sh", "-c"]))
        agent.write("#!/bin/sh\n# Options of ssh come before the host.\n"
                    "while [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1\nshift\n"
                    f"if [ \"$host\" = {LEFT} ]; then exec {left} \"$*\"; fi\nexec {start} \"$*\"\n")
    os.chmod(agent.name, 0o700)
    command = ranks(mpi, preload, 2, numbers)
    # TCP within a site, too: both namespaces are of one host, whose shared memory Open MPI's two daemons
    # cannot share.
    if mpi == "openmpi":
        launch = [*OPEN_MPI, "--mca", "btl", "tcp,self", "--mca", "plm_rsh_agent", agent.name, "--mca",
                  "btl_tcp_if_include", "10.99.0.0/24", "--mca", "oob_tcp_if_include", "10.99.0.0/24",
                  "--host", f"{LEFT}:2,{RIGHT}:2", "-n", "4"]
    else:
        launch = [*(MPICH if mpi == "mpich" else INTEL_MPI), "-launcher", "ssh", "-launcher-exec", agent.name,
                  "-hosts", f"{LEFT}:2,{RIGHT}:2" if mpi == "mpich" else f"{LEFT},{RIGHT}", "-iface", "path0",
                  *(["-ppn", "2"] if mpi == "intel" else []), "-localhost", LEFT, "-n", "4"]
    try:
        return result_of(inside("left", [*launch, *command]),
                         {"LONGHAUL_SOCKET_IFNAME": "path0", "LONGHAUL_MPI_MIN_BYTES": "0", **UCX("path0"),
                          **(of_intel("path0") if mpi == "intel" else {})})
    finally:
        os.unlink(agent.name)


def of_intel(interface):
    """Variables of Intel MPI over its TCP, also between the ranks of a host; it takes the place of MPICH."""
    libraries = os.path.join(INTEL, "as-mpich")
    os.makedirs(libraries, exist_ok=True)
    if not os.path.lexists(f"{libraries}/libmpich.so.12"):
        os.symlink(f"{INTEL}/lib/libmpi.so.12", f"{libraries}/libmpich.so.12")
    return {"LD_LIBRARY_PATH": f"{libraries}:{INTEL}/lib", "PATH": f"{INTEL}/bin:{os.environ['PATH']}",
            "I_MPI_ROOT": INTEL, "I_MPI_FABRICS": "ofi", "I_MPI_OFI_PROVIDER": "tcp", "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": interface}


def UCX(interface): # of MPICH
    return {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": interface, "UCX_WARN_UNUSED_ENV_VARS": "n"}


def on_this_machine(mpi, preload, numbers):
    launch = [*OPEN_MPI, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo", "-n", "4"] \
        if mpi == "openmpi" else [*(MPICH if mpi == "mpich" else INTEL_MPI), "-iface", "lo", "-n", "4"]
    # MPICH's ranks of one host use shared memory unless they believe to be alone.
    alone = {"MPIR_CVAR_NOLOCAL": "1", **UCX("lo")}
    return result_of([*launch, *ranks(mpi, preload, 1, numbers)],
                     {"LONGHAUL_SOCKET_IFNAME": "lo", "LONGHAUL_MPI_MIN_BYTES": "0", **alone,
                      **(of_intel("lo") if mpi == "intel" else {})})


def compare(mpi, measure, name, size, iterations, warmup, launches):
    numbers = (size, 10 if QUICK else iterations, warmup)
    print(f"\n  {mpi}: {name}, {size / MIB:.3g} MiB" if size >= MIB else
          f"\n  {mpi}: {name}, {size / KIB:.3g} KiB", flush=True)
    rows([f"{mpi} longhaul", f"{mpi} tcp"],
         lambda each: measure(mpi, each.endswith("longhaul"), numbers), f"{size}B {name}", launches)


def over_sites(mpis, name, sizes):
    def measure_all():
        control("bbr")
        for mpi in mpis:
            for size, iterations, warmup in sizes:
                compare(mpi, between, name, size, iterations, warmup, 1)

    print(f"\n  two sites: two ranks each, 25 ms, 2 Gbit/s, loss {LOSS}; TCP with BBR", flush=True)
    over_path(measure_all)


def sites(mpis):
    over_sites(mpis, "two sites", ((MIB, 100, 10), (16 * MIB, 40, 5), (64 * MIB, 12, 3)))


def small(mpis):
    over_sites(mpis, "small", tuple((size * KIB, 60, 10) for size in (1, 4, 16, 64, 256)))


def loopback(mpis):
    for mpi in mpis:
        for size, iterations, warmup in ((KIB, 500, 50), (64 * MIB, 6, 2)):
            compare(mpi, on_this_machine, "loopback", size, iterations, warmup, 1 if QUICK else 3)


PARTS = {"sites": sites, "small": small, "loopback": loopback}


def main():
    for word in [word for word in sys.argv[1:] if word != "--quick"] or list(PARTS):
        part, _, only = word.partition("/")
        if part not in PARTS or only not in ("", *PROGRAMS):
            sys.exit(f"mpi_allreduce.py: no part {word!r}: {', '.join(PARTS)}")
        PARTS[part]([mpi for mpi in ([only] if only else PROGRAMS) if here(mpi)])


if __name__ == "__main__":
    main()
