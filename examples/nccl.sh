#!/bin/bash
# Two ranks over NCCL's network plugin, on this machine: build/examples is not needed, the tests are.
#   examples/nccl.sh [BUILD]      BUILD: the build folder (default: build)
#
# There is no NCCL and no GPU in this: nccl_host drives the plugin as NCCL's proxy does. Each rank has two
# communicators, which compute sums over a ring and a tree. The link between them is emulated. With NCCL, its
# programs start as ever, with NCCL_NET_PLUGIN (docs/nccl.md).
#
# SPDX-License-Identifier: BSD-3-Clause
set -eu
build=${1:-build}
host=$build/tests/nccl_host
if [ ! -x "$host" ]; then
    echo "$host is missing (run make, or name the build folder)" >&2
    exit 1
fi
NCCL_HOST_PLUGIN=$(realpath "$build/libnccl-net-longhaul.so")
export NCCL_HOST_PLUGIN
# What the plugin reads: docs/nccl.md has all of it.
export LONGHAUL_SOCKET_IFNAME=${LONGHAUL_SOCKET_IFNAME:-lo}
export LONGHAUL_LINK=${LONGHAUL_LINK:-rtt=25ms,rate=2Gbit,loss=1e-3}
# The plugin's lines, as NCCL would write them.
export NCCL_DEBUG=INFO
exec "$host" ranks 2 4 16777216 4
