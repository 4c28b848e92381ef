# What kill -9 of the sender or the receiver costs: the same command completes the tree, and each kill makes
# at most 2 s of the link's time be sent twice. Through longhaul-path, 100 Mbit/s and 25 ms. rsync compares.
# Moments are counted in bytes on the path, so they do not depend on the speed of the machine.
# The argument is their number (4). SEED=n repeats the choices.
# Needs what longhaul-path needs; skipped without.
#
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib_cli.sh"
command -v rsync >/dev/null || { echo "no rsync here: it is what trees are compared by"; exit 77; }

path=$LH_BUILD_DIR/bench/longhaul-path
status=0
timeout 20 "$path" -- true >"$work/path.out" 2>"$work/path.err" || status=$?
cat "$work/path.err"
[ "$status" -ne 77 ] || exit 77

kills=${1:-4}
echo "SEED=${SEED:=$$}"

# A file that continues in its middle, the largest that does not, and small ones.
mkdir -p "$work/in/many" "$work/out"
python3 - "$work/in" "$SEED" <<'END_PYTHON'
import random, sys
source = random.Random(int(sys.argv[2]))
sizes = {"large": (40 << 20) + 12345, "medium": 16 << 20}
sizes.update({f"many/{number}": source.randrange(8000) for number in range(1000)})
for name, size in sizes.items():
    with open(f"{sys.argv[1]}/{name}", "wb") as file:
        file.write(source.randbytes(size))
END_PYTHON

# Receivers, one after the other, until the file "done" exists.
cat >"$work/right" <<'END_RIGHT'
longhaul=$1 work=$2
umask 0
for ((number = 0; ; number++)); do
    [ ! -e "$work/done" ] || exit 0
    "$longhaul" recv --listen 10.99.0.2:5001 --insecure --keep --output "$work/out" \
        >"$work/recv.$number" 2>"$work/recv.err" &
    echo $! >"$work/pid.new"
    mv "$work/pid.new" "$work/pid.$number"
    wait $! 2>/dev/null
done
END_RIGHT

# The kills. "durable" is what a receiver does not ask for again: files under their names, blocks on record.
cat >"$work/left.py" <<'END_LEFT'
import os, random, signal, subprocess, sys, time

longhaul, work, kills, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
source = random.Random(seed)
BLOCK, LINK_BYTES_PER_S = 4 << 20, 100e6 / 8
TWICE_MAX = 2 * LINK_BYTES_PER_S
receiver, worst, total_twice, trees = 0, 0, 0, 0
moments = {"sender": 0, "receiver": 0, "late": 0}


def sent():
    with open("/proc/self/net/dev", encoding="ascii") as file:
        return next(int(line.split(":")[1].split()[8]) for line in file if "path0" in line)


def size(name):
    try:
        return os.stat(f"{work}/out/in/{name}").st_size
    except FileNotFoundError:
        return 0


def durable():
    known = ["large", "medium"] + [f"many/{number}" for number in range(1000)]
    blocks = max(0, size(".large.longhaul-resume") - 24) // 16
    return sum(size(name) for name in known) + blocks * BLOCK


def await_that(what, condition):
    """A limit that only stops what hangs."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"FAILED: {what}")
        time.sleep(0.005)


def listening():
    try:
        with open(f"{work}/recv.{receiver}", encoding="ascii") as file:
            return "listening on" in file.read() and os.path.exists(f"{work}/pid.{receiver}")
    except FileNotFoundError:
        return False


def launch():
    await_that("no receiver", listening)
    with open(f"{work}/send.err", "a", encoding="ascii") as errors:
        return subprocess.Popen([longhaul, "send", "--insecure", f"{work}/in", "10.99.0.2:5001"],
                                stdout=errors, stderr=errors)


def account(before, before_durable):
    global worst, total_twice  # pylint: disable=global-statement
    twice = sent() - before - (durable() - before_durable)
    worst, total_twice = max(worst, twice), total_twice + twice
    if twice > TWICE_MAX:
        sys.exit(f"FAILED: {twice} bytes beyond what is durable; {TWICE_MAX:.0f} are 2 s of the link")


def complete():
    global trees  # pylint: disable=global-statement
    trees += 1
    found = subprocess.run(["rsync", "-anic", "--delete", f"{work}/in/", f"{work}/out/in/"],
                           stdout=subprocess.PIPE, text=True, check=True).stdout
    if found:
        sys.exit(f"FAILED: rsync finds differences: {found}")
    subprocess.run(["rm", "-rf", f"{work}/out/in"], check=True)


killed = 0
while True:
    before, before_durable = sent(), durable()
    sender = launch()
    moment = before + (source.randrange(24 << 20) if killed < kills else 1 << 40)
    await_that("the sender hangs", lambda: sent() >= moment or sender.poll() is not None)
    if sender.poll() is not None:
        if sender.returncode:
            sys.exit(f"FAILED: the sender ended with {sender.returncode}")
        moments["late"] += killed < kills
        account(before, before_durable)
        complete()
        if killed == kills:
            break
        continue
    killed += 1
    victim = source.choice(["sender", "receiver"])
    moments[victim] += 1
    if victim == "sender":
        sender.kill()
        sender.wait()
    else:
        with open(f"{work}/pid.{receiver}", encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)
        receiver += 1
        await_that("the sender hangs after the receiver's end", lambda: sender.poll() is not None)
        if sender.returncode not in (0, 3): # 0: the verdict was on its way
            sys.exit(f"FAILED: the sender ended with {sender.returncode}")
    account(before, before_durable)

print(f"{killed} kills ({moments['sender']} of the sender, {moments['receiver']} of the receiver), "
      f"{trees} trees, {moments['late']} ends before the moment; sent twice, with headers: "
      f"{worst / LINK_BYTES_PER_S:.2f} s of the link at most, "
      f"{total_twice / LINK_BYTES_PER_S / (killed + trees):.2f} s a launch")
with open(f"{work}/done", "w", encoding="ascii"):
    pass
with open(f"{work}/pid.{receiver}", encoding="ascii") as file:
    os.kill(int(file.read()), signal.SIGTERM)
END_LEFT

say "$kills kills"
"$path" --rate 100Mbit --delay 12.5ms --json "$work/path.json" \
    -- python3 "$work/left.py" "$LONGHAUL" "$work" "$kills" "$SEED" \
    ::: bash "$work/right" "$LONGHAUL" "$work" >"$work/kills.out" 2>"$work/kills.err" ||
    { cat "$work/kills.out"; fail "SEED=$SEED: kills"; }
cat "$work/kills.out"
echo "all well"
