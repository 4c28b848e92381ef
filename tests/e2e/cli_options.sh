# What is asked wrongly ends with 2 and one line that names the value; man pages have each option of --help.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"

# wrong TEXT ARGUMENT...: the line on stderr has that text.
wrong() {
    local text=$1 status=0 lines
    shift
    timeout 20 "$LONGHAUL" "$@" >"$work/wrong.out" 2>"$work/wrong.err" </dev/null || status=$?
    [ "$status" -eq 2 ] || fail "longhaul $* ended with $status, not 2"
    lines=$(wc -l <"$work/wrong.err")
    [ "$lines" -eq 1 ] || fail "longhaul $* said $lines lines"
    expect_line "$work/wrong.err" "$text"
    [ ! -s "$work/wrong.out" ] || fail "longhaul $* printed something on stdout"
}

say "commands"
wrong 'missing command'
wrong 'fly: unknown command' fly
wrong 'did you mean send?' sen
wrong 'did you mean recv?' recvv
wrong '--fly: unknown option' --fly

touch "$work/file"
say "options"
wrong '--nothing' send "$work/file" host --nothing
wrong 'did you mean --follow?' send "$work/file" host --folow
wrong 'did you mean --reliability?' perf host --relaibility sr-nack
wrong '-x' recv -x
wrong '--output: missing value' recv --output
wrong '--keep=1: option takes no value' recv --keep=1
wrong '--server takes no host' perf --server host

say "operands"
wrong ': missing PATH...' send
wrong ': missing HOST[:PORT][:DIR]' send "$work/file"
wrong 'has the same name (send one of them' send "$work/file" "$work/./file" host
wrong '-: standard input is sent alone' send - "$work/file" host
wrong '--delete: standard input has no folder' send --delete --yes - host
wrong '--xattrs: standard input has no such attributes' send --xattrs - host
wrong '--owner: standard input has no such attributes' send --owner - host
wrong '--delete: no terminal to ask' send --delete "$work/file" host
wrong '--delete: no terminal to ask' get --delete host:dir
wrong '--yes: nothing is asked (use it with --delete)' send --yes "$work/file" host
wrong '--dry-run: standard input is not known' send --dry-run - host
wrong '--output -: standard output takes one transfer' recv --keep -o -
wrong 'option of the server' perf host --once
wrong 'option of the server' perf host --listen :0
wrong 'option of the client' perf --server --json "$work/file"
wrong 'option of the client' perf --server --size 1KiB
wrong 'more: unexpected argument 1: recv takes none' recv more
wrong 'missing HOST[:PORT]' perf
wrong 'two: unexpected argument 2' demo one two

say "an option that only one of send and recv has is named with the command that has it"
options_of() {
    "$LONGHAUL" "$1" --help | grep -oE -- '^ +(-., )?--[a-z-]+' | sed 's/.*--/--/' | sort
}
elsewhere() {
    local here=$1 there=$2 option
    shift 2
    for option in $(comm -13 <(options_of "$here") <(options_of "$there")); do
        wrong "(use longhaul $there $option)" "$here" "$@" "$option"
        wrong "(use longhaul $there $option=1)" "$here" "$@" "$option=1"
    done
}
[ "$(comm -3 <(options_of send) <(options_of recv) | wc -l)" -ge 8 ] ||
    fail "send and recv have the same options"
elsewhere send recv "$work/file" host
elsewhere recv send
wrong '--reliability: the receiver chooses the scheme (use longhaul recv --reliability)' \
    send "$work/file" host --reliability ec:mds
wrong '(use longhaul recv -o)' send "$work/file" host -o here

say "--help offers the schemes that are taken, and no other"
for command in recv perf; do
    offered=$("$LONGHAUL" $command --help | tr -s ' \n' ' ' |
        grep -oP '(?<=data received here: ).*?(?=, or auto)' | tr -d ,)
    [ "$(wc -w <<<"$offered")" -ge 4 ] || fail "$command --help offers: $offered"
    [[ $command != recv || " $offered " != *" bounded "* ]] || fail "recv --help offers: $offered"
    for scheme in $offered auto; do
        wrong '--window 1: ' recv --reliability "$scheme" --window 1 # refused after a valid scheme
    done
    for scheme in $("$LONGHAUL" recv --reliability none 2>&1 | sed 's/.*use one of//; s/)$//'); do
        [[ " $offered auto " == *" $scheme "* ]] || [ "$command $scheme" = "recv bounded" ] ||
            fail "$command --help does not offer $scheme: $offered"
    done
done
wrong 'gbn' recv --reliability gbn

say "addresses"
wrong 'host:0: port' send "$work/file" host:0
wrong 'host:65536: port' send "$work/file" host:65536
wrong 'host:port: port "port": not a number (1 to 65535; example: host:47910)' perf host:port
wrong 'host:/data: /data is absolute (the receiver chooses: longhaul recv --output)' \
    send "$work/file" host:/data
wrong 'host:47910:a/../b: the path has the name . or ..' send "$work/file" host:47910:a/../b
wrong 'host:65536: port' send "$work/file" host:65536:a
wrong '::1:47910: IPv6 address without brackets (use [::1]:47910)' send "$work/file" ::1:47910
wrong '(use [fe80::1%eth0]:47911)' perf fe80::1%eth0:47911
wrong '(use [::]:47912)' probe --server --listen :::47912
wrong '::1:2:x: invalid address' perf ::1:2:x
wrong '[::1: invalid address' send "$work/file" '[::1'
wrong 'HOST[:PORT] : invalid address' send "$work/file" ''
wrong 'a b: invalid address' perf 'a b'
wrong '--listen nowhere:x: ' recv --listen nowhere:x
wrong '(for a port: :47910)' recv --listen 47910
wrong '--listen :70000: ' perf --server --listen :70000

say "values of every kind"
wrong '--size 12Q: ' perf host --size 12Q
wrong '--size 0: ' perf host --size 0
wrong '--size 5GiB: ' perf host --size 5GiB
wrong '--size 2MiB..1MiB: ' perf host --size 2MiB..1MiB
wrong '--iterations x: ' perf host --iterations x
wrong '--iterations 0: ' perf host --iterations 0
wrong '--warmup -1: ' perf host --warmup -1
wrong '--in-flight 2000: ' perf host --in-flight 2000
wrong '--in-flight 1024: ' perf host --in-flight 1024 --size 64MiB
wrong '--mtu 9000: ' send "$work/file" host --mtu 9000
wrong '--mtu 1000: ' send "$work/file" host --mtu 1000
wrong '--slots 3: ' send "$work/file" host --slots 3
wrong '--channels 0: ' send "$work/file" host --channels 0
wrong '--window 1: ' send "$work/file" host --window 1
wrong '--rate 10: ' send "$work/file" host --rate 10
wrong '--peer-timeout 5: ' send "$work/file" host --peer-timeout 5
wrong '--wait 0: ' send "$work/file" host --wait 0
wrong 'foo=1' send "$work/file" host --link foo=1
wrong 'loss=2' send "$work/file" host --link loss=2
wrong 'magic' recv --reliability magic
wrong 'sr-nack' recv --reliability magic
wrong 'speed=9' recv --reliability sr-nack,speed=9
wrong 'chunk_bytes 1024' recv --listen '[::1]:0' --mtu 4096 --chunk 1024
wrong 'verbs:foo' recv --listen '[::1]:0' --device foo
wrong '--key-file' recv --listen '[::1]:0' --key-file
wrong 'key file /nonexistent' recv --listen '[::1]:0' --key-file /nonexistent
wrong '--encryption' recv --listen '[::1]:0' --encryption
wrong 'encryption none: unknown (use full, auth or off)' send file host --encryption none
wrong 'encryption full: no key (add --key-file FILE, or --code CODE)' perf host --encryption full
wrong '--loss 2: ' demo --loss 0,2
wrong '--size 0: ' demo --size 0

say "options of comparable programs"
wrong '-np: unknown option (use -n N)' run -np 4 -- true
wrong '-np4: unknown option (use -n N)' run -np4 -- true
wrong '--hostfile=a: unknown option (starts ranks on this machine only' run --hostfile=a -n 2 -- true
wrong '-g: unknown option (GPUs per process of nccl-tests' collective allreduce -b 8 -e 128M -f 2 -g 1
wrong '-g1: unknown option' collective allreduce -g1
wrong '-n: unknown option (use --iterations N)' collective allreduce -n 20
wrong '--minbytes=8: unknown option (use --begin)' collective allreduce --minbytes=8
wrong 'no launcher has started this process' collective allreduce -b 8 -e 128M -f 2
wrong '--end 65G: out of range (1B to 64GiB)' collective allreduce -e 65G
wrong '--begin 8Q: invalid size' collective allreduce -b 8Q
for name in all_reduce AllReduce all_reduce_perf allredcue; do
    wrong "$name: unknown collective (did you mean allreduce?)" collective $name
done
wrong 'did you mean broadcast?' collective bcast
wrong 'did you mean alltoallv?' collective all_to_all_v
wrong 'xyz: unknown collective (allreduce, reduce,' collective xyz

say "places"
# cannot TEXT ARGUMENT...: ends with 1.
cannot() {
    local text=$1 status=0
    shift
    timeout 20 "$LONGHAUL" "$@" >"$work/wrong.out" 2>"$work/wrong.err" </dev/null || status=$?
    [ "$status" -eq 1 ] || fail "longhaul $* ended with $status, not 1"
    [ "$(wc -l <"$work/wrong.err")" -eq 1 ] || fail "longhaul $* said more than a line"
    expect_line "$work/wrong.err" "$text"
}
start busy recv --listen '127.0.0.1:0' --output "$work"
for command in recv "perf --server" "probe --server"; do
    # shellcheck disable=SC2086
    cannot 'Address already in use (another process uses this port; use another port' \
        $command --listen "$where"
    # shellcheck disable=SC2086
    cannot '(not an address of this machine; use one of its addresses, or :PORT for all)' \
        $command --listen 192.0.2.1:0
done
kill "$pid"
wait "$pid"
cannot '--set: workload.flows: 4: No such file or directory (the key names a file with one flow a line' \
    sim lone-flow --set workload.flows=4
cannot 'misspelt.invalid: ' distribute "$work/file" misspelt.invalid
expect_line "$work/wrong.err" '(check the name; if only the remote shell knows it, set MASTER_ADDR to'

say "messages of ranks that were started together name the rank"
for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 MASTER_ADDR=::1 MASTER_PORT=1 \
        wrong "longhaul collective (rank $rank): --begin 8Q: " collective allreduce -b 8Q
    RANK=$rank WORLD_SIZE=2 MASTER_ADDR=::1 MASTER_PORT=1 \
        wrong "longhaul distribute (rank $rank): --nothing: " distribute "$work/file" --nothing
done
RANK=0 WORLD_SIZE=1 wrong "longhaul collective: --begin 8Q: " collective allreduce -b 8Q

say "where the locale is not UTF-8, tables are drawn with ASCII"
table() {
    env -u LC_ALL -u LC_CTYPE -u LANG "$@" "$LONGHAUL" plan --bandwidth 10Gbit --rtt 25ms --loss 1e-4 \
        --size 8MiB >"$work/table" || fail "plan failed"
}
for locale in LC_ALL=C LC_CTYPE=POSIX LANG=de_DE@euro NONE=; do
    table "$locale"
    ! LC_ALL=C grep -qP '[^\x00-\x7F]' "$work/table" || fail "not ASCII with $locale: $(cat "$work/table")"
    grep -q ' x ideal ' "$work/table" && grep -q -e '---------' "$work/table" &&
        grep -q '^  >  ' "$work/table" ||
        fail "the table is not drawn with $locale"
    awk '/---/ || / x ideal  / { if (width && length != width) exit 1; width = length }' "$work/table" ||
        fail "its lines differ in width: $(cat "$work/table")"
done
for locale in LC_ALL=C.UTF-8 LC_CTYPE=en_US.utf8 LANG=de_DE.UTF-8; do
    table "$locale"
    grep -q '───' "$work/table" && grep -q '× ideal' "$work/table" || fail "not UTF-8 with $locale"
done
for command in "sim lone-flow --no-sweep --set workload.bytes=4KiB" "sim --list" "sim --keys" \
    "collective --help"; do
    # shellcheck disable=SC2086
    ! LC_ALL=C "$LONGHAUL" $command | LC_ALL=C grep -nP '[^\x00-\x7F]' || fail "$command: not ASCII"
done

say "the list of scenarios has whole sentences"
"$LONGHAUL" sim --list >"$work/list" || fail "sim --list failed"
! grep '^  [a-z]' "$work/list" | grep -v '[.?]$' || fail "lines that do not end"
expect_line "$work/list" 'a hundredth of the hosts pauses'

say "a probe"
wrong '--server takes no host' probe --server host
wrong 'option of the server' probe host --once
wrong 'option of the client' probe --server --json "$work/file"
wrong 'missing HOST[:PORT]' probe
wrong '--size 1: ' probe host --size 1KiB,1B
wrong '--size 66000: ' probe host --size 66000
wrong '--time 100ms: ' probe host --time 100ms
wrong '--time 2h: ' probe host --time 2h
wrong '--trials 0: ' probe host --trials 0
wrong '--trials 65: ' probe host --trials 65
wrong '--flows 17: ' probe host --flows 17
wrong '--packets 1000001: ' probe host --packets 1000001
wrong '--rate 1000: ' probe host --rate 1000
wrong 'loss' probe host --link loss=2

say "--help and --version"
[ "$("$LONGHAUL" --version)" = "$("$LONGHAUL" -V)" ] || fail "--version and -V differ"
"$LONGHAUL" --version | grep -qE '^longhaul [0-9]+\.[0-9]+\.[0-9]+$' || fail "--version prints something else"
"$LONGHAUL" --help | grep -q '^  recv ' || fail "--help does not list recv"

man=${LH_SOURCE_DIR:-$(dirname "$0")/../..}/docs/man
commands=$("$LONGHAUL" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -gt 10 ] || fail "not all commands: $commands"
for command in $commands; do
    say "longhaul $command --help is at most 100 columns wide, and its man pages have each option"
    "$LONGHAUL" $command --help >"$work/help" || fail "longhaul $command --help ended with $?"
    ! grep -E '.{101}' "$work/help" || fail "too wide"
    options=$(grep -oE -- '^ +(-., )?--[a-z-]+' "$work/help" | sed 's/.*--/--/')
    [ -n "$options" ] || fail "no options in --help"
    for option in $options; do
        cat "$man/longhaul-$command.1" "$man/longhaul.1" | sed 's/\\-/-/g' | grep -qF -e "$option" ||
            fail "$option is not in longhaul-$command.1"
    done
done
echo "all well"
