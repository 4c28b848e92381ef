# Two hosts and a router between them, as network namespaces; sourced, in a mount namespace of the test's own.
#
# SPDX-License-Identifier: BSD-3-Clause

# make_routed_hosts MTU: left (10.77.1.2, fd77:1::2) - middle - right (10.77.2.2, fd77:2::2), in place of
# those that there were; the links are called vl and vr at both of their ends. Fails where the system allows
# none.
make_routed_hosts() {
    local name mtu=$1
    for name in left middle right; do
        ip netns del $name 2>/dev/null
        ip netns add $name || return
        ip -n $name link set lo up
    done
    ip link add name vl netns left mtu "$mtu" type veth peer name vl netns middle mtu "$mtu" &&
        ip link add name vr netns middle mtu "$mtu" type veth peer name vr netns right mtu "$mtu" || return
    ip -n left addr add 10.77.1.2/24 dev vl
    ip -n middle addr add 10.77.1.1/24 dev vl
    ip -n middle addr add 10.77.2.1/24 dev vr
    ip -n right addr add 10.77.2.2/24 dev vr
    ip -n left addr add fd77:1::2/64 dev vl nodad
    ip -n middle addr add fd77:1::1/64 dev vl nodad
    ip -n middle addr add fd77:2::1/64 dev vr nodad
    ip -n right addr add fd77:2::2/64 dev vr nodad
    for name in left:vl middle:vl middle:vr right:vr; do
        ip -n ${name%:*} link set ${name#*:} up
    done
    ip -n left route add default via 10.77.1.1
    ip -n right route add default via 10.77.2.1
    ip -n left -6 route add default via fd77:1::1
    ip -n right -6 route add default via fd77:2::1
    ip netns exec middle sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
}
