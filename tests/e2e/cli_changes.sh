# A large file that the receiver has in another version: blocks that changed cross the link, no others, and
# the file is exact, also after an interruption.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

umask 022
cd "$work" || exit 1
mkdir out
mebi=$((1024 * 1024))
make_file first $((96 * mebi + 12345))

# change FILE OFFSET BYTES
change() {
    head -c "$3" /dev/urandom | dd of="$1" bs=64K seek="$2" oflag=seek_bytes conv=notrunc status=none
}

# arrives MOST: in, over the version in out, with at most so many bytes that cross the link.
arrives() {
    local crossed
    send --json in "$where"
    [ "$status" -eq 0 ] || fail "it ended with $status: $(cat send.err)"
    cmp in out/in || fail "it is another file"
    crossed=$(sed -n 's/.*"event":"end".*,"bytes":\([0-9]*\),.*/\1/p' send.out)
    [ "$crossed" -le "$1" ] || fail "$crossed bytes were sent, not $1"
    [ "$crossed" -gt 0 ] || [ "$1" -eq 0 ] || fail "nothing was sent"
}

# again: out has the first version again, and in begins as it.
again() {
    cp first out/in
    cp first in
    touch -d '2001-02-03' out/in
}

start_recv recv out --keep --force
receiver=$pid

say "bytes in three places: three blocks"
again
change in 0 1
change in $((50 * mebi)) 1000
change in $((96 * mebi - 5)) 5
arrives $((3 * 131072 + 12345))

say "nothing but the time: the last part of a block"
again
touch -d '2002-02-03' in
arrives 12345

say "a longer file: what is new"
again
make_file more 3000000
cat more >>in
arrives $((3000000 + 131072))

say "a shorter one, and one of less than 16 MiB"
again
truncate -s $((40 * mebi + 7)) in
arrives 7
again
truncate -s $((16 * mebi)) in
arrives $((16 * mebi))

say "an insertion at the start: all of it, exact"
again
cat more first >in
arrives $((100 * mebi))

say "a file with holes is sent as one"
again
rm in
truncate -s $((96 * mebi)) in
change in $((40 * mebi)) 100000
arrives $mebi
kill "$receiver"

say "interrupted: what is kept of the new file and the old one are both used"
again
make_file in $((48 * mebi))
dd if=first of=in bs=1M skip=48 seek=48 status=none
start_recv killed out --force
"$LONGHAUL" send in "$where" --rate 300Mbit >"$work/send.out" 2>"$work/send.err" &
sender=$!
until [ "$(stat -c %s out/.in.longhaul-resume 2>/dev/null || echo 0)" -ge 72 ]; do
    kill -0 "$sender" 2>/dev/null || fail "the transfer ended before it could be disturbed"
    sleep 0.02
done
kill -9 "$sender"
wait "$sender" 2>/dev/null
ended killed "$pid" 3 30
cmp first out/in || fail "the old file is not whole"
start_recv resumed out --force --keep
arrives $((48 * mebi - 12 * mebi + 12345))
only out in
kill "$pid"

say "a server that may not be read gives no hashes; one that may gives them"
again
change in 0 1
start hiding serve --write out --read "$work" --force --listen '[::1]:0'
send --json in "$where"
expect_line send.out "\"bytes\":$((96 * mebi + 12345)),"
cmp in out/in || fail "it is another file"
kill "$pid"
again
change in 0 1
start open serve --write out --read "$work/out" --force --listen '[::1]:0'
arrives $((131072 + 12345))

kill "$pid"
echo "all well"
