# The memory of a transfer is bounded by the window, not by the file: 1 GiB with a window of 16 MiB. That of a
# pipe is below 64 MiB with the default window: 512 MiB.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out"
truncate -s 1G "$work/big"
cat >"$work/peak.py" <<'PYTHON'
import resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as out:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=out)
sys.exit(status)
PYTHON

# transfer OUTPUT RECEIVE_OPTION... -- SEND_OPTION...: where the receiver's standard output goes.
transfer() {
    local receiving=() output=$1
    shift
    while [ "$1" != -- ]; do
        receiving+=("$1")
        shift
    done
    shift
    rm -f "$work/recv.pipe"
    mkfifo "$work/recv.pipe"
    python3 "$work/peak.py" "$work/recv.peak" "$LONGHAUL" recv --listen '[::1]:0' "${receiving[@]}" \
        >"$output" 2>"$work/recv.pipe" &
    pid=$!
    exec {feed}<"$work/recv.pipe"
    read -r -t 30 -u "$feed" line || fail "the receiver did not say where it listens"
    while [ "${line#listening on }" = "$line" ]; do
        read -r -t 30 -u "$feed" line || fail "it does not listen"
    done
    timeout 200 python3 "$work/peak.py" "$work/send.peak" "$LONGHAUL" send "$1" "${line#listening on }" \
        "${@:2}" >"$work/send.out" 2>"$work/send.err" || fail "send ended with $?"
    ended recv $pid 0 30
    exec {feed}<&-
}

# below MIB: each side has.
below() {
    for side in send recv; do
        peak=$(cat "$work/$side.peak")
        echo "   $side: $((peak / 1024)) MiB"
        [ "$peak" -lt $(($1 * 1024)) ] || fail "$side took $peak KiB"
    done
}

say "each side stays below the window and 64 MiB more"
transfer "$work/recv.pipe" --output "$work/out" --window 16MiB -- "$work/big" --window 16MiB
[ "$(stat -c %s "$work/out/big")" -eq $((1024 * 1024 * 1024)) ] || fail "it has another size"
below $((16 + 64))

say "each side of a pipe stays below 64 MiB, parity included"
transfer "$work/received" --output - --reliability ec:mds -- - < <(head -c 512M /dev/zero)
[ "$(stat -c %s "$work/received")" -eq $((512 * 1024 * 1024)) ] || fail "another number of bytes came"
below 64
echo "all well"
