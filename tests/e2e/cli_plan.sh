# longhaul plan: the paper's reference values, limits, sweeps, maps and pictures, and what is refused.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
cd "$work" || exit 1

# plan ARGUMENT...: must end with 0 and say nothing on stderr; leaves plan.out.
plan() {
    local status=0
    timeout 60 "$LONGHAUL" plan "$@" >plan.out 2>plan.err || status=$?
    [ "$status" -eq 0 ] || fail "longhaul plan $* ended with $status"
    [ ! -s plan.err ] || fail "longhaul plan $* complained"
}

# wrong TEXT ARGUMENT...: one line on stderr has that text, nothing is on stdout, and the status is 2.
wrong() {
    local text=$1 status=0
    shift
    timeout 20 "$LONGHAUL" plan "$@" >wrong.out 2>wrong.err || status=$?
    [ "$status" -eq 2 ] || fail "longhaul plan $* ended with $status, not 2"
    [ "$(wc -l <wrong.err)" -eq 1 ] || fail "longhaul plan $* said $(wc -l <wrong.err) lines"
    expect_line wrong.err "$text"
    [ ! -s wrong.out ] || fail "longhaul plan $* printed something on stdout"
}

# check TEXT: plan.out is JSON, called j, for which that Python holds.
check() {
    python3 -c 'import json, sys
j = json.load(open("plan.out"))
s = {row["scheme"]: row for row in j.get("schemes", [])}
near = lambda a, b: abs(a - b) <= 0.06e-3
assert '"$1"', json.dumps(j, indent=1)' 2>check.err || fail "it does not hold that $1"
}

link=(--bandwidth 400Gbit --rtt 25ms)
size=(--size 128MiB)
paper=("${link[@]}" "${size[@]}" --chunk 64KiB --loss-of chunk)

say "completion times of the paper's formulas: 400 Gbit/s, 25 ms, 128 MiB, losses of chunks"
while read -r loss rto nack mds xor; do
    plan "${paper[@]}" --loss "$loss" --json -
    check "near(s['sr-rto']['mean_s'], ${rto}e-3) and near(s['sr-nack']['mean_s'], ${nack}e-3)"
    check "near(s['ec:mds,k=32,m=8']['mean_s'], ${mds}e-3)"
    check "near(s['ec:xor,k=32,m=8']['mean_s'], ${xor}e-3)"
done <<'END'
1e-4 41.3 32.1 28.4 28.4
1e-3 92.4 48.7 28.4 28.6
1e-2 116.4 57.0 28.4 54.4
END

say "each scheme has what was promised, and times are in order"
check "list(s)[:6] == ['sr-rto', 'sr-nack', 'gbn', 'ec:mds,k=32,m=8', 'ec:xor,k=32,m=8', 'hybrid']"
check "all(r['ideal_s'] <= r['p50_s'] <= r['p99_s'] <= r['p999_s'] for r in s.values())"
check "all(r['overhead_bytes'] >= 0 and 0 <= r['p_fallback'] <= 1 for r in s.values())"
check "s['sr-rto']['p_fallback'] == 0 and s['ec:mds,k=32,m=8']['overhead_bytes'] >= 2**25"
check "j['plan']['best']['scheme'] in s and j['plan']['runner_up']['times_ideal'] >= 1"
check "j['plan']['verdict'].startswith('Use ' + j['plan']['best']['scheme'])"
check "j['link']['rtt_s'] == 0.025 and j['messages'] == [{'bytes': 2**27, 'weight': 1}]"

say "what comes next is in the table, and nothing but the best is faster there"
for loss in 1e-6 1e-5 1e-4 1e-3 1e-2; do
    for bytes in 1MiB 128MiB 8GiB; do
        plan "${link[@]}" --size $bytes --loss $loss --json -
        check "j['plan']['runner_up']['scheme'] in s"
        check "all(r['times_ideal'] > 0.9994 * j['plan']['runner_up']['times_ideal'] for n, r in s.items() \
            if n != j['plan']['best']['scheme'])"
    done
done

say "the table and the verdict"
plan "${link[@]}" "${size[@]}" --loss 1e-5
for word in sr-rto sr-nack gbn 'ec:mds,k=32,m=8' 'ec:xor,k=32,m=8' hybrid p99.9 '× ideal' overhead fallback \
    cores 'Use ec:' 'Why: ' 'Next: hybrid' '400Gbit/s' 'round trip 25ms'; do
    expect_line plan.out "$word"
done
[ "$(wc -L <plan.out)" -le 110 ] || fail "lines of $(wc -L <plan.out) columns"
! grep -q $'\033' plan.out || fail "colours in a file"
! grep -q 'Note: ' plan.out || fail "a note where nothing is left out"
plan "${link[@]}" "${size[@]}" --loss 0.5
expect_line plan.out 'too short'
plan "${link[@]}" "${size[@]}" --loss 1e-5,0.5
expect_line plan.out 'Note: in some rows'
plan "${link[@]}" "${size[@]}" --loss 0.5 --json -
check "'too short' in j['plan']['note']"
plan "${link[@]}" "${size[@]}" --loss 0.98
! grep -q 'e+02' plan.out || fail "a percentage with an exponent"
plan "${link[@]}" "${size[@]}" --loss 0
expect_line plan.out 'Use sr-nack'
expect_line plan.out 'without loss, parity gains nothing'

say "hybrid is chosen along the ridge between repeats and codes"
plan "${link[@]}" "${size[@]}" --loss 1e-3
expect_line plan.out 'Use hybrid'
expect_line plan.out 'longhaul recv --reliability hybrid --chunk'
grep -qE '→ +hybrid .* [0-9.]+e-[0-9]+ +[0-9.]+$' plan.out || fail "no fallback and cores of hybrid"
plan "${link[@]}" --size 8GiB --loss 1e-2
expect_line plan.out 'while later data is injected'

say "limits are kept, and what they cost is said"
plan "${link[@]}" "${size[@]}" --loss 1e-4 --max-overhead 1%
expect_line plan.out 'Use ec:'
plan "${link[@]}" "${size[@]}" --loss 1e-4 --max-overhead 1% --json -
check "j['plan']['best']['overhead'] < 0.0105"
plan "${link[@]}" "${size[@]}" --loss 1e-3 --cores 0
expect_line plan.out 'Use sr-nack'
expect_line plan.out 'Without the limit of cores, hybrid'
plan "${link[@]}" "${size[@]}" --loss 1e-3 --cores 0 --json -
check "j['plan']['best']['encode_cores'] == 0 < j['plan']['without_limits']['encode_cores']"
plan "${link[@]}" "${size[@]}" --loss 1e-3 --cores 1 --encode-rate 100GB --json -
check "0 < j['plan']['best']['encode_cores'] <= 1"
plan "${link[@]}" "${size[@]}" --loss 30% --max-overhead 0
expect_line plan.out 'No choice is within the limit of overhead'
plan "${link[@]}" "${size[@]}" --loss 30% --max-overhead 0 --json -
check "j['plan']['best'] is None and j['plan']['runner_up'] is None"

say "schemes of one's own, a measure, a distance, bursts, a mix"
plan "${link[@]}" "${size[@]}" --loss 1e-3 --reliability sr-rto,alpha=1 \
    --reliability ec:mds,k=64,m=8,fallback=sr --json -
check "list(s)[:2] == ['sr-rto,alpha=1', 'ec:mds,k=64,m=8,fallback=sr'] and len(s) <= 3"
plan "${link[@]}" "${size[@]}" --loss 1e-3 --by p99.9 --json -
check "j['by'] == 'p99.9' and s[j['plan']['best']['scheme']]['p999_s'] == j['plan']['best']['seconds']"
plan --bandwidth 400Gbit --distance 2500km "${size[@]}" --loss 1e-3 --json -
check "j['link']['rtt_s'] == 0.025"
plan --bandwidth 400Gbit --distance 3750km "${size[@]}" --loss 1e-3
expect_line plan.out 'round trip 37.5ms'
plan "${link[@]}" "${size[@]}" --loss 1e-3 --burst 8 --json -
check "j['link']['burst_packets'] == 8"
plan "${link[@]}" --mix 64KiB:9,1GiB:1 --loss 1e-3 --json -
check "[m['weight'] for m in j['messages']] == [9, 1]"
plan "${link[@]}" --mix 64KiB:9,1GiB:1 --loss 1e-3
expect_line plan.out 'weighted mean'

say "a link out of a file, which options overrule"
echo '{"host": "a", "bandwidth_bps": 4e11, "rtt_s": 0.025, "loss": 1e-3, "burst_packets": 4}' >link.json
plan --link-file link.json "${size[@]}" --json -
check "[j['link'][k] for k in ('bandwidth_bps', 'rtt_s', 'loss', 'burst_packets')] == [4e11, 0.025, 1e-3, 4]"
plan --link-file link.json --bandwidth 1Gbit --distance 100km --loss 1e-4 --burst 2 "${size[@]}" --json -
check "[j['link'][k] for k in ('bandwidth_bps', 'rtt_s', 'loss', 'burst_packets')] == [1e9, 1e-3, 1e-4, 2]"
echo '{"bandwidth_bps": 4e11, "rtt_s": 0.025, "loss": 1e-3, "mtu_bytes": 1024}' >link.json
plan --link-file link.json "${size[@]}"
expect_line plan.out 'packets of 1024 bytes'
plan --link-file link.json "${size[@]}" --json -
check "j['link']['mtu_bytes'] == 1024 and j['plan']['best']['chunk_bytes'] % 1024 == 0"
plan --link-file link.json "${size[@]}" --mtu 2048 --json -
check "j['link']['mtu_bytes'] == 2048"
echo '{"loss": 1e-4, "loss_high": 1e-3}' >link.json
plan --link-file link.json "${link[@]}" "${size[@]}"
expect_line plan.out '0.001 of the packets, the upper bound; measured 0.0001'
expect_line plan.out 'At a loss of 0.0001 as measured'
plan --link-file link.json "${link[@]}" "${size[@]}" --loss 1e-4 --json -
check "j['link']['loss'] == 1e-4 and j['link']['loss_low'] is None and j['plan']['at_loss_low'] is None"
for text in '' '[]' '{"loss": 2}' '{"rtt_s": "fast"}' '{"loss": 0.1, "loss": 0.1}' '{"loss": nan}'; do
    printf '%s' "$text" >bad.json
    wrong 'bad.json: ' --link-file bad.json "${link[@]}" "${size[@]}"
done
echo '{"rtt_s": 0.025}' >bad.json
wrong '--bandwidth' --link-file bad.json "${size[@]}" --loss 1e-3
wrong 'missing --loss' --link-file bad.json "${size[@]}" --bandwidth 1Gbit
rm bad.json

say "one plan for the highest of several losses"
plan "${link[@]}" "${size[@]}" --loss 1e-3 --json -
mv plan.out high.json
plan "${link[@]}" "${size[@]}" --loss 1e-4,1e-3,1e-5 --worst
expect_line plan.out '0.001 of the packets, the highest of 1e-05 to 0.001'
expect_line plan.out 'Planned for a loss of 0.001, the highest given. At a loss of 1e-05'
expect_line plan.out 'A plan for 1e-05 alone would use'
plan "${link[@]}" "${size[@]}" --loss 1e-4,1e-3,1e-5 --worst --json -
check "j['link']['loss'] == 1e-3 and j['link']['loss_low'] == 1e-5"
check "j['plan']['best'] == json.load(open('high.json'))['plan']['best']"
check "j['plan']['at_loss_low']['seconds'] < j['plan']['best']['seconds']"
check "j['plan']['for_loss_low']['scheme'] != j['plan']['best']['scheme']"
check "j['plan']['at_loss_low']['scheme'] == j['plan']['best']['scheme']"
plan "${link[@]}" --size 1MiB,4MiB --loss 1e-5..1e-3 --worst
expect_line plan.out 'Planned for the highest loss.'
plan "${link[@]}" "${size[@]}" --loss 1e-3 --worst
! grep -q Planned plan.out || fail "one loss has no highest"
wrong '--worst, --map: mutually exclusive' "${link[@]}" --map --worst
rm high.json link.json

say "messages that may be incomplete: bounded completion that keeps to it"
plan "${link[@]}" "${size[@]}" --loss 1e-4 --allow-loss 1e-3
expect_line plan.out 'bounded *'
expect_line plan.out 'bounded:deadline='
expect_line plan.out 'Use hybrid'
plan "${link[@]}" "${size[@]}" --loss 1e-4 --allow-loss 1e-3 --by p99.9 --cores 0 --json -
check "j['deadline']['missing'] < j['deadline']['missing_p999'] <= 1e-3 and j['deadline']['available'] == 1"
check "0 < j['deadline']['whole'] < 1 and not any('deadline' in name for name in s)"
check "j['deadline']['scheme'] == 'bounded:deadline=%.0fus' % (j['deadline']['deadline_s'] * 1e6)"
plan "${link[@]}" "${size[@]}" --loss 1e-4 --allow-loss 1e-6 --json -
check "j['deadline']['missing'] <= 1e-6 and ',code=' in j['deadline']['scheme']"
check "j['deadline']['delivered_share'] == 1 - j['deadline']['missing']"
check "j['deadline']['seconds'] < s['sr-nack']['longhaul_mean_s']"
plan "${link[@]}" "${size[@]}" --loss 1e-2 --allow-loss 1e-6 --cores 0 --json -
check "j['deadline']['available'] == 0 and 'scheme' not in j['deadline']"
for share in 0 1 -1 nan 2 x; do
    wrong '--allow-loss' "${link[@]}" "${size[@]}" --loss 1e-4 --allow-loss "$share"
done
wrong '--allow-loss, --map: mutually exclusive' "${link[@]}" --map --allow-loss 1e-3

say "several losses and sizes"
plan "${link[@]}" --size 1MiB..4MiB --loss 0,1e-6..1e-4 --json all.json
[ "$(grep -c MiB plan.out)" -eq 12 ] || fail "not 12 rows"
only . plan.out plan.err check.err wrong.out wrong.err all.json
cp all.json plan.out
check "len(j['points']) == 12 and all('schemes' in p and 'plan' in p for p in j['points'])"
check "[p['link']['loss'] for p in j['points'][::3]] == [0, 1e-6, 1e-5, 1e-4]"

say "the map, and its picture"
plan "${link[@]}" --map
[ "$(grep -cE '^ +(8|1|128|32|8|2|512|128)[GMK]iB ' plan.out)" -eq 16 ] || fail "not two maps"
expect_line plan.out 'Speed-up of ec:mds,k=32,m=8 over sr-rto'
plan "${link[@]}" --map --size 1MiB,1GiB --loss 1e-4,1e-2 --output it.svg
plan "${link[@]}" --map --size 1MiB,1GiB --loss 1e-4,1e-2 --output "$work/that's.png"
[ -s it.gp ] || fail "no script"
expect_line it.svg '<svg'
! grep -q '<image' it.svg || fail "cells that run into each other"
[ "$(head -c 4 "that's.png" | tail -c 3)" = PNG ] || fail "no PNG"

say "the figures of the paper"
plan --figures figures
for name in 3a 3b 3c 9 10a 10b 10c 10d 12 13-left 13-right 15; do
    [ -s figures/figure$name.gp ] || fail "no script of figure $name"
    [ $name = 9 ] || [ -s figures/figure$name.dat ] || fail "no data of figure $name"
    [ -s figures/figure$name.svg ] || fail "no picture of figure $name"
    expect_line plan.out "figures/figure$name.svg"
done
# value FIGURE X COLUMN FROM TO: what is in the column, at X.
value() {
    awk -v x="$2" -v column="$3" -v from="$4" -v to="$5" '$1 == x {found = $column >= from && $column <= to}
        END {exit !found}' "figures/figure$1.dat" || fail "figure $1 at $2 is not within $4 and $5"
}
value 10b 0.01 2 6 7
value 10b 0.01 4 1 1.05
value 13-left 0.01 3 6 9
value 15 16 2 1.5998e-4 1.5999e-4

say "nonsense is refused"
wrong '--figures here: excludes other options' --figures here --loss 1e-3
wrong 'missing --bandwidth' --rtt 25ms --loss 1e-3 --size 1MiB
wrong 'missing --rtt TIME or --distance' --bandwidth 1Gbit --loss 1e-3 --size 1MiB
wrong 'missing --loss' "${link[@]}" --size 1MiB
wrong 'missing --size' "${link[@]}" --loss 1e-3
wrong '--loss -1: ' "${link[@]}" --size 1MiB --loss -1
wrong '--loss nan: ' "${link[@]}" --size 1MiB --loss nan
wrong '--loss 1: ' "${link[@]}" --size 1MiB --loss 1
wrong '--loss 100%: ' "${link[@]}" --size 1MiB --loss 100%
wrong '--loss 1.5: ' "${link[@]}" --size 1MiB --loss 1.5
wrong '--loss 1e-2..1e-3: ' "${link[@]}" --size 1MiB --loss 1e-2..1e-3
wrong '--size 0: ' "${link[@]}" --size 0 --loss 1e-3
wrong '--size -5: ' "${link[@]}" --size -5 --loss 1e-3
wrong '--size 9223372036854775808: out of range' "${link[@]}" --size 9223372036854775808 --loss 1e-3
wrong 'out of range' "${link[@]}" --size 99999999999999999999999 --loss 1e-3
wrong 'raise the MTU' "${link[@]}" --size 4194304TiB --loss 1e-3
wrong '--bandwidth 0: ' --bandwidth 0 --rtt 25ms --size 1MiB --loss 1e-3
wrong '--bandwidth -1Gbit: ' --bandwidth -1Gbit --rtt 25ms --size 1MiB --loss 1e-3
wrong '--bandwidth nanGbit: ' --bandwidth nanGbit --rtt 25ms --size 1MiB --loss 1e-3
wrong '--rtt 0: ' --bandwidth 1Gbit --rtt 0 --size 1MiB --loss 1e-3
wrong '--rtt -1ms: ' --bandwidth 1Gbit --rtt -1ms --size 1MiB --loss 1e-3
wrong 'mutually exclusive' "${link[@]}" --distance 1km --size 1MiB --loss 1e-3
for distance in 0km -1km nankm 100 1e99km 0x10km km 5kms; do
    wrong "--distance $distance: " --bandwidth 1Gbit --distance $distance --size 1MiB --loss 1e-3
done
wrong '--by maybe: ' "${link[@]}" "${size[@]}" --loss 1e-3 --by maybe
wrong '--loss-of bytes: ' "${link[@]}" "${size[@]}" --loss 1e-3 --loss-of bytes
wrong 'give the size of a chunk' "${link[@]}" "${size[@]}" --loss 1e-3 --loss-of chunk
wrong '5000' "${link[@]}" "${size[@]}" --loss 1e-3 --chunk 5000
wrong '--mtu 3000: ' "${link[@]}" "${size[@]}" --loss 1e-3 --mtu 3000
wrong '--burst -2: ' "${link[@]}" "${size[@]}" --loss 1e-3 --burst -2
wrong '--burst 0.5: ' "${link[@]}" "${size[@]}" --loss 1e-3 --burst 0.5
wrong 'needs longer bursts' "${link[@]}" "${size[@]}" --loss 90% --burst 2
wrong '--max-overhead 150%: out of range (0 to 1)' "${link[@]}" "${size[@]}" --loss 1e-3 --max-overhead 150%
wrong '--cores -1: ' "${link[@]}" "${size[@]}" --loss 1e-3 --cores -1
wrong '--encode-rate 0: ' "${link[@]}" "${size[@]}" --loss 1e-3 --encode-rate 0
wrong '--by, --max-overhead' "${link[@]}" "${size[@]}" --loss 1e-3 --reliability auto,by=p99
wrong 'sr-rto' "${link[@]}" "${size[@]}" --loss 1e-3 --reliability sr-rto,

say "every scheme that recv takes is compared; auto is what the planner chooses"
# taken SCHEME: recv goes on to the next value, which is wrong on purpose.
taken() {
    "$LONGHAUL" recv --reliability "$1" --window 1 2>&1 | grep -q -- '--window'
}
taken sr-nack && ! taken magic && ! taken sr-rto, || fail "recv takes other schemes"
names=$("$LONGHAUL" recv --reliability none 2>&1 | sed 's/.*use one of//; s/)$//')
[ "$(wc -w <<<"$names")" -ge 5 ] || fail "recv has: $names"
for scheme in $names sr-rto,alpha=0.25 sr-rto,alpha=100 ec:mds,k=1,m=254 ec:mds,k=254,m=1 ec:xor,k=127,m=127 \
    ec:mds,beta=0 ec:mds,beta=100 ec:mds,fallback=sr ec:xor,spread=65535,fallback=ir; do
    taken "$scheme" || fail "recv does not take $scheme"
    plan "${link[@]}" "${size[@]}" --loss 1e-3 --reliability "$scheme"
done
offered=$("$LONGHAUL" plan --help | tr -s ' \n' ' ' | grep -oP '(?<=to compare: ).*?(?=, or auto)' | tr -d ,)
known=$("$LONGHAUL" plan "${link[@]}" "${size[@]}" --loss 1e-3 --reliability none 2>&1 |
    sed 's/.*use one of //; s/[,)]//g')
[ "$offered" = "$known" ] || fail "plan --help offers $offered, and plan takes $known"
for scheme in $names; do
    [[ " $known auto " == *" $scheme "* ]] || fail "plan does not know $scheme"
done
plan "${link[@]}" "${size[@]}" --loss 1e-3 --reliability auto --json -
check "len(s) == 1 and list(s)[0] == j['plan']['best']['scheme']"
plan "${link[@]}" "${size[@]}" --loss 30% --max-overhead 0 --reliability auto --json -
check "len(s) == 1 and list(s)[0] == j['plan']['without_limits']['scheme']"
wrong '1B to 4194304TiB' "${link[@]}" --loss 1e-3 --size 8388608TiB
wrong '100 % of the chunks' "${link[@]}" "${size[@]}" --loss 1e-3 --chunk 1GiB
wrong 'not with --map' "${link[@]}" --map --json map.json
wrong 'magic' "${link[@]}" "${size[@]}" --loss 1e-3 --reliability magic
wrong 'k=300' "${link[@]}" "${size[@]}" --loss 1e-3 --reliability ec:mds,k=300
wrong 'exceeds the model' "${link[@]}" "${size[@]}" --loss 99.5%
wrong 'missing weight' "${link[@]}" --loss 1e-3 --mix 64KiB
wrong 'weight 0: out of range' "${link[@]}" --loss 1e-3 --mix 64KiB:0
wrong 'weight nan: ' "${link[@]}" --loss 1e-3 --mix 64KiB:nan
wrong 'not with --size or --map' "${link[@]}" --loss 1e-3 --mix 64KiB:1 --map
wrong 'add --map' "${link[@]}" "${size[@]}" --loss 1e-3 --output it.svg
wrong '.svg or .png' "${link[@]}" --map --output it.gif
wrong 'exceeds the model' "${link[@]}" "${size[@]}" --loss 1e-3,99.5% --json -
echo "all well"
