"""Classification by ridge regression on features."""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._util.state import all_or_nothing
from gzkcore._util.typing import Data, Doubles, Seed

from .classification import Classifier
from .ridge import FeatureRegressor, RandomFeatureRidge
from .ridge_cv import ALPHAS, RandomFeatureRidgeCV

__all__ = ["RandomFeatureRidgeClassifier", "RandomFeatureRidgeClassifierCV"]


class FeatureClassifier(Classifier, FeatureRegressor):
    """Base of both classifiers on features: batches, and targets +-1."""

    @all_or_nothing
    def partial_fit(  # type: ignore[override]  # as scikit-learn's classifiers have it
        self,
        X: Data,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add a batch of rows to those seen so far, and return self. The first one fits features.

        If an error or an interrupt occurs, nothing changes.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like of shape (n_classes,), optional
            All labels that may occur, needed with the first batch only. None: the labels of the
            first batch.
        """
        classes = None if classes is None else np.unique(np.asarray(classes))
        if self.__sklearn_is_fitted__():
            if classes is not None and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"classes={classes.tolist()} are not those of the first batch, "
                    f"{self.classes_.tolist()}; pass the same classes or None"
                )
        elif classes is not None:
            self._forget()
            self.classes_ = classes
        return super().partial_fit(X, y, sample_weight)

    def _offset(self, y: Doubles) -> Doubles:
        """Return 0: targets of +-1 lose no digits."""
        return np.zeros(() if len(self.classes_) == 2 else len(self.classes_))


class RandomFeatureRidgeClassifier(FeatureClassifier, RandomFeatureRidge):
    """Classification by ridge regression on the features of any transformer, in one pass.

    A regression for each class predicts +1 for its rows and -1 for all others; two classes need one
    regression. The class with the largest prediction is chosen. It equals scikit-learn's
    `RidgeClassifier` on the features, which are never stored.

    Parameters
    ----------
    features, fit_intercept, random_state
        As for `RandomFeatureRidge`.
    alpha : float or array-like of shape (n_classes,), default=1.0
        >= 0, added to the diagonal of Z^T W Z; one for all classes or one for each (with two
        classes a single one).
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label; "balanced": n_samples / (n_classes * rows of the class).
    solver, tol, max_iter
        As for `RandomFeatureRidge`; all classes share the features of a step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coef_ : ndarray of shape (n_components,) or (n_classes, n_components)
        With two classes a single vector.
    intercept_ : float or ndarray of shape (n_classes,)
    features_, moments_, n_iter_, residual_, n_features_in_, feature_names_in_
        As for `RandomFeatureRidge`.

    See Also
    --------
    RandomFeatureRidgeClassifierCV : Chooses alpha, and the kernel's parameters.

    Notes
    -----
    Cost as for `RandomFeatureRidge`; all classes share one factorisation. Targets take 8 bytes for
    each row and class of a batch: use `partial_fit` if there are many of both.

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

    _of_numbers = "RandomFeatureRidge"

    def __init__(
        self,
        features: Any = None,
        alpha: float | ArrayLike = 1.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Seed = None,
        *,
        solver: Literal["auto", "cholesky", "cg"] = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
    ):
        super().__init__(
            features, alpha, fit_intercept, random_state, solver=solver, tol=tol, max_iter=max_iter
        )
        self.class_weight = class_weight


class RandomFeatureRidgeClassifierCV(FeatureClassifier, RandomFeatureRidgeCV):
    """Classification by ridge regression on any features: `fit` chooses alpha and kernel.

    Parameters
    ----------
    features, alphas, kernel_grid, cv, fit_intercept, random_state
        As for `RandomFeatureRidgeCV`.
    class_weight : dict, "balanced" or None, default=None
        As for `RandomFeatureRidgeClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    alpha_, kernel_, best_params_, best_score_, cv_results_, features_, coef_, intercept_
        As for `RandomFeatureRidgeCV`. Scores are minus the mean squared error of the targets +-1,
        which follows from the sums of one pass, as in scikit-learn's `RidgeClassifierCV`; to choose
        by accuracy use `GridSearchCV` with `RandomFeatureRidgeClassifier`.

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

    _of_numbers = "RandomFeatureRidgeCV"

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
