# Soft-RoCE in a guest and plain sockets on the host understand each other: both directions, IPv4 and IPv6,
# with and without an impaired network.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_vm.sh"

LONGHAUL=${LH_BUILD_DIR:-build}/longhaul
"$LONGHAUL" devices | grep -q 'verbs is not built in' && skip "verbs is not built in"
export LONGHAUL here

say "host to guest and back, four times; the last two over a network that loses, doubles and reorders"
# shellcheck disable=SC2016  # for their shells
vm --seconds 200 --memory 768 --out "$work/sums" --file "$here/exchange.sh=/exchange.sh" --guest '
    . /exchange.sh
    head -c 16777216 /dev/urandom >guest
    for network in clean impaired; do
        if [ $network = impaired ]; then
            netem out loss 1% delay 5ms 2ms duplicate 1%
            netem in loss 1% delay 5ms 2ms duplicate 1%
        fi
        push guest $VM_HOST4:5001 --device verbs:rxe0/ip=4 --mtu 1024
        take got 5001 --device verbs:rxe0/ip=4
        push guest [$VM_HOST6]:5001 --device verbs:rxe0/ip=6 --mtu 1024 --channels 2
        take got 5001 --device verbs:rxe0/ip=6 --reliability sr-rto
        (sha256sum guest; cd got; sha256sum host) >>$VM_OUT/sums
    done' --host '
    cd "$VM_OUT" && . "$here/exchange.sh"
    head -c 16777216 /dev/urandom >host
    for network in clean impaired; do
        take got 5001 --device udp:$VM_HOST4
        push host $VM_A4:5001 --device udp:$VM_HOST4 --mtu 1024
        take got 5001 --device udp:[$VM_HOST6] --channels 2 --reliability sr-rto
        push host [$VM_A6]:5001 --device udp:[$VM_HOST6] --mtu 1024
        (cd got; sha256sum guest; cd ..; sha256sum host) >>sums
    done'
[ "$status" -eq 0 ] || fail "status $status"
cmp "$work/sums/a/sums" "$work/sums/host/sums" || fail "what arrived is not what was sent"
[ "$(wc -l <"$work/sums/a/sums")" -eq 4 ] || fail "not every file arrived"
echo passed
