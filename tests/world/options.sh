#!/bin/bash
# What is no number, and what is no option, is refused in a line or two.
#   options.sh TEST_WORLD
set -eu
for options in "--seed x" "--seed 1abc" "--seed -5" "--seed 99999999999999999999" "--seeds 0" "--same 0" \
    "--jobs 0" "--jobs 4294967296" "--wrong" "seed"; do
    status=0
    # shellcheck disable=SC2086
    output=$("$1" $options 2>&1) || status=$?
    if [ "$status" -ne 2 ] || [ "$(wc -l <<<"$output")" -gt 2 ] || ! grep -q -- --help <<<"$output"; then
        echo "$options: status $status, and it printed: $output"
        exit 1
    fi
done
"$1" --seed 0x1 | grep -q '^seed 1: well'
