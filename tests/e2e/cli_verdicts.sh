# Paths that fail the user, made by a router of the kernel's between two hosts of their own: each command
# reports cause and remedy, on both sides, within a few seconds. And one that must not fail: clients behind
# NAT.
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

# left - middle - right; the middle one routes. Anew each time: it remembers flows.
make_network() {
    local name
    for name in left middle right; do
        ip netns del $name 2>/dev/null
        ip netns add $name || exit 77
        ip -n $name link set lo up
    done
    ip link add name vl netns left type veth peer netns middle name vl &&
        ip link add name vr netns middle type veth peer netns right name vr || exit 77
    ip -n left addr add 10.77.1.2/24 dev vl
    ip -n middle addr add 10.77.1.1/24 dev vl
    ip -n middle addr add 10.77.2.1/24 dev vr
    ip -n right addr add 10.77.2.2/24 dev vr
    for name in left:vl middle:vl middle:vr right:vr; do
        ip -n ${name%:*} link set ${name#*:} up
    done
    ip -n left route add default via 10.77.1.1
    ip -n right route add default via 10.77.2.1
    ip netns exec middle sysctl -qw net.ipv4.ip_forward=1
    rule add table ip t
    rule add chain ip t forwarded '{ type filter hook forward priority 0; }'
    rule add chain ip t own '{ type filter hook output priority 0; }'
    rule add chain ip t source '{ type nat hook postrouting priority 100; }' &&
        rule add chain ip t destination '{ type nat hook prerouting priority -100; }' || exit 77
}

# How many mappings NAT made of the client's control port; counted by the first rule of the chain.
mappings() {
    rule -j list chain ip t forwarded | python3 -c '
import json, sys
print(next(part["counter"]["packets"] for entry in json.load(sys.stdin)["nftables"] if "rule" in entry
           for part in entry["rule"]["expr"] if "counter" in part))'
}

# The same with IPv6, and NAT before the left host.
make_ipv6() {
    ip netns exec middle sysctl -qw net.ipv6.conf.all.forwarding=1
    ip -n left addr add fd77:1::2/64 dev vl nodad
    ip -n middle addr add fd77:1::1/64 dev vl nodad
    ip -n middle addr add fd77:2::1/64 dev vr nodad
    ip -n right addr add fd77:2::2/64 dev vr nodad
    ip -n left -6 route add default via fd77:1::1
    ip -n right -6 route add default via fd77:2::1
    rule add table ip6 t
    rule add chain ip6 t forwarded '{ type filter hook forward priority 0; }'
    rule add chain ip6 t source '{ type nat hook postrouting priority 100; }' || exit 77
    rule add rule ip6 t source oif vr masquerade random
    rule add rule ip6 t forwarded iif vr ct state new drop
}

rule() {
    ip netns exec middle nft "$@"
}

# path RULE...: a network whose router does that with packets.
path() {
    local each
    make_network
    for each in "$@"; do
        rule add rule ip t $each || fail "nft refused: $each"
    done
}

# serve COMMAND ARGUMENT...: on the right, in the background.
serve() {
    rm -f "$work/pipe" "$work/out/file" # an unchanged file is not sent
    mkfifo "$work/pipe"
    ip netns exec right "$LONGHAUL" "$@" --insecure >"$work/pipe" 2>"$work/server.err" &
    pid=$!
    exec {feed}<"$work/pipe"
    read -r -t 30 -u "$feed" || fail "$1 does not listen"
}

on_left() {
    timeout 20 ip netns exec left "$LONGHAUL" "$@" --insecure >"$work/client.out" 2>"$work/client.err"
}

# client TEXT COMMAND ARGUMENT...: on the left; fails, with that text; $server_text is in the server's
# messages. The time is far above what it takes, and far below what a program would wait that knows nothing.
client() {
    local text=$1 status=0
    shift
    on_left "$@" || status=$?
    # A transfer that has begun can continue.
    [ "$status" -eq 1 ] || [ "$1 $status" = "send 3" ] || fail "$1 ended with $status"
    expect_line "$work/client.err" "$text"
    for _ in {1..100}; do
        [ -z "$server_text" ] || grep -qF -e "$server_text" "$work/server.err" && break
        sleep 0.1
    done
    [ -z "$server_text" ] || expect_line "$work/server.err" "$server_text"
    kill "$pid"
    wait "$pid"
}

send_fails() {
    server_text=${2:-$1}
    serve recv --keep --output "$work/out"
    client "$1" send "$work/file" "${to:-10.77.2.2}"
}

perf_fails() {
    server_text=${2-$1}
    serve perf --server
    client "$1" perf 10.77.2.2 --iterations 3
}

mount -t tmpfs tmpfs /run && mkdir /run/netns || exit 77
mkdir "$work/out"
make_file "$work/file" 3000000

udp="meta l4proto udp"
ports="let UDP ports 4791 and 49152-65535 through"
for way in "" "iif vl" "iif vr"; do
    say "UDP is dropped: ${way:-both ways}"
    path "forwarded $way $udp drop"
    send_fails "UDP packets do not pass, TCP does: a firewall"
    expect_line "$work/client.err" "$ports"
done
perf_fails "UDP packets do not pass, TCP does: a firewall"
server_text="no packet of the client arrived at UDP port 47912"
path "forwarded $udp drop"
serve probe --server
client "UDP port 47912 of the server: no answer, but TCP passes" probe 10.77.2.2

say "UDP is refused by the host itself"
path
ip netns exec left nft add table ip t
ip netns exec left nft add chain ip t sent '{ type filter hook output priority 0; }'
ip netns exec left nft add rule ip t sent $udp drop
send_fails "UDP packets do not pass, TCP does: a firewall"

say "only the control port is open"
path "forwarded udp dport != 4791 drop"
# Probes of the whole size arrive there, so it is not the size.
send_fails "data packets do not pass, control packets do: a firewall or NAT on the path ($ports)"
# Its orders are small messages, which pass; the connection that it measures has other ports.
perf_fails "UDP packets do not pass, TCP does: a firewall" ""

say "the same, and large packets vanish: the message names the MTU that a probe passed"
path "own meta l4proto icmp drop" "forwarded udp dport != 4791 drop"
ip -n middle link set vr mtu 1000
send_fails "a link with a smaller MTU ($ports, or use --mtu 704)"

say "large packets vanish, and nobody reports it: the file passes in smaller ones, as with that MTU"
path "own meta l4proto icmp drop"
ip -n middle link set vr mtu 1000
serve recv --output "$work/out"
on_left send "$work/file" 10.77.2.2 || fail "it does not"
ended recv "$pid" 0 20
cmp "$work/file" "$work/out/file" || fail "other bytes arrived"
expect_line "$work/client.err" "use --mtu 704"
serve recv --output "$work/out"
on_left send "$work/file" 10.77.2.2 --mtu 704 || fail "it does not"
ended recv "$pid" 0 20
cmp "$work/file" "$work/out/file" || fail "other bytes arrived"

say "the receiver is behind NAT that forwards its TCP port"
# Of the addresses behind it nobody outside knows a route.
path "source oif vl masquerade" "destination iif vl tcp dport 47910 dnat to 10.77.2.2" \
    "forwarded iif vl $udp drop"
to=10.77.1.1 send_fails "behind NAT or a port forwarding (10.77.2.2 appears as 10.77.1.1)" \
    "UDP packets do not pass"

say "clients behind NAT: files and messages pass"
path "source oif vr masquerade random" "forwarded iif vr ct state new drop"
serve recv --output "$work/out" --force
on_left send "$work/file" 10.77.2.2 || fail "send failed"
ended recv "$pid" 0 20
cmp "$work/file" "$work/out/file" || fail "other bytes arrived"
serve perf --server --once
on_left perf 10.77.2.2 --iterations 5 --size 1MiB --channels 2 --workers 2 || fail "perf failed"
ended perf "$pid" 0 20

say "clients behind NAT of IPv6"
if [ -e /proc/sys/net/ipv6 ]; then
    path
    make_ipv6
    serve recv --listen '[::]:47910' --output "$work/out" --force
    on_left send "$work/file" '[fd77:2::2]:47910' || fail "send failed"
    ended recv "$pid" 0 20
    cmp "$work/file" "$work/out/file" || fail "other bytes arrived"
    rule add rule ip6 t forwarded meta l4proto udp drop
    server_text="NAT on the path (fd77:1::2 appears as fd77:2::1) that drops UDP, or a firewall"
    serve recv --listen '[::]:47910' --keep --output "$work/out"
    client "$server_text" send "$work/file" '[fd77:2::2]:47910'
fi

say "NAT that forgets, and maps the client to other ports: the transfer goes on"
path "forwarded iif vl udp dport 4791 ct state new counter" "forwarded iif vr ct state new drop" \
    "source oif vr meta l4proto udp masquerade random" "source oif vr snat to 10.77.2.1"
serve recv --output "$work/out" --force
ip netns exec left "$LONGHAUL" send "$work/file" 10.77.2.2 --insecure --rate 4Mbit >"$work/client.out" \
    2>"$work/client.err" &
sender=$!
until [ "$(mappings)" -ge 1 ]; do sleep 0.05; done
ip -n middle link set vr down # the kernel forgets what it masqueraded there
ip -n middle link set vr up
kill -0 "$sender" || fail "the transfer was over before NAT forgot it"
ended send "$sender" 0 40
ended recv "$pid" 0 20
[ "$(mappings)" -ge 2 ] || fail "NAT kept its mapping"
cmp "$work/file" "$work/out/file" || fail "other bytes arrived"

say "NAT that drops UDP"
path "source oif vr masquerade" "forwarded $udp drop"
send_fails "NAT on the path (10.77.1.2 appears as 10.77.2.1) that drops UDP, or a firewall"
echo "all well"
