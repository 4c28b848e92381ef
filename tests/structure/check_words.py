"""Phrases that users do not read: the field's terms stand in for private ones.

Looks at the string literals of src, netsim and cli (messages, help), at the comments of public headers, at
the man pages, the README and docs/.
Identifiers and comments of src, netsim and cli have a list of words of their own.
Exceptions: "phrase PHRASE N", "word WORD N": it is there N times. --lower writes today's numbers into
exceptions.txt where they are smaller.
"""

import re

import tree

# phrase: (pattern, what to write instead). A line break counts as a space.
PHRASES = {
    "again and again": (r"again and again", "repeatedly"),
    "and the like": (r"and the like", "and others; the nouns"),
    "anew": (r"anew", "again, refresh, restart"),
    "cannot be": (r"cannot be(?=[;:,.])", "A: out of range (B to C)"),
    "clothes": (r"clothes", "IPv4-mapped IPv6 address"),
    "dealt out": (r"deal(s|t)? out", "striped, distributed"),
    "each with each": (r"each with each", "each to all others"),
    "fit with": (r"fits? with", "A: exceeds B (use C)"),
    "for ever": (r"for ever", "without limit; never ends; stays valid"),
    "give up": (r"(gives?|gave|giving|given) up", "abort, time out"),
    "goodbye": (r"goodbyes?", "close, FIN"),
    "guess": (r"guess(es|ed|ing)?", "estimate, prediction"),
    "has no use for": (r"has no use for", "does not use; m exceeds k"),
    "heard": (r"hears?|heard", "receive, learn"),
    "how many": (r"how many(?! times)", "number of X, N X"),
    "hungry": (r"hungry|starv(ed|es|ing)", "budget limited, window limited"),
    "in a row": (r"(in )?a row of|in a row", "burst, consecutive"),
    "is no": (r"(?<!there.)is no (?!longer|more|other)\w+", "invalid X (example: Y), not a X"),
    "is none of": (r"is none of", "unknown X (A, B or C)"),
    "is not possible": (r"is not possible", "out of range (A to B)"),
    "judge": (r"judge[sd]?|judging", "validate, check"),
    "lands in": (r"lands? in", "fills, matches, is written to"),
    "last word": (r"last word", "close, FIN"),
    "lifeline": (r"lifeline", "control connection, keepalive"),
    "likewise": (r"likewise", "as above; repeat the noun"),
    "nobody": (r"nobody|anybody|somebody", "no peer, any host, a host"),
    "of those that": (r"of (those|these) (that|who)", "the noun"),
    "of which nothing": (r"of which (nothing|no)", "without X"),
    "on its way": (r"on (its|the|their) way", "in flight, outstanding"),
    "on top": (r"on top", "overhead"),
    "other side": (r"other (side|end)", "peer, remote side"),
    "overtaken": (r"overtak(en|es?|ing)|overtook", "reordered, out of order"),
    "room": (r"(?<!->)rooms?", "capacity, buffer size; component, module"),
    "said": (r"said", "reported, announced"),
    "sent again": (r"(sends?|sent|sending) it again|sent again|sends again", "retransmit, repair"),
    "so many": (r"so (many|much|few)", "N X, number of X"),
    "stands in": (r"stands? (in|at|on|there)", "is in, contains, describes"),
    "stands still": (r"(stands?|stood) still", "stalls, is stalled"),
    "told": (r"told(?! apart)", "announced, reported, advertised"),
    "what has come": (r"what (has|have) (come|arrived|gone)|what (came|comes)", "arrived data, arrivals"),
    "what is due": (r"what (is|was|were|are|it|they) \w+", "the noun: pending work, expired timers"),
    "what is missing": (r"what (is missing|has not come|did not come)", "missing chunks, gaps"),
    "who waits": (r"who (waits?|is|has|was)", "waiter, caller"),
}
# Word of an identifier or a comment in src, netsim and cli, in the singular: what to write instead. "at most"
# of a comment is no finding.
WORDS = {
    "anew": "again; a refresh, a restart",
    "goodbye": "close, FIN",
    "heard": "received, reported",
    "hungry": "budget_limited, window_limited",
    "inner": "sub-connection; underlying",
    "keeper": "representative, member of a keepalive group; keepalive group",
    "least": "min, minimum",
    "likewise": "as above; or repeat the noun",
    "lifeline": "control connection",
    "most": "max, maximum, limit",
    "nobody": "no thread, no peer",
    "overtaken": "reordered, out of order",
    "said": "reported, announced",
    "seat": "socket slot",
    "told": "given, announced, reported",
    "way": "path, method",
}
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|\'(?:\\.|[^\'\\])*\'|"((?:\\.|[^"\\\n])*)"', re.DOTALL)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
LEADER = re.compile(r"(\n[ \t]*)\*")
AT_MOST = re.compile(r"\bat[\s*]+most\b", re.IGNORECASE)
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # of snake_case, camelCase and PascalCase
CODE = re.compile(r"`[^`\n]*`")
TROFF = re.compile(r"^\.\\\".*$|^\.[A-Za-z]+[ \t]*|\\f.|\\&|\"", re.MULTILINE)


def literals(text):
    """(line, string) of each literal of a C file; adjacent ones are one."""
    found, end = [], None
    for match in TOKEN.finditer(text):
        if match[1] is None:
            continue
        start = text.rfind("\n", 0, match.start()) + 1
        if re.match(r"\s*#\s*include", text[start:match.start()]):
            continue
        if end is not None and re.fullmatch(r"(\s|PRI\w+)*", text[end:match.start()]):
            found[-1][1] += match[1]
        else:
            found.append([text.count("\n", 0, match.start()) + 1, match[1]])
        end = match.end()
    return [(line, string.replace("\\n", "\n")) for line, string in found]


def texts():
    """(path, line, text) of all that users read."""
    for path in tree.files(".c", ".h", ".cu", ".cuh", under=("src", "netsim", "cli")):
        for line, string in literals("\n".join(tree.lines(path))):
            yield path, line, string
    for path in tree.files(".h", under=("include",)):
        text = "\n".join(tree.lines(path))
        for comment in COMMENT.finditer(text):
            yield path, text.count("\n", 0, comment.start()) + 1, LEADER.sub(r"\1 ", comment[0])
    for path in tree.files(".md", ".1", ".3", ".7", under=("docs",)):
        if path.name != "CHANGELOG.md":  # it quotes what was
            text = "\n".join(tree.lines(path))
            yield path, 1, TROFF.sub("", text) if path.suffix != ".md" else CODE.sub("", text)
    if (tree.ROOT / "README.md").exists():
        yield "README.md", 1, "\n".join(tree.lines("README.md"))


def findings():
    """phrase -> [(path, line)]"""
    patterns = {phrase: re.compile(rf"\b(?:{pattern})\b".replace(" ", r"\s+"), re.IGNORECASE)
                for phrase, (pattern, _) in PHRASES.items()}
    found = {phrase: [] for phrase in PHRASES}
    for path, first, text in texts():
        for phrase, pattern in patterns.items():
            for match in pattern.finditer(text):
                found[phrase].append((path, first + text.count("\n", 0, match.start())))
    return found


def findings_in_code():
    """word -> [(path, line)]"""
    found = {word: [] for word in WORDS}
    for path in tree.files(".c", ".h", ".cu", ".cuh", under=("src", "netsim", "cli")):
        text = "\n".join(tree.lines(path))
        text = TOKEN.sub(lambda token: token[0] if token[1] is None else "\n" * token[0].count("\n"), text)
        text = AT_MOST.sub(lambda token: "\n" * token[0].count("\n"), text)
        for match in PART.finditer(text):
            part = match[0].lower()
            word = part if part in WORDS else part.removesuffix("s")
            if word in WORDS:
                found[word].append((path, 1 + text.count("\n", 0, match.start())))
    return found


def lower(kind, found):
    lines = []
    for line in tree.lines(tree.EXCEPTIONS):
        if line.startswith(kind + " "):
            phrase, _, number = line.removeprefix(kind + " ").rpartition(" ")
            number = min(int(number), len(found.get(phrase, ())))
            if not number:
                continue
            line = f"{kind} {phrase} {number}"
        lines.append(line)
    (tree.ROOT / tree.EXCEPTIONS).write_text("\n".join(lines), encoding="utf-8")


def check(report, kind, found, remedies, lowers):
    if lowers:
        lower(kind, found)
    exceptions = tree.Exceptions(kind)
    for phrase, places in found.items():
        if places and not exceptions.covers(phrase, len(places), report):
            for path, line in places:
                report.add(path, line, f'"{phrase}" ({len(places)} in all)', f"write: {remedies[phrase]}")
    exceptions.tell_unused(report)


def main():
    arguments = tree.arguments("--lower")
    report = tree.Report("words")
    remedies = {phrase: remedy for phrase, (_, remedy) in PHRASES.items()}
    check(report, "phrase", findings(), remedies, arguments.lower)
    check(report, "word", findings_in_code(), WORDS, arguments.lower)
    report.done(f"{len(PHRASES)} phrases, {len(WORDS)} words")


main()
