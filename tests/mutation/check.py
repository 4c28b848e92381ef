"""Test structure/mutation: each operator plants what it says, where it may; a seed draws the same twice."""

import pathlib
import sys

MUTATION = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(MUTATION.parent / "structure"))

import mutation
import operators
import tree

EXAMPLE = "tests/mutation/example.c"
# function, operator: the changed lines, all of them.
EXPECTED = {
    ("compare", "relation"): ["if (a <= b && text)", "if (a >= b && text)"],
    ("compare", "logic"): ["if (a < b || text)"],
    ("compare", "condition"): ["if (0)", "if (1)", "if (!(a < b && text))"],
    ("compare", "return"): ["return -1;"],
    ("compare", "constant"): ["return 1;"],
    ("compare", "arithmetic"): ["return a - b;"],
    ("is_empty", "condition"): ["if (0)", "if (1)", "if (!(!box->list))"],
    ("is_empty", "not"): ["if (box->list)"],
    ("is_empty", "return"): ["return false;"],
    ("is_empty", "relation"): ["return box->count != 0;"],
    ("is_empty", "constant"): ["return box->count == 1;"],
    ("clear", "constant"): ["for (int i = 1; i < box->count; i++)", "box->list[i] = 1;",
                            "box->count = lh_min(box->count, 8);", "box->count = lh_min(box->count, 6);"],
    ("clear", "relation"): ["for (int i = 0; i <= box->count; i++)", "for (int i = 0; i >= box->count; i++)"],
    ("clear", "statement"): [";", ";", ";"],
    ("clear", "extreme"): ["box->count = lh_max(box->count, 7);"],
    ("clear", "step"): ["box->count;"],
}


def check_operators(text, report):
    found = {}
    for function in operators.functions(EXAMPLE, text):
        for operator, faults in operators.faults(function, text).items():
            found[function.name, operator] = [fault.after.strip() for fault in faults]
            for fault in faults:
                if operators.apply(fault, text).split("\n")[fault.line - 1] != fault.after:
                    report.add(EXAMPLE, fault.line, f"{operator} changes another line", "see apply()")
    for key in sorted(set(found) | set(EXPECTED)):
        if found.get(key) != EXPECTED.get(key):
            report.add(EXAMPLE, 1, f"{' '.join(key)}: {found.get(key)}, expected {EXPECTED.get(key)}",
                       "correct tests/mutation/operators.py, or EXPECTED")


def faults_drawn(texts, seed):
    return [[(fault.key(), fault.after) for fault in queue] for queue in operators.draw(texts, 2, seed)]


def check_draw(text, report):
    other = "/* More before it. */\n\n" + text
    draws = [faults_drawn({EXAMPLE: text}, seed) for seed in range(20)]
    if draws != [faults_drawn({EXAMPLE: text}, seed) for seed in range(20)]:
        report.add(EXAMPLE, 1, "a seed draws other faults the second time", "see draw()")
    if draws != [faults_drawn({"moved.c": other}, seed) for seed in range(20)]:
        report.add(EXAMPLE, 1, "the draw depends on the file or the line", "see rank() and order()")
    if len({str(draw) for draw in draws}) < 10:
        report.add(EXAMPLE, 1, "seeds draw the same faults", "see draw()")


def main():
    report = tree.Report("mutation")
    text = "\n".join(tree.lines(EXAMPLE))
    check_operators(text, report)
    check_draw(text, report)
    equivalents = mutation.read_equivalents(MUTATION / "equivalents.txt")
    report.done(f"{len(EXPECTED)} operators of functions, {len(equivalents)} equivalent faults")


main()
