#!/bin/bash
# Seeds that no commit before this one ran: the first is made of the commit.
#   fresh.sh TEST_WORLD SEEDS
set -eu
cd "$(dirname "$0")"
commit=$(git rev-parse HEAD 2>/dev/null || echo 20260101)
exec "$1" --first "$((16#${commit:0:12}))" --seeds "$2"
