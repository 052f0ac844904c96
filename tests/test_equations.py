"""The index of equations: no number missing, every name there, every pointer to what it says.

What is in the index is in docs/equations.toml, the page is docs/equations.md. The checkers yield what is
wrong, one line each; they run on the index, and on rows with a fault each, which they must find.
"""

import ast
import importlib
import importlib.util
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
NUMBERED = {"G": 55, "B": 21}
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs" / "equations.toml").is_file(),
    reason="the tests run away from a checkout, so there are no documents to look at",
)


def writer():
    """Return docs/write_equations.py as a module."""
    spec = importlib.util.spec_from_file_location(
        "write_equations", ROOT / "docs" / "write_equations.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def label(paper, row):
    return f"[{paper}] " + (row["name"] if "name" in row else f"Eq {row['eq']}")


def equations_in(text):
    """Return the numbers that a text names: Eq 3, Eq 9 and 10, Eq 2 to 5, Eq 47 with 48."""
    found = set()
    for match in re.finditer(r"Eq (\d+(?:(?:, | and | to | with |-)\d+)*)", text):
        first, *rest = re.split(r"(, | and | to | with |-)", match[1])
        numbers = [int(first)]
        for between, number in zip(rest[::2], rest[1::2], strict=True):
            if between in {" to ", "-"}:
                numbers += range(numbers[-1] + 1, int(number))
            numbers.append(int(number))
        found.update(numbers)
    return found


def names(text, row):
    """Tell whether a text names what a row is about."""
    if "eq" in row:
        return row["eq"] in equations_in(text)
    text = re.sub(r"(Lemma|Theorem|Proposition)s\b", r"\1", text)
    plain = text.replace("_", " ").casefold()
    return re.search(rf"{re.escape(row['name'].casefold())}(?![\d.]*\d)", plain) is not None


@cache
def functions_of(path):
    """Return {name: text} of the functions of a file of tests."""
    if not (TESTS / path).is_file():
        return {}
    text = (TESTS / path).read_text(encoding="utf-8")
    lines = text.splitlines()
    return {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }


def source_of(test):
    """Return the text of a test, docstring and name included; None if it isn't there."""
    path, _, function = test.partition("::")
    return functions_of(path).get(function)


def attribute(package, name):
    """Return gzkcore.sphere.special.alpha for gzkcore and special.alpha, or None."""
    module, _, function = name.rpartition(".")
    try:
        return getattr(importlib.import_module(f"{package}.{module}"), function, None)
    except ModuleNotFoundError:
        return None


def check_numbers(rows):
    """Every number occurs once, in order."""
    for paper, last in NUMBERED.items():
        found = [row["eq"] for row in rows[paper] if "eq" in row]
        if found != list(range(1, last + 1)):
            yield f"[{paper}] has the equations {found}, not 1 to {last}"


def check_functions(rows):
    """Every function is there, and those of the reference name what they are the formula of."""
    for paper, entries in rows.items():
        for row in entries:
            where = label(paper, row)
            texts = []
            for name in row["reference"]:
                function = attribute("gzkcore.reference", name)
                if function is None:
                    yield f"{where}: reference.{name} isn't there"
                    continue
                texts.append(inspect.getdoc(function))
                if "eq" in row and not names(texts[-1], row):
                    yield f"{where}: the docstring of reference.{name} does not name it"
            if "name" in row and texts and not any(names(text, row) for text in texts):
                yield f"{where}: no docstring of {row['reference']} names it"
            for name in row["gzkcore"]:
                if attribute("gzkcore", name) is None:
                    yield f"{where}: gzkcore.{name} isn't there"


def check_tests(rows):
    """Every test is there; one of a row without a function names the equation, and its paper."""
    for paper, entries in rows.items():
        for row in entries:
            where = label(paper, row)
            texts = {test: source_of(test) for test in row["tests"]}
            for test, text in texts.items():
                if text is None:
                    yield f"{where}: {test} isn't there"
                elif "test_proofs" in test and ("[B]" in text) != (paper == "B"):
                    yield f"{where}: {test} is about the other paper"
            if not row["tests"]:
                yield f"{where}: no test"
            elif not row["reference"] and not any(
                names(text or "", row) for text in texts.values()
            ):
                yield f"{where}: no function, and no test that names it"


def check_errata(rows):
    """Every entry of the errata is there, and of the same paper."""
    known = writer().errata_anchors()
    for paper, entries in rows.items():
        for row in entries:
            for entry in row.get("errata", []):
                if entry not in known or entry[0] != paper:
                    yield f"{label(paper, row)}: no entry {entry} of its paper in docs/errata.md"


def right_row(**changes):
    """Return a right row about Eq 4, with changes."""
    right = {
        "eq": 4,
        "says": "",
        "reference": ["special.alpha"],
        "gzkcore": ["sphere.special.alpha"],
        "tests": ["reference/test_special.py::test_orthogonality"],
    }
    return {"G": [right | changes]}


WRONG = {
    check_numbers: [({"G": [], "B": []}, "not 1 to 55")],
    check_functions: [
        (right_row(reference=["special.beta"]), "reference.special.beta isn't there"),
        (right_row(reference=["attic.alpha"]), "reference.attic.alpha isn't there"),
        (right_row(gzkcore=["sphere.special.beta"]), "gzkcore.sphere.special.beta isn't there"),
        (right_row(eq=5), "the docstring of reference.special.alpha does not name it"),
    ],
    check_tests: [
        (right_row(tests=["reference/test_special.py::test_beta"]), "test_beta isn't there"),
        (right_row(tests=["test_attic.py::test_alpha"]), "test_alpha isn't there"),
        (right_row(tests=[]), "no test"),
        (right_row(reference=[]), "no function, and no test that names it"),
        (
            right_row(tests=["reference/test_proofs.py::test_moments_of_the_log_normal_law"]),
            "is about the other paper",
        ),
    ],
    check_errata: [(right_row(errata=["G99"]), "no entry G99"), (right_row(errata=["B1"]), "no entry B1")],
}  # fmt: skip


@pytest.mark.parametrize("checker", WRONG)
def test_the_index_holds(checker):
    assert list(checker(writer().rows())) == []


@pytest.mark.parametrize(
    ("checker", "rows", "fault"),
    [(checker, *wrong) for checker, faults in WRONG.items() for wrong in faults],
)
def test_a_wrong_row_is_noticed(checker, rows, fault):
    found = list(checker(rows))
    assert any(fault in line for line in found), found


def test_a_right_row_passes():
    rows = right_row()
    assert [*check_functions(rows), *check_tests(rows), *check_errata(rows)] == []


def test_numbers_are_read_from_text():
    text = "Eq 2 to 5, 8 and Eq 47 with 48; Eq 9-11, Sequence 77 and section Eq. 3"
    assert equations_in(text) == {2, 3, 4, 5, 8, 9, 10, 11, 47, 48}
    assert names("Lemmas 1 and 4", {"name": "Lemma 1"})
    assert not names("Lemma 14, Section 4.11", {"name": "Lemma 1"})
    assert not names("Section 4.11", {"name": "Section 4.1"})


def test_the_page_is_up_to_date():
    page = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    assert page == writer().page(), "run python3 docs/write_equations.py"
    for line in page.splitlines():
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) == 8, f"a cell has a bar in it: {line}"


def test_the_readme_counts_the_formulas():
    """Not every statement has a function, and none of the texts says so."""
    counts = writer().counts()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{counts['with_one']} of the {counts['all']} entries" in readme
    assert f"The other {counts['without']}" in readme
    for path in [ROOT / "README.md", ROOT / "CITATION.cff", *(ROOT / "docs").glob("*.md")]:
        text = " ".join(path.read_text(encoding="utf-8").split()).lower()
        for claim in (
            "every formula of",
            "every formula is",
            "tables reproduced",
            "all of them in the [",
        ):
            assert claim not in text, f"{path.name}: {claim}"


def test_links_to_the_errata_lead_somewhere():
    headings = re.findall(
        r"^#+ (.*)", (ROOT / "docs/errata.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    anchors = {writer().anchor(heading) for heading in headings}
    for path in sorted((ROOT / "docs").glob("*.md")):
        for link in re.findall(r"errata\.md#([^)]+)\)", path.read_text(encoding="utf-8")):
            assert link in anchors, f"{path.name}: errata.md#{link}"


@pytest.mark.parametrize("name", writer().LESSONS if ROOT.joinpath("docs").is_dir() else [])
def test_the_code_on_a_teaching_page_is_that_of_the_reference(name):
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert "```python" in page
    assert page == writer().lesson(page), "run python3 docs/write_equations.py"


def test_old_code_on_a_teaching_page_is_noticed():
    page = writer().lesson("<!-- reference: special.sphere_area -->\n")
    assert page == writer().lesson(page)
    old = page.replace("lgamma", "gamma")
    assert old != page == writer().lesson(old)
    with pytest.raises(ValueError, match=r"reference\.special\.beta isn't there"):
        writer().lesson("<!-- reference: special.beta -->\n")
