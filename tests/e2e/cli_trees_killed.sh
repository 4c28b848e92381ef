# Trees that are cut: kill -9 of either side at random moments, a full disk, files that change. No file stands
# under its name in part, and the same command completes the tree.
# SEED=n repeats a run's choices.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
command -v rsync >/dev/null || { echo "no rsync here: it is what trees are compared by"; exit 77; }

RANDOM=${SEED:=$$}
echo "SEED=$SEED"
umask 0
options="--peer-timeout 1s"
mkdir -p "$work/in/many/more" "$work/out"
python3 - "$work/in" <<'END'
import random, sys
random.seed(3)
for number in range(3000):
    with open(f"{sys.argv[1]}/many/{'more/' if number % 2 else ''}{number}", "wb") as file:
        file.write(random.randbytes(random.randrange(4000)))
with open(f"{sys.argv[1]}/large", "wb") as file:
    file.write(random.randbytes((70 << 20) + 12345))
END

# sender ARGUMENT...: in the background; sets sender.
start_sender() {
    # shellcheck disable=SC2086  # options are words
    "$LONGHAUL" send "$work/in" "$where" --rate 300Mbit $options "$@" \
        >"$work/sender.out" 2>"$work/sender.err" &
    sender=$!
}

# transfer_until CONDITION...: starts a receiver and a sender; returns in the midst, when it holds.
transfer_until() {
    # shellcheck disable=SC2086
    start_recv recv "$work/out" $options
    start_sender
    until "$@"; do
        kill -0 "$sender" 2>/dev/null || fail "the transfer ended before it could be disturbed"
        sleep 0.02
    done
}

# large_has N: so many blocks of the large file are durable.
large_has() {
    [ "$(stat -c %s "$work/out/in/.large.longhaul-resume" 2>/dev/null || echo 0)" -ge $((24 + 16 * $1)) ]
}

has_begun() {
    [ -e "$work/out/in/.large.longhaul-resume" ] || [ -e "$work/out/in/many/10" ]
}

# Every file under a final name is one of the sender's.
whole() {
    local different
    different=$(rsync -rnci --existing --exclude '*.longhaul-*' "$work/in/" "$work/out/in/" |
        grep '^>f') && fail "in part under its name: $different"
    return 0
}

same() {
    local different
    different=$(rsync -anic --delete "$work/in/" "$work/out/in/") || fail "rsync failed"
    [ -z "$different" ] || fail "rsync finds differences: $different"
    [ -z "$(find "$work/out" -name '*longhaul*')" ] || fail "something is left over"
}

for round in 1 2 3 4 5 6; do
    victim=$((RANDOM % 2))
    say "round $round: kill -9 of $([ $victim -eq 0 ] && echo the sender || echo the receiver)"
    # shellcheck disable=SC2086
    start_recv recv "$work/out" $options
    start_sender
    sleep "$(printf '%d.%03d' $((RANDOM % 2)) $((RANDOM % 1000)))"
    if [ $victim -eq 0 ]; then
        kill -9 "$sender" 2>/dev/null
        timeout 30 tail -s 0.05 --pid="$sender" -f /dev/null
        # Before it has begun, it is a stranger, for which no receiver ends: a note at most.
        grep -qv ': note: ' "$work/recv.err" || kill -TERM "$pid" 2>/dev/null
        timeout 30 tail -s 0.05 --pid="$pid" -f /dev/null || fail "the receiver did not end"
    else
        kill -9 "$pid" 2>/dev/null
        timeout 30 tail -s 0.05 --pid="$sender" -f /dev/null || fail "the sender did not end"
    fi
    wait
    [ ! -e "$work/out/in" ] || whole
done

say "the receiver is killed in the large file: 3, and the next run goes on in its middle"
rm -rf "$work/out"/*
transfer_until large_has 4
kill -9 "$pid"
wait "$pid" 2>/dev/null
ended send "$sender" 3 30
expect_line "$work/sender.err" "(the same command continues)"
whole
start_recv recv "$work/out"
send --json "$work/in" "$where"
[ "$status" -eq 0 ] || fail "send ended with $status: $(cat "$work/send.err")"
ended recv "$pid" 0 30
python3 - "$work/send.out" <<'END' || fail "it began at the start: $(tail -n 1 "$work/send.out")"
import json, sys
end = json.loads(open(sys.argv[1], encoding="utf-8").readlines()[-1])
sys.exit(end["event"] != "end" or end["spared_bytes"] < 4 << 22)
END
same

say "another file of that size is not continued"
rm "$work/out/in/large"
transfer_until large_has 2
kill -9 "$sender"
wait "$sender" 2>/dev/null
ended recv "$pid" 3 30
printf 'changed' | dd of="$work/in/large" bs=1 seek=1000 conv=notrunc status=none
start_recv recv "$work/out"
send "$work/in" "$where"
[ "$status" -eq 0 ] || fail "send ended with $status: $(cat "$work/send.err")"
ended recv "$pid" 0 30
same

say "SIGINT ends the sender with 130, the receiver with 3; what is there stays"
rm -rf "$work/out"/*
transfer_until has_begun
kill -INT "$sender"
ended send "$sender" 130 30
ended recv "$pid" 3 30
whole

rm -rf "$work/in/many"
for change in "echo more >>" "truncate -s 66M"; do
    say "a file that changes while it is sent ($change): a line, and 1; nothing has its name"
    rm -rf "$work/out"/*
    # shellcheck disable=SC2086
    start_recv recv "$work/out" $options
    start_sender --window 4MiB # what is read ahead is less than the file
    until [ "$(stat -c %s "$work/out/in/.large.longhaul-resume" 2>/dev/null || echo 0)" -ge $((24 + 16)) ]; do
        kill -0 "$sender" 2>/dev/null || fail "the transfer ended before it could be disturbed"
        sleep 0.02
    done
    eval "$change '$work/in/large'"
    ended send "$sender" 1 60
    ended recv "$pid" 1 60
    grep -qE 'in/large: (shrank|changed) while it was sent' "$work/sender.err" || fail "no line on it"
    grep -qE 'in/large: at the sender: (shrank|changed) while' "$work/recv.err" || fail "no line on it"
    only "$work/out" in
done

say "a disk that is full in the middle: both sides fail, what is there is whole"
rm -rf "$work/out" "$work/in"
mkdir "$work/in" "$work/out"
if ! mount -t tmpfs -o size=16m none "$work/out" 2>/dev/null; then
    echo "all well, but for the disk: mounting a tmpfs needs root"
    exit 0
fi
mounted=$work/out
for number in {1..24}; do
    make_file "$work/in/$number" 1000000
done
# shellcheck disable=SC2086
start_recv recv "$work/out" $options
start_sender
ended send "$sender" 1 30
ended recv "$pid" 1 30
expect_line "$work/sender.err" "No space left on device"
expect_line "$work/recv.err" "No space left on device"
whole
[ -z "$(find "$work/out" -name '*longhaul*')" ] || fail "something is left over"
echo "all well"
