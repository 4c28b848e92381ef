# What limited a transfer, when a load comes beside it: on a path between two network namespaces, which the
# packets of another program fill.
# Needs what longhaul-path needs; skipped without.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

path=$LH_BUILD_DIR/bench/longhaul-path
status=0
timeout 20 "$path" -- true >"$work/path.out" 2>"$work/path.err" || status=$?
cat "$work/path.err"
[ "$status" -ne 77 ] || exit 77

# The load heeds nothing and takes 95 % of the path, once half of the messages are through, until all are. It
# is connected before, and stands still until then: its start may take longer than the messages. The path is
# so slow that the load fills it on a busy machine, too.
cat >"$work/left" <<'END'
longhaul=$1 work=$2
sent() { awk '/path0/ { print $10 }' /proc/self/net/dev; }
"$longhaul" perf 10.99.0.2:5002 --size 64MiB --iterations 1000 --rate 19Mbit --insecure >/dev/null 2>&1 &
load=$!
until [ "$(sent)" -ge 200000 ]; do sleep 0.02; done
kill -STOP "$load"
half=$(($(sent) + 2200000))
"$longhaul" perf 10.99.0.2:5001 --size 256KiB --iterations 16 --insecure --json "$work/limits.json" &
measured=$!
until [ "$(sent)" -ge "$half" ]; do sleep 0.02; done
kill -CONT "$load"
wait "$measured"
status=$?
kill "$load"
exit "$status"
END
cat >"$work/right" <<'END'
longhaul=$1
"$longhaul" perf --server --insecure --listen 10.99.0.2:5002 >/dev/null 2>&1 &
exec "$longhaul" perf --server --insecure --listen 10.99.0.2:5001
END

say "a competing load"
timeout 100 "$path" --rate 20Mbit --delay 10ms --queue 2bdp --json "$work/path.json" \
    -- bash "$work/left" "$LONGHAUL" "$work" ::: bash "$work/right" "$LONGHAUL" \
    >"$work/perf.out" 2>"$work/perf.err" || fail "perf failed"
expect_line "$work/perf.out" "limited by: a competing load, or a path that became slower ("
grep -q '"limited_by": *"competition"' "$work/limits.json" || fail "$(grep limited_by "$work/limits.json")"
echo "all well"
