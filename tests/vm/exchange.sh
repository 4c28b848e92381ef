# Files between machines, as the tests of fabrics send them: sourced on both sides.
#
#   push FILE HOST:PORT OPTION...   sends it, as soon as somebody listens there
#   take FOLDER PORT OPTION...      receives one file
#
# $LONGHAUL: the command, if it is not in the path. Both end the script when they fail, and
# tell what was said. Plain sh: a guest has busybox.
#
# SPDX-License-Identifier: BSD-3-Clause
ulimit -l unlimited 2>/dev/null || true
mkdir -p got

push() {
    push_tries=0
    while ! "${LONGHAUL:-longhaul}" send --insecure "$@" >push.log 2>&1; do
        push_tries=$((push_tries + 1))
        if ! grep -qE 'refused|served another client' push.log || [ $push_tries -gt 100 ]; then
            echo "push $* failed"
            cat push.log
            exit 1
        fi
        sleep 0.2
    done
    cat push.log
}

take() {
    take_folder=$1
    take_port=$2
    shift 2
    if ! "${LONGHAUL:-longhaul}" recv --insecure --force --output "$take_folder" --listen ":$take_port" "$@" \
        >take.log 2>&1; then
        echo "take $* failed"
        cat take.log
        exit 1
    fi
    tail -n 1 take.log
}
