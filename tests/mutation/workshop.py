"""Builds what faults are planted in: a copy of the tree, a shared library, the tests linked to it.

All of it is below one build folder; nothing else is written:

    tree/     the copy; only changed files are written, so that what is built stays
    cmake/    configured only: it says how each source is compiled, and which libraries each test needs
    objects/  -O1 -g0, visible symbols; what is below src is read from a pipe, as each faulty version of it is
    cover/    what is below src once more, with -finstrument-functions: which functions does each test call?
    asan/     and once more, with -fsanitize=address
    tests/    the tests

A fault costs one compiler run and the link of the shared library; no test is linked again.
"""

import concurrent.futures
import fcntl
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

# Tells each function when it is first called: what is killed has told, too.
COVER_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define SLOTS 65536
#define PLAIN __attribute__((no_instrument_function))
static uintptr_t seen[SLOTS], base;
static int out = -1;
PLAIN __attribute__((constructor(101))) static void begin(void) /* before those of src */
{
    const char *path = getenv("MUTATION_COVER");
    Dl_info info;
    if (path && dladdr((void *)&seen, &info)) {
        base = (uintptr_t)info.dli_fbase;
        out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
}
PLAIN void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    uintptr_t at = (uintptr_t)function, slot = (at >> 4) % SLOTS;
    while (seen[slot] && seen[slot] != at)
        slot = (slot + 1) % SLOTS;
    if (seen[slot] || out < 0)
        return;
    seen[slot] = at;
    dprintf(out, "%lx\n", (unsigned long)(at - base));
}
PLAIN void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function;
    (void)caller;
}
"""
# Options that are chosen here.
OURS = re.compile(r"-(fvisibility|g\d?$|O\w?$|W)")
TIMED_OUT = -1000
MEMORY_MAX = 12 << 30
# As .ci/ctest has it: memory that nobody initialised is not zero.
FILLED_MEMORY = {"MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
ASAN_FLAG = "-fsanitize=address"
WORLD_PARTS = ("tests/world/", "tests/support/scheme_check.c", "tests/support/collective_call.c")


class Failure(Exception):
    """A command that has to succeed did not."""


def call(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Failure(f"{shlex.join(map(str, command))[:400]}\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    return done.stdout


def copy_tree(root, place):
    """Copies what git knows or does not ignore; removes what is not there any more."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, check=True).stdout.decode().split("\0")
    wanted = {name for name in listed if name and (root / name).is_file()}
    for name in wanted:
        source, target = root / name, place / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    for path in [path for path in place.rglob("*") if path.is_file()]:
        if str(path.relative_to(place)) not in wanted and "__pycache__" not in path.parts:
            path.unlink()


def limit_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_memory():
    limit_core()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))


class Workshop:
    def __init__(self, root, place, jobs):
        self.place, self.jobs = place, jobs
        self.tree, self.cmake = place / "tree", place / "cmake"
        place.mkdir(parents=True, exist_ok=True)
        self.lock = open(place / "lock", "w", encoding="utf-8")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Failure(f"{place}: another run uses it (choose another one with --build)") from None
        for left in place.glob("fault-*"):
            shutil.rmtree(left, ignore_errors=True)
        copy_tree(root, self.tree)
        call(["cmake", "-S", self.tree, "-B", self.cmake, "-DLH_BENCH=OFF", "-DLH_CUDA=OFF"])
        self.commands = self._read_commands()
        self.sources = sorted(name for name in self.commands if name.startswith("src/"))

    # ---- how things are compiled and linked ------------------------------------------------------

    def _read_commands(self):
        """source -> (target, words of the compiler's command line without input and output)."""
        found = {}
        for entry in json.loads((self.cmake / "compile_commands.json").read_text()):
            path = pathlib.Path(entry["file"])
            if not path.is_relative_to(self.tree):
                continue
            words, kept = iter(shlex.split(entry["command"])), []
            for word in words:
                if word == "-o":
                    target = re.search(r"CMakeFiles/([^/]*)\.dir/", next(words))[1]
                elif word not in ("-c", entry["file"]) and not OURS.match(word):
                    kept.append(word)
            found.setdefault(str(path.relative_to(self.tree)), (target, kept))
        return found

    def libraries(self, target):
        """What a test's target is linked with that is not built here, and its --wrap options."""
        words = shlex.split((self.cmake / f"tests/CMakeFiles/{target}.dir/link.txt").read_text())
        return [word for word in words if re.match(r"-l|-pthread|-Wl,--wrap|/.*\.so", word)
                and not word.startswith(str(self.cmake))]

    def object_of(self, source, folder="objects"):
        return self.place / folder / (source + ".o")

    def compile_text(self, source, text, target, *flags):
        """Compiles a text as if it were that source of src; all others as they are."""
        command = [*self.commands[source][1], "-O1", "-g0", "-w", "-fvisibility=default", *flags, "-c", "-o",
                   str(target)]
        if not source.startswith("src/"):  # may include what stands beside it
            return subprocess.run([*command, str(self.tree / source)], cwd=self.cmake, capture_output=True,
                                  text=True, check=False)
        return subprocess.run([*command, "-x", "c", "-"], input=f'# 1 "{source}"\n{text}', cwd=self.cmake,
                              capture_output=True, text=True, check=False)

    def _compile(self, source, folder, flags):
        target = self.object_of(source, folder)
        words = " ".join([*self.commands[source][1], *flags])
        depends, record = target.with_suffix(".d"), target.with_suffix(".command")
        if target.exists() and depends.exists() and record.exists() and record.read_text() == words:
            names = depends.read_text().replace("\\\n", " ").split(":", 1)[1].split()
            paths = [self.tree / source, *(self.cmake / name for name in names if name != "-")]
            if all(path.exists() and path.stat().st_mtime <= target.stat().st_mtime for path in paths):
                return
        target.parent.mkdir(parents=True, exist_ok=True)
        record.unlink(missing_ok=True)
        done = self.compile_text(source, (self.tree / source).read_text(), target, *flags,
                                 "-MMD", "-MF", str(depends), "-MT", "it")
        if done.returncode != 0:
            raise Failure(f"{source}: {done.stderr[-1500:]}")
        record.write_text(words)

    def _compile_all(self, sources, folder="objects", *flags):
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for job in [pool.submit(self._compile, source, folder, flags) for source in sources]:
                job.result()

    def library_sources(self):
        return [name for name in self.commands if name.startswith(("src/", "netsim/", "cli/"))
                and name != "cli/main.c"]

    def tests(self):
        """name -> source, of unit and simulation tests."""
        return {name.removeprefix("tests/").removesuffix(".c"): name for name in sorted(self.commands)
                if re.match(r"tests/(unit|sim)/(.*/)?test_[^/]*\.c$", name)}

    def link_library(self, target, replaced=None, folder="objects", extra=()):
        """The shared library; one source's object may be another one."""
        objects = [str((replaced or {}).get(source) or
                       self.object_of(source, folder if source.startswith("src/") else "objects"))
                   for source in self.library_sources()]
        listing = pathlib.Path(str(target) + ".objects")
        listing.write_text("\n".join(objects))
        some_test = next(iter(self.tests().values()))
        libraries = self.libraries(self.commands[some_test][0])
        call(["gcc", "-shared", "-Wl,-soname,libmutated.so", "-o", target, f"@{listing}", *extra, *libraries,
              "-lm", *self.linker()])

    @staticmethod
    def linker():
        return ["-fuse-ld=gold"] if shutil.which("ld.gold") else []

    def link_world(self, target, replaced=None):
        parts = [name for name in self.commands if name.startswith(WORLD_PARTS)]
        objects = [str((replaced or {}).get(source) or self.object_of(source))
                   for source in [*parts, *self.library_sources()]]
        listing = pathlib.Path(str(target) + ".objects")
        listing.write_text("\n".join(objects))
        call(["gcc", "-o", target, f"@{listing}", *self.libraries("test_world"), "-lm"])

    def _link_test(self, name, source):
        target = self.place / "tests" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        objects = [self.object_of(source), self.place / "libsupport.so", self.place / "libmutated.so"]
        if target.exists() and target.stat().st_mtime >= objects[0].stat().st_mtime:
            return
        call(["gcc", "-o", target, *objects, *self.libraries(self.commands[source][0]), "-lm"])

    def build(self, world):
        started = time.monotonic()
        tests = self.tests()
        support = [name for name in self.commands if name.startswith("tests/support/")]
        parts = [name for name in self.commands if name.startswith("tests/world/")] if world else []
        self._compile_all([*self.library_sources(), *tests.values(), *support, *parts])
        self.link_library(self.place / "libmutated.so")
        call(["gcc", "-shared", "-Wl,-soname,libsupport.so", "-o", self.place / "libsupport.so",
              *map(self.object_of, support)])
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for job in [pool.submit(self._link_test, *test) for test in tests.items()]:
                job.result()
        return time.monotonic() - started

    # ---- the address sanitizer -------------------------------------------------------------------

    def build_asan(self):
        """The library whose objects from src are instrumented; tests get its runtime preloaded."""
        self._compile_all(self.sources, "asan", ASAN_FLAG)
        self.link_library(self.place / "asan/libmutated.so", folder="asan", extra=[ASAN_FLAG])
        runtime = call(["gcc", "-print-file-name=libasan.so"]).strip()
        self.asan_variables = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": f"hard_rss_limit_mb={MEMORY_MAX >> 20}"}

    # ---- running tests ---------------------------------------------------------------------------

    def run(self, command, seconds, library=None, **variables):
        """(exit status, seconds taken); TIMED_OUT at the time limit. Its processes end with it."""
        # The address sanitizer reserves more addresses than any limit would leave it.
        limits = limit_core if "LD_PRELOAD" in variables else limit_memory
        with tempfile.TemporaryDirectory(dir=self.place, prefix="fault-") as folder:
            environment = {**os.environ, **FILLED_MEMORY, "LH_SOURCE_DIR": str(self.tree),
                           "LH_BUILD_DIR": str(self.cmake), "TMPDIR": folder, **variables}
            environment["LD_LIBRARY_PATH"] = f"{library.parent if library else self.place}:{self.place}"
            started = time.monotonic()
            with subprocess.Popen([str(word) for word in command], cwd=folder, env=environment,
                                  preexec_fn=limits, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, start_new_session=True) as process:
                try:
                    status = process.wait(seconds)
                except subprocess.TimeoutExpired:
                    status = TIMED_OUT
                finally:
                    try:
                        os.killpg(process.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            return status, time.monotonic() - started

    def _prepare_cover(self):
        """Links the library that tells which functions are called; returns it and its names by offset."""
        self._compile_all(self.sources, "cover", "-finstrument-functions",
                          "-finstrument-functions-exclude-file-list=.h")
        place = self.place / "cover"
        (place / "hook.c").write_text(COVER_SOURCE)
        call(["gcc", "-O1", "-fPIC", "-c", place / "hook.c", "-o", place / "hook.o"])
        self.link_library(place / "libmutated.so", folder="cover", extra=[str(place / "hook.o")])
        names = {}
        for line in call(["nm", place / "libmutated.so"]).splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in "tT":
                names[int(words[0], 16)] = words[2].split(".")[0]
        return place / "libmutated.so", names

    def _measure(self, name, seconds, library, names):
        told_to = self.place / "cover" / (name.replace("/", "_") + ".calls")
        told_to.unlink(missing_ok=True)
        at = time.time()
        status, taken = self.run([self.place / "tests" / name], seconds, library, MUTATION_COVER=str(told_to))
        if status == TIMED_OUT:  # telling takes time
            status, taken = self.run([self.place / "tests" / name], seconds)
        lines = told_to.read_text().split() if told_to.exists() else []
        called = {names.get(int(line, 16), "") for line in lines} - {""}
        return {"test": name, "at": at, "status": status, "seconds": round(taken, 2), "limit": seconds,
                "functions": sorted(called)}

    def calls_of_tests(self, seconds, told):
        """test -> {seconds, functions}, without tests that fail; only what was built since is measured."""
        record = self.place / "calls.log"
        built = max(self.object_of(source).stat().st_mtime for source in self.library_sources())
        tests, known = self.tests(), {}
        for line in record.read_text().splitlines() if record.exists() else ():
            about = json.loads(line)
            source = tests.get(about["test"])
            short = about["status"] == TIMED_OUT and about["limit"] < seconds
            if source and not short and about["at"] >= max(built, self.object_of(source).stat().st_mtime):
                known[about["test"]] = about
        left = sorted(set(tests) - set(known), key=lambda name: (not name.startswith("unit/"), name))
        if left:
            library, names = self._prepare_cover()
            with open(record, "a", encoding="utf-8") as log, \
                    concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
                for job in concurrent.futures.as_completed(
                        [pool.submit(self._measure, name, seconds, library, names) for name in left]):
                    known[job.result()["test"]] = job.result()
                    log.write(json.dumps(job.result()) + "\n")
                    log.flush()
        for about in known.values():
            if about["status"] != 0:
                told(f"left out: {about['test']} " + (f"takes longer than {seconds:.0f} s"
                     if about["status"] == TIMED_OUT else f"fails without a fault ({about['status']})"))
        return {name: about for name, about in known.items() if about["status"] == 0}
