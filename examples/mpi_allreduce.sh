#!/bin/bash
# Four ranks of an MPI program at two sites, on this machine, whose collectives the shim takes. A link between
# the sites is emulated.
#   examples/mpi_allreduce.sh [BUILD [openmpi|mpich]]      BUILD: the build folder (default: build)
#
# The program is mpi_allreduce.c, which knows nothing of Longhaul. Other programs start alike (docs/mpi.md).
#
# SPDX-License-Identifier: BSD-3-Clause
set -eu
build=$(realpath "${1:-build}")
mpi=${2:-openmpi}
shim=$build/liblonghaul-pmpi-$mpi.so
if [ ! -e "$shim" ]; then
    echo "$shim is missing (run make, or name the build folder; Debian's lib$mpi-dev has the headers)" >&2
    exit 1
fi
program=$(mktemp)
trap 'rm -f "$program"' EXIT
"mpicc.$mpi" -O2 -o "$program" "$(dirname "$0")/mpi_allreduce.c"
# What the shim reads: docs/mpi.md has all of it.
export LONGHAUL_LINK=${LONGHAUL_LINK:-rtt=25ms,rate=2Gbit,loss=1e-3}
options=()
if [ "$mpi" = openmpi ]; then
    options=(--oversubscribe)
    if [ "$(id -u)" -eq 0 ]; then options+=(--allow-run-as-root); fi
fi
# Ranks 0 and 1 are in Paris, ranks 2 and 3 in Tokyo.
# shellcheck disable=SC2016  # the ranks expand it
"mpirun.$mpi" "${options[@]}" -n 4 sh -c '
    if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" -lt 2 ]; then LONGHAUL_SITE=paris; else LONGHAUL_SITE=tokyo; fi
    export LONGHAUL_SITE LD_PRELOAD='"$shim"'
    exec "$1"' rank "$program"
