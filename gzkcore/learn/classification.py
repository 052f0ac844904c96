"""The base of all classifiers: labels become targets of +-1, and predictions become labels."""

import numbers
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.arguments import with_remedies
from gzkcore._util.state import doubles, labels, nothing, stored
from gzkcore._util.typing import Data, Doubles, Integers
from gzkcore._util.validation import (
    WITHOUT_TARGET,
    check_column,
    check_labels,
    check_lengths,
    check_not_negative,
    check_scored,
    check_some_weight,
    check_weights,
)
from gzkcore.passes.streams import map_rows, reduced
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import Batch, can_reread, is_source
from gzkcore.rows.values import missing_of

from .regression import Regressor


class ClassifierScore(ClassifierMixin):
    """The score of classifiers, of rows in arrays or of a source, and checks of labels."""

    _of_numbers = "KernelRegressor"  # the regressor of the same kind

    def _check_labels(self, labels: NDArray[Any]) -> None:
        """Raise if values are not labels; for numbers name the regressor."""
        check_labels(labels, f"to predict numbers use {self._of_numbers}")

    def _check_kind(self, labels: NDArray[Any]) -> None:
        """Raise unless labels are of the kind of the classes, text or numbers."""
        self._check_labels(labels)
        known = self.classes_.tolist()
        if isinstance(known[0], str) != isinstance(labels[0], str):
            raise ValueError(
                f"y has labels such as {labels.tolist()[0]!r}, but the classes are like "
                f"{known[0]!r}; pass all as text, or all as numbers"
            )

    def _without_std(self, return_std: bool) -> None:
        """Raise if standard deviations are asked for; name the method to use instead."""
        if return_std:
            remedy = "predict_proba(X) returns probabilities"
            if not hasattr(self, "predict_proba"):
                remedy = "decision_function(X) says how clear it is, and KernelClassifier and "
                remedy += "KernelLogisticRegression have predict_proba"
            raise TypeError(
                f"return_std={return_std!r}: a class has no standard deviation; {remedy}"
            )

    def score(
        self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the share of the rows whose class is predicted.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        if not is_source(X):
            check_scored(y)
            labels = label_column(y)
            check_lengths(X, labels)
            weight = check_weights(sample_weight, labels)
            check_some_weight(weight)
            check_is_fitted(self)
            self._check_kind(labels)
            return float(super().score(X, labels, weight))
        model = cast(Any, self)._for_workers()
        hits, total = reduced(as_source(X, y, sample_weight), _count_hits, sum, model)
        check_some_weight(total)
        return float(hits / total)


class Classifier(ClassifierScore, Regressor):
    """Turns a regression into a classification: labels to targets of +-1, predictions to labels."""

    _state = stored(classes_=labels("c"), _of_class=(doubles("c", least=0) | nothing()).if_there())

    classes_: NDArray[Any]
    class_weight: Any
    _of_class: Any = None  # balanced weights of the classes

    def _look_ahead(self, X: Data, y: Any, sample_weight: ArrayLike | None) -> None:
        """Take the classes, and their weights, from the labels of all rows."""
        if is_source(X):
            if not can_reread(X):
                return
            rows_of = reduced(as_source(X, y, sample_weight), count_labels, merge_counts)
            self.classes_ = np.array(sorted(rows_of))
            counts = np.array([rows_of[label] for label in self.classes_.tolist()])
        elif self._balanced():
            self.classes_, counts = _counted(y)
        else:
            return
        if self._balanced():
            self._of_class = counts.sum() / (len(counts) * counts)

    def _balanced(self) -> bool:
        if self.class_weight is None or isinstance(self.class_weight, dict):
            return False
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return True
        raise ValueError(
            f'class_weight={self.class_weight!r} must be None, "balanced" or a dict of weights'
        )

    def _weighted(self, targets: Doubles, sample_weight: Any) -> Any:
        """Multiply sample weights by those of the classes, for targets of +-1."""
        if self.class_weight is None:
            return sample_weight
        of_class = self._of_class
        if of_class is None:
            if self._balanced():
                raise ValueError(
                    'class_weight="balanced" needs the labels of all rows, and partial_fit sees '
                    "one batch; use a dict of weights, as from sklearn.utils.compute_class_weight"
                )
            known = self.classes_.tolist()
            of_class = [self.class_weight.get(label, 1.0) for label in known]
            for label, weight in self.class_weight.items():
                if label not in known and not all(c in self.class_weight for c in known):
                    raise ValueError(
                        f"class_weight has a weight for {label!r}, which is not one of the classes "
                        f"{known}"
                    )
                check_not_negative(f"class_weight[{label!r}]", weight)
        weight = np.asarray(of_class, dtype=np.float64)[places_of(targets)]
        if sample_weight is None:
            return weight
        return sample_weight * weight

    def _summands(self, X: Any, y: Doubles, sample_weight: Any) -> Any:
        return super()._summands(X, y, self._weighted(y, sample_weight))

    def _targets(self, y: Any, X: Any, reset: bool) -> Doubles:
        """Return targets of +-1, one column for each of 3 or more classes."""
        y = label_column(y, warn=True)
        check_lengths(X, y)
        assert_all_finite(y, input_name="y")
        labels, _ = distinct(y)
        self._check_labels(y)
        if reset and not hasattr(self, "classes_"):
            self.classes_ = labels
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class, {self.classes_.tolist()}, and a classifier needs two or "
                "more; pass rows of other classes too, or classes=[...] to partial_fit"
            )
        places = np.searchsorted(self.classes_, y)
        places = np.minimum(places, len(self.classes_) - 1)
        unknown = np.flatnonzero(self.classes_[places] != y)
        if unknown.size:
            raise ValueError(
                f"y[{unknown[0]}] = {y[unknown[0]]!r} is not one of the classes "
                f"{self.classes_.tolist()}; fit again, to rows of all classes, or name all of them "
                "with the first batch of partial_fit(X, y, classes=[...])"
            )
        if len(self.classes_) == 2:
            return np.asarray(2.0 * places - 1.0)
        targets = np.full((len(y), len(self.classes_)), -1.0)
        targets[np.arange(len(y)), places] = 1.0
        return targets

    def decision_function(self, X: Data) -> Any:
        """Return the values of the regressions, tile by tile.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, positive values mean the second. For an iterable of batches, an
            iterator of these; for a Dask collection, a Dask array.
        """
        self._check_fitted()
        if is_source(X):
            return map_rows(self._for_workers().decision_function, X, self._target_shape)
        return super().predict(X)

    @with_remedies
    def predict(self, X: Data, return_std: bool = False) -> Any:
        """Predict the class of each row: that of the largest decision function.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
        return_std : bool, default=False
            True raises a TypeError, which names the method that tells how certain a class is.

        Returns
        -------
        ndarray of shape (n_samples,)
            For an iterable of batches, an iterator of these; for a Dask collection, a Dask array.
        """
        self._without_std(return_std)
        self._check_fitted()
        if is_source(X):
            return map_rows(self._for_workers().predict, X, (), self.classes_.dtype)
        return self.classes_[places_of(self.decision_function(X))]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags = None
        tags.target_tags.multi_output = False
        return tags


def places_of(scores: Doubles) -> Integers:
    """Return the place of the class with the largest score; one column is for the second of two."""
    several = scores.ndim == 2 and scores.shape[1] > 1
    return np.asarray(scores.argmax(axis=1) if several else scores.reshape(-1) > 0, dtype=np.intp)


def label_column(y: Any, *, warn: bool = False) -> NDArray[Any]:
    """Return labels in one dimension, of the type of their values.

    In pandas' nullable types and objects True and 1 stay as they are; scikit-learn makes them 1.0.
    """
    dtype = getattr(y, "dtype", None)
    if dtype is None:  # a frame of one column has the type of that
        dtype = next(iter(getattr(y, "dtypes", ())), None)
    plain = dtype is None or (isinstance(dtype, np.dtype) and dtype.kind != "O")
    if isinstance(y, list | tuple):  # NumPy would make text of all
        plain = len({isinstance(label, str) for label in y}) < 2
    values = check_column("y", y if plain else np.asarray(y, dtype=object), warn=warn)
    missing = missing_of(values)
    if missing.any():
        raise ValueError(
            f"y has no label in row {int(np.argmax(missing))} (counted from 0); leave out rows "
            "without one"
        )
    if plain:
        return np.asarray(values)
    are_text = np.array([isinstance(value, str) for value in values], dtype=bool)
    if are_text.any() and not are_text.all():
        text, other = int(are_text.argmax()), int(are_text.argmin())
        raise ValueError(
            f"y has text and other labels, such as {values[text]!r} in row {text} and "
            f"{values[other]!r} in row {other}, counted from 0; make all text, or all numbers"
        )
    numeric = values.size and all(isinstance(value, numbers.Real | np.bool_) for value in values)
    return np.array(values.tolist()) if numeric else values


def distinct(labels: ArrayLike) -> tuple[NDArray[Any], Integers]:
    """Return the distinct labels, sorted, and the place of each label among them."""
    values = np.asarray(labels)
    if values.dtype.kind == "O":
        gaps = [row for row, label in enumerate(values) if label is None]
        if gaps:
            raise ValueError(f"y has no label in row {gaps[0]} (counted from 0); {WITHOUT_TARGET}")
    try:
        return np.unique(values, return_inverse=True)
    except TypeError as error:  # numbers among texts, say
        raise ValueError(f"y has labels that can't be sorted; give all one kind: {error}") from None


def count_labels(batch: Batch) -> dict[Any, int]:
    """Return the number of rows of each label in a batch."""
    labels, counts = _counted(batch.y)
    return dict(zip(labels, counts.tolist(), strict=True))  # keys of the labels' own type


def _counted(y: Any) -> tuple[NDArray[Any], Integers]:
    """Return the distinct labels, sorted, and their numbers of rows."""
    if y is None:
        raise ValueError("a classifier needs labels; the source must yield (X, y)")
    y = label_column(y)
    assert_all_finite(y, input_name="y")
    labels, places = distinct(y)
    return labels, np.bincount(places)


def merge_counts(parts: Sequence[dict[Any, int]]) -> dict[Any, int]:
    """Add up the counts of labels."""
    labels = set().union(*parts)
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError(
            "labels are text in one batch and numbers in another, "
            f"{sorted((np.asarray(label).item() for label in labels), key=repr)}; give all batches "
            "labels of one kind"
        )
    return {label: sum(part.get(label, 0) for part in parts) for label in labels}


def _count_hits(batch: Batch, model: Any) -> Doubles:
    X, y, sample_weight, _ = batch
    y = label_column(y)
    weight = check_weights(sample_weight, y[:, None])
    weight = np.ones(len(y)) if weight is None else weight
    return np.array([weight @ (model.predict(X) == y), weight.sum()])
