"""Any generalized zonal kernel, by its radial functions."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._compiled import series as _series
from gzkcore._util.state import nothing, stored
from gzkcore._util.threads import in_parts, n_threads
from gzkcore._util.typing import Doubles, Rows

from .base import Kernel
from .points import cosines, row_norms, unit_rows

__all__ = ["GeneralizedZonal"]


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
        """Say what a file keeps, see `model_io`: a function is code; features hold its values."""
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
