#!/bin/bash
# The rate between two ranks of NCCL's plugin across longhaul-path, with NCCL's window, for 1 and 4 channels;
# beside it, sends that are done when they are acknowledged (tests/nccl_host/host_bench.c).
#   bench/nccl_rate.sh [RUNS]     of each, default 3; prints median and range, as shares of the path's rate
# BUILD: the build folder. RATE, DELAY, LOSS: of the path. Needs the right to make network namespaces.
#
# SPDX-License-Identifier: BSD-3-Clause
set -eu
build=$(realpath "${BUILD:-build}")
runs=${1:-3}
export NCCL_HOST_PLUGIN=$build/libnccl-net-longhaul.so
meet=$(mktemp -d)
trap 'rm -rf "$meet"' EXIT

measure() {
    rm -rf "$meet" && mkdir "$meet"
    timeout 60 "$build/bench/longhaul-path" --rate "${RATE:-2Gbit}" --delay "${DELAY:-12500us}" \
        --loss "${LOSS:-1e-3}" --json "$meet/path.json" -- \
        "$build/tests/nccl_host" bench --rank 0 --meet "$meet" "$@" ::: \
        "$build/tests/nccl_host" bench --rank 1 --meet "$meet" "$@"
}

for channels in 1 4; do
    for variant in "" --acknowledge; do
        for _ in $(seq "$runs"); do
            # shellcheck disable=SC2086  # no word, or one
            measure --channels "$channels" $variant
        done
    done
done | RATE=${RATE:-2Gbit} python3 -c '
import json, os, re, statistics, sys
number, prefix = re.fullmatch(r"([\d.]+)([MG])bit", os.environ["RATE"]).groups()
rate = float(number) * {"M": 1e6, "G": 1e9}[prefix]
shares = {}
for line in sys.stdin:
    run = json.loads(line)
    shares.setdefault((run["channels"], run["acknowledge"]), []).append(run["rate_bps"] / rate)
for (channels, acknowledge), all in shares.items():
    name = "done when acknowledged" if acknowledge else "done when accepted"
    print(f"{channels} channels, {name:<23} {statistics.median(all):.2f} ({min(all):.2f} … {max(all):.2f})")
'
