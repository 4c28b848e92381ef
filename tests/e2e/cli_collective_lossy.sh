#!/bin/bash
# longhaul collective between 2 to 4 processes over UDP, with 1 % of the packets lost: every collective over
# two schemes, each element checked, with small messages and with large ones.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

# check NAME RANKS SCHEME: two rows of right results; a barrier, which has no data, has one.
check() {
    local rows=2 sizes=(-b 6000 -e 600000 -f 100 --type i32)
    if [ "$1" = barrier ]; then
        rows=1
        sizes=()
    fi
    timeout 60 "$LONGHAUL" run -n "$2" --sites "$2" --link rtt=1ms,loss=1e-2 -- \
        "$LONGHAUL" collective "$1" "${sizes[@]}" --iterations 2 --warmup 1 \
        --reliability "$3" >"$work/run.out" 2>"$work/run.err" ||
        fail "$1 by $2 ranks over $3: $(cat "$work/run.err")"
    [ "$(grep -c ' 0$' "$work/run.out")" -eq "$rows" ] ||
        fail "$1 by $2 ranks over $3: $(cat "$work/run.out")"
}

for name in allreduce reduce broadcast allgather reduce-scatter gather scatter alltoall barrier; do
    say "$name"
    check "$name" 2 sr-nack
    check "$name" 3 ec:mds,k=8,m=2
    check "$name" 4 sr-nack
    check "$name" 4 ec:mds,k=8,m=2
done
