# The verbs fabric on Soft-RoCE, through its interface (verbs_fabric.c): traffic, lent payload, late packets,
# wrong keys, floods that nobody receives; with each protection and each kind of receive queue; a port that
# goes down.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_vm.sh"

[ -x "${LH_BUILD_DIR:-build}/tests/vm/verbs_fabric" ] || skip "verbs_fabric is not built"
"${LH_BUILD_DIR:-build}/longhaul" devices | grep -q 'verbs is not built in' && skip "verbs is not built in"

say "every protection, every kind of receive queue; then the port goes down"
# shellcheck disable=SC2016  # for the guest's shell
vm --seconds 250 --guest '
    ulimit -l unlimited
    for device in verbs:rxe0 verbs:rxe0/srq=no verbs:rxe0/protect=mr verbs:rxe0/ip=6/protect=mr/srq=no; do
        verbs_fabric $device && echo "well: $device" || exit 1
    done
    verbs_fabric verbs:rxe0 300000 || exit 1
    verbs_fabric verbs:rxe0/protect=indirect && exit 1
    longhaul devices
    verbs_fabric verbs:rxe0 port-down && longhaul devices'
[ "$status" -eq 0 ] || fail "status $status"
for device in rxe0 rxe0/srq=no rxe0/protect=mr rxe0/ip=6/protect=mr/srq=no; do
    expect_line "^a| well: verbs:$device\$"
done
expect_line '^a| verbs:rxe0/1/gid=1 .* 10.77.0.2 .* 1024 .*window *none'
# Soft-RoCE has no indirect keys: an error that says what it has.
expect_line '^a| .*rxe0.* indirect keys.*; use protect=window or protect=mr'
expect_line '^a| 16384 of 300000 packets found a receive'
expect_line '^a| port 1 of device rxe0 went down'
expect_line '^a| verbs rxe0/1: port is '
echo passed
