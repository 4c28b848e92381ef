# A host without IPv6: whatever listens or connects by default does so over IPv4.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out"
make_file "$work/file" 300000
preload no_ipv6

say "recv and send"
start recv recv --listen :0 --output "$work/out"
case $where in
0.0.0.0:*) ;;
*) fail "recv listens on $where" ;;
esac
send "$work/file" "127.0.0.1:${where##*:}"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 20
cmp "$work/file" "$work/out/file" || fail "it is another file"

say "a name that has an IPv6 address, too"
start recv recv --listen :0 --output "$work/out" --force
send "$work/file" "localhost:${where##*:}"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 20

say "perf"
start perf perf --server --once --listen :0
timeout 60 "$LONGHAUL" perf "127.0.0.1:${where##*:}" --size 64KiB --iterations 2 \
    >"$work/client.out" 2>"$work/client.err" ||
    fail "perf ended with $?"
ended perf "$pid" 0 20

say "probe"
start probe probe --server --once --listen :0
case $where in
0.0.0.0:*) ;;
*) fail "probe listens on $where" ;;
esac
timeout 60 "$LONGHAUL" probe "127.0.0.1:${where##*:}" --time 1s >"$work/client.out" 2>"$work/client.err" ||
    fail "probe ended with $?"
ended probe "$pid" 0 20

say "demo"
timeout 120 "$LONGHAUL" demo --quick --size 1MiB --loss 1% --reliability sr-nack --link rtt=2ms,rate=500Mbit \
    >"$work/demo.out" 2>"$work/demo.err" || fail "demo ended with $?"
expect_line "$work/demo.out" 'digest ok'

say "an IPv6 address is refused with what to do"
status=0
timeout 20 "$LONGHAUL" recv --listen '[::1]:0' --output "$work/out" \
    >"$work/six.out" 2>"$work/six.err" || status=$?
[ "$status" -eq 1 ] || fail "recv on an IPv6 address ended with $status"
expect_line "$work/six.err" 'IPv6 is not available'
send "$work/file" '[::1]:9'
[ "$status" -eq 1 ] || fail "send to an IPv6 address ended with $status"
expect_line "$work/send.err" 'IPv6 is not available'
echo "all well"
