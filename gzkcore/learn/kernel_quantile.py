"""Quantile regression with the whole kernel: one quantile, or several."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._util.state import doubles, number, stored
from gzkcore._util.typing import Data, Doubles, Seed
from gzkcore._util.validation import check_share
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.general import KernelFunction
from gzkcore.solve.losses import Pinball, weighted_quantile
from gzkcore.solve.newton import Minimum

from .kernel_losses import NO_LOSS, LossRegressor

__all__ = ["KernelQuantileRegressor"]


class KernelQuantileRegressor(LossRegressor):
    """Quantile regression with the whole kernel: one quantile of the targets, or several.

    Minimises sum_i w_i p(y_i - f_i) + alpha / 2 |f|^2 with the pinball loss p(r) = max(quantile r,
    (quantile - 1) r); f as for `KernelPoissonRegressor`.

    Parameters
    ----------
    kernel, fit_intercept, preconditioner, max_iter, random_state
        As for `KernelPoissonRegressor`.
    alpha : float, default=1.0
        > 0, the weight of the penalty. Unlike the alpha of `KernelRidge` it has the unit of 1 / y:
        if y is multiplied by 1,000, divide alpha by 1,000. Standardise y, or try multiples of 1 /
        y.std().
    quantile : float or list of float, default=0.5
        > 0 and < 1; 0.5 is the median. A list of different quantiles gives one function for each.
    tol : float, default=1e-3
        > 0 and < 1, the largest `residual_`. Smoothing is reduced until its error is at most tol
        times the objective.

    Attributes
    ----------
    quantile_ : float or ndarray of shape (n_quantiles,)
        The `quantile` of the fit.
    smoothing_ : float or ndarray of shape (n_quantiles,)
        Final width m of the smoothing of the pinball loss, in units of y. The objective exceeds its
        minimum by at most m sum_i w_i, and by at most `tol` times its value.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_quantiles)
    intercept_, n_iter_, residual_, converged_
        As for `KernelPoissonRegressor`; for a list of quantiles, arrays of shape (n_quantiles,).
        `residual_` refers to the smoothed objective.
    X_fit_, kernel_
        As for `KernelPoissonRegressor`.

    See Also
    --------
    sklearn.linear_model.QuantileRegressor : Linear f, with the penalty |coef|_1.
    KernelRidge : Intervals by `predict(X, return_std=True)`, for noise that is the same everywhere.

    Notes
    -----
    The loss has a kink, so that its minimum is found by a sequence of smoothed losses (a barrier
    for the dual coefficients, which are between quantile - 1 and quantile), in about 15 steps. With
    an intercept a share `quantile` of the training rows, by weight, is below f, apart from rows
    exactly on f. The share of new rows between two quantiles is smaller than that of training rows,
    and decreases as alpha decreases.

    Each of several quantiles minimises its own objective, as in a separate fit. They share the
    kernel matrix. All but the quantile nearest to the median begin at the function of a neighbour,
    which saves three steps of ten. If the functions cross, `predict` sorts the values of each row:
    the k-th smallest value belongs to the k-th smallest quantile. Sorting does not increase the
    pinball losses.

    `score` is the explained share of the pinball loss, 1 - (loss) / (loss of the quantile of y);
    for several quantiles the mean.

    References
    ----------
    Takeuchi, Le, Sears, Smola, Nonparametric Quantile Estimation, JMLR 7 (2006); Chernozhukov,
    Fernandez-Val, Galichon, Quantile and Probability Curves Without Crossing, Econometrica 78
    (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import KernelQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (500, 1))
    >>> y = np.abs(X[:, 0]) * rng.standard_normal(500)
    >>> model = KernelQuantileRegressor(alpha=0.1, quantile=0.9).fit(X, y)
    >>> bool(0.88 < np.mean(y <= model.predict(X)) < 0.92)
    True
    >>> model = KernelQuantileRegressor(alpha=0.1, quantile=[0.05, 0.5, 0.95]).fit(X, y)
    >>> low, median, high = model.predict(X).T
    >>> bool(0.88 < np.mean((low <= y) & (y <= high)) < 0.92)
    True
    """

    _state = stored(
        smoothing_=number(0) | doubles("t", least=0),
        quantile_=(number(0, 1) | doubles("t", least=0, below=1)).if_there(),
    )

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "gaussian",
        alpha: float = 1.0,
        *,
        quantile: float | Sequence[float] | Doubles = 0.5,
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
        self.quantile = quantile

    def _loss(self) -> float | Doubles:
        return check_quantiles(self.quantile)

    def _minimise(self, loss: Any, minimum: Callable[..., Minimum]) -> None:
        quantiles = np.atleast_1d(loss).tolist()
        minima: dict[float, Minimum] = {}
        for q in sorted(quantiles, key=lambda q: abs(q - 0.5)):
            near = sorted(minima, key=lambda p: abs(p - q))
            start = next((minima[p] for p in near if minima[p].converged), None)
            minima[q] = minimum(Pinball(q), start=start)
        fits = [minima[q] for q in quantiles]
        shape = np.shape(loss)

        def shaped(values: Sequence[Any]) -> Any:
            return np.array(values) if shape else values[0]

        self.quantile_ = loss
        self.dual_coef_ = np.hstack([fit.coef for fit in fits]).reshape(-1, *shape)
        self.intercept_ = np.concatenate([fit.intercept for fit in fits]).reshape(shape)[()]
        self.n_iter_ = shaped([fit.n_iter for fit in fits])
        self.residual_ = shaped([fit.residual for fit in fits])
        self.converged_ = shaped([fit.converged for fit in fits])
        self.smoothing_ = shaped([getattr(fit.loss, "width", 0.0) for fit in fits])
        name = "quantile={:g}: " if shape else ""
        troubles = [name.format(q) + minima[q].trouble for q in quantiles if minima[q].trouble]
        self._warn_of("; ".join(troubles), "")

    def _predict(self, X: Any, return_std: bool) -> tuple[Doubles, None]:
        f, _ = super()._predict(X, return_std)
        return np.sort(f, axis=1)[:, np.argsort(np.argsort(np.atleast_1d(self.quantile_)))], None

    def _losses(self, y: Doubles, predicted: Doubles) -> Doubles:
        return _pinball(y[:, None] - predicted.reshape(len(y), -1), np.atleast_1d(self.quantile_))

    def score(
        self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return 1 - (pinball loss) / (pinball loss of the quantile of y), the mean of several.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        targets, weight, losses = self._scored(X, y, sample_weight)
        scores = []
        for q, loss in zip(np.atleast_1d(self.quantile_), losses.T @ weight, strict=True):
            constant = weighted_quantile(targets[:, None], weight, float(q))
            least = weight @ _pinball(targets - constant, float(q))
            size = weight @ np.abs(targets)
            alike = least <= 4 * np.finfo(np.float64).eps * size
            scores.append(float(loss <= NO_LOSS * size) if alike else 1 - loss / least)
        return float(np.mean(scores))


def check_quantiles(quantile: Any) -> float | Doubles:
    """Return a number between 0 and 1, or an array of different ones."""
    if not isinstance(quantile, list | tuple | np.ndarray):
        return check_share("quantile", quantile)
    if np.ndim(np.asarray(quantile, dtype=object)) != 1 or not len(quantile):
        raise ValueError(
            f"quantile={quantile!r} must be a number > 0 and < 1, or a list of one or more of them"
        )
    values = np.array([check_share(f"quantile[{i}]", q) for i, q in enumerate(quantile)])
    if np.unique(values).size < values.size:
        raise ValueError(f"quantile={quantile!r} has a value twice; give each value once")
    return values


def _pinball(r: Doubles, quantile: float | Doubles) -> Doubles:
    """Return the pinball losses of residuals."""
    return np.maximum(quantile * r, (quantile - 1) * r)
