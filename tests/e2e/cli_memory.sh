# The memory of a transfer is bounded by the window, not by the file: 1 GiB with a window of 16 MiB.
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

say "each side stays below the window and 64 MiB more"
mkfifo "$work/recv.pipe"
python3 "$work/peak.py" "$work/recv.peak" \
    "$LONGHAUL" recv --listen '[::1]:0' --output "$work/out" --window 16MiB \
    >"$work/recv.pipe" 2>"$work/recv.err" &
pid=$!
exec {feed}<"$work/recv.pipe"
read -r -t 30 -u "$feed" line || fail "the receiver did not say where it listens"
timeout 200 python3 "$work/peak.py" "$work/send.peak" \
    "$LONGHAUL" send "$work/big" "${line#listening on }" --window 16MiB \
    >"$work/send.out" 2>"$work/send.err" || fail "send ended with $?"
ended recv $pid 0 30
[ "$(stat -c %s "$work/out/big")" -eq $((1024 * 1024 * 1024)) ] || fail "it has another size"
for side in send recv; do
    peak=$(cat "$work/$side.peak")
    echo "   $side: $((peak / 1024)) MiB"
    [ "$peak" -lt $(((16 + 64) * 1024)) ] || fail "$side took $peak KiB"
done
echo "all well"
