# Two guests, Soft-RoCE on both, the network between them impaired: files arrive byte for byte, with each
# scheme; and when one side is killed, the other says so in bounded time.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_vm.sh"

"${LH_BUILD_DIR:-build}/longhaul" devices | grep -q 'verbs is not built in' && skip "verbs is not built in"
exchange="--file $here/exchange.sh=/exchange.sh"

say "64 MiB each way of asking for repairs, and parity; loss, duplicates, delay, reordering, both directions"
# shellcheck disable=SC2016,SC2086  # for the guests' shells; two words
vm --mtu 9000 --seconds 200 --memory 768 --out "$work/sums" $exchange --guest '
    . /exchange.sh
    netem out loss 1% delay 5ms 2ms duplicate 1%
    head -c 67108864 /dev/urandom >nack
    head -c 67108864 /dev/urandom >rto
    head -c 16777217 /dev/urandom >code
    push nack $VM_PEER4:5001 --device verbs:rxe0/ip=4 --mtu 4096
    push rto [$VM_PEER6]:5001 --device verbs:rxe0/ip=6 --mtu 2048 --channels 2
    push code $VM_PEER4:5001 --device verbs:rxe0/ip=4 --mtu 2048
    sha256sum nack rto code >$VM_OUT/sums' --guest '
    . /exchange.sh
    netem out loss 1% delay 5ms 2ms duplicate 1%
    take got 5001 --device verbs:rxe0/ip=4 --reliability sr-nack
    take got 5001 --device verbs:rxe0/ip=6/protect=mr --reliability sr-rto --channels 2
    take got 5001 --device verbs:rxe0/ip=4 --reliability ec:mds,k=16,m=8 >received
    grep -q "chunks recovered" received
    cd got && sha256sum nack rto code >$VM_OUT/sums'
[ "$status" -eq 0 ] || fail "status $status"
cmp "$work/sums/a/sums" "$work/sums/b/sums" || fail "what arrived is not what was sent"

say "either side is killed in the middle"
# shellcheck disable=SC2016,SC2086
vm --mtu 9000 --seconds 150 $exchange --guest '
    . /exchange.sh
    head -c 33554432 /dev/urandom >file
    slow="--device verbs:rxe0 --mtu 4096 --link rtt=20ms,rate=20Mbit --peer-timeout 2s"
    (push file $VM_PEER4:5001 $slow) && exit 1
    longhaul send --insecure file $VM_PEER4:5002 --wait 30s $slow >send.log 2>&1 &
    sleep 1
    while ! kill -0 $!; do longhaul send --insecure file $VM_PEER4:5002 $slow >send.log 2>&1 & sleep 1; done
    sleep 2
    kill -9 $! && echo "the sender is killed"' --guest '
    . /exchange.sh
    longhaul recv --insecure --output got --listen :5001 --device verbs:rxe0 &
    while [ ! -e got/.file.longhaul-partial ]; do sleep 0.1; done
    sleep 2
    kill -9 $! && echo "the receiver is killed"
    longhaul recv --insecure --output got --force --listen :5002 --device verbs:rxe0 \
        --peer-timeout 2s && exit 1
    echo "the receiver has said so"'
[ "$status" -eq 0 ] || fail "status $status"
expect_line '^a| push .* failed'
expect_line '^a| the sender is killed'
expect_line '^b| the receiver has said so'
echo passed
