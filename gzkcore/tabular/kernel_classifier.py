"""Classification on a table with a learned kernel: `fit` chooses every setting."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.state import all_or_nothing, doubles, forget, labels, number, stored
from gzkcore._util.typing import Data, Doubles, Integers, Seed
from gzkcore._util.validation import check_lengths, check_some_rows
from gzkcore.kernels.base import Kernel
from gzkcore.learn.classification import (
    ClassifierScore,
    count_labels,
    distinct,
    label_column,
    merge_counts,
    places_of,
)
from gzkcore.learn.held_out import folds
from gzkcore.rows.frames import as_frame
from gzkcore.rows.sources import is_source

from .edge import Edge
from .kernel_search import Candidate, Trials
from .table_learner import Form, TableLearner, warn_of_order
from .table_passes import source_of

__all__ = ["KernelClassifier"]

RATE_OF_CHOICE = "The error rate on the rows held out for the choice"
# Choices. Penalties, as scikit-learn's C: with ten classes, each of which has slopes, C = 100 often
# overfits.
WEAK, STRONGER = 100.0, 10.0
FLOORS = 0.003, 0.03  # that the search for the floor of shares starts from
FOLDS = 5
TINY = np.finfo(np.float64).tiny


class KernelClassifier(ClassifierScore, TableLearner):
    """Classification on a table with a learned kernel: `fit` chooses every setting.

    For each class a `KernelRegressor` predicts +1 for its rows and -1 for all others. Predictions
    of held-out rows tell how these become probabilities: by a logistic regression, or for three and
    more classes as powers of (1 + prediction) / 2, if that has the smaller log loss in folds.

    Parameters
    ----------
    budget, form, n_components, kernel, max_memory, missing, columns, cv, random_state
        As for `KernelRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    report_, kernel_, alpha_, model_, encoder_, feature_importances_, n_features_in_
        As for `KernelRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gzkcore import KernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelClassifier(random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    _state = stored(
        classes_=labels("c"),
        _slopes=doubles("t", "t"),
        _offsets=doubles("t"),
        _floor=number(0),
    )

    # Not inherited: Python's errors about arguments name the class that defines the constructor.
    def __init__(
        self,
        budget: float | None = None,
        *,
        form: str = "auto",
        n_components: int | None = None,
        kernel: str | Kernel = "auto",
        max_memory: float | str | None = None,
        missing: str = "impute",
        columns: Mapping[Any, Any] | None = None,
        cv: Any = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(
            budget, form=form, n_components=n_components, kernel=kernel, max_memory=max_memory,
            missing=missing, columns=columns, cv=cv, random_state=random_state,
        )  # fmt: skip

    @all_or_nothing
    def fit(
        self,
        X: Data,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the classification.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features), or a source
            As for `KernelRegressor.fit`. One more pass over a source reads the labels.
        y : array-like of shape (n_samples,)
            Labels, numbers or text. None for an iterable of batches.
        sample_weight, groups
            As for `KernelRegressor.fit`.

        Returns
        -------
        self
            As it was if an error or an interrupt occurs.
        """
        forget(self)
        X = as_frame(X)
        warn_of_order(X, y)
        self.classes_, labels = self._labels(X, y, sample_weight)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class, {self.classes_.tolist()}, and a classifier needs two or "
                "more; pass rows of other classes too"
            )
        n_targets = len(self.classes_) if len(self.classes_) > 2 else 1
        # Until rows held out say better: log odds of a target +-1 that is its mean.
        self._slopes, self._offsets = 2.0 * np.eye(n_targets), np.zeros(n_targets)
        self._floor = 0.0
        targets = functools.partial(_signs, classes=self.classes_)
        self._fit_table(X, labels, sample_weight, groups, targets, are_labels=True)
        if self.model_ is None:
            shares = self._shares()
            odds = shares if shares.size > 2 else shares[1:] / np.maximum(shares[:1], TINY)
            self._slopes, self._offsets = 0 * self._slopes, np.log(np.maximum(odds, TINY))
        return self

    def _labels(self, X: Data, y: Any, sample_weight: Any) -> tuple[NDArray[Any], Any]:
        """Return the classes, sorted, and checked labels, of a source as they were given."""
        if is_source(X):
            counts = source_of(X, y, sample_weight).reduce(count_labels, merge_counts)
            if counts is None:
                raise ValueError(
                    "the source yields no batches with rows; pass a source with one or more"
                )
            classes = np.array(sorted(counts))
            self._check_labels(classes)
            return classes, y
        if y is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: KernelClassifier needs labels"
            )
        check_some_rows(X)
        labels = label_column(y, warn=True)
        assert_all_finite(labels, input_name="y")
        classes, _ = distinct(labels)
        self._check_labels(labels)
        return classes, labels

    def _calibrate(
        self,
        trials: Trials,
        best: Candidate,
        form: Form,
        edge: Edge | None,
        incomplete: NDArray[np.bool_],
    ) -> None:
        """Fit a logistic regression to the predictions of the rows held out."""
        values, places, weights = [], [], []
        for _, mean, _, held_out in trials.predictions(best, form.trial, return_std=False):
            values.append(mean * self._scales + self._means)
            places.append(places_of(trials.Y[held_out] * self._scales + self._means))
            weights.append(trials.weights(held_out))
        found, truth = np.concatenate(values), np.concatenate(places)
        weight = np.concatenate(weights)
        wrong = 100 * np.average(places_of(found) != truth, weights=weight)
        trials.report.say(f"{RATE_OF_CHOICE} is {wrong:.1f} %.")
        absent = np.setdiff1d(np.arange(len(self.classes_)), truth)
        if absent.size:  # each counts as one row of its share, of which nothing is known
            middle = np.average(found, axis=0, weights=weight)
            found = np.vstack([found, np.tile(middle, (absent.size, 1))])
            truth = np.append(truth, absent)
            weight = np.append(weight, weight.sum() * self._shares()[absent])
            names = ", ".join(map(str, self.classes_[absent]))
            trials.report.say(f"No row of these classes was held out: {names}.")
        link = _best_link(found, truth, weight, len(self.classes_))
        self._slopes, self._offsets, self._floor = link
        if self._floor:
            trials.report.say("Probabilities are powers of what is predicted for each class.")

    def _shares(self) -> Doubles:
        """Return the share of each class, by weight."""
        shares: Doubles = (self._means + 1) / 2
        return shares if shares.size > 1 else np.append(1 - shares, shares)

    def decision_function(self, X: Data) -> Any:
        """Return the logarithms of the class probabilities, up to a constant.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features), or a source

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, positive values mean the second.
        """
        check_is_fitted(self)
        shape = self._offsets.shape if len(self._offsets) > 1 else ()
        return self._by_rows(self._model_of(X)._scores, X, shape)

    def _model_of(self, X: Data) -> "KernelClassifier":
        """Return what predicts the rows of X: for sources, what goes to workers."""
        return self._for_workers() if is_source(X) else self

    def _scores(self, X: Data) -> Doubles:
        link = Link(self._slopes, self._offsets, self._floor)
        found = link.scores(self._mean(self._encoded(X)))
        return found[:, 0] if found.shape[1] == 1 else found

    def predict(self, X: Data, return_std: bool = False) -> Any:
        """Predict the class of each row: the most probable.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features), or a source
        return_std : bool, default=False
            True raises a TypeError: `predict_proba` tells how certain a class is.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        self._without_std(return_std)
        check_is_fitted(self)
        return self._by_rows(self._model_of(X)._classes_of, X, (), self.classes_.dtype)

    def _classes_of(self, X: Data) -> NDArray[Any]:
        found: NDArray[Any] = self.classes_[places_of(self._scores(X))]
        return found

    def predict_proba(self, X: Data) -> Any:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features), or a source

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self._by_rows(self._model_of(X)._probabilities, X, self.classes_.shape)

    def _probabilities(self, X: Data) -> Doubles:
        scores = self._scores(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        return np.asarray(softmax(scores, axis=1))


class Link(NamedTuple):
    """What makes log probabilities, up to a constant, of predictions f: slopes g + offsets.

    g is f, or with a floor > 0 log max((1 + f) / 2, floor).
    """

    slopes: Doubles
    offsets: Doubles
    floor: float = 0.0

    def scores(self, found: Doubles) -> Doubles:
        """Return log probabilities up to a constant."""
        found = _log_shares(found, self.floor) if self.floor else found
        return np.asarray(found @ self.slopes.T + self.offsets)


def _logistic(found: Doubles, truth: Integers, weight: Doubles, penalty: float) -> Link:
    """Return the link of a logistic regression on predictions; C of scikit-learn is `penalty`."""
    fitted = LogisticRegression(C=penalty, max_iter=1000).fit(found, truth, weight)
    return Link(fitted.coef_, fitted.intercept_)


def _log_shares(found: Doubles, floor: float) -> Doubles:
    """Return log max(p, floor) of p = (1 + f) / 2, which least squares estimate for targets +-1."""
    shares: Doubles = np.log(np.maximum((1.0 + found) / 2.0, floor))
    return shares


def _loss(scores: Doubles, truth: Integers, weight: Doubles) -> float:
    """Return the log loss of scores, which are log probabilities up to a constant."""
    each = log_softmax(scores, axis=1)[np.arange(len(truth)), truth]
    return float(-np.average(each, weights=weight))


def _powers(found: Doubles, truth: Integers, weight: Doubles) -> Link:
    """Return the power and the floor of shares with the least log loss.

    So many rows, among which nothing happened, don't say that it is rarer than one in so many.
    """
    least = 1.0 / len(truth)
    one, none = np.eye(found.shape[1]), np.zeros(found.shape[1])

    def link(logs: Doubles) -> Link:
        power, floor = np.exp(logs)
        return Link(power * one, none, max(float(floor), least))

    def loss(logs: Doubles) -> float:
        return _loss(link(logs).scores(found), truth, weight)

    tried = [minimize(loss, [0.0, math.log(floor)], method="Nelder-Mead") for floor in FLOORS]
    return link(min(tried, key=lambda result: float(result.fun)).x)


def _best_link(found: Doubles, truth: Integers, weight: Doubles, n_classes: int) -> Link:
    """Return the link with the least log loss in folds; two classes have a logistic regression."""
    if n_classes == 2:
        return _logistic(found, truth, weight, WEAK)
    links: list[Callable[..., Link]] = [_powers]
    links += (functools.partial(_logistic, penalty=C) for C in (WEAK, STRONGER))
    losses = np.zeros(len(links))
    for rows, out in folds(len(truth), FOLDS, truth):
        if np.unique(truth[rows]).size < n_classes:
            return _logistic(found, truth, weight, STRONGER)  # too few rows to compare
        for place, link in enumerate(links):
            fitted = link(found[rows], truth[rows], weight[rows])
            losses[place] += _loss(fitted.scores(found[out]), truth[out], weight[out])
    return links[int(np.argmin(losses))](found, truth, weight)


def _signs(y: ArrayLike, X: Any, classes: NDArray[Any]) -> Doubles:
    """Return targets of +1 and -1: of three or more classes a column for each."""
    labels = label_column(y)
    check_lengths(X, labels)
    places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    unknown = np.flatnonzero(classes[places] != labels)
    if unknown.size:
        raise ValueError(
            f"y[{unknown[0]}] = {labels[unknown[0]]!r} is not one of the classes of the first "
            f"pass, {classes.tolist()}; every iter() of the source must give the same rows"
        )
    return signs(places, len(classes))


def signs(places: Integers, n_classes: int) -> Doubles:
    """Return targets of +1 and -1: one of two classes, for the second, else one for each."""
    found: Doubles = 2.0 * (places[:, None] == np.arange(n_classes)) - 1.0
    return found[:, 1:] if n_classes == 2 else found
