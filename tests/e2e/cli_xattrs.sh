# --xattrs and --owner: extended attributes, access control lists and owners arrive where the receiver takes
# them; what its file system cannot hold is a line, and the entry is in place.
# Owners, other name spaces and a file system without attributes need root, else they are skipped.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
command -v python3 >/dev/null || { echo "no python3: it sets the attributes"; exit 77; }

umask 002 # what a list of access control permits to others is under it, too
cd "$work" || exit 1
mkdir -p in/d out bare
echo small >in/d/small
echo none >in/none
make_file in/big $((18 * 1024 * 1024))
truncate -s 1M in/holes
ln -s small in/d/link
printf '#!/bin/sh\n' >in/tool
cat >attributes.py <<'END'
"""set: gives entries of in/ their attributes; show FOLDER: prints those of all entries."""
import os, struct, sys
def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
listed = acl((1, 6, 0xffffffff), (2, 4, 1234), (4, 4, 0xffffffff), (16, 6, 0xffffffff), (32, 0, 0xffffffff))
def give(path, name, value):
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        print(f"{path}: {name}: {error.strerror}")
        sys.exit(77)
if sys.argv[1] == "set":
    for path in ("in/d", "in/d/small", "in/big", "in/holes"):
        give(path, "user.note", os.path.basename(path).encode())
    give("in/d/small", "user.\u00fc\n\x1b", bytes(range(256)) * 8)
    give("in/d/small", "user.empty", b"")
    for path in ("in/d/small", "in/big"):
        give(path, "system.posix_acl_access", listed)
    if os.geteuid() == 0:
        give("in/d/small", "trusted.note", b"t")
        give("in/tool", "security.capability", struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0))
        for number, path in enumerate(("in/d", "in/d/small", "in/d/link", "in/big")):
            os.lchown(path, 54321 + number, 65432 + number)
        os.chown("in/holes", 1, 1) # which have names: daemon
else:
    os.chdir(sys.argv[2])
    for folder, folders, files in os.walk("."):
        for path in sorted([folder] + [os.path.join(folder, name) for name in files]):
            names = os.listxattr(path, follow_symlinks=False)
            values = {name: os.getxattr(path, name) for name in names if name != "security.capability"}
            status = os.lstat(path)
            owner = (status.st_uid, status.st_gid) if path != "." and "owner" in sys.argv else ()
            print(path, oct(status.st_mode), sorted(values.items()), owner)
END
python3 attributes.py set || exit $?

say "a receiver that takes none refuses them before anything is sent"
start_recv strict bare --keep
for option in --xattrs --owner; do
    send "$option" in "$where"
    [ "$status" -eq 1 ] || fail "$option ended with $status"
    expect_line send.err "taken here ($option at the receiver"
done
nothing bare
kill "$pid"

say "all of them arrive: user.*, access control lists, of files of all kinds and of folders"
start_recv recv out --keep --xattrs
send --xattrs in "$where"
[ "$status" -eq 0 ] || fail "it ended with $status: $(cat send.err)"
python3 attributes.py show in | grep -v tool >expected
python3 attributes.py show out/in | grep -v tool | cmp expected - ||
    fail "$(python3 attributes.py show out/in | diff expected -)"
[ -z "$(python3 -c 'import os; print(*os.listxattr("out/in/tool"))')" ] || fail "a capability arrived"

say "under another umask a list permits less"
kill "$pid"
umask 022
start_recv masked bare --xattrs
umask 002
send --xattrs in/d/small "$where"
[ "$(stat -c %a bare/small)" = 640 ] || fail "its mode is $(stat -c %a bare/small)"
ended masked "$pid" 0 20
rm bare/small

say "without the option none arrive"
rm -rf out/in
start_recv plain out --keep --xattrs
send in "$where"
[ "$status" -eq 0 ] || fail "it ended with $status"
! python3 attributes.py show out/in | grep -q user.note || fail "they arrived"
kill "$pid"

say "get, too"
start closed serve --read in --listen '[::1]:0'
mkdir got
timeout 60 "$LONGHAUL" get --xattrs "$where:d" got >get.out 2>get.err
[ $? -eq 1 ] || fail "it did not fail: $(cat get.err)"
expect_line get.err "no extended attributes are served here (longhaul serve --xattrs)"
nothing got
kill "$pid"
start serve serve --read in --xattrs --listen '[::1]:0'
timeout 60 "$LONGHAUL" get --xattrs "$where:d" "$where:big" got >get.out 2>get.err || fail "$(cat get.err)"
python3 attributes.py show in | grep -E '^./(d|big)' >expected
python3 attributes.py show got | grep -E '^./(d|big)' | cmp expected - || fail "they differ"
kill "$pid"

if [ "$(id -u)" -ne 0 ]; then
    echo "skipped: owners need root"
    start_recv other bare --owner 2>/dev/null
    exit 0
fi

say "owners, also of links and folders"
rm -rf out/in
start_recv owners out --keep --owner --xattrs
send --owner --xattrs in "$where"
[ "$status" -eq 0 ] || fail "it ended with $status: $(cat send.err)"
python3 attributes.py show in owner | grep -v tool >expected
python3 attributes.py show out/in owner | grep -v tool | cmp expected - ||
    fail "$(python3 attributes.py show out/in owner | diff expected -)"
kill "$pid"

say "one line for another user than root"
if command -v setpriv >/dev/null && cp "$LONGHAUL" lh 2>/dev/null; then
    status=0
    setpriv --reuid=65534 --clear-groups "$LONGHAUL" recv --owner --listen '[::1]:0' >none.out 2>none.err ||
        status=$?
    [ "$status" -eq 2 ] || fail "it ended with $status"
    expect_line none.err "--owner: only root gives files to other users"
fi

say "what the file system cannot hold is a line and status 1; the files are in place"
if mount -t ramfs none bare 2>/dev/null; then
    mounted=$work/bare
    start_recv ram bare --keep --xattrs
    send --xattrs in "$where"
    [ "$status" -eq 1 ] || fail "it ended with $status"
    expect_line send.err "in/d/small: attribute user."
    expect_line send.err "(the entry is in place)"
    [ "$(cat bare/in/d/small)" = small ] || fail "the file is missing"
    cmp in/big bare/in/big || fail "it is another file"
    kill "$pid"
    wait "$pid"
fi
echo "all well"
