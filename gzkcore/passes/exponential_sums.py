"""Sums over rows of exponentials of angles, from which regression on a kernel's series follows.

Rows are points of the unit sphere, whose angles are longitude and colatitude, or of a periodic box.
A row adds w exp(-i <k, angles>) for every |k_j| <= m_j, and the same times each of its targets. All
sums over rows of functions with frequencies up to m follow. They are also those over a grid of
nodes with weights (`nodes`), which stand for the rows from then on.
"""

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.fft import ifftn

from gzkcore._util.nonuniform import Exponentials, evened, paired
from gzkcore._util.state import doubles, nothing, sequence, stored, whole
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles
from gzkcore._util.validation import check_same_class
from gzkcore.sphere.transforms import angles_of

__all__ = ["ExponentialSums"]

# Relative error of the sums.
TOL = 1e-13
# Sums of squares, and their inverses, must be below this, so that products of them don't overflow.
MOST = 1e290
# Norms of unit rows may differ from 1 by this much, a few times the rounding of float32.
UNIT = 1e-5


class ExponentialSums:
    """Sums of exponentials over rows in any batches, of weights and of targets.

    Parameters
    ----------
    box : ndarray of shape (2, d) or None
        Its lowest and its highest corner; d is 1, 2 or 3. None: the unit sphere in three columns.
    highest : sequence of int
        m_j, >= 1.

    Attributes
    ----------
    sums : ndarray of shape (1 + n_targets, 2 m_1 + 1, ..., 2), or None
        Real and imaginary parts, in the order of FFTs.
    totals : ndarray of shape (2 + n_targets,)
        The number of rows with weights > 0; the sums of weights, and of weights times each target
        squared.
    extent : ndarray of shape (2, d)
        The smallest and the largest value of each column.
    n_rows : int

    Notes
    -----
    A row costs 15^d operations for each two of its 1 + n_targets sums, a batch an FFT of 2^d times
    as many numbers as there are sums. Memory: 16 bytes for each sum, and 64 while it works.
    """

    _state = stored(
        box=doubles(2, None) | nothing(),
        highest=sequence(whole(1)),
        n_rows=whole(0),
        sums=doubles("t", *[None] * 2) | doubles("t", *[None] * 3) | doubles("t", *[None] * 4)
        | nothing(),
        totals=doubles(None, least=0) | nothing(),
        extent=doubles(2, None) | nothing(),
    )  # fmt: skip

    def __init__(self, box: Doubles | None, highest: Sequence[int]) -> None:
        self.box, self.highest = box, list(highest)
        self.sums: Any = None
        self.totals: Any = None
        self.extent: Any = None
        self.n_rows = 0

    def angles(self, X: Doubles) -> list[Doubles]:
        """Return the angles of rows, checked."""
        X = np.asarray(X, np.float64)
        if self.box is None:
            apart = np.abs(np.sqrt(np.einsum("ij,ij->i", X, X)) - 1)
            if apart.max(initial=0.0) > UNIT:
                row = int(apart.argmax())
                raise ValueError(
                    f"row {row} has the norm {np.linalg.norm(X[row]):g}, but rows must be on the "
                    "unit sphere; pass LatLonToSphere().transform(places), or a box for columns "
                    "that are no sphere"
                )
            return angles_of(X)
        low, high = self.box
        outside = (low > X) | (high < X)
        if outside.any():
            row, column = np.argwhere(outside)[0].tolist()
            raise ValueError(
                f"X[{row}, {column}] is {X[row, column]:g}, outside the box from {low[column]:g} "
                f"to {high[column]:g}; pass a wider box"
            )
        return list((2 * np.pi * (X - low) / (high - low)).T)

    def add(self, X: Any, y: Doubles, weight: Doubles | None) -> Self:
        """Add rows, targets and weights that were checked."""
        y = y.reshape(len(X), -1)
        w = np.ones(len(X)) if weight is None else weight
        with np.errstate(over="ignore", under="ignore"):
            totals = np.concatenate([[np.count_nonzero(w), w.sum()], w @ np.square(y)])
        there = np.concatenate([[w.any()] * 2, ((w > 0)[:, None] & (y != 0)).any(axis=0)])
        if not ((totals < MOST) & (~there | (totals > 1 / MOST))).all():
            raise ValueError(
                "y, or sample_weight, is so large or so small that sums of weighted squares are "
                "beyond 1e-290 to 1e290; scale it"
            )
        values, power = evened(w[:, None] * np.column_stack([np.ones(len(X)), y]))
        shape = [2 * most + 1 for most in self.highest]
        transform = Exponentials(self.angles(X), shape, TOL)
        sums = np.empty((values.shape[1], *shape), np.complex128)
        mirror = np.ix_(*[-np.arange(size) % size for size in shape])
        for j in range(0, len(sums), 2):
            both = transform.adjoint(paired(values[:, j : j + 2]), n_threads())
            conjugate = both[mirror].conj()
            sums[j] = np.ldexp(1.0, power[j]) * (both + conjugate) / 2
            if j + 1 < len(sums):
                sums[j + 1] = np.ldexp(1.0, power[j + 1]) * (both - conjugate) / 2j
        extent = np.stack([X.min(axis=0), X.max(axis=0)]).astype(np.float64)
        self._add(sums.view(np.float64).reshape(*sums.shape, 2), totals, extent, len(X))
        return self

    def merge(self, other: "ExponentialSums") -> "ExponentialSums":
        """Add the rows of other sums; return self."""
        check_same_class(self, other)
        if (_named(self.box), self.highest) != (_named(other.box), other.highest):
            raise ValueError(
                f"sums up to {other.highest} in {_named(other.box)} don't add to those up to "
                f"{self.highest} in {_named(self.box)}; sum both with the same degree and box"
            )
        if other.sums is not None:
            self._add(other.sums.copy(), other.totals, other.extent, other.n_rows)
        return self

    def shifted(self, offset: Doubles) -> "ExponentialSums":
        """Return sums of the targets plus an offset for each."""
        made = copy.copy(self)
        made.sums, made.totals = self.sums.copy(), self.totals.copy()
        of_targets = self.sums[1:].reshape(len(offset), -1)[:, 0]  # k = 0: the sums themselves
        made.totals[2:] += 2 * offset * of_targets + np.square(offset) * self.totals[1]
        np.maximum(made.totals, 0.0, out=made.totals)
        made.sums[1:] += np.multiply.outer(offset, self.sums[0])
        return made

    def nodes(self) -> tuple[list[Doubles], Doubles]:
        """Return angles of nodes, and weights (n_nodes, 1 + n_targets) with which sums agree."""
        sizes = [4 * (-(-most // 2)) + 2 for most in self.highest]
        padded = np.zeros((len(self.sums), *sizes), np.complex128)
        places = np.ix_(*[np.arange(-most, most + 1) for most in self.highest])  # from both ends
        for one, sums in zip(padded, self.sums, strict=True):
            one[places] = sums.view(np.complex128)[..., 0][places]
        axes = range(1, padded.ndim)
        values = ifftn(padded, axes=axes, overwrite_x=True, workers=n_threads()).real
        angles = [2 * np.pi * np.arange(size) / size for size in sizes]
        if self.box is None:  # beyond the pole are the nodes of the opposite meridian
            half = sizes[1] // 2
            beyond = np.roll(values[:, :, :half:-1], sizes[0] // 2, axis=1)
            values = values[:, :, : half + 1].copy()
            values[:, :, 1:half] += beyond
            angles[1] = angles[1][: half + 1]
        grid = np.meshgrid(*angles, indexing="ij")
        weights = np.ascontiguousarray(values.reshape(len(values), -1).T)
        return [angle.ravel() for angle in grid], weights

    def _emptied(self) -> "ExponentialSums":
        """Return sums of the same kind that have seen no rows."""
        return ExponentialSums(self.box, self.highest)

    def _add(self, sums: Doubles, totals: Doubles, extent: Doubles, n_rows: int) -> None:
        if self.sums is not None:
            if self.sums.shape != sums.shape:
                raise ValueError(
                    f"these rows have {len(sums) - 1} targets, but earlier rows had "
                    f"{len(self.sums) - 1}; add rows of one kind"
                )
            sums += self.sums
            totals = totals + self.totals
            extent = np.stack([np.minimum(extent[0], self.extent[0]),
                               np.maximum(extent[1], self.extent[1])])  # fmt: skip
        self.sums, self.totals, self.extent = sums, totals, extent  # shared with shallow copies
        self.n_rows += n_rows


def _named(box: Doubles | None) -> str:
    return "the sphere" if box is None else f"the box {box.tolist()}"
