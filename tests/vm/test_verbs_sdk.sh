# The SDR SDK on Soft-RoCE: the program that tests it over sockets, with a device in their place. Messages of
# all sizes into slots of 1 MiB, both directions, contexts and queue pairs that come and go.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_vm.sh"

program=${LH_BUILD_DIR:-build}/tests/e2e/test_sdr_udp
[ -x "$program" ] || skip "test_sdr_udp is not built"
"${LH_BUILD_DIR:-build}/longhaul" devices | grep -q 'verbs is not built in' && skip "verbs is not built in"

vm --seconds 250 --memory 1536 --mtu 9000 --program "$program" --guest '
    ulimit -l unlimited
    test_sdr_udp verbs:rxe0/ip=6 verbs:rxe0/ip=4 && test_sdr_udp verbs:rxe0/protect=mr verbs:rxe0/srq=no'
[ "$status" -eq 0 ] || fail "status $status"
echo passed
