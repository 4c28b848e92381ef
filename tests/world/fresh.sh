#!/bin/bash
# Seeds that no commit before this one ran: the first is made of the commit. And a ninth as many of those that
# draw what was added since, and of those with engines.
#   fresh.sh TEST_WORLD SEEDS
set -eu
cd "$(dirname "$0")"
commit=$(git rev-parse HEAD 2>/dev/null || echo 20260101)
first=$((16#${commit:0:12}))
added=$(((1 << 61) + first))
"$1" --first "$first" --seeds "$2"
"$1" --first "$added" --seeds $(($2 / 9))
"$1" --first "$(printf '%u' $((first + (1 << 63))))" --seeds $(($2 / 9))
