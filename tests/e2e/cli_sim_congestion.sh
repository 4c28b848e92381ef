# longhaul sim: the scenarios of congestion control, and the verdict of each: who gets how much, and how long
# queues are.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_sim.sh"

# The mean of a figure over the seeds, for a controller and a variant.
cat >verdict.py <<'PY'
import json, sys

def load(path):
    found = {}
    for point in json.load(open(path))["points"]:
        sweep = point["sweep"]
        name = sweep["transport.congestion"].split(",")[0]
        runs = point["runs"]
        found[sweep.get("run.variant"), name] = {
            key: None if any(run[key] is None for run in runs) else sum(run[key] for run in runs) / len(runs)
            for key, value in runs[0].items() if not isinstance(value, (str, list, dict))}
    return found

runs = load(sys.argv[1])
failed = 0
for line in sys.stdin:
    variant, names, figure, least, most = line.split()
    for (of, name), run in runs.items():
        if variant not in ("-", of) or names != "all" and name not in names.split("+"):
            continue
        if run[figure] is None or not float(least) <= run[figure] <= float(most):
            print(f"{of} {name}: {figure} is {run[figure]}, not {least} to {most}")
            failed = 1
sys.exit(failed)
PY

# verdict SCENARIO [SEEDS [OPTION...]]: runs it, and compares with the lines on stdin:
# VARIANT CONTROLLERS FIGURE LEAST MOST.
verdict() {
    cat >wanted
    name=$1 seeds=${2:-1}
    shift $(($# < 2 ? $# : 2))
    sim "congestion-$name" --seeds "$seeds" --json "$name.json" "$@"
    python3 verdict.py "$name.json" <wanted >verdict.out || fail "congestion-$name: $(cat verdict.out)"
}

say "fairness of flows with the same and different round trips"
verdict fairness 8 <<'RANGES'
- all share 0.85 0.982
2 swift+timely+dcqcn+eqds jain 0.95 1
4 swift+timely+dcqcn+eqds jain 0.95 1
16 swift+timely+dcqcn+eqds jain 0.95 1
2 bbr jain 0.9 1
4 bbr jain 0.85 1
16 bbr jain 0.75 1
mixed all jain 0.45 0.95
- swift+timely queue_p99_bytes 50000 1250000
2 swift+timely+eqds queue_p99_bytes 50000 500000
RANGES

say "bbr where the queue does not mark, after 200 round trips"
verdict fairness 8 --sweep run.variant=2,4,16,mixed --sweep transport.congestion=bbr \
    --set switch.ecn_min=0B --set switch.ecn_max=none --set output.from=2s <<'RANGES'
2 bbr jain 0.93 1
4 bbr jain 0.95 1
16 bbr jain 0.93 1
mixed bbr jain 0.76 1
RANGES

say "flows join and leave"
verdict joins <<'RANGES'
- all done 4 4
- all share 0.85 0.982
- all jain 0.5 1
RANGES

say "the path's rate changes"
verdict rate-change <<'RANGES'
- all share 0.5 0.615
- all queue_mean_bytes 30000 500000
RANGES

say "loss at random, and a short queue"
verdict loss <<'RANGES'
clean bbr+swift+timely+eqds share 0.95 0.982
loss-1e-3 bbr+swift+timely+eqds share 0.95 0.982
loss-1e-2 bbr+swift+timely+eqds share 0.93 0.975
loss-1e-2 all lost_packets 1000 2500
short-queue all share 0.7 0.982
short-queue all queue_p99_bytes 20000 250000
RANGES

say "incast"
verdict incast <<'RANGES'
- all done 32 32
- bbr+swift+timely+eqds fct_max_s 0.00256 0.004
- all dropped_packets 0 0
- swift+eqds queue_max_bytes 100000 1700000
RANGES

say "a controller with parameters, with each transport; and with none"
cat >pair.ini <<'INI'
[topology]
kind = dumbbell
hosts = 2
core_rate = 10Gbit
[workload]
matrix = across
bytes = 10MB
[output]
from = 1ms
period = 100us
queues = left>right
INI
sim pair.ini --sweep transport.kind=sr,irn,gbn --sweep 'transport.congestion=none|swift,target=50us|bbr'
expect_line sim.out "Jain's index"
sim pair.ini --set transport.congestion=swift
expect_line sim.out "verdict       Jain's index "
sim pair.ini --set transport.congestion=swift --set output.from=none
grep -q verdict sim.out && fail "there is a verdict of nothing"
wrong 2 '--set: transport.congestion: unknown congestion controller "swifd"' pair.ini \
    --set transport.congestion=swifd
wrong 2 'transport.congestion is set, but transport.ack is 0' pair.ini --set transport.congestion=bbr \
    --set transport.ack=0

say "a cable that changes its rate"
sim pair.ini --set topology.change_rate=1Gbit --set topology.change_from=2ms --set topology.change_for=1ms \
    --json a.json
sim pair.ini --json b.json
# A millisecond at a tenth of the rate is 0.9 ms lost.
json '0.0008 < d["points"][0]["runs"][0]["makespan_s"] -
    json.load(open("b.json"))["points"][0]["runs"][0]["makespan_s"] < 0.001' a.json

echo "all well"
