"""Whether pictures say what they show. usage: check_pictures.py SCRIPT.gp ...; each lies beside its SVG.

Of the script: each plot has a title, a name at both axes (of panels one below the other, the last has that of
the axis they share, and the others no numbers there), and no legend inside of a plot or more than once.
Of the SVG: at most 900 points wide; every text within it and on no other text; no numbers like 1e-05.

SPDX-License-Identifier: BSD-3-Clause
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as tree

WIDTH_MAX = 900
# Of a character, on average and as a share of the size of the font; a little less than it takes, so that what
# is found is true.
CHARACTER = 0.5
SVG = "{http://www.w3.org/2000/svg}"
OUTSIDE = ("at screen", "outside", "below", "bmargin", "off")


class Script:
    """What holds while gnuplot reads a script from top to bottom."""

    def __init__(self, path):
        self.path, self.findings = path, []
        self.state = {"title": "", "xlabel": "", "ylabel": "", "key": "inside", "multiplot": "",
                      "formatx": "?"}
        self.panels, self.legends, self.sharing = 0, 0, False
        # In a loop, or continued: one command a line.
        text = re.sub(r"\\\n", " ", path.read_text(encoding="utf-8"))
        for line in text.split("\n"):
            self.read(line.strip())
        if self.panels == 0:
            self.complain("no plot")
        if self.sharing:
            self.complain("the last plot has no numbers at the x axis")
        if self.legends > 1:
            self.complain(f"{self.legends} legends")

    def complain(self, what):
        self.findings.append(f"{self.path}: {what}")

    def read(self, line):
        words = line.split()
        if words[:2] == ["set", "key"]:
            self.set_key(" ".join(words[2:]))
        elif words[:2] == ["set", "format"] and words[2] == "x":
            self.state["formatx"] = words[3]
        elif words[:1] == ["unset"] and words[1] in self.state:
            self.state[words[1]] = "off" if words[1] == "key" else ""
        elif words[:1] == ["set"] and words[1] in ("title", "xlabel", "ylabel"):
            self.state[words[1]] = " ".join(words[2:]).strip("'\"")
        elif words[:2] == ["set", "multiplot"]:
            self.state["multiplot"] = line
        elif words[:1] == ["plot"]:
            self.plot(line)

    def set_key(self, words):
        if any(place in words for place in OUTSIDE):
            self.state["key"] = "outside"
        elif any(place in words.split() for place in ("left", "right", "top", "bottom", "center")):
            self.state["key"] = "inside"

    def plot(self, line):
        self.panels += 1
        if not self.state["title"] and "title" not in self.state["multiplot"]:
            self.complain("no title")
        if not self.state["ylabel"]:
            self.complain("no name at the y axis")
        shares_axis = self.state["multiplot"] and self.state["formatx"] in ("''", '""')
        if not shares_axis and not self.state["xlabel"]:
            self.complain("no name at the x axis")
        self.sharing = shares_axis
        shown = self.state["key"] != "off" and ("title" in re.sub("notitle", "", line))
        self.legends += shown
        if shown and self.state["key"] == "inside":
            self.complain("a legend inside of the plot")


def number(text):
    return float(text.removesuffix("px"))


def texts(root):
    """(text, left, top, right, bottom) of each."""
    for group in root.iter(SVG + "g"):
        place = re.match(r"translate\(([-\d.]+),([-\d.]+)\)(?: rotate\(([-\d.]+)\))?",
                         group.get("transform", ""))
        words = "".join("".join(text.itertext()) for text in group.findall(SVG + "text")).strip()
        if not place or not words:
            continue
        size = number(group.get("font-size"))
        x, y, angle = float(place[1]), float(place[2]), float(place[3] or 0)
        long, high = CHARACTER * size * len(words), 0.7 * size
        before = {"middle": long / 2, "end": long}.get(group.get("text-anchor"), 0)
        if abs(angle) == 90:
            start = y - before if angle > 0 else y - long + before
            yield words, x - high, start, x, start + long
        elif angle == 0:
            yield words, x - before, y - high, x - before + long, y


def check_svg(path):
    root = tree.parse(path).getroot()
    _, _, width, height = (float(word) for word in root.get("viewBox").split())
    if width > WIDTH_MAX:
        yield f"{path}: {width:g} points wide, at most {WIDTH_MAX}: too small where pages show it"
    found = list(texts(root))
    for words, left, top, right, bottom in found:
        if left < 0 or top < 0 or right > width or bottom > height:
            yield f"{path}: \"{words}\" is not within the picture"
        if re.search(r"\de[-+]\d\d", words):
            yield f"{path}: \"{words}\" is a number as programs write it"
    for i, one in enumerate(found):
        for other in found[:i]:
            if one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]:
                yield f"{path}: \"{one[0]}\" is on \"{other[0]}\""


def main():
    findings, pictures = [], 0
    for name in sys.argv[1:]:
        script = pathlib.Path(name)
        findings += Script(script).findings + list(check_svg(script.with_suffix(".svg")))
        pictures += 1
    print("\n".join(findings[:40]))
    print(f"{pictures} pictures, {len(findings)} findings")
    sys.exit(not pictures or bool(findings))


main()
