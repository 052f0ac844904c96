"""Classification by ridge regression on features: labels to targets of +-1 and back."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from gzkcore._util.model_io import stored
from gzkcore._util.typing import Data, Doubles, Seed
from gzkcore._util.validation import check_weights
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import Batch, can_reread, is_source

from .ridge import FeatureRegressor, RandomFeatureRidge
from .ridge_cv import ALPHAS, RandomFeatureRidgeCV
from .streams import map_rows

__all__ = ["RandomFeatureRidgeClassifier", "RandomFeatureRidgeClassifierCV"]


class _Classifying(ClassifierMixin, FeatureRegressor):
    """Turns a regression into a classification: labels to targets of +-1, predictions to labels."""

    _state = stored("classes_", "_of_class", _announced=None)

    classes_: NDArray[Any]
    class_weight: Any
    _of_class: Any = None  # the weights of the classes, where the rows tell them

    def partial_fit(  # type: ignore[override]  # as scikit-learn's classifiers have it
        self,
        X: Data,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add a batch of rows to those seen so far. Features are fitted on the first batch.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like of shape (n_classes,), optional
            All labels that may come; needed with the first batch only. None: those of the first.

        Returns
        -------
        self
            As before the call, if anything fails or interrupts on the way.
        """
        classes = None if classes is None else np.unique(np.asarray(classes))
        if self.__sklearn_is_fitted__():
            if classes is not None and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"classes={classes.tolist()} are not those of the first batch, "
                    f"{self.classes_.tolist()}; pass the same or None"
                )
        elif classes is not None:
            self._forget()
            self.classes_ = classes
        return super().partial_fit(X, y, sample_weight)

    def _look_ahead(self, X: Data, y: Any, sample_weight: ArrayLike | None) -> None:
        """Take the classes, and their weights, from the labels of all rows."""
        if is_source(X):
            if not can_reread(X):
                return
            counts = as_source(X, y, sample_weight).reduce(_count_labels, _merge_counts)
        elif self._balanced():
            counts = _count_labels(Batch(X, y, None, 0))
        else:
            return
        if counts is None:
            raise ValueError("the source yields no batches; give it one or more")
        labels = sorted(counts)
        self.classes_ = np.array(labels)
        if self._balanced():
            counted = np.array([counts[label] for label in labels], dtype=np.float64)
            self._of_class = counted.sum() / (len(labels) * counted)

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
                    'class_weight="balanced" needs the labels of all rows, and partial_fit sees a '
                    "batch; use a dict of weights, as sklearn.utils.compute_class_weight tells them"
                )
            of_class = [self.class_weight.get(label, 1.0) for label in self.classes_.tolist()]
        places = targets.argmax(axis=1) if targets.ndim == 2 else (targets > 0).astype(int)
        weight = np.asarray(of_class, dtype=np.float64)[places]
        if sample_weight is None:
            return weight
        return sample_weight * weight

    def _summands(self, X: Any, y: Doubles, sample_weight: Any) -> tuple[Any, Doubles, Any]:
        return super()._summands(X, y, self._weighted(y, sample_weight))

    def _targets(self, y: Any, X: Any, reset: bool) -> Doubles:
        """Return targets of +-1, one column for each of 3 or more classes."""
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if reset:
            self._set_classes(y)
        places = np.searchsorted(self.classes_, y)
        places = np.minimum(places, len(self.classes_) - 1)
        unknown = np.flatnonzero(self.classes_[places] != y)
        if unknown.size:
            raise ValueError(
                f"y[{unknown[0]}] = {y[unknown[0]]!r} is none of the classes "
                f"{self.classes_.tolist()}; name all of them with the first batch, "
                "partial_fit(X, y, classes=[...])"
            )
        if len(self.classes_) == 2:
            return np.asarray(2.0 * places - 1.0)
        targets = np.full((len(y), len(self.classes_)), -1.0)
        targets[np.arange(len(y)), places] = 1.0
        return targets

    def _set_classes(self, y: NDArray[Any]) -> None:
        """Take the classes from the first labels, unless they are known already."""
        if not hasattr(self, "classes_"):
            self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class, {self.classes_.tolist()}, and a classifier needs two or "
                "more; pass rows of other classes too, or classes=[...] to partial_fit"
            )

    def _offset(self, y: Doubles) -> Doubles:
        """Return 0: targets of +-1 lose no digits."""
        return np.zeros(() if len(self.classes_) == 2 else len(self.classes_))

    def decision_function(self, X: Data) -> Any:
        """Return the regressions' values, tile by tile.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of two classes, positive for the second. For an iterable of batches, an iterator of
            these; for a Dask collection, a Dask array.
        """
        self._solved()
        if is_source(X):
            return map_rows(self._without_moments().decision_function, X, self.y_offset_.shape)
        return super().predict(X)

    def predict(self, X: Data) -> Any:  # type: ignore[override]  # there is no return_std
        """Predict the class of each row: that of the largest decision function.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source

        Returns
        -------
        ndarray of shape (n_samples,)
            For an iterable of batches, an iterator of these; for a Dask collection, a Dask array.
        """
        self._solved()
        if is_source(X):
            return map_rows(self._without_moments().predict, X, (), self.classes_.dtype)
        values = self.decision_function(X)
        places = values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(int)
        return self.classes_[places]

    def score(
        self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the share of the rows whose class is predicted.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        float
        """
        if not is_source(X):
            return float(ClassifierMixin.score(self, X, y, sample_weight))
        model = self._without_moments()
        hits = as_source(X, y, sample_weight).reduce(_count_hits, _add_pairs, model)
        if hits is None:
            raise ValueError("the source yields no batches; give it one or more")
        return float(hits[0] / hits[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags = None
        tags.target_tags.multi_output = False
        return tags


def _count_labels(batch: Batch) -> dict[Any, int]:
    if batch.y is None:
        raise ValueError("a classifier needs labels; let the source yield (X, y)")
    y = column_or_1d(batch.y)
    assert_all_finite(y, input_name="y")
    try:
        labels, counts = np.unique(y, return_counts=True)
    except TypeError as error:  # None among texts, say
        raise ValueError(f"y has labels that can't be sorted; give all one kind: {error}") from None
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))


def _merge_counts(parts: Sequence[dict[Any, int]]) -> dict[Any, int]:
    labels = set().union(*parts)
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError(
            f"labels are texts in one batch and numbers in another, {sorted(labels, key=repr)}; "
            "let all batches have labels of one kind"
        )
    return {label: sum(part.get(label, 0) for part in parts) for label in labels}


def _count_hits(batch: Batch, model: Any) -> tuple[float, float]:
    X, y, sample_weight, _ = batch
    y = column_or_1d(y)
    weight = check_weights(sample_weight, y[:, None])
    weight = np.ones(len(y)) if weight is None else weight
    return float(weight @ (model.predict(X) == y)), float(weight.sum())


def _add_pairs(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


class RandomFeatureRidgeClassifier(_Classifying, RandomFeatureRidge):
    """Classification by ridge regression on the features of any transformer, in one pass.

    Each class is regressed as +1 against -1 for all others (of two classes one is enough), and the
    largest regression decides: scikit-learn's `RidgeClassifier` on features that are never stored.

    Parameters
    ----------
    features : transformer, default=None
        As for `RandomFeatureRidge`.
    alpha : float or array-like of shape (n_classes,), default=1.0
        Added to the diagonal of Z^T W Z, not negative; one for all classes or one for each (one, if
        there are two classes).
    fit_intercept : bool, default=True
        The intercept is not penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label; "balanced": n_samples / (n_classes * rows of the class).
    random_state : int, RandomState, Generator or None, default=None
        Passed on to features whose own `random_state` is None.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coef_ : ndarray of shape (n_components,) or (n_classes, n_components)
        One row for two classes, as one vector.
    intercept_ : float or ndarray of shape (n_classes,)
    features_, moments_, n_features_in_, feature_names_in_
        As for `RandomFeatureRidge`.

    See Also
    --------
    RandomFeatureRidgeClassifierCV : Chooses alpha, and the kernel's parameters.

    Notes
    -----
    Cost as for `RandomFeatureRidge`; all classes share one factorisation. Targets take 8 bytes for
    each row and class of a batch: for many of both use `partial_fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian, GegenbauerFeatures
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = RandomFeatureRidgeClassifier(GegenbauerFeatures(Gaussian(2.0), 64), alpha=1e-3)
    >>> model.fit(X, y).predict([[0.5, 0.5], [-0.5, 0.5]]).tolist()
    ['same', 'other']
    """

    def __init__(
        self,
        features: Any = None,
        alpha: float | ArrayLike = 1.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Seed = None,
    ):
        super().__init__(features, alpha, fit_intercept, random_state)
        self.class_weight = class_weight


class RandomFeatureRidgeClassifierCV(_Classifying, RandomFeatureRidgeCV):
    """A ridge classifier on features that chooses its alpha, and the kernel's parameters.

    Parameters
    ----------
    features : transformer, default=None
        As for `RandomFeatureRidge`.
    alphas, kernel_grid, cv
        As for `RandomFeatureRidgeCV`.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        As for `RandomFeatureRidgeClassifier`.
    random_state : int, RandomState, Generator or None, default=None
        As for `RandomFeatureRidge`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    alpha_, kernel_, best_params_, best_score_, cv_results_, features_, coef_, intercept_
        As for `RandomFeatureRidgeCV`. Scores are minus the mean squared error of the targets +-1,
        which the sums of one pass tell, as in scikit-learn's `RidgeClassifierCV`; for a choice by
        accuracy put `RandomFeatureRidgeClassifier` into `GridSearchCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import GegenbauerFeatures
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> y = np.floor(1.5 * (X[:, 0] + 1)).astype(int)
    >>> model = RandomFeatureRidgeClassifierCV(GegenbauerFeatures(n_components=64), cv=5)
    >>> bool(model.fit(X, y).score(X, y) > 0.97)
    True
    """

    def __init__(
        self,
        features: Any = None,
        alphas: ArrayLike = ALPHAS,
        kernel_grid: dict[str, Sequence[Any]] | None = None,
        cv: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Seed = None,
    ):
        super().__init__(features, alphas, kernel_grid, cv, fit_intercept, random_state)
        self.class_weight = class_weight
