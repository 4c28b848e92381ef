# longhaul perf: the table, the JSON with all its members, a sweep, a client that leaves, a second client.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

# perf ARGUMENT...: a client; fails unless it ends with 0.
perf() {
    timeout 120 "$LONGHAUL" perf "$where" "$@" >"$work/perf.out" 2>"$work/perf.err" ||
        fail "perf $* ended with $?"
}

start server perf --server --listen '[::1]:0'

say "one size: a table with the columns that users of ib_write_bw know"
perf --size 256KiB --iterations 20 --warmup 1 --json "$work/one.json" --link rtt=2ms,rate=1Gbit,loss=1e-2 \
    --reliability sr-nack
for word in '#bytes' '#iterations' 'BW average[Gb/sec]' 'MsgRate[Mpps]' 'p99.9' 'rtt=2ms' 'rate=1Gbit'; do
    expect_line "$work/perf.out" "$word"
done
grep -qE '^ +262144 +20 ' "$work/perf.out" || fail "no row for 262144 bytes"

say "its JSON has every member, and the numbers agree with each other"
python3 -m json.tool "$work/one.json" >/dev/null || fail "not JSON"
python3 - "$work/one.json" <<'PYTHON' || fail "see above"
import json, sys
got = json.load(open(sys.argv[1]))
members = """reliability fabric size_bytes iterations in_flight link goodput_bps completion_mean_s
    completion_p50_s completion_p99_s completion_p999_s completion_max_s ideal_s wire_bytes
    retransmitted_bytes bad_packets local peer first_s""".split()
missing = [name for name in members if name not in got]
assert not missing, f"missing: {missing}"
assert got["reliability"] == "sr-nack" and got["fabric"] == "udp", got
assert got["size_bytes"] == 262144 and got["iterations"] == 20, got
times = [got[f"completion_{which}_s"] for which in ("p50", "p99", "p999", "max")]
assert 0 < times[0] and times == sorted(times), times
assert got["completion_p50_s"] > 0.002, "less than a round trip"
assert 0.004 < got["ideal_s"] < 0.005, got["ideal_s"]
assert got["first_s"] > 0
assert got["limited_by"] in ("application", "rate", "receiver", "host"), got["limited_by"]
assert got["congestion"] == "fixed" and got["queueing_delay_p99_s"] is None, got["congestion"]
assert got["remembered_rate_bps"] is None
local, peer = got["local"], got["peer"]
assert set(local) == set(peer) and len(local) > 30
assert local["tx_bytes"] >= 21 * 262144, local["tx_bytes"]
assert local["tx_bytes"] - local["tx_retransmitted_bytes"] == 21 * 262144
assert local["messages_sent"] == 21 == peer["messages_received"], (local, peer)
assert got["wire_bytes"] == local["tx_wire_bytes"] > local["tx_bytes"]
assert got["retransmitted_bytes"] == local["tx_retransmitted_bytes"] > 0
assert got["bad_packets"] == 0
PYTHON

say "a sweep is an array, a row each; a scheme is asked for; JSON alone goes to stdout"
perf --size 4KiB..16KiB,100000 --iterations 5 --in-flight 4 --reliability sr-rto --json -
python3 - "$work/perf.out" <<'PYTHON' || fail "see above"
import json, sys
got = json.load(open(sys.argv[1]))
assert [each["size_bytes"] for each in got] == [4096, 8192, 16384, 100000], got
assert all(each["reliability"] == "sr-rto" and each["ideal_s"] is None for each in got)
PYTHON
[ "$(grep -cE '^ +[0-9]+ +5 ' "$work/perf.err")" -eq 4 ] || fail "not four rows"

say "attributes that the client asks for hold at the server"
perf --size 1MiB --iterations 3 --mtu 1024 --chunk 4KiB --slots 16 --slot-size 256KiB --window 1MiB \
    --channels 2 --rate 500Mbit --in-flight 2
expect_line "$work/perf.out" "mtu 1024"

say "a client that is killed in the middle does not end the server"
"$LONGHAUL" perf "$where" --size 1MiB --iterations 100000 --peer-timeout 1s >/dev/null 2>&1 &
client=$!
sleep 0.5
kill -9 $client
wait $client 2>/dev/null
perf --size 4KiB --iterations 2 --wait 60s

say "a client that ends between its order and its connection does not keep the next one waiting"
printf 'precious\n' >"$work/precious"
status=0
"$LONGHAUL" perf "$where" --size 4KiB --path-file "$work/precious" >/dev/null 2>"$work/perf.err" || status=$?
[ "$status" -eq 2 ] || fail "ended with $status"
# The server would wait 30 s for the connection of the first.
timeout 20 "$LONGHAUL" perf "$where" --size 4KiB --iterations 2 --wait 60s \
    >"$work/perf.out" 2>"$work/perf.err" ||
    fail "the next client was kept waiting"

say "SIGINT ends a client with 130 and the server goes on; SIGTERM ends the server with 143"
"$LONGHAUL" perf "$where" --size 1MiB --iterations 100000 >/dev/null 2>"$work/client.err" &
client=$!
sleep 0.5
kill -INT $client
ended client $client 130 10
perf --size 4KiB --iterations 2 --wait 60s
kill -TERM "$pid"
ended server "$pid" 143 10

say "a results file that cannot be written is found before the measurement"
status=0
"$LONGHAUL" perf "$where" --json "$work/no/such/folder" 2>"$work/perf.err" || status=$?
[ "$status" -eq 1 ] || fail "ended with $status"
expect_line "$work/perf.err" "$work/no/such/folder"
echo "all well"
