#!/bin/bash
# longhaul collective and distribute under mpirun of Open MPI and MPICH, where they are.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

found=0
# under NAME COMMAND...: four ranks by that command.
under() {
    local name=$1
    shift
    command -v "$1" >/dev/null || return 0
    found=$((found + 1))
    say "$name"
    TERM=xterm timeout 120 "$@" "$LONGHAUL" collective allreduce -b 4KiB -e 256KiB -f 8 --iterations 3 \
        >"$work/$name.out" 2>"$work/$name.err" || fail "$name: exit status $?"
    expect_line "$work/$name.out" "ranks 4"
    ! grep -q $'\e' "$work/$name.out" || fail "$name: escape codes in a file"
    [ "$(grep -cE '^ +[0-9]+ .* 0$' "$work/$name.out")" -eq 3 ] ||
        fail "$name: not three rows without a wrong element"
    rm -rf "$work/$name"
    mkdir -p "$work/$name"/{0,1,2,3}
    timeout 120 "$@" "$LONGHAUL" distribute "$work/file" -o "$work/$name/%r" \
        >"$work/$name.out" 2>"$work/$name.err" ||
        fail "$name: distribute: exit status $?"
    expect_line "$work/$name.out" "to 3 ranks"
    for rank in 1 2 3; do
        cmp -s "$work/file" "$work/$name/$rank/file" || fail "$name: rank $rank has another file"
    done
}

make_file "$work/file" 5000001

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
under openmpi mpirun.openmpi --oversubscribe -n 4
under mpich mpirun.mpich -n 4
[ "$found" -gt 0 ] || {
    echo "skipped: no mpirun.openmpi and no mpirun.mpich (packages openmpi-bin, mpich)"
    exit 77
}
echo "$checks checks"
