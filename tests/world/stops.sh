#!/bin/bash
# A soak ends when it is told to, says what it has done, and leaves no process behind.
#   stops.sh TEST_WORLD
set -eu
set -m # the soak is a process group
said=$(mktemp)
for signal in INT TERM; do
    : >"$said" # what the soak before said must not be taken for what this one says
    "$1" --soak --jobs 2 >"$said" &
    soak=$!
    until grep -q 'seeds 1 and on' "$said"; do # from here on it knows what to do with a signal
        sleep 0.1
    done
    kill -s "$signal" "$soak"
    wait "$soak" || true # it may not have come to a seed
    grep ' seeds from 1, 0 failed' "$said"
    if kill -s 0 -- "-$soak" 2>/dev/null; then
        echo "a process of it is left"
        exit 1
    fi
done
rm -f "$said"
