"""Phrases that users do not read: the field's terms stand in for private ones.

Looks at the string literals of src, netsim and cli (messages, help), at the comments of public headers, at
the man pages, the README and docs/.
Exceptions: "phrase PHRASE N": it is there N times. --lower writes today's numbers into exceptions.txt where
they are smaller.
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
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|\'(?:\\.|[^\'\\])*\'|"((?:\\.|[^"\\\n])*)"', re.DOTALL)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
LEADER = re.compile(r"(\n[ \t]*)\*")
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


def lower(found):
    lines = []
    for line in tree.lines(tree.EXCEPTIONS):
        if line.startswith("phrase "):
            phrase, _, number = line.removeprefix("phrase ").rpartition(" ")
            number = min(int(number), len(found.get(phrase, ())))
            if not number:
                continue
            line = f"phrase {phrase} {number}"
        lines.append(line)
    (tree.ROOT / tree.EXCEPTIONS).write_text("\n".join(lines), encoding="utf-8")


def main():
    arguments = tree.arguments("--lower")
    report = tree.Report("words")
    found = findings()
    if arguments.lower:
        lower(found)
    exceptions = tree.Exceptions("phrase")
    for phrase, places in found.items():
        if places and not exceptions.covers(phrase, len(places), report):
            for path, line in places:
                report.add(path, line, f'"{phrase}" ({len(places)} in all)', f"write: {PHRASES[phrase][1]}")
    exceptions.tell_unused(report)
    report.done(f"{len(PHRASES)} phrases")


main()
