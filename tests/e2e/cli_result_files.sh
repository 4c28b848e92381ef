# Files that a command writes: what is not its own stays as it is; what it replaces keeps mode and links.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
cd "$work" || exit 1

link=(--bandwidth 400Gbit --rtt 25ms)
plan() {
    "$LONGHAUL" plan "${link[@]}" --loss 1e-5 --size 1MiB "$@" >run.out 2>run.err
}
sim() {
    "$LONGHAUL" sim lone-flow --no-sweep --set workload.bytes=64KiB "$@" >run.out 2>run.err
}
# Any command.
run() {
    "$LONGHAUL" "$@" >run.out 2>run.err
}
# refused STATUS TEXT COMMAND...
refused() {
    local wanted=$1 text=$2 status=0
    shift 2
    "$@" || status=$?
    [ "$status" -eq "$wanted" ] || fail "$* ended with $status, not $wanted"
    expect_line run.err "$text"
}
precious() {
    [ "$(cat "$1")" = precious ] || fail "$1 was replaced"
}
is_json() {
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$1" || fail "$1 is no JSON"
}

say "--json replaces the file, which keeps its mode, and no other"
echo precious >r.json.part
echo old >r.json
chmod 600 r.json
plan --json r.json || fail "plan --json failed"
is_json r.json
[ "$(stat -c %a r.json)" = 600 ] || fail "r.json has mode $(stat -c %a r.json)"
precious r.json.part
rm r.json.part r.json
(umask 027 && plan --json new.json) || fail "plan --json failed"
[ "$(stat -c %a new.json)" = 640 ] || fail "new.json has mode $(stat -c %a new.json)"
[ -z "$(compgen -G '*.part')" ] || fail "left over: $(compgen -G '*.part')"

say "links are followed, those that lead nowhere yet, too; a hard link stays one"
mkdir there
echo old >there/r.json
ln -s there/r.json soft.json
ln -s there/later.json later.json
ln there/r.json hard.json
plan --json soft.json && is_json there/r.json && [ -L soft.json ] || fail "a link was not followed"
[ hard.json -ef there/r.json ] || fail "the hard link was replaced"
plan --json later.json && is_json there/later.json && [ -L later.json ] || fail "a link was not followed"
nothing_left=$(find . -name '*.part')
[ -z "$nothing_left" ] || fail "left over: $nothing_left"

say "a link where the part would be written is not followed"
# The shell that becomes the command has its number.
echo precious >target
# shellcheck disable=SC2016
bash -c 'ln -s target "p.json.$$.part" && exec "$0" plan "${@}" >run.out 2>run.err' \
    "$LONGHAUL" "${link[@]}" --loss 1e-5 --size 1MiB --json p.json || fail "plan --json failed"
precious target
is_json p.json
[ -L "$(compgen -G 'p.json.*.part')" ] || fail "the link was replaced"
rm p.json.*.part

say "names up to the longest"
long=$(printf 'x%.0s' {1..250}).json
plan --json "$long" || fail "plan --json failed with a name of 255 bytes"
is_json "$long"
rm "$long"

say "the input is no output"
cp "$LH_SOURCE_DIR/netsim/scenarios/lone-flow.ini" own.ini
refused 2 '--json ./own.ini: is the input own.ini (name another file)' \
    run sim own.ini --json ./own.ini
echo '{"rtt_s": 0.025, "bandwidth_bps": 1e9, "loss": 1e-4}' >link.json
refused 2 '--json link.json: is the input link.json (name another file)' \
    run plan --link-file link.json --size 1MiB --json link.json
cmp -s own.ini "$LH_SOURCE_DIR/netsim/scenarios/lone-flow.ini" || fail "the scenario was replaced"

say "a folder that does not exist is named"
refused 1 '--json missing/deep/r.json: No such file or directory (create the folder missing/deep first)' \
    plan --json missing/deep/r.json
refused 1 '--json missing/r.json: No such file or directory (create the folder missing first)' \
    sim --json missing/r.json

say "sim replaces and removes files in its own folders only"
for name in summary.json queues.csv seed-2/flows.csv bytes=1MiB/links.csv bytes=1MiB/seed-3/capture.pcap; do
    mkdir -p "own/$(dirname "$name")"
    echo precious >"own/$name"
    refused 2 "contains $(basename "$name") (use another folder, or remove the file)" sim --output own
    precious "own/$name"
    [ "$(find own -type f)" = "own/$name" ] || fail "something was written: $(find own -type f)"
    rm -r own
done
mkdir own
echo precious >own/notes.txt
sim --output own || fail "sim failed in a folder with a file of another name"
sim --output own || fail "sim failed in the folder that it wrote to"
[ -s own/summary.json ] || fail "no summary.json"
precious own/notes.txt
echo precious >elsewhere
ln -sf ../elsewhere own/queues.csv
sim --output own || fail "sim failed"
precious elsewhere
[ -L own/queues.csv ] || fail "a link was removed"

say "plan --figures, likewise"
mkdir figures
echo precious >figures/figure9.gp
refused 2 '--figures figures: not a folder of results, but contains figure9.gp' \
    run plan --figures figures
precious figures/figure9.gp
refused 1 '--figures elsewhere: Not a directory' run plan --figures elsewhere

say "plan --map replaces scripts of its own, and the picture that it was given"
echo precious >map.gp
refused 2 '--output map.svg: its script map.gp would replace a file that is not longhaul'\''s (use' \
    plan --map --output map.svg
precious map.gp
[ ! -e map.svg ] || fail "a picture was made"
rm map.gp
mkdir bin
printf '#!/bin/sh\nexit 127\n' >bin/gnuplot
chmod +x bin/gnuplot
echo precious >map.svg
PATH="$PWD/bin:$PATH" refused 1 'gnuplot not found' plan --map --output map.svg
precious map.svg
[ -s map.gp ] || fail "no script"
PATH="$PWD/bin:$PATH" refused 1 'gnuplot not found' plan --map --output map.svg # over its own script

echo "all well"
