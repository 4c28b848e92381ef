# longhaul serve, get, and send to it: what is below the folders comes and goes, nothing else; several clients
# at once; what is refused has a reason.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

umask 022
mkdir -p "$work/read/a/b/empty" "$work/write" "$work/secret" "$work/got"
echo content >"$work/read/a/b/file"
echo hidden >"$work/read/.profile"
echo secret >"$work/secret/file"
ln -s ../secret "$work/read/out"
ln -s "$work/secret/file" "$work/read/leak"
ln "$work/read/a/b/file" "$work/read/a/hard"
mkfifo "$work/read/a/fifo"
make_file "$work/read/big" 30000000
printf -v long 'x%.0s' {1..255}
echo long >"$work/read/$long"

# get ARGUMENT...: in the folder got; sets status, and leaves get.out and get.err.
get() {
    status=0
    (cd "$work/got" && timeout 120 "$LONGHAUL" get "$@") >"$work/get.out" 2>"$work/get.err" || status=$?
}

# expect_status STATUS
expect_status() {
    [ "$status" -eq "$1" ] || fail "it ended with $status, not $1: $(cat "$work/get.err")"
}

start serve serve --read "$work/read" --write "$work/write" --listen '[::1]:0'

say "a file, with its digest; a second time it is unchanged"
get "$where:big"
expect_status 0
cmp "$work/read/big" "$work/got/big" || fail "it is another file"
[ "$(stat -c '%a %.9Y' "$work/read/big")" = "$(stat -c '%a %.9Y' "$work/got/big")" ] || fail "mode or time"
grep -qE '^received big: .* xxh3-128 [0-9a-f]{32}$' "$work/get.out" || fail "$(cat "$work/get.out")"
get "$where:big"
expect_status 0
expect_line "$work/get.out" "received 0 files, 1 unchanged"

say "a folder and a file into DIR; a FIFO is a line; the rest comes"
mkdir "$work/got/dir"
get "$where:a" "$where:$long" dir
expect_status 1
expect_line "$work/get.err" "a/fifo: at the sender: is a FIFO, which is not sent"
(cd "$work/read" && find a "$long" ! -type p -printf '%P %y %m %.9T@ %n %l\n' | sort) >"$work/one"
(cd "$work/got/dir" && find a "$long" -printf '%P %y %m %.9T@ %n %l\n' | sort) >"$work/other"
# The time of a folder is that of its last entry here.
cmp <(grep -v ' d ' "$work/one") <(grep -v ' d ' "$work/other") || fail "it is another tree"
[ -d "$work/got/dir/a/b/empty" ] || fail "an empty folder is missing"
only "$work/got" big dir $(cd "$work/got" && find dir -mindepth 1)

say "a file in the middle of the tree, as its name; a PATH that does not exist beside it"
get "$where:a/b/file" "$where:a/none" "$where:none/deeper"
expect_status 1
[ "$(cat "$work/got/file")" = content ] || fail "the file did not come"
expect_line "$work/get.err" "a/none: at the sender: cannot be opened: No such file"
expect_line "$work/get.err" "none/deeper: at the sender: cannot be opened: No such file"

say "an existing file that differs is kept, and replaced with --force"
echo mine >"$work/got/file"
get "$where:a/b/file"
expect_status 1
expect_line "$work/get.err" "file: a file of that name exists"
[ "$(cat "$work/got/file")" = mine ] || fail "it was replaced"
get --force "$where:a/b/file"
expect_status 0
[ "$(cat "$work/got/file")" = content ] || fail "it was not replaced"

say "a dry run names what would come, and writes nothing"
mkdir "$work/got/dry"
get --dry-run "$where:a" dry
expect_status 1
expect_line "$work/get.out" "a/b/file"
nothing "$work/got/dry"

say "what leads out is refused, by name, by link, at the start and in the middle"
mkdir "$work/got/out"
for path in .. ../secret a/../../secret /etc/passwd "$work/secret"; do
    get "$where:$path" out
    expect_status 2
    grep -qE 'the path has the name . or ..|is absolute' "$work/get.err" || fail "$(cat "$work/get.err")"
done
get "$where:out/file" "$where:leak/x" out
expect_status 1
expect_line "$work/get.err" "out/file: at the sender: a link or a file is in place of a folder"
nothing "$work/got/out"
get "$where:out" "$where:leak" out
expect_status 0
[ "$(readlink "$work/got/out/out")" = ../secret ] || fail "the link is no link"
[ -L "$work/got/out/leak" ] || fail "what a link led to came"

say "a folder that is replaced by a link while it is served, and back: what the link leads to never comes"
mkdir "$work/read/swap" "$work/got/swapped"
echo public >"$work/read/swap/file"
python3 - "$work/read" <<'END' &
import ctypes, sys
libc = ctypes.CDLL(None)
for i in range(10**9):
    for name in (b"out",):
        libc.renameat2(-100, sys.argv[1].encode() + b"/swap", -100, sys.argv[1].encode() + b"/out", 2)
END
swapper=$!
for _ in {1..40}; do
    rm -rf "$work/got/swapped"/*
    get "$where:swap" "$where:out/file" "$where:swap/." swapped --force
    ! grep -rqs secret "$work/got/swapped" || fail "what the link leads to came"
done
kill -9 "$swapper"
wait "$swapper" 2>/dev/null
rm -rf "$work/read/swap" "$work/read/out" "$work/got/swapped"
ln -s ../secret "$work/read/out"

say "all that is served; names with a dot need --dotfiles"
mkdir "$work/got/all"
get "$where:." all
expect_status 1
expect_line "$work/get.err" ".profile: name begins with a dot"
cmp "$work/read/big" "$work/got/all/big" || fail "it is another file"
get --dotfiles "$where:." all
[ "$(cat "$work/got/all/.profile")" = hidden ] || fail "with --dotfiles it did not come"
rm "$work/got/all/.profile"
get "$where:.profile" all
expect_status 0
[ "$(cat "$work/got/all/.profile")" = hidden ] || fail "asked for by name it did not come"

say "wrong command lines"
for wrong in "$where" "$where:" big "a b"; do
    # shellcheck disable=SC2086  # words
    get $wrong
    expect_status 2
done
get "$where:a" "$where:b/a" dir
expect_status 2
expect_line "$work/get.err" "has the same name"
get "$where:a" elsewhere:b
expect_status 2
expect_line "$work/get.err" "another server than"
get "$where:big" missing/
expect_status 1
expect_line "$work/get.err" "create the folder first"
status=0
"$LONGHAUL" serve >"$work/wrong.out" 2>"$work/get.err" || status=$?
expect_status 2

say "send writes below the other folder"
send "$work/read/a/b" "$work/secret" "$where:new/deep"
[ "$status" -eq 0 ] || fail "send ended with $status: $(cat "$work/send.err")"
[ "$(cat "$work/write/new/deep/b/file" "$work/write/new/deep/secret/file")" = content$'\n'secret ] ||
    fail "it did not come"
ln -s ../secret "$work/write/link"
send "$work/read/big" "$where:link"
[ "$status" -eq 1 ] || fail "send through a link ended with $status"
only "$work/secret" file

say "clients at once: one that is slow holds no other"
"$LONGHAUL" send "$work/read/big" "$where:slow" --rate 40Mbit >"$work/slow.out" 2>"$work/slow.err" &
slow=$!
until [ -e "$work/write/slow/.big.longhaul-resume" ]; do
    kill -0 "$slow" 2>/dev/null || fail "the slow sender is gone"
    sleep 0.02
done
for i in 1 2 3; do
    mkdir "$work/got/at$i"
    (cd "$work/got" && exec "$LONGHAUL" get "$where:a/b" "$where:big" "at$i") >"$work/at$i.out" \
        2>"$work/at$i.err" &
    clients[i]=$!
done
for i in 1 2 3; do
    ended "get $i" "${clients[i]}" 0 60
    cmp "$work/read/big" "$work/got/at$i/big" || fail "it is another file"
done
[ ! -e "$work/write/slow/big" ] || fail "the slow one was not slow"
ended slow "$slow" 0 60

say "SIGTERM: 143, and the getter continues at the next server"
rm -f "$work/got/big"
(cd "$work/got" && exec "$LONGHAUL" get "$where:big" --window 4MiB --link rtt=25ms,rate=100Mbit) \
    >"$work/get.out" 2>"$work/get.err" &
getter=$!
until [ "$(stat -c %s "$work/got/.big.longhaul-resume" 2>/dev/null || echo 0)" -ge 40 ]; do
    kill -0 "$getter" 2>/dev/null || fail "the getter is gone: $(cat "$work/get.err")"
    sleep 0.02
done
kill "$pid"
ended serve "$pid" 143 15
ended get "$getter" 3 30
expect_line "$work/get.err" "(the same command continues)"
start serve serve --read "$work/read" --listen '[::1]:0' --json
get "$where:big"
expect_status 0
expect_line "$work/get.out" "resumed)"
cmp "$work/read/big" "$work/got/big" || fail "it is another file"

say "a server without --write takes nothing; its lines of JSON name the client"
send "$work/read/big" "$where"
[ "$status" -eq 1 ] || fail "send ended with $status"
expect_line "$work/send.err" "refused by the receiver: nothing is taken here (longhaul serve --write DIR)"
kill "$pid"
ended serve "$pid" 143 15
cat <&"$feed" >"$work/json"
python3 - "$work/json" <<'END' || fail "the lines of JSON are others: $(cat "$work/json")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
assert [line["event"] for line in lines if line["event"] != "progress"] == ["begin", "file", "end"], lines
assert len({line["peer"] for line in lines}) == 1 and lines[-1]["status"] == 0, lines
assert len(lines[-2]["xxh3_128"]) == 32 or lines[-2]["event"] == "progress", lines
END

say "a server without --read serves nothing, with a key"
"$LONGHAUL" key new "$work/key" >"$work/key.out"
start serve serve --write "$work/write" --listen '[::1]:0' --key-file "$work/key"
get "$where:big" --key-file "$work/key"
expect_status 1
expect_line "$work/get.err" "refused by the sender: nothing is served here (longhaul serve --read DIR)"
kill "$pid"
ended serve "$pid" 143 15
echo "all well"
