"""The counters of longhaul/stats.h and those of lh_stats_count(3): the same names in the same order."""

import pathlib
import re

import tree

HEADER = pathlib.Path("include/longhaul/stats.h")
PAGE = pathlib.Path("docs/man/lh_stats_count.3")


def listed():
    """Name and line of every X(name, meaning)."""
    return [(match[1], number) for number, line in enumerate(tree.lines(HEADER), 1)
            if (match := re.match(r"\s*X\((\w+),", line))]


def described():
    """Name and line of every tag of the subsection Counters; a tag may have several names."""
    found, in_counters, tag = [], False, False
    for number, line in enumerate(tree.lines(PAGE), 1):
        if line.startswith((".SS", ".SH")):
            in_counters = line == ".SS Counters"
        elif in_counters and tag:
            found += [(name, number) for name in re.findall(r"\w+", line.partition(" ")[2])]
        tag = line == ".TP"
    return found


def main():
    report = tree.Report("counters")
    header, page = listed(), described()
    if not header:
        report.add(HEADER, 1, "no X(name, meaning) was found", "let this check read the list as it is now")
    lines = dict(page)
    names, pages = [name for name, _ in header], [name for name, _ in page]
    for name, number in header:
        if name not in lines:
            report.add(HEADER, number, f"{name} has no entry", f"describe it under Counters in {PAGE}")
    for name, number in page:
        if name not in names:
            report.add(PAGE, number, f"{name} is no counter", f"take it out; {HEADER} has the list")
    if sorted(names) == sorted(pages) and names != pages:
        first = next(i for i, name in enumerate(names) if pages[i] != name)
        report.add(PAGE, lines[pages[first]], f"{pages[first]} where {HEADER} has {names[first]}",
                   "keep the order of the list")
    report.done(f"{len(header)} counters")


main()
