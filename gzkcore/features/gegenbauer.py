"""Features for generalized zonal kernels: random directions, exact harmonics, or both.

`GegenbauerFeatures` writes a kernel as k(x, y) = sum over (l, i) of h_(l,i)(|x|) h_(l,i)(|y|)
P_d^l(cos) and turns each (l, i) into columns in one of two ways:

- exactly: h_(l,i)(|x|) alpha^(-1/2) Y_j(x/|x|) for the alpha(l, d) harmonics of degree l;
- at random: for a direction w, sum_l s_l sqrt(alpha) h_(l,i)(|x|) P_d^l(<x/|x|, w>) / sqrt(m),
  unbiased over w (Definition 8 of Han, Zandieh, Avron). The signs s = (+, +, -, -, ...) do not
  change the kernel, since different degrees are uncorrelated, and remove the spike at w = x.

The error predicted from the energies of the (l, i), and from how evenly the directions are spread,
decides which columns are exact.
"""

import copy
import math
import numbers
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.sparse.linalg import LinearOperator
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gzkcore._compiled import gegenbauer as _gegenbauer
from gzkcore._util.random import as_seed_sequence, generator
from gzkcore._util.state import doubles, has, ints, number, plain, stored, text, whole
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats, Integers, Rows, Seed
from gzkcore._util.validation import (
    as_floats,
    check_array,
    check_choice,
    check_integer,
    check_positive,
    dense,
)
from gzkcore._util.warn import warn
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.radial import SPHERE, RadialFunctions
from gzkcore.kernels.truncation import truncate
from gzkcore.kernels.zonal import Zonal
from gzkcore.sphere.directions import POINT_SETS, PointSet, sample_directions, sphere_quadrature
from gzkcore.sphere.special import alpha, log_alpha

from .base import (
    TruncationWarning,
    plain_output,
    random_pairs,
    tiles,
    values_of_pairs,
)
from .block import BlockProjection
from .fit_rows import FitRows
from .gegenbauer_base import GegenbauerMap
from .gegenbauer_columns import features_in_halves, gegenbauer_features
from .gegenbauer_layout import (
    BASES,
    INTERPOLATION_ERROR,
    Basis,
    Layout,
    adapted,
    choose,
    degrees_to_fill,
    n_columns,
    of_directions,
    of_harmonics,
)
from .polar import reduce_rows
from .principal_axes import error_on_sample, rows_for_errors

__all__ = [
    "GegenbauerFeatures",
    "PublishedGegenbauerFeatures",
    "feature_operator",
    "features_in_halves",
    "gegenbauer_features",
]

# Pairs of rows on which the error of a projection is measured.
_SAMPLE_PAIRS = 1000


class GegenbauerFeatures(GegenbauerMap):
    """Features for a generalized zonal kernel: exact harmonics, random directions, or both.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        An alias such as "gaussian", or an instance from `gzkcore.kernels`.
    n_components : int, default=1024
        Width of the output, exactly.
    basis : {"auto", "harmonic", "random", "hybrid", "adapted"}, default="auto"
        - "harmonic": radial functions times explicit spherical harmonics, strongest columns first;
          without variance.
        - "random": Definition 8 with alternating signs, compressed radial functions and evenly
          spread directions; unbiased.
        - "hybrid": the strongest harmonics exactly, the rest by random sampling; unbiased.
        - "auto": the one of these with the smallest predicted error.
        - "adapted": depends on the data, which are first rotated to their principal axes (this
          changes no kernel value). 16 n_components harmonics are evaluated on at most 2,048
          training rows, and the quarter with the largest mean squares is kept. The principal axes
          of their Gram matrix, on at most 8 n_components rows, compress them to n_components
          columns.
    directions : {"auto", "iid", "orthogonal", "sobol", "fibonacci"}, default="auto"
        Point set for random columns; see `gzkcore.sphere.directions`.
    radius : float or (float, float), optional
        The largest distance of rows from the centre, or the smallest and the largest, in the units
        of the data. None: computed from the training rows. With a radius and a numeric gamma the
        map does not depend on the data at all.
    center : "auto", None or array-like of shape (n_features,), default="auto"
        The point that is subtracted first, for shift-invariant kernels only, which lowers the
        degree that is needed and changes no kernel value. "auto": the mean of the data, or nothing
        if they are on a sphere around the origin or `radius` is given.
    reduce : None, int, transformer or "auto", default=None
        Reduces the columns before the expansion. An int k: a sparse random projection to k columns,
        `BlockProjection`. A transformer: cloned and fitted. "auto": k = n_components if there are
        at least 2 n_components columns, else no reduction. `reduction_error_` is the error that the
        reduction adds.
    tol : float or "auto", default="auto"
        Degrees are added until the error is below tol, if n_components allows. "auto" is 1e-12 for
        float64, 1e-7 for float32 and for basis="random". Remaining columns hold further degrees.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with all parameters as numbers.
    basis_ : str
        "harmonic", "random", "hybrid" or "adapted".
    degree_, order_ : int
        Highest degree in use, and largest number of radial functions of any degree.
    radius_ : float
        In the units of the data.
    center_ : ndarray of shape (dim_,) or None
    reducer_ : transformer or None
    dim_ : int
        Dimension of the expansion: columns after `reduce`.
    reduction_error_ : float
        Root mean square, over 1,000 pairs of training rows, of the change of k(x, y) by `reducer_`.
    n_exact_ : int
        Columns without variance.
    n_directions_ : ndarray of int
        Directions for each family of radial functions.
    n_effective_ : int
        Columns that are not zero.
    truncation_error_ : float
        A certified bound: truncation changes no kernel value by more than this, for points whose
        norms are in the fitted range, after `reduce` (in float64; float32 adds its rounding). For
        basis="adapted" it is the largest error over the training rows.
    expected_error_ : float
        Root mean square of z(x).z(y) - k(x, y) over directions, projections, and random pairs with
        the norms of the data; larger on data that are concentrated in few directions.

    Notes
    -----
    Cost per row: about 5 flops for each exact column, 2 (d + 2q) for each random column, where q is
    the degree; for basis="adapted" BLAS multiplies by a matrix. Memory: the output and tiles of a
    few megabytes.

    basis="random" and "hybrid" are unbiased up to `truncation_error_`. For m independent directions
    the mean squared error over random pairs is (E k(x,x) E k(y,y) - E k(x,y)^2) / m; evenly spread
    directions have less. basis="harmonic" is deterministic.

    References
    ----------
    Han, Zandieh, Avron, Random Gegenbauer Features for Scalable Kernel Methods, Definitions 3 and
    8, Lemma 5.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian, GegenbauerFeatures
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> features = GegenbauerFeatures(Gaussian(gamma=0.5), n_components=256, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> features.basis_, bool(np.abs(Z @ Z.T - features.kernel_(X)).max() < 1e-12)
    ('harmonic', True)
    """

    _state = stored(
        reduce=(plain() | has("transform")).if_there(),
        basis_=text(*BASES),
        degree_=whole(0),
        n_exact_=whole(0),
        n_directions_=ints(None),
        n_effective_=whole(0),
        reduction_error_=number(finite=False),
    )

    basis_: str
    degree_: int
    n_exact_: int
    n_directions_: Integers

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        n_components: int = 1024,
        *,
        basis: Basis = "auto",
        directions: PointSet | Literal["auto"] = "auto",
        radius: float | tuple[float, float] | None = None,
        center: Literal["auto"] | ArrayLike | None = "auto",
        tol: float | Literal["auto"] = "auto",
        reduce: int | Literal["auto"] | Any = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(kernel, n_components, random_state=random_state)
        self.reduce = reduce
        self.basis = basis
        self.directions = directions
        self.radius = radius
        self.center = center
        self.tol = tol

    def shared_basis(self, kernels: Iterable[Kernel]) -> "GegenbauerFeatures | None":
        """Return a map whose columns, rescaled, are the features of each of these kernels.

        On a sphere a zonal kernel enters exact features as one factor per column only, so that one
        Gram matrix of the base serves every kernel (see `column_scales`, `rescaled`).

        Returns
        -------
        GegenbauerFeatures or None
            None where that is not so: random columns, or norms that differ.
        """
        check_is_fitted(self, "kernel_")
        low, high = self._layout.radial.shell
        on_sphere = high - low <= 1e-5 * high
        if self.basis_ != "harmonic" or not on_sphere:
            return None
        for kernel in (self.kernel_, *kernels):
            if np.ndim(kernel.scale()) > 0:
                return None
        base = copy.copy(self)
        counts = degrees_to_fill(self._n_features_out, self.dim_)
        zonal = Zonal(coefficients=alpha(np.arange(len(counts)), self.dim_))
        radial = RadialFunctions(zonal, self.dim_, (1.0, 1.0), np.ones(1), 0, 0.0, len(counts) - 1)
        base._layout = of_harmonics(radial, np.arange(len(counts)), counts)
        return base

    def column_scales(self, kernel: Kernel) -> Doubles:
        """Return the factors of the base's columns for a resolved kernel."""
        layout = self.rescaled(kernel)._layout
        rim = np.full(1, layout.radial.shell[1])
        scales = np.zeros(self._n_features_out)  # 0 for free columns
        values = layout.radial.exact(rim, layout.functions)[0] * layout.weights
        scales[: layout.counts.sum()] = np.repeat(values, layout.counts)
        return scales

    def rescaled(self, kernel: Kernel) -> "GegenbauerFeatures":
        """Return the fitted features of another resolved kernel, in the base's columns."""
        counts = degrees_to_fill(self._n_features_out, self.dim_)
        other = copy.copy(self)
        other.kernel = other.kernel_ = kernel
        rim = self.radius_ * other._polar.unit
        radial = RadialFunctions(
            kernel, self.dim_, (rim, rim), np.full(1, rim), 0, 0.0, len(counts) - 1
        )
        functions, layout = np.arange(len(counts)), self._layout
        if np.array_equal(layout.functions, functions) and np.array_equal(layout.counts, counts):
            other._take(replace(layout, radial=radial))  # a base has this layout already
        else:
            other._take(of_harmonics(radial, functions, counts))
        return other

    def column_energies(self) -> Doubles:
        """Return the mean squares of the exact columns for uniform directions.

        They decrease from column to column if all columns are exact.
        """
        check_is_fitted(self, "kernel_")
        radial, functions = self._layout.radial, self._layout.functions
        levels = radial.degree[functions]
        density = radial.energy[functions] * np.exp(-log_alpha(levels, self.dim_))
        return np.repeat(density, self._layout.counts)

    def narrowed(self, width: int) -> "GegenbauerFeatures":
        """Return these features, without random columns, with the first `width` columns only."""
        check_is_fitted(self, "kernel_")
        layout = self._layout
        before = np.cumsum(layout.counts) - layout.counts
        blocks = int(np.searchsorted(before, width))
        counts = np.minimum(layout.counts, width - before)[:blocks]
        other = copy.copy(self)
        other.n_components = other._n_features_out = width
        other._take(of_harmonics(layout.radial, layout.functions[:blocks], counts))
        return other

    def _choose_reducer(self, X: Rows) -> Any:
        self.reduction_error_ = 0.0
        reduce, dim = self.reduce, X.shape[1]
        if isinstance(reduce, str):
            if reduce != "auto":
                raise ValueError(
                    f"reduce={reduce!r} is unknown; use None, 'auto', an integer or a transformer"
                )
            reduce = self._n_features_out if dim > 2 * self._n_features_out else None
        if reduce is None:
            return None
        if self.kernel_.unit_sphere or np.ndim(self.kernel_.scale()) > 0:
            raise ValueError(
                f"reduce={self.reduce!r} mixes columns, but {self.kernel_!r} needs unit rows, or "
                "has one scale per column; use reduce=None"
            )
        if isinstance(reduce, numbers.Integral):
            k = check_integer("reduce", reduce, 1)
            seed = int(as_seed_sequence(self.random_state).generate_state(2)[1])
            reduce = BlockProjection(k, random_state=seed)
        elif not hasattr(reduce, "transform") or isinstance(reduce, type):
            raise TypeError(
                f"reduce={reduce!r} is not a transformer; use None, 'auto', an integer or an "
                "instance"
            )
        reducer = plain_output(clone(reduce)).fit(X)
        first, second = random_pairs(X.shape[0], _SAMPLE_PAIRS)
        a, b = X[first], X[second]
        change = values_of_pairs(self.kernel_, reduce_rows(reducer, a), reduce_rows(reducer, b))
        change -= values_of_pairs(self.kernel_, a, b)
        self.reduction_error_ = float(np.sqrt(np.mean(np.square(change))))
        return reducer

    def _choose_tol(self, dtype: DTypeLike) -> float:
        if not isinstance(self.tol, str):
            return check_positive("tol", self.tol)
        if self.tol != "auto":
            raise ValueError(f"tol={self.tol!r} is unknown; use a number > 0 or 'auto'")
        # One value for random columns: they are less accurate, and draws don't depend on the dtype.
        return 1e-12 if dtype == np.float64 and self.basis != "random" else 1e-7

    def _choose_center(self, rows: FitRows) -> Doubles | None:
        if not self.kernel_.shift_invariant or self.center is None:
            return None
        if not isinstance(self.center, str):
            center = as_floats("center", self.center).astype(np.float64)
            if center.shape != (self.n_features_in_,) or not np.isfinite(center).all():
                raise ValueError(
                    f"center={self.center!r} must be {self.n_features_in_} finite numbers, "
                    "one per column"
                )
            return np.asarray(reduce_rows(self.reducer_, center[None])[0])
        if self.center != "auto":
            raise ValueError(
                f"center={self.center!r} is unknown; use 'auto', None or one number a column"
            )
        if self.radius is not None:
            return None
        self.center_ = None
        around_origin = self._norms(rows)
        self.center_ = np.asarray(reduce_rows(self.reducer_, rows.mean[None])[0])
        largest = around_origin.max()
        thin = largest - around_origin.min() <= SPHERE * largest
        # The mean is the better centre of a small cap of a sphere, or a cloud far from the origin.
        return None if thin and self._norms(rows).max() > 0.1 * largest else self.center_

    def _expand(self, shell: tuple[float, float], norms: Doubles, near: float, X: Rows) -> None:
        check_choice("basis", self.basis, BASES)
        check_choice("directions", self.directions, ("auto", *POINT_SETS))
        width, tol = self._n_features_out, self._tol
        wide = n_columns(self.basis, width)
        radial = RadialFunctions(self.kernel_, self.dim_, shell, norms, wide, tol, near=near)
        seeds = as_seed_sequence(self.random_state)
        layout, error = choose(radial, width, self.basis, self.directions, tol, seeds)
        if self.basis == "adapted":
            layout = adapted(layout, X, width, self._polar, generator(self.random_state))
        self._take(layout)
        if layout.families:
            self.expected_error_ = math.hypot(error, self.reduction_error_)
        if layout.axes is not None:
            self._measure(X)
        if shell[1] > radial.reach * (1 + SPHERE):
            unit = self._polar.unit
            warn(
                f"points lie up to {shell[1] / unit:.4g} from the centre, which is so many "
                f"lengthscales that features are nearly 0 beyond {radial.reach / unit:.4g}; use a "
                "larger lengthscale (a smaller gamma), or RandomFourierFeatures",
                TruncationWarning,
            )

    def _take(self, layout: Layout) -> None:
        """Set the layout, and the fitted attributes that describe it."""
        self._layout = layout
        self.__dict__.update(layout.attributes())
        if layout.axes is None:
            self.truncation_error_ = layout.truncation_error
            if not layout.families:
                self.expected_error_ = math.hypot(layout.missing, self.reduction_error_)

    def _measure(self, X: Rows) -> None:
        """Set the errors of columns that are adapted to X to those on some rows of it."""
        sample = rows_for_errors(X)
        unit, norms = self._polar(sample)
        Z = np.empty((sample.shape[0], self._n_features_out), dtype=X.dtype)
        self._layout.fill(unit, norms, Z, False)
        self.expected_error_ = error_on_sample(self.kernel_(dense(sample)), Z)
        mine = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
        missing = self._layout.radial.diagonal(norms) - mine
        self.truncation_error_ = float(max(missing.max(), 0.0)) + INTERPOLATION_ERROR

    def _flops(self, density: float) -> float:
        dim, entries = float(self.dim_), density * float(self.n_features_in_)
        flops: float = 0.0 if self.reducer_ is None else 2 * entries * dim
        if (axes := self._layout.axes) is not None:
            return flops + float(5 * axes.shape[0] + 2 * axes.size)
        n_directions = float(self.n_directions_.sum())
        return flops + 5 * self.n_exact_ + 2 * (dim + 2 * self.degree_) * n_directions

    def _about(self) -> str:
        basis = f"{self.basis_} basis of degree {self.degree_}"
        if self.reducer_ is None:
            return basis
        return f"{self.n_features_in_} columns reduced to {self.dim_}, {basis}"


class PublishedGegenbauerFeatures(GegenbauerMap):
    """Random Gegenbauer features as published (Definition 8), for comparison.

    Independent directions, all signs plus, monomial radial functions. i runs from 0 (with the
    printed 1..s of Eq 22 and 23 the kernel would be another).

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
    n_components : int, default=1024
        A multiple of `order`: m = n_components / order directions.
    degree : int
        q >= 0; degrees 0..q.
    order : int
        s >= 1; radial functions i = 0..s-1 of each degree (1 for zonal kernels).
    radius : float, optional
        As for `GegenbauerFeatures`; only the reported errors depend on it.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_, radius_, truncation_error_, expected_error_
        As for `GegenbauerFeatures`.
    directions_ : ndarray of shape (m, n_features)

    Notes
    -----
    Columns are grouped by radial function: column i m + j is direction j, function i.
    Unbiased for the truncated kernel; the data are not centred. Cost per row 2 m s (d + 2 q) flops.

    References
    ----------
    Han, Zandieh, Avron, Definition 8, Eq 19, 22, 23.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import PublishedGegenbauerFeatures
    >>> X = np.eye(3)
    >>> features = PublishedGegenbauerFeatures(n_components=64, degree=8, order=4, random_state=0)
    >>> features.fit_transform(X).shape
    (3, 64)
    """

    _state = stored(directions_=doubles("m", "dim_"))

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        n_components: int = 1024,
        *,
        degree: int,
        order: int,
        radius: float | tuple[float, float] | None = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(kernel, n_components, random_state=random_state)
        self.degree = degree
        self.order = order
        self.radius = radius

    def _choose_tol(self, dtype: DTypeLike) -> float:
        return float(np.finfo(dtype).eps)

    def _expand(self, shell: tuple[float, float], norms: Doubles, near: float, X: Rows) -> None:
        degree = check_integer("degree", self.degree, 0)
        self.order_ = order = check_integer("order", self.order, 1)
        if self.kernel_.separable and order > 1:
            raise ValueError(
                f"order={order} is not possible for a zonal kernel, which has one radial function; "
                "use order=1"
            )
        if self.n_components % order:
            below = self.n_components // order * order
            widths = f"{below} or {below + order}" if below else f"{order}"
            raise ValueError(
                f"n_components={self.n_components} is not a multiple of order={order}; "
                f"use n_components={widths}"
            )
        dim = self.dim_
        radial = RadialFunctions(
            self.kernel_, dim, shell, norms, 0, 0.0, max_degree=degree, order=order
        )
        m = self.n_components // order
        W = sample_directions(m, dim, "iid", as_seed_sequence(self.random_state))
        self.directions_, self._layout = W, of_directions(radial, W, order)
        self.truncation_error_ = self._layout.truncation_error
        # Cross moments E h_(l,i) h_(l,j): the radial functions share their directions here.
        values = radial.exact(norms).reshape(norms.size, degree + 1, order)
        cross = np.einsum("nli,nlj->lij", values, values) / norms.size
        sizes = np.maximum(alpha(np.arange(degree + 1), dim), 1.0)  # 1: of no harmonics, cross is 0
        kernel_part = float(np.sum(np.square(cross).sum(axis=(1, 2)) / sizes))
        error = (np.square(cross.sum(axis=0)).sum() - kernel_part) / m
        self.expected_error_ = math.sqrt(max(float(error), 0.0))


def feature_operator(
    X: ArrayLike,
    kernel: str | Kernel = "gaussian",
    *,
    degree: int | None = None,
    order: int | None = None,
) -> LinearOperator:
    """Operator Phi of a data set, over a quadrature of the sphere (Eq 14-16).

    Phi v = sum_j v_j phi_(x_j) is a function on the sphere with s values at each w. It is
    represented by its values at the nodes of `sphere_quadrature`, times the square roots of the
    weights. So plain dot products are the inner product of L2(S^(d-1), R^s), and Phi* is the
    transpose. Phi* Phi = K, exactly for the kernel truncated at `degree` and `order`.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Low dimension: the rule has (2 degree + 1) (degree + 1)^(d-2) nodes.
    kernel : str or Kernel, default="gaussian"
    degree, order : int, optional
        q and s; by default as `truncation.truncate` chooses for 1e-10 at the largest norm.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator of shape (m * order, n)
        Row i m + j is radial function i at node j. Nothing of this size is stored: a product costs
        O(n m order (d + degree)). It has the attributes nodes, weights, degree and order, which
        `theory.ridge_leverage` uses.

    References
    ----------
    Han, Zandieh, Avron, Eq 14 (Phi), Eq 15 (Phi*), Eq 16 (its rows).

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian
    >>> from gzkcore.features.gegenbauer import feature_operator
    >>> X = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
    >>> phi = feature_operator(X, Gaussian(gamma=0.5))
    >>> K = phi.T @ (phi @ np.eye(2))
    >>> bool(np.allclose(K, Gaussian(gamma=0.5)(X), atol=1e-9))
    True
    """
    rows: Doubles = check_array(X, dtype=np.float64)
    resolved = as_kernel(kernel).resolve(rows)
    if degree is None or order is None:
        furthest = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))
        chosen = truncate(resolved, rows.shape[1], max(furthest, 1e-6), 1e-10)
        degree = chosen[0] if degree is None else degree
        order = chosen[1] if order is None else order
    degree, order = check_integer("degree", degree, 0), check_integer("order", order, 1)
    nodes, weights = sphere_quadrature(rows.shape[1], 2 * degree)
    m = weights.size
    features = PublishedGegenbauerFeatures(resolved, order, degree=degree, order=order).fit(rows)
    sizes = np.sqrt(alpha(np.arange(degree + 1), rows.shape[1]))[:, None]
    columns = np.ascontiguousarray(nodes.T)
    root = np.tile(np.sqrt(weights), order)
    pieces = list(tiles(rows.shape[0], 8 * (degree + 1) * order))

    def factors(tile: slice) -> tuple[Floats, Doubles, Doubles]:
        """Return unit rows, the nodes, and the factors of P_d^l for each row."""
        unit, norms = features._polar(rows[tile], tile.start)
        values = features._layout.radial.exact(norms).reshape(norms.size, degree + 1, order)
        return unit, columns, values * sizes

    def threads(v: Doubles) -> int:
        return n_threads(rows.shape[0] * root.size * (degree + v.shape[1]))

    def apply(v: Doubles) -> Doubles:
        values = np.zeros((order, m, v.shape[1]))
        v = np.ascontiguousarray(v, dtype=np.float64)
        for tile in pieces:
            _gegenbauer.apply_operator(*factors(tile), v[tile], values, threads(v))
        return root[:, None] * values.reshape(root.size, v.shape[1])

    def adjoint(f: Doubles) -> Doubles:
        values = np.ascontiguousarray(root[:, None] * f).reshape(order, m, f.shape[1])
        out = np.empty((rows.shape[0], f.shape[1]))
        for tile in pieces:
            _gegenbauer.apply_adjoint(*factors(tile), values, out[tile], threads(f))
        return out

    operator = LinearOperator(
        shape=(m * order, rows.shape[0]),
        dtype=np.float64,
        matvec=lambda v: apply(v.reshape(-1, 1))[:, 0],
        rmatvec=lambda f: adjoint(f.reshape(-1, 1))[:, 0],
        matmat=apply,
        rmatmat=adjoint,
    )
    operator.nodes, operator.weights = nodes, weights
    operator.degree, operator.order = degree, order
    return operator
