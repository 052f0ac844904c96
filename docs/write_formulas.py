"""Write docs/formulas.md: python docs/write_formulas.py, where gzkcore is installed.

The page is made from the table in tests/formulas.py, which tests check against the package;
tests/test_compiled.py checks that the page is up to date.
"""

import importlib
import inspect
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

HEAD = """\
# From formula to kernel

This page lists every public formula of `reference`, its mirror in `gzkcore`, and the compiled
functions that compute it: typed Cython without the interpreter's lock, with loops over rows divided
among threads. If there is no compiled function, the reason is given instead. The test compares the
mirror with the formula. The benchmark is a class of asv, in the file of the idea unless another is
named.

Of {n} formulas {compiled} are compiled. This page is made by `python3 docs/write_formulas.py` from
`tests/formulas.py`, where a test checks the compiled modules; edit that file.

If a formula takes some tenths of a second, its mirror is at least 100 times as fast. On the
arguments of `asv_bench/benchmarks/formulas.py` some formulas take so little time that the cost of a
call matters. The table shows their ratios on these arguments ("there") and on larger ones, with one
thread, CPU time, in turn, while other programs ran:

| formula | there | on larger ones | the larger arguments |
|---|---|---|---|
| `adaptive.monomial_features` | 62 | 175 | 400 monomials, not 50 |
| `block.energy_variance`, `projection_variance` | 94, 75 | 126, 111 | 100,000 rows, not 2,000 |
| `block.projection_moments` | 71 | 107 | 1,000,000 pairs, not 20,000 |
| `fourier.fourier_variance` | 59 | 254 | 1,000,000 pairs, not 20,000 |
| `fourier.modified_weight` | 47 | 194 | 100,000 rows, not 2,000 |
| `special.gegenbauer_coefficients` | 40 | 185 | degree 400, not 60 |
| `series.angular_energy` | 26 | 31 | degree 60, not 5 |
| `special.alpha` | 8 | 13 | 1,500 degrees, not 300 |
| `gegenbauer.apply_operator`, `kernels.generalized_zonal` | 66, 35 | | |
| `harmonics.n_harmonics` | 8 | | |

The last four rows stay below 100. `alpha` and `n_harmonics` are one or two binomials. Python, with
its exact integers, takes 1 to 12 µs for these, and the mirror .1 µs for each number of an array and
1.6 for a single one. The other formulas take .6 to 13 ms, and their mirrors 20 to 200 µs, most of
it Python and NumPy code before and after the compiled function.

"""


def table():
    """Return tests/formulas.py as a module."""
    sys.path.insert(0, str(ROOT / "tests"))
    try:
        return importlib.import_module("formulas")
    finally:
        sys.path.pop(0)


def kernels(row):
    """Link the compiled functions of a row, or say why there are none."""
    if not row.compiled:
        return row.in_python
    links = []
    for name in row.compiled:
        module = name.partition(".")[0]
        links.append(f"[`{name}`](../gzkcore/_compiled/{module}.pyx)")
    return ", ".join(links)


def mirror(formulas, idea, row):
    """Link the mirror of a row to the file that has it."""
    if row.mirror is None:
        return "-"
    found = getattr(formulas.mirrors_of(idea), row.mirror)
    path = inspect.getmodule(found).__name__.replace(".", "/")
    return f"[`{row.mirror}`](../{path}.py)"


def lines():
    """Yield the lines of the page after its head."""
    formulas = table()
    idea = None
    for where, row in formulas.table().items():
        if where.partition(".")[0] != idea:
            if idea is not None:
                yield ""
            idea = where.partition(".")[0]
            yield f"## {idea}"
            yield ""
            yield f"[`reference.{idea}`](../reference/{idea}.py), [page]({idea}.md)"
            yield ""
            yield "| formula | mirror | compiled | test | benchmark |"
            yield "|---|---|---|---|---|"
        cells = (
            f"`{where.partition('.')[2]}`",
            mirror(formulas, idea, row),
            kernels(row),
            f"`{row.test}`",
            f"`{row.benchmark}`" if row.benchmark else "-",
        )
        yield f"| {' | '.join(cells)} |"


def page():
    """Return the text of docs/formulas.md."""
    rows = table().table()
    head = HEAD.format(n=len(rows), compiled=sum(bool(row.compiled) for row in rows.values()))
    return head + "\n".join(lines()) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "formulas.md").write_text(page(), encoding="utf-8")
