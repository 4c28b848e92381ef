# longhaul plan --flow-control --buffer against longhaul sim: what the planner says of a buffer is a bound for
# what the simulator makes of it at each constant rate of the way out, and is reached at the worst one; and
# what the simulator refuses is not planned.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
cd "$work" || exit 1
export LONGHAUL

cat >check.py <<'END'
import csv, json, math, os, subprocess, sys

RATE, HEADER, PAYLOAD = 400e9, 78, 4096
PACKET, BDP, SKIP_S = HEADER + PAYLOAD, 10000000, 2e-3
WAYS = {"PFC": "pfc", "Bifrost": "bifrost", "credits": "cbfc", "SWING": "swing"}
SCENARIO = """[topology]
kind = file
file = line.net
[switch]
pfc = on
buffer = 64MiB
[transport]
payload = 4096
header = 78
window = none
rto_min = 10s
[workload]
kind = flows
flows = long.flows
[run]
until = 20ms
[output]
rates = right>r
period = 10us
"""


def simulate(way, buffer, share):
    """What the way out carries of its rate, in whole cycles of stop and go; bytes dropped. None: refused."""
    middle = "link left right rate=400Gbit delay=100us\n" if way != "SWING" else \
        "switch ra tier=relay\nswitch rb tier=relay site=1\nlink left ra rate=400Gbit delay=0\n" \
        "link ra rb rate=400Gbit delay=100us\nlink rb right rate=400Gbit delay=0\n"
    with open("line.net", "w") as file:
        file.write("host s\nhost r site=1\nswitch left tier=dci\nswitch right tier=dci site=1\n"
                   "link s left rate=400Gbit delay=0\n"
                   f"link right r rate={share * RATE / 1e9:.9g}Gbit delay=0\n{middle}")
    result = subprocess.run([os.environ["LONGHAUL"], "sim", "line.ini", "--output", "line", "--set",
                             f"long.flow_control={WAYS[way]}", "--set", f"long.buffer={buffer}"],
                            capture_output=True, text=True)
    if result.returncode == 2:
        return None
    assert result.returncode == 0, result.stderr
    with open("line/rates.csv") as file:
        rates = [float(row["right>r"]) / RATE / share for row in csv.DictReader(file)
                 if float(row["time_s"]) > SKIP_S]
    stops = [i for i in range(1, len(rates)) if rates[i - 1] >= 0.5 > rates[i]]
    cycles = rates[stops[0]:stops[-1]] if len(stops) > 2 else rates
    with open("line/links.csv") as file:
        dropped = sum(int(row["dropped_packets"]) for row in csv.DictReader(file))
    return sum(cycles) / len(cycles), PACKET * dropped


def plan(way, buffer):
    words = f"plan --flow-control --bandwidth 400Gbit --rtt 200us --packet {PACKET} --json -"
    text = subprocess.run([os.environ["LONGHAUL"], *words.split(), "--buffer", str(buffer)],
                          capture_output=True, text=True, check=True).stdout
    return next(each for each in json.loads(text)["ways"] if each["way"] == way)


def points():
    """Way, buffer, rate of the way out, whether it is the worst."""
    headroom = BDP + 2 * PACKET + 64
    for part in (0.0005, 0.003, 0.05, 0.2, 0.5, 0.9):
        worst = 1 + part - math.sqrt(part)
        for share in sorted((0.3, worst, (1 + worst) / 2)):
            yield "PFC", headroom + int(part * headroom), share, share == worst
    for buffer in (0.001 * BDP, 0.1 * BDP, 0.7 * BDP):
        for share in (1, 0.6):
            yield "credits", int(buffer), share, share == 1
    for buffer in (plan("Bifrost", BDP)["least_buffer_bytes"], 12000000):
        for share in (0.95, 0.4, 0.05):
            yield "Bifrost", buffer, share, False
    for share in (0.9, 0.5, 0.05):
        yield "SWING", 4000000, share, False


open("line.ini", "w").write(SCENARIO)
open("long.flows", "w").write("0 1 100GB 0\n")
told, lost, checked = {}, {}, 0
for way, buffer, share, worst in points():
    told[way, buffer] = told.get((way, buffer)) or plan(way, buffer)
    planned, (carried, dropped) = told[way, buffer], simulate(way, buffer, share)
    print(f"{way} {buffer} bytes, way out {share:.3f}: planned {planned['rate_share']:.4f}, "
          f"simulated {carried:.4f}, lost {dropped} of {planned['lost_bytes']:.0f}")
    assert carried > 0.9995 * planned["rate_share"], "planned more than is carried"
    assert not worst or carried < 1.02 * planned["rate_share"], "planned too little"
    assert dropped <= planned["lost_bytes"], "planned too few losses"
    lost[way] = max(lost.get(way, 0), dropped)
    checked += 1
assert checked >= 30 and lost["SWING"] > 0.8 * told["SWING", 4000000]["lost_bytes"], (checked, lost)

for way in WAYS:
    least = plan(way, BDP)["least_buffer_bytes"]
    assert plan(way, least)["rate_share"] is not None and simulate(way, least, 0.9), way
    assert plan(way, least - 1)["rate_share"] is None, way
    below = simulate(way, least - 1, 0.9)
    assert below is None or below[0] == 0, (way, below)
END
say "30 points, and the smallest buffer of each way"
python3 check.py >check.out 2>check.err || fail "the planner and the simulator do not agree"

echo "all well"
