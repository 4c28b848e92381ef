# Files of several sizes over a link with losses: every byte, the name, nothing left over.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

link=rtt=4ms,rate=1Gbit,loss=1e-2
mkdir "$work/in" "$work/out"

for bytes in 0 1 4194304 5242883; do
    say "a file of $bytes bytes over $link"
    make_file "$work/in/file.$bytes" "$bytes"
    start_recv recv "$work/out"
    send "$work/in/file.$bytes" "$where" --link "$link"
    [ "$status" -eq 0 ] || fail "send ended with $status"
    ended recv "$pid" 0 20
    cmp "$work/in/file.$bytes" "$work/out/file.$bytes" || fail "it is another file"
    expect_line "$work/send.out" "sent file.$bytes: "
    read -r -t 10 -u "$feed" line
    [ "${line##* }" = "$(sed -n 's/^sent .* //p' "$work/send.out")" ] ||
        fail "the sides print different digests"
done
only "$work/out" file.0 file.1 file.4194304 file.5242883

say "one receiver takes several with --keep, and SIGTERM ends it with 143"
make_file "$work/in/a name with blanks" 100000
make_file "$work/in/-dash" 10
start_recv keep "$work/out" --keep
send --link "$link" -- "$work/in/a name with blanks" "$where"
[ "$status" -eq 0 ] || fail "send ended with $status"
send "$work/in/-dash" "$where"
[ "$status" -eq 0 ] || fail "send ended with $status"
kill -TERM "$pid"
ended keep "$pid" 143 10
cmp "$work/in/a name with blanks" "$work/out/a name with blanks" || fail "it is another file"
cmp "$work/in/-dash" "$work/out/-dash" || fail "it is another file"

say "the receiver's scheme is used, each there is"
for scheme in sr-nack sr-rto; do
    rm -f "$work/out/file.5242883"
    start_recv recv "$work/out" --reliability "$scheme"
    send "$work/in/file.5242883" "$where" --link "$link"
    [ "$status" -eq 0 ] || fail "send ended with $status with $scheme"
    ended recv "$pid" 0 20
    cmp "$work/in/file.5242883" "$work/out/file.5242883" || fail "it is another file with $scheme"
done

say "a file that exists is refused by both sides, and stays"
echo before >"$work/out/file.1"
start_recv recv "$work/out"
send "$work/in/file.1" "$where"
[ "$status" -eq 1 ] || fail "send ended with $status"
expect_line "$work/send.err" "a file of that name exists"
ended recv "$pid" 1 10
[ "$(cat "$work/out/file.1")" = before ] || fail "it was changed"

say "with --force it is replaced"
start_recv recv "$work/out" --force
send "$work/in/file.1" "$where"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 10
cmp "$work/in/file.1" "$work/out/file.1" || fail "it is another file"

say "names that begin with a dot are refused, by both sides with the way out; --dotfiles takes them"
make_file "$work/in/.profile" 1000
start_recv recv "$work/out"
send "$work/in/.profile" "$where"
[ "$status" -eq 1 ] || fail "send ended with $status"
expect_line "$work/send.err" 'begins with a dot (recv --dotfiles'
ended recv "$pid" 1 10
expect_line "$work/recv.err" '.profile: name begins with a dot (recv --dotfiles'
[ -z "$(find "$work/out" -name '.*')" ] || fail "something was written"
start_recv recv "$work/out" --dotfiles
send "$work/in/.profile" "$where"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 10
cmp "$work/in/.profile" "$work/out/.profile" || fail "it is another file"

say "without --output the folder is named once, before the first file; with it, it is not"
! grep -q 'writing files to' "$work/recv.err" || fail "recv said: $(cat "$work/recv.err")"
mkdir "$work/here"
cd "$work/here" || exit 1
start recv recv --listen '[::1]:0' --keep
until grep -qF "writing files to $work/here (--output" "$work/recv.err"; do
    kill -0 "$pid" 2>/dev/null || fail "the folder was not named"
    sleep 0.02
done
for name in file.1 file.4194304; do
    send "$work/in/$name" "$where" --wait 60s
    [ "$status" -eq 0 ] || fail "send ended with $status"
    cmp "$work/in/$name" "$work/here/$name" || fail "it is another file"
done
kill -TERM "$pid"
ended recv "$pid" 143 10
[ "$(grep -c 'writing files to' "$work/recv.err")" -eq 1 ] || fail "the folder was named again"

say "the digest is that of xxhsum -H2"
if command -v xxhsum >/dev/null; then
    expect_line "$work/send.out" "$(xxhsum -H2 "$work/in/file.1" | cut -d' ' -f1)"
else
    echo "   (no xxhsum here: not compared)"
fi
echo "all well"
