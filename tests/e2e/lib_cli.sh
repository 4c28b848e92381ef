# Helpers of the command's end-to-end tests; sourced. $LONGHAUL is the path of the command.
#
# SPDX-License-Identifier: BSD-3-Clause
set -u

LONGHAUL=${LONGHAUL:-$(dirname "$0")/../../build/longhaul}
[ -x "$LONGHAUL" ] || { echo "no command at $LONGHAUL; set LONGHAUL" >&2; exit 1; }
LONGHAUL=$(realpath "$LONGHAUL") # tests change their folder
work=$(mktemp -d)
export LC_ALL=C.UTF-8        # tables are drawn as they are documented
export XDG_CACHE_HOME=/dev/null # no test starts with what another learned of a path

# Ends what the test started, and only that.
clean_up() {
    local left
    for left in $(jobs -p); do
        kill -9 "$left" 2>/dev/null
    done
    wait 2>/dev/null
    [ -z "${mounted:-}" ] || umount "$mounted"
    rm -rf "$work"
}
trap clean_up EXIT

# preload NAME: what the test starts from now on runs with tests/preload/NAME.c between it and its system.
# preload_end: no more.
preload() {
    LD_PRELOAD=${LH_BUILD_DIR:-$(dirname "$LONGHAUL")}/tests/preload/$1.so
    [ -e "$LD_PRELOAD" ] || fail "$LD_PRELOAD is not built"
    # A sanitizer's runtime wants to be the first library, unless told so.
    export LD_PRELOAD ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
}

preload_end() {
    unset LD_PRELOAD
}

checks=0

say() {
    checks=$((checks + 1))
    echo "$checks: $*"
}

fail() {
    echo "FAILED: $*"
    local log
    for log in "$work"/*.err "$work"/*.out; do
        [ -s "$log" ] && sed "s|^|  $(basename "$log"): |" "$log" | tail -n 20
    done
    exit 1
}

# start NAME ARGUMENT...: a listening command in the background; sets pid and where ("[::1]:40000").
start() {
    local name=$1 line
    shift
    rm -f "$work/$name.pipe"
    mkfifo "$work/$name.pipe"
    "$LONGHAUL" "$@" >"$work/$name.pipe" 2>"$work/$name.err" &
    pid=$!
    exec {feed}<"$work/$name.pipe"
    read -r -t 30 -u "$feed" line || fail "$name did not say where it listens"
    case $line in
    "listening on "*) where=${line#listening on } ;;
    *) fail "$name said: $line" ;;
    esac
}

# start_recv NAME FOLDER ARGUMENT...
start_recv() {
    local name=$1 folder=$2
    shift 2
    start "$name" recv --listen '[::1]:0' --output "$folder" "$@"
}

# ended NAME PID STATUS SECONDS: waits until it ends, and that long at most, with that status.
ended() {
    local status=0
    timeout "$4" tail -s 0.05 --pid="$2" -f /dev/null || fail "$1 did not end within $4 s"
    wait "$2" || status=$?
    [ "$status" -eq "$3" ] || fail "$1 ended with $status, not $3"
}

# send ARGUMENT...: in the foreground; sets status, and leaves send.out and send.err.
send() {
    status=0
    timeout 120 "$LONGHAUL" send "$@" >"$work/send.out" 2>"$work/send.err" || status=$?
}

# expect_line FILE TEXT
expect_line() {
    grep -qF -e "$2" "$1" || fail "\"$2\" is not in $(basename "$1"): $(cat "$1")"
}

# await_blocks BLOCKS: until the transfer of big from $sender has recorded that many, of 4 MiB each, in the
# folder out: 24 bytes, then 16 for each.
await_blocks() {
    until [ "$(stat -c %s "$work/out/.big.longhaul-resume" 2>/dev/null || echo 0)" -ge $((24 + 16 * $1)) ]; do
        kill -0 "$sender" 2>/dev/null || fail "the transfer ended before it could be disturbed"
        sleep 0.02
    done
}

# lines_of FILE: how many lines it has without the note on small socket buffers, which depends on the host.
lines_of() {
    grep -cv 'note: receive buffers' "$1"
}

# make_file PATH BYTES: bytes that do not repeat.
make_file() {
    head -c "$2" /dev/urandom >"$1"
}

# only FOLDER NAME...: nothing else is there, hidden or not.
only() {
    local folder=$1 wanted found
    shift
    wanted=$(printf '%s\n' "$@" | sort)
    found=$(find "$folder" -mindepth 1 -printf '%P\n' | sort)
    [ "$wanted" = "$found" ] || fail "in $(basename "$folder") are: ${found//$'\n'/, }; not just: $*"
}

# nothing FOLDER
nothing() {
    [ -z "$(ls -A "$1")" ] || fail "left over in $(basename "$1"): $(ls -A "$1")"
}
