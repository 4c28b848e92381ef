# longhaul sim that does not get to its end: what is wrong with a sweep is said before it begins; when a run
# fails or a signal comes, the runs before are told; files are whole or absent.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_sim.sh"

# Nothing was run, and nothing written.
untouched() {
    [ ! -e never ] || fail "a folder was made"
}

say "over a long path each transport ends its flows, by default"
for kind in sr irn gbn xp; do
    sim long-link-loss --set transport.kind=$kind --set topology.link=none --set workload.bytes=8MiB \
        --set workload.duration=20ms
    expect_line sim.out '0 packets retransmitted, 0 timeouts'
done

say "a sweep whose last point is wrong does not begin"
# Each would first run for hours.
printf '[workload]\nbytes = 1TB\n' >long.ini
printf '[topology]\nkind = fat-tree\n[workload]\nbytes = 1TB\n[sweep]\ntopology.k = 2,4,5\n' >odd.ini
wrong 2 'odd.ini:6: k=5: topology.k' odd.ini --output never
wrong 2 '--sweep: buffer=1kB: switch.buffer' long.ini --sweep switch.buffer=1MB,1kB --output never
wrong 2 '--set: alpha=2: switch.ecn_min' long.ini --set switch.ecn_min=2MB --set switch.ecn_max=1MB \
    --sweep switch.alpha=2,4 --output never
printf '1000 1\n' >good.cdf
printf '1000 nonsense\n' >bad.cdf
wrong 2 'bad.cdf' long.ini --set workload.kind=poisson --sweep workload.sizes=good.cdf,bad.cdf --output never
wrong 1 '--sweep: workload.sizes: none.cdf' long.ini --set workload.kind=poisson \
    --sweep workload.sizes=good.cdf,none.cdf --output never
wrong 2 'no such link with kind=two-hosts' long.ini --sweep topology.kind=dumbbell,two-hosts \
    --set 'output.queues=left>right' --output never
wrong 2 'pfc: on given twice' long.ini --sweep switch.pfc=on,off,on --output never
wrong 2 'same folder' long.ini --set topology.kind=dumbbell --output never \
    --sweep 'topology.link=loss=0.1 | loss=0.1, burst=8 | loss=0.1,_burst=8'
untouched

say "a place that cannot be written to"
wrong 1 '--json nowhere/x.json: No such file' long.ini --json nowhere/x.json
wrong 1 '--json .: Is a directory' long.ini --json .
touch file
wrong 1 'file' long.ini --output file

say "a run that fails leaves those before"
# A switch's queue holds more packets than may be alive.
status=0
printf '[topology]\nkind = leaf-spine\n[workload]\nkind = incast\nbytes = 64kB\n' >few.ini
timeout 60 "$LONGHAUL" sim few.ini --sweep run.packets=1000,2000,16,3000 --output few --json few.json \
    >few.out 2>few.err || status=$?
[ "$status" -eq 1 ] || fail "it ended with $status"
expect_line few.err 'run.packets'
expect_line few.err 'reporting the 2 of 4 runs before'
expect_line few.out '2000 '
expect_line few.out '2 of 4 runs in'
[ "$(wc -l <few/sweep.csv)" -eq 3 ] || fail "sweep.csv has not the two points"
json 'd["missing_runs"] == 2 and len(d["points"]) == 2' few.json
cmp -s few.json few/summary.json || fail "--json is not summary.json"
[ -s few/packets=2000/flows.csv ] || fail "the second run has no flows.csv"
[ ! -e few/packets=16 ] || fail "the run that failed has a folder"

say "a signal leaves what is done"
# interrupt SIGNAL STATUS ARGUMENT...: when the first run is done.
interrupt() {
    local signal=$1 wanted=$2 pid deadline=$((SECONDS + 60))
    shift 2
    "$LONGHAUL" sim long.ini "$@" --output cut --json cut.json \
        --set 'output.queues=host0>host1' --set 'output.pcap=host0>host1' >cut.out 2>cut.err &
    pid=$!
    until [ -s "$first/fct.dat" ] && compgen -G "$second/capture.pcap.*.part" >part; do
        [ "$SECONDS" -lt "$deadline" ] || fail "the second run did not begin"
        sleep 0.05
    done
    kill -"$signal" "$pid"
    ended sim "$pid" "$wanted" 30
    expect_line cut.err 'interrupted after 1 of 2 runs'
    [ "$(wc -l <cut.err)" -eq 1 ] || fail "it said more than that"
    [ -z "$(find . -name '*.part')" ] || fail "half written: $(find . -name '*.part')"
    json 'd["missing_runs"] == 1 and len(d["points"]) == 1' cut.json
    json 'd["points"][0]["runs"][0]["done"] == 2' cut.json
    cmp -s cut.json cut/summary.json || fail "--json is not summary.json"
    only "$first" capture.pcap fct.dat flows.csv links.csv queues.csv
    [ ! -e "$second" ] || fail "the run that was stopped has a folder"
}
first=cut/bytes=64kB second=cut/bytes=1TB
interrupt INT 130 --sweep workload.bytes=64kB,1TB
expect_line cut.out '64kB'
expect_line cut.out '1 of 2 runs in'
[ "$(wc -l <cut/sweep.csv)" -eq 2 ] || fail "sweep.csv has not the one point"
# What lies there from before does not pass for this run's.
sim long.ini --set workload.bytes=64kB --output "$second"
interrupt TERM 143 --sweep workload.bytes=64kB,1TB

say "a signal in the only run"
"$LONGHAUL" sim long.ini --json alone.json >alone.out 2>alone.err &
pid=$!
until compgen -G 'alone.json.*.part' >part; do sleep 0.05; done
sleep 0.2
kill -INT "$pid"
ended sim "$pid" 130 30
expect_line alone.err 'interrupted after 0 of 1 run'
[ ! -s alone.out ] && [ ! -e alone.json ] && [ -z "$(compgen -G '*.part')" ] || fail "something was told"

say "flows that never end, and why"
unfinished '2 of 2 flows did not finish: 2 failed, 0 stuck' long.ini --set workload.bytes=1MB \
    --set topology.link=loss=1 --output dead --json dead.json
expect_line sim.out '2 of 2 flows; 2 failed: retries used up, or the connection ended'
json 'd["points"][0]["runs"][0]["failed"] == 2 and d["points"][0]["runs"][0]["stuck"] == 0' dead.json
[ "$(awk -F, 'NR > 1 { print $13 $14 }' dead/flows.csv)" = $'81\n81' ] || fail "flows.csv does not say so"
unfinished '0 failed, 2 stuck' long.ini --set workload.bytes=1MB --set topology.link=loss=0.5 \
    --set transport.ack=0
expect_line sim.out '2 stuck: no retransmission pending'
sim long.ini --set run.until=1ms
expect_line sim.out '2 of 2 flows; 2 unfinished at run.until'
unfinished '2 of 4 flows did not finish: 2 failed, 0 stuck, in 1 of 2 runs' \
    long.ini --set workload.bytes=1MB --sweep 'topology.link=none | loss=1'
grep -q 'done *failed ' sim.out || fail "the sweep has no column for failed flows"
# Five switches in a ring, each with a host that sends to the one after the next; two send twice. Every cable
# of the ring waits for the next one.
for i in 0 1 2 3 4; do
    printf 'host h%d\nswitch s%d\nlink h%d s%d\nlink s%d s%d\n' "$i" "$i" "$i" "$i" "$i" $(((i + 1) % 5))
done >ring.net
for i in 0 1 2 3 4 0 2; do
    printf '%d %d 20MB 0us\n' "$i" $(((i + 2) % 5))
done >ring.flows
printf '[topology]\nkind = file\nfile = ring.net\n[workload]\nkind = flows\nflows = ring.flows\n' >ring.ini
printf '[switch]\npfc = on\nbuffer = 1MB\nxoff = 20kB\nxon = 10kB\n[transport]\nwindow = none\n' >>ring.ini
unfinished '7 of 7 flows did not finish: 0 failed, 7 stuck' ring.ini
expect_line sim.out 'stuck: deadlock of pause frames'

say "samples: exact times, none while nothing is under way, an end"
printf '0 1 1MB 0s\n0 1 1MB 100s\n' >late.flows
printf '[workload]\nkind = flows\nflows = late.flows\n' >late.ini
printf '[output]\nperiod = 333333ns\nqueues = all\nrates = all\n' >>late.ini
sim late.ini --output late
for name in queues rates; do
    rows=$(wc -l <"late/$name.csv")
    [ "$rows" -ge 2 ] && [ "$rows" -le 9 ] || fail "$name.csv has $rows rows"
done
python3 - <<'END2' || fail "the rates are wrong"
import csv
from decimal import Decimal
rows = list(csv.reader(open("late/rates.csv")))[1:]
ends = [Decimal(r["done_s"]) for r in csv.DictReader(open("late/flows.csv"))]
links = list(csv.DictReader(open("late/links.csv")))
last, sent = Decimal(0), Decimal(0)
for row in rows:
    at = Decimal(row[0])
    assert at > last and (at % Decimal("333333e-9") == 0 or at in ends), row
    sent += (at - last) * Decimal(row[1]) / 8
    last = at
assert last == ends[-1], (last, ends)
assert abs(sent - int(links[0]["sent_bytes"])) < 1000, sent
END2

say "rates: pauses, resumes, headers and acknowledgements are no payload"
# Three flows to one host: its switch pauses the long link. All that goes back are pause frames, resumes and
# acknowledgements.
printf 'host s\nhost r site=1\nswitch left\nswitch right site=1\n' >paused.net
printf 'link s left rate=400Gbit\nlink left right rate=400Gbit delay=100us\nlink right r\n' >>paused.net
printf '0 1 20MB 0 3\n' >paused.flows
cat >paused.ini <<'END2'
[topology]
kind = file
file = paused.net
[switch]
pfc = on
[workload]
kind = flows
flows = paused.flows
[long]
flow_control = pfc
xoff = 100kB
[transport]
window = none
[output]
rates = left>right,right>left
period = 50us
END2
sim paused.ini --output paused
python3 - <<'END2' || fail "payload is not what the flows sent"
import csv
links = {row["from"] + ">" + row["to"]: row for row in csv.DictReader(open("paused/links.csv"))}
there, back = links["left>right"], links["right>left"]
assert int(there["pauses"]) > 0 and int(there["sent_payload_bytes"]) == 60000000, there
assert int(back["sent_bytes"]) > 100000 and int(back["sent_payload_bytes"]) == 0, back
rows, last, sent = list(csv.DictReader(open("paused/rates.csv"))), 0, 0
for row in rows:
    sent += (float(row["time_s"]) - last) * float(row["left>right payload"]) / 8
    last = float(row["time_s"])
    assert float(row["right>left payload"]) == 0, row
assert abs(sent / 60000000 - 1) < 1e-4 and any(float(row["right>left"]) > 0 for row in rows), sent
END2
timeout 60 "$LONGHAUL" sim late.ini --set output.period=1ns --set workload.flows=late.flows --output short \
    --set transport.rate=1Mbit --set output.rates=none >sim.out 2>sim.err || fail "it did not end"
expect_line sim.err 'queues.csv: ends after 1000000 samples, at 1ms (raise output.period'

echo "all well"
