"""Text: no tabs in C and Python, no white space at line ends, a newline at the end, a licence line."""

import tree

CODE = (".c", ".h", ".cu", ".cuh")
SUFFIXES = (*CODE, ".py", ".sh", ".md", ".txt", ".map", ".in", ".1", ".3", ".7")


def main():
    report = tree.Report("text")
    paths = tree.files(*SUFFIXES)
    for path in paths:
        text = tree.lines(path)
        for number, line in enumerate(text, 1):
            if "\t" in line and path.suffix in (*CODE, ".py"):
                report.add(path, number, "a tab", "indent by four spaces (make format)")
            if line != line.rstrip():
                report.add(path, number, "white space at the end of the line", "delete it")
        if text[-1] != "":
            report.add(path, len(text), "no newline at the end of the file", "add one")
        elif len(text) > 1 and text[-2] == "":
            report.add(path, len(text) - 1, "an empty line at the end of the file", "delete it")
        if path.suffix in CODE and not any("SPDX-License-Identifier" in line for line in text[:30]):
            report.add(path, 1, "no licence line",
                       "end the first comment with: SPDX-License-Identifier: BSD-3-Clause")
    report.done(f"{len(paths)} files")


main()
