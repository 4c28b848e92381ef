"""Every header compiles alone (the public ones in C++ too), and every x.c includes its own x.h first."""

import concurrent.futures
import os
import re
import shutil
import subprocess

import tree

STRICT = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Iinclude"]


def compile_alone(job):
    path, command, include, language = job
    result = subprocess.run([*command, "-"], input=f"#include {include}\nextern int not_empty;\n",
                            cwd=tree.ROOT, capture_output=True, text=True, check=False)
    return path, language, result.returncode, result.stderr


def own_name(path):
    """How a header is included: from src, or from the root."""
    return str(path.relative_to("src") if path.parts[0] == "src" else path)


def jobs(cc, cxx):
    for path in tree.files(".h", under=("include",)):
        name = f"<{path.relative_to('include')}>"
        yield path, [cc, "-x", "c", "-std=c17", *STRICT], name, "C17"
        if cxx:
            yield path, [cxx, "-x", "c++", "-std=c++11", *STRICT], name, "C++11"
    for path in tree.files(".h", under=("src", "netsim", "cli")):
        yield (path, [cc, "-x", "c", "-std=gnu17", "-D_GNU_SOURCE", *STRICT, "-Isrc", "-I."],
               f'"{own_name(path)}"', "C17")


def check_own_header_first(path, report):
    own = path.with_suffix(".h")
    if not (tree.ROOT / own).exists():
        return
    wanted = own_name(own) if path.parts[0] in ("src", "netsim", "cli") else own.name
    number, _, name = next(tree.includes(path), (1, "", "nothing"))
    if name != wanted and not (path.parts[0] == "tests" and name == str(own.relative_to("tests"))):
        report.add(path, number, f"its first include is {name}",
                   f'include "{wanted}" first: it shows that the header needs nothing before it')


def main():
    report = tree.Report("headers")
    cc = tree.arguments().cc
    cxx = shutil.which("clang++" if "clang" in os.path.basename(cc) else "g++") or shutil.which("c++")
    work = list(jobs(cc, cxx))
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for path, language, status, errors in pool.map(compile_alone, work):
            if re.search("fatal error: '?(infiniband/|mpi.h)", errors):
                print(f"{path}: not looked at, its library's headers are missing, or not in the default path")
            elif status != 0:
                told = [line for line in errors.splitlines() if "error" in line] or errors.splitlines()
                report.add(path, 1, f"does not compile alone in {language}: {told[0] if told else status}",
                           "include what it uses; in C++ a cast or an extern \"C\" may be missing")
    sources = tree.files(".c")
    for path in sources:
        check_own_header_first(path, report)
    if not cxx:
        print("headers: no C++ compiler, C++ not looked at")
    report.done(f"{len(work)} header compilations, {len(sources)} sources")


main()
