# Partial files that others remove, replace and plant: what stands under the final name is the file that was
# sent, or the transfer fails on both sides.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out" "$work/in" "$work/other"
make_file "$work/in/big" $((28 * 1024 * 1024))
make_file "$work/other/big" $((24 * 1024 * 1024))

# start_slow FOLDER RATE ARGUMENT...: a transfer of FOLDER/big with a block there; sets pid and sender.
start_slow() {
    local source=$1 rate=$2
    shift 2
    rm -f "$work/out/.big.longhaul-resume"
    start_recv "recv$source" "$work/out" "$@"
    "$LONGHAUL" send "$work/$source/big" "$where" --rate "$rate" --window 4MiB \
        >"$work/sender$source.out" 2>"$work/sender$source.err" &
    sender=$!
    await_blocks 1
}

for force in "" --force; do
    say "the partial file is removed: both sides fail, nothing is under the name ${force:+with $force}"
    # shellcheck disable=SC2086  # no word or one
    start_slow in 100Mbit $force
    rm "$work/out/.big.longhaul-partial"
    ended recv "$pid" 1 30
    ended send "$sender" 1 30
    expect_line "$work/recvin.err" 'was removed during'
    expect_line "$work/senderin.err" 'was removed during'
    ! grep kept "$work/recvin.err" "$work/senderin.err" || fail "it kept nothing"
    [ ! -e "$work/out/big" ] || fail "there is a file under the final name"

    say "the same, and a second transfer: the first fails, the second is right ${force:+with $force}"
    # shellcheck disable=SC2086
    start_slow in 100Mbit $force
    first=$pid first_sender=$sender
    rm "$work/out/.big.longhaul-partial"
    # shellcheck disable=SC2086
    start_slow other 40Mbit $force
    ended recv "$first" 1 60
    ended send "$first_sender" 1 60
    expect_line "$work/recvin.err" 'was removed during'
    [ ! -e "$work/out/big" ] || cmp "$work/other/big" "$work/out/big" || fail "it is another file"
    ended recv "$pid" 0 60
    ended send "$sender" 0 60
    cmp "$work/other/big" "$work/out/big" || fail "it is another file"
    only "$work/out" big
    rm "$work/out/big"
done

# refused WHAT: a transfer of big is, before anything is written.
refused() {
    start_recv recv "$work/out" --force
    send "$work/in/big" "$where"
    [ "$status" -eq 1 ] || fail "send ended with $status"
    ended recv "$pid" 1 20
    expect_line "$work/send.err" "$1 is in the way (remove .big.longhaul-"
    expect_line "$work/recv.err" "$1 is in the way (remove .big.longhaul-"
    [ "$(cat "$work/victim")" = untouched ] || fail "what is outside the folder was written to"
}

echo untouched >"$work/victim"
for name in .big.longhaul-partial .big.longhaul-resume; do
    say "$name was planted: a hard link, a symbolic link, a pipe, another user's file"
    ln "$work/victim" "$work/out/$name"
    refused 'a file with hard links'
    rm "$work/out/$name"
    ln -s ../victim "$work/out/$name"
    refused 'a symbolic link'
    rm "$work/out/$name"
    mkfifo "$work/out/$name"
    refused 'a pipe, socket or device'
    rm "$work/out/$name"
    if [ "$(id -u)" -eq 0 ]; then
        touch "$work/out/$name" && chown 65534 "$work/out/$name"
        refused 'a file of another user'
        rm "$work/out/$name"
    fi
    nothing "$work/out"
done

say "--force replaces a symbolic link, not what it leads to"
ln -s ../victim "$work/out/big"
start_recv recv "$work/out" --force
send "$work/in/big" "$where"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 20
[ "$(cat "$work/victim")" = untouched ] || fail "what is outside the folder was written to"
cmp "$work/in/big" "$work/out/big" || fail "it is another file"
only "$work/out" big
echo "all well"
