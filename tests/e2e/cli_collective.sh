#!/bin/bash
# longhaul collective under longhaul run: every collective, its table, its JSON, and what goes wrong at the
# start.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

# run ARGUMENT...: longhaul run, in the foreground; sets status, and leaves run.out and run.err.
run() {
    status=0
    timeout 120 "$LONGHAUL" run "$@" >"$work/run.out" 2>"$work/run.err" || status=$?
}

# expect_status STATUS
expect_status() {
    [ "$status" -eq "$1" ] || fail "exit status $status, not $1"
}

# rank NAME RANK SIZE PORT [VARIABLE=VALUE...]: a rank by hand, in the background; its process id in pid.
rank() {
    local name=$1 number=$2 size=$3 port=$4
    shift 4
    env RANK="$number" WORLD_SIZE="$size" MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" "$@" \
        "$LONGHAUL" collective allreduce -b 4KiB --iterations 2 --wait 3s \
        >"$work/$name.out" 2>"$work/$name.err" &
    pid=$!
}

# free_port: sets port, and holds it for nobody.
free_port() {
    port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
}

# one_line NAME: a message of one line, and no row.
one_line() {
    [ "$(lines_of "$work/$1.err")" -eq 1 ] || fail "$1: not one line: $(cat "$work/$1.err")"
    ! grep -q '^ *4096' "$work/$1.out" || fail "$1 printed a result"
}

say "every collective, checked"
for name in allreduce reduce broadcast allgather reduce-scatter gather scatter alltoall barrier gatherv \
    scatterv alltoallv; do
    sizes=(-b 30000 -e 480000 -f 4)
    rows=3
    if [ "$name" = barrier ]; then # has no data
        sizes=()
        rows=1
    fi
    run -n 3 -- "$LONGHAUL" collective "$name" "${sizes[@]}" --iterations 2 --warmup 1
    expect_status 0
    [ "$(grep -c ' 0$' "$work/run.out")" -eq "$rows" ] || fail "$name: not $rows rows without a wrong element"
done

say "measured paths"
run -n 3 -- "$LONGHAUL" collective allreduce -b 300000 --iterations 2 --measure
expect_status 0
grep -q ' 0$' "$work/run.out" || fail "no right row after measuring"
grep -q '^ measured: order of ranks 0 1 2; slowest path . to .: .*bit/s' "$work/run.out" ||
    fail "no measured paths"
run -n 4 --sites 2 --link rtt=5ms,rate=1Gbit -- "$LONGHAUL" collective broadcast -b 300000 --iterations 2 \
    --measure
expect_status 0
grep -q ' 0$' "$work/run.out" || fail "no right row after measuring two sites"
grep -q 'order of ranks . . | . .;' "$work/run.out" || fail "not two sites"

say "types and reductions, with losses between sites"
for type in f32 bf16 i64 u8; do
    run -n 4 --sites 2 --link rtt=2ms,loss=1e-2 -- "$LONGHAUL" collective allreduce -b 200000 --iterations 2 \
        --type "$type" --op avg --reliability sr-nack --reliability-across ec:mds,k=8,m=4
    expect_status 0
    expect_line "$work/run.out" "ranks 4, sites 2, reliability sr-nack, between sites ec:mds,k=8,m=4"
    grep -q " $type *avg .* 0$" "$work/run.out" || fail "$type: no right row"
done

say "JSON"
run -n 2 -- "$LONGHAUL" collective allreduce -b 1KiB -e 4KiB --schedule ring --iterations 3 \
    --json "$work/c.json"
expect_status 0
python3 - "$work/c.json" <<'P' || fail "JSON: $(cat "$work/c.json")"
import json, sys
rows = json.load(open(sys.argv[1]))
assert [row["size_bytes"] for row in rows] == [1024, 2048, 4096]
for row in rows:
    assert row["name"] == "allreduce" and row["schedule"] == "ring"
    assert row["ranks"] == 2 and row["wrong"] == 0
    assert 0 < row["time_p50_s"] <= row["time_p99_s"] and row["time_mean_s"] > 0
    assert abs(row["algbw_Bps"] - row["size_bytes"] / row["time_mean_s"]) < 1e-6 * row["algbw_Bps"]
    assert row["busbw_Bps"] == row["algbw_Bps"]
    assert row["sites"] == 1 and row["reliability"] == row["reliability_across"] == "auto"
P
run -n 2 --sites 2 -- "$LONGHAUL" collective barrier --iterations 1 --reliability sr-nack \
    --reliability-across ec:mds --json -
expect_status 0
expect_line "$work/run.out" '"sites": 2,'
expect_line "$work/run.out" '"reliability": "sr-nack",'
expect_line "$work/run.out" '"reliability_across": "ec:mds",'
run -n 2 -- "$LONGHAUL" collective barrier --iterations 1 --reliability-across ec:mds
expect_status 0
expect_line "$work/run.err" "--reliability-across ec:mds: without effect, no rank names its site"

say "a run that fails leaves the JSON file of an earlier one"
echo kept >"$work/kept.json"
run -n 2 -- "$LONGHAUL" collective allreduce -b 4KiB --device udp:192.0.2.1 --json "$work/kept.json"
expect_status 1
[ "$(cat "$work/kept.json")" = kept ] || fail "it was replaced by: $(cat "$work/kept.json")"
[ -z "$(compgen -G "$work/*.part")" ] || fail "a part is left"
free_port
RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$LONGHAUL" collective barrier --wait 50s \
    --json "$work/kept.json" >"$work/waits.out" 2>&1 &
waits=$!
until compgen -G "$work/kept.json.*.part" >"$work/part"; do
    kill -0 $waits 2>/dev/null || fail "it did not wait: $(cat "$work/waits.out")"
    sleep 0.01
done
kill -TERM $waits
wait $waits && fail "a signal did not end it"
[ "$(cat "$work/kept.json")" = kept ] || fail "it was replaced by: $(cat "$work/kept.json")"
[ -z "$(compgen -G "$work/*.part")" ] || fail "a part is left by one that a signal ended"

say "one element"
run -n 2 -- "$LONGHAUL" collective allreduce -b 4 --iterations 1 --root 0
expect_status 2
run -n 2 -- "$LONGHAUL" collective allreduce -b 4 --iterations 1
expect_status 0
grep -q '^ *4 *1 *f32 .* 0$' "$work/run.out" || fail "no row of one element"
run -n 2 -- "$LONGHAUL" collective allreduce -b 3 --iterations 1
expect_status 2
expect_line "$work/run.err" "--begin 3: less than an element (at least 4)"

say "a bounded scheme between sites"
for type in f32 bf16; do
    run -n 4 --sites 2 --link rtt=2ms,rate=1Gbit,loss=1e-2 -- "$LONGHAUL" collective allreduce -b 1MiB \
        --type $type --iterations 5 --reliability-across bounded --json "$work/bounded.json"
    expect_status 0
    expect_line "$work/run.out" "missing[%]"
    python3 - "$work/bounded.json" <<'P' || fail "JSON: $(cat "$work/bounded.json")"
import json, sys
row, = json.load(open(sys.argv[1]))
assert row["wrong"] == 0 and 0 < row["missing_share"] < 1, row
P
done

say "a JSON file that cannot be written is found before ranks are waited for"
status=0
env RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 "$LONGHAUL" collective allreduce --wait 50s \
    --json "$work/none/c.json" 2>"$work/path.err" || status=$?
expect_status 1
none=$work/none
wanted="longhaul collective (rank 0): --json $none/c.json: No such file or directory"
wanted="$wanted (create the folder $none first)"
[ "$(cat "$work/path.err")" = "$wanted" ] || fail "another message"

say "interfaces can be chosen under longhaul run"
LONGHAUL_SOCKET_IFNAME=none run -n 2 -- "$LONGHAUL" collective barrier
expect_status 1
expect_line "$work/run.err" \
    'LONGHAUL_SOCKET_IFNAME: "none" matches no interface that is up, has a carrier and an address (ip address'
LONGHAUL_SOCKET_IFNAME=lo run -n 2 -- "$LONGHAUL" collective barrier --iterations 1
expect_status 0

say "one rank"
run -n 1 -- "$LONGHAUL" collective allreduce -b 4KiB --iterations 2
expect_status 0

say "without a launcher it says how to start it"
status=0
env -u RANK -u OMPI_COMM_WORLD_RANK -u PMI_RANK -u SLURM_PROCID -u PMIX_RANK \
    "$LONGHAUL" collective allreduce 2>"$work/alone.err" || status=$?
expect_status 2
expect_line "$work/alone.err" "longhaul run -n 4 -- longhaul collective allreduce"

say "usage errors"
for case in "xyz|xyz: unknown collective (allreduce," \
    "allreduce --type f31|--type f31: unknown type (f32," \
    "allreduce --op mean|--op mean: unknown reduction (sum," \
    "allreduce --schedule x|--schedule x: unknown schedule of allreduce (" \
    "allreduce -b 4KiB -e 1KiB|--end: below --begin" \
    "allreduce --root 0|--root: allreduce has no root (reduce," \
    "broadcast --op sum|--op: broadcast reduces nothing (allreduce," \
    "barrier -b 8MiB|--begin: a barrier has no data" \
    "barrier --type f32|--type: a barrier has no data" \
    "alltoall --reliability bounded:deadline=9ms|alltoall: unsupported with bounded" \
    "allreduce --op max --reliability-across bounded|--op max, --type f32: unsupported with bounded"; do
    status=0
    # shellcheck disable=SC2086  # words
    "$LONGHAUL" collective ${case%%|*} 2>"$work/misused.err" || status=$?
    expect_status 2
    expect_line "$work/misused.err" "${case#*|}"
done
run -n 2 -- "$LONGHAUL" collective broadcast --root 2
expect_status 2
expect_line "$work/run.err" "--root 2: out of range (0 to 1)"
run -n 3 -- "$LONGHAUL" collective alltoall -b 8
expect_status 2
expect_line "$work/run.err" "--begin 8: less than an element for each rank (at least 12)"

say "more ranks than a group has, and no host of rank 0, are found at once"
status=0
env RANK=0 WORLD_SIZE=300 MASTER_ADDR=127.0.0.1 "$LONGHAUL" collective allreduce -b 4KiB --wait 50s \
    2>"$work/many.err" || status=$?
expect_status 2
expect_line "$work/many.err" "WORLD_SIZE: 300 is out of range (1 to 256)"
status=0
env -u MASTER_ADDR RANK=0 WORLD_SIZE=2 "$LONGHAUL" collective allreduce --wait 50s 2>"$work/host.err" ||
    status=$?
expect_status 2
expect_line "$work/host.err" "MASTER_ADDR: not set (set it to the host of rank 0"

say "a device that there is not"
run -n 1 -- "$LONGHAUL" collective allreduce -b 4KiB --device foo:bar
expect_status 2
expect_line "$work/run.err" "udp:"

say "a missing rank is named at each"
free_port
rank zero 0 3 "$port"
zero=$pid
rank two 2 3 "$port"
two=$pid
ended "rank 0" "$zero" 1 30
ended "rank 2" "$two" 1 30
for name in zero two; do
    one_line "$name"
    expect_line "$work/$name.err" "rank 1 of 3: not joined within 3 s"
done

say "a rank that comes twice"
free_port
rank zero 0 3 "$port"
zero=$pid
rank one 1 3 "$port"
one=$pid
rank again 1 3 "$port"
again=$pid
ended "rank 0" "$zero" 1 30
ended "rank 1" "$one" 1 30
ended "rank 1 again" "$again" 1 30
for name in zero one again; do one_line "$name"; done
expect_line "$work/zero.err" "rank 2 of 3: not joined"
cat "$work/one.err" "$work/again.err" >"$work/both.err"
expect_line "$work/both.err" "rank 1 joined twice"

say "a wrong secret"
free_port
rank zero 0 2 "$port" LONGHAUL_SECRET=the-secret-of-one
zero=$pid
rank one 1 2 "$port" LONGHAUL_SECRET=the-secret-of-two
one=$pid
ended "rank 1" "$one" 1 30
ended "rank 0" "$zero" 1 30
one_line one
one_line zero
expect_line "$work/one.err" "rank 0 at 127.0.0.1:$port: the remote side has another key"
expect_line "$work/zero.err" "rank 1 of 2: not joined within 3 s; refused 127.0.0.1:"
expect_line "$work/zero.err" ": the remote side has another key"

say "a port that is taken"
mkdir "$work/out"
start_recv taken "$work/out"
port=${where##*:}
RANK=0 WORLD_SIZE=2 MASTER_ADDR=::1 MASTER_PORT=$port "$LONGHAUL" collective allreduce --wait 3s \
    2>"$work/zero.err" && fail "no error"
one_line zero
expect_line "$work/zero.err" "Address already in use (set MASTER_PORT to a free port)"
RANK=1 WORLD_SIZE=2 MASTER_ADDR=::1 MASTER_PORT=$port "$LONGHAUL" collective allreduce --wait 3s \
    2>"$work/one.err" && fail "no error"
one_line one
kill "$pid"

say "variables of SLURM"
for number in 0 1; do
    env SLURM_PROCID=$number SLURM_NTASKS=2 SLURM_JOB_ID=$$ SLURM_STEP_NODELIST='localhost,node[2-4]' \
        "$LONGHAUL" collective allreduce -b 4KiB --iterations 2 \
        >"$work/slurm$number.out" 2>"$work/slurm$number.err" &
    slurm[number]=$!
done
for number in 0 1; do ended "rank $number" "${slurm[number]}" 0 30; done
grep -q '^ *4096 .* 0$' "$work/slurm0.out" || fail "no row"

say "a rank that is killed is an error with its number at the others"
cat >"$work/rank.sh" <<'R'
measure="$LONGHAUL collective allreduce -b 64KiB --iterations 100000 --peer-timeout 2s"
[ "$RANK" = 1 ] || exec $measure
$measure &
until [ -e "$WORK/go" ]; do sleep 0.05; done
kill -9 $!
sleep 60 # the others end by themselves
R
export LONGHAUL WORK=$work
(sleep 1; touch "$work/go") &
run -n 3 -- bash "$work/rank.sh"
expect_status 1
grep -qE "longhaul collective \(rank [02]\): .*rank 1" "$work/run.err" || fail "rank 1 is not named"

echo "$checks checks"
