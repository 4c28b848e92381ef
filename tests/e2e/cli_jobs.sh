# A receiver of several files at once: up to a number, on one engine; who comes then waits.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out"
make_file "$work/a" 20000000
make_file "$work/b" 20000000
make_file "$work/c" 100000
make_file "$work/d" 90000000

# slow NAME: its sender in the background, for seconds.
slow() {
    "$LONGHAUL" send "$work/$1" "$where" --rate 20Mbit >"$work/$1.out" 2>"$work/$1.err" &
}

# await_partial NAME: until its transfer is under way.
await_partial() {
    until [ -e "$work/out/.$1.longhaul-partial" ]; do
        kill -0 "$2" 2>/dev/null || fail "the sender of $1 is gone"
        sleep 0.05
    done
}

# threads NAME: how many of the receiver bear that name.
threads() {
    cat /proc/"$pid"/task/*/comm | grep -cx "$1"
}

say "two files at once, on one worker; a third sender waits for a place"
start_recv recv "$work/out" --keep --jobs 2
slow a
a=$!
slow b
b=$!
await_partial a "$a"
await_partial b "$b"
[ "$(threads lh-worker)" -eq 1 ] || fail "$(threads lh-worker) workers"
send "$work/c" "$where"
[ "$status" -eq 0 ] || fail "the third sender ended with $status"
expect_line "$work/send.err" 'receiver busy, waiting'
ended a "$a" 0 60
ended b "$b" 0 60
for name in a b c; do
    cmp "$work/$name" "$work/out/$name" || fail "$name is another file"
done
only "$work/out" a b c

say "a line for each file; a sender that is killed ends its own transfer alone"
slow d
d=$!
await_partial d "$d"
kill -9 "$d"
rm "$work/out/c"
send "$work/c" "$where"
[ "$status" -eq 0 ] || fail "the sender beside a killed one ended with $status"
cmp "$work/c" "$work/out/c" || fail "c is another file"
for name in a b c; do
    read -r -t 30 -u "$feed" line || fail "no line for $name"
    case $line in
    "received "[abc]": "*", xxh3-128 "*) ;;
    *) fail "the line is: $line" ;;
    esac
done

say "a signal ends all of them, and keeps what came"
slow d
d=$!
slow a
rm -f "$work/out/a"
a=$!
await_partial d "$d"
kill "$pid"
ended recv "$pid" 143 30
ended d "$d" 3 30
expect_line "$work/d.err" 'interrupted by the user of the receiver'

say "wrong numbers"
for wrong in "--jobs 2" "--keep --jobs 0" "--keep --jobs 65"; do
    status=0
    # shellcheck disable=SC2086
    "$LONGHAUL" recv --listen '[::1]:0' $wrong >"$work/wrong.out" 2>"$work/wrong.err" || status=$?
    [ "$status" -eq 2 ] || fail "$wrong ended with $status"
done
expect_line "$work/wrong.err" '--jobs'
echo "all well"
