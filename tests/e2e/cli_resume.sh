# kill -9 of either side at random moments: never a partial file under the final name, and the same command
# goes on.
# SEED=n repeats a run's choices.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

RANDOM=${SEED:=$$}
echo "SEED=$SEED"
bytes=$((48 * 1024 * 1024 + 12345))
mkdir "$work/out"
make_file "$work/big" $bytes

# Slow enough that a kill falls into the transfer, also on a slow host: 2 s in all.
rate=200Mbit
options="--peer-timeout 1s"

# When the receiver last began to write, or resumed: it writes the head of this file anew then.
begun() {
    stat -c %y "$work/out/.big.longhaul-resume" 2>/dev/null
}

# start_sender ARGUMENT...: in the background; sets sender. Returns when the receiver has begun: a sender that
# is killed before it made its offer is a stranger, and no reason for a receiver to end.
start_sender() {
    local before
    before=$(begun)
    # shellcheck disable=SC2086  # options are words
    "$LONGHAUL" send "$work/big" "$where" --rate $rate $options "$@" \
        >"$work/sender.out" 2>"$work/sender.err" &
    sender=$!
    while [ "$(begun)" = "$before" ] && [ ! -e "$work/out/big" ]; do
        kill -0 "$sender" 2>/dev/null || fail "the transfer did not begin"
        sleep 0.02
    done
}

moment() {
    printf '0.%03d' $((RANDOM % 700))
}

say "the sender is killed: the receiver ends with 3 in bounded time, and nothing has the final name"
# shellcheck disable=SC2086
start_recv recv "$work/out" $options
start_sender
sleep "$(moment)"
kill -9 "$sender"
wait "$sender" 2>/dev/null
ended recv "$pid" 3 30
[ ! -e "$work/out/big" ] || fail "a part stands under the final name"

say "the receiver is killed: the sender ends with 3 in bounded time; the same command goes on"
# shellcheck disable=SC2086
start_recv recv "$work/out" $options
start_sender
await_blocks 3
kill -9 "$pid"
wait "$pid" 2>/dev/null
ended send "$sender" 3 30
expect_line "$work/sender.err" '(the same command continues)'
[ ! -e "$work/out/big" ] || fail "a part stands under the final name"
start_recv recv "$work/out"
send "$work/big" "$where"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 20
cmp "$work/big" "$work/out/big" || fail "it is another file"
expect_line "$work/send.out" "resumed)"
only "$work/out" big
rm "$work/out/big"

# 0.8 s in all: a kill may come after the end.
rate=500Mbit
for round in 1 2 3 4 5 6; do
    victim=$((RANDOM % 2))
    say "round $round: kill -9 of $([ $victim -eq 0 ] && echo the sender || echo the receiver)"
    # shellcheck disable=SC2086
    start_recv recv "$work/out" $options
    start_sender
    sleep "$(moment)"
    if [ $victim -eq 0 ]; then
        kill -9 "$sender" 2>/dev/null
        wait "$sender" 2>/dev/null
        timeout 30 tail -s 0.05 --pid="$pid" -f /dev/null || fail "the receiver did not end"
    else
        kill -9 "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
        timeout 30 tail -s 0.05 --pid="$sender" -f /dev/null || fail "the sender did not end"
    fi
    wait
    if [ -e "$work/out/big" ]; then
        cmp "$work/big" "$work/out/big" || fail "what stands under the final name is not the file"
        rm "$work/out/big"
    fi
done

rate=200Mbit
say "names as long as they may be, of 80 Chinese characters and of 255 bytes, also after a kill of both sides"
long_name=$(printf '\346\274\242%.0s' {1..80})
for name in "$long_name" "$long_name$(printf 'x%.0s' {1..15})"; do
    rm -f "$work"/out/* "$work"/out/.[!.]*
    mv "$work/big" "$work/$name"
    # shellcheck disable=SC2086
    start_recv recv "$work/out" $options
    # shellcheck disable=SC2086
    "$LONGHAUL" send "$work/$name" "$where" --rate $rate $options >"$work/sender.out" 2>"$work/sender.err" &
    sender=$!
    until [ "$(find "$work/out" -name '*.longhaul-resume' -size +70c | wc -l)" -eq 1 ]; do
        kill -0 "$sender" 2>/dev/null || fail "the transfer ended before it could be disturbed"
        sleep 0.02
    done
    kill -9 "$pid" "$sender"
    wait "$pid" "$sender" 2>/dev/null
    [ "$(find "$work/out" -name '.*.longhaul-partial' | wc -l)" -eq 1 ] || fail "no unfinished file"
    start_recv recv "$work/out"
    send "$work/$name" "$where"
    [ "$status" -eq 0 ] || fail "send ended with $status"
    ended recv "$pid" 0 20
    expect_line "$work/send.out" "resumed)"
    cmp "$work/$name" "$work/out/$name" || fail "it is another file"
    only "$work/out" "$name"
    mv "$work/$name" "$work/big"
done
rm "$work/out/$name"

say "what was damaged meanwhile is sent again; another file is not continued"
start_recv recv "$work/out" $options
start_sender
await_blocks 3
kill -9 "$sender"
wait "$sender" 2>/dev/null
ended recv "$pid" 3 30
printf 'damage' | dd of="$work/out/.big.longhaul-partial" bs=1 seek=5000000 conv=notrunc status=none
cp "$work/big" "$work/other.big"
printf 'changed' | dd of="$work/other.big" bs=1 seek=1000 conv=notrunc status=none
mkdir "$work/other" && mv "$work/other.big" "$work/other/big"
cp -r "$work/out" "$work/out2"
for source in "$work/big:$work/out" "$work/other/big:$work/out2"; do
    start_recv recv "${source#*:}"
    send "${source%:*}" "$where"
    [ "$status" -eq 0 ] || fail "send ended with $status"
    ended recv "$pid" 0 20
    cmp "${source%:*}" "${source#*:}/big" || fail "it is another file"
    only "${source#*:}" big
done
echo "all well"
