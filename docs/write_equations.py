"""Write docs/equations.md, and the functions on the teaching pages: python docs/write_equations.py.

The index is made from docs/equations.toml. A teaching page names a function of the reference in a
comment, and its code follows without the docstring. tests/test_equations.py checks that all is up
to date.
"""

import ast
import re
import tomllib
from pathlib import Path

DOCS = Path(__file__).resolve().parent
LESSONS = ["teach_gegenbauer.md", "teach_block.md"]

HEAD = """\
# From equation number to function

This page lists every numbered equation of the two papers, the functions that compute it, and the
tests that check it. `reference` has the formula in plain Python; `gzkcore` has a fast function with
the same result. The benchmark of an idea is in `asv_bench/benchmarks` under the name of its page.
{with_one} of the {all} entries have a function in `reference`. The other {without} have none: most
are steps of proofs, and a test checks each by numbers. The last column links to the
[errata](errata.md). To walk through the papers with Python in hand, read
[teach_gegenbauer](teach_gegenbauer.md) and [teach_block](teach_block.md).

This page is made by `python3 docs/write_equations.py` from `docs/equations.toml`; edit that file.

"""
TITLES = {
    "G": (
        "The Gegenbauer paper",
        "I. Han, A. Zandieh, H. Avron, *Random Gegenbauer Features for Scalable Kernel Methods*.",
    ),
    "B": (
        "The block paper",
        "*A Simple and Efficient Method for Random Fourier Features* (anonymous, under review).",
    ),
}


def rows():
    """Return {paper: list of rows}, as docs/equations.toml has them."""
    return tomllib.loads((DOCS / "equations.toml").read_text(encoding="utf-8"))


def functions(names, folder):
    """Link each name, such as special.alpha, to the file that has it."""
    links = []
    for name in names:
        place = name.rpartition(".")[0].replace(".", "/")
        links.append(f"[`{name}`](../{folder}/{place}.py)")
    return ", ".join(links)


def links_to_tests(names):
    """Link each test to its file."""
    links = []
    for name in names:
        path, _, function = name.partition("::")
        links.append(f"[`{function}`](../tests/{path})")
    return ", ".join(links)


def pages(row):
    """Link the pages of the ideas that a row's functions belong to."""
    names = row["reference"] + row["gzkcore"]
    ideas = dict.fromkeys(part for name in names for part in name.split(".")[:-1])
    ideas = [idea for idea in ideas if (DOCS / f"{idea}.md").is_file()]
    return ", ".join(f"[{idea}]({idea}.md)" for idea in ideas)


def errata(row, anchors):
    """Link the errata of a row."""
    return ", ".join(f"[{entry}](errata.md#{anchors[entry]})" for entry in row.get("errata", []))


def anchor(heading):
    """Make the anchor that a code host gives a heading."""
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in " -_")
    return kept.strip().replace(" ", "-")


def errata_anchors():
    """Return {entry: anchor} of docs/errata.md."""
    headings = [
        line.removeprefix("## ")
        for line in (DOCS / "errata.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    ]
    return {heading.partition(".")[0]: anchor(heading) for heading in headings}


def table(entries, column):
    """Yield the lines of one table; column is eq or name."""
    anchors = errata_anchors()
    first = "Eq" if column == "eq" else "name"
    yield f"| {first} | what it says | reference | gzkcore | tests | page | errata |"
    yield "|---|---|---|---|---|---|---|"
    for row in entries:
        if column in row:
            cells = (
                str(row[column]),
                row["says"],
                functions(row["reference"], "reference") or "-",
                functions(row["gzkcore"], "gzkcore") or "-",
                links_to_tests(row["tests"]),
                pages(row) or "-",
                errata(row, anchors),
            )
            yield f"| {' | '.join(cells)} |"


def counts():
    """Count all rows, and those with a function of the reference and without."""
    found = [bool(row["reference"]) for entries in rows().values() for row in entries]
    return {"all": len(found), "with_one": sum(found), "without": len(found) - sum(found)}


def page():
    """Return the text of docs/equations.md."""
    parts = [HEAD.format(**counts())]
    for paper, entries in rows().items():
        title, source = TITLES[paper]
        parts.append(f"## {title}\n\n{source}\n\n")
        parts.append("\n".join(table(entries, "eq")) + "\n\n")
        parts.append("What has a name instead of a number:\n\n")
        parts.append("\n".join(table(entries, "name")) + "\n\n")
    return "".join(parts).rstrip() + "\n"


def code(name):
    """Return the code of a function of the reference, such as special.alpha.

    Without its docstring, and without the checks of its numbers.
    """
    idea, _, function = name.partition(".")
    path = DOCS.parent / "reference" / f"{idea}.py"
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            lines = text.splitlines()
            docstring = node.body[0]
            head = lines[node.lineno - 1 : docstring.lineno - 1]
            body = lines[docstring.end_lineno : node.end_lineno]
            return "\n".join([*head, *(line for line in body if "refuse_below(" not in line)])
    raise ValueError(f"reference.{name} isn't there; mend the comment on the page")


def lesson(text):
    """Return the text of a teaching page with the code of today after each comment."""

    def block(match):
        path = f"../reference/{match[1].partition('.')[0]}.py"
        link = f"[`reference.{match[1]}`]({path})"
        return f"<!-- reference: {match[1]} -->\n\n{link}\n\n```python\n{code(match[1])}\n```\n"

    old = r"<!-- reference: (\S+) -->\n(?:\n\[`\S+`\]\(\S+\)\n\n```python\n(?:.*\n)*?```\n)?"
    return re.sub(old, block, text)


if __name__ == "__main__":
    (DOCS / "equations.md").write_text(page(), encoding="utf-8")
    for name in LESSONS:
        text = (DOCS / name).read_text(encoding="utf-8")
        (DOCS / name).write_text(lesson(text), encoding="utf-8")
