#!/bin/bash
# Programs that know nothing of Longhaul, over its provider for libfabric.
#   programs.sh pingpong     Debian's fi_info and fi_pingpong
#   programs.sh openmpi      mpi_messages.c under Open MPI, 1 to 4 ranks
#   programs.sh intelmpi     the same under Intel MPI, which comes from PyPI; and the shim for MPI under it
#   programs.sh mpi4py       the tests of mpi4py under Intel MPI, over the provider and over Intel's own TCP:
#                            what fails over both is no fault of the provider; by hand, for its minutes
#   programs.sh settings     a key, a link that loses packets, wrong settings
# LH_BUILD_DIR: the build folder. LH_OWN_NETWORK: a command that runs Intel MPI's ranks in a network of their
# own.
set -u
export FI_PROVIDER_PATH=${LH_BUILD_DIR:?the build folder}/libfabric
export LONGHAUL_SOCKET_IFNAME=lo LONGHAUL_PEER_TIMEOUT=5s
program=$LH_BUILD_DIR/tests/mpi_messages
failures=0

need() {
    command -v "$1" >/dev/null || {
        echo "skipped: no $1 (install Debian's $2)"
        exit 77
    }
}

# expect STATUS TEXT COMMAND...: its status, 0 or "not 0", and that it prints the text.
expect() {
    local status=$1 text=$2 output found=0
    shift 2
    output=$("$@" 2>&1) || found='not 0'
    if [ "$found" != "$status" ] || ! grep -qF -- "$text" <<<"$output"; then
        printf '%s\nfailed: %s: status %s, expected %s and "%s"\n' "$output" "$*" "$found" "$status" "$text"
        failures=$((failures + 1))
    fi
}

# The whole command of docs/libfabric.md; a key, as they are on one host, goes to both.
ranks() {
    local number=$1
    shift
    timeout 100 mpirun.openmpi --allow-run-as-root --oversubscribe -n "$number" \
        --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include longhaul \
        --mca oob_tcp_if_include lo --mca mpi_yield_when_idle 1 \
        -x FI_PROVIDER=longhaul -x FI_PROVIDER_PATH -x FI_LOG_LEVEL=warn "$@" "$program"
}

# Intel MPI has the ABI of MPICH, whose header describes it.
intel=$LH_BUILD_DIR/intelmpi-venv
intel_packages=impi-rt==2021.18.1
install_intel() {
    local log=$LH_BUILD_DIR/intelmpi-venv.log
    need python3 python3
    [ "$(uname -m)" = x86_64 ] || { echo "skipped: there is no Intel MPI for $(uname -m)" && exit 77; }
    pkg-config --exists mpich || {
        echo "skipped: no mpi.h of MPICH (install Debian's libmpich-dev)"
        exit 77
    }
    # shellcheck disable=SC2086  # several packages
    { python3 -m venv "$intel" && "$intel/bin/python" -m pip install --quiet --no-compile --timeout 15 \
        --retries 1 $intel_packages; } >"$log" 2>&1 && return
    if grep -qiE 'connection broken by|max retries exceeded|no module named|ensurepip' "$log"; then
        echo "skipped: pip cannot install $intel_packages ($(tail -n 1 "$log"))"
        exit 77
    fi
    cat "$log"
    exit 1
}

# intel_ranks PROVIDER NUMBER COMMAND...
intel_ranks() {
    local provider=$1 number=$2 path=
    shift 2
    [ "$provider" != longhaul ] || path=$FI_PROVIDER_PATH
    # shellcheck disable=SC2086  # a command and its argument
    timeout 1000 ${LH_OWN_NETWORK:-} env PATH="$intel/bin:$PATH" I_MPI_ROOT="$intel" \
        LD_LIBRARY_PATH="$intel/as-mpich:$intel/lib" \
        I_MPI_FABRICS=ofi I_MPI_HYDRA_IFACE=lo FI_TCP_IFACE=lo \
        FI_PROVIDER="$provider" I_MPI_OFI_PROVIDER="$provider" FI_PROVIDER_PATH="$path" \
        mpirun -n "$number" "$@"
}

# The failures of mpi4py's tests over a provider, sorted, without the parts of an operation's name.
mpi4py_failures() {
    (cd "$intel/mpi4py" && intel_ranks "$1" "$2" "$intel/bin/python" test/main.py -q --no-builddir \
        -e test_io -e test_file -e test_spawn -e test_dynproc) >"$LH_BUILD_DIR/mpi4py-$1.log" 2>&1
    grep -E '^Ran ' "$LH_BUILD_DIR/mpi4py-$1.log" | head -n 1
    grep -E '^(FAIL|ERROR): ' "$LH_BUILD_DIR/mpi4py-$1.log" | sort -u
}

pingpong() {
    local port=$1 server
    shift
    timeout 100 fi_pingpong -p longhaul -e rdm -B "$port" "$@" >/dev/null 2>&1 &
    server=$!
    # It needs time to listen: the client is refused until then.
    for _ in $(seq 50); do
        if timeout 100 fi_pingpong -p longhaul -e rdm -P "$port" "$@" 127.0.0.1; then break; fi
        kill -0 $server 2>/dev/null || break
        sleep 0.1
    done
    wait $server
}

case $1 in
pingpong)
    need fi_pingpong libfabric-bin
    expect 0 "provider: longhaul" fi_info -p longhaul
    expect 'not 0' "no match: endpoint type" env FI_LOG_LEVEL=info fi_info -p longhaul -t FI_EP_MSG
    expect 0 "provider: longhaul" env FI_PROVIDER=longhaul fi_info -c FI_TAGGED
    if fi_info 2>/dev/null | grep longhaul; then
        echo "failed: it answers without its name"
        failures=$((failures + 1))
    fi
    expect 0 "1m      10" pingpong 47592
    expect 0 "64      100" pingpong 47593 -c -I 100 -S 64
    expect 0 "6m      10" pingpong 47594 -S all
    ;;
openmpi)
    need mpirun.openmpi openmpi-bin
    [ -x "$program" ] || {
        echo "skipped: $program was not built (install Debian's libopenmpi-dev)"
        exit 77
    }
    for number in 1 2 4; do expect 0 "$number ranks: ok" ranks "$number"; done
    ;;
intelmpi)
    install_intel
    # shellcheck disable=SC2046  # options of the compiler
    cc -w $(pkg-config --cflags mpich) "$(dirname "$0")/mpi_messages.c" -o "$intel/mpi_messages" \
        "$intel/lib/libmpi.so.12" || exit 1
    export FI_LOG_LEVEL=info
    for number in 1 2 4; do
        expect 0 "$number ranks: ok" intel_ranks longhaul "$number" "$intel/mpi_messages"
    done
    expect 0 "Opened fabric: longhaul" intel_ranks longhaul 2 "$intel/mpi_messages"
    # A program for MPICH, and MPICH's shim: Intel's library takes the place of MPICH's. Not its random
    # orders: Intel MPI crashes, without a shim, where ranks give types of other layouts.
    mkdir -p "$intel/as-mpich" && ln -sf ../lib/libmpi.so.12 "$intel/as-mpich/libmpich.so.12"
    ranks=$LH_BUILD_DIR/tests/mpi_ranks_mpich
    export SITES=2 LONGHAUL_MPI_MIN_BYTES=0
    for word in sites large; do
        [ ! -x "$ranks" ] || expect 0 "4 ranks at 2 sites, collectives from 0B on" \
            intel_ranks tcp 4 env LD_PRELOAD="$LH_BUILD_DIR/liblonghaul-pmpi-mpich.so" "$ranks" $word
    done
    ;;
mpi4py)
    intel_packages="$intel_packages mpi4py==4.1.2"
    install_intel
    "$intel/bin/python" -m pip download --quiet --no-deps --no-binary :all: -d "$intel" mpi4py==4.1.2 ||
        exit 1
    mkdir -p "$intel/mpi4py" && tar xzf "$intel/mpi4py-4.1.2.tar.gz" -C "$intel/mpi4py" --strip-components 1
    for number in 2 4; do
        ours=$(mpi4py_failures longhaul $number)
        theirs=$(mpi4py_failures tcp $number)
        printf '%s ranks, longhaul: %s\n%s ranks, tcp: %s\n' "$number" "$ours" "$number" "$theirs"
        grep -q '^Ran [1-9]' <<<"$ours" || failures=1
        [ "$(grep -v '^Ran ' <<<"$ours")" = "$(grep -v '^Ran ' <<<"$theirs")" ] || failures=1
    done
    ;;
settings)
    need mpirun.openmpi openmpi-bin
    [ -x "$program" ] || exit 77
    key=$(mktemp -u)
    "${LONGHAUL:-$LH_BUILD_DIR/longhaul}" key new "$key" >/dev/null || failures=1
    expect 0 "2 ranks: ok" ranks 2 -x LONGHAUL_KEY_FILE="$key"
    rm -f "$key"
    expect 0 "2 ranks: ok" ranks 2 -x LONGHAUL_LINK=loss=1e-2
    expect 0 "2 ranks: ok" ranks 2 -x LONGHAUL_RELIABILITY=ec:mds,k=8,m=4
    expect 'not 0' 'LONGHAUL_RELIABILITY: "bounded:deadline=1ms"' \
        ranks 2 -x LONGHAUL_RELIABILITY=bounded:deadline=1ms
    export FI_LOG_LEVEL=warn
    expect 'not 0' 'LONGHAUL_SOCKET_IFNAME' env LONGHAUL_SOCKET_IFNAME='=' fi_info -p longhaul
    expect 'not 0' 'no interface that is up' env LONGHAUL_SOCKET_IFNAME=none0 fi_info -p longhaul
    ;;
*)
    echo "usage: $0 pingpong|openmpi|intelmpi|mpi4py|settings" >&2
    exit 2
    ;;
esac
[ $failures -eq 0 ] || exit 1
echo ok
