# --delete: what the receiver has besides is removed as rsync does it, when all else has arrived; never
# unasked, never after a failure, never where the receiver does not allow it.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

umask 022
cd "$work" || exit 1
mkdir -p in/a/b/c in/empty out/in fresh outside
echo one >in/a/b/c/one
echo two >in/a/two
echo x >outside/file
ln -s two in/a/link

# extras FOLDER: entries that the source does not have, below a copy of it.
extras() {
    mkdir -p "$1/in/a/b/old/deep/deeper" "$1/in/gone" "$1/in/a/keep/sub"
    echo x | tee "$1/in/a/b/old/deep/deeper/f" "$1/in/a/b/c/x.o" "$1/in/gone/g" "$1/in/a/keep/sub/k.o" \
        "$1/in/a/keep/sub/k.c" "$1/in/.hidden" "$1/beside" >/dev/null
    ln -sfn ../../outside "$1/in/out"
    ln -sfn "$work/outside" "$1/in/a/out"
}

# folders FOLDER: what is there.
entries() {
    (cd "$1" && find . | sort)
}

start_recv recv "$work/out" --keep --allow-delete --force
allowing=$pid
allowed=$where

say "a receiver that does not allow it refuses before anything is sent"
start_recv strict "$work/fresh" --keep
send --delete --yes in "$where"
[ "$status" -eq 1 ] || fail "it ended with $status"
expect_line "$work/send.err" "nothing is deleted here (--allow-delete at the receiver)"
nothing "$work/fresh"
kill "$pid"
where=$allowed

say "without a terminal and --yes it is a usage error; nothing is sent"
send --delete in "$where"
[ "$status" -eq 2 ] || fail "it ended with $status"
expect_line "$work/send.err" "--delete: no terminal to ask (add --yes"
nothing "$work/out/in"

say "a dry run lists what it would delete, and deletes nothing"
send in "$where"
[ "$status" -eq 0 ] || fail "it ended with $status"
extras out
entries out >before
send --delete --dry-run in "$where"
[ "$status" -eq 0 ] || fail "it ended with $status"
sed -n 's/^would delete //p' send.out | sort >named
sort >expected <<END
in/.hidden
in/a/b/c/x.o
in/a/b/old
in/a/b/old/deep
in/a/b/old/deep/deeper
in/a/b/old/deep/deeper/f
in/a/keep
in/a/keep/sub
in/a/keep/sub/k.c
in/a/keep/sub/k.o
in/a/out
in/gone
in/gone/g
in/out
END
cmp expected named || fail "$(diff expected named)"
entries out | cmp before - || fail "it deleted something"

say "after a failure at the source nothing is deleted"
mkfifo in/fifo
send --delete --yes in "$where"
[ "$status" -eq 1 ] || fail "it ended with $status"
expect_line "$work/send.err" "nothing is deleted: 1 entry failed"
entries out | cmp before - || fail "it deleted something"
rm in/fifo

say "after a failure at the receiver neither"
mkdir in/gone.d out/in/clash
echo x >in/clash
send --delete --yes in "$where"
[ "$status" -eq 1 ] || fail "it ended with $status"
expect_line "$work/send.err" "nothing is deleted: 1 entry failed"
rm -r in/clash in/gone.d out/in/clash out/in/gone.d
entries out | cmp before - || fail "it deleted something"

say "no entry is deleted without the user's yes; with it all are"
command -v python3 >/dev/null || fail "no python3"
cat >ask.py <<'END'
import os, pty, sys
answer, command = sys.argv[1], sys.argv[2:]
pid, terminal = pty.fork()
if not pid:
    os.execv(command[0], command)
seen = b""
try:
    while True:
        part = os.read(terminal, 4096)
        if not part:
            break
        seen += part
        if answer and b"[y/N]" in seen:
            os.write(terminal, answer.encode() + b"\n")
            answer = ""
except OSError:
    pass
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
timeout 60 python3 ask.py n "$LONGHAUL" send --delete in "$where" >asked.out || fail "it ended with $?"
expect_line asked.out "14 entries that the sender does not have"
expect_line asked.out "and 9 more"
expect_line asked.out "nothing is deleted"
entries out | cmp before - || fail "it deleted something"
timeout 60 python3 ask.py y "$LONGHAUL" send --delete in "$where" >asked.out || fail "it ended with $?"
only out beside in $(cd in && find . -mindepth 1 -printf 'in/%P\n')

say "what cannot be deleted is not counted as deleted"
mkdir out/in/busy
echo x | tee out/in/extra out/in/busy/.f.longhaul-partial >/dev/null
send --delete --yes in "$where"
[ "$status" -eq 1 ] || fail "it ended with $status"
expect_line send.err "in/busy: the folder is kept: unfinished or new files are in it"
expect_line send.out ", 1 deleted, 1 failed"
rm -r out/in/busy
[ -e outside/file ] || fail "it deleted what a link leads to"

# rsync's result is the measure, with rules and without.
if command -v rsync >/dev/null; then
    # same ARGUMENT...
    same() {
        say "as rsync: --delete $*"
        rm -rf out/in rsync
        mkdir rsync
        cp -a in rsync/
        cp -a in out/
        extras out
        extras rsync
        rsync -a --delete "$@" in rsync/ >rsync.log 2>&1
        send --delete --yes "$@" in "$where"
        [ "$status" -eq 0 ] || fail "it ended with $status: $(cat send.err)"
        entries rsync >expected
        entries out | cmp expected - || fail "$(entries out | diff expected -)"
    }
    same
    same --exclude '*.o'
    same --exclude keep
    same --exclude '/in/a/keep/sub/'
    same --include '*.c' --include '*/' --exclude '*'
fi

say "the content of a folder, sent as '.', into a folder of the receiver's"
rm -rf out/in
mkdir -p out/mirror/sub
echo x | tee out/mirror/extra out/mirror/sub/x >/dev/null
(cd in && "$LONGHAUL" send --delete --yes . "$where:mirror" >"$work/send.out" 2>"$work/send.err") ||
    fail "it failed"
expect_line send.out ", 3 deleted"
[ "$(cd out/mirror && find . | sort)" = "$(cd in && find . | sort)" ] || fail "it is another tree"
[ -e out/beside ] || fail "it deleted beside the folder"

say "names that begin with a dot in the output folder itself stay without --dotfiles"
echo x | tee out/.profile >out/extra
(cd in && "$LONGHAUL" send --delete --yes . "$where" >"$work/send.out" 2>"$work/send.err") ||
    fail "it failed"
[ -e out/.profile ] && [ ! -e out/extra ] || fail "$(ls -A out)"
kill "$allowing"

say "get --delete: the getter's copy"
start serve serve --read "$work/in" --listen '[::1]:0'
mkdir got
cp -a in/a got/
echo x | tee got/beside got/a/extra >/dev/null
ln -sfn "$work/outside" got/a/out
timeout 60 "$LONGHAUL" get --delete "$where:a" got >get.out 2>get.err
[ $? -eq 2 ] || fail "it did not ask"
timeout 60 "$LONGHAUL" get --delete --dry-run "$where:a" got >get.out 2>get.err || fail "$(cat get.err)"
expect_line get.out "would delete a/extra"
[ -e got/a/extra ] || fail "a dry run deleted it"
timeout 60 python3 ask.py $'\003' "$LONGHAUL" get --delete "$where:a" got >asked.out
[ $? -eq 130 ] || fail "interrupted at the question it ended with $?: $(cat asked.out)"
[ -e got/a/extra ] || fail "it was deleted"
timeout 60 "$LONGHAUL" get --delete --yes "$where:a" got >get.out 2>get.err || fail "$(cat get.err)"
expect_line get.out ", 2 deleted"
only got beside a $(cd in && find a -mindepth 1)
[ -e outside/file ] || fail "it deleted what a link leads to"
kill "$pid"
echo "all well"
