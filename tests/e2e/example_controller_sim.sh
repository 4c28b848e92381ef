# shellcheck shell=bash
# examples/controller_sim: each byte arrives with a controller of the program, which the path's queue stops.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

example=$LH_BUILD_DIR/examples/controller_sim
timeout 60 "$example" >"$work/out" || fail "it ended with $?"
grep -q '^aimd  32 MiB in ' "$work/out" || fail "nothing of aimd"
grep -q '^bbr   32 MiB in ' "$work/out" || fail "nothing of bbr"
timeout 60 "$example" >"$work/again" || fail "it ended with $?"
cmp "$work/out" "$work/again" || fail "two runs differ"
echo "all well"
