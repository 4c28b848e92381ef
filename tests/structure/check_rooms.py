"""Which component (folder) includes which: exactly what rooms.txt lists, and nothing above itself.

The users (cli, plugins, examples) include public headers and files of their own; public headers include
public headers.
"""

import pathlib
import re

import tree

TABLE = pathlib.Path("tests/structure/rooms.txt")
ROOTS = ("src", "netsim", "cli")
PUBLIC_ONLY = ("cli", "plugins", "examples")


def table(report):
    """room -> {room it may include: line}, in the order of the file; '!': it lies below its user."""
    rooms = {}
    for number, line in enumerate(tree.lines(TABLE), 1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        room, colon, others = text.partition(":")
        if not colon or room in rooms:
            report.add(TABLE, number, f"invalid or repeated entry: {text}",
                       "write: folder: folders it may include")
            continue
        if not (tree.ROOT / room).is_dir():
            report.add(TABLE, number, f"{room} is no folder", "delete the line")
        rooms[room] = {}
        for other in others.split():
            upward, name = other.startswith("!"), other.lstrip("!")
            if upward == (name in rooms and name != room):
                report.add(TABLE, number,
                           f"{room}: {other} is listed {'above' if upward else 'below'} it",
                           "a component includes only those above it")
            rooms[room][name] = number
    return rooms


def is_public(name):
    return name.startswith("longhaul/") or name in ("sdr.h", "sdr_mr.h")


def target_of(name):
    """The file that an include names, from the root."""
    return pathlib.PurePosixPath(name if name.split("/")[0] in ("netsim", "cli") else f"src/{name}")


def check_hidden(path, report):
    """What goes around the includes that are checked."""
    for number, line in enumerate(tree.lines(path), 1):
        if re.match(r'\s*#\s*include\s+(?![<"][^>"]+\.(h|cuh)[>"])', line):
            report.add(path, number, "includes no header by its name", "include headers (*.h) only")
        if path.suffix == ".c" and re.match(r"\s*extern\s.*\(", line):
            report.add(path, number, "declares what another file defines", "include its header")


def check_source(path, rooms, used, report):
    room = str(path.parent)
    check_hidden(path, report)
    if room not in rooms:
        report.add(path, 1, f"{room} is not in {TABLE}", f"put the file into another folder, or add {room}")
        return
    for number, opening, name in tree.includes(path):
        if is_public(name):
            if opening == '"':
                report.add(path, number, f'"{name}" is a public header', f"write #include <{name}>")
            continue
        target = target_of(name)
        ours = (tree.ROOT / target).is_file()
        if opening == "<":
            if ours:
                report.add(path, number, f"<{name}> is ours, not the system's", f'write #include "{name}"')
            continue
        if ".." in target.parts or not ours:
            report.add(path, number, f'"{name}" does not exist',
                       'write #include "folder/file.h", from src or the root')
            continue
        other = str(target.parent)
        if other == room:
            continue
        used.add((room, other))
        if other not in rooms[room]:
            report.add(path, number, f"{room} may not include {other}",
                       f"{room} may include: {' '.join(rooms[room]) or 'nothing'}; move what is shared "
                       "further up, or pass it in")


def check_unused(rooms, used, report):
    for room, others in rooms.items():
        for other, number in others.items():
            if (room, other) not in used:
                report.add(TABLE, number, f"{room} does not include {other}", "delete the entry")


def check_public_only(path, report):
    for number, opening, name in tree.includes(path):
        beside = (tree.ROOT / path.parent / name).is_file()
        if opening == '"' and not name.startswith(path.parts[0] + "/") and not beside:
            report.add(path, number, f'"{name}" is outside of {path.parts[0]}/',
                       "use public headers only: <sdr.h>, <sdr_mr.h>, <longhaul/...>")
        elif opening == "<" and not is_public(name) and (tree.ROOT / target_of(name)).is_file():
            report.add(path, number, f"<{name}> is internal", "use public headers only")


def check_public_header(path, report):
    for number, opening, name in tree.includes(path):
        if opening == '"':
            report.add(path, number, f'"{name}" is not found where the headers are installed',
                       "public headers include each other as <longhaul/...>, <sdr.h>")
        elif is_public(name) and not (tree.ROOT / "include" / name).exists():
            report.add(path, number, f"include/{name} does not exist", "correct the name")


def main():
    report = tree.Report("rooms")
    rooms = table(report)
    used = set()
    sources = tree.files(".c", ".h", ".cu", ".cuh", under=ROOTS)
    for path in sources:
        check_source(path, rooms, used, report)
    check_unused(rooms, used, report)
    others = tree.files(".c", ".h", under=PUBLIC_ONLY)
    for path in others:
        check_public_only(path, report)
    headers = tree.files(".h", under=("include",))
    for path in headers:
        check_public_header(path, report)
    report.done(f"{len(sources)} files in {len(rooms)} components, {len(others)} of users, "
                f"{len(headers)} public headers")


main()
