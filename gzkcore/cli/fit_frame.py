"""The default of `gzkcore fit`: everything is chosen, and judged beside what others predict.

A table is read whole, as a frame of numbers, dates and text; `KernelRegressor` or, for labels,
`KernelClassifier` learns from it; rows held out by a hash of their numbers are the test.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles
from gzkcore._util.wording import counted
from gzkcore.learn.kernel_classifier import KernelClassifier
from gzkcore.learn.kernel_regressor import KernelRegressor
from gzkcore.learn.table_encoder import LEVELS
from gzkcore.rows.frames import TEXT, Frame, Values, kind_of, read_frame
from gzkcore.rows.tables import Table

from .baselines import CLASSIFICATION, REGRESSION
from .columns import shuffled_errors
from .fit import FEWEST_ROWS, hashed
from .recipes import FrameRecipe

OURS = {False: "KernelRegressor", True: "KernelClassifier"}
SURE = 0.9  # a probability from which on a prediction is called sure
# Rows of a fit up to which the standard deviations of the test are worth their time.
STD_ROWS = 6000
GAP = 180.0  # degrees without data, from which on longitudes begin elsewhere

Report = Callable[[str, float], None]
Say = Callable[[str], None]
Judge = Callable[[Values, Doubles], dict[str, float | None]]  # truth and predictions to errors


@dataclass(frozen=True)
class FrameFit:
    """What `fit_frame` returns.

    Attributes
    ----------
    model : KernelRegressor or KernelClassifier
    methods : list of dict
        Of ours, then of each baseline, `method`, `seconds` and errors on the rows held out: for
        numbers `rmse`, `plus_minus` (of the 95 % interval) and `r2`, for labels `error_rate`,
        `plus_minus` and `log_loss`. Empty without a test.
    importances : dict of float
        The shares of columns by the learned lengths.
    error_of_some, shuffled : float, dict of float
        The first of the errors above on some of the rows held out, and where a column is shuffled.
    sure : dict
        How sure predictions are, on the rows held out.
    """

    model: KernelRegressor | KernelClassifier
    recipe: FrameRecipe
    classify: bool
    n_train: int
    n_test: int
    methods: list[dict[str, Any]]
    importances: dict[str, float]
    error_of_some: float | None
    shuffled: dict[str, float]
    sure: dict[str, float | None]
    places: Doubles | None  # latitude and longitude of the rows of the fit, if that is all
    truth: Values  # of the rows held out, or if there are none of those of the fit
    predicted: Values


def fit_frame(
    table: Table,
    target: str,
    columns: list[str],
    *,
    places: bool,
    classify: bool,
    seconds: float | None,
    test_fraction: float,
    seed: int,
    report: Report,
    say: Say,
) -> FrameFit:
    """Learn to predict a column of a table, and test it beside baselines.

    Parameters
    ----------
    table : Table
    target : str
    columns : list of str
    places : bool
        Whether the columns are latitude and longitude.
    classify : bool
        Whether numbers of the target are labels; text always is.
    seconds : float, optional
        About what the final fit may take.
    test_fraction : float
        Share of the rows to hold out.
    seed : int
        Decides which rows are held out, and all that is chosen at random.
    report : callable
        Is told the name of the work, and the share of it that is done.
    say : callable
        Is told what was left out, and what else to know.
    """
    whole = read_frame(table, [*columns, target], report)
    if len(whole) < FEWEST_ROWS:
        raise ValueError(
            f"{table.path} has {counted(len(whole), 'row')}; a fit takes {FEWEST_ROWS} or more"
        )
    recipe, frame = _prepared(table, target, columns, whole, places, say)
    classify = classify or kind_of(whole[target]) == TEXT
    y, there = _targets(table, target, whole[target], classify, say)
    test = there & (hashed(np.arange(len(y)), seed) < test_fraction)
    train = there & ~test
    if (test_fraction > 0 and not test.any()) or train.sum() < FEWEST_ROWS // 2:
        raise ValueError(
            f"--test-fraction {test_fraction:g} leaves {train.sum()} of {there.sum()} rows for the "
            f"fit and {test.sum()} for the test; choose another, or 0 for no test"
        )
    _check_target(table, target, y[train])
    report("learning", 0)
    learner = KernelClassifier if classify else KernelRegressor
    started = time.perf_counter()
    model: Any = learner(seconds, random_state=seed).fit(frame.take(train), y[train])
    took = time.perf_counter() - started
    model.recipe_ = asdict(recipe)
    report("learning", 1)
    predict = model.predict_proba if classify else model.predict
    rows, others = frame.take(train), frame.take(test if test.any() else train)
    predicted = predict(others)
    truth = y[test] if test.any() else y[train]
    methods: list[dict[str, Any]] = []
    sure: dict[str, float | None] = {}
    shares = zip(recipe.columns, model.feature_importances_.tolist(), strict=True)
    importances = dict(sorted(shares, key=lambda each: -each[1]))
    of_some: float | None = None
    shuffled: dict[str, float] = {}
    if test.any():
        mean = None if classify else float(np.mean(y[train]))
        judge = _judged_labels(model.classes_) if classify else _judged_numbers(mean)
        methods.append({"method": OURS[classify], **judge(truth, predicted), "seconds": took})
        methods += _baselines(rows, y[train], others, truth, model, judge, report)
        sure = _how_sure(model, others, truth, predicted, int(train.sum()))
        of_some, shuffled = shuffled_errors(
            predict, others, truth, lambda *both: float(next(iter(judge(*both).values())) or 0),
            () if recipe.places else importances, np.random.default_rng(seed),
        )  # fmt: skip
    return FrameFit(
        model, recipe, classify, int(train.sum()), int(test.sum()), methods,
        importances, of_some, shuffled, sure,
        _places(rows, model, recipe), truth,
        model.classes_[predicted.argmax(axis=1)] if classify else predicted,
    )  # fmt: skip


# ---- what is learned from


def _prepared(
    table: Table, target: str, columns: list[str], whole: Frame, places: bool, say: Say
) -> tuple[FrameRecipe, Frame]:
    """Return the recipe of the columns, and the frame that the learner is given."""
    kinds = {name: kind_of(whole[name]) for name in columns}
    if places:
        if TEXT in kinds.values():
            wrong = next(name for name in columns if kinds[name] == TEXT)
            raise table.bad_type(wrong, "text")
        west = _west(whole[columns[1]])
        recipe = FrameRecipe(target, columns, list(kinds.values()), places=True, west=west)
        return recipe, recipe.frame(table, 0, whole.values)
    names = [name for name in columns if kinds[name] == TEXT and _is_a_name(whole[name])]
    kept = [name for name in columns if name not in names]
    if names:
        say(f"left out, since nearly every row has its own text: {', '.join(names)}")
    if not kept:
        raise ValueError(
            f"{table.path}: nearly every row has its own text in every column, so there is nothing "
            "to predict from; choose other columns"
        )
    recipe = FrameRecipe(target, kept, [kinds[name] for name in kept])
    return recipe, recipe.frame(table, 0, whole.values)


def _is_a_name(column: Values) -> bool:
    """Say whether texts tell rows apart and nothing else."""
    there = [text for text in column if text is not None]
    return len(set(there)) > max(LEVELS, len(there) / 2)


def _west(longitudes: Doubles) -> float:
    """Return where longitudes are to begin: at the date line, unless it cuts the data apart."""
    around = np.unique(longitudes[np.isfinite(longitudes)] % 360)
    if not around.size:
        return -180.0
    gaps = np.diff(around, append=around[0] + 360)
    widest = int(gaps.argmax())
    if gaps[widest] < GAP:
        return -180.0
    middle = around[widest] + gaps[widest] / 2
    return float((middle + 180) % 360 - 180)


def _targets(
    table: Table, target: str, column: Values, classify: bool, say: Say
) -> tuple[Values, NDArray[np.bool_]]:
    """Return targets, labels as text or whole numbers where they are, and which are there."""
    if column.dtype.kind == "M":
        raise ValueError(
            f"{table.path}: column {target!r} holds dates, which can't be predicted; choose another"
        )
    text = column.dtype.kind == "O"
    there = np.array([value is not None for value in column]) if text else ~np.isnan(column)
    if not there.all():
        missing = int((~there).sum())
        rows = "1 row has" if missing == 1 else f"{missing:,} rows have"
        say(f"{rows} no {target}, and were left out")
    if text:
        filled = column.copy()
        filled[~there] = ""
        return filled.astype(str), there
    if classify:
        if not np.all(column[there] == np.round(column[there])):
            raise ValueError(
                f"--classify: column {target!r} of {table.path} has numbers that are not whole, "
                "which are no labels; leave --classify out"
            )
        return np.where(there, column, 0).astype(np.int64), there
    if len(np.unique(column[there])) == 2:
        say(f"{target} has two values; --classify takes them for labels")
    return column, there


def _check_target(table: Table, target: str, y: Values) -> None:
    values = np.unique(y)
    if len(values) == 1:
        raise ValueError(
            f"{table.path}: column {target!r} is {values[0]} in every row that is used, so there "
            "is nothing to predict; choose another target"
        )
    if y.dtype.kind != "f" and len(values) > len(y) / 2:
        raise ValueError(
            f"{table.path}: column {target!r} has {len(values):,} different labels in "
            f"{len(y):,} rows, too many to learn; choose another target"
        )


def _places(rows: Frame, model: Any, recipe: FrameRecipe) -> Doubles | None:
    """Return latitude and longitude of rows, if these are all that the model takes."""
    if recipe.places:
        return np.column_stack(list(rows.values.values()))
    if not model.encoder_.on_sphere_ or len(recipe.columns) != 2:
        return None
    kinds = {column["kind"]: str(column["name"]) for column in model.encoder_.columns_}
    return np.column_stack([rows[kinds[kind]] for kind in ("latitude", "longitude")])


# ---- the test


def _baselines(
    rows: Frame,
    y: Values,
    others: Frame,
    truth: Values,
    model: Any,
    judge: Judge,
    report: Report,
) -> list[dict[str, Any]]:
    """Return what each baseline is worth on the rows held out."""
    baselines = CLASSIFICATION if hasattr(model, "classes_") else REGRESSION
    found: list[dict[str, Any]] = []
    for name, predict in baselines.items():
        report("baselines", len(found) / len(baselines))
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = predict(rows, y, others, model.encoder_)
        seconds = time.perf_counter() - started
        found.append({"method": name, **judge(truth, values), "seconds": seconds})
    report("baselines", 1)
    return found


def _judged_numbers(mean: float | None) -> Judge:
    def judge(truth: Values, predicted: Doubles) -> dict[str, float | None]:
        squares = np.square(truth - predicted)
        of_mean = float(np.mean(np.square(truth - mean)))
        rmse = float(np.sqrt(squares.mean()))
        error = float(squares.std()) / (2 * max(rmse, 1e-300) * np.sqrt(len(truth)))
        r2 = 1 - rmse**2 / of_mean if of_mean else None
        return {"rmse": rmse, "plus_minus": 1.96 * error, "r2": r2}

    return judge


def _judged_labels(classes: Values) -> Judge:
    def judge(truth: Values, predicted: Doubles) -> dict[str, float | None]:
        wrong = float(np.mean(classes[predicted.argmax(axis=1)] != truth))
        places = np.minimum(np.searchsorted(classes, truth), len(classes) - 1)
        given = np.where(classes[places] == truth, predicted[np.arange(len(truth)), places], 0.0)
        return {
            "error_rate": wrong,
            "plus_minus": 1.96 * float(np.sqrt(wrong * (1 - wrong) / len(truth))),
            "log_loss": float(-np.mean(np.log(np.maximum(given, 1e-15)))),
        }

    return judge


def _how_sure(
    model: Any, others: Frame, truth: Values, predicted: Doubles, n_train: int
) -> dict[str, float | None]:
    """Return how far predictions are off, and whether their probabilities and spreads are right."""
    if hasattr(model, "classes_"):
        surest = predicted.max(axis=1)
        right = model.classes_[predicted.argmax(axis=1)] == truth
        sure = surest >= SURE
        return {
            "mean_probability": float(surest.mean()),
            "right": float(right.mean()),
            "sure": float(sure.mean()),
            "right_where_sure": float(right[sure].mean()) if sure.any() else None,
        }
    found: dict[str, float | None] = {"within": float(np.quantile(np.abs(truth - predicted), 0.95))}
    if n_train <= STD_ROWS and getattr(model.model_, "centers", None) is None:
        _, std = model.predict(others, return_std=True)
        found |= {
            "std_median": float(np.median(std)),
            "covered": float(np.mean(np.abs(truth - predicted) <= 1.96 * std)),
        }
    return found
