#!/bin/bash
# A soak ends at a signal, prints what it has done, and leaves no process behind.
#   stops.sh TEST_WORLD
set -eu
set -m # the soak is a process group
output=$(mktemp)
for signal in INT TERM; do
    : >"$output" # the output of the soak before must not be taken for this one's
    "$1" --soak --jobs 2 >"$output" &
    soak=$!
    until grep -q 'seeds [0-9]* and on' "$output"; do # from here on it knows what to do with a signal
        sleep 0.1
    done
    kill -s "$signal" "$soak"
    wait "$soak" || true # it may not have come to a seed
    grep ' seeds from [0-9]*, 0 failed' "$output"
    if kill -s 0 -- "-$soak" 2>/dev/null; then
        echo "a process of it is left"
        exit 1
    fi
done
rm -f "$output"
