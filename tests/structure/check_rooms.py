"""Which room includes which. The order of the rooms, and who may use what, stands in the two tables below."""

import pathlib

import tree

# From the ground up. A room may include those before it in this list …
ORDER = ["base", "wire", "model", "coding", "congestion", "flowcontrol", "netsim", "fabric", "sdr",
         "reliability", "connection", "collective", "launch", "probe"]
# … and these only what is said here.
ONLY = {
    "model": {"base"},
    "coding": {"base"},
    "congestion": {"base"},
    "flowcontrol": {"base"},
    "netsim": {"base", "congestion", "flowcontrol"},
    "probe": {"base", "model", "fabric", "launch"},
}
PUBLIC_ONLY = ("cli", "plugins", "examples")


def is_public(name):
    return name.startswith("longhaul/") or name in ("sdr.h", "sdr_mr.h")


def allowed_rooms(room):
    return ONLY.get(room, set(ORDER[:ORDER.index(room)])) | {room}


def check_source(path, report):
    room = path.parts[1]
    if room not in ORDER:
        report.add(path, 1, f"src/{room} is not a room",
                   "put the file into a room, or add the room to check_rooms.py and src/CMakeLists.txt")
        return
    for number, opening, name in tree.includes(path):
        target = pathlib.PurePosixPath(name)
        if opening == "<":
            if target.parts[0] in ORDER:
                report.add(path, number, f"<{name}> is ours, not the system's", f'write #include "{name}"')
            continue
        if ".." in target.parts or len(target.parts) < 2 or target.parts[0] not in ORDER:
            if is_public(name):
                report.add(path, number, f'"{name}" is a public header', f"write #include <{name}>")
            else:
                report.add(path, number, f'"{name}" does not start with its room',
                           'write #include "room/file.h"')
            continue
        other = target.parts[0]
        if not (tree.ROOT / "src" / name).exists():
            report.add(path, number, f"src/{name} does not exist", "correct the name")
        if other not in allowed_rooms(room):
            report.add(path, number, f"{room} may not include {other}",
                       f"{room} may include: {', '.join(r for r in ORDER if r in allowed_rooms(room))}; "
                       "move what is shared further down, or pass it in")
        elif other == "fabric" and len(target.parts) > 2:
            inside_same = path.parts[1:-1] == target.parts[:-1]
            registry = path.parts[1:-1] == ("fabric",)
            if not inside_same and not registry:
                report.add(path, number, f'"{name}" is inside one fabric',
                           "a fabric is reached only through its interface: src/fabric/*.h")


def check_public_only(path, report):
    for number, opening, name in tree.includes(path):
        if opening == '"' and not (tree.ROOT / path.parent / name).exists():
            report.add(path, number, f'"{name}" is not beside this file',
                       f"{path.parts[0]}/ uses the public headers only: <sdr.h>, <sdr_mr.h>, <longhaul/...>")
        elif opening == '"' and ".." in name:
            report.add(path, number, f'"{name}" leaves its folder', "include only what stands in this folder")
        elif opening == "<" and name.split("/")[0] in ORDER:
            report.add(path, number, f"<{name}> is internal", "use the public headers only")


def check_public_header(path, report):
    for number, opening, name in tree.includes(path):
        if opening == '"':
            report.add(path, number, f'"{name}" is not found where the headers are installed',
                       "public headers include each other as <longhaul/...>, <sdr.h>")
        elif is_public(name) and not (tree.ROOT / "include" / name).exists():
            report.add(path, number, f"include/{name} does not exist", "correct the name")


def main():
    report = tree.Report("rooms")
    sources = tree.files(".c", ".h", under=("src",))
    for path in sources:
        check_source(path, report)
    others = tree.files(".c", ".h", under=PUBLIC_ONLY)
    for path in others:
        check_public_only(path, report)
    headers = tree.files(".h", under=("include",))
    for path in headers:
        check_public_header(path, report)
    report.done(f"{len(sources)} files in rooms, {len(others)} of users, {len(headers)} public headers")


main()
