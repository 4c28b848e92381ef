"""Finds the functions of a C file, and the one-line faults that can be planted in them.

A function begins in the first column and ends with a brace there, as the format of the tree has it. Faults
are in code lines of its body, not in comments, strings, asserts, preprocessor lines and plain declarations.
"""

import dataclasses
import hashlib
import re

KEYWORDS = ("if", "for", "while", "switch", "return", "sizeof", "else", "do", "case", "assert",
            "static_assert")
SWAPS = {
    "relation": {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",),
                 "!=": ("==",)},
    "arithmetic": {"+": ("-",), "-": ("+",), "+=": ("-=",), "-=": ("+=",)},
    "logic": {"&&": ("||",), "||": ("&&",)},
}
EXTREMES = [("lh_min", "lh_max"), ("fmin", "fmax"), ("MIN", "MAX"), ("min", "max")]
RETURNS = {"0": "-1", "-1": "0", "1": "0", "true": "false", "false": "true", "error": "0", "err": "0",
           "status": "0", "rc": "0"}


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    path: str
    first: int  # lines from 1: the one with the name's parenthesis …
    last: int   # … to the closing brace
    body: str   # its text: what tells functions of one name apart

    def rank(self, seed):
        """The functions with the lowest ranks are drawn: a move to another file changes nothing."""
        return hashlib.sha256(f"{seed} {self.name} {self.body}".encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Fault:
    function: Function
    operator: str
    line: int
    before: str
    after: str

    def key(self):
        return (self.function.name, self.operator, " ".join(self.before.split()))


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def mask(text):
    """The text with spaces for what is in comments, strings and preprocessor lines: positions stay."""
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, text,
                  flags=re.DOTALL)
    return re.sub(r"^[ ]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.MULTILINE)


def functions(path, text):
    """The functions of a file, in order."""
    lines = mask(text).split("\n")
    whole = text.split("\n")
    found = []
    for number, line in enumerate(lines):
        if line.rstrip() != "{":
            continue
        head = number - 1
        while head > 0 and lines[head].strip() and not re.search(r"[;}]\s*$", lines[head]):
            head -= 1
        heading = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", " ".join(lines[head + 1:number]))
        match = re.search(r"(\w+)\s*\(", heading)
        end = next((n for n in range(number, len(lines)) if lines[n].startswith("}")), None)
        if match and end is not None and match[1] not in KEYWORDS:
            found.append(Function(match[1], path, number + 1, end + 1, "\n".join(whole[number:end + 1])))
    return found


def inside_assert(lines, first):
    """Numbers of lines that belong to an assert."""
    found, depth, asserting = set(), 0, False
    for number, line in enumerate(lines, first):
        if not asserting and (match := re.search(r"\b(?:static_)?assert\s*\(", line)):
            asserting, depth, line = True, 0, line[match.end() - 1:]
        if asserting:
            found.add(number)
            depth += line.count("(") - line.count(")")
            asserting = depth > 0
    return found


def closing(line, start):
    """Where the parenthesis that opens at start closes, or None."""
    depth = 0
    for place in range(start, len(line)):
        depth += {"(": 1, ")": -1}.get(line[place], 0)
        if depth == 0:
            return place
    return None


def swap_sites(line):
    """(operator, start, end, replacement) of binary operators: the format puts spaces around them."""
    for match in re.finditer(r"(?<= )(<=|>=|==|!=|&&|\|\||\+=|-=|<|>|\+|-)(?= |$)", line):
        for operator, swaps in SWAPS.items():
            for new in swaps.get(match[1], ()):
                yield operator, match.start(), match.end(), new


def constant_sites(line):
    for match in re.finditer(r"(?<![\w.'])(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)(?![\w.'])", line):
        value = int(match[1], 0) if match[1].lower().startswith("0x") or match[1] == "0" else \
            int(match[1], 8 if match[1].startswith("0") else 10)
        for changed in (value + 1, value - 1):
            if changed >= 0:
                text = hex(changed) if match[1].lower().startswith("0x") else str(changed)
                yield "constant", match.start(), match.end(), text + match[2]


def condition_sites(line):
    for match in re.finditer(r"\b(if|while) \(", line):
        end = closing(line, match.end() - 1)
        if end is None:
            continue
        inner = (match.end(), end)
        yield "condition", *inner, "0"
        if match[1] == "if":
            yield "condition", *inner, "1"
            yield "condition", *inner, "!(" + line[inner[0]:inner[1]] + ")"


def return_sites(line):
    match = re.search(r"\breturn ([^;]+);", line)
    if match:
        new = RETURNS.get(match[1]) or ("0" if re.fullmatch(r"-[A-Z]\w*|lh_fail\(.*\)", match[1]) else None)
        if new:
            yield "return", match.start(1), match.end(1), new


def statement_sites(line):
    """A call whose value is not used, or an assignment to a member, alone on its line."""
    call = re.match(r"\s*(?:\(void\))?(\w+)\(.*\);$", line)
    if call and call[1] not in KEYWORDS and closing(line, line.index("(", call.start(1))) == len(line) - 2:
        yield "statement", len(line) - len(line.lstrip()), len(line), ";"
    member = re.match(r"\s*\**[\w\[\]]+(?:(?:->|\.)[\w\[\]. >-]+?) [-+*/|&^]?= [^;]*;$", line)
    if member:
        yield "statement", len(line) - len(line.lstrip()), len(line), ";"


def word_sites(line):
    for low, high in EXTREMES:
        for old, new in ((low, high), (high, low)):
            for match in re.finditer(rf"\b{old}(?=\()", line):
                yield "extreme", match.start(), match.end(), new
    if not re.search(r"\bfor \(", line):  # it would only never end
        for match in re.finditer(r"\+\+|--", line):
            yield "step", match.start(), match.end(), ""
    for match in re.finditer(r"!(?=[\w(*])", line):
        yield "not", match.start(), match.end(), ""


def is_declaration(line):
    """Declares only: has a type and a name, and no value."""
    return bool(re.match(r"\s*(?:const |static |struct |enum |unsigned )*\w+ [\w*\[\], ]+;$", line)
                and not re.match(r"\s*(return|goto|case)\b", line))


def faults(function, text):
    """All faults of a function: operator -> list, in the order of the text."""
    whole, masked = text.split("\n"), mask(text).split("\n")
    first, last = function.first + 1, function.last - 1
    passed_over = inside_assert(masked[first - 1:last], first)
    found = {}
    for number in range(first, last + 1):
        line, shown = whole[number - 1], masked[number - 1].rstrip()
        if number in passed_over or not shown.strip() or is_declaration(shown):
            continue
        for sites in (swap_sites, constant_sites, condition_sites, return_sites, statement_sites, word_sites):
            for operator, start, end, new in sites(shown):
                # What is in the condition is told by the line itself: strings are blank in the other one.
                if operator == "condition" and new.startswith("!("):
                    new = "!(" + line[start:end] + ")"
                found.setdefault(operator, []).append(
                    Fault(function, operator, number, line, line[:start] + new + line[end:]))
    return found


def apply(fault, text):
    lines = text.split("\n")
    assert lines[fault.line - 1] == fault.before
    lines[fault.line - 1] = fault.after
    return "\n".join(lines)


def order(function, text, seed):
    """The faults of a function in the order in which they are tried: the operator first, then the place."""
    def rank(*words):
        text = " ".join([str(seed), function.name, function.body, *map(str, words)])
        return hashlib.sha256(text.encode()).digest()

    queues = [sorted(each, key=lambda fault: rank(fault.line - function.first, fault.after))
              for operator, each in sorted(faults(function, text).items(), key=lambda item: rank(item[0]))]
    turns = range(max(map(len, queues), default=0))
    return [queue[turn] for turn in turns for queue in queues if turn < len(queue)]


def draw(texts, count, seed):
    """For each of count functions that have any: its faults in their order. texts: path -> text."""
    known = sorted((function.rank(seed), path, function) for path, text in texts.items()
                   for function in functions(path, text))
    drawn = []
    for _, path, function in known:
        if len(drawn) == count:
            break
        if queue := order(function, texts[path], seed):
            drawn.append(queue)
    return drawn
