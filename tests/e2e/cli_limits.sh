# What limited a transfer: perf and send name the cause that was made here. And a path that is remembered.
# Each cause exceeds all others by far, so that a slow host changes none of them.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

start server perf --server --listen '[::1]:0'

# measure ARGUMENT...: leaves perf.out and limits.json.
measure() {
    "$LONGHAUL" perf "$where" --warmup 0 --json "$work/limits.json" "$@" \
        >"$work/perf.out" 2>"$work/perf.err" || fail "perf $* failed"
}

# limited NAME WORDS ARGUMENT...: a measurement ends with that cause.
limited() {
    local name=$1 words=$2
    shift 2
    measure "$@"
    python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["limited_by"] != sys.argv[2])' \
        "$work/limits.json" "$name" || fail "perf $*: $(grep limited_by "$work/limits.json")"
    expect_line "$work/perf.out" "limited by: $words"
}

# The options that the last verdict advises.
advice() {
    grep -oE -e '--(window|slots|reliability) [A-Za-z0-9]+\)$' "$work/perf.out" | tr -d ')'
}

goodput() {
    python3 -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["goodput_bps"]))' \
        "$work/limits.json"
}

# helps OPTIONS ARGUMENT...: with these options, in place of what limited the last measurement, 1.5 times as
# much comes through.
helps() {
    local options=$1 before
    shift
    before=$(goodput)
    [ -n "$options" ] || fail "no advice: $(cat "$work/perf.out")"
    # shellcheck disable=SC2086  # options and their values
    measure "$@" $options
    [ "$(goodput)" -gt $((before * 3 / 2)) ] || fail "$options does not help: $before bit/s, then $(goodput)"
}

say "each cause that can be made on loopback, and its remedy, which helps"
limited application 'the application (nothing to send for ' --size 4KiB --iterations 8 --link rtt=40ms
helps '--in-flight 4' --size 4KiB --iterations 8 --link rtt=40ms
limited rate 'the given rate (20Mbit/s)' --size 1MiB --iterations 1 --rate 20Mbit
limited rate 'the emulated link (20Mbit/s)' --size 1MiB --iterations 1 --link rtt=2ms,rate=20Mbit
far=(--size 1MiB --iterations 1 --mtu 4096 --rate 2Gbit --link rtt=40ms)
limited window '--window 64KiB (rate x round trip needs ' "${far[@]}" --window 64KiB
helps "$(advice)" "${far[@]}"
limited slots '--slots 1 of 64KiB (rate x round trip needs ' "${far[@]}" --slot-size 64KiB --slots 1
helps "$(advice)" "${far[@]}" --slot-size 64KiB
lossy=(--size 256KiB --iterations 8 --link rtt=100ms,rate=1Gbit,loss=0.2)
limited loss 'loss or reordering (' "${lossy[@]}" --reliability sr-nack
helps "$(advice)" "${lossy[@]}"

say "a path that is remembered, and one that is not"
# A remembered round trip agrees with a measured one up to twice of it, and a busy host may add to the latter:
# 400 ms were remembered, 300 ms and 1 s are measured.
# remembered ARGUMENT...: the rate with which a measurement started.
remembered() {
    "$LONGHAUL" perf "$where" --size 64KiB --iterations 1 --congestion bbr --json "$work/paths.json" "$@" \
        >"$work/perf.out" 2>"$work/perf.err" || fail "perf $* failed"
    python3 -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["remembered_rate_bps"] or 0))' \
        "$work/paths.json"
}
put_path() {
    printf '# paths of longhaul\n%s\n' "::1 ::1 $1 400000000 $(($(date +%s) - $2))" >"$work/paths"
}
file=$work/paths
put_path 123000000 60
[ "$(remembered --path-file "$file" --link rtt=300ms)" -eq 123000000 ] || fail "the rate was not remembered"
[ "$(remembered --path-file none --link rtt=300ms)" -eq 0 ] || fail "'none' remembers"
[ "$(remembered --path-file "$file" --link rtt=1s)" -eq 0 ] || fail "another round trip is another path"
put_path 123000000 700000
[ "$(remembered --path-file "$file" --link rtt=300ms)" -eq 0 ] || fail "a week is too old"

say "what was learned is in the file; a file that cannot be is no error"
rm "$work/paths"
"$LONGHAUL" perf "$where" --size 16MiB --iterations 2 --congestion bbr --path-file "$work/paths" \
    >"$work/perf.out" 2>"$work/perf.err" || fail "perf failed"
grep -qE '^::1 ::1 [0-9]+ [0-9]+ [0-9]+$' "$work/paths" || fail "nothing was remembered"
remembered --path-file /dev/null/paths >/dev/null

say "a file of something else is named and left as it is"
printf 'precious\n' >"$work/precious"
ln -s precious "$work/link"
for file in precious link; do
    for command in "perf $where --size 64KiB" "send $work/precious $where" "probe $where"; do
        status=0
        # shellcheck disable=SC2086
        "$LONGHAUL" $command --path-file "$work/$file" >"$work/foreign.out" 2>"$work/foreign.err" || status=$?
        [ "$status" -eq 2 ] || fail "$command --path-file $file ended with $status"
        expect_line "$work/foreign.err" \
            "--path-file $work/$file: not a file of remembered paths (name a new file, or none)"
    done
done
[ "$(cat "$work/precious")" = precious ] && [ -L "$work/link" ] || fail "a file was replaced"
mkdir -p "$work/foreign/longhaul"
cp "$work/precious" "$work/foreign/longhaul/paths"
[ "$(XDG_CACHE_HOME=$work/foreign remembered --link rtt=300ms)" -eq 0 ] || fail "a foreign file was believed"
cmp -s "$work/precious" "$work/foreign/longhaul/paths" || fail "a file in the cache folder was replaced"

say "the user's cache folder is the default"
put_path 123000000 60
mkdir -p "$work/cache/longhaul"
cp "$work/paths" "$work/cache/longhaul/paths"
[ "$(XDG_CACHE_HOME=$work/cache remembered --link rtt=300ms)" -eq 123000000 ] ||
    fail "not in XDG_CACHE_HOME"
mkdir -p "$work/home/.cache"
mv "$work/cache/longhaul" "$work/home/.cache/longhaul"
[ "$(XDG_CACHE_HOME='' HOME=$work/home remembered --link rtt=300ms)" -eq 123000000 ] ||
    fail "not in HOME"

say "send ends with what limited it"
head -c 1000000 /dev/urandom >"$work/file"
mkdir "$work/in"
start_recv recv "$work/in"
"$LONGHAUL" send "$work/file" "$where" --rate 20Mbit >"$work/send.out" 2>"$work/send.err" ||
    fail "send failed"
expect_line "$work/send.out" 'limited by: the given rate (20Mbit/s)'

# send_limited WORDS FILE ARGUMENT...: it ends with that cause, and advises nothing that it has no option for.
send_limited() {
    local words=$1 name=$2
    shift 2
    rm -rf "$work/in"
    mkdir "$work/in"
    start_recv recv "$work/in"
    "$LONGHAUL" send "$work/$name" "$where" "$@" >"$work/send.out" 2>"$work/send.err" || fail "send failed"
    [ -z "$words" ] || expect_line "$work/send.out" "limited by: $words"
    ! grep -E "in flight|larger messages|0bit/s" "$work/send.out" || fail "advice or a number of no use"
}

say "send: a limit that is never exceeded, before the controller has found a rate and later"
head -c 20000 /dev/urandom >"$work/small"
send_limited 'the given rate (3.73Mbit/s)' file --max-rate 3.73Mbit --congestion bbr
send_limited 'the given rate (300kbit/s)' small --mtu 4096 --max-rate 300kbit --congestion bbr

say "send: a file that is over in a few round trips, and an empty one"
send_limited 'the round trip (' small --link rtt=40ms
: >"$work/empty"
send_limited '' empty

echo "all well"
