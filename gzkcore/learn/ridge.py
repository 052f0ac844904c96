"""Ridge regression on features, in one pass over the data and in bounded memory.

From the moments of `gram`, taken about the weighted means, the coefficients are

    c = (G + alpha I)^-1 b,    G = Z^T W Z,  b = Z^T W y,

and everything else follows without looking at the data again: residuals, degrees of freedom,
generalised cross-validation and, with moments kept per fold, k-fold cross-validation. Where kernels
only scale the columns of one basis, Z_theta = Z D, the system (D G D + alpha I) v = D b has the
solution v = c / D with (G + alpha D^-2) c = b: one pass serves every kernel and every alpha.
"""

import copy
import functools
import itertools
import numbers
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgWarning
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs, dtrtri
from scipy.stats import rankdata
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ParameterGrid
from sklearn.utils import (
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
)
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from gzkcore._compiled import gram as _gram
from gzkcore._util.callbacks import Progress, with_callbacks
from gzkcore._util.linalg import eigh
from gzkcore._util.model_io import stored
from gzkcore._util.threads import limit_blas, n_threads
from gzkcore._util.typing import Data, Doubles, Floats, Integers, Seed
from gzkcore._util.wording import counted
from gzkcore.kernels.aliases import as_kernel
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import Batch, can_reread, has_rows, is_dask, is_source

from .base import (
    FeatureLearner,
    Solved,
    check_one_batch,
    check_same_features,
    fit_features,
    new_features,
)
from .gram import GramAccumulator, check_targets, check_weights, for_each_tile
from .streams import Checkpoint, Reader, Score, map_rows

__all__ = [
    "RandomFeatureRidge",
    "RandomFeatureRidgeCV",
    "RandomFeatureRidgeClassifier",
    "RandomFeatureRidgeClassifierCV",
]

# A column's share of a fit is at most D_j^2 G_jj / alpha. Columns whose shares add up to less than
# this are left out of a candidate's system: the score stays the same to rounding.
NEGLIGIBLE = 1e-13

# Conjugate gradients: squared residual (in the preconditioner's norm) relative to the first, steps,
# and up to how many targets they are tried. A step costs 2 m^2 per target, Cholesky m^3 / 3.
CONVERGED = 1e-20
MOST_STEPS = 60
MOST_TARGETS = 4

LEAST_FREE = 1e-2  # rows less degrees of freedom, from which on noise is not estimated

TINY = np.finfo(np.float64).tiny

ALPHAS = tuple(np.logspace(-8, 2, 21).tolist())

ONE_BASIS = (
    "partial_fit sees each row once, but these features need a pass for each entry of kernel_grid; "
    "use fit, or kernel_grid=None, or features with an exact basis on a sphere"
)


# What a fitted model worked out, by name; and an entry of kernel_grid with its kernel, if known.
Solution: TypeAlias = dict[str, Any]
Candidate: TypeAlias = dict[str, Any]


class _FeatureRegressor(MultiOutputMixin, RegressorMixin, FeatureLearner):
    """What both regressors share: reading rows, predicting, saving."""

    _state = stored("y_offset_")

    coef_ = Solved()
    intercept_ = Solved()

    fit_intercept: bool  # a parameter, named here for type checkers

    # Fitted attributes.
    features_: Any
    moments_: GramAccumulator
    y_offset_: Doubles
    _spread: Solution
    _progress: Progress | None = None

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
        """Fit the features and the regression.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
            A memory map is read tile by tile and never copied. A source is an iterable of batches
            (X, y) or (X, y, sample_weight), such as `gzkcore.open_batches` gives, or a
            Dask array or data frame. If it can be read again, a first pass reads the norms and the
            variance, so that the features are those of the same rows in one array.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            None for an iterable of batches; for a Dask collection, another one.
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
        reader = None
        if checkpoint is not None or is_source(X):
            if not is_source(X):  # validated before it is cut into batches
                rows, y = self._before_cutting(X, y)
                X = X if hasattr(X, "columns") else rows  # with names, which are compared
                sample_weight = check_weights(sample_weight, rows)
            reader = Reader(X, y, sample_weight, checkpoint)
        self._forget()
        self._progress = Progress(self, None, "batch", X, y)
        try:
            if reader is None:
                found = self._start(X, y, sample_weight, one_pass=False)
            else:
                first = reader.first()
                found = self._start(*first, one_pass=reader.one_pass, reader=reader)
            self._solution = self._solve(found)
            self._progress.end()
        except BaseException:
            self._forget()
            raise
        finally:
            del self._progress
        if reader is not None:
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
        self._forget()
        try:
            self._start(X, y, sample_weight, one_pass=True)
        except BaseException:
            self._forget()
            raise
        return self

    def _before_cutting(self, X: Data, y: ArrayLike | None) -> tuple[Any, Any]:
        """Return arrays of X and y that can be cut into batches."""
        return self._validate(X, y, reset=True)

    def _continue(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        rows = self._rows(X, y, sample_weight)
        self._outdate()
        self.moments_.update(*rows)

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
        self, X: Data, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Any, Doubles, ArrayLike | None]:
        """Check a batch after the first and return what the moments take of it."""
        X, y = self._validate(X, y, reset=False)
        if y.shape[1:] != self.y_offset_.shape:
            raise ValueError(
                f"y has shape {y.shape}, but the first batch had {self.y_offset_.shape} after the "
                "rows; pass the same targets in every batch"
            )
        return X, y - self.y_offset_, sample_weight

    def _accumulate(
        self,
        moments: GramAccumulator,
        X: Any,
        y: Doubles,
        sample_weight: ArrayLike | None,
        reader: Reader | None,
    ) -> GramAccumulator:
        """Add all rows of the arrays, or of the reader's source, to moments."""
        step = None if self._progress is None else self._progress.step
        if reader is not None:
            reader.accumulate(self, moments, step)
        elif step is None:
            moments.update(X, y - self.y_offset_, sample_weight)
        else:
            step(lambda: moments.update(X, y - self.y_offset_, sample_weight))
        return moments

    def _validate(self, X: Data, y: ArrayLike | None, reset: bool) -> tuple[Any, Doubles]:
        """Check X and y but for the values of X, which are checked when they are read."""
        lenient = {"ensure_all_finite": False}
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            validate_separately=(
                {"accept_sparse": "csr", **lenient},
                {"ensure_2d": False, "dtype": None, **lenient},
            ),
        )
        return X, check_targets(y, X)

    def _offset(self, y: Doubles) -> Doubles:
        """Choose what to subtract from y before summing: sums of squares then lose no digits."""
        return np.asarray(y.mean(axis=0) if self.fit_intercept else np.zeros(y.shape[1:]))

    def _new_features(self, **parameters: Any) -> Any:
        return new_features(self.features, self.random_state, **parameters)

    def _fit_features(
        self, features: Any, X: Any, y: Doubles, one_pass: bool, reader: Reader | None = None
    ) -> Any:
        return fit_features(features, X, y, one_pass) if reader is None else reader.fit(features)

    # -- state --------------------------------------------------------------------------------

    def _outdate(self) -> None:
        super()._outdate()
        self.__dict__.pop("_spread", None)

    def _coefficients(self, sums: Doubles, alphas: Doubles) -> Solution:
        """Solve the ridge systems of all targets."""
        sums, mean = _centred(sums, self.fit_intercept)
        p = sums.shape[1] - 2
        coef = np.empty((len(alphas), p))
        for alpha in np.unique(alphas):
            targets = np.flatnonzero(alphas == alpha)
            system = _System(sums[:p, :p], alpha, self.moments_.dtype)
            if system.vectors is not None:
                warnings.warn(
                    f"the ridge system with alpha={alpha:g} is singular to working precision; "
                    f"solved by eigenvalues, in {len(system.values)} of {p} directions. A larger "
                    "alpha avoids this",
                    LinAlgWarning,
                    stacklevel=4,
                )
            coef[targets] = system.solve(sums[p + 1 + targets, :p].T).T
        shape = self.y_offset_.shape
        intercept = self.y_offset_ + (mean[p + 1 :] - coef @ mean[:p]).reshape(shape)
        return {"coef_": coef.reshape(*shape, p), "intercept_": intercept[()]}

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

        def use(_lane: int, rows: slice, Z: Floats) -> None:
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
        self._solved()
        if return_std:
            self._spreads()
        model = copy.copy(self)
        model.moments_ = GramAccumulator(self.moments_.features)
        return model

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
            _score_of_batch, Score.merge, self._without_moments()
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
        sums, mean = _centred(sums, self.fit_intercept)
        p = sums.shape[1] - 2
        c, b = np.atleast_2d(self.coef_), sums[p + 1 :, :p]
        # |y - Z c|^2 = y^T y - 2 c^T b + c^T G c, and G c = b - alpha c.
        residual = sums[p + 1 :, p + 1] - np.sum(c * (b + alphas[:, None] * c), axis=1)
        roots, freedom = {}, np.empty(len(alphas))
        for alpha in np.unique(alphas):
            system = _System(sums[:p, :p], alpha, self.moments_.dtype)
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


def _std_of_rows(model: _FeatureRegressor, X: Any) -> Any:
    return model.predict(X, return_std=True)[1]


def _score_of_batch(batch: Batch, model: _FeatureRegressor) -> Score:
    if batch.y is None:
        raise ValueError("score needs the targets; let the source yield (X, y)")
    X, y, sample_weight, _ = batch
    return Score(check_targets(y, X), model.predict(X), check_weights(sample_weight, X))


class RandomFeatureRidge(_FeatureRegressor):
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

    def _start(
        self,
        X: Data,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        one_pass: bool,
        reader: Reader | None = None,
    ) -> Any:
        """Read the first rows, or all; return what `_solve` can't know from the moments."""
        X, y = self._validate(X, y, reset=True)
        _check_alphas(self.alpha, "alpha", y.shape[1:])
        if reader is None or not reader.resume(self):
            self.features_ = self._fit_features(self._new_features(), X, y, one_pass, reader)
            self.y_offset_ = self._offset(y if reader is None else reader.typical(y))
            self.moments_ = GramAccumulator(self.features_)
        self._accumulate(self.moments_, X, y, sample_weight, reader)

    def _system(self, solution: Solution) -> tuple[Doubles, Doubles]:
        return self.moments_.sums[0], solution["alphas"]

    def _solve(self, found: Any = None) -> Solution:
        alphas = _check_alphas(self.alpha, "alpha", self.y_offset_.shape)
        solution = {"alphas": np.array(np.broadcast_to(alphas, self.y_offset_.size))}
        return solution | self._coefficients(*self._system(solution))


class RandomFeatureRidgeCV(_FeatureRegressor):
    """Ridge regression on features that chooses its alpha, and the kernel's parameters, by itself.

    Parameters
    ----------
    features : transformer, default=None
        As for `RandomFeatureRidge`.
    alphas : array-like of shape (n_alphas,), default=logspace(-8, 2, 21)
        Candidates for the ridge.
    kernel_grid : dict of str to list, default=None
        Candidates for the kernel's parameters, such as ``{"gamma": [0.5, 1, 2]}``, tried in all
        combinations. A name that is no parameter of the kernel is looked for in `features`.
    cv : None, int or "loo", default=None
        None: generalised cross-validation. An int k: k folds, row i in fold i mod k. "loo": each
        row is left out once, exactly, at the cost of a second pass.
    fit_intercept : bool, default=True
    random_state : int, RandomState, Generator or None, default=None
        As for `RandomFeatureRidge`.

    Attributes
    ----------
    alpha_ : float
        The alpha chosen.
    kernel_ : kernel or None
        The kernel chosen, if the features know theirs.
    best_params_ : dict
        `alpha` and the names in `kernel_grid`.
    best_score_ : float
        Minus the mean squared error expected of the choice.
    cv_results_ : dict of str to array
        All candidates, laid out as `GridSearchCV` does: `params`, `param_alpha` ...,
        `mean_test_score` (minus the mean squared error: each row has its weight, so that folds
        count by their weights), `rank_test_score` and, for k folds, `split0_test_score` ...
    features_, coef_, intercept_, moments_, y_offset_, noise_variance_, degrees_of_freedom_
        As for `RandomFeatureRidge`. With `kernel_grid`, `moments_` may belong to a basis common to
        all candidates.
    candidates_ : list of dict
        The entries of `kernel_grid` (`params`) that `moments_` serves, with their `kernel`.

    Notes
    -----
    Features that offer a basis common to all kernels of the grid (`GegenbauerFeatures` with an
    exact basis on a sphere) are read in one pass; others take one pass for each kernel. A candidate
    then costs a Cholesky factorisation per fold, whatever the number of rows, and less where the
    ridge makes part of the columns negligible.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(200)
    >>> model = RandomFeatureRidgeCV(
    ...     RBFSampler(), kernel_grid={"gamma": [0.1, 1.0, 10.0]}, cv=5, random_state=0
    ... ).fit(X, y)
    >>> sorted(model.best_params_)
    ['alpha', 'gamma']
    """

    _state = stored("candidates_")

    alpha_ = Solved()
    kernel_ = Solved()
    features_ = Solved()
    best_params_ = Solved()
    best_score_ = Solved()
    cv_results_ = Solved()
    candidates_: list[Candidate]

    def __init__(
        self,
        features: Any = None,
        alphas: ArrayLike = ALPHAS,
        kernel_grid: dict[str, Sequence[Any]] | None = None,
        cv: Any = None,
        fit_intercept: bool = True,
        random_state: Seed = None,
    ):
        self.features = features
        self.alphas = alphas
        self.kernel_grid = kernel_grid
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def _start(
        self,
        X: Data,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        one_pass: bool,
        reader: Reader | None = None,
    ) -> Any:
        """Read the first rows, or all; return candidates and errors, unless more rows may come."""
        given = X, y, sample_weight
        X, y = self._validate(X, y, reset=True)
        alphas = _check_alphas(self.alphas, "alphas")
        n_folds = self._check_cv(one_pass)
        if reader is None and not one_pass:
            self._check_enough(X.shape[0])
        found: list[dict[str, Any]] = []
        errors, least = [], np.inf
        resumed = reader is not None and reader.resume(self)
        bases = [(None, self.candidates_)] if resumed else self._bases(X, y, one_pass, reader)
        for basis, candidates in bases:
            if not resumed:
                self.y_offset_ = self._offset(y if reader is None else reader.typical(y))
            moments = self.moments_ if resumed else GramAccumulator(basis, n_folds)
            if reader is not None and reader.checkpoint is not None:
                self._check_one_basis(candidates)
                self.candidates_, self.moments_ = candidates, moments  # what a checkpoint keeps
            self._accumulate(moments, X, y, sample_weight, reader)
            if one_pass:  # there may be more rows to come
                self.candidates_, self.moments_ = candidates, moments
                return None
            self._check_enough(moments.n_rows)
            if self.cv == "loo":
                rows = [given] if reader is None else reader.batches()
                new = self._leave_one_out(moments, candidates, alphas, rows)
            else:
                new = self._errors(moments, candidates, alphas)
            if _pooled(new, moments).min() < least or not found:
                least = _pooled(new, moments).min()
                self.candidates_, self.moments_ = candidates, moments
            found += candidates
            errors.append(new)
        return found, np.concatenate(errors)

    def _check_one_basis(self, candidates: list[Candidate]) -> None:
        if len(candidates) < len(_grid(self.kernel_grid or {})):
            raise ValueError(
                "checkpoint= keeps the sums of one pass, but these features need a pass for each "
                "entry of kernel_grid; choose the kernel on part of the rows, then fit with it"
            )

    def _continue(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self._check_cv(one_pass=True)
        if len(self.candidates_) < len(_grid(self.kernel_grid or {})):
            raise ValueError(ONE_BASIS)
        super()._continue(X, y, sample_weight)

    def _check_cv(self, one_pass: bool) -> int:
        """Return the number of folds whose sums are kept apart."""
        if self.cv == "loo" and one_pass:
            raise ValueError('cv="loo" reads the rows twice; use fit, or cv=None with partial_fit')
        if self.cv is None or self.cv == "loo":
            return 1
        if isinstance(self.cv, bool) or not isinstance(self.cv, numbers.Integral) or self.cv < 2:
            raise ValueError(f'cv={self.cv!r} must be None, "loo" or a whole number of folds >= 2')
        return int(self.cv)

    def _check_enough(self, n_samples: int) -> None:
        least = 2 if self.cv in (None, "loo") else int(self.cv)
        if n_samples < least:
            raise ValueError(
                f"cv={self.cv!r} needs {least} rows or more, but n_samples={n_samples}"
            )

    def _bases(
        self, X: Any, y: Doubles, one_pass: bool, reader: Reader | None
    ) -> Iterator[tuple[Any, list[Candidate]]]:
        """Yield fitted features with the candidates they serve, together all of the grid."""
        if not self.kernel_grid:
            features = self._fit_features(self._new_features(), X, y, one_pass, reader)
            yield features, [{"params": {}, "kernel": None}]
            return
        grid = _grid(self.kernel_grid)
        own = self._new_features().get_params()
        full = {
            name: name if name in own or "__" in name else f"kernel__{name}"
            for name in self.kernel_grid
        }
        try:
            maps = [self._new_features(**{full[k]: params[k] for k in params}) for params in grid]
        except (AttributeError, ValueError) as error:
            known = [name for name in own if name.startswith("kernel")]
            raise ValueError(
                f"kernel_grid names {sorted(full)}, which must be parameters of the kernel "
                f"({', '.join(known)}) or of features: {error}"
            ) from None
        first = self._fit_features(maps[0], X, y, one_pass, reader)
        if hasattr(first, "shared_basis") and all(n.startswith("kernel") for n in full.values()):
            given = [as_kernel(features.kernel) for features in maps]
            kernels = [k.resolve(X) if reader is None else reader.resolve(k, X) for k in given]
            basis = first.shared_basis(kernels)
            if basis is not None:
                pairs = zip(grid, kernels, strict=True)
                yield basis, [{"params": params, "kernel": kernel} for params, kernel in pairs]
                return
        if one_pass:
            raise ValueError(ONE_BASIS)
        yield first, [{"params": grid[0], "kernel": None}]
        for params, features in zip(grid[1:], maps[1:], strict=True):
            fitted = self._fit_features(features, X, y, one_pass, reader)
            yield fitted, [{"params": params, "kernel": None}]

    def _errors(
        self, moments: GramAccumulator, candidates: list[Candidate], alphas: Doubles
    ) -> Doubles:
        """Mean squared errors, (n_candidates, n_alphas, n_folds), from the moments alone."""
        scales = [_scale(moments, candidate) for candidate in candidates]
        return _candidate_errors(moments, scales, alphas, self.fit_intercept, self.cv is None)

    def _leave_one_out(
        self,
        moments: GramAccumulator,
        candidates: list[Candidate],
        alphas: Doubles,
        batches: Iterable[tuple[Any, Any, Any]],
    ) -> Doubles:
        """Mean squared leave-one-out errors, (n_candidates, n_alphas, 1), by a second pass.

        With G = V diag(l) V^T and q = V^T (z - z_mean), a row's leverage is
        w (1 / sum of w + sum of q^2 / (l + alpha)), and predicting it from all others errs by its
        residual / (1 - leverage).
        """
        sums, mean = _centred(moments.sums[0], self.fit_intercept)
        p = sums.shape[1] - 2
        of_intercept = 1.0 / sums[p, p] if self.fit_intercept else 0.0
        rotations, inverses = [], []
        for candidate in candidates:
            scale = _scale(moments, candidate)
            values, vectors = _eigen(_scaled(sums, scale)[:p, :p], moments.dtype)
            rotations.append(vectors if scale is None else scale[:, None] * vectors)
            inverses.append(1.0 / (values[:, None] + alphas))
        shape = (len(candidates), len(alphas))
        errors = [np.zeros(shape) for _ in range(n_threads())]

        def use(lane: int, rows: slice, Z: Floats, y: Doubles, weight: Doubles | None) -> None:
            Z = Z - mean[:p]
            w = np.ones(len(Z)) if weight is None else weight[rows]
            for i, (rotation, inverse) in enumerate(zip(rotations, inverses, strict=True)):
                q = Z @ rotation
                free = 1.0 - w[:, None] * (of_intercept + np.square(q) @ inverse)
                for t in range(y.shape[1]):
                    coef = (rotation.T @ sums[p + 1 + t, :p])[:, None] * inverse
                    residual = (y[rows, t] - mean[p + 1 + t])[:, None] - q @ coef
                    with np.errstate(divide="ignore", invalid="ignore"):  # a row of leverage 1
                        errors[lane][i] += w @ np.square(residual / free) / y.shape[1]

        for batch in batches:
            if not has_rows(batch[0]):
                continue
            X, y, sample_weight = self._rows(*batch)
            weight, y = check_weights(sample_weight, X), y.reshape(len(y), -1)
            for_each_tile(moments.features, X, functools.partial(use, y=y, weight=weight))
        return np.asarray(np.sum(errors, axis=0) / sums[p, p])[:, :, None]

    def _solve(self, found: Any = None) -> Solution:
        alphas = _check_alphas(self.alphas, "alphas")
        if found is None:
            self._check_enough(self.moments_.n_rows)
            found = self.candidates_, self._errors(self.moments_, self.candidates_, alphas)
        candidates, errors = found
        pooled = _pooled(errors, self.moments_)
        if not np.isfinite(pooled).any():
            raise ValueError(
                "no candidate has a finite score: too few rows have a positive weight for "
                f"cv={self.cv!r}, or y is too large; use more rows, or scale y"
            )
        i, a = np.unravel_index(np.nanargmin(pooled), pooled.shape)
        chosen, alpha = candidates[i], float(alphas[a])
        features = self.moments_.features
        if chosen["kernel"] is not None:
            features = features.rescaled(chosen["kernel"])
        solution = {
            "scale": _scale(self.moments_, chosen),
            "alpha_": alpha,
            "kernel_": getattr(features, "kernel_", None),
            "features_": features,
            "best_params_": {"alpha": alpha, **chosen["params"]},
            "best_score_": -float(pooled[i, a]),
            "cv_results_": _results([c["params"] for c in candidates], alphas, errors, pooled),
        }
        return solution | self._coefficients(*self._system(solution))

    def _system(self, solution: Solution) -> tuple[Doubles, Doubles]:
        total = self.moments_.sums.sum(axis=0)
        alphas = np.full(self.y_offset_.size, solution["alpha_"])
        return _scaled(total, solution["scale"]), alphas


class _System:
    """(G + alpha I) c = b for a Gram matrix given by its lower triangle.

    By Cholesky, A = R^T R; by eigenvalues where that fails or A is singular to working precision.
    """

    def __init__(self, gram: Doubles, alpha: float, dtype: np.dtype[Any]):
        self.alpha = alpha
        self.n_features = len(gram)
        a = np.array(gram)
        a.flat[:: len(a) + 1] += alpha
        norm = a.diagonal().max()
        # LAPACK sees the lower triangle of a C matrix as the upper one of its transpose.
        self.r, info = dpotrf(a.T, lower=0, clean=1, overwrite_a=1)
        self.vectors = None
        if info == 0:
            info = dpocon(self.r, norm, uplo="U")[0] < np.finfo(float).eps
        if info:
            self.values, self.vectors = _eigen(gram, dtype)

    def solve(self, b: Doubles) -> Any:
        """Return c for each column of b."""
        if self.vectors is None:
            return dpotrs(self.r, b, lower=0)[0]
        return self.vectors @ ((self.vectors.T @ b) / (self.values + self.alpha)[:, None])

    def root(self) -> Any:
        """Return U with U U^T = (G + alpha I)^-1."""
        if self.vectors is None:
            return dtrtri(self.r, lower=0)[0]
        return self.vectors / np.sqrt(self.values + self.alpha)

    def degrees_of_freedom(self) -> Any:
        """Return tr(G (G + alpha I)^-1)."""
        if self.vectors is None:
            return self.n_features - self.alpha * np.square(self.root()).sum()
        return np.sum(self.values / (self.values + self.alpha))


def _eigen(gram: Doubles, dtype: np.dtype[Any]) -> tuple[Doubles, Doubles]:
    """Eigenvalues and eigenvectors of a Gram matrix, without those lost in its rounding errors."""
    values, vectors = eigh(gram, lower=True)
    kept = values > len(values) * np.finfo(dtype).eps * values[-1]
    return values[kept], vectors[:, kept]


def _centred(sums: Doubles, fit_intercept: bool) -> tuple[Doubles, Doubles]:
    """Return a copy of sums about the weighted means of the rows [z 1 y], and these means."""
    p = sums.shape[-1] - 2
    total = sums.reshape(-1, *sums.shape[-2:]).sum(axis=0)
    if not total[p, p] > 0:
        raise ValueError("all sample weights are zero; give some rows a positive weight")
    mean = np.zeros(len(total))
    if fit_intercept:
        mean[:p] = total[p, :p] / total[p, p]
        mean[p + 1 :] = total[p + 1 :, p] / total[p, p]
    sums = sums.copy()
    _gram.recentre(sums.reshape(-1, *sums.shape[-2:]), mean)
    return sums, mean


def _scale(moments: GramAccumulator, candidate: Candidate) -> Doubles | None:
    """Return what a candidate's kernel multiplies the columns of the basis by, None for nothing."""
    kernel = candidate["kernel"]
    return None if kernel is None else moments.features.column_scales(kernel)


def _scaled(sums: Doubles, scale: Doubles | None) -> Doubles:
    """Turn sums for features z into those for scale * z."""
    if scale is None:
        return sums
    p = len(scale)
    sums = sums.copy()
    sums[:, :p] *= scale
    sums[:p] *= scale[:, None]
    return sums


def _candidate_errors(
    moments: GramAccumulator,
    scales: list[Doubles | None],
    alphas: Doubles,
    fit_intercept: bool,
    generalised: bool,
) -> Doubles:
    """Mean squared errors (n_scales, n_alphas, n_folds) by k folds or generalised cross-validation.

    The errors of c on some rows are y^T y - 2 c^T b + c^T G c with their moments, and those on a
    fold are the errors on all rows less those on the rows that c was fitted to.
    """
    sums, _ = _centred(moments.sums, fit_intercept)
    total = sums.sum(axis=0)
    n_folds, p = len(sums), total.shape[1] - 2
    weights = sums[:, p, p].copy()
    if not generalised and np.count_nonzero(weights) < 2:
        raise ValueError("all sample weights are zero in all folds but one; use fewer folds")
    if not generalised:
        np.subtract(total, sums, out=sums)  # from here on: all rows but the fold
    m, n = p + fit_intercept, total[p, p + 1]  # [Z 1] has m columns in use
    for part in (total, *sums):
        _gram.mirror(part, m)
    penalties = _penalties(total, scales, alphas, m)

    def error(unit: tuple[int, slice]) -> Any:
        fold, chosen = unit
        train = sums[fold]
        coef, freedom = _solve_candidates(train, penalties[chosen], moments.dtype, generalised)
        if generalised:
            free = np.where(n - freedom < LEAST_FREE, 0.0, n - freedom)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(free > 0, _squares(total, coef) * n / np.square(free), np.inf)
        if weights[fold] == 0:
            return 0.0
        return (_squares(total, coef) - _squares(train, coef)) / weights[fold]

    # Factorisations are dealt out in small parts, conjugate gradients in large ones.
    n_parts = 4 * n_threads() if generalised else -(-n_threads() // n_folds)
    parts = [slice(part, None, n_parts) for part in range(min(n_parts, len(penalties)))]
    errors = np.empty((len(penalties), n_folds))
    with limit_blas(1), ThreadPoolExecutor(n_threads()) as pool:
        units = list(itertools.product(range(n_folds), parts))
        for (fold, chosen), found in zip(units, pool.map(error, units), strict=True):
            errors[chosen, fold] = found
    return errors.reshape(len(scales), len(alphas), n_folds)


def _penalties(total: Doubles, scales: list[Doubles | None], alphas: Doubles, m: int) -> Doubles:
    """What candidates add to the diagonal of G, (n_candidates, m); inf where they drop a column.

    alpha / D_j^2 for features, 0 for the intercept.
    """
    p = total.shape[1] - 2
    diagonal = np.maximum(total.diagonal()[:p], 0.0)
    penalties = np.zeros((len(scales), len(alphas), m))
    for scale, of_scale in zip(scales, penalties, strict=True):
        square = np.ones(p) if scale is None else np.square(scale)
        for alpha, penalty in zip(alphas, of_scale, strict=True):
            dropped = square == 0
            if alpha > 0:
                share = square * diagonal / alpha
                order = np.argsort(share)
                dropped[order[np.cumsum(share[order]) <= NEGLIGIBLE]] = True
            with np.errstate(divide="ignore", over="ignore"):
                penalty[:p] = np.where(dropped, np.inf, alpha / square)
    return penalties.reshape(-1, m)


def _solve_candidates(
    sums: Doubles, penalties: Doubles, dtype: np.dtype[Any], want_freedom: bool
) -> tuple[Doubles, Doubles]:
    """Coefficients (n_candidates, n_targets, m) on [Z 1], and degrees of freedom where wanted."""
    n_targets, m = len(sums) - sums.shape[1] + 1, penalties.shape[1]
    freedom = np.full(len(penalties), np.nan)
    coef = np.zeros((len(penalties), n_targets, m))
    left = np.arange(len(penalties))
    if not want_freedom and n_targets <= MOST_TARGETS:
        coef, solved = _conjugate_gradients(sums, penalties)
        left = np.flatnonzero(~solved)
    work = np.empty(m * m if left.size else 0)
    for i in left:
        kept = np.flatnonzero(np.isfinite(penalties[i]))
        penalty, some = penalties[i, kept], np.empty((n_targets, len(kept)))
        square = work[: len(kept) ** 2].reshape(len(kept), len(kept))
        info, trace = _gram.solve_ridge(sums, kept, penalty, square, some, want_freedom)
        freedom[i] = len(kept) - trace
        if info:
            some, freedom[i] = _solve_by_eigenvalues(sums, kept, penalty, dtype)
        coef[i] = 0.0
        coef[i][:, kept] = some
    return coef, freedom


@np.errstate(divide="ignore", invalid="ignore")  # a target of zeros: 0 / 0 never converges
def _conjugate_gradients(sums: Doubles, penalties: Doubles) -> tuple[Doubles, Any]:
    """Solve (G + diag(penalty)) c = b for all penalties at once; one product with G is a step.

    Preconditioned by the diagonal, which takes out the range of the penalties. What remains depends
    on how evenly the data cover their domain: 30 steps suffice for points all over a sphere.
    Returns the coefficients (n_candidates, n_targets, m) and whether each candidate has converged;
    those that are too slow are given up early.
    """
    n_targets, m = len(sums) - sums.shape[1] + 1, penalties.shape[1]
    gram = sums[:m, :m]
    kept = np.repeat(np.isfinite(penalties), n_targets, axis=0)
    penalty = np.where(kept, np.repeat(penalties, n_targets, axis=0), 0.0)
    diagonal = gram.diagonal() + penalty
    inverse = np.where(kept & (diagonal > 0), 1.0 / np.maximum(diagonal, TINY), 0.0)
    r = np.tile(sums[-n_targets:, :m], (len(penalties), 1))
    c, z = np.zeros_like(r), inverse * r
    direction = z.copy()
    size = start = _dots(r, z)
    coef, solved = np.empty_like(r), np.zeros(len(r), dtype=bool)
    active = np.arange(len(r))
    for step in range(1, MOST_STEPS + 1):
        product = direction @ gram
        product += penalty * direction
        length = (size / _dots(direction, product))[:, None]
        c += length * direction
        r -= length * product
        np.multiply(inverse, r, out=z)
        before, size = size, _dots(r, z)
        direction *= (size / before)[:, None]
        direction += z
        if step % 5 == 0:
            decrease = size / start
            done = decrease <= CONVERGED
            coef[active[done]], solved[active[done]] = c[done], True
            # At this rate, or even at twice it, would it arrive in time?
            hopeful = ~done & (decrease ** (2 * MOST_STEPS / step) <= CONVERGED)
            if not hopeful.any():
                break
            if not hopeful.all():
                active, penalty, inverse, r, c, z, direction, size, start = (
                    a[hopeful] for a in (active, penalty, inverse, r, c, z, direction, size, start)
                )
    shape = (len(penalties), n_targets, m)
    return coef.reshape(shape), solved.reshape(shape[:2]).all(axis=1)


def _dots(a: Doubles, b: Doubles) -> Any:
    """Return the products of corresponding rows."""
    return np.einsum("ij,ij->i", a, b)


def _solve_by_eigenvalues(
    sums: Doubles, kept: Integers, penalty: Doubles, dtype: np.dtype[Any]
) -> tuple[Doubles, float]:
    """Coefficients and degrees of freedom where Cholesky fails, less directions lost in noise."""
    p = sums.shape[1] - 2
    gram, b = sums[np.ix_(kept, kept)], sums[p + 1 :, kept]
    intercept = int(kept[-1] == p)
    f = len(kept) - intercept  # features
    mean = gram[f:, :f] / gram[f:, f:].ravel()[:, None]  # (intercept, f)
    scale = np.where(penalty[:f] > 0, 1.0 / np.sqrt(np.maximum(penalty[:f], TINY)), 1.0)
    centred = gram[:f, :f] - mean.T @ gram[f:, :f]
    values, vectors = _eigen(scale[:, None] * centred * scale, dtype)
    ridge = 1.0 if penalty[0] > 0 else 0.0
    c = (b[:, :f] - b[:, f:] @ mean) * scale @ vectors / (values + ridge) @ vectors.T * scale
    offset = b[:, f:] / gram[f:, f:].ravel() - c @ mean.T
    return np.hstack([c, offset]), np.sum(values / (values + ridge)) + intercept


def _squares(sums: Doubles, coef: Doubles) -> Any:
    """Sum the squared errors of each candidate's coefficients over the rows of these moments."""
    n_targets, m = coef.shape[1:]
    p = sums.shape[1] - 2
    flat = coef.reshape(-1, m)
    form = _dots(flat @ sums[:m, :m], flat).reshape(-1, n_targets)
    return (
        sums[p + 1 :, p + 1] - 2.0 * np.einsum("ntm,tm->nt", coef, sums[p + 1 :, :m]) + form
    ).mean(axis=1)


def _pooled(errors: Doubles, moments: GramAccumulator) -> Any:
    """Average mean squared errors over the folds by their weights."""
    weights = moments.sums[:, moments.sums.shape[2] - 2, -2]  # sum of w, see GramAccumulator
    return errors @ (weights / weights.sum())


def _grid(kernel_grid: Any) -> list[dict[str, Any]]:
    """Return the combinations of a grid's values."""
    try:
        return list(ParameterGrid(kernel_grid))
    except (TypeError, ValueError) as error:
        raise type(error)(
            f'kernel_grid={kernel_grid!r} must be like {{"gamma": [0.5, 1, 2]}}, a name with a '
            f"list of values: {error}"
        ) from None


def _results(
    params: list[dict[str, Any]], alphas: Doubles, errors: Doubles, pooled: Doubles
) -> dict[str, Any]:
    """Lay all candidates out as GridSearchCV does."""
    rows = [{"alpha": alpha, **some} for some in params for alpha in alphas.tolist()]
    results: dict[str, Any] = {"params": rows}
    for name in rows[0]:
        values = [row[name] for row in rows]
        results[f"param_{name}"] = np.array(values) if np.ndim(values) == 1 else values
    splits = -errors.reshape(len(rows), -1)
    if splits.shape[1] > 1:
        results |= {f"split{f}_test_score": splits[:, f].copy() for f in range(splits.shape[1])}
        results["std_test_score"] = splits.std(axis=1)
    results["mean_test_score"] = -pooled.ravel()
    results["rank_test_score"] = rankdata(pooled.ravel(), method="min").astype(int)
    return results


def _check_alphas(alphas: ArrayLike, name: str, shape: tuple[int, ...] | None = None) -> Doubles:
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


# ---- classifiers


class _Classifying(ClassifierMixin):
    """Turns a regression into a classification: labels to targets of +-1, predictions to labels."""

    _state = stored("classes_", "_announced", "_of_class")

    classes_: NDArray[Any]
    class_weight: Any
    moments_: GramAccumulator
    _announced: Any = None  # the classes, where more than the first rows tell them
    _of_class: Any = None  # their weights

    def fit(
        self,
        X: Data,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the features and the classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
            As for `RandomFeatureRidge`. Of a source that can be read again a pass reads the labels
            first; one that can't must show all classes in its first batch.
        y : array-like of shape (n_samples,)
            Labels: numbers or strings. None for an iterable of batches; for a Dask collection,
            another one.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative; a row of weight 2 counts as two rows. As y for sources.
        checkpoint : Checkpoint, str or path, optional
            As for `RandomFeatureRidge`.

        Returns
        -------
        self
            Unfitted, if anything fails or interrupts on the way.
        """
        self._announced = self._of_class = None
        if is_source(X) and can_reread(X):
            self._survey_labels(as_source(X, y, sample_weight).reduce(_count_labels, _merge_counts))
        elif not is_source(X) and self._balanced():
            self._survey_labels(_count_labels(Batch(X, y, None, 0)))
        fitted: Self = super().fit(X, y, sample_weight, checkpoint=checkpoint)
        return fitted

    def partial_fit(
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
        else:
            self._announced, self._of_class = classes, None
        fitted: Self = super().partial_fit(X, y, sample_weight)
        return fitted

    def _survey_labels(self, counts: dict[Any, int] | None) -> None:
        """Take the classes, and their weights, from the numbers of their rows."""
        if counts is None:
            raise ValueError("the source yields no batches; give it one or more")
        labels = sorted(counts)
        self._announced = np.array(labels)
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
        return check_weights(sample_weight, targets) * weight

    def _rows(self, X: Data, y: Any, sample_weight: ArrayLike | None) -> tuple[Any, Doubles, Any]:
        X, targets = self._validate(X, y, reset=False)
        return X, targets, self._weighted(targets, sample_weight)

    def _accumulate(
        self, moments: GramAccumulator, X: Any, y: Doubles, sample_weight: Any, reader: Any
    ) -> GramAccumulator:
        if reader is None:
            sample_weight = self._weighted(y, sample_weight)
        added: GramAccumulator = super()._accumulate(moments, X, y, sample_weight, reader)
        return added

    def _before_cutting(self, X: Data, y: Any) -> tuple[Any, Any]:
        return self._validate(X, y, reset=True)[0], column_or_1d(y)

    def _validate(self, X: Data, y: Any, reset: bool) -> tuple[Any, Doubles]:
        """Check X and the labels; return targets of +-1, one column for each of 3 or more."""
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs "
                "labels; a source yields (X, y)"
            )
        lenient = {"ensure_all_finite": False}
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            validate_separately=(
                {"accept_sparse": "csr", **lenient},
                {"ensure_2d": False, "dtype": None, **lenient},
            ),
        )
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if reset:
            self.classes_ = np.unique(y) if self._announced is None else self._announced
            if len(self.classes_) < 2:
                raise ValueError(
                    f"y has one class, {self.classes_.tolist()}, and a classifier needs two or "
                    "more; pass rows of other classes too, or classes=[...] to partial_fit"
                )
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
            return X, 2.0 * places - 1.0
        targets = np.full((len(y), len(self.classes_)), -1.0)
        targets[np.arange(len(y)), places] = 1.0
        return X, targets

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

    def predict(self, X: Data) -> Any:
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


class RandomFeatureRidgeClassifier(_Classifying, RandomFeatureRidge):  # type: ignore[misc]
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


class RandomFeatureRidgeClassifierCV(_Classifying, RandomFeatureRidgeCV):  # type: ignore[misc]
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
