# Helpers of the simulator's end-to-end tests; sourced. They run in the folder $work.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
cd "$work" || exit 1

# sim ARGUMENT...: ends with 0; leaves sim.out and sim.err.
sim() {
    timeout 120 "$LONGHAUL" sim "$@" >sim.out 2>sim.err </dev/null || fail "longhaul sim $* ended with $?"
}

# unfinished TEXT ARGUMENT...: as sim, but some flows never finish: status 1, and a line that has the text.
unfinished() {
    local status=0 text=$1
    shift
    timeout 120 "$LONGHAUL" sim "$@" >sim.out 2>sim.err </dev/null || status=$?
    [ "$status" -eq 1 ] || fail "longhaul sim $* ended with $status, not 1"
    expect_line sim.err "$text"
}

# wrong STATUS TEXT ARGUMENT...: ends with that status and one line on stderr that has the text.
wrong() {
    local status=0 wanted=$1 text=$2
    shift 2
    timeout 60 "$LONGHAUL" sim "$@" >wrong.out 2>wrong.err </dev/null || status=$?
    [ "$status" -eq "$wanted" ] || fail "longhaul sim $* ended with $status, not $wanted"
    [ "$(wc -l <wrong.err)" -eq 1 ] || fail "longhaul sim $* said $(wc -l <wrong.err) lines"
    expect_line wrong.err "$text"
    [ ! -s wrong.out ] || fail "longhaul sim $* printed something on stdout"
}

# columns FILE NAMES: the first line of a CSV file; every line has as many.
columns() {
    [ "$(head -n 1 "$1")" = "$2" ] || fail "$1 begins with $(head -n 1 "$1")"
    awk -F, 'NR == 1 { wanted = NF } NF != wanted { exit 1 }' "$1" || fail "a line of $1 has other columns"
}

# json EXPRESSION FILE: python says that it holds for d.
json() {
    python3 -c "import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not ($1))" "$2" ||
        fail "$2: $1 does not hold"
}
