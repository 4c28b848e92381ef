# No success: standard output that cannot be written, pictures without gnuplot, flows that never finish.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
cd "$work" || exit 1

# full STATUS ARGUMENT...: standard output is full; ends with that status, and says so in one line.
full() {
    local wanted=$1 status=0
    shift
    timeout 60 "$LONGHAUL" "$@" >/dev/full 2>full.err </dev/null || status=$?
    [ "$status" -eq "$wanted" ] || fail "longhaul $* ended with $status, not $wanted"
    expect_line full.err 'standard output: No space left on device'
    [ "$(lines_of <(grep "^longhaul" full.err))" -eq 1 ] || fail "longhaul $* said more than that"
}

# gone STATUS ARGUMENT...: nobody reads standard output; that is no reason to complain.
gone() {
    local status=0
    timeout 60 python3 -c 'import os, subprocess, sys
reader, writer = os.pipe()
os.close(reader)
sys.exit(subprocess.run(sys.argv[1:], stdout=writer, stdin=subprocess.DEVNULL).returncode)' \
        "$LONGHAUL" "$@" 2>gone.err || status=$?
    [ "$status" -eq 141 ] || fail "longhaul $* ended with $status, not 141"
    [ ! -s gone.err ] || fail "longhaul $* complained: $(cat gone.err)"
}

# listening: the receiver of $pid, whose standard output says nothing, is there: without --output it names its
# folder on standard error then. A sender is refused until it listens.
listening() {
    until grep -qs 'writing files to' recv.err; do
        kill -0 "$pid" 2>/dev/null || fail "the receiver ended before it listened"
        sleep 0.02
    done
}

# A port that nobody uses.
free_port() {
    python3 -c 'import socket
s = socket.socket(socket.AF_INET6)
s.bind(("::1", 0))
print(s.getsockname()[1])'
}

link=(--bandwidth 400Gbit --rtt 25ms)
one=("${link[@]}" --loss 1e-5 --size 128MiB)
many=("${link[@]}" --loss 1e-8..1e-1 --size 64KiB..1GiB)

say "a full disk behind standard output"
for command in send recv perf probe demo sim plan devices; do
    full 1 "$command" --help
done
full 1 --help
full 1 --version
full 1 devices
full 1 devices --json
full 1 sim --list
full 1 sim --keys
full 1 sim lone-flow --no-sweep
full 1 sim lone-flow --no-sweep --json -
full 1 plan "${one[@]}"
full 1 plan "${many[@]}"
full 1 plan "${one[@]}" --json -
full 1 plan "${link[@]}" --loss 1e-5,1e-4 --size 1MiB,1GiB --map
full 1 plan --flow-control --bandwidth 400Gbit --distance 600km
full 1 demo --quick --size 1MiB --loss 0 --reliability sr-nack --link rate=2Gbit

say "a transfer arrives whole, and still its report is missing"
make_file file 100000
mkdir in
port=$(free_port)
rm -f recv.err
(cd in && exec "$LONGHAUL" recv --listen "[::1]:$port" >/dev/full 2>../recv.err) &
pid=$!
listening
full 1 send file "[::1]:$port"
ended recv "$pid" 1 20
expect_line recv.err 'standard output: No space left on device'
cmp file in/file || fail "the file is not in place"

say "measurements whose results are lost"
start perf perf --server --once --listen '[::1]:0'
full 1 perf "$where" --iterations 2 --size 64KiB
ended perf "$pid" 0 20
start perf perf --server --once --listen '[::1]:0'
full 1 perf "$where" --iterations 2 --size 64KiB --json -
ended perf "$pid" 0 20
start probe probe --server --once --listen '[::1]:0'
full 1 probe "$where" --time 1s
ended probe "$pid" 0 20

say "a reader that has gone"
gone devices --json
gone sim --keys
gone plan "${one[@]}"
gone plan "${many[@]}"
gone plan "${one[@]}" --json -
gone sim lone-flow --no-sweep --json -

say "standard output is closed: no file gets its number"
rm in/file
port=$(free_port)
rm -f recv.err
(cd in && exec "$LONGHAUL" recv --listen "[::1]:$port" >&- 2>../recv.err) &
pid=$!
listening
send file "[::1]:$port"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 1 20
expect_line recv.err 'standard output: Bad file descriptor'
cmp file in/file || fail "the report went into the file"

say "no gnuplot: no picture, and no success; everything else is there"
mkdir bin
# without TEXT ARGUMENT...: no program is found; ends with 1 and one line that has the text and the remedy.
without() {
    local text=$1 status=0
    shift
    PATH=$work/bin "$LONGHAUL" "$@" >without.out 2>without.err </dev/null || status=$?
    [ "$status" -eq 1 ] || fail "without gnuplot longhaul $* ended with $status"
    [ "$(wc -l <without.err)" -eq 1 ] || fail "longhaul $* said $(wc -l <without.err) lines"
    expect_line without.err "$text: no picture: gnuplot not found (apt-get install gnuplot-nox, "
}
without './x.svg' plan "${link[@]}" --loss 1e-5,1e-4 --size 1MiB,1GiB --map --output x.svg
[ -s x.gp ] && [ ! -e x.svg ] || fail "no script"
expect_line without.out 'Best scheme'
without 'figures/figure9.svg' plan --figures figures
[ "$(find figures -name '*.gp' | wc -l)" -eq 12 ] || fail "not all scripts are there"
[ "$(find figures -name '*.dat' | wc -l)" -eq 11 ] || fail "not all data are there"
without 'incast/fct.svg' sim incast --output incast
[ "$(find incast -name '*.gp' | wc -l)" -eq 3 ] || fail "not all scripts are there"
[ -s incast/summary.json ] || fail "no results"

say "flows that never finish: the status and the goodput say so"
cat >half.ini <<'INI'
[topology]
kind = dumbbell
hosts = 4
[workload]
kind = flows
flows = half.flows
[transport]
ack = 0
[switch]
buffer = 100kB
INI
# Two bursts meet, and one loses packets that nobody retransmits; two come later and get through.
printf '0 2 1MB 0us\n1 2 1MB 0us\n0 2 1MB 1ms\n1 2 1MB 2ms\n' >half.flows
status=0
timeout 60 "$LONGHAUL" sim half.ini --json half.json >half.out 2>half.err || status=$?
[ "$status" -eq 1 ] || fail "with flows that are not done it ended with $status"
expect_line half.err '1 of 4 flows did not finish: 0 failed, 1 stuck'
expect_line half.out 'payload of all flows, to the end of the simulation (some flows are not done)'
python3 - half.json <<'PYTHON' || fail "the goodput is not that of all flows over all the time"
import json, sys
run = json.load(open(sys.argv[1]))["points"][0]["runs"][0]
assert run["done"] == 3 and run["stuck"] == 1, run
assert abs(run["makespan_s"] - run["virtual_s"]) < 1e-9, run
PYTHON
# What run.until cuts short was asked for.
timeout 60 "$LONGHAUL" sim half.ini --set run.until=10us >cut.out 2>cut.err || fail "a cut ended with $?"
expect_line cut.out 'unfinished at run.until'
echo "all well"
