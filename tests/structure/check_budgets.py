"""Budgets: lines of a function, a file and the README, columns of a line, of sources and of pages, entries at
the top of the tree."""

import re

import tree

FUNCTION_LINES = 70
FILE_LINES = 1000
COLUMNS = 110
README_LINES = 120
README_COLUMNS = 100
TOP_ENTRIES = 12


def functions(text):
    """(name, first line, number of lines) of each function.

    Leans on the format: the brace that opens a function stands alone in column 0, and so does the one that
    closes it.
    """
    for opening, line in enumerate(text):
        if line != "{":
            continue
        closing = next((n for n in range(opening, len(text)) if text[n] == "}"), len(text) - 1)
        first = opening
        while first > 0 and not re.match(r"$|#|.*([;}]|\*/)$", text[first - 1]):
            first -= 1
        signature = " ".join(text[first:opening])
        name = re.search(r"(\w+)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", signature))
        yield (name[1] if name else "?"), first + 1, closing - first + 1


def check_columns(path, limit, report, exceptions):
    text = tree.lines(path)
    width = max(map(len, text))
    if width > limit and not exceptions["columns"].covers(str(path), width, report):
        for number, line in enumerate(text, 1):
            if len(line) > limit:
                report.add(path, number, f"{len(line)} columns, at most {limit}",
                           "break the line (make format)")


def check_file(path, report, exceptions):
    text = tree.lines(path)
    count = len(text) - (text[-1] == "")
    if count > FILE_LINES and not exceptions["file"].covers(str(path), count, report):
        report.add(path, count, f"{count} lines, at most {FILE_LINES}", "split it where two mechanisms meet")
    check_columns(path, COLUMNS, report, exceptions)
    if path.suffix not in (".c", ".h", ".cu", ".cuh"):
        return
    for name, line, length in functions(text):
        if length > FUNCTION_LINES and not exceptions["function"].covers(f"{path} {name}", length, report):
            report.add(path, line, f"{name}: {length} lines, at most {FUNCTION_LINES}",
                       "split it where the reader would pause")


def check_top(report, exceptions):
    entries = sorted({path.parts[0] for path in tree.files() if not path.parts[0].startswith(".")})
    if len(entries) > TOP_ENTRIES:
        report.add(".", 0, f"{len(entries)} entries at the top: {' '.join(entries)}",
                   f"at most {TOP_ENTRIES}: move one into a folder")
    readme = tree.ROOT / "README.md"
    if readme.exists():
        count = len(readme.read_text(encoding="utf-8").splitlines())
        if count > README_LINES:
            report.add("README.md", count, f"{count} lines, at most {README_LINES}", "move detail into docs/")
        check_columns("README.md", README_COLUMNS, report, exceptions)


def main():
    report = tree.Report("budgets")
    exceptions = {kind: tree.Exceptions(kind) for kind in ("function", "file", "columns")}
    sources = tree.files(".c", ".h", ".cu", ".cuh", ".py", ".sh")
    for path in sources:
        check_file(path, report, exceptions)
    pages = tree.files(".md", under=("docs",))
    for path in pages:
        check_columns(path, COLUMNS, report, exceptions)
    check_top(report, exceptions)
    for each in exceptions.values():
        each.tell_unused(report)
    report.done(f"{len(sources)} files, {len(pages)} pages")


main()
