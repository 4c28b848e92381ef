# Ranks on two hosts. The host of rank 0 has a bridge without a cable ahead of its network, as docker-compose
# leaves one, and its own name leads to 127.0.1.1, as Debian sets it.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

one=lhone$$
two=lhtwo$$
clean_hosts() {
    local name
    for name in $one $two; do
        ip netns del $name 2>/dev/null
        rm -rf "/etc/netns/$name"
    done
    rmdir /etc/netns 2>/dev/null
    clean_up
}
trap clean_hosts EXIT
for name in $one $two; do
    ip netns add $name 2>/dev/null || exit 77
    mkdir -p "/etc/netns/$name"
    ip -n $name link set lo up
done
printf '127.0.0.1 localhost\n127.0.1.1 master\n' >"/etc/netns/$one/hosts"
printf '127.0.0.1 localhost\n10.77.0.1 master\n' >"/etc/netns/$two/hosts"
ip -n $one link add br-0 type veth peer name unplugged || exit 77
ip -n $one addr add 172.18.0.1/16 dev br-0
ip -n $one link set br-0 up
ip -n $one link add name net netns $one type veth peer netns $two name net || exit 77
ip -n $one addr add 10.77.0.1/24 dev net
ip -n $two addr add 10.77.0.2/24 dev net
ip -n $one link set net up
ip -n $two link set net up

# ranks MASTER VARIABLE...: ranks 0 and 1 at the host one, rank 2 at the other; sets statuses.
ranks() {
    local rank host pids=()
    for rank in 0 1 2; do
        host=$one
        [ $rank -lt 2 ] || host=$two
        # shellcheck disable=SC2086
        timeout 60 ip netns exec $host env RANK=$rank WORLD_SIZE=3 MASTER_ADDR=master MASTER_PORT=29511 "$@" \
            "$LONGHAUL" collective allreduce -b 64KiB --iterations 2 --wait 10s --insecure \
            >"$work/rank$rank.out" 2>"$work/rank$rank.err" &
        pids+=($!)
    done
    statuses=
    for rank in 0 1 2; do
        status=0
        wait "${pids[$rank]}" || status=$?
        statuses+="$status "
    done
}

say "ranks of the host of rank 0 take the address that the others reach"
ranks LONGHAUL_SITE=
[ "$statuses" = "0 0 0 " ] || fail "they ended with $statuses"
grep -q '^ *65536 .* 0$' "$work/rank0.out" || fail "no row"

say "a chosen interface without a carrier is named"
ranks LONGHAUL_SOCKET_IFNAME=br-0
expect_line "$work/rank0.err" \
    'LONGHAUL_SOCKET_IFNAME: "br-0" matches no interface that is up, has a carrier and an address'

say "an address that others do not reach is named"
ip -n $one link set unplugged up
ranks LONGHAUL_SOCKET_IFNAME=br-0,net
expect_line "$work/rank0.err" \
    "this rank's packets use udp:172.18.0.1 (choose another interface by LONGHAUL_SOCKET_IFNAME)"

echo "$checks checks"
