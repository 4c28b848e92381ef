#!/bin/sh
# Impairs what comes in or goes out at eth0 of a guest.
#
#   netem out loss 1% delay 5ms 2ms duplicate 1% reorder 25% 50%
#   netem in loss 1%
#   netem off
#   netem show
#
# After in or out: whatever tc-netem(8) takes. Each call replaces what held before in that direction.
#
# SPDX-License-Identifier: BSD-3-Clause
set -eu
limit=100000 # packets that wait in the emulated link; more would be lost by netem, beyond what was asked for

case ${1-} in
out)
    shift
    tc qdisc replace dev eth0 root netem limit $limit "$@"
    ;;
in)
    # Only what leaves a device can be impaired, so what comes in leaves through ifb0 first.
    shift
    if ! tc qdisc show dev eth0 | grep -q ingress; then
        [ -e /sys/class/net/ifb0 ] || ip link add ifb0 type ifb
        ip link set ifb0 mtu "$(cat /sys/class/net/eth0/mtu)" up
        tc qdisc add dev eth0 handle ffff: ingress
        tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0
    fi
    tc qdisc replace dev ifb0 root netem limit $limit "$@"
    ;;
off)
    tc qdisc del dev eth0 root 2>/dev/null || true
    tc qdisc del dev eth0 ingress 2>/dev/null || true
    [ ! -e /sys/class/net/ifb0 ] || tc qdisc del dev ifb0 root 2>/dev/null || true
    ;;
show) tc -s qdisc show ;;
*)
    echo "usage: netem in|out NETEM-OPTIONS... | off | show" >&2
    exit 2
    ;;
esac
