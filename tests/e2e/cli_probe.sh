# longhaul probe: what the link was told is found again; MTUs of real interfaces; peers that misbehave.
#
# The emulated link's draws follow from its seed and the number of packets, so what is asserted about loss
# does not depend on chance. Of times only the least counts, and that generously.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

here=$(cd "$(dirname "$0")" && pwd)

# probe ARGUMENT...: a client of the server at $where; leaves probe.json.
probe() {
    timeout 120 "$LONGHAUL" probe "$where" --json "$work/probe.json" "$@" \
        >"$work/probe.out" 2>"$work/probe.err" || fail "probe $* ended with $?"
}

# holds EXPRESSION: python says that it holds for d, the JSON.
holds() {
    python3 -c "import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not ($1))" "$work/probe.json" ||
        fail "$1 does not hold: $(cat "$work/probe.json")"
}

# Whether the machine itself dropped packets, so that fewer trials tell about the link than were meant to.
disturbed() {
    python3 -c "import json, sys; sys.exit(not json.load(open(sys.argv[1]))['trials_excluded'])" \
        "$work/probe.json"
}

# Path MTUs are measured in networks of their own, beside all else.
cat >"$work/network.sh" <<'NETWORK'
# probe_mtu ADDRESS WANTED
probe_mtu() {
    timeout 60 "$LONGHAUL" probe "$1" --insecure --time 1s --trials 1 --packets 100 --wait 20s \
        --json "$work/mtu.json" >"$work/mtu.out" 2>"$work/mtu.err" || { cat "$work/mtu.err"; exit 1; }
    python3 -c "
import json, sys
got = json.load(open(sys.argv[1]))['path_mtu_bytes']
sys.exit(None if got == int(sys.argv[2]) else f'the path MTU is {got}, not {sys.argv[2]}')" \
        "$work/mtu.json" "$2" || exit 1
}
ip link set lo up || exit 77
"$LONGHAUL" probe --server --listen :47912 >/dev/null 2>&1 &
for mtu in 1280 1437 1500 9000; do
    ip link set lo mtu $mtu || exit 77
    probe_mtu '[::1]' $mtu
    probe_mtu 127.0.0.1 $mtu
done

# This namespace - router - far: 9000 here, 1400 behind the router.
unshare -n sleep 300 & router=$!
unshare -n sleep 300 & far=$!
sleep 0.3
in_router() { nsenter -t $router -n "$@"; }
in_far() { nsenter -t $far -n "$@"; }
{
    ip link add near0 mtu 9000 type veth peer name near1 mtu 9000 && ip link set near1 netns $router
    ip link add far0 mtu 1400 type veth peer name far1 mtu 1400
    ip link set far0 netns $router && ip link set far1 netns $far
    ip link set near0 up && ip addr add 10.1.0.1/24 dev near0 && ip route add default via 10.1.0.2
    in_router ip addr add 10.1.0.2/24 dev near1 && in_router ip link set near1 up
    in_router ip addr add 10.2.0.1/24 dev far0 && in_router ip link set far0 up
    in_router sysctl -qw net.ipv4.ip_forward=1
    in_far ip link set far1 up && in_far ip addr add 10.2.0.2/24 dev far1
    in_far ip route add default via 10.2.0.1
} >"$work/net.err" 2>&1 || { cat "$work/net.err"; exit 77; }
in_far "$LONGHAUL" probe --server --insecure --listen :47912 >/dev/null 2>&1 &
probe_mtu 10.2.0.2 1400
NETWORK
network=
if unshare -n true 2>/dev/null && command -v ip nsenter >/dev/null; then
    export LONGHAUL work
    # Its own process namespace: whatever it leaves running ends with it.
    unshare -n -p -f --mount-proc --kill-child bash "$work/network.sh" >"$work/network.out" 2>&1 &
    network=$!
fi

start server probe --server --listen '[::1]:0'

say "delay and loss of the link; a table and words"
probe --link rtt=25ms,loss=1e-2,seed=4 --size 256,1000 --trials 2 --packets 5000 --rate 100Mbit --time 2s
expect_line "$work/probe.out" 'payload'
expect_line "$work/probe.out" 'independent (no bursts)'
expect_line "$work/probe.out" 'rtt=25ms,loss=0.01'
holds '0.025 <= d["rtt_min_s"] < 0.030 and d["rtt_min_s"] <= d["rtt_s"] <= d["rtt_p99_s"] <= d["rtt_max_s"]'
holds 'd["rtt_samples"] >= 10 and d["path_mtu_bytes"] > 1000 and d["bandwidth_bps"] > 0'
holds '[s["payload_bytes"] for s in d["sizes"]] == [256, 1000]'
if disturbed; then
    echo "skipped: this machine dropped packets of the probe itself"
else
    holds 'd["sent"] == 20000 and d["sent"] - d["received"] == sum(s["lost"] for s in d["sizes"])'
    holds 'd["loss_low"] <= 0.01 <= d["loss_high"] and not d["bursty"]'
    holds 'all(s["loss_low"] <= 0.01 <= s["loss_high"] for s in d["sizes"])'
fi

say "the JSON has every member that the manual lists"
man=${LH_SOURCE_DIR:-$here/../..}/docs/man/longhaul-probe.1
for member in $(python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
size = d['sizes'][0]
print(*d, *size, *size['trials'][0])" "$work/probe.json"); do
    grep -qw -e "$member" "$man" || fail "$member is not in the manual"
done

say "longhaul plan takes what it wrote"
# Where every trial was left out no loss is known, and no plan is made without one.
more=()
! grep -q '^  "loss": null' "$work/probe.json" || more=(--loss 1e-2)
timeout 60 "$LONGHAUL" plan --link-file "$work/probe.json" --size 16MiB "${more[@]}" \
    --json "$work/plan.json" >"$work/plan.out" 2>"$work/plan.err" ||
    fail "plan ended with $?: $(cat "$work/plan.err")"
python3 -c '
import json, sys
found, plan = (json.load(open(name)) for name in sys.argv[1:])
for member in ("bandwidth_bps", "rtt_s"):
    assert plan["link"][member] == found[member], member
if found["loss"] is None:
    assert plan["link"]["loss"] == 0.01
else:
    assert plan["link"]["loss"] == found["loss_high"] and plan["link"]["loss_low"] == found["loss"]
    assert plan["link"]["burst_packets"] == found["burst_packets"]
assert plan["plan"]["best"] is not None and plan["schemes"][0]["mean_s"] > plan["link"]["rtt_s"]' \
    "$work/probe.json" "$work/plan.json" || fail "$(cat "$work/plan.json")"

say "bursts: their mean length, and an interval of the loss that knows of them"
probe --link rtt=2ms,loss=2e-2,burst=8,seed=1 --size 256 --trials 2 --packets 20000 --rate 200Mbit --time 1s
if disturbed; then
    echo "skipped: this machine dropped packets of the probe itself"
else
    holds 'd["loss_low"] <= 0.02 <= d["loss_high"] and d["bursty"]'
    holds '6.4 <= d["burst_packets"] <= 9.6 and d["burst_low"] <= 8 <= d["burst_high"]'
    expect_line "$work/probe.out" 'mean burst length'
fi

say "a burst that takes all the first round trips: it goes on asking"
probe --link rtt=50ms,rate=500Mbit,loss=1e-2,burst=16,seed=8 --size 256 --trials 1 --packets 100 --time 1s
holds '0 < d["rtt_samples"] and 0.05 <= d["rtt_min_s"]'

say "order, copies and flows"
probe --link rtt=8ms,reorder=5e-2,duplicate=2e-2,seed=2 --flows 4 --size 256 --trials 1 --packets 5000 \
    --rate 100Mbit --time 1s
holds '0 < d["reorder"] < 0.1 and d["reorder_extent_max_packets"] > 0 and d["reorder_late_max_s"] > 0'
holds '0.01 < d["duplicate"] < 0.03 and d["flows"] == 4'
if ! disturbed; then
    holds 'd["loss"] == 0 and d["loss_high"] < 1e-3'
    expect_line "$work/probe.out" 'No loss'
fi

say "without emulation, over IPv4, JSON alone on stdout"
"$LONGHAUL" probe "127.0.0.1:${where##*:}" --time 1s --json - >"$work/probe.out" 2>"$work/probe.err"
[ $? -eq 1 ] || fail "a server on ::1 answers on 127.0.0.1"
kill "$pid"
wait "$pid" 2>/dev/null
start server probe --server --listen ':0'
timeout 120 "$LONGHAUL" probe "127.0.0.1:${where##*:}" --time 1s --json - >"$work/probe.json" \
    2>"$work/probe.err" || fail "ended with $?"
holds 'd["family"] == "ipv4" and d["link"] == "none"'
expect_line "$work/probe.err" 'round trip'

say "a client that is interrupted ends with 130; the server goes on"
where="[::1]:${where##*:}"
"$LONGHAUL" probe "$where" >/dev/null 2>"$work/client.err" &
client=$!
sleep 0.5
kill -INT $client
ended client $client 130 10
probe --time 1s --trials 1 --packets 100

say "strangers and liars at the server's port"
port=${where##*:}
for words in 'GET / HTTP/1.1\r\n\r\n' 'L' 'LHPT\x01\x01\x00\x01\xff\xff\x00\x00' ''; do
    exec {talk}<>"/dev/tcp/::1/$port" || fail "cannot connect"
    # shellcheck disable=SC2059  # the words are the format
    { printf "$words" >&"$talk"; } 2>/dev/null || true # stays open
done
head -c 100000 /dev/urandom 2>/dev/null >"/dev/tcp/::1/$port" || true
timeout 60 python3 "$here/probe_peers.py" ask "$port" 2>"$work/ask.err" || fail "see above"
probe --time 1s --trials 1 --packets 100 --wait 60s
expect_line "$work/server.err" 'out of range'

say "SIGTERM ends the server with 143"
kill -TERM "$pid"
ended server "$pid" 143 10

# bad KIND TEXT: a client of a server that misbehaves so ends with 1 and one line that has the text.
bad() {
    local status=0 peer
    coproc PEER { exec timeout 60 python3 "$here/probe_peers.py" serve "$1"; }
    peer=$PEER_PID
    read -r -t 30 -u "${PEER[0]}" port || fail "no peer"
    timeout 60 "$LONGHAUL" probe "[::1]:$port" --wait 2s >"$work/bad.out" 2>"$work/bad.err" || status=$?
    [ "$status" -eq 1 ] || fail "$1: ended with $status"
    [ "$(wc -l <"$work/bad.err")" -eq 1 ] || fail "$1: said $(wc -l <"$work/bad.err") lines"
    expect_line "$work/bad.err" "$2"
    wait "$peer" 2>/dev/null
}

say "servers that are none"
bad noise 'is not a longhaul probe'
bad web 'is not a longhaul probe'
bad version 'version 9'
bad port 'out of range'
bad refuse 'not today'
bad escape 'control character'
bad turn 'unexpected data'
bad closed 'TCP reaches it'
bad silence 'no answer from the server'
bad gone 'closed the connection'

# told KIND STATUS: a probe of a server that reports that.
told() {
    local status=0 peer
    coproc PEER { exec timeout 60 python3 "$here/probe_peers.py" report "$1"; }
    peer=$PEER_PID
    read -r -t 30 -u "${PEER[0]}" port || fail "no peer"
    timeout 60 "$LONGHAUL" probe "[::1]:$port" --size 256,4096 --packets 200 --trials 2 --rate 20Mbit \
        --time 1s --json "$work/probe.json" >"$work/probe.out" 2>"$work/probe.err" || status=$?
    [ "$status" -eq "$2" ] || fail "$1: ended with $status"
    wait "$peer" || fail "$1: the server failed"
}

say "drops of the receiving host are told apart, and such trials left out"
told drops 0
holds 'd["trials"] == 4 == d["trials_excluded"] and d["endpoint_drops_socket"] == 28'
holds 'd["loss"] is None and d["sizes"][0]["loss"] is None and d["sizes"][0]["sent"] == 0'
holds 'd["sizes"][0]["trials"] == 2 * [{"sent": 200, "lost": 20, "endpoint_drops": 7, "excluded": 1}]'
expect_line "$work/probe.out" 'Loss unknown'
expect_line "$work/probe.out" '4 of 4 trials excluded'
status=0
"$LONGHAUL" plan --link-file "$work/probe.json" --size 16MiB >"$work/plan.out" 2>"$work/plan.err" || status=$?
[ "$status" -eq 2 ] || fail "a plan without a loss ended with $status"
expect_line "$work/plan.err" 'missing --loss'
grep -q '^  "loss": null' "$work/probe.json" || fail "an unknown loss looks otherwise"

say "loss that depends on the size: that of data packets counts"
told sizes 0
holds 'd["loss_payload_bytes"] == 4096 and d["loss"] == 0.25 and not d["bursty"]'
holds 'd["sizes"][0]["lost"] == 0 and d["sizes"][1]["lost"] == 100'
expect_line "$work/probe.out" 'depends on the packet size'

say "a report that cannot be is not believed"
told lies 1
expect_line "$work/probe.err" 'inconsistent report'

say "path MTUs: of an interface, and behind a router"
if [ -n "$network" ]; then
    status=0
    wait "$network" || status=$?
    case $status in
    0) ;;
    77) echo "skipped: no network can be made here: $(tail -n 1 "$work/network.out")" ;;
    *) fail "$(cat "$work/network.out")" ;;
    esac
else
    echo "skipped: it takes root, ip and nsenter to give an interface another MTU"
fi
echo "all well"
