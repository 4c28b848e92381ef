# Permissions and times of files cross the link; nobody else can read what is unfinished.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out"
umask 022
make_file "$work/file" 100000
make_file "$work/big" $((48 * 1024 * 1024))

# expect_attributes FILE MODE TIME
expect_attributes() {
    [ "$(stat -c %a "$1")" = "$2" ] || fail "its mode is $(stat -c %a "$1"), not $2"
    [ "$(stat -c %.9Y "$1")" = "$3" ] || fail "its time is $(stat -c %.9Y "$1"), not $3"
}

# transfer UMASK MODE WANTED
transfer() {
    say "a source of mode $2 under umask $1 arrives as $3, with its time"
    chmod "$2" "$work/file"
    touch -d '2001-02-03 04:05:06.789012345' "$work/file"
    umask "$1"
    start_recv recv "$work/out"
    umask 022
    send "$work/file" "$where"
    [ "$status" -eq 0 ] || fail "send ended with $status"
    ended recv "$pid" 0 20
    expect_attributes "$work/out/file" "$3" "$(stat -c %.9Y "$work/file")"
    ! grep -q 'not preserved' "$work/recv.err" || fail "recv said: $(cat "$work/recv.err")"
    rm -f "$work/out/file"
}

transfer 022 600 600
transfer 022 644 644
transfer 022 755 755
transfer 022 664 644
transfer 022 444 444
transfer 077 755 700
transfer 000 666 666
transfer 022 6755 755
transfer 022 1777 755

# expect_private: what is unfinished is.
expect_private() {
    local name
    for name in .big.longhaul-partial .big.longhaul-resume; do
        [ "$(stat -c %a "$work/out/$name")" = 600 ] || fail "$name has mode $(stat -c %a "$work/out/$name")"
    done
}

say "a partial file is its owner's, also while it is kept"
chmod 644 "$work/big"
start_recv recv "$work/out"
"$LONGHAUL" send "$work/big" "$where" --rate 100Mbit --window 4MiB >"$work/sender.out" 2>"$work/sender.err" &
sender=$!
await_blocks 2
expect_private
kill -9 "$pid"
wait "$pid" 2>/dev/null
ended send "$sender" 3 30
expect_private

say "one that an older version left readable for others is continued, and is not readable any more"
chmod 644 "$work/out/.big.longhaul-partial" "$work/out/.big.longhaul-resume"
records=$(stat -c %s "$work/out/.big.longhaul-resume")
start_recv recv "$work/out"
"$LONGHAUL" send "$work/big" "$where" --rate 100Mbit --window 4MiB >"$work/sender.out" 2>"$work/sender.err" &
sender=$!
until [ "$(stat -c %s "$work/out/.big.longhaul-resume" 2>/dev/null || echo 0)" -gt "$records" ]; do
    kill -0 "$sender" 2>/dev/null || fail "the transfer ended before it could be looked at"
    sleep 0.02
done
expect_private
ended send "$sender" 0 30
ended recv "$pid" 0 30
expect_line "$work/sender.out" 'resumed)'
cmp "$work/big" "$work/out/big" || fail "it is another file"
expect_attributes "$work/out/big" 644 "$(stat -c %.9Y "$work/big")"
only "$work/out" big
echo "all well"
