# longhaul sim: results of tiny scenarios, the files about them, the same seed twice, and what is refused.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_sim.sh"

cat >incast.ini <<'END'
# Four to one.
[topology]
kind = leaf-spine
hosts = 4
leaves = 2
spines = 2
[switch]
buffer = 200kB     # a small one
ecn_max = 50kB
[workload]
kind = incast
senders = 4
receiver = 0
bytes = 100kB
[output]
queues = leaf0>host0
rates = leaf0>host0
period = 1us
pcap = leaf0>host0
END

say "a run and its files"
sim incast.ini --output results/one
expect_line sim.out 'all flows               4'
[ ! -s sim.err ] || fail "it said: $(cat sim.err)"
flow_columns=flow,source,destination,bytes,start_s,received_s,done_s,fct_s,ideal_s,slowdown,packets
flow_columns=$flow_columns,repeated_packets,timeouts,failed
link_columns=link,from,to,rate_bps,delay_s,sent_packets,sent_bytes,queue_bytes,queue_max_bytes
link_columns=$link_columns,dropped_packets,lost_packets,marked_packets,pauses,paused_s,held_max_bytes
link_columns=$link_columns,sent_payload_bytes
columns results/one/flows.csv "$flow_columns"
columns results/one/links.csv "$link_columns"
columns results/one/queues.csv 'time_s,leaf0>host0'
columns results/one/rates.csv 'time_s,leaf0>host0,leaf0>host0 payload'
[ "$(wc -l <results/one/flows.csv)" -eq 5 ] || fail "flows.csv has not one row a flow"
json 'd["points"][0]["runs"][0]["done"] == 4' results/one/summary.json
json 'd["points"][0]["runs"][0]["goodput_bps"] > 50e9' results/one/summary.json
json 'd["points"][0]["settings"]["switch.buffer"] == "200kB"' results/one/summary.json
[ -s results/one/fct.gp ] && [ -s results/one/queues.gp ] || fail "scripts of pictures are missing"
for picture in fct queues rates; do
    grep -q '</svg>' "results/one/$picture.svg" || fail "$picture.svg is no picture"
done

say "the capture"
# As many packets as links.csv says went over that link, each of them RoCE.
[ "$(od -An -tx4 -N4 --endian=little results/one/capture.pcap | tr -d ' ')" = a1b23c4d ] || fail "not a pcap"
python3 - <<'END' || fail "the capture is wrong"
import csv, struct
raw, at, packets = open("results/one/capture.pcap", "rb").read(), 24, 0
last = 0
while at < len(raw):
    seconds, nanoseconds, kept, length = struct.unpack_from("<IIII", raw, at)
    frame = raw[at + 16:at + 16 + kept]
    assert kept == length == len(frame) and frame[12:14] == b"\x08\x00"
    assert seconds * 10**9 + nanoseconds >= last
    assert struct.unpack_from(">H", frame, 36)[0] == 4791 and frame[42] in (0x0a, 0x11)
    last = seconds * 10**9 + nanoseconds
    at, packets = at + 16 + kept, packets + 1
rows = csv.DictReader(open("results/one/links.csv"))
row = next(r for r in rows if r["from"] == "leaf0" and r["to"] == "host0")
assert packets == int(row["sent_packets"]) > 90, (packets, row["sent_packets"])
END
# With losses, acknowledgements say what has arrived and no more: all data before their PSN and with it.
sim incast.ini --output results/lossy --set topology.link=loss=0.1 --set 'output.pcap=host0>leaf0,leaf0>host0'
python3 - <<'END' || fail "acknowledgements in the capture are wrong"
import struct
raw, at, arrived, last = open("results/lossy/capture.pcap", "rb").read(), 24, {}, {}
seen = {"first": 0, "again": 0, "complaint": 0}
while at < len(raw):
    kept, = struct.unpack_from("<I", raw, at + 8)
    frame = raw[at + 16:at + 16 + kept]
    at += 16 + kept
    flow, psn, syndrome = struct.unpack_from(">III", frame, 46)
    psn &= 0xffffff
    if frame[42] == 0x0a:
        arrived.setdefault(flow, set()).add(psn) # or is on the last cable, which loses nothing
        continue
    if syndrome >> 24 == 0x60:
        assert psn == 0
        seen["complaint"] += 1
        continue
    assert syndrome == 0x1f << 24 | psn + 1, hex(syndrome)
    assert arrived[flow] >= set(range(psn + 1)), (flow, psn)
    seen["again" if last.get(flow) == psn else "first"] += 1
    last[flow] = psn
assert seen["first"] > 50 and seen["again"] > 0, seen
END
if command -v tshark >/dev/null; then
    tshark -r results/one/capture.pcap 2>/dev/null | grep -i malformed && fail "malformed packets"
    tshark -r results/lossy/capture.pcap 2>/dev/null >lossy.out
    expect_line lossy.out 'RC Acknowledge'
fi

say "the same seed gives the same results, another seed others"
cat >random.ini <<'END'
[topology]
kind = fat-tree
[workload]
kind = permutation
bytes = 50kB
rounds = 3
jitter = 20us
END
sim random.ini --seed 7 --output a
sim random.ini --seed 7 --output b
sim random.ini --seed 8 --output c
cmp -s a/flows.csv b/flows.csv && cmp -s a/links.csv b/links.csv || fail "seed 7 differs from seed 7"
cmp -s a/flows.csv c/flows.csv && fail "seed 7 is seed 8"

say "seeds and sweeps"
sim random.ini --seeds 3 --sweep switch.routing=ecmp,spray \
    --sweep 'topology.link=none | loss=1e-2,burst=2' --output sweep --json sweep.json
[ "$(wc -l <sweep/sweep.csv)" -eq 5 ] || fail "sweep.csv has not one row a point"
cmp -s sweep.json sweep/summary.json || fail "--json is not summary.json"
json 'len(d["points"]) == 4 and all(len(p["runs"]) == 3 for p in d["points"])' sweep.json
json '[p["sweep"]["switch.routing"] for p in d["points"]] == ["ecmp", "ecmp", "spray", "spray"]' sweep.json
# Pairs of two keys are seen: one colour, two kinds of dashes.
[ "$(grep -o 'linetype [12] dashtype [12]' sweep/fct.gp | sort -u | wc -l)" -eq 4 ] || fail "no dashes"
json 'd["points"][1]["mean"]["lost_packets"] > 0 and d["points"][0]["mean"]["lost_packets"] == 0' sweep.json
json 'd["points"][0]["ci95"]["fct_mean_s"] > 0' sweep.json
[ -s 'sweep/routing=ecmp,_link=none/seed-2/flows.csv' ] || fail "a run of the sweep has no folder"
[ -s sweep/sweep.gp ] || fail "the sweep has no script for its picture"
sim random.ini --json -
json 'd["points"][0]["runs"][0]["done"] == 48' sim.out

# One value is a sweep too: whoever reads the files finds them where they always are.
sim random.ini --sweep switch.routing=spray --output single
[ "$(wc -l <single/sweep.csv)" -eq 2 ] && [ -s single/routing=spray/flows.csv ] || fail "no sweep"
expect_line sim.out '1 run in'

say "a topology from a file: distances, parallel cables, flows between names"
cat >two.net <<'END'
host paris
host oslo site=1
switch s
switch t
link paris s delay=200km
link s t rate=50Gbit
link s t rate=50Gbit
link t oslo
END
printf 'paris oslo 1MB 0\noslo 0 1MB 0\n' >two.flows
printf '[topology]\nkind = file\nfile = two.net\n[workload]\nkind = flows\nflows = two.flows\n' >two.ini
sim two.ini --output two --set 'output.rates=s>*'
columns two/rates.csv 'time_s,s>paris,s>t,s>t.2,s>paris payload,s>t payload,s>t.2 payload'
[ "$(cut -d, -f2,3 two/flows.csv)" = $'source,destination\n0,1\n1,0' ] || fail "flows between other hosts"
[ "$(awk -F, '$2 == "paris" { print $5 }' two/links.csv)" = 0.001 ] || fail "200 km are not a millisecond"
printf 'paris s 1MB 0\n' >two.flows
wrong 2 'unknown destination host "s"' two.ini

say "names of figures, and of distributions that come along"
sim random.ini --set output.figures=dropped_packets,queue_max,goodput_bps
wrong 2 "see longhaul sim --keys" random.ini --set output.figures=colour
sim --keys
expect_line sim.out 'slowdown_p99'
sim random.ini --set workload.kind=poisson --set workload.sizes=websearch --set workload.duration=10us \
    --set workload.rounds=1 --set workload.bytes=1kB --set workload.jitter=0
sim --list
expect_line sim.out 'for workload.sizes: fb_hadoop.cdf, websearch.cdf'

say "pictures say what they show"
# A step a flow, from 0 to 1.
awk '/^#/ { at = 0 } NF == 3 { if ($3 != at / 4) exit 1; at++ } END { exit at != 5 }' results/one/fct.dat ||
    fail "fct.dat is no distribution of four flows"
grep -q 'with steps' results/one/fct.gp || fail "the distribution has no steps"
sim random.ini --set workload.bytes=4kB --sweep transport.reorder=1,2,3,4,5,6,7,8,9 --output nine \
    --set 'output.queues=p0.edge*>*'
expect_line nine/queues.gp '(the first 8 of 9)'
expect_line nine/queues.gp 'queue (KiB)'
! grep -q 'the first' nine/fct.gp || fail "fct.svg has all nine"
sim incast.ini --set 'output.queues=all' --set workload.senders=1 --output results/one
expect_line results/one/queues.gp "(the first 12 of 24 links)"
[ ! -e results/one/fct.gp ] && [ ! -e results/one/fct.svg ] || fail "one flow is no distribution"

# Of several seeds the first, which has a folder of its own.
sim random.ini --seeds 2 --set 'output.queues=p0.edge0>*' --output seeds
expect_line seeds/fct.gp "'seed-1/fct.dat'"
expect_line seeds/queues.gp 'random (seed 1, the first of 2)'
[ -s seeds/fct.svg ] && [ -s seeds/queues.svg ] && [ ! -s sim.err ] || fail "no pictures: $(cat sim.err)"

say "what an earlier run left is taken away"
mkdir old
sim random.ini --seeds 2 --sweep switch.routing=ecmp,spray --output old
touch old/routing=spray/mine old/mine.csv
mkdir old/x=v old/seed-1x old/seed-
touch old/x=v/flows.csv old/seed-1x/flows.csv old/seed-/flows.csv
sim random.ini --output old
only old .longhaul-results fct.dat fct.gp flows.csv links.csv summary.json mine.csv \
    routing=spray routing=spray/mine x=v \
    x=v/flows.csv seed-1x seed-1x/flows.csv seed- seed-/flows.csv fct.svg
sim random.ini --seeds 3 --output old
sim random.ini --seeds 2 --output old
[ -s old/seed-2/flows.csv ] && [ ! -e old/seed-3 ] && [ ! -e old/flows.csv ] || fail "old seeds are there"

say "what gnuplot complains about is told"
mkdir -p bin
cat >bin/gnuplot <<'GNUPLOT'
#!/bin/sh
printf '\nplot\n  ^\n"fct.gp" line 3: warning: no\nx line 4: y\n' >&2
exit 1
GNUPLOT
chmod +x bin/gnuplot
status=0
PATH="$PWD/bin:$PATH" "$LONGHAUL" sim random.ini --output odd >sim.out 2>sim.err || status=$?
[ "$status" -eq 1 ] || fail "without a picture it ended with $status"
expect_line sim.err 'odd/fct.svg: no picture: gnuplot failed: "fct.gp" line 3: warning: no'

say "names that are no text"
# A file may be called anything; JSON is text all the same.
cp random.ini $'caf\xe9.ini'
sim $'caf\xe9.ini' --json odd.json
json 'd["title"] == "caf\ufffd" and d["scenario"] == "caf\ufffd.ini"' odd.json
sim random.ini --set 'output.title=10 µs, "quoted"' --json odd.json
json 'd["title"] == "10 \u00b5s, \"quoted\""' odd.json
wrong 2 '--set: byte 17 is not UTF-8' random.ini --set $'output.title=caf\xe9'

say "help"
sim --keys
expect_line sim.out 'ecn_probability'
expect_line sim.out '[output]'

say "every ready scenario begins"
sim --list
[ "$(grep -c '^  ' sim.out)" -gt 5 ] || fail "only $(grep -c '^  ' sim.out) ready scenarios"
for name in $(sed -n 's/^  \([a-z0-9-]*\)  .*/\1/p' sim.out); do
    sim "$name" --set run.until=20us --json "$name.json"
    json 'all(p["runs"][0]["flows"] > 0 for p in d["points"])' "$name.json"
    grep -qF "longhaul sim $name" "${LH_SOURCE_DIR:-$OLDPWD}/docs/scenarios.md" ||
        fail "$name is not in docs/scenarios.md"
done

# Its results may lie in a folder of its name.
sim lone-flow --no-sweep --output lone-flow
sim lone-flow --no-sweep --output lone-flow

say "each key is in the man page"
man=${LH_SOURCE_DIR:-$OLDPWD}/docs/man/longhaul-sim.1
"$LONGHAUL" sim --keys | sed -n '/^\[sweep\]/q; s/^\[\(.*\)\]$/\1/p; s/^  \([a-z][a-z_]*\)  .*/  \1/p' |
    awk '/^ / { print section "." $1; next } { section = $1 }' | grep "^[a-z]" >keys
[ "$(wc -l <keys)" -gt 50 ] || fail "only $(wc -l <keys) keys"
while read -r key; do
    grep -qF "BR $key " "$man" || fail "$key is not in longhaul-sim.1"
done <keys

say "what is asked wrongly"
wrong 2 'missing FILE'
wrong 2 'nothing.ini: no such file or scenario' nothing.ini
wrong 1 'not a regular file' .
wrong 2 'did you mean switch.buffer?' incast.ini --set switch.bufer=1MB
wrong 2 '--set: switch.buffer: huge: invalid size' incast.ini --set switch.buffer=huge
wrong 2 'ecn_min' incast.ini --set switch.ecn_min=60kB
wrong 2 '--set switch.pfc: invalid setting' incast.ini --set switch.pfc
wrong 2 '--sweep switch.pfc: invalid sweep' incast.ini --sweep switch.pfc
wrong 2 'mutually exclusive' incast.ini --no-sweep --sweep switch.pfc=on,off
wrong 2 'more than two swept keys' incast.ini --sweep switch.pfc=on,off --sweep topology.spines=1,2 \
    --sweep workload.rounds=1,2
wrong 2 '--sweep: switch.pfc "maybe"' incast.ini --sweep switch.pfc=on,maybe
wrong 2 'missing value' incast.ini --sweep switch.pfc=on,,off
wrong 2 'no such link (host0>leaf0 to spine1>leaf1, 24 links)' incast.ini --output d \
    --set 'output.queues=leaf9>host0'
wrong 2 'cannot be swept' incast.ini --sweep output.period=1us,2us
wrong 2 'topology.file is missing' incast.ini --set topology.kind=file
wrong 1 'no.cdf' incast.ini --set workload.sizes=no.cdf
wrong 1 'incast.ini' incast.ini --output incast.ini
printf '[switch]\npfc = on\nxon = 1MiB\npfcc = off\n' >bad.ini
wrong 2 'bad.ini:4: unknown key "switch.pfcc" (did you mean switch.pfc?)' bad.ini
printf '[switch]\npfc = on\nxon = 1MiB\n' >bad.ini
wrong 2 'switch.xon' bad.ini
printf '[switch\n' >bad.ini
wrong 2 'bad.ini:1:' bad.ini
printf '[topology]\nkind = fat-tree\nk = 5\n' >bad.ini
wrong 2 'topology.k' bad.ini

echo "all well"
