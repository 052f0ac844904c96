"""Classification on a table with a learned kernel: `fit` chooses every setting."""

import functools
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.arguments import with_remedies
from gzkcore._util.state import all_or_nothing, forget, holds, labels, stored
from gzkcore._util.typing import Data, Doubles
from gzkcore._util.validation import check_lengths, check_some_rows
from gzkcore.learn.classification import (
    ClassifierScore,
    count_labels,
    distinct,
    label_column,
    merge_counts,
    places_of,
)
from gzkcore.rows.frames import as_frame
from gzkcore.rows.sources import is_source

from .form import Choice
from .probabilities import TINY, Link, calibrated_link, signs
from .table_learner import TableLearner, warn_of_order
from .table_passes import source_of

__all__ = ["KernelClassifier"]


class KernelClassifier(ClassifierScore, TableLearner):
    """Classification on a table with a learned kernel: `fit` chooses every setting.

    For each class a `KernelRegressor` predicts +1 for its rows and -1 for all others. Predictions
    of held-out rows tell how these become probabilities: by a logistic regression, or for three and
    more classes as powers of (1 + prediction) / 2, if that has the smaller log loss in folds. No
    probability is surer than n held-out rows allow: a mistake has at least 1 / (2 (n + 1)), which
    the c classes share, so that each has about 1 / (2 (n + 1) (c - 1)) or more.

    Parameters
    ----------
    budget, form, n_components, kernel, max_memory, temp_folder, missing, columns, cv, random_state
        As for `KernelRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    report_, kernel_, lengthscales_, alpha_, model_, encoder_, feature_importances_, n_features_in_
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
        _link=holds(Link),
    )

    @with_remedies
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
        warn_of_order(X, y=y, sample_weight=sample_weight, groups=groups)
        self.classes_, labels = self._labels(X, y, sample_weight)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class, {self.classes_.tolist()}, and a classifier needs two or "
                "more; pass rows of other classes too"
            )
        n_targets = len(self.classes_) if len(self.classes_) > 2 else 1
        self._link = Link.of_means(n_targets)
        targets = functools.partial(_signs, classes=self.classes_)
        self._fit_table(X, labels, sample_weight, groups, targets, are_labels=True)
        if self.model_ is None:
            self._link = Link.of_shares(self._shares())
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

    def _calibrate(self, choice: Choice) -> None:
        self._link = calibrated_link(choice, self._in_units, self.classes_, self._shares())

    def _shares(self) -> Doubles:
        """Return the share of each class, by weight."""
        shares = np.asarray((self._means + 1) / 2)
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
        shape = self._link.offsets.shape if len(self._link.offsets) > 1 else ()
        return self._by_rows(self._model_of(X)._scores, X, shape)

    def _model_of(self, X: Data) -> "KernelClassifier":
        """Return what predicts the rows of X: for sources, what goes to workers."""
        return self._for_workers() if is_source(X) else self

    def _scores(self, X: Data) -> Doubles:
        rows, unknown = self._encoded(X)
        scores = self._link.scores(self._mean(rows))
        for affected, _, stand_ins in self.encoder_.stand_ins(rows, unknown, self._mean):
            shares = [_shares(self._link.scores(self._mean(known))) for known in stand_ins]
            logs = np.log(np.maximum(np.mean(shares, axis=0), TINY))
            scores[affected] = logs[:, 1:] - logs[:, :1] if scores.shape[1] == 1 else logs
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @with_remedies
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
        return np.asarray(self.classes_[places_of(self._scores(X))])

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
        return _shares(self._scores(X).reshape(-1, self._link.offsets.size))


def _shares(scores: Doubles) -> Doubles:
    """Return the probabilities of classes; of two there are scores of the second alone."""
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    return np.asarray(softmax(scores, axis=1))


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
