"""Baselines on the same rows: gradient boosting, a linear model, and the mean.

Each baseline is a function of the training rows, their targets, the rows to predict and our
encoder. It returns predictions, or for labels the probability of each class.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV

from gzkcore._util.typing import Doubles
from gzkcore.rows.frames import Frame, kind_of
from gzkcore.rows.text import TEXT
from gzkcore.rows.values import Values
from gzkcore.tabular.table_encoder import TableEncoder

Baseline: TypeAlias = Callable[[Frame, Values, Frame, TableEncoder], Doubles]

MOST_CLASSES = 50  # boosting is fitted to no more: 200 classes take five minutes on 1,500 rows
MOST_LEVELS = 254  # scikit-learn's boosting takes no more levels of a category
PENALTIES = tuple(10.0**k for k in range(-3, 5))


def _boosting(classify: bool, train: Frame, y: Values, test: Frame, _: TableEncoder) -> Doubles:
    columns = [_coded(train[name], test[name]) for name in train.columns]
    categories = [kind_of(train[name]) == TEXT for name in train.columns]
    if classify and (n_classes := len(np.unique(y))) > MOST_CLASSES:
        raise ValueError(
            f"with {n_classes} labels, a tree for each in every step, it takes minutes"
        )
    learner = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    model = learner(categorical_features=categories, random_state=0)
    model.fit(np.column_stack([fitted for fitted, _ in columns]), y)
    return _predicted(model, np.column_stack([new for _, new in columns]))


def _linear(classify: bool, train: Frame, y: Values, test: Frame, encoder: TableEncoder) -> Doubles:
    model = LogisticRegression(max_iter=1000) if classify else RidgeCV(PENALTIES)
    model.fit(encoder.transform(train), y)
    return _predicted(model, encoder.transform(test))


def _constant(classify: bool, train: Frame, y: Values, test: Frame, _: TableEncoder) -> Doubles:
    model = DummyClassifier(strategy="prior") if classify else DummyRegressor()
    return _predicted(model.fit(np.zeros((len(train), 1)), y), np.zeros((len(test), 1)))


BOOSTING, LINEAR, MEAN = "boosting (scikit-learn)", "linear ridge", "the mean"
SHARES = "the shares of the classes"
CONSTANTS = {MEAN, SHARES}  # these predict the same for all rows
REGRESSION: dict[str, Baseline] = {
    BOOSTING: functools.partial(_boosting, False),
    LINEAR: functools.partial(_linear, False),
    MEAN: functools.partial(_constant, False),
}
CLASSIFICATION: dict[str, Baseline] = {
    BOOSTING: functools.partial(_boosting, True),
    "logistic regression": functools.partial(_linear, True),
    SHARES: functools.partial(_constant, True),
}


def _predicted(model: Any, rows: Values) -> Doubles:
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(rows))
    return np.asarray(model.predict(rows))


def _coded(fitted: Values, new: Values) -> tuple[Doubles, Doubles]:
    """Return a column's fitted and new rows as numbers; missing, new and rare levels are NaN."""
    if fitted.dtype.kind == "M":
        return _seconds(fitted), _seconds(new)
    if fitted.dtype.kind == "f":
        return fitted, new.astype(np.float64)
    levels, counts = np.unique(fitted[fitted != None].astype(str), return_counts=True)  # noqa: E711
    frequent = levels[np.argsort(-counts, kind="stable")][:MOST_LEVELS]
    codes = {str(level): float(code) for code, level in enumerate(frequent)}
    first, second = (
        np.array([codes.get(text, np.nan) for text in column]) for column in (fitted, new)
    )
    return first, second


def _seconds(dates: Values) -> Doubles:
    seconds = dates.astype("M8[s]").astype(np.float64)
    seconds[np.isnat(dates)] = np.nan
    return seconds
