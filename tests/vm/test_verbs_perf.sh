# longhaul perf over verbs beside perftest's UC write test in one guest, by turns, three times: both run, and
# the ratio is printed. It decides nothing.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_vm.sh"

"${LH_BUILD_DIR:-build}/longhaul" devices | grep -q 'verbs is not built in' && skip "verbs is not built in"

say "messages of 1 MiB, packets of 1024 bytes"
# shellcheck disable=SC2016  # for the guest's shell
vm --seconds 150 --cpus 2 --guest '
    ulimit -l unlimited
    for i in 1 2 3; do
        longhaul perf --server --once --device verbs:rxe0 >/dev/null &
        sleep 1
        longhaul perf $VM_SELF4 --device verbs:rxe0 --mtu 1024 --size 1MiB --in-flight 4 --iterations 60 \
            --json perf.json >/dev/null || exit 1
        wait
        echo "longhaul $(sed -n "s/.*\"goodput_bps\": *\([0-9.e+]*\).*/\1/p" perf.json)"
        for bytes in 1048576 1024; do
            iterations=$((62914560 / bytes / (bytes == 1024 ? 6 : 1)))
            options="-F -c UC -d rxe0 -x 1 -m 1024 -s $bytes -n $iterations"
            ib_write_bw $options >/dev/null 2>&1 &
            sleep 1
            ib_write_bw $options $VM_SELF4 >bw 2>&1 || { cat bw; exit 1; }
            wait
            sed -n "s/^ *$bytes  *[0-9]*  *[0-9.]*  *\([0-9.]*\) .*/perftest-$bytes \1/p" bw
        done
    done'
[ "$status" -eq 0 ] || fail "status $status"
python3 - "$work/out" <<'END' || fail "a number is missing"
import statistics, sys
found = {}
for line in open(sys.argv[1]):
    words = line.replace("a| ", "").split()
    if len(words) == 2 and words[0].startswith(("longhaul", "perftest-")):
        unit = 1 if words[0] == "longhaul" else 8 * 2**20
        found.setdefault(words[0], []).append(float(words[1]) * unit / 1e6)
assert sorted(map(len, found.values())) == [3, 3, 3], found
longhaul = statistics.median(found["longhaul"])
assert longhaul > 0, found
print(f"longhaul                  {longhaul:6.0f} Mbit/s, the median of three")
for bytes, what in ("1048576", "1 MiB writes"), ("1024", "writes of one packet"):
    others = [rate for rate in found["perftest-" + bytes] if rate > 0]  # now and then it prints 0.00
    if not others:
        print(f"perftest, {what:20} no figure: perftest printed 0.00")
        continue
    other = statistics.median(others)
    print(f"perftest, {what:20} {other:6.0f} Mbit/s, the median of {len(others)}: "
          f"longhaul has {longhaul / other:.2f} of it")
END
echo passed
