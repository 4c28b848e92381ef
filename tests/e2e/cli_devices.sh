# longhaul devices: the loopback address is listed, JSON is JSON, and what is listed opens.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

say "a table"
"$LONGHAUL" devices >"$work/table.out" 2>"$work/table.err" || fail "longhaul devices ended with $?"
grep -q '^device .*interface .*MTU' "$work/table.out" || fail "no titles"
grep -q '^udp:127\.0\.0\.1 .*slot table *by longhaul' "$work/table.out" ||
    fail "the loopback address is missing"
grep -q '^verbs' "$work/table.out" || fail "not a word about verbs"

say "JSON; every device that is said to work is opened"
"$LONGHAUL" devices --json >"$work/json.out" || fail "longhaul devices --json ended with $?"
python3 - "$work/json.out" >"$work/names" <<'END' || fail "it is not what the manual says"
import json, sys
keys = ["device", "fabric", "interface", "address", "mtu_bytes", "rate_bps", "late_packets",
        "congestion", "features", "trouble"]
for device in json.load(open(sys.argv[1])):
    assert list(device) == keys, device
    assert device["fabric"], device
    if not device["trouble"]:
        assert device["device"].split(":")[0] == device["fabric"], device
        assert 256 <= device["mtu_bytes"] <= 8896 and device["mtu_bytes"] % 64 == 0, device
        assert device["congestion"] in ("by longhaul", "by the device", "none"), device
        print(device["device"])
END
while read -r name; do
    start opened recv --device "$name" --listen :0
    kill "$pid"
    wait "$pid" 2>/dev/null
done <"$work/names"
[ -s "$work/names" ] || fail "nothing can be used"

say "asked wrongly"
status=0
"$LONGHAUL" devices more >"$work/more.out" 2>"$work/more.err" || status=$?
[ "$status" -eq 2 ] || fail "an argument too many ended with $status"
echo "passed: $checks"
