"""What headers declare, the symbol map lists, the library exports and man pages describe: all the same."""

import pathlib
import re
import subprocess

import tree

MAP = pathlib.Path("src/longhaul.map")
SDR_FUNCTION = re.compile(r"^[A-Za-z_][\w\s*]*?\b(sdr_\w+)\s*\(", re.MULTILINE)
LH_FUNCTION = re.compile(r"^LH_API\b[^;(]*?\b(\w+)\s*\(", re.MULTILINE)


def without_comments(text):
    return re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)


def declared():
    """symbol -> (header, line)"""
    found = {}
    for path in tree.files(".h", under=("include",)):
        text = without_comments("\n".join(tree.lines(path)))
        for pattern in (LH_FUNCTION, SDR_FUNCTION):
            for match in pattern.finditer(text):
                found.setdefault(match[1], (path, text.count("\n", 0, match.start(1)) + 1))
    return found


def mapped():
    """symbol -> line in the map"""
    text = without_comments("\n".join(tree.lines(MAP))).split("local:")[0]
    found = {}
    for number, line in enumerate(text.split("\n"), 1):
        for name in re.findall(r"\b(\w+)\s*;", line):
            found[name] = number
    return found


def exported(library):
    out = subprocess.run(["nm", "-D", "-P", "--defined-only", str(library)], capture_output=True, text=True,
                         check=True).stdout
    return {line.split()[0].split("@")[0] for line in out.splitlines()
            if line.split()[1] in "TDBRVWi" and not line.startswith("LONGHAUL_")}


def described():
    """Names in the NAME sections of docs/man/*.3"""
    found = {}
    for path in tree.files(".3", under=("docs/man",)):
        in_name = False
        for number, line in enumerate(tree.lines(path), 1):
            if line.startswith(".SH"):
                in_name = line.split(None, 1)[1].strip('" ') == "NAME"
            elif in_name:
                names = re.split(r"\s+\\?-\s*|\s+\\\(em\s", line.replace("\\-", " - "))[0]
                for name in re.findall(r"[A-Za-z_]\w+", re.sub(r"^\.\w+\s+|\\f.", "", names)):
                    found[name] = (path, number)
    return found


def main():
    report = tree.Report("symbols")
    unfinished = tree.Exceptions("unfinished")
    library = tree.arguments().build / "liblonghaul.so"
    headers, listed, pages = declared(), mapped(), described()
    if not headers:
        print("symbols: no public function yet")
    exports = exported(library)

    open_work = {}
    for name, (path, line) in sorted(headers.items()):
        if name not in listed:
            report.add(path, line, f"{name} is public but not exported", f"add it to {MAP}")
        missing = []
        if name not in exports:
            missing.append((path, line, f"{name} is declared but the library has no such function",
                            "write it, in a file that includes this header, or take it out of the header"))
        if name not in pages:
            missing.append((path, line, f"{name} has no man page",
                            "name it in the NAME section of a page in docs/man/*.3"))
        open_work.setdefault(path, []).extend(missing)
    for path, missing in open_work.items():
        if missing and unfinished.covers(str(path)):
            print(f"{path}: unfinished, {len(missing)} things missing")
        else:
            for finding in missing:
                report.add(*finding)
    unfinished.tell_unused(report)
    for name, line in listed.items():
        if name not in headers:
            report.add(MAP, line, f"no public header declares {name}",
                       "delete the line, or declare it LH_API")
    for name in sorted(exports - set(listed)):
        report.add(MAP, 1, f"the library exports {name}, which is not listed", "make it internal, or list it")
    report.done(f"{len(headers)} public functions, {len(exports)} exported, {len(pages)} described")


main()
