#!/bin/bash
# longhaul distribute FILE HOST... where nobody names sites: two machines, namespaces 200 ms apart, with two
# ranks each. Their distance tells the sites, however busy this machine is, and the file crosses the long path
# once.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

path=${LH_BUILD_DIR:-$(dirname "$LONGHAUL")}/bench/longhaul-path
name=lhd$$
"$path" --name $name --rate 200Mbit --delay 100ms --loss 1e-3 --json "$work/path.json" \
    >"$work/path.out" 2>"$work/path.err" &
emulator=$!
until grep -q ready "$work/path.out"; do
    kill -0 $emulator 2>/dev/null || { cat "$work/path.err"; exit 77; }
    sleep 0.05
done

cat >"$work/rsh" <<R
#!/bin/sh
side=left
[ "\$1" != 10.99.0.2 ] || side=right
exec ip netns exec $name-\$side sh -c "\$2"
R
chmod +x "$work/rsh"
mkdir "$work/1" "$work/2" "$work/3"
make_file "$work/some" 9000001

say "sites are found, and the file crosses once"
ip netns exec $name-left "$LONGHAUL" distribute "$work/some" --rsh "$work/rsh" -o "$work/%r" \
    --json "$work/json" 10.99.0.2 10.99.0.1 10.99.0.2 >"$work/out" ||
    fail "exit status $?: $(cat "$work/out")"
expect_line "$work/out" "to 3 ranks, sites 2, schedule hybrid"
expect_line "$work/json" '"sites": 2'
for rank in 1 2 3; do
    cmp "$work/some" "$work/$rank/some" || fail "rank $rank has another file"
done
kill -TERM $emulator
wait $emulator
bytes=$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["left_to_right"]["bytes"])' "$work/path.json") ||
    fail "$(cat "$work/path.json")"
[ "$bytes" -ge 9000001 ] && [ "$bytes" -le 13500000 ] || fail "$bytes bytes crossed the path"

echo "$checks checks"
