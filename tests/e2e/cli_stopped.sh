# A transfer that a signal stops: what arrived is kept, and the same command goes on.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out"
make_file "$work/big" $((48 * 1024 * 1024))

# start_both ARGUMENT...: a transfer with blocks there and most of it not; sets pid and sender.
start_both() {
    start_recv recv "$work/out" "$@"
    "$LONGHAUL" send "$work/big" "$where" --rate 100Mbit --window 4MiB \
        >"$work/sender.out" 2>"$work/sender.err" &
    sender=$!
    await_blocks 2
}

# expect_words FILE PATTERN: a line of it, and no other.
expect_words() {
    [ "$(lines_of "$1")" -eq 1 ] ||
        fail "$(basename "$1") has not one line: $(cat "$1")"
    grep -q "$2" "$1" || fail "\"$2\" is not in $(basename "$1"): $(cat "$1")"
}

kept='kept [0-9.]*MiB of 48MiB (the same command continues)'

# continues ARGUMENT...: recv with these arguments and send go on where the last transfer was.
continues() {
    only "$work/out" .big.longhaul-partial .big.longhaul-resume
    [ "$(stat -c %s "$work/out/.big.longhaul-partial")" -ge $((8 * 1024 * 1024)) ] ||
        fail "too little was kept"
    start_recv again "$work/out" "$@"
    send "$work/big" "$where"
    [ "$status" -eq 0 ] || fail "send ended with $status"
    ended again "$pid" 0 20
    expect_line "$work/send.out" 'resumed)'
    cmp "$work/big" "$work/out/big" || fail "it is another file"
    only "$work/out" big
    rm "$work/out/big"
}

for signal in INT:130 TERM:143 HUP:129; do
    say "SIG${signal%:*} at the sender: ${signal#*:}; the receiver ends with 3, and says what is kept"
    start_both
    kill "-${signal%:*}" "$sender"
    ended send "$sender" "${signal#*:}" 15
    ended recv "$pid" 3 15
    expect_words "$work/recv.err" "the sender closed the connection; $kept"
    expect_words "$work/sender.err" 'interrupted (the same command continues)'
    continues

    say "SIG${signal%:*} at the receiver: ${signal#*:}; the sender ends with 3, and both say what is kept"
    start_both
    kill "-${signal%:*}" "$pid"
    ended recv "$pid" "${signal#*:}" 15
    ended send "$sender" 3 15
    expect_words "$work/recv.err" "interrupted by the user of the receiver; $kept"
    expect_words "$work/sender.err" "interrupted by the user of the receiver; $kept"
    continues
done

say "a receiver with --keep goes on, and takes the rest when the sender comes back"
start_both --keep
kill -INT "$sender"
ended send "$sender" 130 15
send "$work/big" "$where" --wait 30s
[ "$status" -eq 0 ] || fail "send ended with $status"
expect_line "$work/send.out" 'resumed)'
cmp "$work/big" "$work/out/big" || fail "it is another file"
kill -INT "$pid"
ended recv "$pid" 130 10
only "$work/out" big
rm "$work/out/big"

say "a receiver with --keep is stopped: it keeps, too"
start_both --keep
kill -TERM "$pid"
ended recv "$pid" 143 15
ended send "$sender" 3 15
continues

say "a sender that is gone without a word: the receiver keeps what came"
start_both --peer-timeout 1s
kill -9 "$sender"
ended recv "$pid" 3 30
expect_words "$work/recv.err" "$kept"
continues

say "SIGINT at a sender with all of the file in flight, a minute of it: it is not waited for"
start_recv recv "$work/out"
"$LONGHAUL" send "$work/big" "$where" --rate 10Mbit >"$work/sender.out" 2>"$work/sender.err" &
sender=$!
until [ -e "$work/out/.big.longhaul-resume" ]; do
    kill -0 "$sender" 2>/dev/null || fail "the transfer ended before it could be disturbed"
    sleep 0.02
done
kill -INT "$sender"
ended send "$sender" 130 20
ended recv "$pid" 3 20
expect_line "$work/recv.err" 'the sender closed the connection'
rm -f "$work/out/".big*
nothing "$work/out"
echo "all well"
