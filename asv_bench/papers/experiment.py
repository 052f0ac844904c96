"""The base of the experiments of `papers`: their jobs, cells, and verdicts."""

import math
import statistics
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gzkcore.evaluate.results import Outcomes

# A cell agrees with the paper if it differs by this share, or by our own spread, at most.
TOLERANCE = 0.10


@dataclass(frozen=True)
class Cell:
    """A cell of a table: the printed number and the measured ones.

    `values` are those of the seeds. `less` says whether less is better; None: neither. `finding` is
    what an experiment itself concludes, where the two numbers don't tell. `judged` is False where
    nothing can be concluded, and `note` says why, or what else to bear in mind. `most` is the
    largest value that a search tried: greater ones are only known to be greater.
    """

    row: str
    column: str
    measure: str
    values: tuple[float, ...]
    printed: float | str | None = None
    less: bool | None = True
    judged: bool = True
    note: str = ""
    finding: str = ""
    most: float = math.inf

    @property
    def measured(self) -> tuple[float, ...]:
        """The values that are known."""
        return tuple(value for value in self.values if value <= self.most)

    @property
    def capped(self) -> int:
        """Number of values that are only known to be above `most`."""
        return len(self.values) - len(self.measured)

    @property
    def mean(self) -> float:
        """Mean over the seeds; a lower bound if some are capped."""
        return statistics.fmean(min(value, self.most) for value in self.values)

    @property
    def spread(self) -> float:
        """Standard deviation over the seeds, 0 for one; of no meaning if some are capped."""
        limited = [min(value, self.most) for value in self.values]
        return statistics.stdev(limited) if len(limited) > 1 else 0.0

    @property
    def verdict(self) -> str:
        """The finding, or `agrees`, `better`, `worse`, `higher`, `lower`; and the note."""
        if self._concludes and not self.judged:
            return self.note or "not comparable"
        return "; ".join(filter(None, (self.finding or self._beside_printed(), self.note)))

    def unjudged(self, why: str) -> "Cell":
        """Return the cell without its finding."""
        return replace(self, judged=False, note=why) if self._concludes else self

    @property
    def _concludes(self) -> bool:
        return self.printed is not None or bool(self.finding)

    def _beside_printed(self) -> str:
        if self.printed is None or isinstance(self.printed, str):
            return ""
        off = self.mean - self.printed
        if abs(off) <= max(TOLERANCE * abs(self.printed), self.spread):
            return "agrees"
        if self.less is None:
            return "higher" if off > 0 else "lower"
        return "better" if (off < 0) == self.less else "worse"

    def to_dict(self) -> dict[str, Any]:
        """Return the cell as plain values."""
        return {
            "row": self.row,
            "column": self.column,
            "measure": self.measure,
            "printed": self.printed,
            "mean": None if self.capped else self.mean,
            "spread": None if self.capped else self.spread,
            "seeds": len(self.values),
            "capped": self.capped,
            "verdict": self.verdict,
        }


class Job(NamedTuple):
    """A piece of work: its name, and the function that returns its numbers."""

    key: str
    run: Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Setup:
    """How an experiment is run: quick or whole, with how many seeds, on which data."""

    quick: bool
    seeds: int
    data: Any


class Picture(NamedTuple):
    """Lines of one panel: label -> (x, y), or an image."""

    title: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    x: str = ""
    y: str = ""
    image: Any = None
    log_x: bool = False
    log_y: bool = False


class Experiment:
    """A table or figure of a paper; a subclass computes it."""

    name: str  # such as "gegenbauer table2"
    title: str
    seeds: tuple[int, int] = (3, 2)  # the default for a whole run, and for a quick one
    sets: tuple[str, ...] = ()  # the data sets that it needs

    def jobs(self, setup: Setup) -> Iterator[Job]:
        """Yield the work."""
        raise NotImplementedError

    def cells(self, setup: Setup, outcomes: Outcomes) -> Iterator[Cell]:
        """Yield the cells of the finished jobs."""
        raise NotImplementedError

    def notes(self, setup: Setup) -> Iterator[str]:
        """Yield the notes that a reader of the table needs."""
        yield from ()

    def pictures(self, setup: Setup, outcomes: Outcomes) -> Iterator[Picture]:
        """Yield panels; without any the cells are drawn."""
        yield from ()


def values(outcomes: Outcomes, start: str, seeds: int, measure: str) -> tuple[float, ...]:
    """Return a measure of the finished jobs among `start / 0`, `start / 1` ...."""
    keys = [f"{start} / {seed}" for seed in range(seeds)]
    return tuple(outcomes[key][measure] for key in keys if measure in outcomes.get(key, {}))


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call without the warnings of singular systems, degrees cut off and small blocks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)
