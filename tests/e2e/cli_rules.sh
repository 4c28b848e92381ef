# --include and --exclude: the files that are sent are those that rsync sends with the same rules.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
command -v rsync >/dev/null || { echo "no rsync here: it is what the rules are compared with"; exit 77; }

mkdir "$work/out" "$work/empty"
cd "$work" || exit 1
for folder in . a a/b a/b/c build build/deep src/build foo/bar xfoo/bar; do
    mkdir -p "in/$folder"
    for name in a.o b.c .hidden '*' 'a\b' '[x]' build.txt foo; do
        [ -d "in/$folder/$name" ] || echo "$name" >"in/$folder/$name"
    done
done

start_recv recv "$work/out" --keep --dotfiles

# same RULE...: of both programs.
same() {
    say "$*"
    rsync -an --out-format='%n' "$@" in "$work/empty/" | grep -v '/$' | sed 's/^\.\///' | sort >rsync.list
    send --dry-run "$@" in "$where"
    [ "$status" -eq 0 ] || fail "send ended with $status"
    grep -v '^dry run: ' send.out | sort >own.list
    # Both print what is no plain character in their own manner.
    sed -i 's/\\\\/\\/g; s/\\#134/\\/g; s/\\134/\\/g' rsync.list own.list
    cmp rsync.list own.list || fail "$(diff rsync.list own.list)"
}

same
same --exclude '*.o'
same --exclude build
same --exclude build/
same --exclude /in/build
same --exclude /build
same --exclude 'a/b'
same --exclude foo/bar
same --exclude '/in/a/**'
same --exclude '/in/a/*'
same --exclude 'a/***'
same --exclude '**/c/*'
same --exclude 'a/**/b.c'
same --exclude '**b.c'
same --exclude 'b**'
same --include '*.c' --exclude '*'
same --include '*/' --include '*.c' --exclude '*'
same --include 'a/***' --include /in/ --exclude '*'
same --exclude 'a/b/b.c' --include 'b.c' --exclude 'a/*'
same --exclude '.*'
same --exclude '\*'
same --exclude '\[x\]'
same --exclude '[[]x]'
same --exclude '[!a-b]*'
same --exclude '[^a]?o'
same --exclude 'a\b'
same --exclude '?????????'
same --include=build.txt --exclude='build*'
same --exclude in

say "patterns that are none"
for pattern in '' / '[a' '[[:alpha:]]'; do
    send --exclude "$pattern" in "$where"
    [ "$status" -eq 2 ] || fail "$pattern ended with $status"
    expect_line "$work/send.err" "the pattern "
done
kill "$pid"
echo "all well"
