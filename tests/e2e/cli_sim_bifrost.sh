# longhaul sim: the scenarios of the Bifrost paper, made short. Each variant runs, and nothing is lost where
# nothing may be. And the program that runs them all.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_sim.sh"

scenarios=${LH_SOURCE_DIR:-$OLDPWD}/netsim/scenarios/bifrost

say "figures 11 to 15, 1 ms of them, 10 km"
for file in fig11 fig12 fig13 fig14 fig15; do
    # The buffer of 287 MiB is that of 600 km; slots must be shorter than the delay.
    set -- --set long.slot=5us
    [ $file != fig11 ] || set -- --set run.variant=bifrost --sweep long.slot=1us,10us
    [ $file != fig12 ] || set -- "$@" --sweep run.variant=bifrost,swing,cbfc,pfc
    sim "$scenarios/$file.ini" "$@" --set topology.long_delay=10km --set workload.duration=1ms --json out.json
    json 'all(r["done"] == r["flows"] > 0 for p in d["points"] for r in p["runs"])' out.json
    json 'all(r["dropped_packets"] == 0 for p in d["points"] for r in p["runs"]
        if p["sweep"].get("run.variant") != "irn")' out.json
done

say "signals that get lost, each way"
lost_by=pfc,pfc-refresh,bifrost,bifrost-guard,swing,swing-refresh,cbfc,cbfc-refresh
sim "$scenarios/lost-signals.ini" --set long.slot=5us --set topology.long_delay=10km \
    --set workload.duration=1ms --set long.mute_from=500us --sweep long.mute_for=none,100us \
    --sweep run.variant=$lost_by --json out.json
json 'all(r["done"] == r["flows"] > 0 and r["stuck"] == 0 for p in d["points"] for r in p["runs"]
    if p["sweep"]["run.variant"].endswith(("refresh", "guard", "bifrost")))' out.json
json 'all(r["signals_lost"] == 0 for p in d["points"] for r in p["runs"]
    if p["sweep"]["long.mute_for"] == "none")' out.json
json 'sum(r["signals_lost"] for p in d["points"] for r in p["runs"]) > 0' out.json

say "three datacenters, less buffer than is shared out, faster links, 1 ms of them, 10 km"
set -- --set long.slot=5us --set topology.long_delay=10km --set workload.duration=1ms
sim "$scenarios/three-sites.ini" "$@" --json out.json
json 'len(d["points"]) == 12 and all(r["done"] == r["flows"] > 0 == r["dropped_packets"]
    for p in d["points"] for r in p["runs"])' out.json
json '[(c["from_site"], c["to_site"]) for c in d["points"][2]["runs"][0]["classes"]] ==
    [(0, 1), (0, 2), (1, 2)]' out.json
sim "$scenarios/overbook.ini" "$@" --sweep run.variant=bifrost,cbfc --sweep long.overbook=1,16 --json out.json
json 'all(r["done"] == r["flows"] > 0 and (r["dropped_packets"] > 0) == (p["sweep"]["long.overbook"] == "16")
    for p in d["points"] for r in p["runs"])' out.json
sim "$scenarios/faster.ini" "$@" --json out.json
json 'len(d["points"]) == 12 and all(r["done"] == r["flows"] > 0 == r["dropped_packets"]
    for p in d["points"] for r in p["runs"])' out.json

say "cases A, B and C of figure 9, 2 ms of them"
for file in fig9a fig9b fig9c fig9d; do
    sim "$scenarios/$file.ini" --set run.until=22ms --json out.json
    json 'all(r["dropped_packets"] == 0 for p in d["points"] for r in p["runs"])' out.json
    json 'all(r["done"] > 2 for p in d["points"] for r in p["runs"]
        if p["sweep"]["run.variant"] == "bifrost")' out.json
done

say "the program that runs them"
if command -v python3 >/dev/null; then
    python3 "$scenarios/figures" --longhaul "$LONGHAUL" --out results --seeds 1 9c >figures.out \
        2>figures.err ||
        fail "figures ended with $?: $(cat figures.err)"
    expect_line figures.out '| 9c, case-b.flows | Bifrost |'
    grep -q '^| 9c, case-b.flows | [1-9][0-9.]* % |' figures.out || fail "no gain: $(cat figures.out)"
    columns results/fig9c.csv "$(head -n 1 results/fig9c.csv)"
    json 'len(d) == 4 and all(row["figure"] == "9c" for row in d)' results/figures.json
    # Each picture says what of, its axes what they have, and no interval leaves its panel.
    for text in "title 'Testbed, case B: messages of 8 kB" "xlabel 'the flow inside goes from'" \
        "ylabel 'completion time, ms'" "title '(a) mean'" "title '(b) 99th percentile'"; do
        expect_line results/fig9c-testbed.gp "$text"
    done
    python3 - results/fig9c-testbed.gp <<'END' || fail "an interval leaves its panel"
import re, sys
text = open(sys.argv[1]).read()
panels = re.findall(r"EOD\n(.*?)\nEOD\n.*?set yrange \[0:([\d.e+]+)\]", text, re.S)
assert len(panels) == 2
for lines, top in panels:
    for line in lines.split("\n"):
        ends = [float(number) for number in line.split('"')[2].split()]
        assert len(ends) == 6, line
        assert all(0 <= ends[i + 1] <= ends[i] <= ends[i + 2] < float(top) for i in (0, 3)), line
END
    printf 'before\n\n<!-- figures: 9-gains -->\n\n| old |\n\nafter\n' >page.md
    python3 "$scenarios/figures" --longhaul "$LONGHAUL" --out results --seeds 1 --keep --page page.md 9c \
        >figures.out 2>figures.err || fail "figures --page ended with $?: $(cat figures.err)"
    grep -q '^| 9c, case-b.flows | [1-9][0-9.]* % |' page.md || fail "not renewed: $(cat page.md)"
    [ "$(grep -c -e before -e after -e old page.md)" -eq 2 ] || fail "page.md: $(cat page.md)"
    status=0
    python3 "$scenarios/figures" --longhaul "$LONGHAUL" --out results 99 >figures.out 2>figures.err ||
        status=$?
    [ "$status" -eq 2 ] || fail "figure 99 ended with $status"
    expect_line figures.err 'there is no figure 99'
fi
