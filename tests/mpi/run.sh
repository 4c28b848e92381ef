#!/bin/bash
# The shim for MPI under mpirun.
#   run.sh openmpi|mpich orders [SEED COUNT]    random collectives of 2 to 4 ranks, compared with MPI's own
#   run.sh openmpi|mpich cases                  sites, 64 MiB, a key, a rank that dies, wrong settings
# LH_MPI_RANKS: the program, mpi_ranks.c. LH_BUILD_DIR: the folder of the shims.
set -u
mpi=$1 mode=$2
shim=${LH_BUILD_DIR:?the build folder}/liblonghaul-pmpi-$mpi.so
program=${LH_MPI_RANKS:?the program}
export LONGHAUL_SOCKET_IFNAME=lo LONGHAUL_PEER_TIMEOUT=2s LONGHAUL_MPI_MIN_BYTES=0

command -v "mpirun.$mpi" >/dev/null || {
    echo "skipped: no mpirun.$mpi (install Debian's $mpi)"
    exit 77
}
case $mpi in
openmpi)
    mpirun=(mpirun.openmpi --allow-run-as-root --oversubscribe --mca btl tcp,self --mca btl_tcp_if_include lo
        --mca oob_tcp_if_include lo --mca mpi_yield_when_idle 1)
    outlive=--enable-recovery
    ;;
mpich)
    mpirun=(mpirun.mpich -iface lo)
    outlive=-disable-auto-cleanup
    ;;
esac
failures=0 as=()

# ranks NUMBER SITES WORD...: at so many sites, with what they print. `preload` names the shim.
preload=$shim
ranks() {
    local number=$1 sites=$2
    shift 2
    SITES=$sites timeout 120 "${mpirun[@]}" -n "$number" "${as[@]}" \
        env LD_PRELOAD="$preload" "$program" "$@" 2>&1
}

# expect STATUS TEXT COMMAND...: its status, 0 or "not 0", and that it prints the text.
expect() {
    local status=$1 text=$2 output found=0
    shift 2
    output=$("$@") || found='not 0'
    if [ "$found" != "$status" ] || ! grep -qF -- "$text" <<<"$output"; then
        printf '%s\nfailed: %s: status %s, expected %s and "%s"\n' "$output" "$*" "$found" "$status" "$text"
        failures=$((failures + 1))
    fi
}

taken() {
    echo "$1 ranks at $2 sites, collectives from 0B on"
}

case $mode in
orders)
    seed=${3:-$(($(date +%s) % 100000))} count=${4:-250}
    echo "seed $seed"
    for sizes in "2 2" "3 3" "4 2"; do
        # shellcheck disable=SC2086  # two words
        expect 0 "$(taken $sizes)" ranks $sizes orders "$seed" "$count"
    done
    ;;
cases)
    expect 0 "$(taken 4 2)" ranks 4 2 sites
    expect 0 "$(taken 4 2)" ranks 4 2 large
    expect 0 "all ranks at one site" ranks 2 1 idle
    key=$(mktemp)
    head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$key"
    LONGHAUL_KEY_FILE=$key expect 0 "$(taken 2 2)" ranks 2 2 orders 1 20
    rm -f "$key"
    LONGHAUL_CONGESTION=nonsense expect "not 0" 'LONGHAUL_CONGESTION: "nonsense"' ranks 2 2 idle
    LONGHAUL_RELIABILITY=bounded expect "not 0" "MPI has no error for it" ranks 2 2 idle
    LONGHAUL_MPI_MIN_BYTES=x expect "not 0" 'LONGHAUL_MPI_MIN_BYTES: "x"' ranks 2 2 idle
    LONGHAUL_SOCKET_IFNAME='=none' expect "not 0" 'no interface that is up and has an address matches' \
        ranks 2 2 orders 1 20
    for other in openmpi mpich; do
        preload=${LH_BUILD_DIR}/liblonghaul-pmpi-$other.so
        if [ "$other" != "$mpi" ] && [ -e "$preload" ]; then
            expect "not 0" "preload the shim of that MPI" ranks 2 2 idle
        fi
    done
    preload=$shim
    # Without names of sites each host is one.
    # shellcheck disable=SC2016  # the ranks expand it
    as=(env -u SITES unshare --uts sh -c 'hostname "host${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$@"' rank)
    if unshare --uts true 2>/dev/null; then
        expect 0 "$(taken 2 2)" ranks 2 2 orders 1 20
    else
        echo "hosts without names of sites: not tested (unshare --uts is refused)"
    fi
    DEATH_LOG=$(mktemp)
    export DEATH_LOG
    # Signals of a rank would end the others; a status does not.
    mpirun+=("$outlive") as=(bash -c 'trap "" USR1; "$@" || exit 1' rank)
    for sizes in "3 3" "4 2"; do # of 4 the last is not the first one of its site
        last=$((${sizes% *} - 1))
        expected="rank [0-$((last - 1))]: longhaul: .*rank $last has failed"
        # shellcheck disable=SC2086  # two words
        output=$(ranks $sizes death)
        if [ "$(grep -c "^$expected" "$DEATH_LOG")" -ne "$last" ]; then
            printf '%s\n%s\nfailed: expected %s lines "%s"\n' "$output" "$(<"$DEATH_LOG")" "$last" "$expected"
            failures=$((failures + 1))
        fi
        : >"$DEATH_LOG"
    done
    rm -f "$DEATH_LOG"
    ;;
esac
[ "$failures" -eq 0 ]
