"""Kernel ridge regression in one pass, on the first terms of a kernel's series.

On the unit sphere a kernel is a series of harmonics, in a periodic box one of exponentials
(`kernels/fast_sums.py`). All that ridge regression on its first terms needs of the rows are sums of
exponentials of their angles (`passes/exponential_sums.py`): few numbers for any number of rows, the
same for every kernel and alpha.
"""

import copy
import functools
import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._util.extras import needs
from gzkcore._util.state import (
    all_or_nothing,
    doubles,
    entries,
    holds,
    ints,
    number,
    plain,
    stored,
    whole,
)
from gzkcore._util.typing import Data, Doubles, Integers
from gzkcore._util.validation import (
    check_integer,
    check_matrix,
    check_positive,
    dense,
)
from gzkcore._util.wording import counted
from gzkcore.kernels.aliases import WithKernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.fast_sums import SAMPLES, cosine_coefficients, periodic_weights
from gzkcore.kernels.general import KernelFunction, as_exact_kernel
from gzkcore.kernels.split import (
    MOST_COLUMNS,
    Distance,
    NoSplitError,
    distances_of,
    radius_of,
)
from gzkcore.passes.exponential_sums import ExponentialSums
from gzkcore.passes.streams import Reader, Step, valid_rows
from gzkcore.solve.far_features import FarFeatures, Frequencies, Harmonics, Lowest, cut
from gzkcore.solve.solve import conjugate_gradients
from gzkcore.sphere.transforms import zonal_coefficients

from .base import PassLearner, Resumable, Solved
from .regression import Regressor, check_alphas

__all__ = ["SeriesRidge"]

DIGITS = 1e-12  # Transforms of nodes and of predictions have this relative error.
# The grid of the weights is so many times as fine as the frequencies: rough kernels have more.
FINER = 8
FIRST_TOL, LEAST_TOL = 1e-4, 1e-13  # The first and the least tolerance of conjugate gradients.
MOST_LEFT = 1e-3  # Where a box repeats, the kernel is at most this share of k(x, x).
# The noise is at least this share of the standard deviation of y: beside less no error is small.
FLOOR = 1e-3
MOST_DEGREE = SAMPLES // FINER


class SeriesRidge(Resumable, WithKernel, Regressor, PassLearner):
    """Kernel ridge regression on places in one pass, for dense rows of any number.

    The kernel is cut to the first terms of its series: harmonics on the sphere, exponentials in a
    periodic box. One pass over the rows gives sums for every kernel and alpha (`solved_for`), in
    memory that does not depend on the number of rows.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        As for `KernelRidge`, a function of one distance.
    alpha : float or array-like of shape (n_targets,), default=1.0
        > 0, the variance of the noise relative to the kernel's.
    box : array-like of shape (2, d), default=None
        Lowest and highest corner of a periodic box in one to three columns: longer than the rows by
        the reach of the kernel. None: rows are on the unit sphere, see `LatLonToSphere`.
    degree : int, default=128
        >= 1, the highest degree of harmonics, or the highest frequency along the longest side.
    tol : float, default=0.1
        > 0, the largest error that the solution of the equations leaves anywhere, relative to the
        standard deviation of what is predicted there.
    max_iter : int, default=500
        >= 1, the most steps to it.

    Attributes
    ----------
    moments_ : ExponentialSums
        The sums over the rows.
    coef_ : ndarray of shape (n_functions,) or (n_targets, n_functions)
    intercept_ : float or ndarray of shape (n_targets,)
        The mean of y, which is subtracted.
    noise_variance_ : float or ndarray of shape (n_targets,)
        The mean of weights times squared residuals: the variance of the noise of a row of weight 1.
    error_bound_ : float or ndarray of shape (n_targets,)
        The largest error of a prediction, relative to its standard deviation without noise: at most
        `tol`.
    cut_bound_ : float or ndarray of shape (n_targets,)
        The largest standard deviation of the error that the terms left out make as noise at the
        rows, relative to that of a prediction without noise: at most 1.
    missing_std_ : float or ndarray of shape (n_targets,)
        The prior standard deviation of the terms left out, plus that of the error that they make as
        noise at rows of weight 1, at most `cut_bound_` times that of the noise.
    n_iter_ : int or ndarray of shape (n_targets,)
        Steps of conjugate gradients.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only if all column names of X are strings.

    Raises
    ------
    ValueError
        When it is solved: where gaps between the rows leave the solution less exact than `tol`, or
        where the rows tell more than the series can represent.
    ImportError
        Without finufft.

    See Also
    --------
    KernelRidge : The whole kernel, for rows in memory: exact in gaps, and for rough kernels.

    Notes
    -----
    Time: a few hundred nanoseconds a row, then some hundred transforms of degree^3 operations.
    Memory: 256 (degree + 1)^2 bytes and more for each target, 16 (4 degree + 1)^d in d columns.

    Let A = Z^T W Z + alpha I for the functions Z at the rows, and r the residual of A c = b. A
    prediction is off by z^T A^-1 r, at most (z^T A^-1 z)^(1/2) |r| / alpha^(1/2), where the first
    factor times the standard deviation s of the noise is that of the prediction. So the error is at
    most |r| / (s alpha^(1/2)) of it, in gaps too. There directions are nearly free, and steps many.

    What the series leaves out is a kernel, too. Its largest eigenvalue on the rows is about its
    variance times the number of rows that lie closer than the functions can tell apart. Its ratio
    to alpha is `cut_bound_`. Above 1 the rows tell more than the series can represent.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import SeriesRidge
    >>> X = np.random.default_rng(0).standard_normal((5000, 3))
    >>> X /= np.linalg.norm(X, axis=1)[:, None]
    >>> model = SeriesRidge("gaussian", alpha=0.1, degree=20)
    >>> for part in np.split(X, 5):
    ...     _ = model.partial_fit(part, part[:, 0] * part[:, 2])
    >>> model.predict([[0.6, 0.0, 0.8]]).round(2)
    array([0.48])
    """

    _state = stored(
        box=plain().if_there(),
        kernel_=holds(Kernel),
        moments_=holds(ExponentialSums),
        y_offset_=doubles() | doubles("t"),
        _solution=entries(
            coef_=doubles("p") | doubles("t", "p"),
            weights=doubles("w") | doubles("v", "w") | doubles("u", "v", "w"),
            intercept_=number() | doubles("t"),
            noise_variance_=number() | doubles("t"),
            error_bound_=number() | doubles("t"),
            cut_bound_=number() | doubles("t"),
            missing_std_=number() | doubles("t"),
            n_iter_=whole() | ints("t"),
        ).if_there(),
    )

    coef_ = Solved()
    intercept_ = Solved()
    noise_variance_ = Solved()
    error_bound_ = Solved()
    cut_bound_ = Solved()
    missing_std_ = Solved()
    n_iter_ = Solved()

    _rows_at_once = 1 << 20  # of an array: each time takes an FFT
    kernel_: Kernel
    moments_: ExponentialSums
    y_offset_: Doubles

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "gaussian",
        alpha: float | ArrayLike = 1.0,
        *,
        box: ArrayLike | None = None,
        degree: int = 128,
        tol: float = 0.1,
        max_iter: int = 500,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.box = box
        self.degree = degree
        self.tol = tol
        self.max_iter = max_iter

    @property
    def _target_shape(self) -> tuple[int, ...]:
        return self.y_offset_.shape

    def _columns(self, X: Any, reset: bool = False) -> Any:
        return valid_rows(dense(super()._columns(X, reset)))

    def _summands(self, X: Any, y: Any, sample_weight: Any) -> Any:
        return X, y - self.y_offset_, sample_weight

    def _fit(self, reader: Reader, step: Step) -> None:
        self._start(reader, step)
        self._solved()

    def _for_workers(self, return_std: bool = False) -> Self:
        self._solved()
        model = super()._for_workers()
        model.moments_ = self.moments_._emptied()
        model.moments_.extent = self.moments_.extent
        return model

    def _start(self, reader: Reader, step: Step | None = None) -> None:
        needs("finufft", "SeriesRidge", "maps")
        check_integer("degree", self.degree, 1)
        check_integer("max_iter", self.max_iter, 1)
        check_positive("tol", self.tol)
        if not reader.resume(self):
            self.kernel_ = reader.resolve(as_exact_kernel(self.kernel))
            self.y_offset_ = np.asarray(np.average(reader.targets, axis=0, weights=reader.weight))
            self.moments_ = ExponentialSums(*self._place(reader.rows.shape[1]))
            self._series()  # raises for what has none
        reader.accumulate(self, self.moments_, step)

    def _place(self, dim: int) -> tuple[Doubles | None, list[int]]:
        """Return the box and twice the highest frequencies."""
        if self.box is None:
            if dim != 3:
                raise ValueError(
                    f"X has {counted(dim, 'column')}, but the unit sphere has 3; pass "
                    "LatLonToSphere().transform(places), or a box"
                )
            if self.degree > MOST_DEGREE:
                raise ValueError(f"degree={self.degree} is too large; use at most {MOST_DEGREE}")
            return None, [2 * self.degree] * 2
        box = check_matrix("box", self.box)
        if box.shape != (2, dim) or dim > MOST_COLUMNS or not (box[0] < box[1]).all():
            raise ValueError(
                f"box={self.box!r} must be the lowest and the highest corner, of shape (2, {dim}), "
                f"in at most {MOST_COLUMNS} columns"
            )
        sides = box[1] - box[0]
        highest = np.maximum(1, np.round(self.degree * sides / sides.max())).astype(int)
        return box, [2 * each for each in highest.tolist()]

    @all_or_nothing
    def partial_fit(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add a batch of rows to those seen so far, and return self.

        If an error or an interrupt occurs, nothing changes. Equations are solved when first asked.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        if self._continues(X):
            summands = self._summands(*self._rows(X, y, sample_weight))
            self._outdate()
            self.moments_ = copy.copy(self.moments_).add(*summands)
            return self
        reader = Reader(X, y, sample_weight, one_pass=True)
        reader.begin(self)
        self._start(reader)
        return self

    @all_or_nothing
    def merge(self, other: Self) -> Self:
        """Add the rows that another model has seen, and return self; the other is not changed.

        Both need the same degree and box. Kernel and alpha remain those of this model.
        """
        offset = self._offset_of(other)
        self.moments_ = copy.copy(self.moments_).merge(other.moments_.shifted(offset))
        self._outdate()
        return self

    def solved_for(
        self, kernel: str | Kernel | KernelFunction | None = None, alpha: Any = None
    ) -> Self:
        """Return a model of the same rows with another kernel or alpha; no row is read again.

        Parameters
        ----------
        kernel : str or Kernel, optional
            With numbers for its parameters; None: that of this model.
        alpha : float or array-like of shape (n_targets,), optional
            None: that of this model.
        """
        self._check_fitted()
        made = copy.copy(self)
        made._outdate()
        if kernel is not None:
            made.kernel = kernel
            some = np.eye(self.n_features_in_)
            made.kernel_ = as_exact_kernel(kernel).resolve(some)
            if repr(made.kernel_) != repr(as_exact_kernel(kernel).resolve(2 * some)):
                raise ValueError(
                    f"kernel={kernel!r} takes parameters from rows, but no rows are kept; "
                    "pass numbers"
                )
        if alpha is not None:
            made.alpha = alpha
        made._solved()
        return made

    # ---- the series and its solution

    def _series(self) -> tuple[Doubles, float, float]:
        """Return weights of the functions, the largest other one, and the variance left out."""
        moments, dim, highest = self.moments_, int(self.n_features_in_), self._highest()
        distance = self._distance()
        if distance is None or moments.box is None:
            t = np.pi * np.arange(SAMPLES + 1) / SAMPLES
            meridian = np.stack([np.sin(t), np.zeros_like(t), np.cos(t)], axis=1)
            values: Any = self.kernel_(meridian, meridian[:1])
            cosines = cosine_coefficients(values[:, 0])[: FINER * highest[0] + 1]
            first, others = np.split(zonal_coefficients(cosines), [highest[0] + 1])
            total = float((2 * np.arange(len(first)) + 1) @ np.maximum(first, 0.0)) / (4 * np.pi)
        else:
            sides = (moments.box[1] - moments.box[0]) * distance.scale
            others = periodic_weights(distance.on_grid, sides, [FINER * most for most in highest])
            first = cut(others, highest)
            others[np.ix_(*[np.arange(-most, most + 1) for most in highest])] = 0.0
            total = float(np.maximum(first, 0.0).sum())
        own = float(self.kernel_.diag(np.eye(1, dim))[0])
        return first, max(float(others.max()), 0.0), max(own - total, 0.0)

    def _highest(self) -> list[int]:
        """Return the highest degree, or frequencies."""
        highest = [most // 2 for most in self.moments_.highest]
        return highest[:1] if self.moments_.box is None else highest

    def _distance(self) -> Distance | None:
        """Return the distance of which the kernel is a function; None on the sphere."""
        dim = int(self.n_features_in_)
        form, unit = self.kernel_.tile_form(dim), np.eye(dim)
        try:
            if form and self.moments_.box is None and radius_of(form, unit, unit) is not None:
                return None
            if form and self.moments_.box is not None:
                distances = distances_of(form, dim)
                if len(distances) == 1 and distances[0].columns == tuple(range(dim)):
                    distances[0].profile(np.zeros(1))
                    return distances[0]
        except NoSplitError:
            pass
        raise ValueError(
            f"kernel={self.kernel!r} is no function of one distance between all columns; use one "
            "such as Matern(nu=1.5, length_scale=0.1), or KernelRidge"
        )

    def _check_box(self, X: Any = None) -> None:
        """Raise if the kernel reaches round the box, from rows or new rows X to other rows."""
        if self.moments_.box is None:
            return
        low, high = self.moments_.extent
        gap = np.diff(self.moments_.box, axis=0)[0] - (high - low)
        if X is not None:
            gap -= np.maximum(np.maximum(low - X.min(axis=0), X.max(axis=0) - high), 0.0)
        at = np.diag(gap)
        reached = np.abs(self.kernel_(at, np.zeros((1, len(gap))))[:, 0]) / self.kernel_.diag(at)
        if (reached > MOST_LEFT).any():
            column = int(reached.argmax())
            beyond = "" if X is None else " and new ones beyond them"
            raise ValueError(
                f"the box is longer than the rows{beyond} by {gap[column]:g} in column {column}, "
                f"where kernel={self.kernel_!r} is {reached[column]:.2g} of its largest value, "
                "and opposite ends would be neighbours; pass a longer box, or a shorter length"
            )

    def _features(self, angles: Any, weights: Doubles) -> FarFeatures:
        kind = Harmonics if self.moments_.box is None else Frequencies
        return kind(angles, weights, DIGITS, np.arange(len(angles[0])))

    def _solve(self) -> dict[str, Any]:
        alpha = check_alphas(self.alpha, "alpha", self._target_shape)
        if not (alpha > 0).all():
            raise ValueError(f"alpha={self.alpha!r} must be > 0: without noise gaps have no bound")
        self._check_box()
        moments, shape = self.moments_, self._target_shape
        count, total = moments.totals[:2].tolist()
        means = moments.sums[1:].reshape(len(moments.sums) - 1, -1)[:, 0] / total
        centred = moments.shifted(-means)
        # From here on weights have the mean 1 and targets the variance 1.
        weight, variances = total / count, centred.totals[2:] / total
        scale = np.sqrt(np.where(variances > 0, variances, 1.0))
        angles, of_nodes = centred.nodes()
        of_nodes /= weight * np.concatenate([[1.0], scale])
        alphas = np.broadcast_to(alpha, len(means)) / weight
        weights, after, left_out = self._series()
        features = self._features(angles, weights)
        together, dense = self._most_together(angles, of_nodes[:, :1])
        cut = max(left_out * together, after * dense) / alphas
        self._check_series(float(cut.max()))
        b = features.transposed_product(of_nodes[:, 1:])

        def product(V: Doubles) -> Doubles:
            return features.transposed_product(of_nodes[:, :1] * features.product(V))

        lowest = Lowest(features, of_nodes[:, 0], alphas)
        coef, steps = np.zeros_like(b), np.zeros(len(means), np.intp)
        tol, length = FIRST_TOL, np.linalg.norm(b, axis=0)
        while True:
            solution = conjugate_gradients(
                product, b, alphas, preconditioner=lowest, tol=max(tol, LEAST_TOL),
                max_iter=int(max(1, self.max_iter - steps.max())), start=coef,
            )  # fmt: skip
            coef, steps = solution.coef, steps + solution.n_iter
            residual = b - product(coef) - alphas * coef
            # |y - Z c|^2 = y^T y - c^T b - c^T (b - Z^T Z c), of unit weights
            rss = count - (coef * (b + residual + alphas * coef)).sum(axis=0)
            noise = np.maximum(rss / count, FLOOR**2)
            allowed = np.sqrt(alphas * noise)
            bound = np.linalg.norm(residual, axis=0) / allowed
            if (bound <= self.tol).all():
                break
            tol = float((0.5 * self.tol * allowed / length).min())
            if steps.max() >= self.max_iter or tol < LEAST_TOL or not solution.n_iter.any():
                errors = features.product(lowest.solve(residual, np.arange(len(means))))
                self._refuse(bound, steps, errors, angles)
        noise *= variances * weight
        of_targets = {
            "intercept_": self.y_offset_.ravel() + means, "noise_variance_": noise,
            "error_bound_": bound, "cut_bound_": cut, "n_iter_": steps,
            "missing_std_": np.sqrt(noise) * (np.sqrt(left_out / alpha) + cut),
        }  # fmt: skip
        return {
            "coef_": (coef * scale).T.reshape(*shape, -1),
            "weights": weights,
            **{name: value.reshape(shape)[()] for name, value in of_targets.items()},
        }

    def _most_together(self, angles: Any, of_nodes: Doubles) -> tuple[float, float]:
        """Return the largest number of rows too close for the functions, and its density.

        Rows are summed with a bump of twice the frequencies, (sin(N t / 2) / (N sin(t / 2)))^4.
        """
        axes = []
        for most in self._highest():
            half = np.pi / 4 / most * np.arange(1, 2 * most + 1)
            bump = (np.sin((most + 1) * half) / ((most + 1) * np.sin(half))) ** 4
            axes.append(cosine_coefficients(np.concatenate([[1.0], bump])))
        if self.moments_.box is None:
            weights = zonal_coefficients(axes[0])
        else:
            halves = [np.concatenate([a[:1], a[1:] / 2, a[:0:-1] / 2]) for a in axes]
            weights = functools.reduce(np.multiply.outer, halves)
        bumps = self._features(angles, weights)
        together = float(bumps.product(bumps.transposed_product(of_nodes)).max())
        return together, together / float(weights.flat[0])  # over the integral of the bump

    def _check_series(self, largest: float) -> None:
        """Raise if the remaining series has an eigenvalue on the rows larger than the noise."""
        if largest > 1:
            raise ValueError(
                f"degree={self.degree} cuts kernel={self.kernel_!r} where the rows tell "
                f"{largest:.2g} times as much as the noise, alpha={self.alpha!r}; pass a higher "
                "degree, or use KernelRidge, which takes the whole kernel"
            )

    def _refuse(self, bound: Doubles, steps: Integers, errors: Doubles, angles: Any) -> None:
        """Raise for gaps, with the place where the solution is least exact."""
        node = int(np.abs(errors).max(axis=1).argmax())
        place = [float(axis[node]) for axis in angles]
        if self.moments_.box is None:
            where = f"latitude {90 - math.degrees(place[1]):.3g}, "
            where += f"longitude {(math.degrees(place[0]) + 180) % 360 - 180:.3g}"
        else:
            low, high = self.moments_.box
            at = low + np.array(place) / (2 * np.pi) * (high - low)
            where = ", ".join(f"{number:.4g}" for number in at)
        raise ValueError(
            f"after {int(steps.max())} steps predictions may be off by {bound.max():.2g} of their "
            f"standard deviations, most likely near {where}, but tol={self.tol:g}: the rows leave "
            "gaps. Use KernelRidge, whose steps do not depend on them, or a larger alpha, a larger "
            "max_iter, or a lower degree"
        )

    def _predict(self, X: Any, return_std: bool) -> tuple[Doubles, Doubles | None]:
        if return_std:
            raise ValueError(
                "SeriesRidge has no standard deviations; use KernelRidge, or return_std=False"
            )
        solution = self._solved()
        angles = self.moments_.angles(X)
        self._check_box(X)
        features = self._features(angles, solution["weights"])
        mean = features.product(np.atleast_2d(solution["coef_"]).T)
        mean += np.atleast_1d(solution["intercept_"])
        return mean, None
