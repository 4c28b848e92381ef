"""What the structure checks share: the files of the tree, the exceptions, and how findings are told."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

# LH_STRUCTURE_ROOT: another tree, for check_checks.py.
ROOT = pathlib.Path(os.environ.get("LH_STRUCTURE_ROOT") or pathlib.Path(__file__).resolve().parents[2])
# Components that are pure, and those that are but for the files in impure-files.txt.
PURE = ["src/base", "src/wire", "src/congestion", "src/control", "src/eager", "src/onesided",
        "netsim/base", "netsim/engine", "netsim/flowcontrol"]
CORE_PURE = ["src/history", "src/collective", "src/collective/choose", "src/xp",
             "src/model", "src/schemes", "src/plan", "src/coding", "src/coding/hadamard", "src/sdr",
             "src/message", "src/probe", "netsim",
             "netsim/config", "netsim/run", "netsim/topology", "netsim/transport", "netsim/workload"]
# Components whose sources all have a unit test of their own.
WHOLE = [*PURE, "src/schemes"]
# The parts of a connection drive the SDR layer and the coder below them: what the headers of those promise.
BELOW_PARTS = ["src/sdr", "src/store", "src/message/parity_coding.h"]
# All others; with their sub-folders.
IMPURE = ["src/coding/hadamard/cuda", "src/fabric", "src/xp/udp", "src/link", "src/device", "src/store",
          "src/keys", "src/group", "src/launch", "src/plugins/settings", "src/plugins/nccl",
          "src/plugins/mpi", "src/plugins/libfabric", "netsim/fabric", "netsim/protocol", "cli"]
EXCEPTIONS = pathlib.Path("tests/structure/exceptions.txt")


def arguments(*flags):
    parser = argparse.ArgumentParser()
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--record", action="store_true", help="of check_abi.py")
    return parser.parse_args()


def _listed():
    """Tracked files and new ones that git does not ignore; without git, all but build folders."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-co", "--exclude-standard", "-z"]
        git = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return [pathlib.Path(name) for name in git.stdout.split("\0") if name]
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return [path for path in paths if not re.match(r"(build(-.*)?|\.git)$", path.parts[0])
            and "__pycache__" not in path.parts]


def files(*suffixes, under=()):
    """Paths relative to the root, sorted; of these suffixes and below these folders, when given."""
    found = []
    for path in _listed():
        if suffixes and path.suffix not in suffixes:
            continue
        if under and not any(str(path).startswith(folder + "/") or str(path) == folder for folder in under):
            continue
        if (ROOT / path).is_file():
            found.append(path)
    return sorted(set(found))


def lines(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace").split("\n")


def includes(path):
    """(line number, opening character, name) of every #include."""
    for number, line in enumerate(lines(path), 1):
        match = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match[1], match[2]


def symbols(built):
    """source -> (global names that its object file defines, names that it leaves undefined)."""
    found = {source: (set(), set()) for source in built}
    sources = {str(path): source for source, path in built.items()}
    if sources:
        result = subprocess.run(["nm", "-A", "-P", *sources], capture_output=True, text=True, check=True)
        for line in result.stdout.splitlines():
            path, name, kind = line.rsplit(": ", 1)[0], *line.rsplit(": ", 1)[1].split()[:2]
            if kind in "Uvw":
                found[sources[path]][1].add(name.split("@")[0])
            elif kind.isupper():
                found[sources[path]][0].add(name)
    return found


def objects(build):
    """source path -> object file, of every component that was built."""
    found = {}
    for path in sorted([*build.glob("src/**/CMakeFiles/room_*.dir/**/*.o"),
                        *build.glob("netsim/CMakeFiles/room_*.dir/**/*.o"),
                        *build.glob("CMakeFiles/longhaul.dir/cli/**/*.o"),
                        *build.glob("CMakeFiles/cli_parts.dir/cli/**/*.o")]):
        folder, inside = str(path.relative_to(build)).split("CMakeFiles/", 1)
        # CMake writes ".." as "__".
        inside = inside.split("/", 1)[1].removesuffix(".o").replace("__/", "../")
        source = pathlib.Path(os.path.normpath(pathlib.Path(folder) / inside))
        if (ROOT / source).exists():
            found.setdefault(source, path)
    return found


class Exceptions:
    """Today's exceptions of one kind. One that is not used, or is larger than needed, is a finding."""

    def __init__(self, kind):
        self.entries = {}
        for number, line in enumerate(lines(EXCEPTIONS), 1):
            words = line.split("#")[0].split()
            if words and words[0] == kind:
                limit = int(words.pop()) if words[-1].isdigit() else 0
                self.entries[" ".join(words[1:])] = [number, limit, False]

    def covers(self, name, value=0, report=None):
        """True when the exception allows this; marks it as used."""
        entry = self.entries.get(name)
        if entry is None:
            return False
        entry[2] = True
        if report is not None and value < entry[1]:
            report.add(EXCEPTIONS, entry[0], f"allows {entry[1]} for {name}, which is {value} now",
                       f"lower it to {value}: exceptions may only shrink")
        return value <= entry[1]

    def tell_unused(self, report):
        for name, (number, _, used) in self.entries.items():
            if not used:
                report.add(EXCEPTIONS, number, f"{name} needs no exception any more", "delete this line")


class Report:
    """Collects findings; done() prints them and ends the check."""

    def __init__(self, what):
        self.what = what
        self.findings = []

    def add(self, path, line, wrong, remedy):
        self.findings.append((str(path), line, wrong, remedy))

    def done(self, looked_at):
        for path, line, wrong, remedy in sorted(self.findings):
            print(f"{path}:{line}: {wrong}\n    {remedy}")
        if self.findings:
            print(f"{self.what}: {len(self.findings)} findings in {looked_at}")
            sys.exit(1)
        print(f"{self.what}: {looked_at} looked at, nothing found")
