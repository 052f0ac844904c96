"""A ridge on the columns of a table that may be larger than memory: what `gzkcore fit` does.

Three passes over the file: `survey` checks every value and measures the columns, `learn` feeds the
rows to the ridge, `judge` compares its predictions with the truth. Rows are held out by a hash of
their number, so that every pass knows which without keeping a list.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from ._tables import Table
from .datasets import LatLonToSphere, off_globe

# Rows at random that the ridge sees first: they settle centre and radius for all that follow.
SAMPLE_ROWS = 1 << 14
SAMPLE_VALUES = 1 << 22
FEWEST_ROWS = 20
# Rows that a picture of the predictions shows.
PICTURE_ROWS = 1 << 14

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass
class Recipe:
    """How columns of a table become the input of the features; saved with the model."""

    target: str
    columns: list[str]
    sphere: bool  # the columns are latitude and longitude
    mean: list[float] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)

    def inputs(self, values: Floats) -> Floats:
        """Turn columns into unit vectors, or standardise them."""
        if self.sphere:
            return LatLonToSphere().transform(values)
        return (values - self.mean) / self.scale

    def check(self, table: Table, first: int, values: Floats) -> None:
        """Raise ValueError, naming the row of the file, where a place is not on the globe."""
        if self.sphere and (wrong := off_globe(values)) is not None:
            raise ValueError(f"{table.path}: row {first + wrong[0] + 1}: {wrong[1]}")


class TableFit:
    """A ridge fitted to a table.

    Parameters
    ----------
    table : Table
    recipe : Recipe
        Its mean and scale are filled in by `survey`.
    test_fraction : float
        Share of the rows to hold out.
    seed : int
        Which rows are held out and which are sampled.
    report : callable
        Told a pass and the share of it that is done.

    Attributes
    ----------
    n_train, n_test : int
    sample : ndarray of shape (n, n_columns)
        Random training rows, as the features see them.
    """

    def __init__(
        self,
        table: Table,
        recipe: Recipe,
        test_fraction: float,
        seed: int,
        report: Callable[[str, float], None],
    ) -> None:
        self.table, self.recipe, self.report = table, recipe, report
        self.test_fraction, self.seed = test_fraction, seed

    def survey(self) -> None:
        """Check every value, measure the columns, take a sample of the training rows."""
        width = len(self.recipe.columns) + 1
        most = max(1, min(SAMPLE_ROWS, SAMPLE_VALUES // width))
        sampled, sample = np.empty(0, np.int64), np.empty((0, width))
        scaler = StandardScaler()
        low, high = np.inf, -np.inf
        self.n_train = self.n_test = 0
        for rows, values, test in self._batches("reading"):
            self.recipe.check(self.table, int(rows[0]), values[:, :-1])
            low, high = min(low, values[:, -1].min()), max(high, values[:, -1].max())
            rows, values = rows[~test], values[~test]
            self.n_train += len(rows)
            self.n_test += int(test.sum())
            if len(rows):
                scaler.partial_fit(values[:, :-1])
            sampled, sample = np.concatenate([sampled, rows]), np.concatenate([sample, values])
            lowest = np.argsort(hashed(sampled, self.seed + 1))[:most]
            sampled, sample = sampled[lowest], sample[lowest]
        self._check_enough(low, high)
        self.recipe.mean, self.recipe.scale = scaler.mean_.tolist(), scaler.scale_.tolist()
        self._sampled = np.sort(sampled)
        self._sample_y = sample[:, -1]
        self.sample = self.recipe.inputs(sample[:, :-1])

    def _check_enough(self, low: float, high: float) -> None:
        n_rows = self.n_train + self.n_test
        if n_rows < FEWEST_ROWS:
            raise ValueError(
                f"{self.table.path} has {n_rows} row(s); to fit and to test takes {FEWEST_ROWS} or more"
            )
        if low == high:
            raise ValueError(
                f"{self.table.path}: column {self.recipe.target!r} is {low:g} in every row, so there "
                "is nothing to predict; choose another --target"
            )
        if self.test_fraction > 0 and self.n_test < 2:
            raise ValueError(
                f"--test-fraction {self.test_fraction:g} of {n_rows} rows leaves {self.n_test} to test "
                "with; raise it, or set it to 0 to use every row for the fit"
            )

    def learn(self, model: Any) -> None:
        """Feed the training rows to the model, the sample first."""
        model.partial_fit(self.sample, self._sample_y)
        for rows, values, test in self._batches("fitting"):
            new = ~(test | np.isin(rows, self._sampled, assume_unique=True))
            if new.any():
                model.partial_fit(self.recipe.inputs(values[new, :-1]), values[new, -1])

    def judge(self, model: Any) -> dict[str, dict[str, float]]:
        """Return rmse and R^2 of the training and of the held-out rows.

        R^2 compares with predicting the mean of the training rows. `self.places` and `self.pairs`
        are set to inputs, truth and prediction of some rows, held out if there are any.
        """
        sums = {part: np.zeros(4) for part in ("train", "test")}  # n, sum y, sum y^2, sum of errors^2
        ...

    def _batches(self, label: str) -> Iterator[tuple[Rows, Floats, NDArray[np.bool_]]]:
        """Yield the numbers of rows, their values (the target last), and which are held out."""
        names = [*self.recipe.columns, self.recipe.target]
        for first, values, done in self.table.batches(names):
            rows = np.arange(first, first + len(values))
            yield rows, values, hashed(rows, self.seed) < self.test_fraction
            self.report(label, done)


def hashed(rows: Rows, seed: int) -> Floats:
    """Return a fixed number in [0, 1) for each row number and seed, as good as random (splitmix64)."""
    z = rows.astype(np.uint64) + np.uint64(1 + (seed << 40) % 2**64)
    z *= np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) / 2.0**64
