#!/bin/bash
# examples/scheme_sim: each byte arrives, the same seed gives the same run, another seed another one.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
example=$LH_BUILD_DIR/examples/scheme_sim
first=$("$example" 1)
echo "$first"
[[ $first == *"each byte right" && $first =~ ([1-9][0-9]*)" of " ]]
[ "$("$example" 1)" = "$first" ]
[ "$("$example" 2)" != "$first" ]
# 16 MiB at 10 Gbit/s are 13 ms, and a round trip 25 ms: a repair takes at least one more.
milliseconds=$(sed -E 's/.* in ([0-9]+)\..*/\1/' <<<"$first")
[ "$milliseconds" -ge 50 ] && [ "$milliseconds" -le 500 ]
