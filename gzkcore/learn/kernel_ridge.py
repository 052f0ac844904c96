"""Kernel ridge regression with the whole kernel, by conjugate gradients, without the matrix."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._util.typing import Doubles, Seed
from gzkcore._util.wording import counted
from gzkcore.features.base import check_unit
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.general import KernelFunction, Precomputed, as_exact_kernel
from gzkcore.passes.kernel_passes import Passes, check_reread
from gzkcore.passes.streams import Reader, Step, valid_rows
from gzkcore.solve.centers import solve_centers
from gzkcore.solve.training_rows import TrainingRows

from .regression import check_alphas
from .whole_kernel import WholeKernelRegressor

__all__ = ["KernelRidge"]


class KernelRidge(WholeKernelRegressor):
    """Kernel ridge regression with the whole kernel, by conjugate gradients.

    Minimises sum_i w_i (y_i - f(x_i))^2 + alpha |f|^2 over the functions of the kernel: f(x) =
    sum_i dual_coef_i k(x, x_i) with (K + alpha diag(1 / w)) dual_coef = y. Unlike scikit-learn's
    class of this name it does not store the n x n matrix: products with K are computed tile by
    tile. Few products are needed, since features of the kernel precondition the system.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        Any kernel of `gzkcore.kernels` or its alias; a function of two arrays of rows that returns
        the matrix of values; or "precomputed": `fit` takes the kernel matrix K(n, n), which must be
        symmetric, `predict` the values K(m, n).
    alpha : float or array-like of shape (n_targets,), default=1.0
        >= 0, added to the diagonal of K; one for all targets or one for each.
    fit_intercept : bool, default=False
        Whether f has an intercept, which is not penalised. Without it predictions tend to 0 far
        from the data, as in scikit-learn, and `tol` is relative to y instead of its spread.
    trend : {"constant", "linear"} or array-like of int or str, optional
        What is not penalised: "constant" is the intercept, "linear" an intercept and a slope along
        each column, or along the columns of these numbers or names (universal kriging, kriging with
        external drift). Far from the data predictions tend to the trend. A slope is a system more
        to solve; with a kernel of 0 they are those of least squares. None: as `fit_intercept` says.
    centers : int or array-like of shape (n_centers, n_features), optional
        For more rows than are possible with the whole kernel: f is a sum over this number of rows,
        or over these points. Only their n_centers coefficients are computed, by passes over all
        rows (`solve_centers`).
    preconditioner : "auto", None, int, transformer or Preconditioner, default="auto"
        It reduces the number of steps. "auto" chooses one; with at most 4,096 rows it factors the
        whole matrix. An int is a number of landmarks, a transformer a feature map for this kernel,
        None the diagonal.
    tol : float, default=1e-3
        > 0 and < 1: the solver stops when |y - (K + alpha N) c| is below tol |y|, in double
        precision. The error of predictions with 1e-2 differs by about 1 % from that with 1e-3.
    max_iter : int, default=1000
        >= 1, the largest number of steps for a target. If they are not enough, a ConvergenceWarning
        says so.
    random_state : int, RandomState, Generator or None, default=None
        Random seed of the landmarks, and of the draws from which standard deviations are estimated.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
    X_fit_ : {ndarray, CSR} of shape (n_samples, n_features)
        The training rows, without those of weight 0. With "precomputed" the matrix, with `centers`
        the centres.
    kernel_ : Kernel
        The kernel, with all parameters as numbers.
    intercept_ : float or ndarray of shape (n_targets,)
    trend_coef_ : ndarray of shape (n_features,) or (n_features, n_targets)
        The slopes, 0 for columns without one; only where the trend has some.
    n_iter_ : int or ndarray of shape (n_targets,)
        Steps of conjugate gradients.
    residual_ : float or ndarray of shape (n_targets,)
        The true |y - (K + alpha N) c| / |y|, in double precision, where the intercept is subtracted
        from y.
    converged_ : bool or ndarray of shape (n_targets,)
        Whether `residual_` is at most `tol`.
    preconditioner_ : Preconditioner
    condition_bound_ : float or ndarray of shape (n_targets,)
        An upper bound of the condition number of the preconditioned system; inf if none is known.
    noise_variance_ : float or ndarray of shape (n_targets,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only if all column names of X are strings.

    See Also
    --------
    KernelRidgeCV : Chooses alpha, and the kernel's parameters.
    RandomFeatureRidge : An approximation by features: one pass, any number of rows.
    sklearn.kernel_ridge.KernelRidge : Uses a Cholesky factorisation; time n^3 and memory n^2.

    Notes
    -----
    A step is one product with K, which takes n^2 / 2 kernel values for all targets together.
    Memory: the rows, the preconditioner (a few hundred numbers a row) and a few vectors. Steps are
    in single precision if `tol` is 1e-4 or more; the residual is checked in double precision. With
    at most 4,096 rows the matrix is stored and factored (134 MB at most), and one or two steps are
    enough. Sources and Dask collections are collected in memory as a dense array; with Dask the
    workers of a cluster compute the products.

    The regression is the posterior mean of a Gaussian process f of covariance s k with noise of
    variance s alpha / w, for the scale s estimated by y^T (K + alpha N)^-1 y / n (n less the rank
    of H with a trend; inf if that is n). `noise_variance_` is s alpha. `predict(X,
    return_std=True)` returns the root of

        s (alpha + k(x, x) - k_x^T (K + alpha N)^-1 k_x),

    plus s u^T (H^T A^-1 H)^-1 u with a trend, where A = K + alpha N, H has the rows h(x_i) = 1, or
    1 and x_i, and u = h(x) - H^T A^-1 k_x. Where x differs from the rows in a way in which they do
    not differ (in a column that was constant, or was a copy), the trend is unknown: the deviation
    is inf, and draws are NaN.

    It is exact with at most 1,024 training rows; with up to three columns with at most 2,048.
    With more columns and at most 4,096 rows it is exact if one call has no more new rows than
    there are training rows. Else it is exact if one call has at most 64 new rows, with up to
    three columns at most 2^18 divided by the number of training rows. In larger calls, and for
    sources, with up to three columns it is that given 95 of the training rows, near and spread
    (`NearVariances`): never too small, and too large by 0 to 4 % in the mean. With more columns
    the mean square of 64 draws estimates k(x, x) - ..., with a relative error of at most 1 /
    sqrt(2 64), 9 %, and no error far from the data. For a kernel without features to draw from
    it is always exact, 64 rows at a time.

    With M centres, s is the minimum of the objective divided by n alpha. For the variance each
    centre represents W / M rows, where W is the total weight: N is the identity times M / W, and K
    is the kernel matrix of the centres (at most 4,096 of them). So variances grow where there are
    no centres, and are accurate if the centres are distributed like the rows.

    References
    ----------
    Gardner, Pleiss, Bindel, Weinberger, Wilson, GPyTorch, 2018; Wilson, Borovitskiy, Terenin,
    Mostowsky, Deisenroth, Pathwise Conditioning of Gaussian Processes, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import KernelRidge, Matern
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = np.sin(5 * X[:, 0]) * X[:, 1]
    >>> model = KernelRidge(Matern(nu=1.5, length_scale=0.5), alpha=1e-2).fit(X, y)
    >>> mean, std = model.predict([[0.5, 0.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(2.5) * 0.5) < 3 * std[0] < 0.3)
    True
    """

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "gaussian",
        alpha: float | ArrayLike = 1.0,
        *,
        fit_intercept: bool = False,
        trend: str | ArrayLike | None = None,
        centers: int | ArrayLike | None = None,
        preconditioner: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.trend = trend
        self.centers = centers
        self.preconditioner = preconditioner
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, reader: Reader, step: Step) -> None:
        alphas = check_alphas(self.alpha, "alpha", self._target_shape)
        self._alphas = np.array(np.broadcast_to(alphas, np.prod(self._target_shape, dtype=int)))
        if self.centers is None:
            super()._fit(reader, step)
        else:
            self._fit_centers(reader, step, self.centers)

    def _choose(self, rows: TrainingRows, step: Step) -> tuple[Kernel, Doubles]:
        return rows.resolve(as_exact_kernel(self.kernel), self._names), self._alphas

    def _fit_centers(self, reader: Reader, step: Step, centers: int | ArrayLike) -> None:
        self._check_solver()
        self._check_no_slopes("is for the whole kernel, not for centers=")
        check_reread(reader, "centers=", "centers=None")
        kernel = as_exact_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            raise ValueError(  # noqa: TRY004  a value of the parameter, of which there are many types
                f"centers={centers!r} needs rows to choose from, but kernel='precomputed' has "
                "none; use centers=None, or another kernel"
            )
        if not (isinstance(self.preconditioner, str) and self.preconditioner == "auto"):
            raise ValueError(
                f"preconditioner={self.preconditioner!r} is for the whole kernel; with centers= "
                "leave it 'auto'"
            )
        rows = valid_rows(reader.sample()[0])
        if kernel.unit_sphere:
            check_unit(rows)
        self.kernel_ = reader.resolve(kernel)
        solution = solve_centers(
            self.kernel_, Passes(reader, self, step), centers, self._alphas,
            fit_intercept=self._fitted_trend is not None, tol=self.tol, max_iter=self.max_iter,
            random_state=self.random_state, progress=self._listener, checkpoint=reader.hand_over(),
        )  # fmt: skip
        self.X_fit_, self._noise, self._scale = solution.centers, None, None
        self._rows_per_center = solution.total / len(solution.centers)
        if (self._alphas > 0).all():
            n_left = solution.n_rows - (self._fitted_trend is not None)
            scale = solution.least / self._alphas / max(n_left, 1)
            self._scale = scale if n_left > 0 else np.full_like(scale, np.inf)
        self.condition_bound_ = np.full(self._target_shape, np.inf)[()]
        self._keep(solution, solution.intercept)
        self._warn_of(solution.trouble, f"It has {counted(len(solution.centers), 'centre')}")

    def _summands(self, X: Any, y: Doubles, sample_weight: Doubles | None) -> Any:
        if self.centers is not None and self.kernel_.unit_sphere:
            check_unit(X)
        return super()._summands(X, y, sample_weight)
