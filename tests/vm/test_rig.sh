# The machines themselves: two guests with RDMA that reach each other and the host, statuses, files, time
# limits, and that nothing is left of a run that was killed.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_vm.sh"


say "two guests and the host: the command of this build, rxe, each other, netem, files, statuses"
# shellcheck disable=SC2016  # for the guests' shells
vm --mtu 9000 --out "$work/kept" --capture \
    --guest 'longhaul --version && rdma link && cat /sys/class/net/eth0/mtu &&
             echo left >$VM_OUT/file && until ping -6 -c 1 -W 1 $VM_PEER6; do :; done' \
    --guest 'ping -c 1 $VM_PEER4 && netem out loss 100% && ! ping -c 1 -W 1 $VM_HOST4 && netem off &&
             netem in loss 100% && ! ping -c 1 -W 1 $VM_HOST4 && netem off && ping -c 1 $VM_HOST4 && exit 7' \
    --host 'echo "$VM_A4 $VM_B6"; printf "no newline at the end" >$VM_OUT/file; cat $VM_OUT/file'
[ "$status" -eq 7 ] || fail "status $status, not that of guest b"
expect_line '^a| longhaul [0-9]'
expect_line '^a| link rxe0/1 state ACTIVE'
expect_line '^a| 9000$'
expect_line '^host| 10.77.0.2 fd77::3$'
expect_line '^host| no newline at the end$'
[ "$(cat "$work/kept/a/file")" = left ] || fail "the guest's file did not come back"
[ "$(cat "$work/kept/host/file")" = "no newline at the end" ] || fail "the host's file is not there"
[ -s "$work/kept/a.pcap" ] && [ -s "$work/kept/b.pcap" ] || fail "no capture"

say "a machine that panics, in a user namespace, which is all that a user can make who is not root"
unprivileged=
if [ "$(id -u)" -eq 0 ]; then unprivileged="setpriv --bounding-set -sys_admin,-net_admin --inh-caps -all"; fi
vm --guest 'sleep 1; echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger' \
    --host 'cat /proc/self/uid_map'
[ "$status" -eq 125 ] || fail "status $status, not 125"
[ -z "$unprivileged" ] || expect_line '^host| *0 *0 *1$'
unprivileged=

say "a time limit"
vm --seconds 40 --guest 'echo begins; sleep 1000'
[ "$status" -eq 124 ] || fail "status $status, not 124"
expect_line '^a| begins$'

say "kill -9 in the middle: nothing is left"
python3 "$here/vm.py" --guest 'echo "it runs"; sleep 1000' >"$work/out" 2>&1 &
pid=$!
for ((i = 0; i < 600; i++)); do
    ! grep -q 'it runs' "$work/out" || break
    sleep 0.1
done
expect_line 'it runs'
children=$(pgrep -P $pid)
kill -9 $pid
wait $pid 2>/dev/null
for ((i = 0; i < 100; i++)); do
    # shellcheck disable=SC2086
    ps -p ${children//$'\n'/,} >/dev/null || break
    sleep 0.1
done
# shellcheck disable=SC2086
ps -p ${children//$'\n'/,} && fail "its process namespace is still there"

say "where there can be no machine, the reason"
python=$(python3 -c 'import sys; print(sys.executable)')
env PATH="$work/nothing" "$python" "$here/vm.py" --guest true >"$work/out"
status=$?
cat "$work/out"
[ "$status" -eq 77 ] || fail "status $status, not 77"
expect_line '^skipped: QEMU is missing'
