#!/bin/bash
# Many seeds of each kind, always the same: docs/fault-world.md says what each kind has. .ci/run has fewer.
#   recorded.sh TEST_WORLD
#
# SPDX-License-Identifier: BSD-3-Clause
set -eu
run() {
    echo "$3"
    "$world" --first "$1" --seeds "$2"
}
world=$1
run 4611686018427387904 22000 "congestion controllers, and lies to them"
run 9223372036854775808 2500 "engines"
run 13835058055282163712 2500 "deadlines"
run 16140901064495857664 2000 "one-sided operations"
run 17293822569102704640 2000 "groups"
run 17870283321406128128 2000 "groups whose hops may lose a part"
run 1 5000 "from before these"
