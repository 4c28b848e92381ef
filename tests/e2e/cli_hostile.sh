# Strangers at the receiver's port: a web client, silence, garbage.
# None of them keeps a file from getting through.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

mkdir "$work/out"
make_file "$work/file" 300000

# talk PORT: stdin to the port; returns when all was written, or nobody takes it any more.
# The connection stays open, in $talk.
talk() {
    exec {talk}<>"/dev/tcp/::1/$1" || fail "cannot connect to port $1"
    cat >&"$talk" 2>/dev/null
}

for server in recv "perf --server --once"; do
    say "longhaul $server: a web client, 100 kB of noise, half a greeting, a closed and a silent connection"
    if [ "$server" = recv ]; then
        start_recv server "$work/out"
    else
        # shellcheck disable=SC2086  # two words
        start server $server --listen '[::1]:0'
    fi
    port=${where##*:}
    # Not in a pipeline: the connections stay open as long as this shell does.
    talk "$port" < <(printf 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    talk "$port" < <(head -c 100000 /dev/urandom)
    talk "$port" < <(printf 'L')
    talk "$port" < <(head -c 16 /dev/zero)
    exec {talk}>&-
    talk "$port" </dev/null
    kill -0 "$pid" || fail "the server is gone"
    if [ "$server" = recv ]; then
        send "$work/file" "$where" --wait 60s
    else
        status=0
        timeout 120 "$LONGHAUL" perf "$where" --size 64KiB --iterations 2 --wait 60s \
            >"$work/send.out" 2>"$work/send.err" || status=$?
    fi
    [ "$status" -eq 0 ] || fail "longhaul $server did not serve the right client: $status"
    ended server "$pid" 0 20
done
cmp "$work/file" "$work/out/file" || fail "it is another file"
only "$work/out" file

say "one who connects as a client should, and then offers no file (longhaul perf), does not end the receiver"
rm "$work/out/file"
start_recv recv "$work/out"
status=0
timeout 60 "$LONGHAUL" perf "$where" --size 64KiB --iterations 2 \
    >"$work/perf.out" 2>"$work/perf.err" || status=$?
[ "$status" -eq 1 ] || fail "longhaul perf ended with $status at a receiver of files"
send "$work/file" "$where" --wait 60s
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 20
expect_line "$work/recv.err" "not a valid sender"
cmp "$work/file" "$work/out/file" || fail "it is another file"
echo "all well"
