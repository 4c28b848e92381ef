# TCP passes and UDP does not, or not all of it: one side finds out, both report it and what to do.
# A preloaded library drops what a firewall would.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out"
make_file "$work/file" 299500 # the last packet is small

# transfer SENDER RECEIVER [OPTION...]: either side's packets are dropped: none, data, large, all.
transfer() {
    local sender=$1 receiver=$2
    shift 2
    [ "$receiver" = none ] || preload drop_udp
    LH_TEST_DROP=$receiver start_recv recv "$work/out" --keep
    preload_end
    [ "$sender" = none ] || preload drop_udp
    LH_TEST_DROP=$sender send "$work/file" "$where" "$@"
    preload_end
}

# both_report TEXT: and the receiver is there for the next one.
both_report() {
    [ "$status" -eq "${2:-1}" ] || fail "send ended with $status"
    expect_line "$work/send.err" "$1"
    for _ in {1..100}; do
        grep -qF -e "$1" "$work/recv.err" && break
        sleep 0.1
    done
    expect_line "$work/recv.err" "$1"
    kill -0 "$pid" || fail "the receiver is gone"
    kill "$pid"
    [ "${2:-1}" -eq 3 ] || nothing "$work/out"
    rm -f "$work/out"/.file.longhaul-*
}

say "what the sender sends"
transfer all none
both_report "let UDP ports 4791 and 49152-65535 through"
expect_line "$work/send.err" "UDP packets do not pass"

say "what the receiver sends"
transfer none all
both_report "let UDP ports 4791 and 49152-65535 through"
expect_line "$work/send.err" "UDP packets do not pass"

say "data of the sender: control packets pass"
transfer data none
both_report "data packets do not pass" 3
expect_line "$work/send.err" "let UDP ports 4791 and 49152-65535 through"

say "data of the receiver: its few bytes go by control packets"
transfer none data
[ "$status" -eq 0 ] || fail "send ended with $status"
cmp "$work/file" "$work/out/file" || fail "other bytes arrived"
kill "$pid"
rm "$work/out/file"

say "the sender's packets come from another address than its TCP connection, as behind NAT"
start recv recv --listen 127.0.0.1:0 --keep --output "$work/out"
preload drop_udp
send "$work/file" "$where" --device udp:127.77.0.5
preload_end
both_report "NAT on the path (127.77.0.5 appears as 127.0.0.1"
say "large packets of the sender: small ones pass"
transfer large none --mtu 4096
[ "$status" -eq 0 ] || fail "send ended with $status"
expect_line "$work/send.err" "each is sent as 8 pieces of 512 bytes"
cmp "$work/file" "$work/out/file" || fail "other bytes arrived"
kill "$pid"
rm "$work/out/file"

say "the sender behind NAT: its packets and its TCP connection come from another address, other ports"
(umask 077 && head -c 32 /dev/urandom | base64 >"$work/key")
for key in "" "$work/key"; do # in clear text, and encrypted
    start recv recv --listen 127.0.0.1:0 --output "$work/out" ${key:+--key-file "$key"}
    preload nat
    send "$work/file" "$where" ${key:+--key-file "$key"}
    preload_end
    [ "$status" -eq 0 ] || fail "send ended with $status"
    ended recv "$pid" 0 20
    cmp "$work/file" "$work/out/file" || fail "other bytes arrived"
    rm "$work/out/file"
done

say "data packets cease to pass: peer-timeout later both sides report it"
make_file "$work/big" 40000000
start recv recv --listen 127.0.0.1:0 --keep --output "$work/out" --peer-timeout 3s
preload drop_udp
LH_TEST_DROP=data LH_TEST_DROP_FROM=$work/now "$LONGHAUL" send "$work/big" "$where" --rate 40Mbit \
    >"$work/send.out" 2>"$work/send.err" &
sender=$!
preload_end
await_blocks 1
touch "$work/now"
status=0
wait "$sender" || status=$?
both_report "data packets do not pass any more" 3

say "a window below rate x round trip"
start recv recv --listen 127.0.0.1:0 --output "$work/out" --force
send "$work/file" "$where" --link rtt=40ms,rate=100Mbit --window 64KiB
expect_line "$work/send.err" "window of 64KiB below rate x round trip"
expect_line "$work/send.err" "--window 1MiB"
ended recv "$pid" 0 20
say "a rank of a group that loses its way out: each error names a rank"
# From the beginning, and once the group is there.
for from in "" "$work/from"; do
    (
        preload drop_udp
        LIBRARY=$LD_PRELOAD
        preload_end
        export LIBRARY LH_TEST_DROP=all LH_TEST_DROP_FROM=${from:-/}
        exec timeout 60 "$LONGHAUL" run -l -n 3 -- bash -c '[ "$RANK" != 1 ] || export LD_PRELOAD=$LIBRARY
            exec "$@"' rank "$LONGHAUL" collective allreduce -b 1MiB -e 1MiB --iterations 100000 --wait 2s \
            --peer-timeout 2s
    ) >"$work/group.out" 2>"$work/group.err" &
    pid=$!
    if [ -n "$from" ]; then
        until grep -q "allreduce: ranks 3" "$work/group.out"; do sleep 0.05; done
        touch "$from"
    fi
    ended run "$pid" 1 60
    [ "$(grep -c "longhaul collective (rank " "$work/group.err")" -ge 2 ] || fail "too few errors"
    ! grep "longhaul collective (rank " "$work/group.err" |
        grep -vE "group.* ranks? [0-2]|: rank [0-2] has |of rank [0-2]" ||
        fail "an error without a rank"
done

echo "all well"
