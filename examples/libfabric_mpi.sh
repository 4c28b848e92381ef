#!/bin/bash
# Two ranks of an MPI program under Open MPI, on this machine, whose messages pass through Longhaul's provider
# for libfabric. The link between them is emulated.
#   examples/libfabric_mpi.sh [BUILD]      BUILD: the build folder (default: build)
#
# The program is mpi_allreduce.c, which knows nothing of Longhaul. Other programs start alike
# (docs/libfabric.md).
#
# SPDX-License-Identifier: BSD-3-Clause
set -eu
build=$(realpath "${1:-build}")
if [ ! -e "$build/libfabric/liblonghaul-fi.so" ]; then
    echo "$build/libfabric/liblonghaul-fi.so is missing (run make, or name the build folder; Debian's" \
        "libfabric-dev has the headers)" >&2
    exit 1
fi
program=$(mktemp)
trap 'rm -f "$program"' EXIT
mpicc.openmpi -O2 -o "$program" "$(dirname "$0")/mpi_allreduce.c"
options=()
if [ "$(id -u)" -eq 0 ]; then options+=(--allow-run-as-root); fi
# What the provider reads: docs/libfabric.md has all of it.
export FI_PROVIDER_PATH=$build/libfabric FI_PROVIDER=longhaul
export LONGHAUL_LINK=${LONGHAUL_LINK:-rtt=25ms,rate=2Gbit,loss=1e-3}
export LONGHAUL_SOCKET_IFNAME=${LONGHAUL_SOCKET_IFNAME:-lo}
mpirun.openmpi "${options[@]}" --oversubscribe -n 2 --mca pml cm --mca mtl ofi \
    --mca mtl_ofi_provider_include longhaul "$program"
