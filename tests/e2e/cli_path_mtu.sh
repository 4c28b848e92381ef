# A path whose MTU is, or becomes, smaller than a packet, and whose router reports nothing (PMTU black hole):
# files and messages pass in smaller packets, each byte right, and the sender reports it.
# Needs network namespaces and nft; skipped without.
#
# SPDX-License-Identifier: BSD-3-Clause
if [ -z "${OWN_NETWORK:-}" ]; then
    unshare=(unshare --net --mount)
    [ "$(id -u)" -eq 0 ] || unshare+=(--user --map-root-user)
    command -v nft >/dev/null && "${unshare[@]}" nft add table ip probe 2>/dev/null || exit 77
    OWN_NETWORK=1 exec "${unshare[@]}" bash "$0"
fi
. "$(dirname "$0")/lib_cli.sh"
. "$(dirname "$0")/lib_router.sh"

# The router sends no ICMP ("fragmentation needed", "packet too big").
make_network() {
    make_routed_hosts 9000 || exit 77
    ip netns exec middle nft add table inet t
    ip netns exec middle nft add chain inet t own '{ type filter hook output priority 0; }'
    ip netns exec middle nft add rule inet t own meta l4proto icmp drop &&
        ip netns exec middle nft add rule inet t own icmpv6 type packet-too-big drop || exit 77
}

# serve COMMAND ARGUMENT...: on the right, in the background.
serve() {
    rm -f "$work/pipe"
    mkfifo "$work/pipe"
    ip netns exec right "$LONGHAUL" "$@" >"$work/pipe" 2>"$work/server.err" &
    pid=$!
    exec {feed}<"$work/pipe"
    read -r -t 30 -u "$feed" || fail "$1 does not listen"
}

# begin_send HOST ARGUMENT...: in the background, to a receiver of its own; sets sender.
begin_send() {
    rm -f "$work/out/file"
    serve recv --output "$work/out" --insecure
    ip netns exec left "$LONGHAUL" send "$work/file" --insecure "$@" >"$work/client.out" \
        2>"$work/client.err" &
    sender=$!
}

# end_send [TEXT]: the file is there, and the sender's messages have the text.
end_send() {
    ended send "$sender" 0 60
    ended recv "$pid" 0 60
    cmp "$work/file" "$work/out/file" || fail "other bytes arrived"
    [ -z "${1:-}" ] || expect_line "$work/client.err" "$1"
}

# Until that many bytes have left the router to the right.
passed() {
    local at
    for _ in {1..600}; do
        at=$(ip netns exec middle cat /sys/class/net/vr/statistics/tx_bytes)
        [ "$at" -ge "$1" ] && return
        sleep 0.02
    done
    fail "$at bytes of $1 arrived"
}

mount -t tmpfs tmpfs /run && mkdir /run/netns || exit 77
mount -t sysfs sysfs /sys 2>/dev/null
mkdir "$work/out"
make_file "$work/file" 30000000
eighths="packets of MTU 8896 no longer pass the path: each is sent as 8 pieces of 1112 bytes"

make_network
say "whole packets"
begin_send 10.77.2.2
end_send
! grep -q "no longer pass" "$work/client.err" || fail "a note on packets that pass"

for to in 10.77.2.2 '[fd77:2::2]'; do
    say "a black hole from the start: $to"
    make_network
    ip -n middle link set vr mtu 1500
    begin_send "$to"
    end_send "$eighths"

    say "a black hole in mid-transfer: $to"
    make_network
    begin_send "$to" --rate 200Mbit
    passed 4000000
    ip -n middle link set vr mtu 1500
    end_send "$eighths"

    say "the MTU of the sender's own interface falls: $to"
    make_network
    begin_send "$to" --rate 200Mbit
    passed 4000000
    ip -n left link set vl mtu 2400
    end_send "each is sent as 4 pieces of 2224 bytes"
done

say "messages, and their counters"
make_network
ip -n middle link set vr mtu 1500
serve perf --server --once --insecure
ip netns exec left "$LONGHAUL" perf 10.77.2.2 --size 1MiB --iterations 300 --rate 400Mbit --insecure \
    --json "$work/perf.json" >"$work/client.out" 2>"$work/client.err" || fail "perf ended with $?"
python3 - "$work/perf.json" <<'END' || fail "the counters are wrong"
import json, sys
text = open(sys.argv[1], encoding="utf-8").read()
def find(node, name):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == name:
                yield value
            yield from find(value, name)
    elif isinstance(node, list):
        for value in node:
            yield from find(value, name)
data = json.loads(text)
sys.exit(not (max(find(data, "path_mtu_lowered")) == 1 and max(find(data, "tx_pieces")) > 1000))
END
say "encrypted: packets that fill the path, and a black hole"
(umask 077 && head -c 32 /dev/urandom | base64 >"$work/key")
while read -r host mtu; do
    make_routed_hosts 1500
    serve perf --server --once --key-file "$work/key"
    ip netns exec left "$LONGHAUL" perf "$host" --size 1MiB --iterations 20 --rate 400Mbit \
        --key-file "$work/key" --json "$work/perf.json" >"$work/client.out" 2>"$work/client.err" ||
        fail "perf ended with $?"
    expect_line "$work/client.out" "mtu $mtu,"
    grep -q '"path_mtu_lowered": 0' "$work/perf.json" || fail "packets of $mtu bytes do not pass to $host"
done <<'END'
10.77.2.2 1408
[fd77:2::2] 1344
END
make_network
ip -n middle link set vr mtu 1500
rm -f "$work/out/file"
serve recv --output "$work/out" --key-file "$work/key"
ip netns exec left "$LONGHAUL" send "$work/file" 10.77.2.2 --key-file "$work/key" >"$work/client.out" \
    2>"$work/client.err" &
sender=$!
end_send "$eighths"
echo "all well"
