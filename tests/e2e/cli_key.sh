# longhaul key: new files, their fingerprints, and what it refuses. No key is printed.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

# key STATUS ARGUMENT...: leaves key.out and key.err.
key() {
    local expected=$1 status=0
    shift
    (cd "$work" && umask 000 && "$LONGHAUL" key "$@") >"$work/key.out" 2>"$work/key.err" || status=$?
    [ "$status" -eq "$expected" ] || fail "key $*: ended with $status"
}

say "a new key, for this user alone, in a file of the usual name or another one"
key 0 new
expect_line "$work/key.out" "longhaul.key: a new key, fingerprint"
expect_line "$work/key.out" "scp -p longhaul.key HOST:"
[ "$(stat -c %a "$work/longhaul.key")" = 600 ] || fail "mode $(stat -c %a "$work/longhaul.key")"
key 0 new other.key
[ "$(wc -c <"$work/other.key")" -eq 65 ] || fail "other.key: $(wc -c <"$work/other.key") bytes"
! cmp -s "$work/longhaul.key" "$work/other.key" || fail "the same key twice"

say "a file that is there stays"
cp "$work/other.key" "$work/kept"
key 2 new other.key
expect_line "$work/key.err" "key file other.key: there is a file already"
cmp "$work/other.key" "$work/kept" || fail "it was replaced"
key 1 new absent/key
expect_line "$work/key.err" "key file absent/key: No such file or directory"

say "the fingerprint is that of the key, in any form, and not the key"
key 0 show longhaul.key
read -r first _ <"$work/key.out"
[[ $first =~ ^[0-9a-f]{32}$ ]] || fail "fingerprint $first"
! grep -q "$first" "$work/longhaul.key" || fail "the fingerprint is in the key"
(umask 077 && xxd -r -p "$work/longhaul.key" | base64 >"$work/same")
key 0 show same
read -r second _ <"$work/key.out"
[ "$first" = "$second" ] || fail "$first is not $second"
key 0 show other.key
read -r second _ <"$work/key.out"
[ "$first" != "$second" ] || fail "two keys have one fingerprint"

say "what cannot be"
chmod 640 "$work/same"
key 2 show same
expect_line "$work/key.err" "mode 0640 lets other users use it (chmod 600 same)"
key 2 show absent
expect_line "$work/key.err" "make one: longhaul key new FILE"
key 2 show
expect_line "$work/key.err" "key show: no FILE"
key 2 trust me
expect_line "$work/key.err" "key trust: unknown (use new or show)"

say "both sides of a transfer"
mkdir "$work/out"
make_file "$work/file" 100000
start_recv recv "$work/out" --key-file "$work/longhaul.key"
send "$work/file" "$where" --key-file "$work/longhaul.key"
[ "$status" -eq 0 ] || fail "send ended with $status"
ended recv "$pid" 0 60
cmp "$work/file" "$work/out/file" || fail "another file arrived"

echo "$checks checks"
