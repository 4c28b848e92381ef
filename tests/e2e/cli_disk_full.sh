# A disk that is too small, on a tmpfs of 16 MiB: found before the first byte is written.
# Needs root, else it is skipped.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/small"
if ! mount -t tmpfs -o size=16m none "$work/small" 2>/dev/null; then
    echo "skipped: mounting a tmpfs needs root"
    exit 0
fi
mounted=$work/small
make_file "$work/big" $((24 * 1024 * 1024))
make_file "$work/fits" $((8 * 1024 * 1024))

say "24 MiB do not fit into 16: both sides say so, nothing is left"
start_recv recv "$work/small"
send "$work/big" "$where"
[ "$status" -eq 1 ] || fail "send ended with $status"
expect_line "$work/send.err" 'No space left'
ended recv "$pid" 1 20
expect_line "$work/recv.err" 'No space left'
nothing "$work/small"

expect_line "$work/recv.err" 'allocating the file failed: No space left on device (24MiB needed, 1'

say "distribute: with the folder"
status=0
timeout 60 "$LONGHAUL" run -n 2 -- "$LONGHAUL" distribute "$work/big" -o "$work/small" 2>"$work/run.err" ||
    status=$?
[ "$status" -eq 1 ] || fail "distribute ended with $status"
expect_line "$work/run.err" "rank 1: $work/small: allocating the file failed: No space left on device ("
nothing "$work/small"

say "8 MiB do, and room that was set aside is given back"
start_recv recv "$work/small"
send "$work/fits" "$where"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 20
cmp "$work/fits" "$work/small/fits" || fail "it is another file"
only "$work/small" fits
echo "all well"
