# Folders: every byte, name, hole, link, mode and time, compared by rsync and diff; what cannot be sent; what
# is unchanged; pipes.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
command -v rsync >/dev/null || { echo "no rsync here: it is what trees are compared by"; exit 77; }

umask 0 # permissions of the receiver are those of the sender
link=rtt=4ms,rate=1Gbit,loss=1e-2
mkdir "$work/out"

# make_tree FOLDER: odd names, sizes around each limit, holes, links.
make_tree() {
    python3 - "$1" <<'END'
import os, random, sys
random.seed(7)
root = sys.argv[1].encode()

def put(name, size):
    with open(root + b"/" + name, "wb") as file:
        file.write(random.randbytes(size))

for folder in (b"", b"/empty", b"/a/b/c", b"/.git"):
    os.makedirs(root + folder)
sizes = [0, 1, 4095, 65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (4 << 20) + 5, (64 << 20) + 1]
for number, size in enumerate(sizes):
    put(b"a/size%d" % number, size)
for byte in range(1, 256):
    if byte != ord("/"):
        put(b"a/b/x" + bytes([byte]) + b"y", byte)
for length in (237, 238, 254, 255):
    put(b"l" * length, 9)
put("a/漢字".encode(), 5)
put(b".git/config", 5)
put(b"a/-dash", 5)
put(b"a/blank ", 5)
os.symlink("a/size1", root + b"/link")
os.symlink("/nowhere/else", root + b"/to_nowhere")
os.symlink("a", root + b"/to_folder")
os.symlink(b"\xff\n", root + b"/to_odd")
os.link(root + b"/a/size4", root + b"/hard1")
os.link(root + b"/a/size4", root + b"/a/b/c/hard2")
with open(root + b"/sparse", "wb") as file:
    file.seek(200 << 20)
    file.write(b"x" * 1000)
    file.truncate(300 << 20)
with open(root + b"/hole", "wb") as file:
    file.truncate(10 << 20)
os.chmod(root + b"/a/size1", 0o400)
os.chmod(root + b"/a/size2", 0o777)
os.chmod(root + b"/a/size3", 0)
os.utime(root + b"/a/size1", ns=(0, 1234567890123456789))
os.utime(root + b"/a/size2", ns=(0, -5 * 10**9))
for folder in (b"/a/b/c", b"/empty", b"/a/b", b"/a"):
    os.utime(root + folder, ns=(0, 10**18 + len(folder)))
os.chmod(root + b"/a/b/c", 0o555)
END
}

# same FOLDER OTHER: by programs that share nothing with this one.
same() {
    local different
    different=$(rsync -aHnic --delete "$1/" "$2/") || fail "rsync failed"
    [ -z "$different" ] || fail "rsync finds differences: $different"
    diff -r --no-dereference "$1" "$2" >"$work/diff.out" || fail "diff: $(cat "$work/diff.out")"
    (cd "$1" && find . -printf '%P %y %m %T@ %s %l\0' | sort -z) >"$work/one"
    (cd "$2" && find . -printf '%P %y %m %T@ %s %l\0' | sort -z) >"$work/other"
    # Sizes of folders are those of their file systems.
    cmp <(sed -z -E 's/( d [0-9]+ [0-9.]+) [0-9]+/\1/' "$work/one") \
        <(sed -z -E 's/( d [0-9]+ [0-9.]+) [0-9]+/\1/' "$work/other") || fail "find finds differences"
}

# tree STATUS RECV_OPTIONS -- SEND_ARGUMENTS...: both sides end with that status; the destination is $where,
# with $below.
below=
tree() {
    local expected=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    start_recv recv "$work/out" "${options[@]}"
    send "$@" "$where$below"
    [ "$status" -eq "$expected" ] || fail "send ended with $status: $(cat "$work/send.err")"
    ended recv "$pid" "$expected" 60
}

say "a tree over $link"
make_tree "$work/in"
tree 0 -- --link "$link" "$work/in"
same "$work/in" "$work/out/in"
[ "$(stat -c %b "$work/out/in/sparse")" -lt 2000 ] || fail "holes were filled"
[ -z "$(find "$work/out" -name '*longhaul*')" ] || fail "something is left over"

say "unchanged: nothing is sent, and nothing changes"
tree 0 -- "$work/in"
expect_line "$work/send.out" "sent 0 files"
same "$work/in" "$work/out/in"

say "a file that changed is not replaced without --force; a dry run names it; --force replaces it"
echo changed >>"$work/in/a/size5"
tree 1 -- "$work/in"
expect_line "$work/send.err" "in/a/size5: a file of that name exists (--force at the receiver replaces it)"
tree 0 --force -- --dry-run "$work/in"
expect_line "$work/send.out" "in/a/size5"
[ "$(wc -l <"$work/send.out")" -eq 2 ] || fail "a dry run says: $(cat "$work/send.out")"
! cmp -s "$work/in/a/size5" "$work/out/in/a/size5" || fail "a dry run wrote"
tree 0 --force -- "$work/in"
expect_line "$work/send.out" "sent 1 file,"
same "$work/in" "$work/out/in"

say "no hard link is made to a file of that name that was not replaced"
mkdir "$work/hard" "$work/out/hard"
echo new >"$work/hard/one"
ln "$work/hard/one" "$work/hard/two"
echo old >"$work/out/hard/one"
cp "$work/out/hard/one" "$work/out/hard/two"
for other in one two; do # whichever is found first
    rm "$work/out/hard/$other"
    tree 1 -- "$work/hard"
    [ ! -e "$work/out/hard/$other" ] || cmp "$work/hard/one" "$work/out/hard/$other" ||
        fail "$other is an old file"
    echo old >"$work/out/hard/$other"
done
tree 0 --force -- "$work/hard"
same "$work/hard" "$work/out/hard"

say "files and folders beside each other, into folders that are created; the content of ."
below=:new/deep
tree 0 -- "$work/in/a/b" "$work/in/link"
same "$work/in/a/b" "$work/out/new/deep/b"
[ "$(readlink "$work/out/new/deep/link")" = a/size1 ] || fail "the link is another"
below=:content
cd "$work/in/a/b" || exit 1
tree 0 -- .
cd - >/dev/null || exit 1
diff -r --no-dereference "$work/in/a/b" "$work/out/content" || fail "it is another folder"

say "what cannot be sent is a line each, and 1 at the end; the rest arrives"
mkdir "$work/special"
mkfifo "$work/special/fifo"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$work/special/socket"
echo rest >"$work/special/rest"
ln -s gone "$work/special/nowhere"
: >"$work/special/.rest.longhaul-partial"
below=
tree 1 -- --follow "$work/special"
expect_line "$work/send.err" "special/fifo: is a FIFO, which is not sent"
expect_line "$work/send.err" "special/socket: is a socket, which is not sent"
expect_line "$work/send.err" "special/nowhere: No such file or directory"
expect_line "$work/send.err" "special/.rest.longhaul-partial: the name is reserved for unfinished files"
expect_line "$work/recv.err" "special/fifo: at the sender: is a FIFO, which is not sent"
only "$work/out/special" rest
if [ "$(id -u)" -ne 0 ]; then
    chmod 0 "$work/special/rest"
    tree 1 --force -- "$work/special/rest" "$work/in/link"
    expect_line "$work/send.err" "special/rest: Permission denied"
fi

say "links are followed on request, circles are not"
mkdir "$work/circle"
ln -s .. "$work/circle/up"
echo file >"$work/file"
ln -s ../file "$work/circle/file"
tree 1 -- --follow "$work/circle"
[ "$(cat "$work/out/circle/file")" = file ] || fail "a link was not followed"
[ ! -L "$work/out/circle/file" ] || fail "a link was sent"
rm -rf "$work/out/circle" "$work/circle"

say "a link in the output folder is not followed"
mkdir "$work/elsewhere"
ln -s "$work/elsewhere" "$work/out/special2"
cp -r "$work/special" "$work/special2" 2>/dev/null
tree 1 --force -- "$work/special2"
nothing "$work/elsewhere"
below=:special2
tree 1 -- "$work/file" "$work/in/link"
nothing "$work/elsewhere"

say "JSON"
below=
odd=$'\033[2J\177\302\233' # control characters of one byte and of two
echo odd >"$work/special/$odd"
start_recv recv "$work/out" --json
send --json "$work/special/$odd" "$work/special/fifo" "$where:json"
[ "$status" -eq 1 ] || fail "send ended with $status"
cat <&"$feed" >"$work/recv.json"
ended recv "$pid" 1 20
python3 - "$work/send.out" "$work/recv.json" <<'END' || fail "the lines of JSON are others"
import json, sys
for name, events in zip(sys.argv[1:], (["begin", "error", "file", "end"], ["begin", "error", "file", "end"])):
    lines = [json.loads(line) for line in open(name, encoding="utf-8")]
    assert [line["event"] for line in lines] == events, lines
    assert lines[-1]["verdict"] == "some failed" and lines[-1]["status"] == 1, lines
    assert lines[-1]["files"] == 1, lines
    assert lines[-2]["path"] == "\x1b[2J\x7f\x9b", lines
    assert all(line.strip("\n").isprintable() for line in open(name, encoding="utf-8", newline="\n")), lines
END

say "a pipe of unknown size, from one process to another"
head -c 30000000 /dev/urandom >"$work/bytes"
"$LONGHAUL" recv --listen '[::1]:0' --output - >"$work/piped" 2>"$work/recv.err" &
pid=$!
until grep -q '^listening on ' "$work/recv.err"; do
    kill -0 "$pid" 2>/dev/null || fail "recv ended"
    sleep 0.02
done
where=$(sed -n 's/^listening on //p' "$work/recv.err")
status=0
(head -c 1000 "$work/bytes"; sleep 0.1; tail -c +1001 "$work/bytes") |
    timeout 60 "$LONGHAUL" send - "$where" --link "$link" >"$work/send.out" 2>"$work/send.err" || status=$?
[ "$status" -eq 0 ] || fail "send ended with $status: $(cat "$work/send.err")"
ended recv "$pid" 0 20
cmp "$work/bytes" "$work/piped" || fail "other bytes came out of the pipe"

say "a pipe into a file"
start_recv recv "$work/out"
status=0
timeout 60 "$LONGHAUL" send - "$where:pipes/bytes" <"$work/bytes" >"$work/send.out" \
    2>"$work/send.err" || status=$?
[ "$status" -eq 0 ] || fail "send ended with $status: $(cat "$work/send.err")"
ended recv "$pid" 0 20
cmp "$work/bytes" "$work/out/pipes/bytes" || fail "it is another file"
cat <&"$feed" >"$work/recv.out"
expect_line "$work/recv.out" "received bytes: "
start_recv recv "$work/out"
send - "$where" </dev/null
[ "$status" -eq 1 ] || fail "send ended with $status"
expect_line "$work/send.err" "standard input has no name (longhaul send - HOST:NAME)"
ended recv "$pid" 1 20
echo "all well"
