# A receiver that is busy: who comes meanwhile learns it, and waits for longer than for an answer.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out"
make_file "$work/first" 24000000
make_file "$work/second" 100000
make_file "$work/third" 100000

say "two senders wait for one that takes 12 s; a third has less patience"
start_recv recv "$work/out" --keep --jobs 1
"$LONGHAUL" send "$work/first" "$where" --rate 16Mbit >"$work/first.out" 2>"$work/first.err" &
first=$!
until [ -e "$work/out/.first.longhaul-partial" ]; do
    kill -0 "$first" 2>/dev/null || fail "the first sender is gone"
    sleep 0.1
done
"$LONGHAUL" send "$work/second" "$where" >"$work/second.out" 2>"$work/second.err" &
second=$!
send "$work/third" "$where" --wait 2s
[ "$status" -eq 1 ] || fail "who does not want to wait ended with $status"
expect_line "$work/send.err" 'receiver busy, waiting'
expect_line "$work/send.err" 'is busy with another connection'
send "$work/third" "$where"
[ "$status" -eq 0 ] || fail "the third sender ended with $status"
ended first "$first" 0 60
ended second "$second" 0 60
expect_line "$work/second.err" 'receiver busy, waiting'
[ "$(lines_of "$work/second.err")" -eq 1 ] || fail "it was said more than once"
for name in first second third; do
    cmp "$work/$name" "$work/out/$name" || fail "$name is another file"
done
only "$work/out" first second third
kill "$pid"

say "a sender that waits for a receiver of one file learns how it serves several"
rm "$work"/out/*
start_recv recv "$work/out"
"$LONGHAUL" send "$work/first" "$where" --rate 80Mbit >"$work/first.out" 2>"$work/first.err" &
first=$!
until [ -e "$work/out/.first.longhaul-partial" ]; do
    kill -0 "$first" 2>/dev/null || fail "the first sender is gone"
    sleep 0.02
done
send "$work/second" "$where"
[ "$status" -eq 1 ] || fail "the second sender ended with $status"
expect_line "$work/send.err" \
    'the remote side served another client and ended (longhaul recv --keep serves several)'
ended first "$first" 0 60
ended recv "$pid" 0 60

say "an address that drops TCP: the port and the remedy"
# The kernel drops who wants to connect while a listener's queue is full.
cat >"$work/full.py" <<'PYTHON'
import socket, sys, time
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(0)
port = listener.getsockname()[1]
clients = []
for _ in range(8):
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(("127.0.0.1", port))
    clients.append(client)
print(port, flush=True)
time.sleep(600)
PYTHON
python3 "$work/full.py" >"$work/full.out" &
full=$!
until [ -s "$work/full.out" ]; do sleep 0.02; done
port=$(cat "$work/full.out")
send "$work/second" "127.0.0.1:$port" --wait 1s
kill "$full"
[ "$status" -eq 1 ] || fail "the sender ended with $status"
expect_line "$work/send.err" "127.0.0.1:$port did not answer in time: no host has this address, or a firewall"
expect_line "$work/send.err" "(let TCP port $port through the firewalls of both hosts)"
echo "all well"
