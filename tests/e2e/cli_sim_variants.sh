# longhaul sim: variants, which differ in several keys at once, and the figures of flows between sites.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_sim.sh"

cat >base.ini <<'INI'
[topology]
kind = leaf-spine
[switch]
xoff = 64KiB
xon = 64KiB
[workload]
kind = incast
senders = 8
bytes = 64kB
[variant tail drop]
switch.queue = 100kB
[variant pfc]
switch.pfc = on
switch.xoff = 128KiB
INI
printf '[sweep]\nrun.variant = tail drop, pfc\n' | cat base.ini - >swept.ini

# setting POINT KEY VALUE: what out.json has there.
setting() {
    json "d['points'][$1]['settings'].get('$2') == '$3'" out.json
}

say "each point has its section's settings"
sim swept.ini --json out.json
json 'len(d["points"]) == 2 and d["points"][1]["sweep"] == {"run.variant": "pfc"}' out.json
setting 0 switch.queue 100kB
setting 0 switch.xoff 64KiB
setting 0 switch.pfc off
setting 1 switch.queue none
setting 1 switch.xoff 128KiB
setting 1 switch.pfc on
json 'd["points"][0]["runs"][0]["dropped_packets"] > 0' out.json
json 'd["points"][1]["runs"][0]["dropped_packets"] == 0 and d["points"][1]["runs"][0]["pauses"] > 0' out.json

# plotted SCRIPT PATTERN: each plot of a picture, and the axis, has it.
plotted() {
    grep -qE -- "$2" "$1" || fail "$1: no $2: $(cat "$1")"
}

if command -v gnuplot >/dev/null; then
    say "pictures: nothing joins words; numbers are where they belong"
    sim swept.ini --output words
    plotted words/sweep.gp 'with boxes'
    ! grep -E 'linespoints|xlabel' words/sweep.gp || fail "variants are joined, or their axis has a name"
    sim base.ini --sweep 'topology.link=none|loss=1e-3' --output words
    plotted words/sweep.gp 'with boxes'
    plotted words/sweep.gp "xlabel 'topology.link'"
    sim base.ini --sweep workload.bytes=1kB,10kB,100kB --output numbers
    plotted numbers/sweep.gp 'with linespoints'
    plotted numbers/sweep.gp 'logscale x'
    plotted numbers/sweep.gp "'1kB' 1000, '10kB' 10000, '100kB' 100000"
    sim base.ini --sweep workload.senders=2,4,8 --output numbers
    plotted numbers/sweep.gp "'2' 2, '4' 4, '8' 8"
    ! grep 'logscale x' numbers/sweep.gp || fail "2, 4 and 8 are in proportion"
fi

say "the command line chooses one, and has the last word"
sim swept.ini --set run.variant=pfc --set switch.xoff=70KiB --json out.json
json 'len(d["points"]) == 1 and d["points"][0]["runs"][0]["pauses"] > 0' out.json
setting 0 switch.xoff 70KiB
sim swept.ini --sweep switch.xoff=80KiB,90KiB --set run.variant=pfc --json out.json
setting 1 switch.xoff 90KiB
setting 1 switch.pfc on
sim base.ini --json out.json
setting 0 switch.pfc off

say "what is wrong is named"
wrong 2 'run.variant = pfcc: missing section [variant pfcc]' base.ini --set run.variant=pfcc
wrong 2 'swept.ini: run.variant = none' swept.ini --sweep run.variant=pfc,none
printf '[variant pfc]\nswitch.bufer = 1MB\n[run]\nvariant = pfc\n' >odd.ini
wrong 2 'odd.ini:2: unknown key "switch.bufer" (did you mean switch.buffer?)' odd.ini
printf '[variant pfc]\nrun.until = 1ms\n' >odd.ini
wrong 2 'odd.ini:2: run.until: not allowed in a variant' odd.ini
printf '[variant pfc]\nsweep.switch.pfc = on,off\n' >odd.ini
wrong 2 'odd.ini:2: sweep.switch.pfc: not allowed' odd.ini

say "flows between sites, and what receivers see"
cat >far.ini <<'INI'
[topology]
kind = two-datacenters
hosts = 1
long_delay = 200km
[workload]
kind = flows
flows = far.flows
INI
# Two inside a site, one between them.
printf '0 1 4096 0\n8 9 4096 0\n2 12 4096 0\n' >far.flows
sim far.ini --json out.json
json 'd["points"][0]["runs"][0]["across_mean_s"] == d["points"][0]["runs"][0]["fct_max_s"]' out.json
json '0.002 < d["points"][0]["runs"][0]["across_p99_s"] < 0.0021' out.json
# One way in place of two.
json '0.001 < d["points"][0]["runs"][0]["across_received_mean_s"] < 0.0011' out.json
json '0.001 / 3 < d["points"][0]["runs"][0]["received_mean_s"] < 0.0011 / 3' out.json
runs='d["points"][0]["runs"][0]'
json "$runs['received_p99_s'] == $runs['across_received_p99_s']" out.json
printf '0 1 4096 0\n' >far.flows
sim far.ini --json out.json
json 'd["points"][0]["runs"][0]["across_mean_s"] is None' out.json
