"""Explicit orthonormal spherical harmonics in any dimension.

A harmonic of degree l in R^e is a factor in the last coordinate times a harmonic Y_k of R^(e-1):

    Y = A rho^n C_n^(lam)(x_e / rho) Y_k(x_1..x_(e-1)),   n = l - k, lam = k + (e-2)/2, rho = |(x_1..x_e)|

and in the plane the harmonics are sqrt2 Re, sqrt2 Im (x_1 + i x_2)^k. Where n = 0 the factor is a mere
constant, so a harmonic of degree l is a product of at most l factors that depend on x: `HarmonicTree`
keeps just these, shared between harmonics, and a kernel walks the tree for many rows at once.
They are homogeneous polynomials, scaled to unit second moment on the unit sphere, so that

    sum over degree l of Y(x) Y(y) = alpha(l, d) P_d^l(<x, y>)      for unit x, y.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _harmonics
from ._threads import n_threads
from ._typing import Doubles, Floats, Integers
from ._validation import check_dim, check_integer
from .special import alpha

__all__ = ["n_harmonics", "spherical_harmonics"]

# A harmonic as its factors: (e, n, k) each, the plane's ("re" or "im", k) last; see `members`.
Member: TypeAlias = tuple[tuple[Any, ...], ...]


def n_harmonics(degree: int, dim: int) -> int:
    """Count the spherical harmonics of degree at most `degree` in R^dim.

    The sum of alpha(l, d) over l <= q, C(q+d-1, q) + C(q+d-2, q-1).

    Examples
    --------
    >>> from gzkcore.harmonics import n_harmonics
    >>> n_harmonics(31, 3)
    1024
    """
    degree = check_integer("degree", degree, 0)
    dim = check_dim(dim)
    if dim == 1:
        return min(degree, 1) + 1
    if degree == 0:
        return 1
    return math.comb(degree + dim - 1, degree) + math.comb(degree + dim - 2, degree - 1)


def spherical_harmonics(X: ArrayLike, degree: int) -> Floats:
    """Evaluate all orthonormal spherical harmonics of degree at most `degree`.

    Parameters
    ----------
    X : array-like of shape (n_samples, dim)
        Points; usually unit rows. Elsewhere the harmonics are homogeneous polynomials: |x|^l Y(x/|x|).
        float32 is kept, everything else becomes float64.
    degree : int
        Highest degree q >= 0.

    Returns
    -------
    ndarray of shape (n_samples, n_harmonics(degree, dim))
        Degree 0 first, then degree 1, ...; unit second moment over the unit sphere. In R^1: 1 and
        sign(x), nothing above.

    Notes
    -----
    About 5 flops per output in any dimension, memory for the output and O(n_harmonics) a thread.
    float64 errors stay near 1e-15 sqrt(alpha(l, d)), float32 near 5e-7 sqrt(alpha(l, d)).

    References
    ----------
    Han, Zandieh, Avron, the remark after Lemma 5 calls explicit harmonics intractable in general; by
    the recursion on dimension each costs O(1).

    Examples
    --------
    >>> from gzkcore.harmonics import spherical_harmonics
    >>> spherical_harmonics([[1.0, 0.0, 0.0]], 1).round(6)
    array([[1.      , 0.      , 1.732051, 0.      ]])
    """
    degree = check_integer("degree", degree, 0)
    X = np.asarray(X)
    if X.dtype != np.float32:
        X = X.astype(np.float64, copy=False)
    if X.ndim != 2 or X.shape[1] < 1:
        raise ValueError(f"X has shape {X.shape}; pass points as rows, (n_samples, dim)")
    X = np.ascontiguousarray(X)
    dim = X.shape[1]
    if dim == 1:
        X = np.sign(X)
    counts = [alpha(level, dim) for level in range(degree + 1)]
    tree = HarmonicTree(dim, counts)
    out = np.empty((X.shape[0], sum(counts)), dtype=X.dtype)
    one = np.ones((1, 1), dtype=X.dtype)
    columns = np.concatenate([tree.nodes(level, count) for level, count in enumerate(counts)])
    tree.features(X, one, columns, np.zeros(columns.size, dtype=np.intp), out)
    return out


def members(degree: int, dim: int) -> Iterator[Member]:
    """Yield the harmonics of one degree in R^dim, in order, as tuples of factors.

    A factor (e, n, k) stands for A rho_e^n C_n^(k+(e-2)/2)(x_e/rho_e), n > 0; the last entry is the
    plane's part, ("re", k) or ("im", k). Constant factors (n = 0) are left out.
    """
    if degree == 0:
        yield (("re", 0),)
        return
    for e in range(dim, 2, -1):
        for k in range(degree):
            for inner in members(k, e - 1):
                yield ((e, degree - k, k), *inner)
    yield (("re", degree),)
    if dim > 1:
        yield (("im", degree),)


def log_constant(e: int, k: int) -> float:
    """Logarithm of A_(e,0,k), the constant by which Y_k of R^(e-1) becomes one of R^e."""
    lam = k + (e - 2) / 2
    return 0.5 * (
        math.lgamma((e - 1) / 2)
        - math.lgamma(e / 2)
        - 0.5 * math.log(math.pi)
        + math.log(lam)
        + 2 * math.lgamma(lam)
        - (1 - 2 * lam) * math.log(2)
        - math.lgamma(2 * lam)
    )


class HarmonicTree:
    """The products that make up chosen harmonics, each partial product once.

    Parameters
    ----------
    dim : int
    counts : sequence of int
        How many harmonics of degree 0, 1, ... are wanted (the first ones of each degree).
    """

    def __init__(self, dim: int, counts: Sequence[int] | Integers) -> None:
        self.dim = dim
        self.counts = list(counts)
        self._constants = {}
        wanted = []
        for degree, count in enumerate(self.counts):
            stream = members(degree, dim)
            wanted.append([next(stream) for _ in range(count)])
        self._index = self._collect(wanted)
        self._tables = self._tabulate()
        self._nodes = [
            np.array([self._index[member] for member in level], dtype=np.intp) for level in wanted
        ]
        self._cast = {}

    def nodes(self, degree: int, count: int) -> Integers:
        """Return the nodes of the first `count` harmonics of a degree."""
        return self._nodes[degree][:count]

    def features(
        self,
        X: Floats,
        radial: Floats,
        columns: Integers,
        ring: Integers,
        out: Floats,
        *,
        stream: bool = False,
    ) -> None:
        """out[:, c] = radial[:, ring[c]] times the harmonic at node columns[c]."""
        dtype = X.dtype
        if dtype not in self._cast:
            up, down, scale = (self._tables[name].astype(dtype) for name in ("up", "down", "scale"))
            self._cast[dtype] = up, down, scale
        up, down, scale = self._cast[dtype]
        t = self._tables
        _harmonics.harmonic_features(
            X, radial, t["axis"], t["start"], up, down, t["which"], t["parent"], scale,
            t["n_powers"], columns, ring, out, stream, n_threads(4 * out.size),
        )  # fmt: skip

    @staticmethod
    def _collect(wanted: list[list[Member]]) -> dict[Member, int]:
        """Number all partial products, powers of the plane first, parents before children."""
        found = {member[i:] for level in wanted for member in level for i in range(len(member))}
        ordered = sorted(found, key=lambda m: (len(m), _degree(m), str(m)))
        return {member: i for i, member in enumerate(ordered)}

    def _log_chain(self, k: int, first: int, last: int) -> float:
        """Sum log A_(e,0,k) for e = first..last, the constants between two true factors."""
        total = self._constants.get(k)
        if total is None:
            steps = [0.0, 0.0, 0.0] + [log_constant(e, k) for e in range(3, self.dim + 1)]
            total = self._constants[k] = np.cumsum(steps)
        return total[last] - total[max(first, 3) - 1]

    def _tabulate(self) -> dict[str, Any]:
        """Lay the factors out as runs (one recursion in n each) and the products as nodes."""
        lengths = {}
        for member in self._index:
            if len(member) > 1:
                e, n, k = member[0]
                lengths[e, k] = max(n, lengths.get((e, k), 0))
        axis, start, up, down, where = [], [0], [], [], {}
        for (e, k), n_max in sorted(lengths.items()):
            lam = k + (e - 2) / 2
            axis.append(e - 1)
            for n in range(n_max + 1):
                where[e, n, k] = len(up)
                up.append(_step(n, lam) * 2 * (n + lam - 1) / n if n else 1.0)
                down.append(_step(n, lam) * _step(n - 1, lam) * (n + 2 * lam - 2) / n if n > 1 else 0.0)
            start.append(len(up))
        which, parent, scale = [], [], []
        n_powers = 0
        for member in self._index:
            degree = _degree(member)
            if len(member) == 1:
                n_powers += 1
                which.append(2 * degree + (member[0][0] == "im"))
                parent.append(0)
                root = math.log(2) / 2 if degree and self.dim > 1 else 0.0
                scale.append(math.exp(root + self._log_chain(degree, 3, self.dim)))
            else:
                e, n, k = member[0]
                which.append(where[e, n, k])
                parent.append(self._index[member[1:]])
                chain = self._log_chain(degree, e + 1, self.dim) - self._log_chain(k, e + 1, self.dim)
                scale.append(math.exp(chain))
        return {
            "axis": np.array(axis, dtype=np.intp),
            "start": np.array(start, dtype=np.intp),
            "up": np.array(up, dtype=np.float64),
            "down": np.array(down, dtype=np.float64),
            "which": np.array(which, dtype=np.intp),
            "parent": np.array(parent, dtype=np.intp),
            "scale": np.array(scale, dtype=np.float64),
            "n_powers": n_powers,
        }


def _degree(member: Member) -> int:
    """Degree of a partial product."""
    return sum(factor[1] for factor in member)


def _step(n: int, lam: float) -> float:
    """A_n / A_(n-1): how the normalisation changes from one factor of a run to the next."""
    return math.sqrt(n * (n + lam) / ((n + lam - 1) * (n + 2 * lam - 1)))
