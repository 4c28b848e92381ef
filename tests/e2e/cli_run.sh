#!/bin/bash
# longhaul run: variables, output, exit status, signals.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

# run ARGUMENT...: in the foreground; sets status, and leaves run.out and run.err.
run() {
    status=0
    timeout 60 "$LONGHAUL" run "$@" >"$work/run.out" 2>"$work/run.err" || status=$?
}

# expect_status STATUS
expect_status() {
    [ "$status" -eq "$1" ] || fail "exit status $status, not $1"
}

# misused TEXT ARGUMENT...: a usage error, in one line.
misused() {
    local text=$1
    shift
    run "$@"
    expect_status 2
    expect_line "$work/run.err" "$text"
    [ "$(wc -l <"$work/run.err")" -eq 1 ] || fail "more than one line"
}

say "each rank has its variables, and sites are blocks"
run -n 4 --sites 2 --link rtt=25ms,loss=1e-3 -- \
    bash -c 'echo $RANK of $WORLD_SIZE at $LONGHAUL_SITE, $LONGHAUL_LINK'
expect_status 0
sort "$work/run.out" >"$work/sorted.out"
printf '%s\n' "0 of 4 at site0, rtt=25ms,loss=0.001" "1 of 4 at site0, rtt=25ms,loss=0.001" \
    "2 of 4 at site1, rtt=25ms,loss=0.001" "3 of 4 at site1, rtt=25ms,loss=0.001" |
    diff - "$work/sorted.out" || fail "other variables"

say "lines stay whole, and have labels on request"
run -n 3 -l -- bash -c 'for i in 1 2 3; do printf a; printf "b\n"; echo c >&2; done; printf end'
expect_status 0
[ "$(sort "$work/run.out" | uniq -c | tr -s ' ' | tr '\n' ';')" = \
    " 3 [0] ab; 1 [0] end; 3 [1] ab; 1 [1] end; 3 [2] ab; 1 [2] end;" ] || fail "other lines"
[ "$(grep -c '^\[[012]\] c$' "$work/run.err")" -eq 9 ] || fail "other lines on standard error"

say "a rank that fails ends the others, and gives its exit status"
run -n 4 -- bash -c '[ $RANK = 2 ] && exit 7; sleep 50'
expect_status 7
expect_line "$work/run.err" "longhaul run: rank 2 ended with exit status 7; ending the other ranks"

say "so does one that a signal ends"
run -n 2 -- bash -c '[ $RANK = 1 ] && kill -SEGV $$; sleep 50'
expect_status 139
expect_line "$work/run.err" "longhaul run: rank 1 was ended by signal 11"

# ranks_end RANK WAY RANK WAY: two of four ranks end in that order, by an exit status or a signal, while the
# command stands still: it sees both ends at once.
ranks_end() {
    local rank pid
    rm -f "$work/pid".* "$work/go".*
    "$LONGHAUL" run -n 4 -- bash -c "echo \$\$ >$work/pid.\$RANK.new
        mv $work/pid.\$RANK.new $work/pid.\$RANK
        until [ -s $work/go.\$RANK ]; do sleep 0.02; done; exit \$(cat $work/go.\$RANK)" \
        >"$work/run.out" 2>"$work/run.err" &
    pid=$!
    for rank in 0 1 2 3; do
        until [ -e "$work/pid.$rank" ]; do sleep 0.02; done
    done
    kill -STOP "$pid"
    while [ $# -gt 0 ]; do
        case $2 in
        [0-9]*) echo "$2" >"$work/go.$1" ;;
        *) kill -"$2" "$(cat "$work/pid.$1")" ;;
        esac
        until grep -q '^State:.Z' "/proc/$(cat "$work/pid.$1")/status"; do sleep 0.02; done
        shift 2
    done
    kill -CONT "$pid"
    status=0
    wait "$pid" || status=$?
}

say "of ranks that fail together the first is named"
ranks_end 3 7 1 1
expect_status 7
expect_line "$work/run.err" "longhaul run: rank 3 ended with exit status 7; ending the other ranks"
ranks_end 2 9 3 7
expect_status 9
expect_line "$work/run.err" "longhaul run: rank 2 ended with exit status 9; ending the other ranks"

say "and one that a signal has ended before those that failed for it"
ranks_end 1 1 3 TERM
expect_status 143
expect_line "$work/run.err" "longhaul run: rank 3 was ended by signal 15 (Terminated); ending the other ranks"
ranks_end 3 KILL 1 1
expect_status 137
expect_line "$work/run.err" "longhaul run: rank 3 was ended by signal 9 (Killed); ending the other ranks"

say "a rank that ignores SIGTERM is killed, and so is what ranks have started"
run -n 2 -- bash -c 'trap "" TERM; [ $RANK = 1 ] && exit 3; sleep 47.125 & wait; wait; sleep 47.125'
expect_status 3
! pgrep -f '^sleep 47.125$' >/dev/null || fail "a rank is left"

say "signals are forwarded"
for signal in INT TERM; do
    rm -f "$work/ready".*
    "$LONGHAUL" run -n 2 -- bash -c "trap 'echo got $signal; exit 1' $signal
        touch $work/ready.\$RANK; while :; do sleep 0.05; done" >"$work/run.out" 2>"$work/run.err" &
    pid=$!
    until [ -e "$work/ready.0" ] && [ -e "$work/ready.1" ]; do sleep 0.02; done
    kill -"$signal" "$pid"
    ended run "$pid" $((128 + $(kill -l "$signal"))) 30
    [ "$(grep -c "got $signal" "$work/run.out")" -eq 2 ] || fail "$signal did not reach both ranks"
done

say "a command that does not exist is one line"
run -n 2 -- "$work/nothing"
expect_status 1
expect_line "$work/run.err" "longhaul run: $work/nothing: No such file or directory"
[ "$(wc -l <"$work/run.err")" -eq 1 ] || fail "more than one line"

say "ranks without descriptors are one line that names the limit"
status=0
(ulimit -n 24 && exec timeout 60 "$LONGHAUL" run -n 40 -- sleep 51.125) \
    >"$work/run.out" 2>"$work/run.err" || status=$?
expect_status 1
expect_line "$work/run.err" \
    "no file descriptor left (limit 24: raise it with ulimit -n); ending the other ranks"
! pgrep -f '^sleep 51.125$' >/dev/null || fail "a rank is left"

say "usage errors"
misused "missing -- COMMAND" -n 2
misused "missing -- COMMAND" -n 2 --
misused "true: unexpected argument 1: run takes its COMMAND behind --" -n 2 true
misused "missing -n N" -- true
misused "--sites 3: exceeds the number of ranks, 2" -n 2 --sites 3 -- true
misused "--link: emulated between sites" -n 2 --link rtt=25ms -- true
misused "--link rtt=5x" -n 2 --sites 2 --link rtt=5x -- true
misused "--ranks 0: out of range (1 to 256)" -n 0 -- true
misused "unexpected argument" -n 2 true -- true

echo "$checks checks"
