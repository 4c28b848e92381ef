# longhaul plan --flow-control: what each way needs, with a buffer that is there, and what is refused.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
cd "$work" || exit 1

# plan ARGUMENT...: must end with 0 and say nothing on stderr; leaves plan.out.
plan() {
    local status=0
    timeout 60 "$LONGHAUL" plan --flow-control "$@" >plan.out 2>plan.err || status=$?
    [ "$status" -eq 0 ] || fail "longhaul plan --flow-control $* ended with $status"
    [ ! -s plan.err ] || fail "longhaul plan --flow-control $* complained"
}

# wrong TEXT ARGUMENT...: one line on stderr has that text, nothing is on stdout, and the status is 2.
wrong() {
    local text=$1 status=0
    shift
    timeout 20 "$LONGHAUL" plan --flow-control "$@" >wrong.out 2>wrong.err || status=$?
    [ "$status" -eq 2 ] || fail "longhaul plan --flow-control $* ended with $status, not 2"
    [ "$(wc -l <wrong.err)" -eq 1 ] || fail "longhaul plan --flow-control $* said $(wc -l <wrong.err) lines"
    expect_line wrong.err "$text"
    [ ! -s wrong.out ] || fail "longhaul plan --flow-control $* printed something on stdout"
}

# check TEXT: plan.out is JSON, called j, with ways w, for which that Python holds.
check() {
    python3 -c 'import json
j = json.load(open("plan.out"))
w = {way["way"]: way for way in j["ways"]}
assert '"$1"', json.dumps(j, indent=1)' 2>check.err || fail "it does not hold that $1"
}

link=(--bandwidth 400Gbit --distance 600km --packet 1500)

say "the link of the Bifrost paper"
plan "${link[@]}" --json -
check "j['bdp_bytes'] == 300000000 and j['link']['delay_s'] == 0.003"
check "w['PFC']['buffer_bytes'] == w['PFC']['xoff_bytes'] + w['PFC']['headroom_bytes'] == 600006064"
check "j['bifrost_h_bytes'] == 301000064 and w['Bifrost']['buffer_bytes'] == 301000064 + 605 * 1500 + 1564"
check "w['SWING']['buffer_bytes'] == 300003064 and 1.02 < w['credits']['buffer_bytes'] / 3e8 < 1.03"
check "w['PFC']['lost_bytes'] is None and abs(j['bifrost_pause_share'] - 64 / 500000) < 1e-9"

say "a round trip is the same link"
plan --bandwidth 400Gbit --rtt 6ms --packet 1500 --json file.json
python3 -c 'import json; assert json.load(open("file.json"))["bdp_bytes"] == 300000000' || fail "another link"

say "with less: what is lost, how long it idles, which part of the rate it carries"
plan "${link[@]}" --buffer 287MiB --json -
check "w['PFC']['lost_bytes'] == 0 and 0.52 < w['PFC']['rate_share'] < 0.53"
check "abs(w['PFC']['idle_s'] - (300003000 - 938248) * 8 / 4e11) < 1e-9"
check "0.97 < w['credits']['rate_share'] < 0.98 and w['SWING']['rate_share'] == 1"
plan "${link[@]}" --buffer 700MB --json -
check "all(way['lost_bytes'] == 0 and way['idle_s'] == 0 and way['rate_share'] == 1 for way in w.values())"

say "what cannot run with a buffer is not planned with it"
plan "${link[@]}" --buffer 150MB --json -
check "all(w[n][k] is None for n in ('PFC', 'Bifrost') for k in ('lost_bytes', 'idle_s', 'rate_share'))"
check "w['PFC']['least_buffer_bytes'] == 300003065 and w['Bifrost']['least_buffer_bytes'] == 301003128"
check "0.48 < w['credits']['rate_share'] < 0.49 and w['SWING']['lost_bytes'] == 150003064"
plan "${link[@]}" --buffer 150MB
expect_line plan.out "Bifrost   150000000 bytes: "

say "signals that get lost, and a guard against that"
plan "${link[@]}" --json -
check "w['PFC']['lost_signal_bytes'] == w['SWING']['lost_signal_bytes'] == 65535 * 64"
check "w['Bifrost']['lost_signal_bytes'] == 500000 and w['credits']['lost_signal_bytes'] == 0"
plan "${link[@]}" --guard 3 --json -
check "w['Bifrost']['lost_signal_bytes'] == 0 and j['link']['guard_slots'] == 3"
check "w['Bifrost']['buffer_bytes'] == 301909128 + 2 * 500000 + (300000000 // 500000 + 4) * 1564"
plan "${link[@]}" --guard 1
expect_line plan.out "lost frames cause no overflow"

say "a delay that drifts"
plan "${link[@]}" --drift 100us --json -
check "j['bdp_bytes'] == 310000000 and abs(j['link']['delay_s'] - 0.0031) < 1e-12"
check "abs(j['link']['drift_s'] - 1e-4) < 1e-12"
check "w['Bifrost']['headroom_bytes'] > 5000000"
plan "${link[@]}" --drift 100us --guard 1 --json -
check "w['Bifrost']['headroom_bytes'] < 3000000"

say "a link shorter than the usual slot"
plan --bandwidth 400Gbit --distance 1km --json -
check "j['link']['slot_s'] == 5e-6"

say "the table"
plan "${link[@]}" --buffer 287MiB
expect_line plan.out "400Gbit/s, 3ms one way"
expect_line plan.out "PFC"
expect_line plan.out "With 287MiB, worst case"
plan --help
expect_line plan.out "--leak-slots"

say "what is refused"
wrong "--bandwidth RATE" --distance 600km
wrong "missing --rtt" --bandwidth 400Gbit
wrong "mutually exclusive" "${link[@]}" --rtt 6ms
wrong "above 0km" --bandwidth 400Gbit --distance 0km
wrong "invalid distance" --bandwidth 400Gbit --distance 600
wrong "invalid distance" --bandwidth 400Gbit --distance 1m
wrong "1e6 to 1e14" --bandwidth 1kbit --distance 600km
wrong "at most a second" --bandwidth 400Gbit --rtt 3s
wrong "--slot: a slot of 4000000 ns is longer than the link's delay" "${link[@]}" --slot 4ms
wrong "one frame can pause" "${link[@]}" --slot 100us --guard 1
wrong "1 to 1000" "${link[@]}" --guard 0
wrong "longhaul plan --flow-control --help" "${link[@]}" --loss 1e-3
wrong "--size: unknown option" "${link[@]}" --size 1MiB

echo "all well"
