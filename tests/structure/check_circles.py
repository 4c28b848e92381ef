"""No circle of calls between the files of a component and its sub-folders, as the object files show it.
Nor one of includes in the whole tree, x.c and x.h as one: who uses a type's members includes its header.

A table of functions counts as a call of its file, an inline function's calls count for those who include it.
A call by a pointer that was passed in is not seen. A circle is reported with its files and, of each, the
calls that are part of it. Exceptions: "circle COMPONENT N": N files of it are in circles of calls;
"include-circle COMPONENT N": N pairs of x.c and x.h (x.cu and x.cuh) are in circles of includes. A circle of
several components counts for that with most of its files; of equal ones, for the first by name.
"""

import collections
import pathlib

import tree


def component(source):
    """src/sdr, src/fabric (udp and verbs, too), netsim, cli."""
    return "/".join(source.parts[:2] if source.parts[0] == "src" else source.parts[:1])


def calls(built):
    """source -> {source of the same component that it calls: a name called}."""
    symbols = tree.symbols(built)
    owner = {name: source for source, (defined, _) in symbols.items() for name in defined}
    graph = collections.defaultdict(dict)
    for source, (_, undefined) in symbols.items():
        for name in sorted(undefined):
            other = owner.get(name)
            if other and other != source and component(other) == component(source):
                graph[source].setdefault(other, name)
    return graph


def includes():
    """x of x.c and x.h -> {another one: the header of it that it includes}."""
    sources = tree.files(".c", ".h", ".cu", ".cuh", under=("src", "netsim", "cli"))
    headers = {path for path in sources if path.suffix in (".h", ".cuh")}
    graph = collections.defaultdict(dict)
    for path in sources:
        for _, opening, name in tree.includes(path):
            for header in (pathlib.Path("src", name), pathlib.Path(name), path.parent / name):
                if opening == '"' and header in headers and header.with_suffix("") != path.with_suffix(""):
                    graph[path.with_suffix("")].setdefault(header.with_suffix(""), name)
    return graph


def reachable(graph, start):
    seen, waiting = set(), [start]
    while waiting:
        for other in graph.get(waiting.pop(), ()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def circles(graph):
    """Sets of files that call each other, directly or not."""
    reach = {source: reachable(graph, source) for source in graph}
    found = []
    for source in sorted(graph):
        circle = {other for other in reach[source] if source in reach.get(other, ())}
        if circle and circle not in found:
            found.append(circle)
    return found


def owner_of(circle):
    """The component with most of its files; of equal ones, the first by name."""
    count = collections.Counter(component(source) for source in circle)
    return min(count, key=lambda name: (-count[name], name))


def tell(report, kind, graph, verb, remedy):
    exceptions = tree.Exceptions(kind)
    rooms = collections.defaultdict(list)
    for circle in circles(graph):
        rooms[owner_of(circle)].append(circle)
    for room, found in sorted(rooms.items()):
        if exceptions.covers(room, sum(len(circle) for circle in found), report):
            continue
        for circle in found:
            for source in sorted(circle):
                inside = [f"{other} ({name})" for other, name in graph[source].items() if other in circle]
                report.add(source, 1, f"in a circle of {len(circle)} files; {verb} {', '.join(inside)}",
                           remedy)
    exceptions.tell_unused(report)


def main():
    report = tree.Report("circles")
    built = tree.objects(tree.arguments().build)
    tell(report, "circle", calls(built), "calls", "pass effects out and let the caller carry them out")
    tell(report, "include-circle", includes(), "includes",
         "give the lower file a narrow struct of its own component, or move what both need down")
    sources = tree.files(".c", ".cu", under=("src", "netsim", "cli"))
    left_out = [str(path) for path in sources if path not in built]
    if left_out:
        print(f"not built, not checked: {' '.join(left_out)}")
    report.done(f"{len(built)} object files")


main()
