# longhaul-path: commands at both ends, its statistics, its names; and nothing of it is left, however it ends.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

path=$LH_BUILD_DIR/bench/longhaul-path
name=lhtest$$

status=0
timeout 20 "$path" -- true >"$work/path.json" 2>"$work/path.err" || status=$?
cat "$work/path.err"
[ "$status" -ne 77 ] || exit 77
[ "$status" -eq 0 ] || fail "it ended with $status"
grep -q '"left_to_right"' "$work/path.json" || fail "no statistics"

say "what it does not understand"
for wrong in "--rate 0" "--rate fast" "--queue -1bdp" "--loss 2" "--mtu 100" "--at 5s" "--no-such" \
    "--seed -1" ":::"; do
    status=0
    # shellcheck disable=SC2086  # an option and its value
    timeout 20 "$path" $wrong -- true >/dev/null 2>"$work/path.err" || status=$?
    [ "$status" -eq 2 ] || fail "$wrong: it ended with $status"
    [ -s "$work/path.err" ] || fail "$wrong: without a word"
done
status=0
timeout 20 "$path" --at 1s,1Gbit -- true 2>/dev/null || status=$?
[ "$status" -eq 2 ] || fail "a change without a rate: it ended with $status"

say "commands, and their exit status"
status=0
timeout 20 "$path" --json "$work/path.json" -- sh -c 'exit 7' ::: sleep 60 2>"$work/path.err" ||
    status=$?
[ "$status" -eq 7 ] || fail "it ended with $status"
timeout 60 "$path" --rate 500Mbit --delay 1ms --json "$work/path.json" -- \
    "$LONGHAUL" perf 10.99.0.2 --size 256KiB --iterations 20 --rate 400Mbit --insecure \
    ::: "$LONGHAUL" perf --server --once --insecure \
    >"$work/perf.out" 2>&1 || fail "perf ended with $?: $(cat "$work/perf.out")"
python3 - "$work/path.json" <<'END' || fail "the statistics are not those of 22 messages of 256 KiB"
import json, sys
there = json.load(open(sys.argv[1], encoding="ascii"))["left_to_right"]
fates = sum(there[key] for key in ("delivered_packets", "queue_dropped_packets", "lost_packets"))
right = there["delivered_bytes"] >= 22 * (256 << 10) and there["rate_bps"] == 500000000
sys.exit(not right or fates != there["packets"])
END

# Until the named path is ready, or gone.
start_path()
{
    rm -f "$work/named"
    "$path" --name "$name" --json "$work/path.json" >"$work/named" 2>&1 &
    named=$!
    for _ in $(seq 200); do
        grep -q '^ready' "$work/named" && return
        sleep 0.05
    done
    fail "no named path: $(cat "$work/named")"
}

wait_gone()
{
    for _ in $(seq 200); do
        [ -e "/run/netns/$name-left" ] || [ -e "/run/netns/$name-right" ] || return 0
        sleep 0.05
    done
    fail "$1: names are left"
}

# A system without the right to mount has no names.
timeout 20 "$path" --name "$name" -- true >"$work/path.out" 2>&1 || { echo "no names here"; exit 0; }
wait_gone "the end of a command"

for signal in TERM INT KILL; do
    say "ended by SIG$signal"
    start_path
    [ -e "/run/netns/$name-left" ] && [ -e "/run/netns/$name-right" ] || fail "there are no names"
    status=0
    "$path" --name "$name" -- true >/dev/null 2>"$work/path.err" || status=$?
    [ "$status" -eq 1 ] || fail "the same name twice: $status"
    [ -e "/run/netns/$name-left" ] || fail "the second took the names of the first"
    kill -s "$signal" "$named"
    wait "$named" 2>/dev/null || true
    wait_gone "SIG$signal"
done

say "where 'ip netns add' mounts the folder of names after it"
cat >"$work/beside" <<'END'
mount -t tmpfs none /run && mkdir /run/netns || exit 77
"$1" --name "$2" >"$3" 2>&1 &
for _ in $(seq 200); do
    grep -q '^ready' "$3" && break
    sleep 0.05
done
ip netns add "$2-other" || exit 77
kill $!
wait $!
ip netns delete "$2-other"
ls /run/netns
END
status=0
left=$(unshare --mount sh "$work/beside" "$path" "$name" "$work/named" 2>"$work/beside.err") || status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || fail "beside 'ip netns': $status: $(cat "$work/beside.err")"
[ -z "$left" ] || fail "beside 'ip netns': $left"

say "statistics while it runs"
start_path
rm -f "$work/path.json"
kill -s USR1 "$named"
for _ in $(seq 200); do
    [ -s "$work/path.json" ] && break
    sleep 0.05
done
grep -q '"right_to_left"' "$work/path.json" || fail "no statistics"
kill "$named"
wait "$named" || fail "it ended with $?"
echo "all well"
