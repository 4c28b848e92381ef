# Pictures: each says what it shows, on axes and in one legend; nothing covers anything (check_pictures.py).
#
# SPDX-License-Identifier: BSD-3-Clause
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib_cli.sh"
cd "$work" || exit 1

# check SCRIPT...
check() {
    python3 "$here/check_pictures.py" "$@" >check.log || fail "$(cat check.log)"
}

run() {
    timeout 120 "$LONGHAUL" "$@" >run.out 2>run.err </dev/null || fail "longhaul $* ended with $?"
    [ ! -s run.err ] || fail "longhaul $* said: $(cat run.err)"
}

say "the figures of the paper"
run plan --figures figures
check figures/*.gp

say "the pictures of scenarios"
for scenario in dumbbell-fair ecn-queue incast lone-flow pfc-victim; do
    run sim "$scenario" --output "$scenario"
    check "$scenario"/*.gp
done
run sim incast --seeds 2 --output seeds
check seeds/*.gp

say "many lines with long names, many panels, large numbers, slanted values"
run sim permutation-ecmp-vs-spray --no-sweep --set workload.bytes=64KiB --output many \
    --set 'output.rates=p0.*>*' --set 'output.queues=p0.*>*'
check many/*.gp
run sim incast --sweep workload.senders=2,3,4,5 --sweep switch.buffer=200kB,300kB,400kB,500kB,600kB,700kB \
    --set output.figures=fct_mean,dropped,queue_max --output panels
check panels/*.gp
run sim lone-flow --sweep 'topology.link=none|loss=1e-4,burst=4|loss=1e-3,burst=4|loss=1e-2,burst=4' \
    --set workload.bytes=1MiB --output slanted
check slanted/*.gp
# What panels of other networks show has other names: a legend each.
run sim incast --sweep topology.kind=leaf-spine,fat-tree --set 'output.queues=*>host0,*>p0.*' \
    --set workload.senders=4 --output other
[ "$(grep -c '^set key at screen' other/queues.gp)" -ge 2 ] || fail "two networks share a legend"

say "the map: green where codes are faster, as on the terminal, and a scale that reaches the largest number"
run plan --bandwidth 400Gbit --rtt 25ms --map --output map.svg
check map.gp
python3 - map.gp <<'PYTHON' || fail "the scale of the map"
import math
import re
import sys

script = open(sys.argv[1], encoding="utf-8").read()
cells = [float(line.split()[3]) for line in script.split("EOD\n")[1].splitlines()]
low, high = (float(end) for end in re.search(r"set cbrange \[(\S+):(\S+)\]", script).groups())
assert max(cells) > 6 and low <= math.log2(min(cells)) and math.log2(max(cells)) <= high, (low, high)
colours = re.findall(r"(-?\d+) '#(..)(..)(..)'", re.search(r"set palette defined .*", script)[0])
levels = {int(at): [int(part, 16) for part in colour] for at, *colour in colours}
assert levels[min(levels)][0] > levels[min(levels)][1], "slower is not red"
assert levels[max(levels)][1] > levels[max(levels)][0], "faster is not green"
PYTHON
run plan --bandwidth 400Gbit --rtt 25ms --map --loss 1e-5,3e-4 --size 1MiB,1GiB --output small.svg
check small.gp
expect_line small.gp "'3·10⁻⁴'"

say "the pictures of the documentation"
source=${LH_SOURCE_DIR:-$here/../..}
mkdir documentation
for script in "$source"/bench/results/*.gp; do
    cp "$script" "$source/docs/pictures/$(basename "$script" .gp).svg" documentation
done
check documentation/*.gp
echo "all well"
