# Between two hosts: without a key neither side meets the other, unless both say --insecure; with a key file,
# or a code, which is for one connection. Commands of files, perf, probe and groups.
# Needs network namespaces; skipped without.
#
# SPDX-License-Identifier: BSD-3-Clause
if [ -z "${OWN_NETWORK:-}" ]; then
    unshare=(unshare --net --mount)
    [ "$(id -u)" -eq 0 ] || unshare+=(--user --map-root-user)
    "${unshare[@]}" true 2>/dev/null || exit 77
    OWN_NETWORK=1 exec "${unshare[@]}" bash "$0"
fi
. "$(dirname "$0")/lib_cli.sh"
. "$(dirname "$0")/lib_router.sh"
unset LONGHAUL_CODE LONGHAUL_KEY_FILE LONGHAUL_SECRET

mount -t tmpfs tmpfs /run && mkdir /run/netns || exit 77
mount -t sysfs sysfs /sys 2>/dev/null
make_routed_hosts 1500 || exit 77
mkdir "$work/out"
make_file "$work/file" 3000000
"$LONGHAUL" key new "$work/key" >/dev/null || fail "no key"

# Of messages: the three ways to go on.
ways=('longhaul key new, --key-file' 'recv --code new' '--insecure on both')
warning='--insecure: nothing is authenticated nor encrypted'

# serve HOST COMMAND ARGUMENT...: there, in the background; sets pid.
serve() {
    local host=$1
    shift
    rm -f "$work/pipe"
    mkfifo "$work/pipe"
    ip netns exec "$host" "$LONGHAUL" "$@" >"$work/pipe" 2>"$work/server.err" &
    pid=$!
    exec {feed}<"$work/pipe"
    read -r -t 30 -u "$feed" || fail "$2 does not listen: $(cat "$work/server.err")"
}

# client HOST COMMAND ARGUMENT...: there; sets status.
client() {
    local host=$1
    shift
    status=0
    timeout 60 ip netns exec "$host" "$LONGHAUL" "$@" >"$work/client.out" 2>"$work/client.err" || status=$?
}

# Until the server has reported that text: it may do so after the client has ended.
server_reports() {
    for _ in {1..600}; do
        grep -qF -e "$1" "$work/server.err" && return
        sleep 0.05
    done
    fail "the server does not report: $1"
}

stays() {
    kill -0 "$pid" || fail "a stranger ended the server"
    kill "$pid"
    wait "$pid" 2>/dev/null
}

arrived() {
    [ "$status" -eq 0 ] || fail "send ended with $status"
    ended recv "$pid" 0 60
    cmp "$work/file" "$work/out/file" || fail "another file arrived"
    rm "$work/out/file"
}

for to in 10.77.2.2 '[fd77:2::2]'; do
    say "a file to $to without a key: both refuse, with the ways to go on"
    serve right recv --output "$work/out"
    client left send "$work/file" "$to"
    [ "$status" -eq 1 ] || fail "send ended with $status"
    for way in "${ways[@]}"; do
        expect_line "$work/client.err" "$way"
        server_reports "$way"
    done
    expect_line "$work/client.err" "cannot connect: $to:47910: not encrypted: peers on other hosts are"
    stays
    nothing "$work/out"
done

say "a client sends no byte: a server of ours sees none, and the packets beside TCP neither"
cat >"$work/server.py" <<'END'
import socket, sys
listener = socket.create_server(("10.77.2.2", 7000))
print("ready", flush=True)
peer, _ = listener.accept()
peer.settimeout(30)
open(sys.argv[1], "w").write(str(len(peer.recv(4096))))
END

# sends_nothing COMMAND ARGUMENT...: to that server.
sends_nothing() {
    rm -f "$work/listens" "$work/seen"
    ip netns exec right python3 "$work/server.py" "$work/seen" >"$work/listens" &
    pid=$!
    until [ -s "$work/listens" ]; do sleep 0.05; done
    client left "$@"
    [ "$status" -eq 1 ] || fail "$1 ended with $status"
    expect_line "$work/client.err" "not encrypted: "
    ended "the server" "$pid" 0 60
    [ "$(cat "$work/seen")" = 0 ] || fail "$1 sent $(cat "$work/seen") bytes"
}

packets_sent() {
    ip netns exec left awk '$1 == "Udp:" && $5 ~ /^[0-9]/ { print $5 }' /proc/net/snmp
}

before=$(packets_sent)
sends_nothing send "$work/file" 10.77.2.2:7000
sends_nothing perf 10.77.2.2:7000
sends_nothing probe 10.77.2.2:7000
export RANK=1 WORLD_SIZE=2 MASTER_ADDR=10.77.2.2 MASTER_PORT=7000
sends_nothing collective barrier
sends_nothing collective barrier --encryption off
sends_nothing distribute "$work/file"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
[ "$(packets_sent)" = "$before" ] || fail "$before datagrams before, $(packets_sent) after"

say "one side alone says --insecure: the other refuses, and both print why"
serve right recv --output "$work/out"
client left send "$work/file" 10.77.2.2 --insecure
[ "$status" -eq 1 ] || fail "send ended with $status"
expect_line "$work/client.err" "${ways[2]}"
server_reports "${ways[2]}"
stays
serve right recv --output "$work/out" --insecure
client left send "$work/file" 10.77.2.2
[ "$status" -eq 1 ] || fail "send ended with $status"
expect_line "$work/client.err" "${ways[2]}"
stays
nothing "$work/out"

say "both do: the file arrives, and both have one line about it"
serve right recv --output "$work/out" --insecure
client left send "$work/file" 10.77.2.2 --insecure
arrived
for side in client server; do
    [ "$(grep -cF -e "$warning" "$work/$side.err")" -eq 1 ] || fail "$side: $(cat "$work/$side.err")"
done

say "encryption that is off is no key: refused; with --insecure not"
serve right recv --output "$work/out" --key-file "$work/key" --encryption off
client left send "$work/file" 10.77.2.2 --key-file "$work/key" --encryption off
[ "$status" -eq 1 ] || fail "send ended with $status"
expect_line "$work/client.err" "${ways[2]}"
stays
serve right recv --output "$work/out" --key-file "$work/key" --encryption off --insecure
client left send "$work/file" 10.77.2.2 --key-file "$work/key" --encryption off --insecure
arrived

say "a key file, from the option and from the environment"
serve right recv --output "$work/out" --key-file "$work/key"
LONGHAUL_KEY_FILE=$work/key client left send "$work/file" 10.77.2.2
arrived
[ ! -s "$work/client.err" ] || fail "send says: $(cat "$work/client.err")"

say "the host's own addresses are this host"
serve right recv --output "$work/out"
client right send "$work/file" 10.77.2.2
arrived
serve right recv --output "$work/out"
client right send "$work/file" '[::1]'
arrived

# serve_code COMMAND ARGUMENT...: as serve(), with a new code; sets code.
serve_code() {
    serve right "$@" --code new
    code=$(sed -n 's/.*LONGHAUL_CODE=\([a-z-]*\) longhaul.*/\1/p' "$work/server.err")
    [ ${#code} -eq 35 ] || fail "no code: $(cat "$work/server.err")"
}

say "a code: from the option, or the environment"
serve_code recv --output "$work/out"
expect_line "$work/server.err" "LONGHAUL_CODE=$code longhaul send PATH... HOST"
client left send "$work/file" 10.77.2.2 --code "${code^^}"
arrived
used=$code
serve_code recv --output "$work/out"
[ "$code" != "$used" ] || fail "the same code again"
LONGHAUL_CODE=$code client left send "$work/file" 10.77.2.2
arrived

say "another code: refused at both, and the third time with their number"
serve_code recv --output "$work/out"
for guess in 1 2 3; do
    client left send "$work/file" 10.77.2.2 --code "$used"
    [ "$status" -eq 1 ] || fail "guess $guess: send ended with $status"
    expect_line "$work/client.err" 'the remote side has another key (use the same key file or code'
done
server_reports 'the remote side has another key'
client left send "$work/file" 10.77.2.2 --code "$code"
arrived
client left send "$work/file" 10.77.2.2 --code lusab-babad
[ "$status" -eq 2 ] || fail "no code: send ended with $status"
expect_line "$work/client.err" 'not 6 words of 5 letters'

say "a code that has been used: a second sender is refused while the first one is served"
serve_code recv --output "$work/out"
head -c 20M /dev/urandom >"$work/large" # its name appears while it is received
ip netns exec left "$LONGHAUL" send "$work/large" 10.77.2.2 --code "$code" --rate 40Mbit >"$work/first.out" \
    2>"$work/first.err" &
first=$!
until ls -A "$work/out" | grep -q .; do
    kill -0 "$first" || fail "the first sender ended"
    sleep 0.05
done
client left send "$work/file" 10.77.2.2 --code "$code"
[ "$status" -eq 1 ] || fail "the second sender ended with $status"
expect_line "$work/client.err" 'the code has been used'
ended send "$first" 0 60
ended recv "$pid" 0 60
cmp "$work/large" "$work/out/large" || fail "another file arrived"

say "perf"
serve right perf --server --once
client left perf 10.77.2.2 --size 64KiB --iterations 2
[ "$status" -eq 1 ] || fail "perf ended with $status"
expect_line "$work/client.err" "${ways[2]}"
server_reports "${ways[2]}"
stays
serve_code perf --server
expect_line "$work/server.err" "longhaul perf HOST"
client left perf 10.77.2.2 --size 64KiB --iterations 2 --code "$code"
[ "$status" -eq 0 ] || fail "perf ended with $status"
expect_line "$work/client.out" "encryption full"
ended perf "$pid" 0 60

say "probe"
serve right probe --server --once
client left probe 10.77.2.2 --time 1s
[ "$status" -eq 1 ] || fail "probe ended with $status"
expect_line "$work/client.err" 'not encrypted: peers on other hosts are refused (probes have no key'
server_reports 'not encrypted: peers on other hosts are refused (probes have no key'
client left probe 10.77.2.2 --time 1s --insecure
[ "$status" -eq 1 ] || fail "probe ended with $status"
expect_line "$work/client.err" 'not encrypted: peers on other hosts are refused'
stays
serve right probe --server --once --insecure
client left probe 10.77.2.2 --time 1s --insecure
[ "$status" -eq 0 ] || fail "probe ended with $status"
expect_line "$work/client.err" "$warning"
server_reports "$warning"
ended probe "$pid" 0 60

# rank HOST NUMBER ARGUMENT...: in the background, as a launcher starts it; sets pid.
rank() {
    local host=$1 number=$2
    shift 2
    RANK=$number WORLD_SIZE=2 MASTER_ADDR=10.77.2.2 MASTER_PORT=29500 timeout 60 ip netns exec "$host" \
        "$LONGHAUL" collective allreduce --begin 64KiB --end 64KiB --iterations 1 --wait 3s "$@" \
        >"$work/rank$number.out" 2>"$work/rank$number.err" &
    pid=$!
}

# ranks STATUS ARGUMENT...: one on each host.
ranks() {
    local expected=$1 zero
    shift
    rank right 0 "$@"
    zero=$pid
    rank left 1 "$@"
    ended "rank 1" "$pid" "$expected" 60
    ended "rank 0" "$zero" "$expected" 60
}

say "ranks of a group"
ranks 1
expect_line "$work/rank1.err" 'rank 0 at 10.77.2.2:29500: not encrypted: ranks on other hosts are refused'
expect_line "$work/rank0.err" 'not encrypted: ranks on other hosts are refused (set LONGHAUL_SECRET'
ranks 0 --insecure
expect_line "$work/rank0.out" ", encryption off"
expect_line "$work/rank0.err" "$warning"
ranks 0 --key-file "$work/key"
expect_line "$work/rank0.out" ", encryption full"

say "what contradicts itself"
while IFS='|' read -r options words; do
    # shellcheck disable=SC2086  # words
    client right recv $options
    [ "$status" -eq 2 ] || fail "recv $options ended with $status"
    expect_line "$work/client.err" "$words"
    ! grep -q LONGHAUL_CODE= "$work/client.err" || fail "recv $options printed a code, and refused it"
done <<END
--insecure --key-file $work/key|--insecure: contradicts --key-file
--insecure --code new|--insecure: contradicts --code
--insecure --encryption full|--insecure: contradicts --encryption
--code new --key-file $work/key|--code: there is --key-file, too
--code new --encryption off|--encryption off: contradicts --code
--code new --keep|--keep: a code is for one connection
--code new --jobs 2|--jobs 2: one file is received
END
echo "$checks checks"
