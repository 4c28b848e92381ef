# What the tests in virtual machines share: sourced by each.
#
# vm ARGUMENTS...   runs vm.py (by way of $unprivileged, if that is set); its output goes to $work/out, its
#                   exit status to $status. Where there can be no machine the test is skipped, and says why.
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() {
    echo "--- $*"
}

fail() {
    echo "FAILED: $*"
    exit 1
}

vm() {
    # shellcheck disable=SC2086  # a command of several words, or none
    ${unprivileged-} python3 "$here/vm.py" "$@" >"$work/out" 2>&1
    status=$?
    cat "$work/out"
    [ "$status" -ne 77 ] || ! grep -q '^skipped: ' "$work/out" || exit 77
}

skip() {
    echo "skipped: $*"
    exit 77
}

# The output has a line that this basic regular expression matches.
expect_line() {
    grep -q -e "$1" "$work/out" || fail "no line of the output matches: $1"
}
