"""Ridge regression on features, in one pass over the data and in bounded memory.

Everything follows from the moments of `gram` without looking at the data again: the coefficients
(`normal_equations`), residuals, degrees of freedom and standard deviations.
"""

import functools
import os
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import validate_data

from gzkcore._util.callbacks import Progress, with_callbacks
from gzkcore._util.model_io import stored
from gzkcore._util.typing import Data, Doubles, Floats, Seed
from gzkcore._util.validation import check_targets, check_weights
from gzkcore._util.wording import counted
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import Batch, is_dask, is_source

from .base import FeatureLearner, Solved, check_one_batch, check_same_features, new_features
from .gram import GramAccumulator
from .normal_equations import System, centred, coefficients
from .streams import Checkpoint, R2Sums, Reader, Step, map_rows
from .tiles import for_each_tile

__all__ = ["RandomFeatureRidge"]

LEAST_FREE = 1e-2  # rows less degrees of freedom, from which on noise is not estimated

Solution: TypeAlias = dict[str, Any]  # what a fitted model worked out, by name


class FeatureRegressor(MultiOutputMixin, RegressorMixin, FeatureLearner):
    """What both regressors share: reading rows, predicting, saving."""

    _state = stored("y_offset_")

    coef_ = Solved()
    intercept_ = Solved()

    fit_intercept: bool  # a parameter, named here for type checkers

    features_: Any
    moments_: GramAccumulator
    y_offset_: Doubles
    _spread: Solution

    # -- fitting ------------------------------------------------------------------------------

    # Where a fit keeps its progress is nothing that a pipeline could route.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"checkpoint": UNUSED}

    @with_callbacks
    def fit(
        self,
        X: Data,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the features and the regression, or the regressions of a classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
            A memory map is read tile by tile and never copied. A source is an iterable of batches
            (X, y) or (X, y, sample_weight), such as `gzkcore.open_batches` gives, or a
            Dask array or data frame. If it can be read again, a first pass reads the norms and the
            variance, so that the features are those of the same rows in one array; a classifier
            reads the labels too, and an iterator must show it all classes in its first batch.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; of a classifier labels, numbers or strings, of shape (n_samples,). None for an
            iterable of batches; for a Dask collection, another one.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative; a row of weight 2 counts as two rows. As y for sources.
        checkpoint : Checkpoint, str or path, optional
            File that the sums are written to every minute (see `Checkpoint`). If it is there
            already, the fit goes on where it was: it must be of the same data, in the same batches,
            and of the same parameters. Needs features of this package.

        Returns
        -------
        self
            Unfitted, if anything fails or interrupts on the way.
        """
        self._forget()
        try:
            progress = Progress(self, None, "batch", X, y)
            self._look_ahead(X, y, sample_weight)
            reader = Reader(X, y, sample_weight, checkpoint)
            reader.begin(self)
            found = self._start(reader, progress.step)
            self._solution = self._solve(found)
            progress.end()
        except BaseException:
            self._forget()
            raise
        reader.finish()
        return self

    def partial_fit(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add a batch of rows to those seen so far. Features are fitted on the first batch.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
            As before the call, if anything fails or interrupts on the way.
        """
        check_one_batch(X)
        if self.__sklearn_is_fitted__():
            self._continue(X, y, sample_weight)
            return self
        try:
            reader = Reader(X, y, sample_weight, one_pass=True)
            reader.begin(self)
            self._start(reader)
        except BaseException:
            self._forget()
            raise
        return self

    def _look_ahead(self, X: Data, y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        """Find out what must be known of all rows before the first are read."""

    def _start(self, reader: Reader, step: Step | None = None) -> Any:
        """Read the first rows, or all; return what `_solve` can't know from the moments."""
        raise NotImplementedError

    def _continue(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        summands = self._summands(*self._rows(X, y, sample_weight))
        self._outdate()
        self.moments_.add(*summands)

    def merge(self, other: Self) -> Self:
        """Add the rows that another model has seen, as if they came after ours.

        Parameters
        ----------
        other : object of the same class
            Fitted, or partially so, with the same features: pass these fitted, in a
            ``sklearn.frozen.FrozenEstimator``, to every model. It stays as it is.

        Returns
        -------
        self
        """
        for model in (self, other):
            if not model.__sklearn_is_fitted__():
                raise NotFittedError(f"a {type(model).__name__} to be merged is not fitted yet")
        if other.y_offset_.shape != self.y_offset_.shape:
            raise ValueError(
                f"the other model has targets of shape {other.y_offset_.shape}, this one "
                f"{self.y_offset_.shape}; merge models of the same targets"
            )
        if not np.array_equal(getattr(self, "classes_", ()), getattr(other, "classes_", ())):
            raise ValueError("the models have different classes; name all of them to each")
        check_same_features(
            self.moments_.features, other.moments_.features, int(self.n_features_in_)
        )
        moved = other.moments_.shifted((other.y_offset_ - self.y_offset_).reshape(-1))
        self._outdate()
        self.moments_.merge(moved)
        return self

    def _rows(
        self, X: Data, y: ArrayLike | None, sample_weight: ArrayLike | None, reset: bool = False
    ) -> tuple[Any, Doubles, Doubles | None]:
        """Check rows, of the first batch with `reset`: return X, targets and weights.

        The values of X are checked when they are read.
        """
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs "
                "targets; a source yields (X, y)"
            )
        X = validate_data(self, X, reset=reset, accept_sparse="csr", ensure_all_finite=False)
        targets = self._targets(y, X, reset)
        if not reset and targets.shape[1:] != self.y_offset_.shape:
            raise ValueError(
                f"y has shape {targets.shape}, but the first batch had {self.y_offset_.shape} "
                "after the rows; pass the same targets in every batch"
            )
        return X, targets, check_weights(sample_weight, X)

    def _targets(self, y: ArrayLike, X: Any, reset: bool) -> Doubles:
        """Return the numbers to be regressed, checked."""
        return np.asarray(check_targets(y, X))

    def _summands(
        self, X: Any, y: Doubles, sample_weight: Doubles | None
    ) -> tuple[Any, Doubles, Doubles | None]:
        return X, y - self.y_offset_, sample_weight

    def _offset(self, y: Doubles) -> Doubles:
        """Choose what to subtract from y before summing: sums of squares then lose no digits."""
        return np.asarray(y.mean(axis=0) if self.fit_intercept else np.zeros(y.shape[1:]))

    def _new_features(self, **parameters: Any) -> Any:
        return new_features(self.features, self.random_state, **parameters)

    # -- state --------------------------------------------------------------------------------

    def _outdate(self) -> None:
        super()._outdate()
        self.__dict__.pop("_spread", None)

    def _coefficients(self, sums: Doubles, alphas: Doubles) -> Solution:
        """Solve the ridge systems of all targets."""
        coef, intercept = coefficients(sums, alphas, self.fit_intercept, self.moments_.dtype)
        shape = self.y_offset_.shape
        return {
            "coef_": coef.reshape(*shape, coef.shape[1]),
            "intercept_": (self.y_offset_ + intercept.reshape(shape))[()],
        }

    # -- what a fitted model can do -----------------------------------------------------------

    def predict(self, X: Data, return_std: bool = False) -> Any:
        """Predict the targets, tile by tile.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
        return_std : bool, default=False
            Also return the standard deviation of a new observation, see Notes.

        Returns
        -------
        y : ndarray of float64 of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape
            Only if `return_std` is True. For an iterable of batches, an iterator of what is
            returned for each; for a Dask collection, a Dask array (or two), not computed yet.

        Notes
        -----
        Ridge regression is the posterior mean for coefficients with prior variance s^2 / alpha and
        noise of variance s^2, estimated by `noise_variance_`. The variance of a new observation is

            s^2 (1 + 1/n + (z - z_mean)^T (G + alpha I)^-1 (z - z_mean) + (k(x, x) - |z|^2) / alpha)

        where 1/n is the intercept's, and the last term, the prior variance of what the features
        leave out of the kernel, needs features that know it (`kernel_.diag`) and alpha > 0.
        """
        solution = self._solved()
        if is_source(X):
            return self._predict_source(X, return_std)
        X = validate_data(self, X, reset=False, accept_sparse="csr", ensure_all_finite=False)
        coef = np.atleast_2d(solution["coef_"]).T
        mean = np.empty((X.shape[0], coef.shape[1]))
        variance = np.empty_like(mean if return_std else mean[:0])
        spread = self._spreads() if return_std else {}

        def use(_thread: int, rows: slice, Z: Floats) -> None:
            mean[rows] = Z @ coef.astype(Z.dtype, copy=False)
            if return_std:
                variance[rows] = self._variance(X[rows], Z, spread)

        for_each_tile(self.features_, X, use)
        mean += np.atleast_1d(solution["intercept_"])
        shape = (X.shape[0], *self.y_offset_.shape)
        if not return_std:
            return mean.reshape(shape)
        return mean.reshape(shape), np.sqrt(variance).reshape(shape)

    def _predict_source(self, X: Any, return_std: bool) -> Any:
        model = self._without_moments(return_std)
        if not (return_std and is_dask(X)):
            work = functools.partial(model.predict, return_std=return_std)
            return map_rows(work, X, self.y_offset_.shape, results=1 + return_std)
        std = functools.partial(_std_of_rows, model)
        return tuple(map_rows(work, X, self.y_offset_.shape) for work in (model.predict, std))

    def _without_moments(self, return_std: bool = False) -> Self:
        """Return a copy that can predict and no more: what goes to workers."""
        if return_std:
            self._spreads()
        return super()._without_moments()

    def score(
        self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return R^2 = 1 - (sum of squared errors) / (sum of squares of y about its mean).

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        float
            The mean over the targets.
        """
        if not is_source(X):
            return float(super().score(X, y, sample_weight))
        scored = as_source(X, y, sample_weight).reduce(
            _score_of_batch, R2Sums.merge, self._without_moments()
        )
        if scored is None:
            raise ValueError("the source yields no batches; give it one or more")
        return float(scored.r2())

    def _variance(self, X: Any, Z: Floats, spread: Solution) -> Doubles:
        kernel: Any = getattr(self.features_, "kernel_", None)
        missing: Any = 0.0
        if hasattr(kernel, "diag"):
            missing = np.maximum(kernel.diag(X) - np.einsum("ij,ij->i", Z, Z), 0.0)
        variance = np.empty((len(Z), len(spread["noise"])))
        for alpha, root in spread["roots"].items():
            of_mean = np.square((Z - spread["mean"]) @ root).sum(axis=1)
            factor = 1.0 + spread["of_intercept"] + of_mean + (missing / alpha if alpha else 0.0)
            targets = spread["alphas"] == alpha
            variance[:, targets] = factor[:, None] * spread["noise"][targets]
        return variance

    @property
    def degrees_of_freedom_(self) -> Any:
        """Trace of the matrix that makes fitted values of y; one for each of several targets."""
        return self._spreads()["degrees_of_freedom"].reshape(self.y_offset_.shape)[()]

    @property
    def noise_variance_(self) -> Any:
        """Residual sum of squares / (n - degrees of freedom); one for each of several targets."""
        return self._spreads()["noise"].reshape(self.y_offset_.shape)[()]

    def _spreads(self) -> Solution:
        if not hasattr(self, "_spread"):
            self._spread = self._solve_spread()
        return self._spread

    def _solve_spread(self) -> Solution:
        sums, alphas = self._system(self._solved())
        sums, mean = centred(sums, self.fit_intercept)
        p = sums.shape[1] - 2
        c, b = np.atleast_2d(self.coef_), sums[p + 1 :, :p]
        # |y - Z c|^2 = y^T y - 2 c^T b + c^T G c, and G c = b - alpha c.
        residual = sums[p + 1 :, p + 1] - np.sum(c * (b + alphas[:, None] * c), axis=1)
        roots, freedom = {}, np.empty(len(alphas))
        for alpha in np.unique(alphas):
            system = System(sums[:p, :p], alpha, self.moments_.dtype)
            roots[float(alpha)] = system.root()
            freedom[alphas == alpha] = system.degrees_of_freedom() + self.fit_intercept
        n = sums[p, p + 1]
        if (n - freedom < LEAST_FREE).any():
            raise ValueError(
                f"{n:.0f} rows leave nothing to estimate the noise from after "
                f"{freedom.max():.4g} degrees of freedom; use more rows or a larger alpha"
            )
        return {
            "alphas": alphas,
            "mean": mean[:p],
            "roots": roots,
            "degrees_of_freedom": freedom,
            "noise": np.maximum(residual, 0.0) / (n - freedom),
            "of_intercept": 1.0 / sums[p, p] if self.fit_intercept else 0.0,
        }


def _std_of_rows(model: FeatureRegressor, X: Any) -> Any:
    return model.predict(X, return_std=True)[1]


def _score_of_batch(batch: Batch, model: FeatureRegressor) -> R2Sums:
    if batch.y is None:
        raise ValueError("score needs the targets; let the source yield (X, y)")
    X, y, sample_weight, _ = batch
    return R2Sums(check_targets(y, X), model.predict(X), check_weights(sample_weight, X))


class RandomFeatureRidge(FeatureRegressor):
    """Ridge regression on the features of any transformer: kernel ridge regression in linear time.

    Minimises sum_i w_i (y_i - <z(x_i), coef> - intercept)^2 + alpha |coef|^2 in one pass over the
    data, from sums over tiles of rows. The features of the data are never stored.

    Parameters
    ----------
    features : transformer, default=None
        Cloned and fitted; wrap it in ``sklearn.frozen.FrozenEstimator`` to use it as it is. None is
        `KernelFeatures()`.
    alpha : float or array-like of shape (n_targets,), default=1.0
        Added to the diagonal of Z^T W Z, not negative; one for all targets or one for each.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    random_state : int, RandomState, Generator or None, default=None
        Passed on to features whose own `random_state` is None.

    Attributes
    ----------
    features_ : transformer
        The fitted features.
    coef_ : ndarray of shape (n_components,) or (n_targets, n_components)
    intercept_ : float or ndarray of shape (n_targets,)
    moments_ : GramAccumulator
        The sums that all else is worked out from, of y - `y_offset_`.
    y_offset_ : ndarray
        Mean of the first batch's y, 0 without intercept.
    noise_variance_, degrees_of_freedom_ : float or ndarray of shape (n_targets,)
        Worked out when first asked for.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        If X has column names that are all strings.

    See Also
    --------
    RandomFeatureRidgeCV : Chooses alpha, and the kernel's parameters.
    sklearn.kernel_ridge.KernelRidge : Exact; time n^3 and memory n^2.

    Notes
    -----
    Time n p^2 + p^3 / 3, memory about 8 p^2 bytes per thread for p components. The coefficients
    come from a Cholesky factorisation. Where that fails, or the matrix is singular to working
    precision, they come from its eigenvalues: directions lost in rounding errors are left out, and
    a warning says so.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = RandomFeatureRidge(RBFSampler(gamma=5.0), alpha=1e-3, random_state=0)
    >>> model.fit(X, np.sin(6 * X[:, 0])).predict([[0.25]]).round(2)
    array([1.])
    """

    def __init__(
        self,
        features: Any = None,
        alpha: float | ArrayLike = 1.0,
        fit_intercept: bool = True,
        random_state: Seed = None,
    ):
        self.features = features
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def _start(self, reader: Reader, step: Step | None = None) -> None:
        check_alphas(self.alpha, "alpha", reader.targets.shape[1:])
        if not reader.resume(self):
            self.features_ = reader.fit(self._new_features(), reader.targets)
            self.y_offset_ = self._offset(reader.typical())
            self.moments_ = GramAccumulator(self.features_)
        reader.accumulate(self, self.moments_, step)

    def _system(self, solution: Solution) -> tuple[Doubles, Doubles]:
        return self.moments_.sums[0], solution["alphas"]

    def _solve(self, found: Any = None) -> Solution:
        alphas = check_alphas(self.alpha, "alpha", self.y_offset_.shape)
        solution = {"alphas": np.array(np.broadcast_to(alphas, self.y_offset_.size))}
        return solution | self._coefficients(*self._system(solution))


def check_alphas(alphas: ArrayLike, name: str, shape: tuple[int, ...] | None = None) -> Doubles:
    """Return one alpha, or one per target, or (shape=None) a list of candidates, in float64."""
    try:
        values = np.asarray(alphas, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name}={alphas!r} is not numeric; use numbers >= 0") from None
    if shape is None:
        values = np.atleast_1d(values)
        if values.ndim != 1 or values.size == 0:
            raise ValueError(f"{name}={alphas!r} must be a list of one or more numbers >= 0")
    elif values.shape not in ((), shape):
        raise ValueError(
            f"{name} has shape {values.shape}, but y has "
            f"{counted(int(np.prod(shape)), 'target')}; give one number, or one for each target"
        )
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"{name}={alphas!r} must be finite and >= 0")
    return values
