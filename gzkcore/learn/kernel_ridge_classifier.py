"""Classification by ridge regression with the whole kernel."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from gzkcore._util.typing import Doubles, Integers, Seed
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.general import KernelFunction

from .classification import Classifier, places_of
from .kernel_ridge import KernelRidge
from .kernel_ridge_cv import ALPHAS, KernelRidgeCV

__all__ = ["KernelRidgeClassifier", "KernelRidgeClassifierCV"]


class KernelRidgeClassifier(Classifier, KernelRidge):  # type: ignore[misc]  # of labels no slopes
    """Classification by kernel ridge regression with the whole kernel.

    A regression for each class predicts +1 for its rows and -1 for all others; two classes need one
    regression. All share the products with the kernel matrix, so that ten classes cost little more
    than two. The class with the largest prediction is chosen.

    Parameters
    ----------
    kernel, trend, centers, preconditioner, tol, max_iter, random_state
        As for `KernelRidge`.
    alpha : float or array-like of shape (n_classes,), default=1.0
        >= 0, added to the diagonal of K; one for all classes or one for each (with two classes a
        single one).
    fit_intercept : bool, default=True
        Whether there is an intercept, which is not penalised. With it, the larger classes are
        predicted far from the data.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label; "balanced": n_samples / (n_classes * rows of the class).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        With two classes a single vector.
    intercept_ : float or ndarray of shape (n_classes,)
    kernel_, X_fit_, n_iter_, residual_, converged_, preconditioner_, condition_bound_
        As for `KernelRidge`.

    See Also
    --------
    KernelRidgeClassifierCV : Chooses alpha, and the kernel's parameters.
    RandomFeatureRidgeClassifier : An approximation by features: one pass, any number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import KernelRidgeClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = KernelRidgeClassifier(alpha=1e-2).fit(X, y)
    >>> model.predict([[0.5, 0.5], [-0.5, 0.5]]).tolist()
    ['same', 'other']
    """

    _of_numbers = "KernelRidge"

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "gaussian",
        alpha: float | ArrayLike = 1.0,
        *,
        fit_intercept: bool = True,
        trend: str | ArrayLike | None = None,
        class_weight: Any = None,
        centers: int | ArrayLike | None = None,
        preconditioner: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Seed = None,
    ) -> None:
        super().__init__(
            kernel, alpha, fit_intercept=fit_intercept, trend=trend, centers=centers,
            preconditioner=preconditioner, tol=tol, max_iter=max_iter, random_state=random_state,
        )  # fmt: skip
        self.class_weight = class_weight


class KernelRidgeClassifierCV(Classifier, KernelRidgeCV):  # type: ignore[misc]  # as above
    """Classification by whole-kernel ridge regression: `fit` chooses alpha and kernel.

    Parameters
    ----------
    kernel, alphas, kernel_grid, trend, preconditioner, tol, max_iter, random_state
        As for `KernelRidgeCV`.
    cv : None, int, splitter or iterable, default=None
        As for `KernelRidgeCV`. With None or a number of folds the splits are stratified. A splitter
        gets the classes as numbers.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        As for `KernelRidgeClassifier`.

    Attributes
    ----------
    alpha_, best_params_, best_score_, cv_results_
        As for `KernelRidgeCV`. Scores are minus the mean squared error of the targets +-1, as for
        `RandomFeatureRidgeClassifierCV`; to choose by accuracy use `GridSearchCV` with
        `KernelRidgeClassifier`.
    kernel_, dual_coef_, X_fit_, intercept_, n_iter_, residual_, converged_, preconditioner_
        As for `KernelRidgeClassifier`, for the chosen candidate fitted to all rows.
    classes_, condition_bound_
        As for `KernelRidgeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import KernelRidgeClassifierCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = KernelRidgeClassifierCV(kernel_grid={"gamma": [0.1, 1.0, 10.0]}, random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.97)
    True
    """

    _of_numbers = "KernelRidgeCV"

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "gaussian",
        alphas: ArrayLike = ALPHAS,
        *,
        kernel_grid: dict[str, Sequence[Any]] | None = None,
        cv: Any = None,
        fit_intercept: bool = True,
        trend: str | ArrayLike | None = None,
        class_weight: Any = None,
        preconditioner: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Seed = None,
    ) -> None:
        super().__init__(
            kernel, alphas, kernel_grid=kernel_grid, cv=cv, fit_intercept=fit_intercept,
            trend=trend, preconditioner=preconditioner, tol=tol, max_iter=max_iter,
            random_state=random_state,
        )  # fmt: skip
        self.class_weight = class_weight

    def _labels_of(self, y: Doubles) -> Integers | None:
        return places_of(y)
