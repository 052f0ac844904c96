"""The base of models with the whole kernel, and of ridge regressions: fit, update, predict."""

import copy
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag
from sklearn.exceptions import ConvergenceWarning

from gzkcore._util.arguments import with_remedies
from gzkcore._util.random import check_seed, generator
from gzkcore._util.state import (
    all_or_nothing,
    anything,
    bools,
    doubles,
    entries,
    flag,
    floats,
    has,
    holds,
    ints,
    nothing,
    number,
    plain,
    stored,
    text,
    whole,
)
from gzkcore._util.typing import Data, Doubles, Integers, Rows, Seed
from gzkcore._util.validation import (
    check_bool,
    check_integer,
    check_share,
    dense,
    raise_not_finite,
)
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted
from gzkcore.features.base import check_unit
from gzkcore.kernels.aliases import WithKernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.general import Precomputed
from gzkcore.kernels.products import as_double
from gzkcore.kernels.slopes import gradients
from gzkcore.passes.kernel_passes import PassedRows
from gzkcore.passes.streams import Reader, Step, valid_rows
from gzkcore.rows.sources import is_source
from gzkcore.rows.survey import stack
from gzkcore.solve.changed_rows import changed_system, start_with
from gzkcore.solve.posterior import (
    JOINT_ROWS,
    NEAR_FROM,
    Posterior,
    feature_prior,
    joint_draws,
    posterior_of,
)
from gzkcore.solve.preconditioner import Preconditioner
from gzkcore.solve.preconditioners import FEW_COLUMNS
from gzkcore.solve.products import cross_product
from gzkcore.solve.solve import Listener, Solution, Start
from gzkcore.solve.system import HELD_ROWS, Equations, KernelSystem, system_of
from gzkcore.solve.training_rows import TrainingRows
from gzkcore.solve.trend import CONSTANT, LINEAR, Trend, check_trend
from gzkcore.solve.workers import Workers

from .base import Resumable
from .regression import Regressor

TILES_BYTES = 1 << 26  # Rows of so many bytes are kept in tiles too.
# Up to so many rows in many columns, the standard deviations of a map are worth their time.
QUICK_ROWS = 40_000
FITTED_WITH = (
    "fit_intercept", "trend", "preconditioner", "tol", "max_iter", "random_state", "class_weight",
)  # fmt: skip


class WithRows(WithKernel, Regressor):
    """Base of models that keep the rows of the fit."""

    X_fit_: Rows
    intercept_: Any  # of the shape of the targets of a row

    def _rows(self, X: Any, y: Any, sample_weight: Any, reset: bool = False) -> PassedRows:
        rows = super()._rows(X, y, sample_weight, reset)
        if reset:
            self.intercept_ = np.zeros(rows[1].shape[1:])
        return rows

    @property
    def _target_shape(self) -> tuple[int, ...]:
        return np.shape(self.intercept_)


class WholeKernel(WithRows):
    """Base of models with the whole kernel, f(x) = sum_i dual_coef_i k(x, x_i) + intercept."""

    _state = stored(
        preconditioner=(plain() | has("transform")).if_there(),
        kernel_=holds(Kernel),
        X_fit_=floats("n", "n_features_in_") | ints("n", below="n_features_in_"),
        dual_coef_=doubles("n") | doubles("n", "t"),
        intercept_=number() | doubles("t"),
        trend_coef_=(doubles("n_features_in_") | doubles("n_features_in_", "t")).if_there(),
        n_iter_=whole(0) | ints("t"),
        residual_=number(0, finite=False) | doubles("t", finite=False),
        converged_=flag() | bools("t"),
    )
    _step: ClassVar[str] = "product"
    _workers: Workers | None = None  # the workers that compute the products of a fit
    _tiles: dict[str, Any]  # the tiles of the fitted rows, from the first prediction on

    kernel: Any
    preconditioner: Any
    tol: float
    max_iter: int
    random_state: Seed

    kernel_: Kernel
    dual_coef_: Doubles
    trend_coef_: Any

    @property
    def _names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _check_solver(self) -> None:
        check_share("tol", self.tol)
        check_integer("max_iter", self.max_iter, 1)
        check_bool("fit_intercept", self.fit_intercept)
        check_seed(self.random_state)

    def _warn_of(self, trouble: str, more: str) -> None:
        """Warn of a solve that did not converge."""
        if trouble:
            name = type(self).__name__
            warn(f"{name} may predict inaccurately: {trouble}. {more}", ConvergenceWarning)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    def _outdate(self) -> None:
        self.__dict__.pop("_workers", None)
        self._tiles = {}

    def _has_quick_std(self) -> bool:
        """Say whether the standard deviations of a map's cells take little time."""
        return False

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what predictions compute again."""
        return {k: v for k, v in super().__getstate__().items() if k != "_tiles"}

    def _predict(self, X: Any, return_std: bool) -> tuple[Doubles, Doubles | None]:
        coef = self.dual_coef_.reshape(len(self.dual_coef_), -1)
        rows = self._new_rows(X)
        few = isinstance(self.X_fit_, np.ndarray) and self.X_fit_.nbytes <= TILES_BYTES
        tiles = self.__dict__.setdefault("_tiles", {}) if few else None
        mean = cross_product(self.kernel_, rows, self.X_fit_, coef, tiles)
        mean += np.ravel(self.intercept_)
        if hasattr(self, "trend_coef_"):
            mean += rows @ self.trend_coef_.reshape(rows.shape[1], -1)
        return mean, None

    def _new_rows(self, X: Any) -> Rows:
        X = valid_rows(X)
        if self.kernel_.unit_sphere:
            check_unit(X)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


class WholeKernelRegressor(Resumable, WholeKernel):
    """Base of ridge regressions with the whole kernel, which a class chooses by `_choose`."""

    _state = stored(
        condition_bound_=(number(finite=False) | doubles("t", finite=False)).if_there(),
        _fitted_with=entries(
            fit_intercept=flag().if_there(),
            trend=(text(CONSTANT, LINEAR) | ints("p") | nothing()).if_there(),
            preconditioner=(plain() | has("transform")).if_there(),
            tol=number(0).if_there(),
            max_iter=whole(1).if_there(),
            random_state=(whole(0) | nothing()).if_there(),
            class_weight=anything().if_there(),
        ).if_there(),
        _alphas=doubles("a", least=0),
        _noise=(doubles("n", least=0) | nothing()),
        _scale=(doubles("a", least=0, finite=False) | nothing()),
        _rows_per_center=number(0).if_there(),
        _y=(doubles("n") | doubles("n", "t")).if_there(),
    )
    # Beyond so many rows of the fit, many new rows have variances given rows near by.
    _near_from = NEAR_FROM
    _listener: Listener | None = None  # called after each step of a solve
    _start: Start  # solutions of a trend and residuals, from which an update starts

    trend: Any = None

    # Parameters as they were in `fit`: `set_params` after it changes nothing of what was fitted.
    _fitted_with: Mapping[str, Any] = MappingProxyType({})

    _noise: Doubles | None
    _alphas: Doubles
    # (n_targets,); None on centres with alpha=0.
    _scale: Any
    _rows_per_center: float | None = None  # None: the whole kernel
    _y: Doubles  # for updates; not there on centres

    def _fit(self, reader: Reader, step: Step) -> None:
        self._check_solver()
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            self._check_no_slopes("needs columns, but kernel='precomputed' has none")
        self.__dict__.pop("_rows_per_center", None)
        rows = TrainingRows.of(*reader.gather(self))
        with Workers(reader.distributed) as self._workers:
            kernel, alphas = self._choose(rows, step)
            self.kernel_, self.X_fit_, self._noise = kernel, rows.X, rows.noise
            self._alphas = np.array(np.broadcast_to(alphas, rows.y.shape[1]))
            self._y = rows.y.reshape(-1, *self._target_shape).copy()
            system = system_of(self._equations(), self._workers)
            self._solve(rows.y, system, step=step, checkpoint=reader.hand_over())
        del self._workers  # the class has none

    @all_or_nothing
    def update(
        self, X: Rows | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Add rows to a fit, and return self: what `fit` returns for all rows, to `tol`.

        The kernel, with its lengths, alpha and the parameters stay as they were fitted. If an error
        or an interrupt occurs, nothing changes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
            They come last in `X_fit_`.
        y : array-like of shape (n_new,) or (n_new, n_targets)
            For a classifier labels, of the classes that there are, with the weights that
            `class_weight` gave them at the fit ("balanced" counts the rows of the fit alone).
        sample_weight : array-like of shape (n_new,), optional

        Notes
        -----
        Beyond 4,096 rows the steps start from the old solution, and the preconditioner of the fit
        is extended, as long as no more than a tenth of the rows have changed since it was made. It
        is not in files and pickles: after loading, the first update makes one. Fewer rows are
        factored again.

        Examples
        --------
        >>> import numpy as np
        >>> from gzkcore import KernelRidge
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> model = KernelRidge(alpha=1e-4).fit(X[:40], np.sin(X[:40, 0]))
        >>> model.update(X[40:], np.sin(X[40:, 0])).predict([[5.5]]).round(2)
        array([-0.71])
        >>> model.forget([0, 1]).X_fit_.shape
        (48, 1)
        """
        self._check_changeable("update")
        if is_source(X):
            raise TypeError(
                f"update takes rows in arrays, but X is a {type(X).__name__}, a source of batches; "
                "pass its batches one by one"
            )
        fitted = copy.copy(self)
        if hasattr(self, "class_weight"):
            fitted.class_weight = self._as_fitted("class_weight")
        rows, targets, weight = fitted._summands(*fitted._rows(X, y, sample_weight))
        new = TrainingRows.of(fitted._new_rows(rows), targets, weight)
        self._change(np.arange(self.X_fit_.shape[0]), new)
        return self

    @all_or_nothing
    def forget(self, rows: ArrayLike) -> Self:
        """Leave out rows of a fit, and return self: what `fit` returns for the others, to `tol`.

        See `update`.

        Parameters
        ----------
        rows : array-like of int, or of bool of shape (n_samples,)
            Which rows of `X_fit_`, by their numbers or by a mask. The others keep their order.
        """
        self._check_changeable("forget")
        others = others_of(rows, self.X_fit_.shape[0])
        if others.size < self.X_fit_.shape[0]:
            self._change(others)
        return self

    def _check_changeable(self, what: str) -> None:
        """Raise unless the model has what updates need."""
        self._check_fitted()
        preconditioner = self._as_fitted("preconditioner")
        if isinstance(self.kernel_, Precomputed):
            why = f"kernel='precomputed' has no rows for {what}; fit to the whole matrix"
        elif self._on_centers:
            why = f"{what} is for the whole kernel, but there are centers=; fit again, without them"
        elif isinstance(preconditioner, Preconditioner):
            why = (
                f"preconditioner={preconditioner!r} is for the rows of fit; for {what} fit with "
                "'auto'"
            )
        elif not hasattr(self, "_y"):
            why = f"{what} needs the targets, which a file of an older version lacks; fit again"
        else:
            return
        raise ValueError(why)

    def _change(self, kept: Integers, new: TrainingRows | None = None) -> None:
        """Fit to the old rows `kept` and to new ones, from where the old fit ended."""
        old, trend, n = self.X_fit_, self._trend_of(self.X_fit_), kept.size
        before = self.__dict__.get("_start")
        old_system = self._posterior.made_system if "_posterior" in vars(self) else None
        self._outdate()
        X, y = old[kept], self._y[kept]
        noise = None if self._noise is None else self._noise[kept]
        if new is not None:
            if noise is not None or new.noise is not None:
                both = (noise, n), (new.noise, len(new.y))
                noise = np.concatenate([np.ones(m) if N is None else N for N, m in both])
            X, y = stack([X, new.X]), np.append(y, new.y.reshape(-1, *y.shape[1:]), axis=0)
        self.X_fit_, self._y, self._noise = X, y, noise
        equations = self._equations()
        system = changed_system(old_system, equations, kept) if old_system else system_of(equations)
        targets = wanted = y.reshape(len(y), -1)
        if equations.factored:  # a start would save nothing
            self._solve(targets, system)
            return
        coef, left, b = self.dual_coef_.reshape(old.shape[0], -1), None, None
        if before is not None:
            coef, left = before.coef, before.left
        changed = self._trend_of(X)
        if trend is not None and changed is not None:
            H, functions = changed.columns(X), trend.columns(old)
            values = np.tile(np.ravel(self.intercept_), (len(H), 1))
            if hasattr(self, "trend_coef_"):
                values += X @ self.trend_coef_.reshape(X.shape[1], -1)
            b, n_alphas = np.linalg.lstsq(H, values, rcond=None)[0], np.unique(self._alphas).size
            targets = targets - H @ b
            wanted = np.hstack([targets, np.tile(H, n_alphas)])
            if before is None:
                coef = np.hstack([coef, np.zeros((len(coef), n_alphas * trend.n_free))])
            if trend.places.size:  # the new functions, in terms of the old ones
                turn = np.linalg.lstsq(functions, changed.columns(old), rcond=None)[0]
                coef = coef @ block_diag(np.eye(targets.shape[1]), *[turn] * n_alphas)
                left = None
        start = start_with(system, wanted[n:], old, kept, coef, left)
        self._solve(targets, system, b, start=start)

    def _as_fitted(self, name: str) -> Any:
        return self._fitted_with.get(name, getattr(self, name))

    @property
    def _on_centers(self) -> bool:
        return self._rows_per_center is not None

    @property
    def _fitted_trend(self) -> Any:
        trend = self._as_fitted("trend")
        return CONSTANT if trend is None and self._as_fitted("fit_intercept") else trend

    def _trend_of(self, X: Rows) -> Trend | None:
        """Return the trend of a regression on rows X."""
        return Trend.of(self._fitted_trend, X)

    def _check_no_slopes(self, what: str) -> None:
        """Raise ValueError for a trend with slopes."""
        if not (self.trend is None or (isinstance(self.trend, str) and self.trend == CONSTANT)):
            raise ValueError(f"trend={self.trend!r} {what}; use trend='constant'")

    def _check_solver(self) -> None:
        super()._check_solver()
        parameters = self.get_params(deep=False)
        self._fitted_with = {name: parameters[name] for name in FITTED_WITH if name in parameters}
        self._fitted_with["trend"] = check_trend(self.trend, self.n_features_in_, self._names)

    def _choose(self, rows: TrainingRows, step: Step) -> tuple[Kernel, Doubles]:
        """Return the resolved kernel and alpha, one or one for each target."""
        raise NotImplementedError

    def _equations_of(self, kernel: Kernel, X: Rows, alphas: Doubles, noise: Any) -> Equations:
        names = ("preconditioner", "tol", "max_iter", "random_state")
        options = {name: self._as_fitted(name) for name in names}
        return Equations(kernel, X, alphas, noise, **options)

    def _equations(self) -> Equations:
        """Return the equations of the fitted rows; a centre stands for its share of the rows."""
        if self._rows_per_center is None:
            return self._equations_of(self.kernel_, self.X_fit_, self._alphas, self._noise)
        points = self.X_fit_[:: -(-len(self.X_fit_) // HELD_ROWS)]
        share = float(self._rows_per_center) * len(self.X_fit_) / len(points)
        noise = np.full(len(points), 1.0 / share)
        return self._equations_of(self.kernel_, points, self._alphas, noise)

    @functools.cached_property
    def _posterior(self) -> Posterior:
        """The posterior of the fit, with its system."""
        equations = self._equations()
        return posterior_of(
            equations, self._trend_of(equations.X), exactly=self._on_centers,
            near_from=self._near_from,
        )  # fmt: skip

    def _solve(self, y: Doubles, system: KernelSystem, less: Any = None, **options: Any) -> None:
        """Solve for targets, from which H `less` was subtracted."""
        self._posterior.system, alphas = system, self._alphas
        trend, H, n_left = self._posterior.trend, self._posterior.at_rows, system.n_rows
        solution, b, self._start = system.regress(y, alphas, H, progress=self._listener, **options)
        constant = np.zeros(y.shape[1])
        if trend is not None and H is not None:
            n_left, y = n_left - trend.n_free, y - H @ b
            b = b if less is None else b + less
            constant, slopes = trend.plain(b, self.X_fit_.shape[1])
            if trend.places.size:
                self.trend_coef_ = slopes.reshape(len(slopes), *self._target_shape)
        self._keep(solution, constant)
        scale = np.maximum(np.einsum("ij,ij->j", y, solution.coef), 0.0) / max(n_left, 1)
        self._scale = scale if n_left > 0 else np.full_like(scale, np.inf)
        self.condition_bound_ = system.condition_bounds(alphas).reshape(self._target_shape)[()]
        self._warn_of(solution.trouble, f"It was preconditioned by {system.preconditioner!r}")

    def _keep(self, solution: Solution, constant: Doubles) -> None:
        shape = self._target_shape
        self.dual_coef_ = solution.coef.reshape(len(solution.coef), *shape)
        self.intercept_ = constant.reshape(shape)[()]
        self.n_iter_ = solution.n_iter.reshape(shape)[()]
        self.residual_ = solution.residual.reshape(shape)[()]
        self.converged_ = solution.converged.reshape(shape)[()]

    def _outdate(self) -> None:
        super()._outdate()
        for name in ("_posterior", "_start"):
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what updates compute again, and what belongs to this process."""
        left_out = ("_start", "_listener", "_workers")
        return {k: v for k, v in super().__getstate__().items() if k not in left_out}

    def _to_data(self) -> dict[str, Any]:
        """Refuse a preconditioner, which no file stores, see `model_io`."""
        if isinstance(self.preconditioner, Preconditioner):
            raise TypeError(
                f"preconditioner={self.preconditioner!r} was made for these rows, and files do not "
                "store it; fit with 'auto', a number of components or a feature map, or "
                "set_params(preconditioner='auto') before saving: predictions stay the same"
            )
        if isinstance(self._as_fitted("preconditioner"), Preconditioner):
            others = {k: v for k, v in self._fitted_with.items() if k != "preconditioner"}
            return {"_fitted_with": others}
        return {}

    def _check_whole(self) -> None:
        if self._on_centers:
            raise ValueError(
                "a model on centres has no sample_y and no preconditioner_; use centers=None, or "
                "RandomFeatureRidge on NystromFeatures"
            )

    def _check_scale(self) -> None:
        if self._scale is None:
            raise ValueError(
                "a model on centres with alpha=0 has no standard deviations and no noise variance; "
                "use an alpha > 0"
            )

    @property
    def preconditioner_(self) -> Preconditioner:
        """The preconditioner of the conjugate gradients."""
        self._check_fitted()
        self._check_whole()
        return self._posterior.system.preconditioner

    @property
    def noise_variance_(self) -> Any:
        """Variance of the noise of a row of weight 1; one for each of several targets."""
        self._check_fitted()
        self._check_scale()
        return (self._alphas * self._scale).reshape(self._target_shape)[()]

    @with_remedies
    def predict(
        self, X: Data, return_std: bool = False, return_gradient: bool | ArrayLike = False
    ) -> Any:
        """Predict the targets, tile by tile, and how they change with each column.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
        return_std : bool, default=False
            Also return the standard deviation of a new observation, see the Notes of the class.
        return_gradient : bool or array-like of shape (n_samples, p, n_features), default=False
            Also return the derivatives of the prediction by each column, or along p directions at
            each row, for arrays; with `return_std` their standard deviations too. On the globe
            `LatLonToSphere.north_east` has the directions.

        Returns
        -------
        y : ndarray of float64 of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape
            Only if `return_std` is True. For an iterable of batches, an iterator over the results
            of each batch; for a Dask collection, a Dask array (or two) that is not yet computed.
        gradient, gradient_std : ndarray of shape (n_samples, n_features) or (n_samples, p)
            Of several targets (n_samples, n_targets, n_features or p). Only with `return_gradient`,
            the second only with `return_std` too.

        Notes
        -----
        f is differentiated exactly. At rows of the fit a kernel with a kink there, such as
        Matern-1/2, has the slope 0. Standard deviations are those of df / dx without noise, and
        need a smooth function of distances (a Gaussian, Matern of nu > 1). They take a solve for
        each column of a row; with up to three columns, more than a few rows, and more than 4,096
        of the fit they are given 285 of these around each, which takes some 3 ms a row: never too
        small, but too large where a smooth f averages thousands of rows, twice for a Matern-5/2 and
        five times for a Gaussian.

        Examples
        --------
        >>> import numpy as np
        >>> from gzkcore import Gaussian, KernelRidge
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> model = KernelRidge(Gaussian(0.5), alpha=1e-4).fit(X, np.sin(X[:, 0]))
        >>> y, slope = model.predict([[0.0], [3.0]], return_gradient=True)
        >>> slope.ravel().round(2)  # nearly the cosine
        array([ 0.97, -0.99])
        """
        return with_slopes(self, X, super().predict(X, return_std), return_std, return_gradient)

    def _slopes(self, X: Doubles, directions: Doubles, return_std: bool) -> list[Doubles]:
        """Return slopes of shape (n_samples, n_targets, p), and perhaps standard deviations."""
        slopes = np.einsum("iqc,ipc->iqp", self._gradient(X), directions)
        return [slopes, np.sqrt(self._slope_variance(X, directions))] if return_std else [slopes]

    def _gradient(self, X: Doubles) -> Doubles:
        """Return df / dx of shape (n_samples, n_targets, n_features)."""
        coef = self.dual_coef_.reshape(len(self.dual_coef_), -1)
        slopes = gradients(self.kernel_, X, as_double(dense(self.X_fit_)), coef)
        if slopes is None:
            raise ValueError(
                f"kernel={self.kernel_!r} has no derivatives by columns; use one with "
                "lengthscales, such as a Gaussian or a Matern, or one of dot products"
            )
        if hasattr(self, "trend_coef_"):
            slopes += self.trend_coef_.reshape(X.shape[1], -1).T
        return slopes

    def _slope_variance(self, X: Doubles, directions: Doubles) -> Doubles:
        """Return the variances of slopes, of shape (n_samples, n_targets, p)."""
        self._check_scale()
        variances = np.empty((len(X), self._alphas.size, directions.shape[1]))
        for alpha in np.unique(self._alphas).tolist():
            of_unit = self._posterior.slope_variances(X, directions, alpha)
            variances[:, self._alphas == alpha] = of_unit[:, None]
        variances *= self._scale[:, None]
        if (trend := self._posterior.trend) is not None:
            unknown = trend.unknown_along(directions[..., trend.places])
            variances[np.broadcast_to(unknown[:, None], variances.shape)] = np.inf
        return variances

    def _predict(self, X: Any, return_std: bool) -> tuple[Doubles, Doubles | None]:
        mean, _ = super()._predict(X, return_std)
        return mean, self._variance(self._new_rows(X)) if return_std else None

    def _variance(self, X: Rows) -> Doubles:
        """Return the variances of new observations, of shape (n_samples, n_targets)."""
        self._check_scale()
        variances = np.empty((X.shape[0], self._alphas.size))
        self._posterior.listener = self._listener
        for alpha in np.unique(self._alphas).tolist():
            of_unit = self._posterior.variances(X, alpha) + alpha
            variances[:, self._alphas == alpha] = of_unit[:, None]
        variances *= self._scale
        if (trend := self._posterior.trend) is not None:
            variances[trend.unknown_at(X)] = np.inf
        return variances

    def _has_quick_std(self) -> bool:
        n_rows, dim = self.X_fit_.shape
        if self._on_centers:
            return self._scale is not None and n_rows <= HELD_ROWS
        return bool(dim <= FEW_COLUMNS or n_rows <= QUICK_ROWS)

    def _for_workers(self, return_std: bool = False) -> Self:
        """Return a copy that can predict: its variances don't depend on the batches."""
        model = super()._for_workers(return_std)
        if return_std:
            model._posterior = self._posterior.for_batches()
        return model

    def sample_y(self, X: Data, n_samples: int = 1, random_state: Seed = 0) -> Doubles:
        """Draw functions from the posterior of the regression function given y, at the rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
        n_samples : int, default=1
            >= 1, the number of functions.
        random_state : int, RandomState, Generator or None, default=0

        Returns
        -------
        ndarray of shape (n_new, n_samples) or (n_new, n_targets, n_samples)
            Values of the functions, without the noise of variance `noise_variance_` that a new
            observation has. Draws of different targets are independent.

        Notes
        -----
        Pathwise conditioning: draws from the prior are corrected by y, which takes one solve for
        each function. The draws are made from features of the kernel, or from its matrix if there
        are at most 4,096 training and new rows together.
        """
        self._check_fitted()
        self._check_whole()
        n_samples = check_integer("n_samples", n_samples, 1)
        X = self._columns(X)
        mean, _ = self._predict(X, return_std=False)
        X, rng = self._new_rows(X), generator(random_state)
        n_draws = n_samples * self._alphas.size
        few = self.X_fit_.shape[0] + X.shape[0] <= JOINT_ROWS
        prior = None if few else feature_prior(self.kernel_, self.X_fit_, n_draws, rng)
        if prior is None:
            old, new = joint_draws(self.kernel_, self.X_fit_, X, n_draws, rng)
        else:
            old, new = prior(self.X_fit_), prior(X)
        draws = np.empty((X.shape[0], self._alphas.size, n_samples))
        for target, alpha in enumerate(self._alphas.tolist()):
            some = slice(target * n_samples, (target + 1) * n_samples)
            correction = self._posterior.correction(old[:, some], alpha, rng)
            draws[:, target] = new[:, some] - correction.at(X)
        draws *= np.sqrt(self._scale)[:, None]
        draws += mean[:, :, None]
        if (trend := self._posterior.trend) is not None:
            draws[trend.unknown_at(X)] = np.nan
        return draws.reshape(X.shape[0], *self._target_shape, n_samples)


def others_of(rows: ArrayLike, n: int) -> Integers:
    """Return the numbers of n rows without some, given by numbers or by a mask."""
    places = np.asarray(rows)
    if places.dtype == bool and places.shape == (n,):
        places = np.flatnonzero(places)
    if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
        raise TypeError(
            f"rows has dtype {places.dtype} and shape {places.shape}; pass numbers of rows of "
            f"X_fit_, or a mask of shape ({n},)"
        )
    outside = places[(places < 0) | (places >= n)]
    if outside.size:
        raise ValueError(f"rows has {outside[0]}, but X_fit_ has the rows 0 to {n - 1}; pass these")
    numbers, counts = np.unique(places, return_counts=True)
    if counts.max(initial=1) > 1:
        raise ValueError(f"rows has {numbers[counts.argmax()]} twice; name each row once")
    if numbers.size == n:
        raise ValueError(f"rows are all {counted(n, 'row')} of X_fit_; leave one or more")
    return np.setdiff1d(np.arange(n), numbers)


def check_not_source(X: Any, what: str = "return_gradient") -> None:
    """Raise ValueError for rows in batches."""
    if is_source(X):
        raise ValueError(f"{what} is for arrays, but X comes in batches; pass one batch at a time")


def with_slopes(model: Any, X: Any, predictions: Any, return_std: bool, gradient: Any) -> Any:
    """Return predictions of a model, and the slopes that `gradient` asks for, as `predict` does."""
    if isinstance(gradient, bool | np.bool_) and not gradient:
        return predictions
    check_not_source(X)
    rows = as_double(dense(model._new_rows(model._columns(X))))
    shape = (len(rows), *model._target_shape, -1)
    slopes = model._slopes(rows, _directions_of(gradient, rows), return_std)
    first = predictions if return_std else [predictions]
    return *first, *(array.reshape(shape) for array in slopes)


def _directions_of(return_gradient: Any, X: Doubles) -> Doubles:
    """Return directions of shape (n_samples, p, n_features); of True those of the columns."""
    if isinstance(return_gradient, bool | np.bool_):
        return np.broadcast_to(np.eye(X.shape[1]), (len(X), X.shape[1], X.shape[1]))
    directions = np.asarray(return_gradient, dtype=np.float64)
    raise_not_finite(directions, "return_gradient", "pass finite numbers")
    if directions.shape != (len(X), *directions.shape[1:2], X.shape[1]):
        raise ValueError(
            f"return_gradient has shape {directions.shape}; pass True, or p directions at each "
            f"row, of shape ({len(X)}, p, {X.shape[1]})"
        )
    return directions
