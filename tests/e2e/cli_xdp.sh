# The device xdp:INTERFACE: files between AF_XDP and UDP sockets in both directions, by IPv4 and IPv6, through
# a router that drops packets; what it refuses and why; an interface that goes down, or away, in
# mid-transfer; and nothing is left on the interface after a process was killed.
# Needs root, network namespaces, nft and a kernel with AF_XDP; skipped without.
#
# SPDX-License-Identifier: BSD-3-Clause
skip() {
    echo "skipped: $*"
    exit 77
}

if [ -z "${OWN_NETWORK:-}" ]; then
    [ "$(id -u)" -eq 0 ] || skip "AF_XDP needs root"
    command -v nft >/dev/null && unshare --net nft add table ip probe 2>/dev/null ||
        skip "no network namespaces, or no nft"
    OWN_NETWORK=1 exec unshare --net --mount bash "$0"
fi
. "$(dirname "$0")/lib_cli.sh"
. "$(dirname "$0")/lib_router.sh"

make_network() {
    make_routed_hosts 1500 || skip "no network namespaces, or no veth interfaces"
}

# drop PERCENT: of the UDP packets that the router forwards, at random.
drop() {
    ip netns exec middle nft add table inet t
    ip netns exec middle nft add chain inet t f '{ type filter hook forward priority 0; }'
    ip netns exec middle nft add rule inet t f meta l4proto udp numgen random mod 100 '<' "$1" drop ||
        skip "nft cannot drop at random"
}

# serve DEVICE HOST: a receiver on the right, in the background; sets pid and where.
serve() {
    rm -f "$work/pipe" "$work/out/file"
    mkfifo "$work/pipe"
    ip netns exec right "$LONGHAUL" recv --device "$1" --listen "$2:0" --output "$work/out" \
        "${keys[@]}" >"$work/pipe" 2>"$work/recv.err" &
    pid=$!
    exec {feed}<"$work/pipe"
    read -r -t 30 -u "$feed" line || fail "recv does not listen: $(cat "$work/recv.err")"
    where=${line#listening on }
}

# begin_send DEVICE ARGUMENT...: in the background; sets sender.
begin_send() {
    local device=$1
    shift
    ip netns exec left "$LONGHAUL" send "$work/file" "$where" --device "$device" "${keys[@]}" "$@" \
        >"$work/send.out" 2>"$work/send.err" &
    sender=$!
}

end_send() {
    ended send "$sender" 0 60
    ended recv "$pid" 0 60
    cmp "$work/file" "$work/out/file" || fail "other bytes arrived"
}

# datagrams NAMESPACE FAMILY FIELD: InDatagrams or OutDatagrams of UDP sockets there.
datagrams() {
    if [ "$2" = 4 ]; then
        ip netns exec "$1" awk -v field="$3" '$1 == "Udp:" { if (!at) { for (i = 2; i <= NF; i++)
            if ($i == field) at = i } else print $at }' /proc/net/snmp
    else
        ip netns exec "$1" awk -v field="Udp6$3" '$1 == field { print $2 }' /proc/net/snmp6
    fi
}

# refused TEXT ARGUMENT...: the command on the right fails, and its message has the text.
refused() {
    local text=$1
    shift
    ! timeout 30 ip netns exec right "$@" >"$work/refused.out" 2>"$work/refused.err" || fail "no error: $text"
    expect_line "$work/refused.err" "$text"
}

has_program() {
    ip -n right -d link show vr | grep -q xdp
}

# Until the right has got that many bytes.
passed() {
    local at=0 end=$((SECONDS + 60))
    while [ "$SECONDS" -lt "$end" ]; do
        at=$(ip netns exec middle cat /sys/class/net/vr/statistics/tx_bytes)
        [ "$at" -ge "$1" ] && return
        sleep 0.02
    done
    fail "$at bytes of $1 arrived"
}

mount -t tmpfs tmpfs /run && mkdir /run/netns || skip "no mounts"
mount -t sysfs sysfs /sys 2>/dev/null
mkdir "$work/out"
chmod 777 "$work" "$work/out"
make_file "$work/file" 4000000
(umask 077 && head -c 32 /dev/urandom | base64 >"$work/key")
packets=$((4000000 / 1408))
keys=(--insecure) # options of both sides

make_network
ip netns exec right timeout 1 "$LONGHAUL" recv --device xdp:vr --listen 10.77.2.2:0 --output "$work/out" \
    >/dev/null 2>"$work/probe.err"
if grep -q 'CAP_\|without AF_XDP\|bpf(2)' "$work/probe.err"; then
    skip "$(cat "$work/probe.err")"
fi

# transfer SENDER RECEIVER FAMILY HOST: a device of udp counts its packets, one of xdp has only control
# datagrams, if it sends by xdp, too (it does by itself where it is zero-copy).
transfer() {
    local in out
    say "$1 to $2, to $4"
    in=$(datagrams right "$3" InDatagrams)
    out=$(datagrams left "$3" OutDatagrams)
    serve "$2" "$4"
    begin_send "$1"
    end_send
    in=$(($(datagrams right "$3" InDatagrams) - in))
    out=$(($(datagrams left "$3" OutDatagrams) - out))
    case $1 in
    *send=xdp) [ "$out" -lt $((packets / 2)) ] || fail "$out datagrams by UDP sockets" ;;
    esac
    case $2 in
    xdp:*) [ "$in" -lt $((packets / 2)) ] || fail "$in datagrams to UDP sockets" ;;
    *) [ "$in" -ge $((packets / 64)) ] || fail "$in datagrams to UDP sockets" ;;
    esac
    ! has_program || fail "a program is left on the interface"
}

all_pairs() {
    transfer udp:10.77.1.2 xdp:vr 4 10.77.2.2
    transfer xdp:vl/send=xdp udp:10.77.2.2 4 10.77.2.2
    transfer xdp:vl/send=xdp xdp:vr 4 10.77.2.2
    transfer xdp:vl/send=udp xdp:vr 4 10.77.2.2
    transfer 'udp:[fd77:1::2]' xdp:vr/fd77:2::2 6 '[fd77:2::2]'
    transfer 'xdp:vl/[fd77:1::2]/send=xdp' 'udp:[fd77:2::2]' 6 '[fd77:2::2]'
    keys=(--key-file "$work/key") # encrypted
    transfer xdp:vl/send=xdp xdp:vr 4 10.77.2.2
    transfer 'udp:[fd77:1::2]' xdp:vr/fd77:2::2 6 '[fd77:2::2]'
    keys=(--insecure)
    transfer 'xdp:vl/[fd77:1::2]/send=xdp' xdp:vr/fd77:2::2 6 '[fd77:2::2]'
}

all_pairs
say "the same with 3 % of all packets dropped"
drop 3
transfer udp:10.77.1.2 xdp:vr 4 10.77.2.2
transfer 'xdp:vl/[fd77:1::2]/send=xdp' 'udp:[fd77:2::2]' 6 '[fd77:2::2]'
make_network

say "messages, each with its remedy"
recv=("$LONGHAUL" recv --listen 10.77.2.2:0 --output "$work/out" --device)
refused "device xdp:nil0: no such interface" "${recv[@]}" xdp:nil0
refused "device xdp:lo: not an Ethernet interface" "${recv[@]}" xdp:lo
refused "device xdp:vr/10.77.1.2: the interface has no such address" "${recv[@]}" xdp:vr/10.77.1.2
refused "device xdp:vr/send=tcp: unknown option" "${recv[@]}" xdp:vr/send=tcp
if command -v setpriv >/dev/null; then
    refused "(run as root, or use udp:ADDRESS)" setpriv --reuid 65534 --clear-groups --inh-caps=-all \
        "${recv[@]}" xdp:vr
fi

# begin_slowly: a transfer of ten seconds or so, whose first packets have come.
begin_slowly() {
    local at
    at=$(ip netns exec middle cat /sys/class/net/vr/statistics/tx_bytes)
    serve xdp:vr 10.77.2.2
    begin_send xdp:vl/send=xdp --rate 3Mbit
    passed $((at + 300000))
}

say "a second process on the interface"
begin_slowly
has_program || fail "no program on the interface"
refused "the interface has an XDP program already" "${recv[@]}" xdp:vr
expect_line "$work/refused.err" "use udp:ADDRESS"

say "the first one is killed: nothing is left"
kill -9 "$pid"
wait "$pid" 2>/dev/null
! has_program || fail "a program is left on the interface"
ended send "$sender" 3 60

say "an MTU of 9000: the driver has no native mode for it, and packets must fit a frame"
make_network
for name in left:vl middle:vl middle:vr right:vr; do
    ip -n ${name%:*} link set ${name#*:} mtu 9000
done
serve xdp:vr 10.77.2.2
begin_send xdp:vl/send=xdp --mtu 3712
end_send
expect_line "$work/recv.err" "generic mode is slower"
serve xdp:vr 10.77.2.2
begin_send xdp:vl
ended send "$sender" 1 60
expect_line "$work/send.err" "(use --mtu 3712, or udp:ADDRESS)"
kill -9 "$pid"
wait "$pid" 2>/dev/null
make_network

say "an interface that goes down in mid-transfer, and comes back"
begin_slowly
ip -n left link set vl down
ip -n left link set vl up
ip -n left route add default via 10.77.1.1
end_send

say "an interface that goes away in mid-transfer"
begin_slowly
timeout 60 ip -n left link del vl || fail "the interface is not removed"
status=0
timeout 60 tail -s 0.05 --pid="$sender" -f /dev/null || fail "send did not end"
wait "$sender" || status=$?
[ "$status" -ne 0 ] || fail "send succeeded without its interface"
[ -s "$work/send.err" ] || fail "send gives no reason"
kill -9 "$pid" # or it waits for its peer as long as --peer-timeout
wait "$pid" 2>/dev/null
! has_program || fail "a program is left on the interface"

say "the receiver's interface goes away in mid-transfer"
make_network
begin_slowly
timeout 60 ip -n right link del vr || fail "the interface is not removed"
ended recv "$pid" 3 60
expect_line "$work/recv.err" "device cannot be used"
kill -9 "$sender"
wait "$sender" 2>/dev/null
echo "all well"
