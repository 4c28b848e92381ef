#!/bin/bash
# longhaul distribute FILE HOST...: ranks that a remote shell starts. The shell here runs the line on this
# machine, in a folder for each host, and notes what it was called with.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

cat >"$work/remote shell" <<'R'
#!/bin/sh
# [-p PORT] HOST LINE
[ "$1" != -p ] || shift 2
printf '%s\n' "$@" >"$NOTES/$1.called"
[ "$1" != 127.0.0.9 ] || { echo "no way to $1" >&2; exit 255; }
cd "$NOTES/$1" || exit 255
exec env -i PATH="$PATH" NOTES="$NOTES" sh -c "$2"
R
chmod +x "$work/remote shell"
ln -s "remote shell" "$work/rsh"
export NOTES=$work

# distribute ARGUMENT...: sets status, and leaves run.out and run.err.
distribute() {
    status=0
    (cd "$work" && timeout 120 "$LONGHAUL" distribute "$@" >run.out 2>run.err) || status=$?
}

# expect_status STATUS
expect_status() {
    [ "$status" -eq "$1" ] || fail "exit status $status, not $1: $(cat "$work/run.err")"
}

# fresh: hosts without files.
hosts="127.0.0.2 user@127.0.0.3 127.0.0.4"
fresh() {
    for host in $hosts; do
        rm -rf "${work:?}/$host"
        mkdir -p "$work/$host"
    done
}

make_file "$work/it's big; really" 9000001
make_file "$work/some" 300001

say "a file to three hosts"
secret='not; for "all" $eyes'
fresh
# shellcheck disable=SC2086  # words
LONGHAUL_SECRET=$secret distribute --rsh "$work/rsh -p 22" "it's big; really" $hosts -o "a folder's"
expect_status 1 # there is no such folder
expect_line "$work/run.err" "a folder's"
for host in $hosts; do mkdir "$work/$host/a folder's"; done
# shellcheck disable=SC2086
LONGHAUL_SECRET=$secret distribute --rsh "$work/rsh -p 22" "it's big; really" $hosts -o "a folder's"
expect_status 0
for host in $hosts; do
    cmp "$work/it's big; really" "$work/$host/a folder's/it's big; really" || fail "$host has another file"
    [ "$(find "$work/$host" -type f | wc -l)" -eq 1 ] || fail "$host has more files"
    ! grep -q eyes "$work/$host.called" || fail "the secret is on a command line"
done
expect_line "$work/run.out" "to 3 ranks"
! grep -q . "$work/run.err" || fail "$(cat "$work/run.err")"

say "what fails on a host, or on the way to it"
fresh
echo other >"$work/127.0.0.4/some"
# shellcheck disable=SC2086
distribute --rsh "$work/rsh" some $hosts
expect_status 1
expect_line "$work/run.err" "rank 3"
[ "$(find "$work/127.0.0.2" -type f | wc -l)" -eq 0 ] || fail "a rank has the file"
distribute --rsh "$work/rsh" some 127.0.0.2 127.0.0.9
expect_status 255
expect_line "$work/run.err" "no way to 127.0.0.9"
expect_line "$work/run.err" "rank 2 on 127.0.0.9 ended with exit status 255"
distribute --rsh "$work/nothing there" some 127.0.0.2
expect_status 1
expect_line "$work/run.err" "nothing there: No such file or directory; ending the other ranks"
! grep -q "was ended by signal" "$work/run.err" || fail "$(cat "$work/run.err")"
distribute --rsh "$work/rsh" some no-such-host.invalid
expect_status 1
expect_line "$work/run.err" "no-such-host.invalid: "
expect_line "$work/run.err" "MASTER_ADDR"

say "more hosts than descriptors, and a signal"
cat >"$work/slow" <<'R'
#!/bin/sh
touch "$NOTES/called.$1"
exec sleep 53.125
R
chmod +x "$work/slow"
many=$(seq -f 127.0.1.%g 2 21)
# shellcheck disable=SC2086
(cd "$work" && ulimit -n 30 && exec "$LONGHAUL" distribute --rsh "$work/slow" some $many) \
    >"$work/run.out" 2>"$work/run.err" &
pid=$!
for _ in $(seq 1500); do
    [ "$(find "$work" -name 'called.*' | wc -l)" -lt 20 ] || break
    kill -0 "$pid" 2>/dev/null || fail "it ended by itself"
    sleep 0.02
done
kill -INT "$pid"
ended distribute "$pid" 130 30

say "what is no call of it"
distribute some
expect_status 2
expect_line "$work/run.err" "missing HOST"
RANK=0 WORLD_SIZE=2 distribute some 127.0.0.2
expect_status 2
expect_line "$work/run.err" "omit HOST"
distribute --rsh "" some 127.0.0.2
expect_status 2
distribute some -- -oProxyCommand=true
expect_status 2
expect_line "$work/run.err" "no host"
distribute nothing-there 127.0.0.2
expect_status 1

echo "$checks checks"
