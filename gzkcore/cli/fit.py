"""A ridge on the columns of a table that may be larger than memory: what `gzkcore fit` does.

Three passes over the file: `survey` checks every value and measures the columns, `learn` feeds the
rows to the ridge, `judge` compares its predictions with the truth. Rows are held out by a hash of
their number, so that every pass knows which without keeping a list.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from gzkcore._util.wording import counted
from gzkcore.datasets.globe import LatLonToSphere, off_globe
from gzkcore.features.fourier import RandomFourierFeatures
from gzkcore.features.gegenbauer import GegenbauerFeatures
from gzkcore.kernels.shift_invariant import Gaussian
from gzkcore.learn.ridge import RandomFeatureRidgeCV
from gzkcore.rows.tables import Floats, Table

# Random rows that the ridge sees first: they settle the centre and the radius for all that follow.
SAMPLE_ROWS = 1 << 14
SAMPLE_VALUES = 1 << 22
FEWEST_ROWS = 20

# What gamma is chosen from: on the unit sphere, and times 1 / d for d standardised columns.
SPHERE_GAMMAS = tuple(2.0**k for k in range(-1, 10))
COLUMN_GAMMAS = (1 / 16, 1 / 4, 1.0, 4.0)
# Places whose variance on the unit sphere, that of the three coordinates together, is less than the
# first are a region, within some 40 degrees of their middle: too few of the harmonics of the globe
# vary there. The others times 1 / variance are what gamma is chosen from then.
REGION, REGION_GAMMAS = 0.25, tuple(2.0**k for k in range(-3, 9, 2))
ONE_PLACE = 1e-20  # a variance of less than a millimetre, squared: only rounding

Rows = NDArray[np.int64]


@dataclass
class Recipe:
    """How columns of a table become the input of the features; saved with the model."""

    target: str
    columns: list[str]
    sphere: bool  # the columns are latitude and longitude
    mean: list[float] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)

    def check(self, table: Table, first: int, values: Floats) -> None:
        """Raise ValueError, naming the row, where these rows from `first` on are off the globe."""
        if self.sphere and (wrong := off_globe(values)) is not None:
            raise ValueError(f"{table.path}: row {first + wrong[0] + 1}: {wrong[1]}")

    def inputs(self, values: Floats) -> Floats:
        """Turn columns into unit vectors, or standardise them."""
        if self.sphere:
            return LatLonToSphere().transform(values)
        return (values - self.mean) / self.scale


@dataclass
class Score:
    """Errors of predictions, and of predicting a constant instead."""

    rows: int = 0
    squares: float = 0.0
    squares_of_constant: float = 0.0

    def add(self, y: Floats, predicted: Floats, constant: float) -> None:
        """Add the errors of some rows, and those of a constant."""
        self.rows += len(y)
        self.squares += float(np.sum((y - predicted) ** 2))
        self.squares_of_constant += float(np.sum((y - constant) ** 2))

    def summary(self) -> dict[str, float | None]:
        """Return rows, root mean squared error and R^2 = 1 - squares / those of the constant."""
        if not self.rows:
            return {"rows": 0, "rmse": None, "r2": None}
        relative = self.squares / self.squares_of_constant if self.squares_of_constant else np.nan
        return {"rows": self.rows, "rmse": (self.squares / self.rows) ** 0.5, "r2": 1 - relative}


class TableFit:
    """A ridge fitted to a table, pass by pass.

    Parameters
    ----------
    table : Table
    recipe : Recipe
        `survey` fills in its mean and scale.
    test_fraction : float
        Share of the rows to hold out.
    seed : int
        Decides which rows are held out and which are sampled.
    report : callable
        Is told the name of the pass and the share of it that is done.
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
        n_rows = n_train = 0
        low, high = np.inf, -np.inf
        for rows, values, test in self._batches("reading"):
            self.recipe.check(self.table, int(rows[0]), values[:, :-1])
            n_rows += len(rows)
            low, high = min(low, values[:, -1].min()), max(high, values[:, -1].max())
            n_train += int(np.sum(~test))
            if not test.all():
                with np.errstate(over="ignore", invalid="ignore"):
                    scaler.partial_fit(values[~test])
            sampled = np.concatenate([sampled, rows[~test]])
            sample = np.concatenate([sample, values[~test]])
            first = np.argsort(hashed(sampled, self.seed + 1))[:most]
            sampled, sample = sampled[first], sample[first]
        self._check_enough(n_rows, n_train, low, high)
        names = [*self.recipe.columns, self.recipe.target]
        _check_scales(self.table, names, scaler.scale_)
        self.mean_of_y = float(scaler.mean_[-1])
        kept = self._varying(scaler.var_[:-1])
        self.recipe.mean = scaler.mean_[kept].tolist()
        self.recipe.scale = scaler.scale_[kept].tolist()
        self._sampled = np.sort(sampled)
        self._sample = sample[:, [*kept, width - 1]]

    def _varying(self, variances: Floats) -> list[int]:
        """Leave columns that are the same in every row out of the recipe; return the others."""
        names = self.recipe.columns
        if self.recipe.sphere:
            return list(range(len(names)))
        constant = [name for name, variance in zip(names, variances, strict=True) if not variance]
        if constant == names:
            raise ValueError(
                f"{self.table.path}: every column is the same in all rows of the fit, so there is "
                "nothing to predict from; choose other columns"
            )
        if constant:
            warnings.warn(
                f"left out, since they are the same in all rows of the fit: {', '.join(constant)}",
                UserWarning,
                stacklevel=2,
            )
        self.recipe.columns = [name for name in names if name not in constant]
        return [index for index, name in enumerate(names) if name not in constant]

    def _check_enough(self, n_rows: int, n_train: int, low: float, high: float) -> None:
        if n_rows < FEWEST_ROWS:
            raise ValueError(
                f"{self.table.path} has {counted(n_rows, 'row')}; a fit takes {FEWEST_ROWS} or more"
            )
        _check_target(self.table, self.recipe.target, low, high)
        if (n_train == n_rows and self.test_fraction > 0) or n_train < FEWEST_ROWS // 2:
            raise ValueError(
                f"--test-fraction {self.test_fraction:g} leaves {n_train} of {n_rows} rows for "
                f"the fit and {n_rows - n_train} for the test; choose another, or 0 for no test"
            )

    def learn(self, gamma: str | float, n_components: int) -> RandomFeatureRidgeCV:
        """Choose gamma and alpha, and fit.

        On the globe one pass serves every gamma; elsewhere, and for a region, gamma is chosen on
        the sample.
        """
        X, y = self.recipe.inputs(self.places), self._sample[:, -1]
        variance = float(X.var(axis=0).sum())
        if self.recipe.sphere and variance < ONE_PLACE:
            raise ValueError(
                f"{self.table.path}: every row of the fit is at the same place, so there is "
                "nothing to predict from; choose other columns"
            )
        region = self.recipe.sphere and variance < REGION
        globe = self.recipe.sphere and not region

        def ridge(gammas: tuple[float, ...]) -> RandomFeatureRidgeCV:
            kernel = Gaussian(gammas[0])
            features: Any
            if region:
                features = RandomFourierFeatures(
                    kernel, n_components, frequencies="qmc", random_state=self.seed
                )
            else:
                features = GegenbauerFeatures(
                    kernel,
                    n_components,
                    basis="harmonic" if globe else "auto",
                    random_state=self.seed,
                )
            return RandomFeatureRidgeCV(
                features, kernel_grid={"gamma": gammas} if len(gammas) > 1 else None, cv=2
            )

        gammas: tuple[float, ...]
        if gamma == "scale":
            gammas = (1 / (X.shape[1] * X.var()),)
        elif gamma == "auto":
            factors = REGION_GAMMAS if region else COLUMN_GAMMAS
            size = variance if region else X.shape[1]
            gammas = SPHERE_GAMMAS if globe else tuple(factor / size for factor in factors)
        else:
            gammas = (float(gamma),)
        if len(gammas) > 1 and not globe:
            self.report("choosing", 0)
            gammas = (ridge(gammas).fit(X, y).best_params_["gamma"],)
            self.report("choosing", 1)
        model = ridge(gammas)
        with warnings.catch_warnings():
            # A random sample is the right batch to settle radius and centre.
            warnings.filterwarnings("ignore", "partial_fit without a radius")
            model.partial_fit(X, y)
        for rows, values, test in self._batches("fitting"):
            new = ~(test | np.isin(rows, self._sampled, assume_unique=True))
            if new.any():
                model.partial_fit(self.recipe.inputs(values[new, :-1]), values[new, -1])
        return model

    def judge(self, model: RandomFeatureRidgeCV) -> tuple[Score, Score, Floats]:
        """Return the scores of training and held-out rows, and some pairs (y, prediction).

        The pairs are of held-out rows if there are any.
        """
        train, test = Score(), Score()
        pairs = np.empty((0, 2))
        for _, values, held_out in self._batches("testing"):
            y, predicted = values[:, -1], model.predict(self.recipe.inputs(values[:, :-1]))
            train.add(y[~held_out], predicted[~held_out], self.mean_of_y)
            test.add(y[held_out], predicted[held_out], self.mean_of_y)
            shown = held_out if self.test_fraction else ~held_out
            pairs = np.concatenate([pairs, np.column_stack([y, predicted])[shown]])
            pairs = pairs[:: 1 + len(pairs) // (2 * SAMPLE_ROWS)]
        return train, test, pairs

    @property
    def places(self) -> Floats:
        """The columns of the sample, as they are in the table."""
        return self._sample[:, :-1]

    def _batches(self, label: str) -> Iterator[tuple[Rows, Floats, NDArray[np.bool_]]]:
        """Yield the numbers of rows, their values (the target last), and which are held out."""
        for first, values, done in self.table.batches([*self.recipe.columns, self.recipe.target]):
            rows = np.arange(first, first + len(values))
            yield rows, values, hashed(rows, self.seed) < self.test_fraction
            self.report(label, done)


def _check_scales(table: Table, names: list[str], scales: Floats) -> None:
    for name, scale in zip(names, scales, strict=True):
        if not np.isfinite(scale):
            raise ValueError(
                f"{table.path}: column {name!r} has values so large that their squares overflow; "
                "use another unit"
            )


def _check_target(table: Table, target: str, low: float, high: float) -> None:
    if low == high:
        raise ValueError(
            f"{table.path}: column {target!r} is {low:g} in every row, so there is nothing to "
            "predict; choose another target"
        )


def sample_columns(
    table: Table, recipe: Recipe, seed: int, report: Callable[[str, float], None]
) -> tuple[Floats, Floats, int]:
    """Check every value of a recipe's columns; return random rows as inputs, their targets, and n.

    Fills in the recipe's mean and scale. Without a target, there are 0 of them for each row.
    """
    width = len(recipe.columns)
    names = [*recipe.columns, *([recipe.target] if recipe.target else [])]
    most = max(1, min(SAMPLE_ROWS, SAMPLE_VALUES // len(names)))
    numbers, sample = np.empty(0, np.int64), np.empty((0, len(names)))
    scaler, n_rows = StandardScaler(), 0
    low, high = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    for first, values, done in table.batches(names):
        recipe.check(table, first, values[:, :width])
        n_rows += len(values)
        low, high = np.minimum(low, values.min(axis=0)), np.maximum(high, values.max(axis=0))
        with np.errstate(over="ignore", invalid="ignore"):
            scaler.partial_fit(values)
        numbers = np.concatenate([numbers, np.arange(first, first + len(values))])
        sample = np.concatenate([sample, values])
        kept = np.argsort(hashed(numbers, seed))[:most]
        numbers, sample = numbers[kept], sample[kept]
        report("reading", done)
    if n_rows < FEWEST_ROWS:
        raise ValueError(
            f"{table.path} has {counted(n_rows, 'row')}; this takes {FEWEST_ROWS} or more"
        )
    _check_scales(table, names, scaler.scale_)
    if (low == high)[:width].all():
        raise ValueError(
            f"{table.path}: every column is the same in all rows, so there is nothing to tell them "
            "apart; choose other columns"
        )
    if recipe.target:
        _check_target(table, recipe.target, low[-1], high[-1])
    recipe.mean, recipe.scale = scaler.mean_[:width].tolist(), scaler.scale_[:width].tolist()
    return recipe.inputs(sample[:, :width]), sample[:, width:], n_rows


def hashed(rows: Rows, seed: int) -> Floats:
    """Return a number in [0, 1) for each row and seed: fixed, yet as if random (splitmix64)."""
    z = rows.astype(np.uint64) + np.uint64(1 + seed * 0xD1342543DE82EF95 % 2**63)
    z *= np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) / 2.0**64
