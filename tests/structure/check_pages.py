"""Man pages: a struct that a page prints is that of the headers; each public enumerator is in a page."""

import re

import tree

# Numbers of the others, not values.
COUNTS = {"LH_BOTTLENECKS", "LH_ERRORS", "LH_REDUCTIONS", "LH_TYPES"}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def definitions(text):
    """"struct name" or "enum name", and what stands between its braces, in the smallest form."""
    for found in re.finditer(r"\b(struct|enum)\s+(\w+)\s*\{", text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        body = re.sub(r"\s+", " ", text[found.end():end - 1])
        yield f"{found[1]} {found[2]}", re.sub(r"\s*([;,{}=*\[\]()])\s*", r"\1", body).strip()


def page_text(path):
    """As it is shown: without requests and escapes."""
    text = "\n".join(line for line in tree.lines(path) if not line.startswith("."))
    return without_comments(re.sub(r"\\f.|\\&", "", text).replace("\\-", "-"))


def first_difference(shown, real):
    parts = re.split(r"(?<=[;,])", shown)
    for number, part in enumerate(re.split(r"(?<=[;,])", real)):
        if number >= len(parts) or parts[number] != part:
            return part
    return parts[-1]


def main():
    report = tree.Report("pages")
    headers = {}
    for path in tree.files(".h", under=("include",)):
        headers.update(definitions(without_comments("\n".join(tree.lines(path)))))
    pages = tree.files(".1", ".3", ".7", under=("docs/man",))
    printed = 0
    for path in pages:
        for name, body in definitions(page_text(path)):
            printed += 1
            if name not in headers:
                report.add(path, 1, f"{name}: no header has it", "delete it, or name the right one")
            elif body != headers[name]:
                where = first_difference(body, headers[name])
                report.add(path, 1, f'{name}: not as in its header, from "{where}"',
                           "print the members of the header, in their order")
    shown = set()
    for path in pages:
        shown.update(re.findall(r"\w+", "\n".join(tree.lines(path))))
    for name, body in headers.items():
        if not name.startswith("enum"):
            continue
        for enumerator in re.findall(r"(?:^|,)(\w+)", body):
            if enumerator not in shown | COUNTS:
                report.add(pages[0].parent, 1, f"{enumerator} of {name} is in no page",
                           "describe it in the page of its calls")
    report.done(f"{printed} structs and enums, {len(headers)} in headers")


main()
