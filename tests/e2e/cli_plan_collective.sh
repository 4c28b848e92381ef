# longhaul plan --collective: the schedule for two sites, JSON, and what is refused.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
cd "$work" || exit 1

# wrong TEXT ARGUMENT...: one line on stderr has that text, and the status is 2.
wrong() {
    local text=$1 status=0
    shift
    timeout 60 "$LONGHAUL" plan "$@" >wrong.out 2>wrong.err || status=$?
    [ "$status" -eq 2 ] || fail "longhaul plan $* ended with $status, not 2"
    [ "$(wc -l <wrong.err)" -eq 1 ] || fail "longhaul plan $* said $(wc -l <wrong.err) lines"
    expect_line wrong.err "$text"
}

link=(--size 16MiB --rtt 25ms --bandwidth 2Gbit --loss 1e-3)

say "two sites of eight ranks"
sites=(--ranks 16 --sites 2 "${link[@]}")
timeout 60 "$LONGHAUL" plan --collective allreduce "${sites[@]}" >plan.out || fail "status $?"
expect_line plan.out "allreduce, 16MiB, 16 ranks in 2 sites: hierarchical, blocks of"

say "JSON: the best first, times in order"
timeout 60 "$LONGHAUL" plan --collective=broadcast "${sites[@]}" --json - >plan.json || fail "status $?"
python3 -c 'import json
j = json.load(open("plan.json"))
c = j["choices"]
assert (j["collective"], j["ranks"], j["sites"], j["size_bytes"]) == ("broadcast", 16, 2, 2**24)
assert len({one["schedule"] for one in c}) == len(c) > 2
assert all(one["mean_s"] >= one["ideal_s"] - 1e-9 and one["p99_s"] >= one["p50_s"] for one in c)
assert [one["mean_s"] for one in c] == sorted(one["mean_s"] for one in c)
assert c[0]["mean_s"] < 0.15 and c[0]["across"] and c[0]["block_bytes"] <= 2**18' || fail "the JSON"

say "a barrier has no size"
timeout 60 "$LONGHAUL" plan --collective barrier --ranks 4 --sites 2 --rtt 25ms --bandwidth 2Gbit >plan.out ||
    fail "status $?"
expect_line plan.out "barrier, 4 ranks in 2 sites: dissemination, "

say "a loss beyond the model"
timeout 60 "$LONGHAUL" plan --collective allreduce --size 1MiB --rtt 25ms --bandwidth 2Gbit --loss 0.9 \
    --json plan.json >plan.out || fail "status $?"
expect_line plan.out "times are too short"
expect_line plan.json "times are too short"

say "what is refused"
wrong 'collective "nosuch": not known (broadcast, ' --collective nosuch
wrong 'collective "sum": not known (broadcast, ' --collective sum "${link[@]}"
wrong '5 sites: out of range (1 to 4 ranks)' --collective allreduce --ranks 4 --sites 5 "${link[@]}"
wrong '"chain": not one of allreduce (ring, ' --collective allreduce --schedule chain "${link[@]}"
wrong 'missing --size' --collective allreduce --rtt 25ms --bandwidth 2Gbit
wrong 'missing --rtt' --collective allreduce --size 1MiB --bandwidth 2Gbit
wrong 'missing --bandwidth' --collective allreduce --size 1MiB --rtt 25ms
wrong '--by mode: unknown measure' --collective allreduce "${link[@]}" --by mode
wrong '--loss 1: invalid' --collective allreduce --size 1MiB --rtt 25ms --bandwidth 2Gbit --loss 1
wrong 'only with several sites' --collective allreduce "${link[@]}" --inside-rtt 10us
