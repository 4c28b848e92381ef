#!/bin/bash
# longhaul distribute under longhaul run: every schedule, with losses; what goes wrong at one rank is an error
# with its number at all; interrupted transfers go on.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

# run ARGUMENT...: longhaul run, in the foreground; sets status, and leaves run.out and run.err.
run() {
    status=0
    (cd "$work" && timeout 120 "$LONGHAUL" run "$@" >run.out 2>run.err) || status=$?
}

# expect_status STATUS
expect_status() {
    [ "$status" -eq "$1" ] || fail "exit status $status, not $1"
}

# fresh RANKS: empty folders out/0 and on.
fresh() {
    rm -rf "$work/out"
    for ((i = 0; i < $1; i++)); do mkdir -p "$work/out/$i"; done
}

# has FILE RANK...: just these ranks have it, and nothing else is there.
has() {
    local name=$1 rank
    shift
    for rank in "$@"; do
        cmp -s "$work/$name" "$work/out/$rank/$name" || fail "rank $rank has another $name"
    done
    # shellcheck disable=SC2046  # words
    [ "$(find "$work/out" -type f | wc -l)" -eq $# ] || fail "also there: $(find "$work/out" -type f)"
}

# ranks FAILURE: rank 2 under that shell command, the others plainly; no rank is ended for another's failure.
cat >"$work/rank.sh" <<'R'
[ "$RANK" != 2 ] || eval "$FAILURE"
"$LONGHAUL" distribute "$@" && exit
sleep 1
exit 1
R
export LONGHAUL

make_file "$work/some" 300001
make_file "$work/big" 50000001 # 12 blocks
touch -d '2001-02-03 04:05:06' "$work/some"
chmod 640 "$work/some"
: >"$work/empty"

say "each schedule, between sites that lose 1 %"
for schedule in sequential chain binomial-tree binomial-pipeline double-tree hybrid; do
    fresh 5
    run -n 5 --sites 3 --link rtt=2ms,loss=1e-2 -- "$LONGHAUL" distribute some -o out/%r \
        --schedule $schedule
    expect_status 0
    has some 1 2 3 4
    expect_line "$work/run.out" "to 4 ranks, sites 3, schedule $schedule, reliability auto, between sites"
done
[ "$(stat -c '%a %y' "$work/out/3/some")" = "$(stat -c '%a %y' "$work/some")" ] || fail "mode or time is lost"

say "the default: hybrid between sites, binomial-pipeline inside one; JSON"
fresh 6
run -n 6 --sites 3 --link rtt=2ms,loss=1e-2 -- "$LONGHAUL" distribute big -o out/%r --json r.json
expect_status 0
has big 1 2 3 4 5
python3 - "$work/r.json" "$(sed -n 's/.*xxh3-128 //p' "$work/run.out")" <<'P' ||
import json, sys
result = json.load(open(sys.argv[1]))
assert result["name"] == "big" and result["size_bytes"] == 50000001 and result["resumed_bytes"] == 0
assert result["schedule"] == "hybrid" and result["ranks"] == 6 and result["sites"] == 3
assert len(result["xxh3_128"]) == 32 and result["xxh3_128"] == sys.argv[2]
assert result["reliability"] == result["reliability_across"] == "auto"
assert abs(result["rate_bps"] - 8 * 50000001 / result["time_s"]) < 1
P
    fail "JSON: $(cat "$work/r.json")"
fresh 3
run -n 3 -- "$LONGHAUL" distribute big -o out/%r
expect_status 0
has big 1 2
expect_line "$work/run.out" "to 2 ranks, schedule binomial-pipeline, reliability auto"
run -n 2 -- "$LONGHAUL" distribute some -o out/%r --force
expect_status 0
expect_line "$work/run.out" "to 1 rank, schedule"

say "an empty file"
fresh 3
run -n 3 -- "$LONGHAUL" distribute empty -o out/%r --json -
expect_status 0
has empty 1 2
expect_line "$work/run.out" '"size_bytes": 0,'

say "what is wrong at rank 0 is one line, before ranks are waited for"
for case in "none|none cannot be opened: No such file or directory" \
    "out|out is a folder (only regular files can be sent; a folder as an archive: tar)" \
    "some --json no/r.json|--json no/r.json: No such file or directory (create the folder no first)"; do
    status=0
    # shellcheck disable=SC2086  # words
    (cd "$work" && env RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 "$LONGHAUL" distribute \
        ${case%%|*} --wait 50s 2>one.err) || status=$?
    expect_status 1
    [ "$(cat "$work/one.err")" = "longhaul distribute (rank 0): ${case#*|}" ] || fail "another message"
done

# refused TEXT: each of 4 ranks has printed that, and nobody has the file.
refused() {
    expect_status 1
    [ "$(grep -cF -e "): $1" "$work/run.err")" -eq 4 ] ||
        fail "not at each rank: $1: $(cat "$work/run.err")"
}

say "a file that exists at one rank is an error with its number at all"
fresh 4
echo other >"$work/out/2/some"
FAILURE=true run -n 4 -- bash "$work/rank.sh" some -o out/%r
refused "some: rank 2: a file of that name exists (--force replaces it)"
[ "$(find "$work/out" -type f)" = "$work/out/2/some" ] || fail "something is left"
run -n 4 -- "$LONGHAUL" distribute some -o out/%r --force
expect_status 0
has some 1 2 3

say "so is a folder that is not there"
fresh 4
rmdir "$work/out/2"
FAILURE=true run -n 4 -- bash "$work/rank.sh" some -o out/%r
refused "some: rank 2: --output out/2: No such file or directory (create the folder first)"
[ -z "$(find "$work/out" -type f)" ] || fail "something is left"

say "so are ranks in one folder, and an empty name of it"
fresh 4
FAILURE=true run -n 4 -- bash "$work/rank.sh" some -o out
expect_status 1
expect_line "$work/run.err" "another transfer to that name is in progress (ranks on one machine need"
expect_line "$work/run.err" "--output 'DIR/%r'"
[ -z "$(find "$work/out" -type f)" ] || fail "something is left"
run -n 2 -- "$LONGHAUL" distribute some -o ''
expect_status 1
expect_line "$work/run.err" "some: rank 1: --output: empty (example: --output .)"

say "a name that begins with a dot"
cp "$work/some" "$work/.hidden"
fresh 4
FAILURE=true run -n 4 -- bash "$work/rank.sh" .hidden -o out/%r
refused ".hidden: rank 1: name begins with a dot (--dotfiles accepts such names)"
run -n 4 -- "$LONGHAUL" distribute .hidden -o out/%r --dotfiles
expect_status 0
has .hidden 1 2 3

say "a disk that is full in the middle, and what arrived is discarded everywhere"
fresh 4
FAILURE='ulimit -f 20480' run -n 4 -- bash "$work/rank.sh" big -o out/%r
refused "big: rank 2: writing the file failed: File too large"
[ -z "$(find "$work/out" -type f)" ] || fail "something is left"

# Rank 2 has the disk of tests/preload/disk.c.
preload disk
disk=$LD_PRELOAD
preload_end

say "a disk that fails at the end of one rank: nobody has the file"
fresh 4
FAILURE="export LD_PRELOAD=$disk LH_TEST_DISK_FAILS=sync" run -n 4 -- bash "$work/rank.sh" some -o out/%r
refused "some: rank 2: writing the file to disk failed: Input/output error"
[ -z "$(find "$work/out" -type f)" ] || fail "something is left"

say "a name that is taken while the others give it to their files: those say that they have it"
fresh 4
take_name() {
    until [ -e out/2/.big.longhaul-partial ]; do sleep 0.02; done
    echo other >out/2/big
    touch go
}
export -f take_name
FAILURE="take_name & export LD_PRELOAD=$disk LH_TEST_DISK_WAITS=go" run -n 4 -- bash "$work/rank.sh" big \
    -o out/%r
refused "big: rank 2: a file of that name was created meanwhile"
[ "$(grep -c "meanwhile; the file is in place here" "$work/run.err")" -eq 2 ] || fail "they do not say so"
[ "$(cat "$work/out/2/big")" = other ] || fail "it was replaced"
for rank in 1 3; do
    cmp -s "$work/big" "$work/out/$rank/big" || fail "rank $rank has another big"
done

say "what file systems do not keep, and what is given up, is said"
fresh 3
head -c 5000000 "$work/big" >"$work/out/1/.some.longhaul-partial"
FAILURE="export LD_PRELOAD=$disk LH_TEST_DISK_FAILS=times" run -n 3 -- bash "$work/rank.sh" some -o out/%r
expect_status 0
has some 1 2
expect_line "$work/run.err" "some: replacing 4.77MiB of an unfinished transfer (--resume continues one)"
[ "$(grep -c "some: permissions and time not preserved" "$work/run.err")" -eq 1 ] || fail "not at one rank"

say "a block that rank 0 cannot read is written nowhere, and what came before it is resumed"
fresh 3
cat >"$work/unread.sh" <<R
[ "\$RANK" != 0 ] || export LD_PRELOAD=$disk LH_TEST_DISK_FAILS=read
"\$LONGHAUL" distribute big -o out/%r --resume && exit
sleep 1
exit 1
R
run -n 3 -- bash "$work/unread.sh"
expect_status 1
[ "$(grep -c "big: rank 0: the file cannot be read: Input/output error" "$work/run.err")" -eq 3 ] ||
    fail "not at each rank"
[ "$(grep -c "; kept 32MiB of 47.7MiB (--resume continues)" "$work/run.err")" -eq 2 ] || fail "another length"
run -n 3 -- "$LONGHAUL" distribute big -o out/%r --resume
expect_status 0
has big 1 2
expect_line "$work/run.out" "(32MiB resumed)"

say "ranks that disagree on the schedule"
fresh 4
FAILURE='set -- "$@" --schedule chain' run -n 4 -- bash "$work/rank.sh" big -o out/%r --schedule sequential
expect_status 1
expect_line "$work/run.err" "ranks disagree: schedule"
expect_line "$work/run.err" "chain at rank 2"
[ -z "$(find "$work/out" -type f)" ] || fail "something is left"

say "ranks end with the transfer: no acknowledgement is waited for that has come"
for _ in 1 2 3; do
    fresh 4
    run -n 4 --sites 2 --link rtt=25ms -- "$LONGHAUL" distribute empty -o out/%r --peer-timeout 1h
    expect_status 0
    has empty 1 2 3
done

say "a signal ends the ranks that are left, though one was killed that they wait for"
cat >"$work/stopped.sh" <<'R'
"$LONGHAUL" distribute big -o out/%r --rate 40Mbit --peer-timeout 1h &
echo $! >pid.$RANK
status=0
wait $! || status=$?
echo $status >status.$RANK
exit 0
R
fresh 4
run_ranks() {
    run -n 4 -- bash "$work/stopped.sh"
}
run_ranks &
ranks=$!
for rank in 1 2 3; do
    until [ "$(stat -c %s "$work/out/$rank/.big.longhaul-partial" 2>/dev/null || echo 0)" -gt 0 ]; do
        kill -0 $ranks || fail "they ended before"
        sleep 0.02
    done
done
kill -9 "$(cat "$work/pid.2")"
kill -TERM "$(cat "$work/pid.0")" "$(cat "$work/pid.1")" "$(cat "$work/pid.3")"
ended run $ranks 0 150
[ "$(cat "$work"/status.[0-3] | paste -sd' ')" = "143 143 137 143" ] || fail "they ended otherwise"

say "usage errors"
for case in "|missing FILE" "a --schedule x|--schedule x: unknown schedule of broadcast (" \
    "a --reliability bounded:deadline=9ms|--reliability bounded:deadline=9ms: delivers parts"; do
    status=0
    # shellcheck disable=SC2086  # words
    "$LONGHAUL" distribute ${case%%|*} 2>"$work/misused.err" || status=$?
    expect_status 2
    expect_line "$work/misused.err" "${case#*|}"
done
status=0
env -u RANK "$LONGHAUL" distribute "$work/some" 2>"$work/alone.err" || status=$?
expect_status 2
expect_line "$work/alone.err" "missing HOST (usage: longhaul distribute FILE HOST"
run -n 1 -- "$LONGHAUL" distribute some
expect_status 2
expect_line "$work/run.err" "1 rank: no receiver (start at least two ranks)"

say "a rank that is killed is an error with its number at the others, and --resume continues"
cat >"$work/killed.sh" <<'R'
send="$LONGHAUL distribute big -o out/%r --resume --rate 40Mbit --peer-timeout 2s"
[ "$RANK" = 2 ] || { $send; status=$?; sleep 6; exit $status; }
$send &
# 24 bytes, and 16 for each recorded block.
until [ "$(stat -c %s out/1/.big.longhaul-resume 2>/dev/null || echo 0)" -ge 56 ] &&
    [ "$(stat -c %s out/2/.big.longhaul-resume 2>/dev/null || echo 0)" -ge 40 ]; do sleep 0.02; done
kill -9 $!
sleep 60 # the others end by themselves
R
fresh 4
run -n 4 -- bash "$work/killed.sh"
expect_status 1
[ "$(grep -c "big: rank 2: lost: no answer" "$work/run.err")" -eq 3 ] || fail "rank 2 is not named at all"
[ "$(grep -c "; kept .* (--resume continues)" "$work/run.err")" -eq 2 ] || fail "receivers keep nothing"
run -n 4 -- "$LONGHAUL" distribute big -o out/%r --resume
expect_status 0
has big 1 2 3
expect_line "$work/run.out" "MiB resumed)"

say "a rank that is killed while another is busy with its disk is an error with its number there, too"
truncate -s 80000001 "$work/long" # 20 blocks: more than are pending at a time
cat >"$work/busy.sh" <<R
send="\$LONGHAUL distribute long -o out/%r --peer-timeout 2s"
case \$RANK in
1) LD_PRELOAD=$disk LH_TEST_DISK_WAITS=gone \$send ;;
2)
    \$send &
    until [ "\$(stat -c %s out/2/.long.longhaul-resume 2>/dev/null || echo 0)" -gt 24 ]; do sleep 0.02; done
    kill -9 \$!
    sleep 60
    ;;
*)
    \$send
    sleep 2
    touch gone
    sleep 4
    ;;
esac
exit 1
R
fresh 4
run -n 4 -- bash "$work/busy.sh"
expect_status 1
[ "$(grep -c "long: rank 2: lost: no answer" "$work/run.err")" -eq 3 ] || fail "rank 2 is not named at all"

say "what was kept of another file is not used"
fresh 3
FAILURE='ulimit -f 20480' run -n 3 -- bash "$work/rank.sh" big -o out/%r --resume
expect_status 1
[ -e "$work/out/1/.big.longhaul-resume" ] || fail "nothing is kept"
make_file "$work/big" 50000001
run -n 3 -- "$LONGHAUL" distribute big -o out/%r --resume
expect_status 0
has big 1 2
! grep -q resumed "$work/run.out" || fail "it was resumed"
changed="big: the file has changed since the unfinished transfer"
digest="its first .*MiB have another digest; starting from the beginning"
[ "$(grep -c "note: $changed: $digest" "$work/run.err")" -eq 2 ] ||
    fail "not at each rank that had it"

say "nor of the same file when it was shorter"
fresh 3
FAILURE='ulimit -f 20480' run -n 3 -- bash "$work/rank.sh" big -o out/%r --resume
expect_status 1
cp "$work/big" "$work/kept"
echo more >>"$work/big"
run -n 3 -- "$LONGHAUL" distribute big -o out/%r --resume
expect_status 0
has big 1 2
! grep -q resumed "$work/run.out" || fail "it was resumed"
expect_line "$work/run.err" "note: $changed: 50000001 bytes then, 50000006 now; starting from the beginning"
mv "$work/kept" "$work/big"

say "on a terminal there is a bar for each site that gets the file"
fresh 5
(cd "$work" && python3 - "$LONGHAUL" >bars.out <<'P'
import os, pty, sys

# The ranks' standard error is the terminal itself, not the pipe of longhaul run.
rank = 'exec 2>/dev/tty; exec "$0" distribute some -o out/%r'
command = [sys.argv[1], "run", "-n", "5", "--sites", "4", "--", "sh", "-c", rank, sys.argv[1]]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
shown = b""
while True:
    try:
        some = os.read(terminal, 65536)
    except OSError:
        break
    shown += some
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
P
) || fail "it failed on a terminal: $(cat "$work/bars.out")"
has some 1 2 3 4
for site in site0 site1 site2 site3; do
    grep -q "some to $site .* of 293KiB" "$work/bars.out" || fail "no bar of $site: $(cat "$work/bars.out")"
done

echo "$checks checks"
