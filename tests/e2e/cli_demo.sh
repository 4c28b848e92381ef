# longhaul demo --quick: every scheme, every loss, everything arrives but for what a deadline leaves out;
# plain text of at most 100 columns.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

say "the quick demo"
timeout 120 "$LONGHAUL" demo --quick --size 4MiB >"$work/demo.out" 2>"$work/demo.err" ||
    fail "demo ended with $?"
cat "$work/demo.out"
[ ! -s "$work/demo.err" ] || fail "it complained"
! LC_ALL=C.UTF-8 grep -E '.{101}' "$work/demo.out" || fail "a line is too wide"
! grep -q $'\033' "$work/demo.out" || fail "there are colours, and this is no terminal"
for scheme in sr-nack sr-rto ec:mds ec:xor hybrid; do
    [ "$(grep -cE "$scheme .*digest ok" "$work/demo.out")" -ge 2 ] || fail "$scheme has not brought all"
done
[ "$(grep -cE 'bounded .* [0-9.]+ % ok$' "$work/demo.out")" -eq 3 ] || fail "bounded: no share in a row"
! grep -E '(one packet|Without loss).*bounded' "$work/demo.out" || fail "bounded is compared"
expect_line "$work/demo.out" 'All 12 transfers verified, byte for byte'
grep -qE 'TCP cubic .*(digest ok|timeout)' "$work/demo.out" || expect_line "$work/demo.out" 'not in the table'
expect_line "$work/demo.out" 'short messages: 10 of 1MiB'
for scheme in sr-nack sr-rto ec:mds ec:xor hybrid; do
    [ "$(grep -cE "$scheme .*digests ok" "$work/demo.out")" -eq 1 ] || fail "$scheme: no short ones"
done

say "the help has the size that it moves by default"
"$LONGHAUL" demo --help >"$work/help.out"
mkfifo "$work/pipe"
"$LONGHAUL" demo >"$work/pipe" 2>"$work/demo.err" &
pid=$!
exec {feed}<"$work/pipe"
until read -r -t 30 -u "$feed" line && [ -n "$line" ]; do :; done
kill "$pid"
exec {feed}<&-
wait "$pid"
size=$(sed -n 's/.*moves \([0-9]*[KMG]iB\) over.*/\1/p' <<<"$line")
[ -n "$size" ] || fail "no size in: $line"
expect_line "$work/help.out" "size of the generated data ($size;"

say "a file of one's own, one scheme, one loss"
make_file "$work/mine" 1234567
timeout 60 "$LONGHAUL" demo "$work/mine" --loss 1% --reliability sr-nack --link rtt=2ms,rate=500Mbit \
    >"$work/demo.out" 2>"$work/demo.err" || fail "demo ended with $?"
expect_line "$work/demo.out" 'round trip 2ms (200 km of fibre)'
[ "$(grep -c 'sr-nack .*digest ok' "$work/demo.out")" -eq 1 ] || fail "not one row"

say "a deadline that nothing meets"
timeout 60 "$LONGHAUL" demo --loss 0 --size 4MiB --reliability bounded:deadline=1ms \
    >"$work/demo.out" 2>"$work/demo.err" || fail "demo ended with $?"
grep -qE 'bounded:deadline=1ms .* [0-9.]+ % ok$' "$work/demo.out" || fail "no share"
expect_line "$work/demo.out" '% ok    that share arrived by the deadline'

say "a file that is not there"
status=0
"$LONGHAUL" demo "$work/missing" 2>"$work/demo.err" || status=$?
[ "$status" -eq 1 ] || fail "demo ended with $status"
expect_line "$work/demo.err" 'No such file'
echo "all well"
