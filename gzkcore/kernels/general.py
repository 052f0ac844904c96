"""Kernels from outside: by radial functions, by a function of rows, or by their values."""

from collections.abc import Callable
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._compiled import series as _series
from gzkcore._util.state import nothing, stored
from gzkcore._util.threads import in_parts, n_threads
from gzkcore._util.typing import Data, Doubles, Rows
from gzkcore._util.validation import dense
from gzkcore._util.wording import counted

from .aliases import as_kernel
from .base import Kernel
from .points import cosines, row_norms, unit_rows

__all__ = ["GeneralizedZonal"]

# A kernel from outside: f(X, Y) -> matrix of shape (len(X), len(Y)).
KernelFunction: TypeAlias = Callable[[Any, Any], ArrayLike]


class GeneralizedZonal(Kernel):
    """Generalized zonal kernel k(x, y) = sum_l <h_l(|x|), h_l(|y|)> P_d^l(cos) (Definition 3).

    Parameters
    ----------
    radial : callable
        The function h. It maps norms of shape (n,) to an array of shape (n, q + 1, s), or (n, q +
        1) for s = 1: the values of h_0..h_q, each in R^s. h_l(0) must be 0 for l >= 1, since
        otherwise the kernel is not continuous at 0.

    Notes
    -----
    Positive definite for any h. Files store the values of h up to twice the largest norm seen.

    References
    ----------
    Han, Zandieh, Avron, Definition 3; G19 in the errata.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore.kernels import GeneralizedZonal
    >>> linear = GeneralizedZonal(lambda t: np.stack([np.ones_like(t), t], axis=1))
    >>> linear([[1.0, 2.0]], [[3.0, 1.0]])  # 1 + <x, y>
    array([[6.]])
    """

    _state = stored(radial=nothing())

    @property
    def holds_function(self) -> bool:
        """Return True."""
        return True

    def __init__(self, radial: Callable[[Doubles], ArrayLike]) -> None:
        self.radial = radial

    def _resolved(self, X: Rows) -> dict[str, Any]:
        if not callable(self.radial):
            raise TypeError(
                f"radial={self.radial!r} is not callable; pass a function of norms that returns "
                "an array of shape (n, q + 1, s)"
            )
        above = self.radial_values(np.zeros(1))[0, 1:]  # of all degrees but 0
        if np.abs(above).max(initial=0.0) > 1e-12:
            worst = np.unravel_index(int(np.argmax(np.abs(above))), above.shape)
            raise ValueError(
                f"radial gives h_{worst[0] + 1}(0) = {above[worst]:g}: for l >= 1 it must be 0, "
                "since otherwise the kernel is not continuous at 0"
            )
        return {"radial": self.radial}

    def _to_data(self) -> dict[str, Any]:
        """Return no function for the file, see `model_io`: features hold the values of h."""
        return {"radial": None}

    def radial_values(self, norms: ArrayLike) -> Doubles:
        """Return h at norms, of shape (n, q + 1, s)."""
        if self.radial is None:
            raise ValueError(
                "this GeneralizedZonal kernel has no function, since files of models do not store "
                "functions; make it again with radial="
            )
        norms = np.asarray(norms, dtype=np.float64)
        values = np.asarray(self.radial(norms))
        if values.dtype.kind not in "biuf":
            raise TypeError(f"radial must return real numbers; got {values!r:.60}")
        if values.ndim == 2:
            values = values[:, :, None]
        if values.ndim != 3 or values.shape[0] != norms.size or 0 in values.shape[1:]:
            raise ValueError(
                f"radial must map {norms.size} norms to an array of shape ({norms.size}, q + 1, s)"
                f"; got shape {values.shape}"
            )
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).all(axis=(1, 2))))
            raise ValueError(f"radial gives values that are not finite at the norm {norms[row]:g}")
        return values.astype(np.float64)

    def diagonal(self, norms: ArrayLike) -> Doubles:
        """Return the sum of the squares of h."""
        squares: Doubles = np.square(self.radial_values(np.ravel(norms))).sum(axis=(1, 2))
        return squares.reshape(np.shape(norms))

    def by_formula(self, X: Doubles, Y: Doubles) -> Doubles:
        """Return the sum of the series."""
        a, b = row_norms(X), row_norms(Y)
        h, g = self.radial_values(a), self.radial_values(b)
        if h.shape[1:] != g.shape[1:]:
            raise ValueError(
                f"radial returned arrays of shape {h.shape} and {g.shape}; q and s must be the "
                "same for all norms"
            )
        t = np.ascontiguousarray(cosines(unit_rows(X, a), unit_rows(Y, b), X is Y))
        of_columns = np.ascontiguousarray(np.moveaxis(g, 0, 2))
        out = np.empty(t.shape)
        work = t.shape[1] * h.shape[1] * (2 * h.shape[2] + 6)
        h, threads = np.ascontiguousarray(h), n_threads(len(t) * work)
        for rows in in_parts(len(t), work):
            _series.generalized_zonal(h[rows], of_columns, t[rows], X.shape[1], out[rows], threads)
        return out


class FunctionKernel(Kernel):
    """The kernel of a function of two arrays of rows."""

    def __init__(self, function: KernelFunction) -> None:
        self.function = function

    @property
    def holds_function(self) -> bool:
        return True

    def resolve(self, X: Rows, names: ArrayLike | None = None) -> Self:
        return self

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        X = np.asarray(X)
        Y = X if Y is None else np.asarray(Y)
        try:
            values: Doubles = np.asarray(self.function(X, Y), dtype=np.float64)
        except Exception as error:
            error.add_note(
                f"kernel={self.function!r} was called with arrays of {counted(len(X), 'row')} and "
                f"{counted(len(Y), 'row')}; it must return one value for each pair of rows, as "
                "those of sklearn.metrics.pairwise do"
            )
            raise
        if values.shape != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"kernel={self.function!r} gave shape {values.shape} for {X.shape[0]} and "
                f"{counted(Y.shape[0], 'row')}; it must take two arrays of rows and return "
                "one value for each pair, as those of sklearn.metrics.pairwise do"
            )
        return values

    def diag(self, X: Rows) -> Doubles:
        parts = [dense(X[i : i + 64]) for i in range(0, X.shape[0], 64)]
        return np.concatenate([np.diag(self(part)) for part in parts])


class Precomputed(Kernel):
    """The kernel whose rows are its values already: X has K(X, all), Y the numbers of columns."""

    _state = stored()

    def resolve(self, X: Rows, names: ArrayLike | None = None) -> Self:
        return self

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        X = np.asarray(X, dtype=np.float64)
        return X if Y is None else X[:, np.asarray(Y)]

    def diag(self, X: Rows) -> Doubles:
        return np.asarray(X.diagonal(), dtype=np.float64)


def as_exact_kernel(kernel: Any) -> Kernel:
    """Return a kernel: itself, or by an alias, "precomputed", or a function of two arrays."""
    if isinstance(kernel, str) and kernel == "precomputed":
        return Precomputed()
    if callable(kernel) and not isinstance(kernel, Kernel | type):
        return FunctionKernel(kernel)
    return as_kernel(kernel)
