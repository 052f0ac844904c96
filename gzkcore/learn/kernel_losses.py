"""Regressions with the whole kernel and other losses than squares: counts, and outliers."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from gzkcore._util.state import number, stored
from gzkcore._util.typing import Data, Doubles, Seed
from gzkcore._util.validation import (
    check_column,
    check_positive,
    check_scored,
    check_some_weight,
    check_targets,
    check_weights,
)
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.general import KernelFunction, as_exact_kernel
from gzkcore.passes.streams import Reader, Step, reduced
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import Batch, is_source
from gzkcore.solve.losses import Huber, Loss, Poisson
from gzkcore.solve.newton import Minimum, minimise
from gzkcore.solve.preconditioner import Preconditioner
from gzkcore.solve.system import Equations, system_of
from gzkcore.solve.training_rows import TrainingRows
from gzkcore.solve.workers import Workers

from .whole_kernel import WholeKernel

__all__ = ["KernelHuberRegressor", "KernelPoissonRegressor"]

# Products are as exact as this tolerance of a step's system needs, though Newton's method sets its
# own, and there are at most so many iterations.
SYSTEM_TOL, SYSTEM_STEPS = 1e-3, 1000
NO_LOSS = 1e-12  # A sum of losses below this share of its terms is a rounding error.
LEAST_TARGET = 1e-150  # Squares of smaller targets are 0.


class KernelLoss(WholeKernel):
    """Base of models with the whole kernel and any loss, which a class chooses by `_loss`."""

    alpha: float

    # Each class has a constructor of its own, which Python's errors about arguments name.
    def __init__(self, **parameters: Any) -> None:
        self.__dict__.update(parameters)

    def _loss(self) -> Any:
        """Return the loss, with its parameters checked: a `Loss` for most classes."""
        raise NotImplementedError

    def fit(  # type: ignore[override]  # steps are few and long: nothing is kept of half a fit
        self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model, and return self; if an error or an interrupt occurs, nothing changes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
            A source is put together in memory, see `KernelRidge.fit`.
        y : array-like of shape (n_samples,)
            Targets, or labels; None for an iterable of batches.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0; a row of weight 2 counts as two rows.
        """
        return super().fit(X, y, sample_weight)

    def _fit(self, reader: Reader, step: Step) -> None:
        self._check_solver()
        if isinstance(self.preconditioner, Preconditioner):
            raise TypeError(
                f"preconditioner={self.preconditioner!r} was made for fixed weights of the rows, "
                "but the weights change in each step; use 'auto', None, a number of components or "
                "a feature map"
            )
        alpha, loss = check_positive("alpha", self.alpha), self._loss()
        rows = TrainingRows.of(*reader.gather(self))
        largest = float(np.abs(rows.y).max())
        if 0 < largest < LEAST_TARGET:
            raise ValueError(f"y is at most {largest:.3g}, so that its squares underflow; scale it")
        if rows.weight is not None:  # only alpha over the weights matters
            unit = float(np.ldexp(1.0, np.frexp(rows.weight.max())[1] - 1))
            alpha, rows.weight = alpha / unit, rows.weight / unit
        with Workers(reader.distributed) as self._workers:
            self.kernel_ = rows.resolve(as_exact_kernel(self.kernel), self._names)
            self.X_fit_ = rows.X
            equations = Equations(
                self.kernel_, rows.X, np.array([alpha]), preconditioner=self.preconditioner,
                tol=SYSTEM_TOL, max_iter=SYSTEM_STEPS, random_state=self.random_state,
            )  # fmt: skip
            system = system_of(equations, self._workers)
            self._minimise(loss, functools.partial(
                minimise, system, y=rows.y, weight=rows.weight, fit_intercept=self.fit_intercept,
                tol=self.tol, max_iter=self.max_iter, step=step,
            ))  # fmt: skip
        del self._workers  # the class has none

    def _minimise(self, loss: Any, minimum: Callable[..., Minimum]) -> None:
        """Set the fitted attributes from the minimum of a loss, and warn if it is none."""
        fit, shape = minimum(loss), self._target_shape
        self.dual_coef_ = fit.coef.reshape(len(fit.coef), *shape)
        self.intercept_ = fit.intercept.reshape(shape)[()]
        self.n_iter_, self.residual_ = fit.n_iter, fit.residual
        self.converged_ = fit.converged
        if isinstance(fit.loss, Huber):
            self.scale_ = fit.loss.scale
        self._warn_of(fit.trouble, "")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


class LossRegressor(KernelLoss):
    """Regression with one target."""

    def _targets(self, y: ArrayLike, X: Any, reset: bool) -> Doubles:
        return np.asarray(check_targets(check_column("y", y, warn=True), X))

    def predict(self, X: Data, return_std: bool = False) -> Any:
        """Predict the target of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
        return_std : bool, default=False
            True raises a TypeError, which names the models that have standard deviations.

        Returns
        -------
        ndarray of shape (n_samples,)
            For an iterable of batches, an iterator of these; for a Dask collection, a Dask array.
        """
        if return_std:
            raise TypeError(
                f"return_std={return_std!r}: {type(self).__name__} has no standard deviations; "
                "KernelRegressor and KernelRidge do, and KernelQuantileRegressor(quantile=[0.05, "
                "0.95]) predicts an interval"
            )
        return super().predict(X)

    def _scored(self, X: Any, y: Any, sample_weight: Any) -> Sequence[Doubles]:
        """Return targets, weights and the losses of all rows, in arrays or of a source."""
        self._check_fitted()
        if not is_source(X):
            check_scored(y)
        source, model = as_source(X, y, sample_weight), self._for_workers()
        sums: Sequence[Doubles] = reduced(source, _losses_of_batch, _joined, model)
        check_some_weight(sums[1])
        return sums

    def _losses(self, y: Doubles, predicted: Doubles) -> Doubles:
        """Return the losses that `score` compares, with a row for each prediction."""
        raise NotImplementedError


def _losses_of_batch(batch: Batch, model: Any) -> Sequence[Doubles]:
    X, y, sample_weight, _ = batch
    y = model._targets(y, X, False)
    w = check_weights(sample_weight, X)
    return y, np.ones(len(y)) if w is None else w, model._losses(y, model.predict(X))


def _joined(parts: Sequence[Sequence[Doubles]]) -> Sequence[Doubles]:
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


class KernelPoissonRegressor(LossRegressor):
    """Poisson regression with the whole kernel: counts, or other targets >= 0, of mean exp(f).

    Minimises sum_i w_i (exp(f_i) - y_i f_i) + alpha / 2 |f|^2 over the functions of the kernel plus
    a constant: f(x) = sum_i dual_coef_i k(x, x_i) + intercept.

    Parameters
    ----------
    kernel, preconditioner
        As for `KernelRidge`; a `Preconditioner` is refused.
    alpha : float, default=1.0
        > 0, the weight of the penalty.
    fit_intercept : bool, default=True
        Whether f has an intercept, which is not penalised. Far from the data predictions tend to a
        typical rate with it, and to 1 without it.
    tol : float, default=1e-3
        > 0 and < 1, largest `residual_`.
    max_iter : int, default=100
        >= 1, the largest number of steps of Newton's method. If they are not enough, a
        ConvergenceWarning says so.
    random_state : int, RandomState, Generator or None, default=None
        Random seed of the preconditioner.

    Attributes
    ----------
    dual_coef_, X_fit_, kernel_
        As for `KernelRidge`.
    intercept_ : float
        If all targets are 0, it is -inf, and all predictions are 0.
    n_iter_ : int
        Number of steps, each a weighted ridge regression.
    residual_ : float
        sqrt(e / d), where e is the excess of the objective over its minimum before the last step,
        by Newton's quadratic model, and d is the decrease since the best constant.
    converged_ : bool
        Whether `residual_` is at most `tol`.
    n_features_in_, feature_names_in_
        As for `KernelRidge`.

    See Also
    --------
    sklearn.linear_model.PoissonRegressor :
        Linear f. Its alpha is this alpha divided by the sum of the weights.

    Notes
    -----
    A step costs as much as a fit of `KernelRidge`, and about six steps are needed. `score` is D^2,
    the explained share of the deviance.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import KernelPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (500, 1))
    >>> y = rng.poisson(np.exp(2 + np.sin(4 * X[:, 0])))
    >>> model = KernelPoissonRegressor(alpha=0.1).fit(X, y)
    >>> bool(abs(model.predict([[0.4]])[0] / np.exp(2 + np.sin(1.6)) - 1) < 0.1)
    True
    """

    _state = stored(intercept_=number(finite=False))

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "gaussian",
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        preconditioner: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: Seed = None,
    ) -> None:
        super().__init__(
            kernel=kernel, alpha=alpha, fit_intercept=fit_intercept, preconditioner=preconditioner,
            tol=tol, max_iter=max_iter, random_state=random_state,
        )  # fmt: skip

    def _loss(self) -> Loss:
        return Poisson()

    def _targets(self, y: ArrayLike, X: Any, reset: bool) -> Doubles:
        targets = super()._targets(y, X, reset)
        bad = np.flatnonzero(targets < 0)
        if bad.size:
            raise ValueError(
                f"y[{bad[0]}] = {targets[bad[0]]:g} is negative, but Poisson regression is for "
                "counts; pass targets >= 0, or use KernelRidge"
            )
        return targets

    def _predict(self, X: Any, return_std: bool) -> tuple[Doubles, None]:
        with np.errstate(over="ignore"):
            return np.exp(super()._predict(X, return_std)[0]), None

    def score(
        self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return D^2 = 1 - (deviance) / (deviance of the mean of y).

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        targets, weight, deviances = self._scored(X, y, sample_weight)
        mean, deviance = np.average(targets, weights=weight), weight @ deviances
        null = weight @ self._losses(targets, np.full(len(targets), mean))
        total = weight @ targets
        if null <= (8 * np.finfo(np.float64).eps) ** 2 * total:  # y is constant
            return float(deviance <= NO_LOSS * total)
        return float(1 - deviance / null)

    def _losses(self, y: Doubles, predicted: Doubles) -> Doubles:
        """Return y log(y / mean) - y + mean, as exactly where y is near the mean as elsewhere."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            far = xlogy(y, y) - xlogy(y, predicted) - y + predicted
            away = (y - predicted) / predicted
            near = y * np.log1p(away) - (y - predicted)
        return np.where(np.abs(away) < 0.5, near, far)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


class KernelHuberRegressor(LossRegressor):
    """Robust regression with the whole kernel: large residuals count linearly, not squared.

    Minimises sum_i w_i h(y_i - f_i) + alpha / 2 |f|^2, where h(r) is r^2 / 2 up to epsilon scale_,
    and a line beyond; f as for `KernelPoissonRegressor`.

    Parameters
    ----------
    kernel, fit_intercept, preconditioner, tol, max_iter, random_state
        As for `KernelPoissonRegressor`.
    alpha : float, default=1.0
        > 0, the weight of the penalty, as in `KernelRidge`.
    epsilon : float, default=1.35
        >= 1. Residuals up to epsilon scale_ count quadratically, larger ones linearly, as in
        scikit-learn's HuberRegressor. A smaller epsilon is more robust.

    Attributes
    ----------
    scale_ : float
        Huber's scale s of the residuals r: s^2 sum_i w_i = sum_i w_i min(r_i^2, epsilon^2 s^2) +
        alpha |f|^2. For a large epsilon it is the square root of the `noise_variance_` of
        `KernelRidge`. Outliers cannot make it larger than the other rows do, if these have at least
        1 - 1 / epsilon^2 of the weight.
    dual_coef_, X_fit_, kernel_, intercept_, n_iter_, residual_, converged_
        As for `KernelPoissonRegressor`.

    See Also
    --------
    sklearn.linear_model.HuberRegressor : Linear f. Its alpha is this alpha divided by its scale.

    Notes
    -----
    f and s = `scale_` together minimise (sum_i w_i h(r_i) + alpha / 2 |f|^2) / s + s / 2 sum_i w_i,
    where h has the width epsilon s. This is convex in both, so that there is one solution. If y is
    multiplied by 1,000, f and s are too.

    References
    ----------
    Huber, Ronchetti, Robust Statistics, 2009, section 7.7.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import KernelHuberRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 1))
    >>> y = np.sin(4 * X[:, 0])
    >>> y[::10] = 1e6
    >>> model = KernelHuberRegressor(alpha=0.01).fit(X, y)
    >>> bool(abs(model.predict([[0.4]])[0] - np.sin(1.6)) < 0.05)
    True
    """

    _state = stored(scale_=number(0))

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "gaussian",
        alpha: float = 1.0,
        *,
        epsilon: float = 1.35,
        fit_intercept: bool = True,
        preconditioner: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: Seed = None,
    ) -> None:
        super().__init__(
            kernel=kernel, alpha=alpha, fit_intercept=fit_intercept, preconditioner=preconditioner,
            tol=tol, max_iter=max_iter, random_state=random_state,
        )  # fmt: skip
        self.epsilon = epsilon

    def _loss(self) -> Loss:
        epsilon = check_positive("epsilon", self.epsilon)
        if epsilon < 1:
            raise ValueError(f"epsilon={self.epsilon!r} is too small; use a finite number >= 1")
        return Huber(epsilon)
