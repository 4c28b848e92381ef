# The udp fabric beside the kernel's own RoCE, as someone would test it who trusts nobody: peer.c, which has
# no code of Longhaul, against udp_peer.c, over IPv6 and IPv4, with both sizes of packets that matter; then
# with loss, duplicates and reordering in both directions; and what tshark makes of the packets.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_vm.sh"
programs=$LH_BUILD_DIR/tests/vm
[ -x "$programs/peer" ] || skip "not built with libibverbs (Debian package libibverbs-dev)"
export PATH=$PATH:$programs

# How many packets of the capture a display filter shows.
count() {
    tshark -r "$work/kept/a.pcap" -Y "$1" -T fields -e frame.number 2>"$work/tshark" | wc -l
}

say "RoCE packets of 1024 bytes, then the same with loss"
# shellcheck disable=SC2016  # for the machines' shells
vm --out "$work/kept" --capture --seconds 150 \
    --guest 'peer $VM_HOST6 7000 && peer $VM_HOST4 7000 &&
             netem in loss 3% delay 2ms 1ms duplicate 2% && netem out loss 3% delay 2ms 1ms duplicate 2% &&
             peer $VM_HOST6 7000 && peer $VM_HOST4 7000' \
    --host 'udp_peer $VM_HOST6 7000 && udp_peer $VM_HOST4 7000 &&
            udp_peer $VM_HOST6 7000 lossy && udp_peer $VM_HOST4 7000 lossy'
[ "$status" -eq 0 ] || fail "status $status"
[ "$(grep -c '^host| all as it should be$' "$work/out")" -eq 4 ] || fail "not all four runs went to their end"
grep -q ' [1-9][0-9]* sent again' "$work/out" || fail "nothing was ever lost"

if command -v tshark >/dev/null; then
    say "what tshark sees"
    for from in 'ipv6.src == fd77::1' 'ipv6.src == fd77::2' 'ip.src == 10.77.0.1' 'ip.src == 10.77.0.2'; do
        writes=$(count "$from && infiniband.bth.opcode == 43")
        sends=$(count "$from && infiniband.bth.opcode == 36")
        echo "$from: $writes UC RDMA WRITE Only with Immediate, $sends UC SEND Only"
        [ "$writes" -gt 200 ] && [ "$sends" -ge 2 ] || fail "tshark finds few RoCE packets"
    done
    [ "$(count 'udp && !infiniband')" -eq 0 ] || fail "UDP packets that are no RoCE"
    [ "$(count _ws.malformed)" -eq 0 ] || fail "malformed packets"
    echo "none malformed, no other UDP packet"
else
    say "what tshark sees: left out, there is no tshark (Debian package tshark)"
fi

say "RoCE packets of 4096 bytes"
# shellcheck disable=SC2016
vm --mtu 9000 --guest 'peer $VM_HOST6 7000 && peer $VM_HOST4 7000' \
    --host 'udp_peer $VM_HOST6 7000 && udp_peer $VM_HOST4 7000'
[ "$status" -eq 0 ] || fail "status $status"
[ "$(grep -c '^host| .*RoCE MTU 4096$' "$work/out")" -eq 2 ] || fail "it was another MTU"
