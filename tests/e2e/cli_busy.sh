# A receiver that is busy: who comes meanwhile learns it, and waits for longer than for an answer.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out"
make_file "$work/first" 3000000
make_file "$work/second" 100000
make_file "$work/third" 100000

say "two senders wait for one that takes 12 s; a third has less patience"
start_recv recv "$work/out" --keep --jobs 1
"$LONGHAUL" send "$work/first" "$where" --rate 2Mbit >"$work/first.out" 2>"$work/first.err" &
first=$!
until [ -e "$work/out/.first.longhaul-partial" ]; do
    kill -0 "$first" 2>/dev/null || fail "the first sender is gone"
    sleep 0.1
done
"$LONGHAUL" send "$work/second" "$where" >"$work/second.out" 2>"$work/second.err" &
second=$!
send "$work/third" "$where" --wait 2s
[ "$status" -eq 1 ] || fail "who does not want to wait ended with $status"
expect_line "$work/send.err" 'receiver busy, waiting'
expect_line "$work/send.err" 'is busy with another connection'
send "$work/third" "$where"
[ "$status" -eq 0 ] || fail "the third sender ended with $status"
ended first "$first" 0 60
ended second "$second" 0 60
expect_line "$work/second.err" 'receiver busy, waiting'
[ "$(lines_of "$work/second.err")" -eq 1 ] || fail "it was said more than once"
for name in first second third; do
    cmp "$work/$name" "$work/out/$name" || fail "$name is another file"
done
only "$work/out" first second third
kill "$pid"
echo "all well"
