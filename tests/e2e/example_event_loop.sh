#!/bin/bash
# examples/event_loop: messages of several clients in one loop, which ends when they have closed.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
example=$LH_BUILD_DIR/examples/event_loop
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
"$example" serve 'udp:[::1]' '[::1]:0' 3 >"$folder/served" &
server=$!
until grep -q '^port ' "$folder/served"; do sleep 0.05; done
port=$(sed -n 's/^port //p' "$folder/served")
clients=()
for messages in 1 100 1000; do
    "$example" send 'udp:[::1]' "[::1]:$port" "$messages" >"$folder/sent.$messages" &
    clients+=($!)
done
wait "${clients[@]}"
wait "$server"
cat "$folder"/*
for messages in 1 100 1000; do
    grep -qx "$messages messages sent" "$folder/sent.$messages"
    [ "$(grep -c "^$messages messages from \[::1\]:" "$folder/served")" = 1 ]
done
