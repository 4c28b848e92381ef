# longhaul plan prints the commands that do what it plans: each is taken as it stands, and moves a file.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
cd "$work" || exit 1

make_file data 3000000

# plan ARGUMENT...: sets recv_line and send_line.
plan() {
    timeout 60 "$LONGHAUL" plan "$@" >plan.out 2>plan.err || fail "longhaul plan $* ended with $?"
    recv_line=$(grep -oE '^ +longhaul recv .*' plan.out | sed 's/^ *//')
    send_line=$(grep -oE '^ +longhaul send FILE HOST .*' plan.out | sed 's/^ *//')
}

# typed: both commands, as printed, with a folder, a file and a host in their places.
typed() {
    [ -n "$recv_line" ] && [ -n "$send_line" ] || fail "no commands: $(cat plan.out)"
    local recv send
    read -r -a recv <<<"$recv_line"
    read -r -a send <<<"$send_line"
    rm -rf here && mkdir here
    start_recv recv here "${recv[@]:2}"
    send data "$where" "${send[@]:4}"
    [ "$status" -eq 0 ] || fail "$send_line: ended with $status"
    ended recv "$pid" 0 30
    cmp data here/data || fail "another file arrived"
}

say "a link that holds more than the default window: the commands ask for a larger one, and enough slots"
plan --bandwidth 400Gbit --rtt 25ms --loss 1e-5 --size 128MiB
expect_line plan.out 'the default window is 64MiB'
window=$(grep -oP '(?<=--window )\d+(?=MiB)' <<<"$recv_line")
[ "${window:-0}" -ge 1193 ] && [ "$window" -le 1300 ] || fail "1.16GiB fit on the link: $recv_line"
[ "$(wc -L <plan.out)" -le 110 ] || fail "lines of $(wc -L <plan.out) columns"
typed

say "one that holds less: they do not"
plan --bandwidth 1Gbit --rtt 25ms --loss 1e-3 --size 8MiB
! grep -q -- '--window' plan.out || fail "a window: $recv_line"
! grep -q 'default window' plan.out || fail "a word about the window"
expect_line plan.out '--chunk '
typed

say "other packets, chunks and codes"
plan --bandwidth 100Gbit --rtt 10ms --loss 0 --size 1GiB --mtu 1024
expect_line plan.out '--mtu 1024'
typed
plan --bandwidth 100Gbit --rtt 80ms --loss 1e-6 --size 1GiB --chunk 256KiB --max-overhead 1%
typed
plan --bandwidth 10Gbit --rtt 200ms --loss 5% --size 64KiB --burst 8 --mtu 256
typed
plan --bandwidth 40Tbit --rtt 250ms --loss 1e-2 --size 128MiB --by p99.9
expect_line plan.out 'the maximum 64GiB'
expect_line plan.out '--window 65536MiB'

say "packets that fill an Ethernet, as a probe finds it: chunks are of them"
echo '{"bandwidth_bps": 1e9, "rtt_s": 0.025, "loss": 1e-3, "mtu_bytes": 1408}' >link.json
plan --link-file link.json --size 64MiB
expect_line plan.out '--mtu 1408'
typed
plan --link-file link.json --size 64MiB --chunk 64KiB
expect_line plan.out '--chunk 44KiB'
typed

say "none where nothing keeps to the limits, and where chunks are none of Longhaul's"
plan --bandwidth 400Gbit --rtt 25ms --size 128MiB --loss 30% --max-overhead 0
[ -z "$recv_line$send_line" ] || fail "commands without a plan"
plan --bandwidth 400Gbit --rtt 25ms --size 128MiB --loss 1e-5 --chunk 12KiB
[ -z "$recv_line$send_line" ] || fail "commands for chunks of 12 KiB"

say "JSON has them"
plan --bandwidth 400Gbit --rtt 25ms --loss 1e-5 --size 128MiB
timeout 60 "$LONGHAUL" plan --bandwidth 400Gbit --rtt 25ms --loss 1e-5 --size 128MiB --json - >plan.json ||
    fail "plan ended with $?"
python3 - "$recv_line" "$send_line" <<'PYTHON' || fail "see above"
import json, sys
commands = json.load(open("plan.json"))["plan"]["commands"]
assert commands == sys.argv[1:], commands
PYTHON
echo "all well"
