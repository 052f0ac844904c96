"""What the experiments of `papers` share: cells, verdicts, and the file they go on from."""

import json
import statistics
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gzkcore._util.config import show_config
from gzkcore._util.files import replacing

# A cell agrees with the printed one within this share of it, or within our own spread.
TOLERANCE = 0.10
QUICK = "quick"

Found = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Cell:
    """A cell of a table: what is printed there, and what was measured.

    `values` are those of the seeds. `less` says whether less is better; None: neither. `judged` is
    False where the two can't be compared, and `note` says why.
    """

    row: str
    column: str
    measure: str
    values: tuple[float, ...]
    printed: float | str | None = None
    less: bool | None = True
    judged: bool = True
    note: str = ""

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return statistics.fmean(self.values)

    @property
    def spread(self) -> float:
        """Standard deviation over the seeds, 0 for one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    @property
    def verdict(self) -> str:
        """`agrees`, `better`, `worse`, `higher`, `lower`, or why there is none."""
        if self.printed is None:
            return self.note
        if isinstance(self.printed, str) or not self.judged:
            return self.note or "not comparable"
        off = self.mean - self.printed
        if abs(off) <= max(TOLERANCE * abs(self.printed), self.spread):
            word = "agrees"
        elif self.less is None:
            word = "higher" if off > 0 else "lower"
        else:
            word = "better" if (off < 0) == self.less else "worse"
        return f"{word}; {self.note}" if self.note else word

    def to_dict(self) -> dict[str, Any]:
        """Return the cell as plain values."""
        return {
            "row": self.row,
            "column": self.column,
            "measure": self.measure,
            "printed": self.printed,
            "mean": self.mean,
            "spread": self.spread,
            "seeds": len(self.values),
            "verdict": self.verdict,
        }


class Job(NamedTuple):
    """A piece of work that is done at once: its name, and what returns its numbers."""

    key: str
    run: Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Plan:
    """What an experiment is asked to do: quick or whole, how many seeds, and on which data."""

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
    """A table or figure of a paper; subclasses say how it is made."""

    name: str  # such as "gegenbauer table2"
    title: str
    seeds: tuple[int, int] = (3, 2)  # by default: whole, quick
    sets: tuple[str, ...] = ()  # data that it looks for

    def jobs(self, plan: Plan) -> Iterator[Job]:
        """Yield the work."""
        raise NotImplementedError

    def cells(self, plan: Plan, found: Found) -> Iterator[Cell]:
        """Yield the cells of what was done."""
        raise NotImplementedError

    def notes(self, plan: Plan) -> Iterator[str]:
        """Yield what one has to know to read the table."""
        yield from ()

    def pictures(self, plan: Plan, found: Found) -> Iterator[Picture]:
        """Yield panels; without any the cells are drawn."""
        yield from ()


def values(found: Found, start: str, seeds: int, measure: str) -> tuple[float, ...]:
    """Return a measure of the jobs `start / 0`, `start / 1` ..., those that were done."""
    keys = [f"{start} / {seed}" for seed in range(seeds)]
    return tuple(found[key][measure] for key in keys if measure in found.get(key, {}))


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call without warnings: of singular systems at small alpha, degrees cut off, small blocks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)


class Store:
    """Results of all experiments in a .json file, written after every job."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.all: dict[str, dict[str, Any]] = {}
        if path is None:
            return
        if path.suffix.lower() != ".json":
            raise ValueError(f"output {path} should end with .json")
        if not path.parent.is_dir():
            raise ValueError(f"{path}: there is no folder {path.parent}")
        if not path.exists():
            return
        try:
            found = json.loads(path.read_text(encoding="utf-8"))["experiments"]
            self.all = {
                name: {"settings": dict(one["settings"]), "jobs": dict(one["jobs"])}
                for name, one in found.items()
            }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} is no result of papers ({type(error).__name__}: {error}); give another "
                "output, or delete it"
            ) from None

    def open(self, name: str, quick: bool, sets: dict[str, str]) -> Found:
        """Return the jobs that were done, or raise ValueError if they are of other settings."""
        config = show_config()
        settings = {
            "quick": quick,
            "version": config["version"],
            "isa": config["isa"],
            "n_threads": config["n_threads"],
            **{f"data {key}": value for key, value in sets.items()},
        }
        one = self.all.setdefault(name, {"settings": settings, "jobs": {}})
        for key, value in settings.items():
            before = one["settings"].setdefault(key, value)
            if before != value:
                raise ValueError(
                    f"{self.path} has results of {name} for other settings: {key} was {before}, "
                    f"and is {value} now; use the same again, give another output, or delete it"
                )
        jobs: Found = one["jobs"]
        return jobs

    def write(self) -> None:
        """Write all of it, beside its place and renamed."""
        if self.path is None:
            return
        kept = {name: one for name, one in self.all.items() if one["jobs"]}
        with replacing(self.path) as beside:
            beside.write_text(json.dumps({"experiments": kept}, indent=1) + "\n", encoding="utf-8")
