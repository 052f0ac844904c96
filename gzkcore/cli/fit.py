"""`gzkcore fit --features`: a ridge on the columns of a table that may be larger than memory.

The columns are read three times: to check every value and compute statistics, to fit the ridge, and
to compare its predictions with the truth. Only the first reading parses a text file. A hash of the
row number decides which rows are held out, see `held_out`. With few rows, each fifth is held out in
turn: then all this is done for each fold, and once more for all rows.
"""

import math
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles
from gzkcore.features.fourier import RandomFourierFeatures
from gzkcore.features.gegenbauer import GegenbauerFeatures
from gzkcore.learn.kernel_ridge import KernelRidge
from gzkcore.learn.ridge_cv import RandomFeatureRidgeCV
from gzkcore.rows.columns import Columns
from gzkcore.rows.files import Table
from gzkcore.tabular.table_encoder import REGION

from .baselines import SampleBaselines
from .fit_whole import WholeFit, fit_centers, fit_whole
from .held_out import (
    FEW_ROWS,
    FOLDS,
    SHARE,
    RowNumbers,
    check_rows,
    check_shares,
    check_targets_differ,
    folds_of,
    hashed,
    held_out,
)
from .kernels import GAUSSIAN, asked_gamma, gamma_of, grid, length_of, with_gamma
from .recipes import Recipe
from .reports import Report, Say
from .survey import DRAWN_ROWS, Survey, check_scales

# What gamma is chosen from: on the unit sphere, and times 1 / d for d standardised columns.
SPHERE_GAMMAS = tuple(2.0**k for k in range(-1, 10))
COLUMN_GAMMAS = (1 / 16, 1 / 4, 1.0, 4.0)
# In a region, see `REGION`, too few of the harmonics of the globe vary: gamma is chosen from these
# times 1 / variance.
REGION_GAMMAS = tuple(2.0**k for k in range(-3, 9, 2))
OURS = "this fit"  # its name among the methods
ONE_PLACE = 1e-20  # a variance of less than a millimetre, squared: only rounding


@dataclass
class Errors:
    """Sums of squared errors: of predictions, and of predicting a constant instead."""

    rows: int = 0
    squares: float = 0.0
    squares_of_constant: float = 0.0

    def add(self, y: Doubles, predicted: Doubles, constant: float) -> None:
        """Add the errors of some rows, and those of a constant."""
        self.rows += len(y)
        self.squares += float(np.sum((y - predicted) ** 2))
        self.squares_of_constant += float(np.sum((y - constant) ** 2))

    def __add__(self, other: "Errors") -> "Errors":
        return Errors(
            self.rows + other.rows,
            self.squares + other.squares,
            self.squares_of_constant + other.squares_of_constant,
        )

    def summary(self) -> dict[str, float | None]:
        """Return rows, root mean squared error and R^2 = 1 - squares / those of the constant."""
        if not self.rows:
            return {"rows": 0, "rmse": None, "r2": None}
        constant = self.squares_of_constant
        r2 = 1 - self.squares / constant if constant else None
        return {"rows": self.rows, "rmse": self.root, "r2": r2}

    @property
    def root(self) -> float:
        """The root mean squared error."""
        return math.sqrt(self.squares / self.rows)


@dataclass(frozen=True)
class TableFit:
    """What `fit_table` returns."""

    model: RandomFeatureRidgeCV | KernelRidge
    gamma: float  # 1 / (2 lengthscale^2)
    alpha: float
    n_components: int | None  # no more than rows
    whole: WholeFit | None  # without features
    recipe: Recipe
    sample: Doubles  # the columns of some rows of the fit, as they are in the table
    train: Errors
    test: Errors
    baselines: dict[str, Errors]  # of the test
    n_dropped: int  # rows with missing values
    pairs: Doubles  # (y, prediction) of some rows: held-out ones, if there are any
    folds: int | None = None  # each held out in turn
    of_folds: dict[str, list[float]] = field(default_factory=dict)  # errors of all methods


def fit_table(
    table: Table,
    recipe: Recipe,
    *,
    kernel: str,
    gamma: str,
    n_components: int | None,
    centers: int | None,
    test_fraction: float | None,
    drop_missing: bool,
    seed: int,
    report: Report,
    say: Say,
) -> TableFit:
    """Fit a ridge to a table, and test it on the rows that are held out, or each fifth in turn.

    Parameters
    ----------
    table : Table
    recipe : Recipe
        Without mean and scale, which are those of the rows of the fit.
    kernel : str
        Its name, see `kernels`.
    gamma : str
        "auto", "scale" or a number.
    n_components : int or None
        Features; None: the whole kernel.
    centers : int or None
        Rows to whose kernel functions the whole kernel is confined; None: all.
    test_fraction : float or None
        Share of the rows to hold out; None: `SHARE`, and of few rows each fifth in turn.
    drop_missing : bool
        Whether rows with missing values are left out; else they are an error.
    seed : int
        Decides which rows are held out, which are sampled, and what features are drawn.
    report : callable
        Is told the name of the reading or the work, and the share of it that is done.
    say : callable
        Is told what a long fit with the whole kernel is going to take.
    """
    with Columns(table, [*recipe.columns, recipe.target], missing=drop_missing) as columns:
        split = _Split(columns, SHARE if test_fraction is None else test_fraction, seed, report)
        survey = _surveyed(split, recipe)
        few = test_fraction is None and survey.n_rows < FEW_ROWS
        if few:
            split = replace(split, test_fraction=0)
            survey = _surveyed(split, recipe)
        _check_survey(split, recipe, survey)
        wanted = _Wanted(kernel, gamma, n_components, centers, say)
        found = _fitted(split, recipe, survey, wanted)
        return _tested_in_turn(found, split, recipe, wanted) if few else found


class _Wanted(NamedTuple):
    """What is to be fitted, see `fit_table`."""

    kernel: str
    gamma: str
    n_components: int | None
    centers: int | None
    say: Say


def _fitted(split: "_Split", recipe: Recipe, survey: Survey, wanted: _Wanted) -> TableFit:
    """Fit to the rows of the fit, and test by those held out."""
    kept = _varying(split.columns.table, recipe, survey)
    recipe = replace(
        recipe,
        columns=[recipe.columns[j] for j in kept],
        mean=survey.scaler.mean_[kept].tolist(),
        scale=survey.scaler.scale_[kept].tolist(),
    )
    split = replace(split, used=[*kept, -1])
    survey.values = survey.values[:, split.used]
    model: RandomFeatureRidgeCV | KernelRidge
    whole, n_components = None, wanted.n_components
    kernel, gamma = wanted.kernel, wanted.gamma
    if n_components is None:
        whole = _learn_whole(split, recipe, survey, kernel, gamma, wanted.centers, wanted.say)
        model, found, alpha = whole.model, whole.gamma, whole.alpha
    else:
        n_components = min(n_components, survey.n_used)
        model = _learn(split, recipe, survey, kernel, gamma, n_components)
        found, alpha = gamma_of(model.kernel_), model.alpha_
    judged = _judge(split, recipe, model, survey)
    sample = survey.values[:, :-1]
    return TableFit(model, found, alpha, n_components, whole, recipe, sample, *judged)


def _tested_in_turn(found: TableFit, split: "_Split", recipe: Recipe, wanted: _Wanted) -> TableFit:
    """Return a fit to all rows with the errors of fits to all rows but a fold."""
    test, baselines = Errors(), defaultdict[str, Errors](Errors)
    pairs, of_folds = [], defaultdict[str, list[float]](list)
    for fold in range(FOLDS):
        part = replace(split, fold=fold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters is said of the fit to all rows
            one = _fitted(part, recipe, _surveyed(part, recipe), wanted)
        test += one.test
        pairs.append(one.pairs)
        for name, errors in {OURS: one.test, **one.baselines}.items():
            of_folds[name].append(errors.root)
            if name != OURS:
                baselines[name] += errors
    return replace(
        found, test=test, baselines=dict(baselines), pairs=np.concatenate(pairs), folds=FOLDS,
        of_folds=dict(of_folds),
    )  # fmt: skip


# ---- measuring the columns


def _surveyed(split: "_Split", recipe: Recipe) -> Survey:
    """Check every value; measure and sample the rows of the fit."""
    table, names = split.columns.table, split.columns.names
    survey = Survey(names, split.seed + 1)
    for piece in split.read("reading"):
        recipe.check(table, piece.rows, piece.values[:, :-1])
        survey.add(piece.places, piece.values, ~piece.test, piece.rows)
    return survey


def _check_survey(split: "_Split", recipe: Recipe, survey: Survey) -> None:
    """Raise ValueError for a table that can't be learned from; warn of row numbers."""
    table, names = split.columns.table, split.columns.names
    check_rows(table, survey.n_rows, split.counts["dropped"])
    check_targets_differ(table, recipe.target, survey.low[-1], survey.high[-1])
    check_shares(split.test_fraction, survey.n_used, survey.n_rows - survey.n_used)
    check_scales(table, names, survey.scaler.scale_)
    told = survey.row_numbers(recipe.columns)
    named = recipe.sphere or {*recipe.columns} != {*table.beside(recipe.target)}
    if told and not named:  # who names them knows them
        warnings.warn(told, UserWarning, stacklevel=3)


def _varying(table: Table, recipe: Recipe, survey: Survey) -> list[int]:
    """Return the places of the columns that are not the same in every row of the fit.

    Their ranges tell, since the variance of a constant may be a rounding error.
    """
    names = recipe.columns
    kept = [j for j in range(len(names)) if recipe.sphere or survey.low[j] < survey.high[j]]
    if not kept:
        raise ValueError(
            f"{table.path}: every column is constant in the training rows, so that there is "
            "nothing to predict from; choose other columns"
        )
    if constant := [name for j, name in enumerate(names) if j not in kept]:
        warnings.warn(
            f"left out, since they are constant in the training rows: {', '.join(constant)}",
            UserWarning,
            stacklevel=3,
        )
    return kept


# ---- fitting and testing


class _Piece(NamedTuple):
    """Rows without gaps: where they stand in the file, and among each other."""

    rows: RowNumbers
    places: RowNumbers
    values: Doubles
    test: NDArray[np.bool_]  # which are held out


@dataclass(frozen=True)
class _Split:
    """Columns of a table, the target last, whose rows are for the fit or held out."""

    columns: Columns
    test_fraction: float
    seed: int
    report: Report
    used: list[int] | None = None  # places of the columns to read, if not all
    fold: int | None = None  # that is held out, if each is in turn
    counts: dict[str, int] = field(default_factory=dict)  # rows with gaps, once all were read

    @property
    def tests(self) -> bool:
        """Whether rows are held out."""
        return self.fold is not None or self.test_fraction > 0

    def _held_out(self, places: RowNumbers) -> NDArray[np.bool_]:
        """Say which of these rows are held out."""
        if self.fold is None:
            return held_out(places, self.test_fraction, self.seed)
        return np.asarray(folds_of(places, self.seed) == self.fold)

    def read(self, label: str) -> Iterator["_Piece"]:
        """Yield the rows without gaps."""
        n_seen = n_rows = 0
        for first, values, done in self.columns:
            n_rows += len(values)
            rows = first + np.flatnonzero(~np.isnan(values).any(axis=1))
            chosen = values[rows - first] if len(rows) < len(values) else values
            places = np.arange(n_seen, n_seen + len(rows))
            n_seen += len(rows)
            if self.used is not None:
                chosen = chosen[:, self.used]
            test = self._held_out(places)
            yield _Piece(rows, places, chosen, test)
            self.report(label, done)
        self.counts["dropped"] = n_rows - n_seen


def _learn(
    split: _Split, recipe: Recipe, survey: Survey, kernel: str, gamma: str, n_components: int
) -> RandomFeatureRidgeCV:
    """Choose gamma and alpha, and fit.

    On the globe one pass serves every gamma; elsewhere, and for a region, gamma is chosen on the
    sample.
    """
    X, y = recipe.inputs(survey.values[:, :-1]), survey.values[:, -1]
    domain = _domain(split, recipe, X)
    gammas = _gammas(gamma, domain, X)
    if len(gammas) > 1 and domain != "globe":
        split.report("choosing", 0)
        trial = _ridge(kernel, gammas, domain, n_components, split.seed).fit(X, y)
        gammas = (gamma_of(trial.kernel_),)
        split.report("choosing", 1)
    model = _ridge(kernel, gammas, domain, n_components, split.seed)
    with warnings.catch_warnings():
        # A random sample is the right batch to settle radius and centre.
        warnings.filterwarnings("ignore", "partial_fit without a radius")
        return model.fit(_training_rows(split, recipe, survey.numbers, (X, y)))


def _learn_whole(
    split: _Split,
    recipe: Recipe,
    survey: Survey,
    kernel: str,
    gamma: str,
    centers: int | None,
    say: Say,
) -> WholeFit:
    """Choose, and fit: to all rows put together, which the whole kernel keeps, or on centres."""
    sample = recipe.inputs(survey.values[:, :-1]), survey.values[:, -1]
    _domain(split, recipe, sample[0])
    if centers is not None:
        return fit_centers(
            _TrainingBatches(split, recipe), sample, centers, kernel=kernel, gamma=gamma,
            globe=recipe.sphere, seed=split.seed, report=split.report,
        )  # fmt: skip
    X, y = zip(*_training_rows(split, recipe, survey.numbers, sample), strict=True)
    return fit_whole(
        np.concatenate(X), np.concatenate(y), kernel=kernel, gamma=gamma, globe=recipe.sphere,
        seed=split.seed, report=split.report, say=say,
    )  # fmt: skip


def _domain(split: _Split, recipe: Recipe, X: Doubles) -> str:
    """Return where rows are: on the globe, in a region of it, or anywhere, in columns."""
    if not recipe.sphere:
        return "columns"
    variance = float(X.var(axis=0).sum())
    if variance < ONE_PLACE:
        raise ValueError(
            f"{split.columns.table.path}: all training rows are at the same place, so that there "
            "is nothing to predict from; choose other columns"
        )
    return "region" if variance < REGION else "globe"


def _gammas(gamma: str, domain: str, X: Doubles) -> tuple[float, ...]:
    """Return the values of gamma to choose from, or the one that is asked for."""
    if (asked := asked_gamma(gamma, X)) is not None:
        return (asked,)
    if domain == "globe":
        return SPHERE_GAMMAS
    if domain == "region":
        variance = float(X.var(axis=0).sum())
        return tuple(factor / variance for factor in REGION_GAMMAS)
    return tuple(factor / X.shape[1] for factor in COLUMN_GAMMAS)


def _ridge(
    kernel: str, gammas: tuple[float, ...], domain: str, n_components: int, seed: int
) -> RandomFeatureRidgeCV:
    first = with_gamma(kernel, gammas[0])
    features: Any
    if domain == "region" or (domain == "columns" and kernel != GAUSSIAN):
        features = RandomFourierFeatures(first, n_components, frequencies="qmc", random_state=seed)
    else:
        features = GegenbauerFeatures(
            first,
            n_components,
            basis="harmonic" if domain == "globe" else "auto",
            random_state=seed,
        )
    lengths = [length_of(gamma) for gamma in gammas]
    return RandomFeatureRidgeCV(
        features, kernel_grid=grid(kernel, lengths) if len(gammas) > 1 else None, cv=2
    )


def _training_rows(
    split: _Split, recipe: Recipe, sampled: RowNumbers, sample: tuple[Doubles, Doubles]
) -> Iterator[tuple[Doubles, Doubles]]:
    """Yield (X, y) of the rows of the fit: first the sample, then batches of all others."""
    yield sample
    for _, places, values, test in split.read("fitting"):
        new = ~(test | np.isin(places, sampled, assume_unique=True))
        if new.any():
            yield recipe.inputs(values[new, :-1]), values[new, -1]


@dataclass(frozen=True)
class _TrainingBatches:
    """The rows of the fit, (X, y) in batches, as often as they are asked for."""

    split: _Split
    recipe: Recipe

    def __iter__(self) -> Iterator[tuple[Doubles, Doubles]]:
        for _, _, values, test in self.split.read("passing"):
            yield self.recipe.inputs(values[~test, :-1]), values[~test, -1]


def _judge(
    split: _Split, recipe: Recipe, model: RandomFeatureRidgeCV | KernelRidge, survey: Survey
) -> tuple[Errors, Errors, dict[str, Errors], int, Doubles]:
    """Return the errors of training and held-out rows, the latter also of baselines.

    Then how many rows were left out, and some pairs (y, prediction) at random, of held-out rows if
    there are any.
    """
    train, test = Errors(), Errors()
    mean_of_y = float(survey.scaler.mean_[-1])
    others = SampleBaselines(recipe.inputs(survey.values[:, :-1]), survey.values[:, -1])
    baselines = {name: Errors() for name in others.fitted if split.tests}
    pairs, keys = np.empty((0, 2)), np.empty(0)
    for _, places, values, test_rows in split.read("testing"):
        if not len(values):
            continue
        X, y = recipe.inputs(values[:, :-1]), values[:, -1]
        predicted = model.predict(X)
        train.add(y[~test_rows], predicted[~test_rows], mean_of_y)
        test.add(y[test_rows], predicted[test_rows], mean_of_y)
        if test_rows.any():
            for name, errors in baselines.items():
                errors.add(y[test_rows], others.predict(name, X[test_rows]), mean_of_y)
        shown = test_rows if split.tests else ~test_rows
        pairs = np.concatenate([pairs, np.column_stack([y, predicted])[shown]])
        keys = np.concatenate([keys, hashed(places[shown], split.seed + 2)])
        kept = np.argsort(keys)[: 2 * DRAWN_ROWS]
        pairs, keys = pairs[kept], keys[kept]
    return train, test, baselines, split.counts["dropped"], pairs
