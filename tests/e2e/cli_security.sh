# Keys: who has the same, and wants the same to be encrypted, meets; all others learn why not; a host on the
# path that records, and one that removes TLS.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out"
make_file "$work/file" 3000000
touch "$work/key" "$work/other"
chmod 600 "$work/key" "$work/other"
head -c 32 /dev/urandom | base64 >"$work/key"
od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >"$work/other"
same='use the same key file or code on both sides'

# refused OPTION...: recv with the options before "--", send with those behind it: both fail to meet.
# Sets $pid for further tries.
refused() {
    local receiver=()
    while [ "$1" != -- ]; do
        receiver+=("$1")
        shift
    done
    shift
    start_recv recv "$work/out" "${receiver[@]}"
    send "$work/file" "$where" "$@"
    [ "$status" -eq 1 ] || fail "the sender ended with $status"
    expect_line "$work/send.err" "$same"
    expect_line "$work/recv.err" "$same"
    nothing "$work/out"
    kill -0 "$pid" || fail "a stranger ended the receiver"
    kill "$pid"
}

say "a key of both sides, in base64 and with white space"
start_recv recv "$work/out" --key-file "$work/key"
send "$work/file" "$where" --key-file "$work/key"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 60
cmp "$work/file" "$work/out/file" || fail "another file arrived"
rm "$work/out/file"

say "the receiver has none; the sender has none; both have, and they differ"
refused -- --key-file "$work/key"
expect_line "$work/send.err" 'answers in clear text: it has no key'
expect_line "$work/recv.err" 'the remote side has a key, this side has none'
refused --key-file "$work/key" --
expect_line "$work/send.err" 'the client has no key, the listener has one'
expect_line "$work/recv.err" 'the client has no key, the listener has one'
refused --key-file "$work/key" -- --key-file "$work/other"
expect_line "$work/send.err" 'the remote side has another key'
expect_line "$work/recv.err" 'the remote side has another key'

say "after strangers the receiver serves who has the key"
start_recv recv "$work/out" --key-file "$work/other"
send "$work/file" "$where" --key-file "$work/key"
[ "$status" -eq 1 ] || fail "another key: send ended with $status"
send "$work/file" "$where"
[ "$status" -eq 1 ] || fail "no key: send ended with $status"
send "$work/file" "$where" --key-file "$work/other"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 60
cmp "$work/file" "$work/out/file" || fail "another file arrived"
rm "$work/out/file"

say "files that are no key, or not this user's alone: refused with the remedy, before it listens"
echo secret >"$work/word"
chmod 600 "$work/word"
cp "$work/key" "$work/open"
chmod 640 "$work/open"
while IFS='|' read -r file words; do
    for command in "recv --listen [::1]:0" "send $work/file [::1]:9" "perf --server --listen [::1]:0" \
        "perf [::1]:9"; do
        status=0
        # shellcheck disable=SC2086  # words
        timeout 60 "$LONGHAUL" $command --key-file "$work/$file" >"$work/one.out" 2>"$work/one.err" ||
            status=$?
        [ "$status" -eq 1 ] || [ "$status" -eq 2 ] || fail "$command with $file ended with $status"
        expect_line "$work/one.err" "$words"
        [ ! -s "$work/one.out" ] || fail "$command with $file: $(cat "$work/one.out")"
    done
done <<END
open|mode 0640 lets other users use it (chmod 600 $work/open)
word|not a key of 32 bytes in hexadecimal or base64 (make one: longhaul key new FILE)
absent|No such file or directory (make one:
END

say "perf: both of its connections have the key, and encrypt what both want"
for encryption in full auth off; do
    start perf perf --server --once --listen '[::1]:0' --key-file "$work/other" --encryption $encryption
    "$LONGHAUL" perf "$where" --size 64KiB --iterations 3 --key-file "$work/other" --json "$work/json" \
        --encryption $encryption >"$work/perf.out" 2>"$work/client.err" || fail "perf failed: $encryption"
    ended perf "$pid" 0 60
    grep -q "\"encryption\": \"$encryption\"" "$work/json" || fail "$encryption: $(head -5 "$work/json")"
    expect_line "$work/perf.out" ", encryption $encryption"
    grep -q '"rx_auth_failures": 0' "$work/json" || fail "$encryption: no count of failures"
done
start perf perf --server --once --listen '[::1]:0'
"$LONGHAUL" perf "$where" --size 64KiB --iterations 3 --json "$work/json" >"$work/perf.out" ||
    fail "perf failed"
ended perf "$pid" 0 60
grep -q '"encryption": "off"' "$work/json" || fail "no key: $(head -5 "$work/json")"

say "the sides want different things: both learn it, and which"
same='use the same --encryption on both sides'
for pair in 'full auth' 'auth full'; do
    refused --key-file "$work/key" --encryption "${pair% *}" -- \
        --key-file "$work/key" --encryption "${pair#* }"
    words="encryption differs: the listener has \"${pair% *}\", the client \"${pair#* }\""
    expect_line "$work/send.err" "$words"
    expect_line "$work/recv.err" "$words"
done
same='use the same key file or code on both sides'
refused --key-file "$work/key" -- --key-file "$work/key" --encryption off
refused --key-file "$work/key" --encryption off -- --key-file "$work/key"
start_recv recv "$work/out" --key-file "$work/key" --encryption auth
send "$work/file" "$where" --key-file "$work/key" --encryption auth
[ "$status" -eq 0 ] || fail "auth: send ended with $status"
ended recv "$pid" 0 60
cmp "$work/file" "$work/out/file" || fail "auth: another file arrived"
rm "$work/out/file"

say "a device that does not encrypt is refused before anything is sent, with the remedy"
for command in "recv --listen [::1]:0" "send $work/file [::1]:9"; do
    status=0
    # shellcheck disable=SC2086  # words
    timeout 60 "$LONGHAUL" $command --key-file "$work/key" --device verbs:none >"$work/one.out" \
        2>"$work/one.err" || status=$?
    [ "$status" -ne 0 ] || fail "$command took verbs with a key"
done

# A host on the path: proxy.py MODE TO FILE. Prints its port, passes one TCP connection on, records what it
# carries. strip: answers what begins like TLS in clear text itself, as a host does that removes TLS.
cat >"$work/proxy.py" <<'PYTHON'
import selectors, socket, struct, sys
mode, to, record = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], "wb", buffering=0)
listener = socket.socket(socket.AF_INET6)
listener.bind(("::1", 0))
listener.listen(8)
print(listener.getsockname()[1], flush=True)
near, _ = listener.accept()
if mode == "strip":
    record.write(near.recv(4096))
    link = b""
    near.sendall(b"LHR1" + struct.pack(">BBHI", 6, 1, 0, 28 + len(link)) +
                 struct.pack(">HHIIIIQ", 64, 1408, 0, 64, 1, 4, 4 << 20) + link)
    while data := near.recv(65536):
        record.write(data)
    sys.exit()
far = socket.create_connection(("::1", to))
both = selectors.DefaultSelector()
both.register(near, selectors.EVENT_READ, far)
both.register(far, selectors.EVENT_READ, near)
while True:
    for key, _ in both.select():
        data = key.fileobj.recv(65536)
        if not data:
            sys.exit()
        record.write(data)
        key.data.sendall(data)
PYTHON

# proxy MODE PORT: sets $through.
proxy() {
    rm -f "$work/proxy.pipe"
    mkfifo "$work/proxy.pipe"
    python3 "$work/proxy.py" "$1" "$2" "$work/recorded" >"$work/proxy.pipe" 2>"$work/proxy.err" &
    exec {proxied}<"$work/proxy.pipe"
    read -r -t 30 -u "$proxied" through || fail "the proxy did not start"
}

# through_proxy OPTION...: a file by way of a proxy that records.
through_proxy() {
    start_recv recv "$work/out" "$@"
    proxy record "${where##*:}"
    send "$work/file" "[::1]:$through" "$@"
    [ "$status" -eq 0 ] || fail "through the proxy send ended with $status"
    ended recv "$pid" 0 60
    cmp "$work/file" "$work/out/file" || fail "another file arrived"
    rm "$work/out/file"
}

say "what the rendezvous carries is on the path in clear text without a key, and not with one"
through_proxy
grep -qa LHR1 "$work/recorded" || fail "without a key: no frame is on the path"
grep -qa LHC1 "$work/recorded" || fail "without a key: no blob is on the path"
through_proxy --key-file "$work/key"
[ -s "$work/recorded" ] || fail "with a key: the proxy saw nothing"
grep -qa 'longhaul 1 rendezvous' "$work/recorded" || fail "with a key: the proxy saw no TLS with a key"
for text in LHR1 LHC1; do
    ! grep -qa "$text" "$work/recorded" || fail "with a key: $text is on the path"
done

# recorded OPTION...: a file whose packets, of both sides, are recorded.
recorded() {
    rm -f "$work/packets"
    export LH_TEST_RECORD=$work/packets
    preload record_sent
    start_recv recv "$work/out" "$@"
    send "$work/named-$secret" "$where" "$@"
    preload_end
    unset LH_TEST_RECORD
    [ "$status" -eq 0 ] || fail "recorded: send ended with $status"
    ended recv "$pid" 0 60
    cmp "$work/named-$secret" "$work/out/named-$secret" || fail "another file arrived"
    rm "$work/out/named-$secret"
    [ "$(wc -c <"$work/packets")" -ge 300000 ] || fail "the packets were not recorded"
}

say "of a transfer that is encrypted neither the file's name nor a piece of it is on the path"
secret=tidewater
yes "a line of $secret" | head -c 300000 >"$work/named-$secret"
recorded --key-file "$work/key" --encryption auth
grep -qa "a line of $secret" "$work/packets" || fail "auth: the file is not in the packets"
grep -qa "named-$secret" "$work/packets" || fail "auth: its name is not in the packets"
recorded --key-file "$work/key"
! grep -qa "$secret" "$work/packets" || fail "full: the file or its name is in the packets"
! grep -qa 'a line' "$work/packets" || fail "full: a piece of the file is in the packets"

say "a host on the path that removes TLS: the sender stops, and has sent nothing in clear text"
proxy strip 0
send "$work/file" "[::1]:$through" --key-file "$work/key"
[ "$status" -eq 1 ] || fail "with TLS removed send ended with $status"
expect_line "$work/send.err" 'a host on the path removes TLS'
! grep -qa 'LHR1\|LHC1' "$work/recorded" || fail "the sender went on in clear text"

echo "$checks checks"
