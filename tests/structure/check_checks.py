"""Each check finds what it is for: on a tiny tree it finds nothing, and each planted breach it reports."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tree

HERE = pathlib.Path(__file__).resolve().parent
LICENCE = "/* SPDX-License-Identifier: BSD-3-Clause */\n"
EXPORT = '__attribute__((visibility("default")))'
A, B, N = "src/base/a.c", "src/wire/b.c", "netsim/fabric/n.c"
P = "src/plugins/nccl/p.c"
ABI = "tests/install/abi-0.1.txt"
TREE = {
    "README.md": "Tiny.\n",
    "cli/main.c": LICENCE + "#include <longhaul/a.h>\n",
    "docs/man/lh_a.3": ".SH NAME\nlh_a \\- a number\n.SH SYNOPSIS\n",
    "docs/man/lh_n.3": ".SH NAME\nlh_n \\- another number\n.SH SYNOPSIS\n",
    "docs/man/lh_stats_count.3": ".SS Counters\n.TP\n.B packets\nThat were sent.\n",
    "include/longhaul/a.h": LICENCE + f"#define LH_API {EXPORT}\nLH_API int lh_a(void);\n",
    "include/longhaul/longhaul.h": LICENCE + "#define LH_VERSION_MAJOR 0\n#define LH_VERSION_MINOR 1\n",
    "include/longhaul/n.h": LICENCE + "#include <longhaul/a.h>\nstruct lh_n {\n    int n;\n};\n"
                                      "LH_API int lh_n(void);\n",
    "include/longhaul/stats.h": LICENCE + '/*\n    X(packets, "that were sent")\n*/\n',
    "src/longhaul.map": "LONGHAUL_0 {\nglobal:\n    lh_a;\nlocal:\n    *;\n};\n",
    "netsim/longhaul-sim.map": "LONGHAUL_SIM_0 {\nglobal:\n    lh_n;\nlocal:\n    *;\n};\n",
    N: LICENCE + "#include <longhaul/n.h>\n\nint lh_n(void)\n{\n    return 4;\n}\n",
    "src/base/a.h": LICENCE + "#include <longhaul/a.h>\n",
    A: LICENCE + '#include "base/a.h"\n\nint lh_a(void)\n{\n    return 1;\n}\n',
    "src/wire/b.h": LICENCE + "int b(void);\n",
    B: LICENCE + '#include "wire/b.h"\n\n#include "base/a.h"\n\nint b(void)\n{\n    return lh_a();\n}\n',
    "src/wire/c.h": LICENCE + "int c(void);\n",
    "src/wire/c.c": LICENCE + '#include "wire/c.h"\n\nint c(void)\n{\n    return 3;\n}\n',
    P: LICENCE + "".join(f"\n{EXPORT} int ncclNetPlugin_v{i} = 1;\n" for i in range(6, 13)),
    ABI: "symbol lh_a liblonghaul.so\nsymbol lh_n liblonghaul-sim.so\nstruct lh_n 4\n",
    "tests/structure/exceptions.txt": "# none\n",
    "tests/structure/impure-files.txt": "# none\n",
    "tests/structure/rooms.txt": "src/base:\nsrc/wire: src/base\nsrc/plugins/nccl:\nnetsim/fabric:\ncli:\n",
    "tests/unit/base/test_a.c": LICENCE + "#include <stdio.h>\n",
    "tests/unit/wire/test_b.c": LICENCE + "#include <stdio.h>\n",
    "tests/unit/wire/test_c.c": LICENCE + "#include <stdio.h>\n",
}
EXCEPTIONS, ROOMS = "tests/structure/exceptions.txt", "tests/structure/rooms.txt"
LONG = "int long_one(void)\n{\n" + "    lh_a();\n" * 67 + "    return 0;\n}\n"
# check, what it must say, {file: text added to it}
BREACHES = [
    ("abi", "symbol lh_d was liblonghaul.so, is gone", {ABI: "symbol lh_d liblonghaul.so\n"}),
    ("abi", "struct lh_n was 8, is 4", {ABI: "struct lh_n 8\n"}),
    ("abi", "SONAME is", {"include/longhaul/longhaul.h": "#define LH_VERSION_MINOR 2\n"}),
    ("budgets", "71 lines, at most 70", {A: "\n" + LONG}),
    ("budgets", "at most 70", {"src/base/k.cu": LONG}),
    ("budgets", "at most 1000", {"tests/structure/x.py": "x = 1\n" * 1001}),
    ("budgets", "111 columns", {A: "/*" + "-" * 107 + "*/\n"}),
    ("budgets", "docs/x.md:1: 111 columns", {"docs/x.md": "x" * 111 + "\n"}),
    ("budgets", "at most 120", {"README.md": "x\n" * 120}),
    ("budgets", "101 columns, at most 100", {"README.md": "x" * 101 + "\n"}),
    ("budgets", "entries at the top", {f"top{i}/x": "x\n" for i in range(12)}),
    ("budgets", "needs no exception", {EXCEPTIONS: f"file {A} 900\n"}),
    ("circles", "in a circle of 2 files",
     {"src/wire/c.c": "\nint b(void);\nint d(void)\n{\n    return b();\n}\n",
      B: "\nint c(void);\nint e(void)\n{\n    return c();\n}\n"}),
    ("circles", "src/coding/hadamard/cuda/e.c:1: in a circle of 2 files",
     {"src/coding/hadamard/cuda/e.c": "int g(void);\nint f(void)\n{\n    return g();\n}\n",
      "src/coding/hadamard/cuda/f.c": "int f(void);\nint g(void)\n{\n    return f();\n}\n"}),
    ("circles", "needs no exception", {EXCEPTIONS: "circle src/wire 2\n"}),
    ("circles", "src/wire/b:1: in a circle of 2 files; includes src/wire/c (wire/c.h)",
     {B: '#include "wire/c.h"\n', "src/wire/c.c": '#include "wire/b.h"\n'}),
    ("circles", "needs no exception", {EXCEPTIONS: "include-circle src/wire 2\n"}),
    ("circles", "src/base/k:1: in a circle of 2 files; includes src/base/l (base/l.cuh)",
     {"src/base/k.cu": '#include "base/k.cuh"\n', "src/base/k.cuh": '#include "base/l.cuh"\n',
      "src/base/l.cu": '#include "base/k.cuh"\n', "src/base/l.cuh": ""}),
    # The exception of the component with most files covers the circle; that of another one does not.
    ("circles", "exceptions.txt:3: src/base needs no exception", {
        EXCEPTIONS: "include-circle src/wire 3\ninclude-circle src/base 3\n", B: '#include "wire/c.h"\n',
        "src/wire/c.h": '#include "base/a.h"\n', "src/base/a.h": '#include "wire/b.h"\n'}),
    ("counters", "bytes has no entry", {"include/longhaul/stats.h": '/*\n    X(bytes, "x")\n*/\n'}),
    ("counters", "bytes is no counter", {"docs/man/lh_stats_count.3": ".TP\n.B bytes\nx\n"}),
    ("headers", "does not compile alone in C17", {"src/base/a.h": "uint32_t a(void);\n"}),
    ("headers", "its first include is stdio.h", {"src/base/d.c": "#include <stdio.h>\n",
                                               "src/base/d.h": "\n"}),
    ("pages", 'struct lh_n: not as in its header, from "int n;"',
     {"docs/man/lh_n.3": ".EX\nstruct lh_n {\n    int m;\n};\n.EE\n"}),
    ("pages", "struct lh_m: no header has it", {"docs/man/lh_n.3": "struct lh_m {\n    int n;\n};\n"}),
    ("pages", "LH_D of enum lh_d is in no page", {"include/longhaul/n.h": "enum lh_d { LH_D };\n"}),
    ("parts", "26 sources, at most 25", {f"cli/x{i}.c": "\n" for i in range(25)}),
    ("parts", "has the same name", {"cli/x.c": "\n", "netsim/x.c": "\n"}),
    ("parts", "files, at most", {f"include/longhaul/x{i}.h": "\n" for i in range(550)}),
    ("parts", "has no header of its own", {"src/base/d.c": "\n"}),
    ("parts", "has no unit test", {"src/base/d.c": "\n"}),
    ("parts", "has no file of this name", {"tests/unit/base/test_z.c": "\n"}),
    ("parts", "is in none of PURE", {"src/other/x.c": "\n"}),
    ("parts", "needs no exception", {EXCEPTIONS: f"unit {A}\n"}),
    ("purity", "an allocator", {A: "\n#include <stdlib.h>\nvoid *d(void)\n{\n    return malloc(1);\n}\n"}),
    ("purity", "a clock", {A: "\n#include <time.h>\nlong d(void)\n{\n    return time(0);\n}\n"}),
    ("purity", "does not exist", {"tests/structure/impure-files.txt": "src/sdr/x.c  # why\n"}),
    ("rooms", "src/base may not include src/wire", {A: '#include "wire/b.h"\n'}),
    ("rooms", "does not include src/base", {ROOMS: "src/sdr: src/base\n"}),
    ("rooms", "is listed below it", {ROOMS: "src/sdr: src/probe\n"}),
    ("rooms", "is no folder", {ROOMS: "src/ghost:\n"}),
    ("rooms", "is not in tests/structure/rooms.txt", {"src/sdr/x.c": "\n"}),
    ("rooms", "includes no header", {A: '#include "wire/b.c"\n'}),
    ("rooms", "declares what another file defines", {A: "extern int b(void);\n"}),
    ("rooms", "src/base may not include src/wire", {"src/base/k.cu": '#include "wire/b.h"\n'}),
    ("rooms", "is outside of cli/", {"cli/main.c": '#include "base/a.h"\n'}),
    ("rooms", "is not found where the headers are installed", {"include/longhaul/a.h": '#include "b.h"\n'}),
    ("symbols", "is public but not exported", {"include/longhaul/a.h": "LH_API int lh_d(void);\n"}),
    ("symbols", "has no man page", {"include/longhaul/a.h": "LH_API int lh_d(void);\n"}),
    ("symbols", "no public header declares lh_x",
     {"src/coding/hadamard/cuda/longhaul-cuda.map": "CUDA_0 {\nglobal:\n    lh_x;\nlocal:\n    *;\n};\n"}),
    ("symbols", "both libraries export lh_a", {N: f"\n{EXPORT} int lh_a(void)\n" "{\n    return 1;\n}\n"}),
    ("symbols", "liblonghaul.so contains lh_n", {A: "\nint lh_n(void)\n{\n    return 1;\n}\n"}),
    ("symbols", "the variable d is in both", {A: "\nint d = 1;\n", N: "\nint d = 1;\n"}),
    ("symbols", "which is not listed", {A: f"\n{EXPORT} int lh_d(void)\n" "{\n    return 1;\n}\n"}),
    ("symbols", "exports lh_d", {P: f"\n{EXPORT} int lh_d = 1;\n"}),
    ("text", "a tab", {A: "\tint d;\n"}),
    ("text", "white space at the end", {A: "int d; \n"}),
    ("text", "no newline at the end", {A: "int d;"}),
    ("text", "an empty line at the end", {A: "int d;\n\n"}),
    ("text", "a tab", {"src/base/k.cu": LICENCE + "\tint d;\n"}),
    ("text", "no licence line", {"src/base/d.h": "int d;\n"}),
    ("words", '"told"', {A: 'const char *d = "the peer is to"\n                "ld";\n'}),
    ("words", '"so many"', {"docs/man/lh_a.3": "It sends so\n.B many\npackets.\n"}),
    ("words", '"room"', {"README.md": "There is no room.\n"}),
    ("words", '"overtaken" (1 in all)', {A: "int is_overtaken_now;\n"}),
    ("words", '"overtaken" (1 in all)', {A: "int isOvertaken;\n"}),
    ("words", '"seat" (2 in all)', {A: "int seats, SEAT_COUNT;\n"}),
    ("words", '"most" (1 in all)', {A: "int at_most; /* At\n * most 3. */\n"}),
    ("words", '"likewise" (1 in all)', {A: "/* Likewise. */\n"}),
    ("words", "lower it to 1", {"README.md": "It was told.\n", EXCEPTIONS: "phrase told 2\n"}),
]


def write(root, path, text, mode):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    with open(root / path, mode, encoding="utf-8") as file:
        file.write(text)


def build(root, cc, sources):
    """Object files where CMake puts them, and the libraries."""
    for source in sources:
        if source.startswith(("src/", "netsim/")) and source.endswith(".c"):
            top, room, name = source.split("/", 2)
            target = root / f"build/{top}/CMakeFiles/room_{room if top == 'src' else top}.dir/{room}/{name}.o"
            if "/" in name:  # a folder with a CMake file of its own
                folder, name = source.rsplit("/", 1)
                target = root / f"build/{folder}/CMakeFiles/room_{room}.dir/{name}.o"
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([cc, "-w", "-fPIC", "-fvisibility=hidden", "-Isrc", "-Iinclude", "-c", source,
                            "-o", target], cwd=root, check=True)
    for library, top in (("liblonghaul.so", "src"), ("liblonghaul-sim.so", "netsim"),
                         ("libnccl-net-longhaul.so", "src/plugins/nccl")):
        objects = [path for path in (root / "build" / top).rglob("*.o")
                   if top != "src" or "plugins" not in path.parts]
        subprocess.run([cc, "-shared", f"-Wl,-soname,{library}.0.1", "-o", f"build/{library}", *objects],
                       cwd=root, check=True)


def run(root, check):
    done = subprocess.run([sys.executable, str(HERE / f"check_{check}.py"), "--build", str(root / "build")],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "LH_STRUCTURE_ROOT": str(root)})
    return done.returncode, done.stdout + done.stderr


def try_breach(clean, number, cc):
    """What is wrong with the check, or None."""
    check, wanted, added = BREACHES[number]
    root = clean.parent / f"breach{number}"
    shutil.copytree(clean, root)
    for path, text in added.items():
        write(root, path, text, "a")
    if check in ("circles", "purity", "symbols"):
        build(root, cc, [path for path in added if path.endswith(".c")])
    status, output = run(root, check)
    shutil.rmtree(root)
    if status != 1 or wanted not in output:
        return f'{check}: a breach that it must report with "{wanted}" (status {status}):\n{output}'
    return None


def main():
    cc = tree.arguments().cc
    report = tree.Report("checks")
    checks = sorted({check for check, _, _ in BREACHES})
    for path in sorted(HERE.glob("check_*.py")):
        name = path.stem.removeprefix("check_")
        if name not in (*checks, "checks"):
            report.add(path.name, 1, f"no breach is planted for {name}", "add one to BREACHES")
    workers = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    with tempfile.TemporaryDirectory() as folder, workers as pool:
        clean = pathlib.Path(folder) / "clean"
        for path, text in TREE.items():
            write(clean, path, text, "w")
        for room in tree.PURE + tree.CORE_PURE + tree.IMPURE:
            (clean / room).mkdir(parents=True, exist_ok=True)
        build(clean, cc, TREE)
        for check, (status, output) in zip(checks, pool.map(lambda check: run(clean, check), checks)):
            if status:
                report.add(f"check_{check}.py", 1, f"fails on a clean tree: {output}", "correct TREE")
        for wrong in pool.map(lambda number: try_breach(clean, number, cc), range(len(BREACHES))):
            if wrong:
                report.add("tests/structure/check_checks.py", 1, wrong, "let the check find it")
    report.done(f"{len(BREACHES)} planted breaches")


main()
