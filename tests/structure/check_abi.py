"""The version moves when the binary interface does.

The last release is recorded in tests/install/abi-VERSION.txt: every exported symbol with its library, the
size of every public struct. A symbol that is gone or that another library exports, or a struct whose size
differs, needs another minor version, as that is in the SONAME; what is new needs none. At a release:
check_abi.py --record.
"""

import pathlib
import re
import subprocess
import tempfile

import tree

LIBRARIES = ("liblonghaul.so", "liblonghaul-sim.so")
FOLDER = pathlib.Path("tests/install")


def version():
    text = "\n".join(tree.lines("include/longhaul/longhaul.h"))
    return ".".join(re.findall(rf"LH_VERSION_{part} (\d+)", text)[-1] for part in ("MAJOR", "MINOR"))


def symbols(build):
    found = {}
    for library in LIBRARIES:
        if (build / library).exists():
            out = subprocess.run(["nm", "-D", "-P", "--defined-only", str(build / library)],
                                 capture_output=True, text=True, check=True).stdout
            for line in out.splitlines():
                if re.match(r"(lh|sdr)_", line):
                    found[line.split()[0].split("@")[0]] = library
    return found


def sizes(cc):
    """struct -> bytes, of those that a public header defines."""
    headers = tree.files(".h", under=("include",))
    names = sorted({name for path in headers
                    for name in re.findall(r"^struct (\w+) \{", "\n".join(tree.lines(path)), re.MULTILINE)})
    program = "#include <stdio.h>\n"
    program += "".join(f"#include <{path.relative_to('include')}>\n" for path in headers)
    program += "int main(void)\n{\n"
    program += "".join(f'    printf("{name} %zu\\n", sizeof(struct {name}));\n' for name in names) + "}\n"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([cc, "-x", "c", "-std=c17", "-Iinclude", "-", "-o", f"{folder}/sizes"], input=program,
                       cwd=tree.ROOT, text=True, check=True)
        out = subprocess.run([f"{folder}/sizes"], capture_output=True, text=True, check=True).stdout
    return dict(line.split() for line in out.splitlines())


def record(build, cc):
    path = FOLDER / f"abi-{version()}.txt"
    text = "".join(f"symbol {name} {library}\n" for name, library in sorted(symbols(build).items()))
    text += "".join(f"struct {name} {size}\n" for name, size in sorted(sizes(cc).items()))
    (tree.ROOT / path).write_text(text)
    print(f"wrote {path}")


def breaches(released, now):
    """(line, what changed) of what programs built for the release would miss."""
    for number, line in enumerate(released, 1):
        kind, name, value = line.split()
        today = now[kind].get(name)
        if today != value:
            yield number, f"{kind} {name} was {value}, is {today or 'gone'}"


def check_soname(build, report):
    for library in LIBRARIES:
        dynamic = subprocess.run(["readelf", "-d", str(build / library)], capture_output=True, text=True,
                                 check=True).stdout
        soname = re.search(r"SONAME.*\[(.*)\]", dynamic)
        if not soname or soname[1] != f"{library}.{version()}":
            report.add("CMakeLists.txt", 1, f"{library}: SONAME is {soname and soname[1]}",
                       f"make it {library}.{version()}")


def main():
    report = tree.Report("abi")
    arguments = tree.arguments()
    if arguments.record:
        record(arguments.build, arguments.cc)
        return
    now = {"symbol": symbols(arguments.build), "struct": sizes(arguments.cc)}
    if not now["symbol"] or not now["struct"]:
        report.add("include", 1, "no symbol or no struct found", "correct this check")
    number = {path: [int(n) for n in re.findall(r"\d+", path.name)]
              for path in tree.files(".txt", under=[str(FOLDER)]) if path.name.startswith("abi-")}
    last = max(number, key=number.get)
    released = [line for line in tree.lines(last) if line]
    found = list(breaches(released, now))
    if last.name == f"abi-{version()}.txt":
        for line, what in found:
            report.add(last, line, what, "raise the minor version (CMakeLists.txt, longhaul.h), or undo it")
    # That a change would be seen: of one symbol and of one struct that have not changed.
    changed = {line for line, _ in found}
    intact = [line.split()[:2] for number, line in enumerate(released, 1) if number not in changed]
    names = {kind: next(name for other, name in intact if other == kind) for kind in now}
    broken = {kind: {**values, names[kind]: "another"} for kind, values in now.items()}
    if len(list(breaches(released, broken))) != len(found) + len(names):
        report.add(last, 1, "a change of a symbol and of a struct is not seen", "correct this check")
    check_soname(arguments.build, report)
    report.done(f"{len(released)} recorded symbols and structs, {len(found)} changed since {last.stem}")


if __name__ == "__main__":
    main()
