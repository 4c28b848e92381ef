# TCP passes and UDP does not, or not all of it: one side finds out, both report it and what to do.
# A preloaded library drops what a firewall would.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out"
make_file "$work/file" 300000

# transfer SENDER RECEIVER [OPTION...]: either side's packets are dropped: none, data, all.
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
    [ "$status" -eq 1 ] || fail "send ended with $status"
    expect_line "$work/send.err" "$1"
    for _ in {1..100}; do
        grep -qF -e "$1" "$work/recv.err" && break
        sleep 0.1
    done
    expect_line "$work/recv.err" "$1"
    kill -0 "$pid" || fail "the receiver is gone"
    kill "$pid"
    nothing "$work/out"
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
both_report "data packets do not pass"
expect_line "$work/send.err" "let UDP ports 4791 and 49152-65535 through"

say "data of the receiver"
transfer none data
both_report "data packets do not pass"

say "the sender's packets come from another address than its TCP connection, as behind NAT"
start recv recv --listen 127.0.0.1:0 --keep --output "$work/out"
preload drop_udp
send "$work/file" "$where" --device udp:127.77.0.5
preload_end
both_report "NAT on the path (127.77.0.5 appears as 127.0.0.1"
echo "all well"
