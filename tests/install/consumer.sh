#!/bin/bash
# Installs the tree into a folder of its own, then builds and runs a program against it with pkg-config alone.
# Needs LH_BUILD_DIR, CC and CMAKE in the environment, as ctest gives them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -e "$here/../../include/longhaul/longhaul.h" ] || [ ! -e "$here/../../include/sdr.h" ]; then
    echo "no public header yet: nothing to install for"
    exit 77
fi
# Not grep -q: it stops reading, nm dies of the closed pipe, and the pipe counts as failed.
if ! nm -D --defined-only "$LH_BUILD_DIR/liblonghaul.so" | grep ' lh_version' >/dev/null; then
    echo "the library has no lh_version() yet"
    exit 77
fi
# Until there is a command, rooms are still being moved in, and the library may lack some.
if [ ! -d "$here/../../cli" ] && ldd -r "$LH_BUILD_DIR/liblonghaul.so" 2>&1 | grep 'undefined symbol'; then
    exit 77
fi

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
if ! "$CMAKE" --install "$LH_BUILD_DIR" --prefix "$stage/usr" >"$stage/install.log"; then
    cat "$stage/install.log"
    exit 1
fi

library=$(dirname "$(find "$stage" -name liblonghaul.so)")
[ -e "$library/liblonghaul.a" ] || { echo "liblonghaul.a was not installed"; exit 1; }
# The prefix is not the one that the tree was configured with: .pc files find theirs from where they stand.
export PKG_CONFIG_PATH=$library/pkgconfig
for name in longhaul longhaul-sim; do
    prefix=$(realpath "$(pkg-config --variable=prefix $name)")
    [ "$prefix" = "$(realpath "$stage/usr")" ] || { echo "$name.pc has the prefix $prefix"; exit 1; }
done
# shellcheck disable=SC2046  # flags are words
"$CC" -std=c17 -Wall -Wextra -Wpedantic -Werror "$here/consumer.c" -o "$stage/consumer" \
    $(pkg-config --cflags --libs longhaul)
printed=$(LD_LIBRARY_PATH=$library "$stage/consumer")
wanted=$(pkg-config --modversion longhaul)
if [ "$printed" != "$wanted" ]; then
    echo "lh_version() says '$printed', longhaul.pc says '$wanted':"
    echo "make include/longhaul/longhaul.h and project(VERSION) in CMakeLists.txt agree"
    exit 1
fi
# A program of the simulator, by its own .pc file: with the shared libraries, and with the archives alone.
sim_version=$(pkg-config --modversion longhaul-sim)
[ "$sim_version" = "$wanted" ] || { echo "longhaul-sim.pc says '$sim_version'"; exit 1; }
# shellcheck disable=SC2046
"$CC" -std=c17 -Wall -Wextra -Wpedantic -Werror "$here/sim_consumer.c" -o "$stage/sim_consumer" \
    $(pkg-config --cflags --libs longhaul-sim)
LD_LIBRARY_PATH=$library "$stage/sim_consumer"
# shellcheck disable=SC2046
"$CC" "$here/sim_consumer.c" -o "$stage/sim_static" $(pkg-config --cflags longhaul-sim) \
    -Wl,-Bstatic -L"$library" -llonghaul-sim -llonghaul -Wl,-Bdynamic \
    $(pkg-config --static --libs longhaul-sim | tr ' ' '\n' | grep -v longhaul)
"$stage/sim_static"
ldd "$stage/sim_static" | grep longhaul && { echo "sim_static is linked with a shared library"; exit 1; }
# The same with CMake: find_package() finds what was installed, wherever it is.
mkdir "$stage/project"
cp "$here/consumer.c" "$here/sim_consumer.c" "$stage/project"
cat >"$stage/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C)
find_package(longhaul $wanted REQUIRED)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE longhaul::longhaul)
add_executable(sim_consumer sim_consumer.c)
target_link_libraries(sim_consumer PRIVATE longhaul::longhaul-sim)
END
if ! { "$CMAKE" -S "$stage/project" -B "$stage/project/build" -DCMAKE_PREFIX_PATH="$stage/usr" &&
    "$CMAKE" --build "$stage/project/build"; } >"$stage/project.log" 2>&1; then
    cat "$stage/project.log"
    exit 1
fi
[ "$("$stage/project/build/consumer")" = "$wanted" ] || { echo "another library was found"; exit 1; }
"$stage/project/build/sim_consumer"
if [ -e "$LH_BUILD_DIR/longhaul" ]; then
    "$stage/usr/bin/longhaul" --version >/dev/null || { echo "the installed command does not run"; exit 1; }
fi
echo "consumer built against the installed tree: $printed"
