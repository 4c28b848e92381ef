# longhaul sim: what it notes besides the results, since they would mislead without.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_sim.sh"

# notes TEXT: the last run said that, in one line.
notes() {
    [ "$(grep -vc gnuplot sim.err)" -eq 1 ] || fail "it said: $(cat sim.err)"
    grep -q "note: $1" sim.err || fail "it said: $(cat sim.err)"
}
silent() {
    [ "$(grep -vc gnuplot sim.err)" -eq 0 ] || fail "it said: $(cat sim.err)"
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
expect_line sim.out '0 by switches, 0 on links; 0 packets sent again, 0 timeouts'
silent
sim many.ini --set transport.rto_min=0
grep -q ' 0 by switches, 0 on links; 0 packets' sim.out && fail "nothing was sent again"
notes '.* packets were sent again though nothing was lost: raise transport.rto_min'
# The column is there with nothing but zeros in it, since the other one is.
sim many.ini --sweep transport.rto_min=0,1ms
grep -q "dropped *sent again" sim.out || fail "there is no column for what was dropped"
notes '.* in 1 of 2 runs'
sim many.ini --set switch.routing=spray --set topology.leaves=2 --set workload.kind=permutation \
    --set workload.bytes=4MB
notes '.*: raise transport.reorder, since'
sim many.ini --set topology.link=loss=0.01
silent

echo "all well"
