"""The base of both Gegenbauer maps: everything but the choice of the columns."""

import functools
import math
import numbers
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.state import (
    doubles,
    has,
    holds,
    ints,
    nothing,
    number,
    pairs,
    sequence,
    stored,
    whole,
)
from gzkcore._util.typing import Data, Doubles, Floats, Rows
from gzkcore._util.validation import check_positive, check_weights, extremes
from gzkcore._util.warn import warn
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.families import FADED, REACH, REACH_1D
from gzkcore.kernels.radial import SPHERE, RadialFunctions
from gzkcore.rows.survey import Norms
from gzkcore.sphere.harmonics import HarmonicTree

from .base import KernelMap, TruncationWarning, check_unit, tiles, warn_if_trivial
from .fit_rows import FitRows
from .gegenbauer_columns import Directions
from .gegenbauer_layout import Layout
from .polar import Polar, reduce_rows

# The parts of a layout, by their names in files; `functions` and `counts` are a pair there.
_IN_FILES = {
    "_radial": "radial",
    "_families": "families",
    "_tree": "tree",
    "_nodes": "nodes",
    "_ring": "ring",
    "_weights": "weights",
    "_rotation": "rotation",
    "_axes": "axes",
}


class GegenbauerMap(KernelMap):
    """The base of both classes: norms and centre, the loop over tiles, and files."""

    _in_tiles = True

    _state = stored(
        dim_=whole(1),
        reducer_=has("transform") | nothing(),
        center_=doubles("dim_") | nothing(),
        radius_=number(0),
        order_=whole(1),
        truncation_error_=number(finite=False),
        expected_error_=number(finite=False),
        _tol=number(0),
        _radial=holds(RadialFunctions),
        _exact_functions=pairs(ints("f", dtype=np.int64)).if_there(),
        _weights=(doubles("f") | nothing()).if_there(),
        _tree=(holds(HarmonicTree) | nothing()).if_there(),
        _nodes=ints("c").if_there(),
        _ring=ints("c").if_there(),
        _families=sequence(holds(Directions)) | pairs(holds(Directions), None),
        _rotation=(doubles("dim_", "dim_") | nothing()).if_there(),
        _axes=(doubles("c", "_n_features_out") | nothing()).if_there(),
    )

    radius: float | tuple[float, float] | None
    kernel_: Kernel
    center_: Doubles | None
    truncation_error_: float
    expected_error_: float
    _layout: Layout

    def _fit(self, rows: FitRows) -> None:
        X, kernel = rows.X, rows.resolve(as_kernel(self.kernel))
        if kernel.unit_sphere:
            check_unit(X)
        self.kernel_ = kernel
        self.reducer_ = self._choose_reducer(X)
        self.dim_ = reduce_rows(self.reducer_, X[:1]).shape[1]
        self.center_ = None
        self.center_ = self._choose_center(rows)
        shell, norms, near = self._read_norms(rows)
        self.radius_ = shell[1] / self._polar.unit
        self._tol = self._choose_tol(X.dtype)
        self._expand(shell, norms, near, X)
        warn_if_trivial(kernel, X)

    def _expand(self, shell: tuple[float, float], norms: Doubles, near: float, X: Rows) -> None:
        """Choose the layout, given the shell of scaled norms, equally likely ones and the reach."""
        raise NotImplementedError

    @property
    def _polar(self) -> Polar:
        """The map from rows to unit rows and norms."""
        return Polar(self.kernel_, self.dim_, self.reducer_, self.center_)

    def partial_fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on the first batch only; later batches are checked and change nothing.

        Without a `radius` the first batch's norms, centre and gamma are frozen, and a warning says
        so.
        """
        if hasattr(self, "_n_features_out"):
            check_weights(sample_weight, self._validate(X, reset=False))
            return self
        if self.radius is None and not as_kernel(self.kernel).unit_sphere:
            warn(
                "partial_fit without a radius freezes the centre, the radius and gamma of the "
                "first batch; pass radius= (and a numeric gamma) if later batches reach further",
                UserWarning,
            )
        return self.fit(X, y, sample_weight)

    def _asks_no_rows(self) -> bool:
        """Return whether the map does not depend on the rows of a fit."""
        kernel = as_kernel(self.kernel)
        rules = any(isinstance(value, str) for value in kernel.get_params().values())
        adapts = vars(self).get("basis") == "adapted" or vars(self).get("reduce") is not None
        return not (self.radius is None or rules or adapts)

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        if self.kernel_.unit_sphere:
            check_unit(X)
        polar, nearest, furthest = self._polar, math.inf, 0.0
        for rows in tiles(X.shape[0], self._layout.row_bytes(out.itemsize)):
            unit, norms = polar(X[rows], rows.start)
            low, high = extremes(norms)
            nearest, furthest = min(nearest, low), max(furthest, high)
            self._layout.fill(unit, norms, out[rows], stream)
        self._warn_outside(nearest, furthest)

    def missing_diagonal(self, X: Data) -> Doubles:
        """Return k(x, x) - z(x).z(x), the error of the features on the diagonal.

        A kernel with a square root at its diagonal, such as the neural tangent kernel, loses its
        high degrees on the diagonal and almost nothing elsewhere, so that Z @ Z.T +
        np.diag(missing_diagonal(X)) is much closer to the kernel matrix. In a ridge regression, or
        in a predictive variance, this difference acts as noise that belongs to the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Not negative, up to rounding, if all columns are exact.
        """
        check_is_fitted(self, "kernel_")
        X = self._validate(X, reset=False)
        missing = np.empty(X.shape[0])
        for tile in tiles(X.shape[0], 8 * self._n_features_out):
            Z = self.transform(X[tile])
            _, norms = self._polar(X[tile], tile.start)
            missing[tile] = self._layout.radial.diagonal(norms)
            missing[tile] -= np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
        return missing

    def _choose_reducer(self, X: Rows) -> Any:
        """Return a fitted projection that comes before the expansion, or None."""
        return None

    def _norms(self, rows: FitRows) -> Norms:
        """Read the scaled norms of all rows."""
        norms: Norms = rows.reduce(
            self._polar.norms, Norms.merge, functools.partial(self._validate, reset=False)
        )
        return norms

    def _choose_center(self, rows: FitRows) -> Doubles | None:
        return None

    def _read_norms(self, rows: FitRows) -> tuple[tuple[float, float], Doubles, float]:
        """Return the shell of scaled norms, equally likely ones, and the largest reachable norm.

        They come from `radius` or the data. A row far out does not lengthen the radial functions.
        """
        if self.kernel_.unit_sphere:
            return (1.0, 1.0), np.ones(1), math.inf
        likely = (np.arange(64) + 0.5) / 64
        if self.radius is None:
            seen = self._norms(rows)
            near = seen.largest_within(FADED + (REACH if self.dim_ > 1 else REACH_1D))
            return (seen.min(), seen.max()), seen.quantile(likely), near
        low, high = _check_radius(self.radius)
        low, high = low * self._polar.unit, high * self._polar.unit
        # Uniform in the ball, whatever the data.
        norms = high * (likely + (1 - likely) * (low / high) ** self.dim_) ** (1 / self.dim_)
        return (low, high), norms, math.inf

    def _warn_outside(self, nearest: float, furthest: float) -> None:
        """Warn of points outside the shell of the fit where the error of the kernel is large."""
        radial = self._layout.radial
        low, high = radial.shell
        if radial.constant or (nearest >= low * (1 - SPHERE) and furthest <= high * (1 + SPHERE)):
            return
        ends = np.array([nearest, furthest])
        largest = np.maximum(radial.diagonal(ends), np.finfo(float).tiny)
        errors = radial.residual(ends, self._layout.complete) / largest
        worst = int(np.argmax(errors))
        usual = self.truncation_error_ / max(float(radial.diagonal(np.array([high]))[0]), 1e-300)
        if errors[worst] > max(10 * self._tol, 1e-3, 2 * usual):
            unit = self._polar.unit
            seen = f"{low / unit:.4g} to {high / unit:.4g}"
            warn(
                f"points at distance {ends[worst] / unit:.4g} from the centre lie outside the "
                f"fit's {seen}, and the error of the kernel is up to {errors[worst]:.2g} there; "
                "fit on data that reach as far, or pass radius=(smallest, largest)",
                TruncationWarning,
            )

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("_layout", None)

    def _to_data(self) -> dict[str, Any]:
        """Return the data of a file beside attributes, see `model_io`: the parts of the layout."""
        if not hasattr(self, "_layout"):
            return {}
        parts = {name: getattr(self._layout, part) for name, part in _IN_FILES.items()}
        return parts | {"_exact_functions": (self._layout.functions, self._layout.counts)}

    def _check_state(self) -> None:
        if not hasattr(self, "_layout"):
            return
        if self.reducer_ is None and self.dim_ != self.n_features_in_:
            raise ValueError(f"has dim_={self.dim_}, and {self.n_features_in_} columns")
        self._layout.check(self.dim_, self._n_features_out)

    @classmethod
    def _from_data(cls, data: dict[str, Any]) -> Self:
        made = cls.__new__(cls)
        parts = {part: data.pop(name) for name, part in _IN_FILES.items() if name in data}
        if "_exact_functions" in data:
            parts["functions"], parts["counts"] = data.pop("_exact_functions")
        if parts:
            made._layout = Layout(**parts | {"families": tuple(parts["families"])})
        made.__dict__.update(data)
        return made


def _check_radius(radius: float | tuple[float, float]) -> tuple[float, float]:
    """Return (low, high) of a radius given as a number or a pair."""
    if isinstance(radius, (int, float, numbers.Real)):
        return 0.0, check_positive("radius", radius)
    try:
        low, high = (float(value) for value in radius)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"radius={radius!r} must be a number or a pair of numbers") from None
    if not 0 <= low <= high or not 0 < high < math.inf:
        raise ValueError(f"radius={radius!r} must satisfy 0 <= smallest <= largest and largest > 0")
    return low, high
