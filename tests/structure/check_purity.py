"""Pure code calls no clock, socket, allocator, environment, random source, thread or stream.

Looks at what the object files of the pure rooms leave undefined. Such a symbol must be on the list ALLOWED,
or be defined in pure code itself. The rooms of tree.CORE_PURE are pure but for the files in impure-files.txt.
"""

import pathlib
import re

import tree

IMPURE_FILES = pathlib.Path("tests/structure/impure-files.txt")

# strdup, qsort (allocates), strerror (locale) and everything with a stream are missing on purpose.
ALLOWED = re.compile(r"""^(
    mem(cpy|move|set|cmp|chr|rchr|mem|pcpy)
  | str(len|nlen|cmp|ncmp|casecmp|ncasecmp|chr|chrnul|rchr|str|spn|cspn|pbrk|cpy|ncpy|sep|tok_r)
  | stp(cpy|ncpy) | bsearch | abs | labs | llabs | ffs(l|ll)?
  | strto(l|ul|ll|ull|d|f|imax|umax) | __isoc(99|23)_strto\w+
  | v?snprintf | __v?snprintf_chk | __mem\w+_chk | __str\w+_chk
  | __assert_fail | abort | __stack_chk_fail | __errno_location | __ctype_\w+_loc | to(upper|lower)
  | __tls_get_addr | _GLOBAL_OFFSET_TABLE_ | __cpu_model | __cpu_features2 | __cpu_indicator_init
  | (a?(cos|sin|tan)h?|atan2|exp|exp2|exp10|expm1|log|log2|log10|log1p|logb|ilogb|pow|sqrt|cbrt|hypot|erfc?
     |lgamma|lgamma_r|tgamma|ceil|floor|trunc|l?l?round|l?l?rint|nearbyint|fmod|remainder|fm(a|in|ax)|fdim
     |fabs|ldexp|frexp|scalbl?n|modf|nextafter|copysign)[fl]?
  | XXH3_128bits | XXH128_canonicalFromHash
  | crc32_gzip_refl\w* | ec_(init_tables|encode_data)\w* | gf_\w+ | xor_gen\w*
  | __(asan|ubsan|tsan|sanitizer|lsan)_\w+ | __gcov_\w+
  | __u?(div|mod|mul|divmod)[td]i\d | __(popcount|clz|ctz)[sdt]i2
)$""", re.VERBOSE)

WHY = [
    (r"(m|c|re)alloc|free|m(un)?map|posix_memalign|aligned_alloc|strn?dup|qsort", "an allocator",
     "let the caller pass the memory in at set-up"),
    (r"clock_\w+|gettimeofday|time|nanosleep|usleep", "a clock", "take `lh_time now` as an argument"),
    (r"rand\w*|s?random\w*|[dlm]rand48|getrandom|getentropy|arc4\w+", "a random source",
     "take a `struct lh_prng *`"),
    (r"(secure_)?getenv", "the environment", "take it as an attribute"),
    (r"pthread_\w+|sem_\w+|mtx_\w+|sched_\w+", "threads", "leave threads and locks to the caller"),
    (r".*printf.*|put\w+|std(out|err|in)|f(open|write|read|puts|putc|flush)|perror", "a stream",
     "return what should be told, lh_fail() for errors"),
]


def impure_files(report):
    listed = {}
    for number, line in enumerate(tree.lines(IMPURE_FILES), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, reason = line.partition("#")
        path = pathlib.Path(name.strip())
        listed[path] = number
        if not reason.strip():
            report.add(IMPURE_FILES, number, f"{path} has no reason", "write: path  # why it cannot be pure")
        if str(path.parent) not in tree.CORE_PURE:
            report.add(IMPURE_FILES, number, f"{path} is in none of {', '.join(tree.CORE_PURE)}",
                       "only these rooms have impure files")
        elif not (tree.ROOT / path).exists():
            report.add(IMPURE_FILES, number, f"{path} does not exist", "delete this line")
    return listed


def promised(pure_rooms):
    """Names that headers of pure rooms and the public headers mention: ours, even when not written yet."""
    names = set()
    for path in tree.files(".h", under=pure_rooms + ["include"]):
        names |= set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", "\n".join(tree.lines(path))))
    return names


def line_of(source, symbol):
    for number, line in enumerate(tree.lines(source), 1):
        if re.search(rf"\b{re.escape(symbol)}\b", line):
            return number
    return 1


def explain(symbol):
    for pattern, what, remedy in WHY:
        if re.fullmatch(pattern, symbol):
            return f"calls {symbol}: {what}", remedy
    return (f"calls {symbol}, which is neither pure code of ours nor on the list of what pure code may call",
            "pass the result in, or, when it truly is pure, add it to ALLOWED in check_purity.py")


def main():
    report = tree.Report("purity")
    built = tree.objects(tree.arguments().build)
    impure = impure_files(report)
    pure = {source: path for source, path in built.items()
            if str(source.parent) in tree.PURE or
            (str(source.parent) in tree.CORE_PURE and source not in impure)}
    ours = promised(tree.PURE)
    below_parts = promised(tree.BELOW_PARTS)
    symbols = tree.symbols(built)
    for source in pure:
        ours |= symbols[source][0]

    def foreign(source):
        names = ours | below_parts if str(source).startswith(("src/message/", "src/control/")) else ours
        return sorted(s for s in symbols[source][1] if s not in names and not ALLOWED.match(s))

    for source in sorted(pure):
        for symbol in foreign(source):
            wrong, remedy = explain(symbol)
            if str(source.parent) in tree.CORE_PURE:
                remedy += f"; or, if this file drives threads or fabrics, list it in {IMPURE_FILES}"
            report.add(source, line_of(source, symbol), wrong, remedy)
    for source, number in impure.items():
        if source in built and not foreign(source):
            report.add(IMPURE_FILES, number, f"{source} is pure", "delete this line")
    report.done(f"{len(pure)} pure object files")


main()
