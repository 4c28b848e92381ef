#!/bin/bash
# Installs into a folder of its own, and looks at what is there beside the library: a page for each public
# function, the licence, the examples, the scenarios and their programs. Needs LH_BUILD_DIR, CC and CMAKE in
# the environment, as ctest gives them.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
cd "$(dirname "$0")/../.."
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
"$CMAKE" --install "$LH_BUILD_DIR" --prefix "$stage/usr" >"$stage/install.log" || {
    cat "$stage/install.log"
    exit 1
}
failed=0
fail() {
    echo "$*"
    failed=1
}

# ---- man NAME, for each name that the library exports ----------------------------------------------------
man=$stage/usr/share/man
symbols=
for library in liblonghaul liblonghaul-sim; do
    symbols+=" $(nm -D -P --defined-only "$(find "$stage" -name $library.so)" |
        awk '$2 ~ /[TDBRVWi]/ && $1 !~ /^LONGHAUL_/ { sub(/@.*/, "", $1); print $1 }')"
done
[ "$(wc -w <<<"$symbols")" -gt 100 ] || fail "the library exports only $(wc -w <<<"$symbols") names"
for symbol in $symbols; do
    page=$man/man3/$symbol.3
    if [ ! -e "$page" ]; then
        fail "$symbol: there is no page $symbol.3"
        continue
    fi
    read -r request target <"$page"
    [ "$request" != .so ] || page=$man/$target
    [ -e "$page" ] || { fail "$symbol.3 refers to $target, which is not there"; continue; }
    sed -n '/^\.SH NAME/,/^\.SH SYN/p' "$page" | grep -wF "$symbol" >/dev/null ||
        fail "$symbol: $(basename "$page") is about something else"
done

# ---- the licence, and programs to start from, which build with nothing but what is installed ---------------
doc=$stage/usr/share/doc/longhaul
cmp LICENSE "$doc/LICENSE" || fail "another licence"
pkgconfig=$(dirname "$(find "$stage" -name longhaul.pc)")
for source in "$doc"/examples/*.c; do
    [ -e "$source" ] || { fail "no examples"; continue; }
    if grep -q '#include <mpi.h>' "$source"; then continue; fi # the build has compiled those
    # shellcheck disable=SC2046  # flags are words
    "$CC" -D_GNU_SOURCE "$source" -o "$stage/example" \
        $(PKG_CONFIG_PATH=$pkgconfig pkg-config --cflags --libs longhaul longhaul-sim) -pthread -lm \
        >"$stage/example.log" 2>&1 || fail "$(basename "$source"): $(head -5 "$stage/example.log")"
done

# ---- scenarios, of the installed tree and of the build ---------------------------------------------------
scenarios=$stage/usr/share/longhaul/scenarios
for longhaul in "$stage/usr/bin/longhaul" "$LH_BUILD_DIR/longhaul"; do
    "$longhaul" sim --list >"$stage/list"
    for file in "$scenarios"/*.ini "$scenarios"/bifrost/*.ini; do
        name=${file#"$scenarios"/}
        name=${name%.ini}
        grep -E "^  $name +[A-Z]" "$stage/list" >/dev/null || fail "$longhaul: sim --list lacks $name"
        if [ "$name" != "${name%/*}" ]; then
            "$longhaul" sim "$name" --set run.until=1us >/dev/null 2>"$stage/sim.err" ||
                fail "$longhaul: sim $name: $(cat "$stage/sim.err")"
        fi
    done
done
if "$stage/usr/bin/longhaul" sim fig9a 2>"$stage/close.err"; then fail "there is a scenario fig9a"; fi
grep -F 'did you mean bifrost/fig9a?' "$stage/close.err" >/dev/null ||
    fail "$(cat "$stage/close.err")"
for program in figures beyond; do
    path=$scenarios/bifrost/$program
    [ -x "$path" ] || { fail "$program is not executable"; continue; }
    "$path" --help >/dev/null || fail "$program --help fails"
done
# It finds the command that it was installed with.
(cd "$stage" && "$scenarios/bifrost/figures" --help) >"$stage/help"
grep -F "usr/bin/longhaul" "$stage/help" >/dev/null || fail "figures does not find the installed command"
[ "$failed" -eq 0 ] && echo "$(wc -w <<<"$symbols") pages, $(grep -c '^  ' "$stage/list") scenarios"
