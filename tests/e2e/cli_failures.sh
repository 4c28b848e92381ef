# What can go wrong with files: each time a clear line, the right status, and nothing under the final name.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out"
make_file "$work/big" $((64 * 1024 * 1024))

# cannot TEXT FILE: longhaul send and recv say so, and end with 1.
cannot() {
    start_recv recv "$work/out"
    send "$2" "$where"
    [ "$status" -eq 1 ] || fail "send $2 ended with $status"
    expect_line "$work/send.err" "$2: $1"
    ended recv "$pid" 1 20
    expect_line "$work/recv.err" "${2##*/}: at the sender: $1"
    nothing "$work/out"
}

say "things that are no plain file"
mkfifo "$work/pipe"
cannot 'is a FIFO' "$work/pipe"
cannot 'is a device' /dev/zero
cannot 'has no known size' /proc/version
if [ "$(id -u)" -ne 0 ]; then
    touch "$work/secret" && chmod 000 "$work/secret"
    cannot 'Permission denied' "$work/secret"
fi

say "a file that is not there is found before the connection"
send "$work/missing" '[::1]:1'
[ "$status" -eq 1 ] || fail "send ended with $status"
expect_line "$work/send.err" "$work/missing cannot be opened: No such file"

say "a link alone is the file that it leads to; beside others it is a link"
ln -s file "$work/link"
echo content >"$work/file"
start_recv recv "$work/out"
send "$work/link" "$where"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 20
[ ! -L "$work/out/link" ] && cmp "$work/file" "$work/out/link" || fail "it is another file"
rm "$work/out/link"
start_recv recv "$work/out"
send "$work/link" "$work/file" "$where"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 20
[ "$(readlink "$work/out/link")" = file ] || fail "it is no link"
rm "$work/out"/*

say "nobody listens"
send "$work/big" '[::1]:1' --wait 2s
[ "$status" -eq 1 ] || fail "send ended with $status"
expect_line "$work/send.err" '[::1]:1'

say "the receiver has no folder to write to"
status=0
"$LONGHAUL" recv --listen '[::1]:0' --output "$work/missing" >"$work/recv.out" 2>"$work/recv.err" || status=$?
[ "$status" -eq 1 ] || fail "recv ended with $status"
expect_line "$work/recv.err" "$work/missing"

# start_both ARGUMENT...: a transfer well under way, most of it not read yet (the window is small); sets
# pid and sender.
start_both() {
    start_recv recv "$work/out" "$@"
    "$LONGHAUL" send "$work/big" "$where" --rate 400Mbit --window 4MiB \
        >"$work/sender.out" 2>"$work/sender.err" &
    sender=$!
    await_blocks 1
}

say "the file becomes shorter while it is sent: both sides say so"
cp "$work/big" "$work/kept"
start_both
truncate -s 1000 "$work/big"
ended send "$sender" 1 30
ended recv "$pid" 1 30
expect_line "$work/sender.err" 'shrank'
expect_line "$work/recv.err" 'shrank'
nothing "$work/out"
cp "$work/kept" "$work/big"

say "the file is written to while it is sent: both sides say so"
start_both
printf x | dd of="$work/big" bs=1 seek=100 conv=notrunc status=none
ended send "$sender" 1 30
ended recv "$pid" 1 30
expect_line "$work/sender.err" 'changed while'
expect_line "$work/recv.err" 'changed while'
nothing "$work/out"

say "a file that is deleted while it is sent still arrives whole"
cp "$work/big" "$work/kept"
start_both
rm "$work/big"
ended send "$sender" 0 30
ended recv "$pid" 0 30
cmp "$work/kept" "$work/out/big" || fail "it is another file"
rm "$work/out/big"
cp "$work/kept" "$work/big"

say "a receiver that waits ends at once at SIGINT, with 130"
start_recv recv "$work/out"
kill -INT "$pid"
ended recv "$pid" 130 5

say "a file that appears under the name meanwhile is not replaced"
start_both
echo mine >"$work/out/big"
ended send "$sender" 1 30
ended recv "$pid" 1 30
expect_line "$work/sender.err" 'was created meanwhile'
[ "$(cat "$work/out/big")" = mine ] || fail "it was replaced"
only "$work/out" big
rm "$work/out/big"

say "two transfers of one name at a time: the second is refused"
start_both
first=$pid first_sender=$sender
start_recv second "$work/out"
send "$work/big" "$where"
[ "$status" -eq 1 ] || fail "the second send ended with $status"
expect_line "$work/send.err" 'another transfer'
ended second "$pid" 1 10
ended send "$first_sender" 0 30
ended recv "$first" 0 30
cmp "$work/big" "$work/out/big" || fail "it is another file"
rm "$work/out/big"

say "more than the size limit of files: refused, not killed"
(ulimit -f 1024 && exec "$LONGHAUL" recv --listen '[::1]:0' --output "$work/out") \
    >"$work/limit.out" 2>"$work/limit.err" &
pid=$!
until grep -q '^listening on ' "$work/limit.out"; do
    kill -0 $pid || fail "it did not listen"
    sleep 0.02
done
send "$work/big" "$(sed 's/listening on //' "$work/limit.out")"
[ "$status" -eq 1 ] || fail "send ended with $status"
expect_line "$work/send.err" 'File too large'
ended recv $pid 1 20
nothing "$work/out"
echo "all well"
