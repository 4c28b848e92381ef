"""At most 25 sources a folder, names that are unique; each pure source has a header and a unit test.

Each component is listed in tree.py as pure or not; each unit test belongs to a file of its component.

Exceptions: "folder FOLDER N", "header FILE", "unit FILE".
"""

import collections
import pathlib
import statistics

import tree

SOURCES = 25
FILES = 553         # of src, cli, netsim and include together: raised with a mechanism of its own alone
MEDIAN_LINES = 200  # of these: may only be raised


def check_folders(sources, report):
    exceptions = tree.Exceptions("folder")
    count = collections.Counter(str(path.parent) for path in sources)
    for folder, number in sorted(count.items()):
        if number > SOURCES and not exceptions.covers(folder, number, report):
            report.add(folder, 0, f"{number} sources, at most {SOURCES}", "split it into components")
    exceptions.tell_unused(report)


def has_header(path):
    """The first include of x.c is a header of its folder, which several files may share, or a public one."""
    first = next(tree.includes(path), (1, "", ""))
    folder = pathlib.Path(first[2]).parent
    return first[2].startswith("longhaul/") or path.parent in (folder, "src" / folder)


def is_kernel(path):
    """x_avx2.c, x_avx512.c: the test of x compares them with the base version."""
    return path.stem.endswith(("_avx2", "_avx512"))


def check_beside(sources, report):
    headers, units = tree.Exceptions("header"), tree.Exceptions("unit")
    for path in sources:
        if str(path.parent) not in tree.WHOLE:
            continue
        if not has_header(path) and not headers.covers(str(path)):
            report.add(path, 1, "has no header of its own",
                       "include first the header that declares what it defines")
        folder = str(path.parent).removeprefix("src/")
        test = pathlib.Path("tests/unit") / folder / f"test_{path.name}"
        tests = (tree.ROOT / test.parent).glob(f"{test.stem}*.c")  # a large one has a test a part
        if not is_kernel(path) and not any(tests) and not units.covers(str(path)):
            report.add(path, 1, "has no unit test", f"write {test}")
    headers.tell_unused(report)
    units.tell_unused(report)


def check_listed(sources, report):
    """A component that is in no list would be checked by nobody."""
    here = pathlib.Path("tests/structure/tree.py")
    listed = tree.PURE + tree.CORE_PURE
    for folder in sorted({str(path.parent) for path in sources}):
        if folder not in listed and not any(f"{folder}/".startswith(f"{impure}/") for impure in tree.IMPURE):
            report.add(here, 1, f"{folder} is in none of PURE, CORE_PURE and IMPURE",
                       "list it in one of them")
    for folder in listed + tree.IMPURE:
        if not (tree.ROOT / folder).is_dir():
            report.add(here, 1, f"{folder} does not exist", "delete it from the list")


def check_unit_tests(report):
    """tests/unit/FOLDER/test_x*.c: there is an x.c or x.h in the component FOLDER."""
    unit = pathlib.Path("tests/unit")
    for test in tree.files(".c", under=(str(unit),)):
        folder = test.parent.relative_to(unit)
        folder = folder if folder.parts[:1] in (("netsim",), ("cli",)) else "src" / folder
        stems = [path.stem for path in (tree.ROOT / folder).glob("*.[ch]")]
        if not any(f"{test.stem}_".startswith(f"test_{stem}_") for stem in stems):
            report.add(test, 1, f"{folder} has no file of this name", "name it for the file that it tests")


def check_house(report):
    """Few files, deep ones, whose names tell alone. A public header x.h may have an x.h behind it."""
    files = tree.files(".c", ".h", under=("src", "cli", "netsim", "include"))
    if len(files) > FILES:
        report.add(".", 0, f"{len(files)} files, at most {FILES}",
                   "a fragment belongs into the file that it serves")
    median = statistics.median(len(tree.lines(path)) for path in files) if files else 0
    if len(files) > FILES // 2 and median < MEDIAN_LINES:
        report.add(".", 0, f"the median file has {median:.0f} lines, at least {MEDIAN_LINES}",
                   "merge what is always read together")
    seen = {}
    for path in files:
        if path.parts[0] == "include":
            continue
        other = seen.setdefault(path.name, path)
        if other != path:
            report.add(path, 1, f"{other} has the same name", "name it so that it tells alone")


def main():
    report = tree.Report("parts")
    check_house(report)
    sources = tree.files(".c", under=("src", "netsim", "cli"))
    check_listed(sources, report)
    check_unit_tests(report)
    check_folders(sources, report)
    check_beside(sources, report)
    report.done(f"{len(sources)} sources")


main()
