#!/bin/sh
# The first process of a guest: its devices, its network, rxe0; then the command that stands in /out/.command.
#
# Tells the script that started it, line by line on a port of its own: \001ready, then waits for a line that
# says go; all the command prints; \001exit STATUS.
# The kernel hands on as variables what stands on its command line: vm_name, vm_number, vm_guests, vm_mtu.
#
# SPDX-License-Identifier: BSD-3-Clause
export PATH=/usr/bin:/bin HOME=/root TERM=dumb
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
# Nothing is put over /tmp: the libraries of a build folder there are in the archive.
mount -t tmpfs shm /dev/shm
mount -t devpts pts /dev/pts
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
while read -r module; do
    insmod "/modules/$module.ko" || echo "vm: module $module does not load"
done </modules/order

# A panic ends the machine, and with it the run: for what cannot go on.
stop() {
    echo "vm: $*"
    poweroff -f
}

# Waits up to ten seconds for a condition.
await() {
    tries=100
    until eval "$1"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || stop "this does not come true: $1"
        sleep 0.1
    done
}

await 'ls /dev/vport*p1 >/dev/null 2>&1'
exec 4<>"$(echo /dev/vport*p1)"
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 out /out || stop "no folder to leave files in"

hostname "$vm_name"
echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
await '[ -e /sys/class/net/eth0 ]'
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
ip link set lo up
ip link set eth0 mtu "$vm_mtu"
ip addr add "10.77.0.$vm_number/24" dev eth0
ip -6 addr add "fd77::$vm_number/64" dev eth0 nodad
ip link set eth0 up
# Neighbours are known from the start: neither a slow first answer nor a lost one is what a test wants to see.
echo "10.77.0.1 host
fd77::1 host" >>/etc/hosts
neighbours=1
for number in $(seq 2 $((vm_guests + 1))); do
    [ "$number" = "$vm_number" ] || neighbours="$neighbours $number"
done
for number in $neighbours; do
    mac=$(printf '52:54:00:77:00:%02x' "$number")
    ip neigh replace "10.77.0.$number" lladdr "$mac" nud permanent dev eth0
    ip neigh replace "fd77::$number" lladdr "$mac" nud permanent dev eth0
done
rdma link add rxe0 type rxe netdev eth0 || stop "no rxe device"
gids=/sys/class/infiniband/rxe0/ports/1/gids
await "grep -qs '^fd77:' $gids/* && grep -qs '^0000:0000:0000:0000:0000:ffff:' $gids/*"
await 'ping -c 1 -W 1 10.77.0.1 >/dev/null && ping -6 -c 1 -W 1 fd77::1 >/dev/null'

printf '\001ready\n' >&4
read -r _ <&4

export VM_NAME="$vm_name" VM_NUMBER="$vm_number" VM_MTU="$vm_mtu" VM_OUT=/out VM_SELF4="10.77.0.$vm_number" \
    VM_SELF6="fd77::$vm_number" VM_HOST4=10.77.0.1 VM_HOST6=fd77::1
if [ "$vm_guests" -eq 2 ]; then
    export VM_PEER4="10.77.0.$((5 - vm_number))" VM_PEER6="fd77::$((5 - vm_number))"
fi
# Through a pipe, so that a program may open /dev/stdout: the port can be opened only once. Whatever is still
# running when the command ends may hold the pipe; what comes after the last line is of no interest.
mkfifo /run/output
cat /run/output >&4 4>&- &
cd /tmp || stop "no /tmp"
exec 5>/run/output
ulimit -l unlimited
ulimit -c unlimited
echo '/tmp/core.%e.%p' >/proc/sys/kernel/core_pattern
sh /out/.command >&5 2>&5 </dev/null 4>&- 5>&-
status=$?
printf '\001exit %d\n' $status >&5
while :; do sleep 1000; done
