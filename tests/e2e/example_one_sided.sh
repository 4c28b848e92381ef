#!/bin/bash
# examples/one_sided: a row of a table is written, and read back.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
example=$LH_BUILD_DIR/examples/one_sided
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
"$example" serve '[::1]:0' >"$folder/served" &
server=$!
until grep -q '^port ' "$folder/served"; do sleep 0.05; done
"$example" use "[::1]:$(sed -n 's/^port //p' "$folder/served")" >"$folder/used"
wait "$server"
cat "$folder"/*
grep -qx '4096 bytes written to row 7: a row of the table' "$folder/served"
grep -qx 'read back: a row of the table' "$folder/used"
