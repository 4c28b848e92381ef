"""What headers declare, the symbol maps list, the libraries export and man pages describe: all the same.

No symbol is exported by two libraries, the transport's library contains nothing of the simulator, and no
variable is in both: what both link (src/CMakeLists.txt, longhaul_common) keeps no state.
"""

import pathlib
import re
import subprocess

import tree

# library -> its symbol map
MAPS = {"liblonghaul.so": pathlib.Path("src/longhaul.map"),
        "liblonghaul-sim.so": pathlib.Path("netsim/longhaul-sim.map")}
# The same, of those that are built only where their compiler is.
OPTIONAL = {"liblonghaul-cuda.so": pathlib.Path("src/coding/hadamard/cuda/longhaul-cuda.map")}
# library of a plugin -> what it exports: the tables that its host looks for, and nothing else
PLUGINS = {"libnccl-net-longhaul.so": {f"ncclNetPlugin_v{version}" for version in range(6, 13)}}
# The same, of those that are built only where libfabric is.
PROVIDERS = {"libfabric/liblonghaul-fi.so": {"fi_prov_ini"}}
# The same, of those that are built only where an MPI is: its functions that they stand before.
CALLS = {f"MPI_{call}" for call in ("Allgather", "Allreduce", "Alltoall", "Bcast", "Reduce", "Reduce_scatter",
                                    "Reduce_scatter_block")}
SHIMS = {"liblonghaul-pmpi-openmpi.so": CALLS, "liblonghaul-pmpi-mpich.so": CALLS | {f"{c}_c" for c in CALLS}}
# Variables that may be in both: of the compiler's runtime; of roce_packet.c, what it computed last.
CACHES = {"completed", "cached_factor", "cached_length"}
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


def mapped(path):
    """symbol -> line in the map"""
    text = without_comments("\n".join(tree.lines(path))).split("local:")[0]
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


def defined(library):
    """symbol -> its section, hidden ones too; numbers that the compiler appended cut off."""
    out = subprocess.run(["nm", "-f", "sysv", "--defined-only", str(library)], capture_output=True, text=True,
                         check=True).stdout
    columns = [line.split("|") for line in out.splitlines() if line.count("|") == 6]
    return {re.sub(r"\.\d+$", "", c[0].strip()): c[6].strip() for c in columns}


def variables(library):
    return {name for name, section in defined(library).items()
            if section in (".data", ".bss", ".tdata", ".tbss") and not name.startswith("__")}


def compiled_in(build, folder):
    """What the object files of a folder define for others."""
    built = {source: path for source, path in tree.objects(build).items() if source.parts[0] == folder}
    return set().union(*(defines for defines, _ in tree.symbols(built).values()))


def check_walls(build, report):
    transport, simulator = (build / name for name in MAPS)
    text = pathlib.Path("netsim/CMakeLists.txt")
    for name in sorted(exported(transport) & exported(simulator)):
        report.add(text, 1, f"both libraries export {name}", "list it in one symbol map only")
    for name in sorted(compiled_in(build, "netsim") & set(defined(transport))):
        report.add(text, 1, f"liblonghaul.so contains {name} of the simulator", "link it to liblonghaul-sim")
    for name in sorted((variables(transport) & variables(simulator)) - CACHES):
        report.add(text, 1, f"the variable {name} is in both libraries",
                   "move it out of longhaul_common, behind an exported call")


def check_plugins(build, report):
    providers = {library: calls for library, calls in PROVIDERS.items() if (build / library).exists()}
    shims = {library: calls | {"MPI_Init", "MPI_Init_thread", "MPI_Finalize"}
             for library, calls in SHIMS.items() if (build / library).exists()}
    for library, tables in (PLUGINS | providers | shims).items():
        names = exported(build / library)
        for name in sorted(names - tables):
            report.add("src/plugins", 0, f"{library} exports {name}", "make it static, or hidden")
        for name in sorted(tables - names):
            report.add("src/plugins", 0, f"{library} does not export {name}", "its host looks for it")


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
    build = tree.arguments().build
    headers, pages = declared(), described()
    if not headers:
        print("symbols: no public function yet")
    maps = MAPS | {library: path for library, path in OPTIONAL.items() if (tree.ROOT / path).exists()}
    listed = {name: (path, line) for path in maps.values() for name, line in mapped(path).items()}
    exports = {name: library for library in maps if library in MAPS or (build / library).exists()
               for name in exported(build / library)}
    not_built = {path for library, path in maps.items() if library not in exports.values()}
    for path in not_built:
        print(f"{path}: not built, not checked")

    open_work = {}
    for name, (path, line) in sorted(headers.items()):
        if name not in listed:
            report.add(path, line, f"{name} is public but not exported",
                       f"add it to one of {' '.join(map(str, maps.values()))}")
        missing = []
        if name not in exports and listed.get(name, (None,))[0] not in not_built:
            missing.append((path, line, f"{name} is declared but no library has such a function",
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
    for name, (path, line) in listed.items():
        if name not in headers:
            report.add(path, line, f"no public header declares {name}",
                       "delete the line, or declare it LH_API")
    for name, library in sorted(exports.items()):
        if listed.get(name, (None,))[0] != maps[library]:
            report.add(maps[library], 1, f"{library} exports {name}, which is not listed",
                       "make it internal, or list it")
    check_walls(build, report)
    check_plugins(build, report)
    report.done(f"{len(headers)} public functions, {len(exports)} exported, {len(pages)} described")


main()
