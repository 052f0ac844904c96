"""Kernel ridge regression from the nearest rows of each new one, for any number of rows."""

import contextlib
import copy
import functools
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lstsq
from sklearn.base import clone

from gzkcore._util.random import check_seed, generator
from gzkcore._util.state import (
    all_or_nothing,
    doubles,
    floats,
    has,
    holds,
    ints,
    nothing,
    number,
    stored,
    text,
    whole,
)
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Data, Doubles, Integers, Rows, Seed
from gzkcore._util.validation import check_integer, check_not_negative, dense
from gzkcore._util.warn import warn
from gzkcore.features.base import check_unit
from gzkcore.kernels.base import Kernel, asks_targets
from gzkcore.kernels.general import FunctionKernel, Precomputed, as_exact_kernel
from gzkcore.kernels.learned import ConstantTargetsError, Examples
from gzkcore.passes.streams import Reader, Step, valid_rows
from gzkcore.rows.coded import CodedRows
from gzkcore.rows.dask import HeldRows
from gzkcore.rows.survey import stack
from gzkcore.solve.near_lengths import learned_near
from gzkcore.solve.near_rows import NearRows
from gzkcore.solve.training_rows import TrainingRows
from gzkcore.solve.trend import CONSTANT, LINEAR, Trend, check_trend, parts_of, triangle

from .agop import exact_gradients
from .whole_kernel import WithRows, check_not_source, others_of, with_slopes

__all__ = ["NearKernelRidge"]

REMADE = "_near", "_trend_of_rows", "_order"  # of the rows, where they are needed
SMOOTH = "intercept_", "trend_coef_", "smooth_"  # what the trend and the smooth part are made of
SMOOTH_ROWS = 4096  # `smooth` is fitted to so many rows.
# The prior scale is estimated from so many rows, or fewer where m^3 of each are more than this.
SCALE_ROWS, LEAST_SCALE_ROWS, SCALE_COST = 2000, 20, 10**11


class NearKernelRidge(WithRows):
    """Kernel ridge regression from the nearest rows of each new one, for any number of rows.

    For a new row x with the m nearest rows N, by the scaled columns of the kernel, f(x) = k_N(x)^T
    (K_NN + alpha diag(1 / w_N))^-1 y_N: the regression of `KernelRidge` on these rows alone (local
    kriging, a nearest-neighbour Gaussian process). `fit` solves nothing. Where f varies over
    distances of many rows, and the noise is large, m rows average less of it than all rows do.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        Any kernel with scaled columns, also products and sums. Lengths that are "learn", and those
        of a kernel that is given by its name, are learned from near rows, see Notes.
    alpha : float, optional
        >= 0, the variance of the noise over that of f. None: learned from near rows.
    n_neighbors : int, default=50
        m >= 1: the accuracy and the cost.
    trend : {"constant", "linear"}, array-like of int or str, or None, default="constant"
        What is subtracted from y first, by least squares on all rows: the mean, or an intercept
        and a slope along each column, or along the columns of these numbers or names. None:
        nothing, for targets about 0.
    smooth : regressor, optional
        What is subtracted next: this regressor, fitted to 4,096 rows at random. Near rows, which
        are the other rows, predict what it leaves. It averages noise over more rows than are near.
    random_state : int, RandomState, Generator or None, default=None
        Random seed of the rows that lengths and scale are learned from, and `smooth` is fitted to.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, with all parameters as numbers.
    alpha_ : float
    noise_variance_ : float or ndarray of shape (n_targets,)
    X_fit_ : {ndarray, CSR} of shape (n_samples, n_features)
        The training rows, without those of weight 0, and those of `smooth_`. Of a Dask collection
        on a cluster the workers hold them, and ``X_fit_[numbers].toarray()`` brings some.
    smooth_ : regressor
        Only with `smooth`.
    intercept_ : float or ndarray of shape (n_targets,)
    trend_coef_ : ndarray of shape (n_features,) or (n_features, n_targets)
        The slopes, 0 for columns without one; only where the trend has some.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only if all column names of X are strings.

    See Also
    --------
    KernelRidge : The same from all rows at once.
    KernelRegressor : Chooses everything by itself, also from near rows.

    Notes
    -----
    A new row takes m^3 / 6 multiply-adds, m^2 (n_features + 12) / 2 for each term of a sum of
    kernels, in single precision where alpha is 1e-4 or more; and a search of its neighbours by a
    tree, in up to some ten columns through a few hundred of the rows. The search is exact but for
    rounding of scaled columns, less their medians, to single precision. Memory: the rows, and these
    columns.

    Lengths and alpha maximise the product of p(y_i | its near rows) over some thousand rows i, in
    blocks that share their near rows (Vecchia 1988; Stein, Chi, Welty 2004), with the priors of
    `learn_kernel`. Unlike lengths that are learned from rows drawn at random they know what happens
    between neighbours.

    The standard deviation is the root of s (alpha + k(x, x) - k_N(x)^T (...)^-1 k_N(x)), for the
    scale s with which 2,000 rows, left out one by one, have errors of that size.
    `noise_variance_` is s alpha. Far from all rows it is what near rows tell of the spread there,
    which may be less than that of y. The slopes of a trend are taken as known; where X differs from
    the rows in a way in which they do not differ, the deviation is inf.

    References
    ----------
    Vecchia, Estimation and model identification for continuous spatial processes, 1988; Datta,
    Banerjee, Finley, Gelfand, Hierarchical nearest-neighbor Gaussian process models, 2016; Muyskens
    et al., MuyGPs, arXiv 2104.14581.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Matern, NearKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (20_000, 2))
    >>> y = np.sin(5 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(20_000)
    >>> model = NearKernelRidge(Matern(2.5, "learn"), random_state=0).fit(X, y)
    >>> mean, std = model.predict([[4.0, 5.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(20) * 5) < 0.1 < std[0] < 0.13)
    True
    """

    _state = stored(
        kernel_=holds(Kernel),
        alpha_=number(0),
        smooth=(has("predict") | nothing()).if_there(),
        smooth_=has("predict").if_there(),
        X_fit_=(
            floats("n", "n_features_in_") | ints("n", below="n_features_in_") | holds(CodedRows)
        ),
        intercept_=number() | doubles("t"),
        trend_coef_=(doubles("n_features_in_") | doubles("n_features_in_", "t")).if_there(),
        _y=doubles("n") | doubles("n", "t"),
        _noise=(doubles("n", least=0) | nothing()),
        _scale=doubles("q", least=0, finite=False),
        _trend=text(CONSTANT, LINEAR) | ints("p") | nothing(),
        _count=whole(1),
        _order=ints(None, dtype=np.int32).if_there(),
    )

    _order: Any = None  # of the rows in their tree, in a file
    _groups: Integers | None = None  # numbers of columns that share a length
    _start: Doubles | None = None  # one over the lengths where the search for lengths starts
    _like: "NearKernelRidge | None" = None  # a fit to the same rows, whose smooth part this takes

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        alpha: float | None = None,
        *,
        n_neighbors: int = 50,
        trend: str | ArrayLike | None = CONSTANT,
        smooth: Any = None,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.trend = trend
        self.smooth = smooth
        self.random_state = random_state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "X_fit_")

    def _columns(self, X: Any, reset: bool = False) -> Any:
        if isinstance(X, CodedRows):  # of a table, which is checked
            self.n_features_in_ = X.shape[1]
            return X
        return super()._columns(X, reset)

    def _summands(self, X: Any, y: Any, sample_weight: Any) -> Any:
        return valid_rows(X), y, sample_weight

    def _fit(self, reader: Reader, step: Step) -> None:
        check_seed(self.random_state)
        self._count = check_integer("n_neighbors", self.n_neighbors, 1)
        self._trend = check_trend(self.trend, self.n_features_in_, reader.names)
        if self.alpha is not None:
            check_not_negative("alpha", self.alpha)
        kernel = as_exact_kernel(self.kernel)
        if isinstance(self.smooth, type) or not hasattr(self.smooth or self, "predict"):
            raise TypeError(
                f"smooth={self.smooth!r} is no regressor; use one, such as KernelRidge(), or None"
            )
        if isinstance(kernel, Precomputed | FunctionKernel):
            raise ValueError(  # noqa: TRY004  a value of the parameter, of which there are many types
                f"kernel={self.kernel!r} has no scaled columns, in which rows are near or far; use "
                "a Kernel with lengthscales, or KernelRidge"
            )
        rows = TrainingRows.of(*reader.gather(self, held=True))
        rng = generator(self.random_state)
        if isinstance(self.kernel, str) and _vary(rows.X):
            kernel = clone(kernel).set_params(**dict.fromkeys(kernel.learnable, "learn"))
        self._set_rows(rows)
        if self.smooth is not None:
            rows = self._fit_smooth(rows, rng)
            self._set_rows(rows)
        left = self._left() if self._like is None else self._like._near.y
        self.kernel_, self.alpha_ = self._learned(kernel, rows, left, reader, rng)
        self._near = self._near_given(left)
        self._set_scale(rng)

    def _set_rows(self, rows: TrainingRows) -> None:
        self.X_fit_, self._noise = rows.X, rows.noise
        self._y = rows.y.reshape(-1, *self._target_shape).copy()
        if not hasattr(self, "smooth_"):
            self._set_trend()

    def _fit_smooth(self, rows: TrainingRows, rng: np.random.Generator) -> TrainingRows:
        """Fit the smooth part to some rows; return the others."""
        order = rng.permutation(len(self._y))
        some, others = np.sort(order[:SMOOTH_ROWS]), np.sort(order[SMOOTH_ROWS:])
        if not others.size:
            raise ValueError(
                f"smooth={self.smooth!r} is fitted to {SMOOTH_ROWS:,} rows, and near rows are "
                f"others, but X has {len(order):,}; pass more rows, or smooth=None"
            )
        if self._like is None:
            left = self._left()[some].reshape(-1, *self._target_shape)
            weight = {} if rows.weight is None else {"sample_weight": rows.weight[some]}
            self.smooth_ = clone(self.smooth).fit(dense(rows.X[some]), left, **weight)
        else:
            self.smooth_ = self._like.smooth_
        return rows.part(others)

    def _learned(
        self, kernel: Kernel, rows: TrainingRows, left: Doubles, reader: Reader, rng: Any
    ) -> tuple[Kernel, float]:
        """Return the resolved kernel and alpha, for what trend and smooth part leave."""
        if kernel.unit_sphere:
            check_unit(rows.X)
        if asks_targets(kernel) or self.alpha is None:
            to_learn = kernel if asks_targets(kernel) else reader.resolve(kernel)
            examples = Examples(rows.X, left, rows.weight, reader.names, self._groups)
            with contextlib.suppress(ConstantTargetsError):
                found = learned_near(to_learn, examples, start=self._start, random_state=rng)
                return found.kernel, found.noise if self.alpha is None else float(self.alpha)
        return reader.resolve(kernel), 1.0 if self.alpha is None else float(self.alpha)

    def _set_trend(self) -> None:
        """Fit the trend by least squares."""
        y, trend = self._y.reshape(len(self._y), -1), Trend.of(self._trend, self.X_fit_)
        constant = np.zeros(y.shape[1])
        if trend is not None:
            roots = np.ones((len(y), 1)) if self._noise is None else self._noise[:, None] ** -0.5
            with limit_blas(1):  # whose bits depend on its threads
                root = triangle(
                    roots[part] * np.hstack([trend.columns(self.X_fit_[part]), y[part]])
                    for part in parts_of(self.X_fit_)
                )
                b = lstsq(root[:, : trend.n_free], root[:, trend.n_free :])[0]
            constant, slopes = trend.plain(b, self.n_features_in_)
            if trend.places.size:
                self.trend_coef_ = slopes.reshape(len(slopes), *self._target_shape)
        self.intercept_ = constant.reshape(self._target_shape)[()]

    def _left(self) -> Doubles:
        """Return what trend and smooth part leave of the targets, (n, n_targets)."""
        return self._y.reshape(len(self._y), -1) - self._subtracted(self.X_fit_)

    def _set_scale(self, rng: np.random.Generator) -> None:
        """Estimate the prior scale from rows that are left out one by one."""
        if len(self._y) == 1:
            warn(
                "NearKernelRidge was fitted to one row, so that the variance of y is unknown and "
                "standard deviations are inf; pass more rows"
            )
            self._scale = np.full(self._near.y.shape[1], np.inf)
            return
        n_rows = max(LEAST_SCALE_ROWS, min(SCALE_ROWS, SCALE_COST // self._count**3))
        some = np.sort(rng.permutation(len(self._y))[:n_rows])
        mean, variance = self._near.left_out(some)
        errors = self._near.y[some] - mean
        self._scale = (np.square(errors) / variance[:, None]).mean(axis=0)

    def _subtracted(self, X: Rows) -> Doubles:
        """Return the values of trend and smooth part, of shape (n, n_targets)."""
        if isinstance(X, HeldRows):
            afar = clone(self)
            vars(afar).update((k, v) for k, v in vars(self).items() if k in SMOOTH)
            return np.asarray(X.map(afar._subtracted))
        if len(parts := parts_of(X)) > 1:
            return np.concatenate([self._subtracted(X[part]) for part in parts])
        values = np.tile(np.ravel(self.intercept_), (X.shape[0], 1))
        if hasattr(self, "trend_coef_"):
            slopes = self.trend_coef_.reshape(X.shape[1], -1)
            own = np.flatnonzero(slopes.any(axis=1))
            values += X[:, own] @ slopes[own]
        if hasattr(self, "smooth_"):
            values += self.smooth_.predict(dense(X)).reshape(values.shape)
        return values

    @functools.cached_property
    def _near(self) -> NearRows:
        """The rows, with their index."""
        return self._near_given(self._left())

    def _near_given(self, left: Doubles) -> NearRows:
        rows = self.X_fit_, left, self._noise
        return NearRows(self.kernel_, *rows, self.alpha_, self._count, self._order)

    def _with(self, alpha: float, count: int) -> Self:
        """Return a copy with another alpha and number of near rows, by the same index.

        It has the same scale, which is not estimated again.
        """
        other = copy.copy(self)
        other.alpha_, other._count = alpha, count
        other._near = self._near.given(alpha, count)
        return other

    @functools.cached_property
    def _trend_of_rows(self) -> Trend:
        """The trend, with the axes along which the rows tell a slope."""
        return cast(Trend, Trend.of(self._trend, self.X_fit_))

    def _outdate(self) -> None:
        for name in REMADE:
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again of the rows."""
        rows: Any = getattr(self, "X_fit_", None)
        if isinstance(rows, HeldRows):
            rows.refuse()
        return {k: v for k, v in super().__getstate__().items() if k not in REMADE}

    def _to_data(self) -> dict[str, Any]:
        self.__getstate__()  # which refuses rows that workers hold
        return {"_order": self._near.order} if hasattr(self, "X_fit_") else {}

    @property
    def noise_variance_(self) -> Any:
        """Variance of the noise of a row of weight 1; one for each of several targets."""
        self._check_fitted()
        return (self.alpha_ * self._scale).reshape(self._target_shape)[()]

    @all_or_nothing
    def update(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows to a fit, and return self; all that was learned stays as it was.

        That is the trend, the smooth part, the kernel, alpha and the scale. Rows are indexed again
        at the next prediction.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
            They come last in `X_fit_`.
        y : array-like of shape (n_new,) or (n_new, n_targets)
        sample_weight : array-like of shape (n_new,), optional
        """
        self._check_fitted()
        check_not_source(X, "update")
        new = TrainingRows.of(*self._rows(X, y, sample_weight))
        if self._noise is not None or new.noise is not None:
            both = (self._noise, len(self._y)), (new.noise, len(new.y))
            self._noise = np.concatenate([np.ones(m) if N is None else N for N, m in both])
        self.X_fit_ = stack([self.X_fit_, self._new_rows(new.X)])
        self._y = np.concatenate([self._y, new.y.reshape(-1, *self._target_shape)])
        self._outdate()
        return self

    @all_or_nothing
    def forget(self, rows: ArrayLike) -> Self:
        """Leave out rows of a fit, and return self, see `update`.

        Parameters
        ----------
        rows : array-like of int, or of bool of shape (n_samples,)
            Which rows of `X_fit_`, by their numbers or by a mask. The others keep their order.
        """
        self._check_fitted()
        kept = others_of(rows, self.X_fit_.shape[0])
        self.X_fit_, self._y = self.X_fit_[kept], self._y[kept]
        self._noise = None if self._noise is None else self._noise[kept]
        self._outdate()
        return self

    def predict(
        self, X: Data, return_std: bool = False, return_gradient: bool | ArrayLike = False
    ) -> Any:
        """Predict the targets, and how they change with each column.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
        return_std : bool, default=False
            Also return the standard deviation of a new observation, see the Notes of the class.
        return_gradient : bool or array-like of shape (n_samples, p, n_features), default=False
            Also return the derivatives of the prediction, see `KernelRidge.predict`: those given
            the near rows, which are others from place to place.

        Returns
        -------
        y : ndarray of float64 of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape
            Only if `return_std` is True; for sources see `KernelRidge.predict`.
        gradient, gradient_std : ndarray of shape (n_samples, n_features) or (n_samples, p)
            Of several targets (n_samples, n_targets, n_features or p). Only with `return_gradient`,
            the second only with `return_std` too.
        """
        return with_slopes(self, X, super().predict(X, return_std), return_std, return_gradient)

    def _slopes(self, X: Doubles, directions: Doubles, return_std: bool) -> list[Doubles]:
        """Return slopes of shape (n_samples, n_targets, p), and perhaps standard deviations."""
        slopes, variances = self._near.slopes(X, directions, return_std)
        if hasattr(self, "trend_coef_"):
            own = self.trend_coef_.reshape(X.shape[1], -1)
            slopes += np.einsum("ipc,cq->iqp", directions, own)
        if hasattr(self, "smooth_"):
            of_smooth = exact_gradients(self.smooth_, X)
            if of_smooth is None:
                raise ValueError(
                    f"smooth={self.smooth_!r} has no exact derivatives; use a KernelRidge, or None"
                )
            slopes += np.einsum("iqc,ipc->iqp", of_smooth, directions)
        if variances is None:
            return [slopes]
        return [slopes, np.sqrt(self._scale[:, None] * variances[:, None])]

    def _predict(self, X: Any, return_std: bool) -> tuple[Doubles, Doubles | None]:
        X = self._new_rows(X)
        mean, of_unit = self._near.predict(X)
        mean += self._subtracted(X)
        if not return_std:
            return mean, None
        variance = of_unit[:, None] * self._scale
        if hasattr(self, "trend_coef_"):
            variance[self._trend_of_rows.unknown_at(X)] = np.inf
        return mean, variance

    def _new_rows(self, X: Any) -> Rows:
        X = valid_rows(X)
        if self.kernel_.unit_sphere:
            check_unit(X)
        return X


def _vary(X: Any) -> bool:
    """Say whether rows differ; those held by workers are not compared."""
    return isinstance(X, HeldRows) or bool((X.max(axis=0) - X.min(axis=0)).sum() > 0)
