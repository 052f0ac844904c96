"""Kernel ridge regression that chooses its alpha and its kernel by held-out rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from gzkcore._util.random import generator
from gzkcore._util.state import anything, number, stored
from gzkcore._util.typing import Doubles, Integers, Seed
from gzkcore._util.warn import warn
from gzkcore._util.wording import plain
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.general import KernelFunction, Precomputed, as_exact_kernel
from gzkcore.passes.streams import Step
from gzkcore.solve.system import KernelSystem, system_of
from gzkcore.solve.training_rows import TrainingRows

from .held_out import (
    TrainTest,
    check_folds,
    folds,
    is_number_of_folds,
    random_folds,
    splits_by,
    squared_errors,
)
from .regression import check_alphas
from .ridge_cv import grid_of, results_of
from .whole_kernel import WholeKernelRegressor

__all__ = ["KernelRidgeCV"]

ALPHAS = tuple(np.logspace(-6, 2, 9).tolist())


class KernelRidgeCV(WholeKernelRegressor):
    """Kernel ridge regression with the whole kernel: `fit` chooses alpha and kernel.

    Parameters
    ----------
    kernel, fit_intercept, trend, preconditioner, tol, max_iter, random_state
        As for `KernelRidge`.
    alphas : array-like of shape (n_alphas,), default=logspace(-6, 2, 9)
        Candidates for alpha.
    kernel_grid : dict of str to list, default=None
        Candidates for the kernel's parameters, such as ``{"gamma": [0.5, 1, 2]}``, tried in all
        combinations. ``{"kernel": [...]}`` is a list of kernels.
    cv : None, int, splitter or iterable, default=None
        None: a fifth of the rows, at random, is held out once. An int k: k folds, row i in fold
        i mod k. A splitter of scikit-learn, or an iterable of (rows to fit to, rows held out).

    Attributes
    ----------
    alpha_ : float
        The alpha chosen.
    best_params_ : dict
        `alpha` and the names in `kernel_grid`.
    best_score_ : float
        Minus the mean squared error on the rows held out.
    cv_results_ : dict of str to array
        All candidates, in the format of `GridSearchCV`: `params`, `param_alpha` ...,
        `mean_test_score` (minus the mean squared error, each row with its weight),
        `rank_test_score` and, for several splits, `split0_test_score` ... `converged` tells for
        which candidates the systems were solved; the scores of the others are NaN, since their
        errors are not known.
    kernel_, dual_coef_, X_fit_, intercept_, n_iter_, residual_, converged_, noise_variance_
        As for `KernelRidge`, for the chosen candidate fitted to all rows.
    preconditioner_, condition_bound_
        As for `KernelRidge`.

    Notes
    -----
    A kernel costs one block solve for each split: each step is one product for all alphas, and the
    smallest alpha takes the most steps. At the end the chosen candidate is fitted to all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 2))
    >>> y = np.sin(5 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(2000)
    >>> model = KernelRidgeCV(kernel_grid={"gamma": [0.1, 1.0, 10.0]}, random_state=0).fit(X, y)
    >>> sorted(model.best_params_)
    ['alpha', 'gamma']
    """

    _state = stored(
        kernel_grid=anything().if_there(),
        alpha_=number(0),
        best_params_=anything(),
        best_score_=number(finite=False),
        cv_results_=anything(),
    )

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "gaussian",
        alphas: ArrayLike = ALPHAS,
        *,
        kernel_grid: dict[str, Sequence[Any]] | None = None,
        cv: Any = None,
        fit_intercept: bool = False,
        trend: str | ArrayLike | None = None,
        preconditioner: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.alphas = alphas
        self.kernel_grid = kernel_grid
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.trend = trend
        self.preconditioner = preconditioner
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _choose(self, rows: TrainingRows, step: Step) -> tuple[Kernel, Doubles]:
        alphas = np.unique(check_alphas(self.alphas, "alphas"))
        grid = grid_of(self.kernel_grid or {})
        kernels = [rows.resolve(kernel, self._names) for kernel in self._kernels(grid)]
        splits = self._splits(rows)
        by_split = [
            [self._errors(kernel, rows, split, alphas, step) for split in splits]
            for kernel in kernels
        ]
        errors = np.array(by_split).transpose(0, 2, 1)  # (kernels, alphas, splits)
        weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
        totals = np.array([weight[test].sum() for _, test in splits])
        pooled = errors @ (totals / totals.sum())
        if np.isnan(pooled).all():
            raise ValueError(
                f"no candidate reached tol={self.tol:g}; use larger alphas, a larger max_iter, or "
                "another preconditioner"
            )
        i, a = np.unravel_index(np.nanargmin(pooled), pooled.shape)
        self.alpha_ = float(alphas[a])
        self.best_params_ = {"alpha": self.alpha_, **grid[i]}
        self.best_score_ = -float(pooled[i, a])
        self.cv_results_ = results_of(grid, alphas, errors, pooled)
        self.cv_results_["converged"] = ~np.isnan(pooled).ravel()
        if a > 0 and np.isnan(pooled[i, a - 1]):
            warn(
                f"alpha={self.alpha_:g} is the best alpha with a converged solution, but smaller "
                f"alphas of {plain(repr(kernels[i]))} did not converge; use a larger max_iter, or "
                "another preconditioner",
                ConvergenceWarning,
            )
        return kernels[i], np.array(self.alpha_)

    def _kernels(self, grid: list[dict[str, Any]]) -> list[Kernel]:
        """Return the kernel of each entry of the grid."""
        own = clone(self).set_params(kernel_grid=None)
        kernels = []
        for params in grid:
            full = {
                name if name.split("__")[0] == "kernel" else f"kernel__{name}": value
                for name, value in params.items()
            }
            try:
                kernels.append(as_exact_kernel(clone(own).set_params(**full).kernel))
            except (AttributeError, ValueError) as error:
                if not params:
                    raise
                raise ValueError(
                    f"kernel_grid has the names {sorted(params)}, which must be parameters of the "
                    f"kernel, {self.kernel!r}: {error}"
                ) from None
        return kernels

    def _splits(self, rows: TrainingRows) -> list[TrainTest]:
        n, cv = rows.X.shape[0], self.cv
        if is_number_of_folds(cv):
            return folds(n, check_folds(cv, n, "sample"), self._labels_of(rows.y))
        if cv is None:
            if n < 2:
                raise ValueError(f"cv=None holds rows out, but n_samples={n}; use 2 rows or more")
            labels = self._labels_of(rows.y)
            return random_folds(np.arange(n), generator(self.random_state), labels)[:1]
        X, (y, used) = rows.X, rows.of_all or (rows.y, np.arange(n))
        if rows.of_all is not None:
            X = np.zeros(len(y))
        labels = self._labels_of(y)
        return splits_by(cv, X, y if labels is None else labels, used)

    def _labels_of(self, y: Doubles) -> Integers | None:
        """Return the labels behind targets, which each part of a split has its share of."""
        return None

    def _errors(
        self, kernel: Kernel, rows: TrainingRows, split: TrainTest, alphas: Doubles, step: Step
    ) -> Doubles:
        """Return the mean squared error of each alpha on held-out rows; NaN where not solved."""
        train, test = map(rows.part, split)
        if isinstance(kernel, Precomputed):
            train.X, test.X = train.X[:, split[0]], test.X[:, split[0]]

        def system_with(tried: Doubles) -> KernelSystem:
            equations = self._equations_of(kernel, train.X, tried, train.noise)
            return system_of(equations, self._workers)

        trend = self._trend_of(train.X)
        squares = squared_errors(train, test, alphas, system_with, trend, step)
        return np.asarray(np.average(squares, axis=0, weights=test.weight))
