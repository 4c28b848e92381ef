"""Plants one-line faults in a sample of the functions of src, one a function: which does a test find?

    mutation.py --list        the faults that would be planted: number, function, file, line before and after
    mutation.py               plants each, runs the tests that call its function, prints a table
    mutation.py --only 3,17   replays some by their numbers (same seed, same source)
    options: --seed N (1), --count N (200), --build FOLDER (build-mutation), --jobs N (one a processor),
             --all (what unit and simulation tests do not find, the fault world may),
             --resume (keeps what an earlier, interrupted run found),
             --minutes N (starts no more faults after that),
             --slow N (leaves out tests that take longer than N seconds; 20)

The tree is copied; it never changes itself. A first run calls each test once: which functions does it call?
A fault whose object file is that of the original, or that equivalents.txt lists, is equivalent: no test
can find it. A fault that does not compile is replaced by the next of its function. A test that ends with
another status than 0, or takes ten times as long, finds a fault. Where none does, the same tests run once
more with src under the address sanitizer. FOLDER/mutation-SEED.json has all results.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

import operators
import workshop

ROOT = pathlib.Path(__file__).resolve().parents[2]
EQUIVALENTS = pathlib.Path(__file__).with_name("equivalents.txt")
# Seeds of the fault world's kinds, as in tests/CMakeLists.txt.
WORLD_FIRST = (1, 1 << 62, 1 << 61, 1 << 63, 3 << 62, 15 << 60, 31 << 59, 16140901064495857664)
WORLD_SEEDS = 40
# The simulation tests of a fault take at most as long together, without a fault.
SIM_SECONDS = 60
LINK_LOCK = threading.Lock()


def read_equivalents(path):
    """(function, operator, line, changed line) -> reason; from blocks that empty lines divide."""
    found = {}
    for block in path.read_text().split("\n\n"):
        lines = [line for line in block.strip().split("\n") if line and not line.startswith("#")]
        if not lines:
            continue
        if len(lines) < 4 or not lines[1].startswith("- ") or not lines[2].startswith("+ "):
            raise workshop.Failure(f"{path.name}: no function, operator, lines, reason: {lines[0]}")
        name, operator = lines[0].split()
        found[name, operator, squeeze(lines[1][2:]), squeeze(lines[2][2:])] = " ".join(lines[3:])
    return found


def squeeze(line):
    return " ".join(line.split())


def room_of(path):
    return str(pathlib.Path(path).parent).removeprefix("src/")


class Hunt:
    def __init__(self, shop, options, texts, calls):
        self.shop, self.options, self.texts, self.calls = shop, options, texts, calls
        self.equivalents = read_equivalents(EQUIVALENTS)
        self.asan_seconds = {}  # by test, without a fault; None: it fails there, or takes too long

    def tests_for(self, function, room):
        """Unit tests, those of its room first, then simulation tests, quick ones first."""
        fit = [name for name, about in self.calls.items() if function in about["functions"] and
               about["seconds"] <= self.options.slow]
        fit.sort(key=lambda test: (not test.startswith("unit/"), not test.startswith(f"unit/{room}/"),
                                   self.calls[test]["seconds"]))
        kept, spent = [], 0
        for test in fit:
            spent += self.calls[test]["seconds"] if test.startswith("sim/") else 0
            if spent <= SIM_SECONDS:
                kept.append(test)
        return kept

    def same(self, fault, folder, *flags):
        """None: does not compile; True: the same object file as without the fault."""
        source = fault.function.path
        object_file, original = folder / "faulty.o", self.shop.object_of(source)
        if self.shop.compile_text(source, operators.apply(fault, self.texts[source]), object_file,
                                  *flags).returncode != 0:
            return None
        if flags:
            original = folder / "original.o"
            self.shop.compile_text(source, self.texts[source], original, *flags)
        return object_file.read_bytes() == original.read_bytes()

    def plant(self, queue, folder):
        """The first fault of a function that compiles: (fault, equivalent, number of those that did not)."""
        for failed, fault in enumerate(queue):
            same = self.same(fault, folder)
            if same is not None:
                return fault, same, failed
        return None, False, len(queue)

    def run_tests(self, fault, folder):
        """(kind, test) that finds it, or ("none", None); and the number of tests."""
        tests = self.tests_for(fault.function.name, room_of(fault.function.path))
        library = folder / "libmutated.so"
        with LINK_LOCK:
            self.shop.link_library(library, {fault.function.path: folder / "faulty.o"})
        for name in tests:
            limit = 10 + 10 * self.calls[name]["seconds"]
            status, _ = self.shop.run([self.shop.place / "tests" / name], limit, library)
            if status != 0:
                late = " (time)" if status == workshop.TIMED_OUT else ""
                return name.split("/")[0], name + late, len(tests)
        name = self.run_asan(fault, folder, tests)
        return name.split("/")[0] if name else "none", name, len(tests)

    def time_of_asan(self, name):
        """Seconds that the test takes under the address sanitizer without a fault; None: it is left out."""
        if name not in self.asan_seconds:
            status, taken = self.shop.run([self.shop.place / "tests" / name], 3 * self.options.slow,
                                          self.shop.place / "asan/libmutated.so", **self.shop.asan_variables)
            self.asan_seconds[name] = taken if status == 0 else None
            if status != 0:
                print(f"left out under the address sanitizer: {name} ({status})", flush=True)
        return self.asan_seconds[name]

    def run_asan(self, fault, folder, tests):
        """The test that finds it under the address sanitizer, or None."""
        library = folder / "asan/libmutated.so"
        library.parent.mkdir()
        self.same(fault, folder, workshop.ASAN_FLAG)
        with LINK_LOCK:
            self.shop.link_library(library, {fault.function.path: folder / "faulty.o"}, folder="asan",
                                   extra=[workshop.ASAN_FLAG])
        for name in tests:
            if (seconds := self.time_of_asan(name)) is None:
                continue
            status, _ = self.shop.run([self.shop.place / "tests" / name], 10 + 10 * seconds, library,
                                      **self.shop.asan_variables)
            if status != 0:
                return name + (" (time)" if status == workshop.TIMED_OUT else " (address sanitizer)")
        return None

    def run_world(self, fault, folder):
        program = folder / "test_world"
        with LINK_LOCK:
            self.shop.link_world(program, {fault.function.path: folder / "faulty.o"})
        for first in WORLD_FIRST:
            command = [program, "--first", str(first), "--seeds", str(WORLD_SEEDS), "--no-shrink"]
            status, _ = self.shop.run(command, 300)
            if status != 0:
                return f"world, seeds from {first}"
        return None

    def examine(self, number, queue):
        """All about one fault, as written to the results."""
        started = time.monotonic()
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.shop.place, prefix="fault-"))
        try:
            fault, same, failed = self.plant(queue, folder)
            if fault is None:
                return None
            result = {**describe(number, fault), "room": room_of(fault.function.path), "uncompiled": failed,
                      "tests": 0, "found_by": None}
            reason = self.equivalents.get((*fault.key(), squeeze(fault.after)))
            if same or reason:
                result.update(found="equivalent", reason=reason or "the same object file")
            else:
                result["found"], result["found_by"], result["tests"] = self.run_tests(fault, folder)
                if result["found"] == "none" and self.same(fault, folder, "-O2"):
                    result.update(found="equivalent", reason="the same object file with -O2")
                elif result["found"] == "none" and self.options.all:
                    self.same(fault, folder)
                    result["found_by"] = self.run_world(fault, folder)
                    result["found"] = "world" if result["found_by"] else "none"
            result["seconds"] = round(time.monotonic() - started, 1)
            return result
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def describe(number, fault):
    return {"number": number, "function": fault.function.name, "operator": fault.operator,
            "file": fault.function.path, "line": fault.line, "before": fault.before, "after": fault.after}


def show(result):
    return (f"{result['number']:4} {result['function']} ({result['operator']}), "
            f"{result['file']}:{result['line']}\n     - {result['before'].strip()}\n"
            f"     + {result['after'].strip()}")


def table(results):
    """The rows of the table: by room, then the total; and the share that tests found."""
    kinds = ("equivalent", "unit", "sim", "world", "none")
    rooms = collections.defaultdict(collections.Counter)
    for result in results:
        for room in (result["room"], "total"):
            rooms[room][result["found"]] += 1
    lines = [f"{'component':24} {'planted':>7} {'equivalent':>10} {'unit':>5} {'sim':>5} {'world':>5} "
             f"{'not found':>9} {'share':>6}"]
    for room in [*sorted(set(rooms) - {"total"}), "total"]:
        count = rooms[room]
        real = count.total() - count["equivalent"]
        share = f"{100 * (real - count['none']) / real:.0f} %" if real else "-"
        lines.append(f"{room:24} {count.total():7} {count['equivalent']:10} " +
                     " ".join(f"{count[kind]:5}" for kind in kinds[1:4]) + f" {count['none']:9} {share:>6}")
    real = [result for result in results if result["found"] != "equivalent"]
    called = [result for result in real if result["tests"]]
    found = [result for result in called if result["found"] in ("unit", "sim")]
    lines.append(f"{sum(r['uncompiled'] for r in results)} that did not compile were drawn again; unit and "
                 f"simulation tests found {len(found)} of {len(real)}, of {len(called)} in functions that "
                 "any of them calls")
    return "\n".join(lines)


def report(results, options, build):
    results = sorted(results, key=lambda result: result["number"])
    survivors = [result for result in results if result["found"] == "none"]
    name = f"mutation-{options.seed}{'-only' if options.only else ''}.json"
    (build / name).write_text(json.dumps({"seed": options.seed, "count": options.count, "results": results},
                                         indent=1))
    if not results:
        return
    print("\n" + table(results))
    print(f"\nnot found ({len(survivors)}):")
    for result in survivors:
        print(f"{show(result)}\n     {result['tests']} tests call the function")
    spent = sum(result["seconds"] for result in results) / len(results)
    print(f"\n{spent:.1f} s a fault and processor; all of it is in {build.name}/{name}")


def same_fault(old, queue):
    return any((old["function"], old["before"], old["after"]) ==
               (fault.function.name, fault.before, fault.after) for fault in queue)


def earlier(options, build, drawn):
    """Results of an earlier run for faults that are still the same ones."""
    path = build / f"mutation-{options.seed}.log"
    kept = {}
    if options.resume and path.exists():
        for line in path.read_text().splitlines():
            result = json.loads(line)
            number = result["number"]
            if number < len(drawn) and same_fault(result, drawn[number]):
                kept[number] = result
    return kept


def hunt_all(hunt, drawn, wanted, build):
    options = hunt.options
    done = earlier(options, build, drawn)
    started, stop = time.monotonic(), False
    log = open(build / f"mutation-{options.seed}.log", "a", encoding="utf-8")

    def one(number):
        if stop or (options.minutes and time.monotonic() - started > 60 * options.minutes):
            return None
        return hunt.examine(number, drawn[number])

    with log, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(one, number) for number in wanted if number not in done]
        try:
            for job in concurrent.futures.as_completed(jobs):
                if result := job.result():
                    done[result["number"]] = result
                    log.write(json.dumps(result) + "\n")
                    log.flush()
                    by = result["found_by"] or result.get("reason", "-")
                    print(f"{show(result)}\n     {result['found']}: {by}, {result['seconds']} s", flush=True)
        except KeyboardInterrupt:
            stop = True
            print("interrupted; what has been found so far:")
    return [result for number, result in done.items() if number in wanted]


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-mutation")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS") or os.cpu_count()))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--slow", type=float, default=20)
    return parser.parse_args()


def main():
    options = parse()
    build = options.build.resolve()
    try:
        shop = workshop.Workshop(ROOT, build, options.jobs)
        texts = {source: (shop.tree / source).read_text() for source in shop.sources}
        drawn = operators.draw(texts, options.count, options.seed)
        wanted = [number for number in options.only or range(len(drawn)) if number < len(drawn)]
        if options.list:
            for number in wanted:
                print(show(describe(number, drawn[number][0])))
            return
        print("building (some minutes the first time)", flush=True)
        shop.build(options.all)
        shop.build_asan()
        print("calling each test once, to learn which functions it calls", flush=True)
        calls = shop.calls_of_tests(options.slow, print)
        report(hunt_all(Hunt(shop, options, texts, calls), drawn, wanted, build), options, build)
    except workshop.Failure as failure:
        sys.exit(str(failure))


if __name__ == "__main__":
    main()
