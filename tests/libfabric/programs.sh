#!/bin/bash
# Programs that know nothing of Longhaul, over its provider for libfabric.
#   programs.sh pingpong     Debian's fi_info and fi_pingpong
#   programs.sh openmpi      mpi_messages.c under Open MPI, 1 to 4 ranks
#   programs.sh settings     a key, a link that loses packets, wrong settings
# LH_BUILD_DIR: the build folder.
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
    echo "usage: $0 pingpong|openmpi|settings" >&2
    exit 2
    ;;
esac
[ $failures -eq 0 ] || exit 1
echo ok
