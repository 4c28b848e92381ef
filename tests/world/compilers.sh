#!/bin/bash
# The same seeds come to the same in a gcc and in a clang build. Builds test_world alone, with the one of the
# two that did not build what is there.
#   compilers.sh FOLDER SEEDS COMPILER TEST_WORLD
# COMPILER is what CMake calls that of TEST_WORLD: GNU, Clang, or any other.
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$1
seeds=$2
case $3 in
GNU) gcc=$4 ;;
Clang) clang=$4 ;;
esac
unset MAKEFLAGS MFLAGS MAKELEVEL
for compiler in gcc clang; do
    if ! command -v "$compiler" >/dev/null; then
        echo "skipped: $compiler is not installed"
        exit 77
    fi
done

build() {
    cmake -S "$source" -B "$folder/$1" -DCMAKE_C_COMPILER="$1" -DLH_BENCH=OFF &&
        cmake --build "$folder/$1" --target test_world -j "${JOBS:-$(nproc)}"
}

mkdir -p "$folder"
for compiler in gcc clang; do
    world=${!compiler:-}
    if [ -z "$world" ] && ! build "$compiler" >"$folder/$compiler.log" 2>&1; then
        tail -n 20 "$folder/$compiler.log"
        exit 1
    fi
    world=${world:-$folder/$compiler/tests/world/test_world}
    "$world" --hashes "$seeds" >"$folder/$compiler.hashes" || exit 1
    "$world" --first 9223372036854775808 --hashes "$((seeds / 10))" >>"$folder/$compiler.hashes" || exit 1
    "$world" --seed 1 --trace >"$folder/$compiler.trace"
done
cmp "$folder/gcc.hashes" "$folder/clang.hashes" || exit 1
cmp "$folder/gcc.trace" "$folder/clang.trace" || exit 1
echo "$seeds seeds come to the same with gcc and with clang"
