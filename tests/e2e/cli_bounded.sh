# Messages with a deadline: perf over a link with losses, a deadline that cuts off, a code; a file refuses it.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

start server perf --server --listen '[::1]:0'

# perf SCHEME ARGUMENT...: a client; its JSON is in $work/got.json.
perf() {
    scheme=$1
    shift
    timeout 120 "$LONGHAUL" perf "$where" --reliability "$scheme" --json "$work/got.json" "$@" \
        >"$work/perf.out" 2>"$work/perf.err" || fail "perf $* ended with $?"
}

# check CONDITION: of the JSON, in Python, as `got`.
check() {
    python3 - "$work/got.json" "$1" <<'PYTHON' || fail "see above"
import json, sys
got = json.load(open(sys.argv[1]))
assert eval(sys.argv[2]), (sys.argv[2], got)
PYTHON
}

say "losses are missing, and nothing is sent again"
perf bounded:deadline=2s --size 1MiB --iterations 20 --warmup 2 --link rtt=2ms,rate=1Gbit,loss=0.02
check '0.9 < got["delivered_share_min"] <= got["delivered_share"] < 1'
check 'got["missing_ranges"] > 20 and got["deadline_hits"] == 0 and got["retransmitted_bytes"] == 0'
check 'got["peer"]["messages_partial"] > 0 and got["completion_p50_s"] > 0.002'
expect_line "$work/perf.out" "delivered:"

say "parity recovers"
perf bounded:deadline=2s,code=mds,k=16,m=4 --size 1MiB --iterations 20 --warmup 2 \
    --link rtt=2ms,rate=1Gbit,loss=0.02
check 'got["delivered_share"] > 0.999 and got["peer"]["chunks_recovered"] > 0'

say "a deadline cuts off: 2 MiB take 168 ms here"
perf bounded:deadline=100ms --size 2MiB --iterations 4 --warmup 1 --link rtt=20ms,rate=100Mbit
check 'got["deadline_hits"] == 4 and 0 < got["delivered_share"] < 0.9'

say "a file needs every byte"
"$LONGHAUL" recv --output "$work" --listen '[::1]:0' --reliability bounded:deadline=1s 2>"$work/recv.err" &&
    fail "recv took a deadline"
expect_line "$work/recv.err" "every byte"
