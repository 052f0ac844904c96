"""What a fit to a table tried and chose, and why."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gzkcore._util.remark import Remark
from gzkcore._util.state import flag, holds, ints, nothing, number, sequence, stored, text, whole
from gzkcore._util.typing import Integers
from gzkcore._util.wording import seconds_told
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.learned_parts import IGNORED
from gzkcore.kernels.product import Product

DETAIL = "detail"  # the kind of remarks that the command leaves to its page, JSON and report_
HEAD = "    error     alpha       time    rows   kernel"
LEGEND = (
    "Error: root mean squared, of held-out rows, in standard deviations of y (of labels as +1 and "
    "-1), with the best alpha. Rows: those fitted to."
)


@dataclass
class Candidate:
    """A kernel and an alpha, their error on held-out rows, and the time that took."""

    _state = stored(
        name=text(),
        kernel=holds(Kernel),
        alpha=number(0),
        error=number(finite=False),
        seconds=number(0),
        of_splits=sequence(holds(Kernel)),
        least_alpha=flag(),
        chosen=flag(),
        n_rows=whole(0),
        longer=number(0),
        slopes=ints(None) | nothing(),
    )

    name: str
    kernel: Kernel  # for all rows
    alpha: float
    error: float = math.inf  # root mean squared error of standardised targets
    seconds: float = 0.0
    # The kernel for each split, with lengths from the rows that are fitted to there.
    of_splits: list[Kernel] = field(default_factory=list, repr=False, compare=False)
    # No smaller alpha was solved for, and this one is better than the next larger one.
    least_alpha: bool = field(default=False, repr=False, compare=False)
    chosen: bool = field(default=False, repr=False, compare=False)  # the model is made of it
    n_rows: int = 0  # that it was fitted to
    longer: float = 1.0  # what learned lengthscales were multiplied by
    # The encoded columns of a linear trend beside the kernel.
    slopes: Integers | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        mark, (error, alpha, rows, name) = ">" if self.chosen else " ", self.cells()
        return f"{mark}{error:>8} {alpha:>9} {seconds_told(self.seconds):>10} {rows:>7}   {name}"

    def cells(self) -> tuple[str, str, str, str]:
        """Return error, alpha, number of rows and name, as the report's table has them."""
        times = "" if self.longer == 1 else f", lengthscales times {self.longer:.3g}"
        rows = f"{self.n_rows:,}" if self.n_rows else ""
        trend = "" if self.slopes is None else ", linear trend"
        return f"{self.error:.4f}", f"{self.alpha:.2g}", rows, self.name + times + trend

    def what(self) -> str:
        """Return kernel, lengths, alpha and trend in words."""
        lengths = "one lengthscale"
        scales = np.ravel(self.kernel.scale())
        if isinstance(self.kernel, Product) or np.unique(scales[scales > 2 / IGNORED]).size > 1:
            lengths += " per level" if "per level" in self.name else " per column"
        trend = "" if self.slopes is None else ", beside a linear trend"
        return f"{plain_name(self.kernel)}, {lengths}, alpha={self.alpha:.2g}{trend}"


@dataclass
class Report:
    """What a fit did and why: the choice, a table of the candidates, remarks.

    Attributes
    ----------
    candidates : list of Candidate
    remarks : list of Remark
        Each has its `kind`, for programs, and its text, ``str(remark)``.
    """

    _state = stored(
        candidates=sequence(holds(Candidate)),
        remarks=sequence(holds(Remark)),
    )

    candidates: list[Candidate] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

    @property
    def sentences(self) -> list[str]:
        """The remarks as text."""
        return [str(remark) for remark in self.remarks]

    def say(self, sentence: str, kind: str = "") -> None:
        """Add a remark, with a kind if programs look for it."""
        self.remarks.append(Remark(kind, (), sentence))

    def __str__(self) -> str:
        chosen = [
            f"Chosen: {candidate.what()}, with an error of {candidate.error:.4f} on the held-out "
            "rows; it is marked > below."
            for candidate in self.candidates
            if candidate.chosen
        ]
        table = [*chosen, HEAD, *self._lines(), LEGEND] if self.candidates else []
        return "\n".join([*table, *self.sentences])

    def _lines(self) -> list[str]:
        """Return a line for each kernel with its best alpha: those of the most rows, best first."""
        best: dict[tuple[str, ...], Candidate] = {}
        ordered = sorted(self.candidates, key=lambda tried: (-tried.n_rows, tried.error))
        for candidate in sorted(ordered, key=lambda tried: not tried.chosen):
            best.setdefault(candidate.cells()[2:], candidate)
        return [str(line) for line in ordered if best[line.cells()[2:]] is line]

    __repr__ = __str__


def plain_name(kernel: Kernel) -> str:
    """Return the name of a kernel without its lengths."""
    parts: Any = getattr(kernel, "parts", None)
    if isinstance(kernel, Product) and isinstance(parts, list):
        return " times ".join(plain_name(part) for _, part in parts)
    nu = getattr(kernel, "nu", None)
    name = type(kernel).__name__
    if nu is None:
        return name
    return "Gaussian" if math.isinf(nu) else f"{name} {nu:g}"
