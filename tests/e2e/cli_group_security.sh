# Groups with keys: what ranks exchange is on no path in clear text; ranks that differ are refused, with the
# reason at both; key files in place of the launcher's secret.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

secret=tidewater
mkdir "$work/out"
yes "a line of $secret" | head -c 300000 >"$work/named-$secret"
touch "$work/key" "$work/other"
chmod 600 "$work/key" "$work/other"
openssl rand -hex 32 >"$work/key"
openssl rand -hex 32 >"$work/other"

# free_port: sets $port.
free_port() {
    port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
}

# rank NAME NUMBER VARIABLE... -- OPTION...: one of two ranks, in the background; sets $pid.
rank() {
    local name=$1 number=$2 variables=()
    shift 2
    while [ "$1" != -- ]; do
        variables+=("$1")
        shift
    done
    shift
    env RANK="$number" WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" "${variables[@]}" \
        timeout 60 "$LONGHAUL" collective allreduce --begin 64KiB --end 64KiB --iterations 1 --wait 2s "$@" \
        >"$work/$name.out" 2>"$work/$name.err" &
    pid=$!
}

# both STATUS ZERO ONE: ranks with the words of each, variables and options around "--".
both() {
    local expected=$1 zero one
    free_port
    # shellcheck disable=SC2086  # words
    rank zero 0 $2
    zero=$pid
    # shellcheck disable=SC2086
    rank one 1 $3
    one=$pid
    ended "rank 1" "$one" "$expected" 60
    ended "rank 0" "$zero" "$expected" 60
}

# recorded COMMAND...: all that its processes send over IP is recorded.
recorded() {
    rm -f "$work/packets"
    export LH_TEST_RECORD=$work/packets
    preload record_sent
    "$@" >"$work/run.out" 2>"$work/run.err" || fail "$*: $(cat "$work/run.err")"
    preload_end
    unset LH_TEST_RECORD
    [ "$(wc -c <"$work/packets")" -ge 300000 ] || fail "nothing was recorded"
}

# distributed OPTION...: a file to two ranks of this host.
distributed() {
    recorded "$LONGHAUL" run -n 3 -- "$LONGHAUL" distribute "$work/named-$secret" -o "$work/out/%r" "$@"
}

say "of a file that is distributed neither name nor content is on the path; without encryption both are"
for rank in 1 2; do mkdir "$work/out/$rank"; done
distributed --encryption off
grep -qa "a line of $secret" "$work/packets" || fail "off: the file is not in the packets"
grep -qa "named-$secret" "$work/packets" || fail "off: its name is not in the packets"
grep -qa LHG1 "$work/packets" || fail "off: the rendezvous is not recorded"
grep -qa LHC1 "$work/packets" || fail "off: the blobs are not recorded"
expect_line "$work/run.out" "encryption off"
rm -r "$work/out"/*/*
distributed
for text in "$secret" 'a line' LHG1 LHC1; do
    ! grep -qa "$text" "$work/packets" || fail "full: $text is on the path"
done
grep -qa 'longhaul 1 group' "$work/packets" || fail "full: the rendezvous is not recorded"
expect_line "$work/run.out" "encryption full"
for rank in 1 2; do
    cmp "$work/named-$secret" "$work/out/$rank/named-$secret" || fail "rank $rank has another file"
done
rm -r "$work/out"/*/*
distributed --encryption auth
expect_line "$work/run.out" "encryption auth"
grep -qa "a line of $secret" "$work/packets" || fail "auth: the file is not in the packets"
for text in LHG1 LHC1; do
    ! grep -qa "$text" "$work/packets" || fail "auth: $text is on the path"
done

say "a collective says what its ranks have"
"$LONGHAUL" run -n 3 -- "$LONGHAUL" collective allreduce --begin 64KiB --end 64KiB --iterations 1 \
    --json "$work/json" >"$work/run.out" || fail "collective failed"
expect_line "$work/run.out" ", encryption full"
grep -q '"encryption": "full"' "$work/json" || fail "$(cat "$work/json")"

say "a key file in place of the launcher's secret, from an option or the environment; a secret; none"
both 0 "-- --key-file $work/key" "LONGHAUL_KEY_FILE=$work/key --"
expect_line "$work/zero.out" ", encryption full"
text=LONGHAUL_SECRET=0123456789abcdef
both 0 "$text --" "$text LONGHAUL_KEY_FILE=$work/key --"
expect_line "$work/zero.out" ", encryption full"
both 0 "LONGHAUL_SECRET=hush -- --encryption off" "LONGHAUL_SECRET=hush -- --encryption off"
expect_line "$work/zero.out" ", encryption off"
both 0 -- --
expect_line "$work/zero.out" ", encryption off"

say "ranks that differ: both learn it, and the remedy"
same='same LONGHAUL_SECRET or key file, and the same --encryption'
key="-- --key-file $work/key"
while IFS='|' read -r zero one words_zero words_one; do
    both 1 "$zero" "$one"
    expect_line "$work/zero.err" "$words_zero"
    expect_line "$work/zero.err" "the same --encryption"
    expect_line "$work/one.err" "$words_one"
    expect_line "$work/one.err" "the same --encryption"
done <<END
$key|-- --key-file $work/other|the remote side has another key|the remote side has another key
$key|--|the client has no key, the listener has one|the client has no key
--|$key|the remote side encrypts, this side does not|answers in clear text
$key|$key --encryption auth|rank 1 has --encryption auth, rank 0 has full|has full
$key --encryption off|$key|the remote side encrypts|answers in clear text
END
expect_line "$work/zero.err" "$same"

say "what cannot be: refused before anybody is met"
while IFS='|' read -r options words; do
    # shellcheck disable=SC2086  # words
    both 2 "$options" "$options"
    expect_line "$work/zero.err" "$words"
    expect_line "$work/one.err" "$words"
done <<END
LONGHAUL_SECRET=hush --|LONGHAUL_SECRET: 4 characters are too few to encrypt with (use 16 random ones or more
-- --encryption full|security.key_file: not set, and LONGHAUL_SECRET neither
-- --encryption most|--encryption most: unknown (use full, auth or off)
-- --key-file $work/absent|No such file or directory (make one:
END

echo "$checks checks"
