# longhaul sim: what it notes besides the results, since they would mislead without.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_sim.sh"

# notes TEXT: the last run said that, in one line.
notes() {
    [ "$(wc -l <sim.err)" -eq 1 ] || fail "it said: $(cat sim.err)"
    grep -q "note: $1" sim.err || fail "it said: $(cat sim.err)"
}
silent() {
    [ ! -s sim.err ] || fail "it said: $(cat sim.err)"
}

cat >many.ini <<'INI'
[topology]
kind = leaf-spine
hosts = 16
[switch]
pfc = on
[transport]
rto = 2
[workload]
kind = incast
bytes = 256kB
INI

say "packets that are sent again though nothing was lost"
# The queue holds all of them for longer than the empty path lets expect, and less than rto_min.
sim many.ini
expect_line sim.out '0 by switches, 0 on links; 0 packets retransmitted, 0 timeouts'
silent
sim many.ini --set transport.rto_min=0
grep -q ' 0 by switches, 0 on links; 0 packets' sim.out && fail "nothing was sent again"
notes '.* packets retransmitted without loss: raise transport.rto_min'
# The column is there with nothing but zeros in it, since the other one is.
sim many.ini --sweep transport.rto_min=0,1ms
grep -q "dropped *retransmitted" sim.out || fail "there is no column for what was dropped"
notes '.* in 1 of 2 runs'
sim many.ini --set switch.routing=spray --set topology.leaves=2 --set workload.kind=permutation \
    --set workload.bytes=4MB
notes '.*: raise transport.reorder, since'
sim many.ini --set topology.link=loss=0.01
silent

say "keys that nothing reads"
cat >far.ini <<'INI'
[topology]
kind = two-datacenters
hosts = 1
long_delay = 10km
[workload]
bytes = 64kB
INI
sim far.ini
silent
sim far.ini --set topology.leaves=2
notes '--set: topology.leaves is unused with topology.kind=two-datacenters'
wrong 2 '--sweep: workload.load is unused with workload.kind=permutation: all points' far.ini \
    --sweep workload.load=10%,20%
wrong 2 'workload.senders is unused' incast --set workload.kind=poisson
# A key that one of the points reads is well.
sim far.ini --sweep workload.kind=permutation,incast --sweep workload.senders=1,2
silent
sim far.ini --set workload.senders=2 --sweep workload.kind=permutation,incast
silent
wrong 2 '--sweep: switch.xoff is unused with switch.pfc=off' far.ini --sweep switch.xoff=100kB,120kB
sim incast --sweep workload.senders=2,4
silent
sim far.ini --set switch.xoff=100kB
notes '--set: switch.xoff is unused with switch.pfc=off'
printf '[topology]\nleaves = 3\n' >two.ini
sim two.ini
notes 'two.ini:2: topology.leaves is unused with topology.kind=two-hosts'

say "a permutation across sites"
sim far.ini --set workload.matrix=across --output far
awk -F, 'NR > 1 && !($2 < 8 && $3 >= 8) { exit 1 }' far/flows.csv || fail "a flow stays in its site"
[ "$(wc -l <far/flows.csv)" -eq 9 ] || fail "not each host of the first site sends"

say "bursts need losses, and commas are not clear"
wrong 2 '--set: topology.link "burst=8": a burst of losses needs loss=' far.ini --set topology.link=burst=8
wrong 2 'burst=8: ambiguous list of links' far.ini --sweep topology.link=loss=1e-4,burst=8
wrong 2 'jitter=1us: ambiguous list of links' far.ini --sweep topology.link=none,loss=1e-4,jitter=1us
sim far.ini --sweep topology.link=none,loss=1e-4,loss=1e-3

say "more load than there is room for"
wrong 2 'workload.load "50": out of range (0 to 10; a half is 0.5 or 50%' \
    far.ini --set workload.kind=poisson \
    --set workload.load=50
sim far.ini --set workload.kind=poisson --sweep workload.load=50%,200% --set workload.duration=10us
notes 'workload.load = 200%: above the rate'

say "what is asked for and not written"
sim far.ini --set 'output.pcap=host0>*'
notes 'output.pcap: ignored without --output FOLDER'
sim far.ini --set 'output.pcap=host0>*' --set output.packets=10 --output far
notes 'capture.pcap: first 10 of [0-9]* packets (raise output.packets'

echo "all well"
