"""The tables and figures of the two papers, run anew beside the printed numbers.

[G] Han, Zandieh, Avron, "Random Gegenbauer Features for Scalable Kernel Methods", 2022; [B] "A
Simple and Efficient Method for Random Fourier Features". The command is ``python3 run.py papers``.
"""

import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gzkcore._util.typing import OnProgress
from gzkcore._util.validation import check_integer
from gzkcore._util.wording import aligned, counted
from gzkcore.evaluate.results import Outcomes, Store

from . import block, gegenbauer
from .data import Data
from .experiment import TOLERANCE, Cell, Experiment, Picture, Setup

__all__ = ["EXPERIMENTS", "Result", "choose", "run"]

# Name -> the experiment.
EXPERIMENTS: dict[str, Experiment] = {
    one.name: one()
    for one in (*gegenbauer.EXPERIMENTS, *block.EXPERIMENTS)
}  # fmt: skip

# A quick run has this in place of verdicts.
QUICK = "quick"


@dataclass(frozen=True)
class Result:
    """A table or figure as measured; `print` shows it.

    Attributes
    ----------
    name, title : str
    quick : bool
        Whether sizes were reduced; then nothing is compared with printed numbers.
    seeds : int
        Largest number of seeds that a cell is the mean of.
    cells : tuple of Cell
        Each has `row`, `column`, `measure`, `printed`, `mean`, `spread` and `verdict`.
    used, absent : dict of str to str
        The data that replace each set of the paper, and why others are missing.
    notes : tuple of str
        The protocol, and what is known of the differences.
    pictures : tuple
        The panels that `plot` draws.
    """

    name: str
    title: str
    quick: bool
    seeds: int
    cells: tuple[Cell, ...]
    used: dict[str, str]
    absent: dict[str, str]
    notes: tuple[str, ...]
    pictures: tuple[Picture, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain numbers, strings, lists and dicts."""
        return {
            "name": self.name,
            "title": self.title,
            "quick": self.quick,
            "seeds": self.seeds,
            "cells": [cell.to_dict() for cell in self.cells],
            "used": self.used,
            "absent": self.absent,
            "notes": list(self.notes),
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and lines."""
        header = ["", "method", "measure", "printed", "measured", "verdict"]
        lines, before = [], None
        for cell in self.cells:
            row = "" if cell.row == before else cell.row
            measured = _printed(cell.printed), _measured(cell)
            lines.append([row, cell.column, cell.measure, *measured, cell.verdict])
            before = cell.row
        return header, lines

    def remarks(self) -> Iterator[str]:
        """Yield the notes below the table."""
        yield from self.notes
        for name, about in self.used.items():
            yield f"{name}: {about}"
        for name, reason in self.absent.items():
            yield f"{name}: absent, skipped ({reason})"
        claims = {cell.printed: None for cell in self.cells if isinstance(cell.printed, str)}
        for claim in claims:
            yield f"The paper's claim: {claim}"
        if self.quick:
            yield f"{QUICK}: of smaller sizes, so that nothing is judged"
        elif any(isinstance(cell.printed, float) for cell in self.cells):
            yield f"agrees: within {TOLERANCE:.0%} of the printed number or within our own spread"
        if counts := sorted({len(cell.values) for cell in self.cells if len(cell.values) > 1}):
            some = f"{counts[0]} to " if len(counts) > 1 else ""
            yield f"mean ± standard deviation of {some}{counted(counts[-1], 'seed')}"

    def __str__(self) -> str:
        header, lines = self.table()
        table = aligned(header, lines, right=False)
        return "\n".join([f"{self.name}: {self.title}", "", *table, "", *self.remarks()])

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw it to a .png, .pdf or .svg file; needs matplotlib, ``pip install gzkcore[cli]``."""
        from .drawing import draw

        draw(Path(path), f"{self.name}: {self.title}", self.cells, self.pictures)


def choose(paper: str, experiment: str | None = None) -> list[str]:
    """Return the names of one experiment, of all of a paper, or of both papers ("all").

    Examples
    --------
    >>> from papers.reproduce import choose
    >>> choose("gegenbauer")
    ['gegenbauer fig1', 'gegenbauer table1', 'gegenbauer table2', 'gegenbauer table3']
    """
    if paper == "all" and experiment is None:
        return list(EXPERIMENTS)
    name = f"{paper} {experiment}" if experiment else f"{paper} "
    names = [one for one in EXPERIMENTS if one == name or (not experiment and one.startswith(name))]
    if not names:
        raise ValueError(
            f"there is no experiment {name.strip()!r}; choose all, gegenbauer, block, or one of "
            f"{', '.join(EXPERIMENTS)}"
        )
    return names


def run(
    name: str,
    *,
    quick: bool = False,
    seeds: int | None = None,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = False,
    output: str | os.PathLike[str] | None = None,
    report: OnProgress | None = None,
) -> Result:
    """Run an experiment of one of the papers, or continue it.

    Parameters
    ----------
    name : str
        Such as "gegenbauer table2"; all are in `EXPERIMENTS`.
    quick : bool, default=False
        Use smaller sizes, which take minutes instead of hours. This only shows that everything
        runs; nothing is compared with printed numbers.
    seeds : int, optional
        Number of repetitions with different draws and splits. By default 3 (2 for quick; 1 if
        nothing is drawn or only times are measured).
    data_home : str or path, optional
        As for `gzkcore.datasets.load`. Missing sets are skipped and listed.
    download : bool, default=False
        Whether to download missing sets.
    output : str or path, optional
        A .json file for the results of all experiments, written after every job. Jobs in it are not
        repeated; seeds may be added.
    report : callable, optional
        Called with a label, the share of the work that is done, and the current job.

    Returns
    -------
    Result

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or `output` is of other settings or data.

    Notes
    -----
    Time: from seconds (the figure and Table 1 of [G]) to an hour (Table 2 of [G], Table 4 of [B]).

    Examples
    --------
    >>> from papers.reproduce import run
    >>> cells = run("gegenbauer fig1").cells
    >>> cells[1].row, cells[1].column, round(cells[1].mean, 4)
    ('Gaussian, degree 5', 'd = 2', 0.0037)
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"there is no experiment {name!r}; choose one of {', '.join(EXPERIMENTS)}")
    experiment = EXPERIMENTS[name]
    count = experiment.seeds[int(quick)] if seeds is None else check_integer("seeds", seeds, 1)
    sets = Data(None if data_home is None else Path(data_home), download)
    setup = Setup(quick, count, sets)
    digests = {f"data {of}": sets.digest(of) for of in experiment.sets}
    store = Store(output, "papers", name)
    store.agree({"quick": quick} | {key: one for key, one in digests.items() if one})
    _work(experiment, setup, store, report or (lambda *_: None))
    cells = tuple(experiment.cells(setup, store.outcomes))
    return Result(
        name=name,
        title=experiment.title,
        quick=quick,
        seeds=max((len(cell.values) for cell in cells), default=count),
        cells=tuple(cell.unjudged(QUICK) if quick else cell for cell in cells),
        used=dict(sets.used),
        absent=dict(sets.absent),
        notes=(*experiment.notes(setup), *_failures(store.outcomes)),
        pictures=tuple(experiment.pictures(setup, store.outcomes)),
    )


def _work(experiment: Experiment, setup: Setup, store: Store, report: OnProgress) -> None:
    """Run the missing jobs, and save the numbers of each."""
    jobs = list(experiment.jobs(setup))
    missing = [job for job in jobs if job.key not in store.outcomes]
    for done, job in enumerate(missing, start=len(jobs) - len(missing)):
        report(experiment.name, done / len(jobs), job.key)
        try:
            outcome = job.run()
        except ValueError as error:  # this method can't take these data: the others go on
            outcome = {"failed": str(error)}
        store.keep(job.key, outcome)
    report(experiment.name, 1.0, "")


def _failures(outcomes: Outcomes) -> Iterator[str]:
    for key, outcome in outcomes.items():
        if "failed" in outcome:
            yield f"{key.rpartition(' / ')[0]}: failed ({outcome['failed']})"


def _printed(value: float | str | None) -> str:
    if value is None:
        return ""
    return "(a claim)" if isinstance(value, str) else _brief(value)


def _measured(cell: Cell) -> str:
    if cell.capped:
        more = f"more than {_brief(cell.most)}"
        if not cell.measured:
            return more
        mean = _brief(statistics.fmean(cell.measured))
        some = f"{mean} in {counted(len(cell.measured), 'seed')}"
        return f"{some}, {more} in {cell.capped}"
    return _brief(cell.mean) + (f" ± {_brief(cell.spread, 2)}" if len(cell.values) > 1 else "")


def _brief(value: float, digits: int = 3) -> str:
    size = abs(value)
    if 1000 <= size < 1e6:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
