"""Ridge regression on features, in one pass over the data and in bounded memory.

Coefficients (`normal_equations`), residuals, degrees of freedom and standard deviations all follow
from the moments of `gram`, without reading the data again.
"""

from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._util.state import all_or_nothing, doubles, entries, holds, ints, number, stored
from gzkcore._util.typing import Data, Doubles, Floats, Seed
from gzkcore._util.validation import check_choice, check_integer, check_positive
from gzkcore.passes.gram import GramAccumulator
from gzkcore.passes.kernel_passes import PassedRows, Passes, check_reread
from gzkcore.passes.normal_equations import System, centred, coefficients
from gzkcore.passes.streams import Reader, Step
from gzkcore.passes.tiles import for_each_tile, width_of
from gzkcore.solve.wide import WIDE, CrossAccumulator, solve_wide

from .base import FeatureLearner, Resumable, Solved, check_same_features, new_features
from .regression import Regressor, check_alphas

__all__ = ["RandomFeatureRidge"]

# Rows less degrees of freedom below which the noise is not estimated.
LEAST_FREE = 1e-2
# k(x, x) - |z|^2 is taken for 0 below this many units in the last place of k(x, x).
ZERO_UNITS = 8.0

SOLVERS = ("auto", "cholesky", "cg")

Results: TypeAlias = dict[str, Any]  # results computed from the sums, by name


class FeatureRegressor(Resumable, Regressor, FeatureLearner):
    """Base of the regressors on features: the sums over their rows, and the results from them."""

    _state = stored(
        moments_=holds(GramAccumulator, CrossAccumulator), y_offset_=doubles() | doubles("t")
    )

    coef_ = Solved()
    intercept_ = Solved()

    y_offset_: Doubles
    _spread: Results

    def _fit(self, reader: Reader, step: Step) -> None:
        self._solution = self._solve(self._start(reader, step))

    @all_or_nothing
    def partial_fit(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add a batch of rows to those seen so far, and return self. The first one fits features.

        If an error or an interrupt occurs, nothing changes.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        if self._continues(X):
            self._continue(X, y, sample_weight)
            return self
        reader = Reader(X, y, sample_weight, one_pass=True)
        reader.begin(self)
        self._start(reader)
        return self

    def _start(self, reader: Reader, step: Step | None = None) -> Any:
        """Sum the first rows, or all; return results of the pass for `_solve`, or None."""
        raise NotImplementedError

    @property
    def _has_gram(self) -> bool:
        return not isinstance(self.moments_, CrossAccumulator)

    def _need_gram(self, what: str) -> None:
        """Raise unless the fit has summed the Gram matrix."""
        if not self._has_gram:
            raise ValueError(
                f"{what} needs the Gram matrix of the features, but this model was fitted by "
                'conjugate gradients without it; fit with solver="cholesky", on fewer features '
                "if these are too many"
            )

    def _continue(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self._need_gram("partial_fit")
        summands = self._summands(*self._rows(X, y, sample_weight))
        self._outdate()
        self.moments_.add(*summands)

    def merge(self, other: Self) -> Self:
        """Add the rows that another model has seen, as if they followed these, and return self.

        Parameters
        ----------
        other : object of the same class
            A fitted or partially fitted model with the same features: pass these fitted, in a
            ``sklearn.frozen.FrozenEstimator``, to every model. It is not changed.
        """
        offset = self._offset_of(other)
        for model in (self, other):
            model._need_gram("merge")
        if not np.array_equal(getattr(self, "classes_", ()), getattr(other, "classes_", ())):
            raise ValueError("the models have different classes; pass all classes to each")
        check_same_features(
            self.moments_.features, other.moments_.features, int(self.n_features_in_)
        )
        moved = other.moments_.shifted(offset)
        self._outdate()
        self.moments_.merge(moved)
        return self

    def _summands(self, X: Any, y: Doubles, sample_weight: Doubles | None) -> PassedRows:
        return X, y - self.y_offset_, sample_weight

    def _offset(self, y: Doubles) -> Doubles:
        """Return the mean of y, or 0: sums of squares of y less that lose no digits."""
        return np.asarray(y.mean(axis=0) if self.fit_intercept else np.zeros(y.shape[1:]))

    def _new_features(self, **parameters: Any) -> Any:
        return new_features(self.features, self.random_state, **parameters)

    @property
    def _target_shape(self) -> tuple[int, ...]:
        return self.y_offset_.shape

    def _outdate(self) -> None:
        super()._outdate()
        self.__dict__.pop("_spread", None)

    def _coefficients(self, sums: Doubles, alphas: Doubles) -> Results:
        """Solve the ridge systems of all targets."""
        return self._shaped(*coefficients(sums, alphas, self.fit_intercept, self.moments_.dtype))

    def _shaped(self, coef: Doubles, intercept: Doubles) -> Results:
        """Return coefficients and intercepts of all targets in the shape of y."""
        shape = self.y_offset_.shape
        return {
            "coef_": coef.reshape(*shape, coef.shape[1]),
            "intercept_": (self.y_offset_ + intercept.reshape(shape))[()],
        }

    def _predict(self, X: Any, return_std: bool) -> tuple[Doubles, Doubles | None]:
        results = self._solved()
        coef = np.atleast_2d(results["coef_"]).T
        mean = np.empty((X.shape[0], coef.shape[1]))
        variance = np.empty_like(mean) if return_std else None
        spread = self._spreads() if return_std else {}

        def use(_thread: int, rows: slice, Z: Floats) -> None:
            mean[rows] = Z @ coef.astype(Z.dtype, copy=False)
            if variance is not None:
                variance[rows] = self._variance(X[rows], Z, spread)

        for_each_tile(self.features_, X, use)
        mean += np.atleast_1d(results["intercept_"])
        return mean, variance

    def _for_workers(self, return_std: bool = False) -> Self:
        if return_std:
            self._spreads()
        return super()._for_workers(return_std)

    def _variance(self, X: Any, Z: Floats, spread: Results) -> Doubles:
        """Return the variance of new observations at rows of features Z, see the class."""
        kernel: Any = getattr(self.features_, "kernel_", None)
        missing: Any = 0.0
        if hasattr(kernel, "diag"):
            own = kernel.diag(X)
            missing = own - np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
            missing[missing < ZERO_UNITS * np.finfo(Z.dtype).eps * own] = 0.0
        variance = np.empty((len(Z), len(spread["noise"])))
        for alpha, root in spread["roots"].items():
            of_mean = np.square((Z - spread["mean"]) @ root).sum(axis=1)
            factor = 1.0 + spread["of_intercept"] + of_mean + (missing / alpha if alpha else 0.0)
            targets = spread["alphas"] == alpha
            variance[:, targets] = factor[:, None] * spread["noise"][targets]
        return variance

    @property
    def degrees_of_freedom_(self) -> Any:
        """Trace of the matrix that maps y to fitted values; one for each of several targets."""
        return self._spreads()["degrees_of_freedom"].reshape(self.y_offset_.shape)[()]

    @property
    def noise_variance_(self) -> Any:
        """Residual sum of squares / (n - degrees of freedom); one for each of several targets.

        It comes from sums over rows. With float32 features it is meaningless below about 1e-7 times
        the mean square of y.
        """
        return self._spreads()["noise"].reshape(self.y_offset_.shape)[()]

    def _spreads(self) -> Results:
        """Return factorisations and noise for standard deviations, computed once."""
        if hasattr(self, "_spread"):
            return self._spread
        self._check_fitted()
        self._need_gram("a standard deviation, or the degrees of freedom,")
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
        self._spread = {
            "alphas": alphas,
            "mean": mean[:p],
            "roots": roots,
            "degrees_of_freedom": freedom,
            "noise": np.maximum(residual, 0.0) / (n - freedom),
            "of_intercept": 1.0 / sums[p, p] if self.fit_intercept else 0.0,
        }
        return self._spread


class RandomFeatureRidge(FeatureRegressor):
    """Ridge regression on the features of any transformer: kernel ridge regression in linear time.

    Minimises sum_i w_i (y_i - <z(x_i), coef> - intercept)^2 + alpha |coef|^2 in one pass over the
    data, from sums over tiles of rows. The features of the data are never stored.

    Parameters
    ----------
    features : transformer, default=None
        It is cloned and fitted; wrap it in ``sklearn.frozen.FrozenEstimator`` to use it as it is.
        None is `KernelFeatures()`.
    alpha : float or array-like of shape (n_targets,), default=1.0
        >= 0, added to the diagonal of Z^T W Z; one for all targets or one for each.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    random_state : int, RandomState, Generator or None, default=None
        Passed on to features whose own `random_state` is None.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        "cholesky" sums the Gram matrix of the features in one pass. "cg", conjugate gradients, does
        not need this matrix: each step reads the rows and computes their features again. It works
        for up to a million columns. "auto" is "cg" for more than 16,384 columns, if rows can be
        read again.
    tol : float, default=1e-4
        For "cg": > 0, the norm of the residual of (G + alpha I) c = b, relative to the norm of b.
    max_iter : int, default=1000
        For "cg": >= 1, the largest number of steps.

    Attributes
    ----------
    features_ : transformer
        The fitted features.
    coef_ : ndarray of shape (n_components,) or (n_targets, n_components)
    intercept_ : float or ndarray of shape (n_targets,)
    moments_ : GramAccumulator or CrossAccumulator
        The sums for y - `y_offset_`; with "cholesky" all other results follow from them.
    n_iter_ : int or ndarray of shape (n_targets,)
        Steps of "cg"; 1 for "cholesky", which takes none.
    residual_ : float or ndarray of shape (n_targets,)
        "cg": the relative residual reached, in double precision.
    y_offset_ : ndarray
        The number subtracted from y before it is summed: the unweighted mean of all y, or of the
        first batch if no pass goes before; 0 without an intercept.
    noise_variance_, degrees_of_freedom_ : float or ndarray of shape (n_targets,)
        Computed at first access.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only if all column names of X are strings.

    See Also
    --------
    RandomFeatureRidgeCV : Chooses alpha, and the kernel's parameters.
    sklearn.kernel_ridge.KernelRidge : Exact; time n^3 and memory n^2.

    Notes
    -----
    Time: n p^2 + p^3 / 3 for p components. Memory: about 8 p^2 bytes per thread. The coefficients
    come from a Cholesky factorisation. If it fails, or if the matrix is singular to working
    precision, they come from its eigenvalues: directions that consist of rounding errors are left
    out, and a warning says so. Columns whose mean is much larger than their spread lose digits in
    the sums: centre such columns, or use float64. A warning names such a column if the first rows
    have one.

    "cg" computes the features in each step and takes n p operations. Memory: a tile of features and
    a few hundred vectors of p numbers, most of them for a sketch of the Gram matrix, which reduces
    the number of steps. It has no standard deviations, `partial_fit` or `merge`. Results are
    identical, to the last bit, for any number of threads.

    Ridge regression is the posterior mean for coefficients with prior variance s^2 / alpha and
    noise of variance s^2, which `noise_variance_` estimates. `predict(X, return_std=True)` returns
    the square root of the variance of a new observation,

        s^2 (1 + 1/n + (z - z_mean)^T (G + alpha I)^-1 (z - z_mean) + (k(x, x) - |z|^2) / alpha)

    where 1/n is due to the intercept. The last term is the prior variance of the part of the kernel
    that the features miss. It needs alpha > 0 and features with a `kernel_.diag`, and is omitted
    otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = RandomFeatureRidge(RBFSampler(gamma=5.0), alpha=1e-3, random_state=0)
    >>> model.fit(X, np.sin(6 * X[:, 0])).predict([[0.25]]).round(2)
    array([1.])
    """

    _state = stored(
        _solution=entries(
            alphas=doubles("a", least=0),
            coef_=doubles("p") | doubles("t", "p"),
            intercept_=number() | doubles("t"),
            n_iter=(ints() | ints("t")).if_there(),
            residual=(doubles(finite=False) | doubles("t", finite=False)).if_there(),
        ).if_there()
    )

    def __init__(
        self,
        features: Any = None,
        alpha: float | ArrayLike = 1.0,
        fit_intercept: bool = True,
        random_state: Seed = None,
        *,
        solver: Literal["auto", "cholesky", "cg"] = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
    ):
        self.features = features
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def _start(self, reader: Reader, step: Step | None = None) -> Any:
        check_alphas(self.alpha, "alpha", reader.targets.shape[1:])
        check_choice("solver", self.solver, SOLVERS)
        check_positive("tol", self.tol)
        check_integer("max_iter", self.max_iter, 1)
        if self.solver == "cg":
            check_reread(reader, 'solver="cg"', 'solver="cholesky"')
        if not reader.resume(self):
            self.features_ = reader.fit(self._new_features(), reader.targets)
            self.y_offset_ = self._offset(reader.typical())
            wide = width_of(self.features_, reader.rows) > WIDE and not reader.one_pass
            by_steps = self.solver == "cg" or (self.solver == "auto" and wide)
            self.moments_ = (CrossAccumulator if by_steps else GramAccumulator)(self.features_)
        reader.accumulate(self, self.moments_, step)
        if self._has_gram:
            return None
        return solve_wide(
            Passes(reader, self, step), self.moments_, self._alphas(), self.fit_intercept,
            tol=self.tol, max_iter=self.max_iter, checkpoint=reader.hold(self),
        )  # fmt: skip

    def _alphas(self) -> Doubles:
        alphas = check_alphas(self.alpha, "alpha", self.y_offset_.shape)
        return np.array(np.broadcast_to(alphas, self.y_offset_.size))

    def _system(self, results: Results) -> tuple[Doubles, Doubles]:
        return self.moments_.sums[0], results["alphas"]

    def _solve(self, solved: Any = None) -> Results:
        results: Results = {"alphas": self._alphas()}
        if solved is None:
            return results | self._coefficients(*self._system(results))
        coef, intercept, steps = solved
        shape = self._target_shape
        results |= {
            "n_iter": steps.n_iter.reshape(shape),
            "residual": steps.residual.reshape(shape),
        }
        return results | self._shaped(coef, intercept)

    @property
    def n_iter_(self) -> Any:
        """Steps of conjugate gradients for each target; 1 for "cholesky", which takes none."""
        return self._solved().get("n_iter", np.array(1))[()]

    @property
    def residual_(self) -> Any:
        """Relative residual that conjugate gradients reached, for each target."""
        residual = self._solved().get("residual")
        if residual is None:
            raise AttributeError('a model fitted with solver="cholesky" has no residual_')
        return residual[()]
