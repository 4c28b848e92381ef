# longhaul plan --nic: the table, JSON, another budget, and what is refused.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
cd "$work" || exit 1

# check TEXT: plan.out is JSON, called j, with designs d, for which that Python holds.
check() {
    python3 -c 'import json
j = json.load(open("plan.out"))
d = {design["design"]: design for design in j["designs"]}
assert '"$1"', json.dumps(j, indent=1)' 2>check.err || fail "it does not hold that $1"
}

say "the papers' budget: each number beside the printed one"
"$LONGHAUL" plan --nic --json - >plan.out || fail "plan --nic failed"
check "d['OptiNIC']['queue_pairs']['value'] == 80659 and d['OptiNIC']['queue_pairs']['printed'] == 80000"
check "d['IRN']['queue_pairs']['value'] == 7037 and -0.13 < d['IRN']['queue_pairs']['off'] < -0.12"
check "all(abs(x['mtbf_hours']['off']) < 0.02 and x['bram_source'] for x in d.values()) and len(d) == 6"

say "another budget has nothing printed to compare with"
"$LONGHAUL" plan --nic --sram 1MiB --json plan.out >table.out || fail "plan --nic --sram failed"
check "d['OptiNIC']['queue_pairs']['value'] == 20164 and d['OptiNIC']['queue_pairs']['off'] is None"
grep -Eq "OptiNIC +52 B +20164 +80000 +-" table.out || fail "no OptiNIC in the table: $(cat table.out)"

say "what is refused"
for wrong in "--sram 0" "--sram many" "--size 1MiB"; do
    # shellcheck disable=SC2086
    "$LONGHAUL" plan --nic $wrong >wrong.out 2>wrong.err
    [ $? -eq 2 ] || fail "plan --nic $wrong did not end with 2"
    [ "$(wc -l <wrong.err)" -eq 1 ] || fail "plan --nic $wrong: not one line"
done
