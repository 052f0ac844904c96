"""Explicit orthonormal spherical harmonics in any dimension.

A harmonic of degree l in R^e is a factor in the last coordinate times a harmonic Y_k of R^(e-1):

    Y = A rho^n C_n^(lam)(x_e / rho) Y_k(x_1..x_(e-1)),
    n = l - k,   lam = k + (e-2)/2,   rho = |(x_1..x_e)|

and in the plane the harmonics are sqrt2 Re, sqrt2 Im (x_1 + i x_2)^k. If n = 0 the factor is a
constant. So a harmonic of degree l is a product of at most l factors that depend on x.
`HarmonicTree` stores only these factors, shared between harmonics, and the compiled code evaluates
the tree for many rows at once. Harmonics are homogeneous polynomials, scaled to unit second moment
on the unit sphere, so that

    sum over degree l of Y(x) Y(y) = alpha(l, d) P_d^l(<x, y>)      for unit x, y.
"""

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._compiled import harmonics as _harmonics
from gzkcore._compiled import special as _special
from gzkcore._util.state import lock, sequence, stored, whole
from gzkcore._util.threads import in_parts, n_threads
from gzkcore._util.typing import Doubles, Floats, Integers
from gzkcore._util.validation import (
    as_floats,
    check_degree,
    check_dim,
    first_not_finite,
    is_finite,
)

from .special import SMALL, alpha

__all__ = ["n_harmonics", "spherical_harmonics"]

# A harmonic as its factors: (e, n, k) each, the plane's ("re" or "im", k) last; see `members`.
Member: TypeAlias = tuple[tuple[Any, ...], ...]
# Two indices and a scale.
Entry: TypeAlias = tuple[int, int, float]


def n_harmonics(degree: int, dim: int) -> int:
    """Count the spherical harmonics of degree at most `degree` in R^dim.

    The sum of alpha(l, d) over l <= q, C(q+d-1, q) + C(q+d-2, q-1).

    Parameters
    ----------
    degree, dim : int
        q >= 0 and d >= 1.

    Returns
    -------
    int
        Exact for any size.

    References
    ----------
    Han, Zandieh, Avron, Eq 4, summed.

    Examples
    --------
    >>> from gzkcore.sphere.harmonics import n_harmonics
    >>> n_harmonics(31, 3)
    1024
    """
    degree = check_degree(degree)
    dim = check_dim(dim)
    count = _special.n_harmonics(degree, dim) if max(degree, dim) < SMALL else -1
    if count >= 0:
        return count
    below = math.comb(degree + dim - 2, degree - 1) if degree else 0
    return math.comb(degree + dim - 1, degree) + below


def spherical_harmonics(X: ArrayLike, degree: int) -> Floats:
    """Evaluate all orthonormal spherical harmonics of degree at most `degree`.

    Parameters
    ----------
    X : array-like of shape (n_samples, dim)
        Points, usually unit rows. At other points the harmonics are homogeneous polynomials, |x|^l
        Y(x/|x|). float32 is kept, everything else becomes float64.
    degree : int
        Highest degree q >= 0.

    Returns
    -------
    ndarray of shape (n_samples, n_harmonics(degree, dim))
        Degree 0 first, then degree 1, ...; with unit second moment over the unit sphere. In R^1
        there are only 1 and x.

    Notes
    -----
    Cost: about 5 flops per output in any dimension; memory for the output and O(n_harmonics) per
    thread. Errors are about 1e-15 sqrt(alpha(l, d)) in float64, and 3e-7 l sqrt(alpha(l, d)) in
    float32.

    References
    ----------
    Han, Zandieh, Avron. The remark after Lemma 5 calls explicit harmonics intractable in general;
    with the recursion on the dimension each costs O(1).

    Examples
    --------
    >>> from gzkcore.sphere.harmonics import spherical_harmonics
    >>> spherical_harmonics([[1.0, 0.0, 0.0]], 1).round(6)
    array([[1.      , 0.      , 1.732051, 0.      ]])
    """
    degree = check_degree(degree)
    X = np.ascontiguousarray(as_floats("X", X))
    if X.ndim != 2 or X.shape[1] < 1:
        raise ValueError(f"X has shape {X.shape}; pass points as rows, (n_samples, dim)")
    dim = X.shape[1]
    counts = [alpha(level, dim) for level in range(degree + 1)]
    tree = HarmonicTree(dim, counts)
    out = np.empty((X.shape[0], sum(counts)), dtype=X.dtype)
    one = np.ones((1, 1), dtype=X.dtype)
    columns = np.arange(sum(counts))
    for rows in in_parts(len(X), 5 * columns.size):
        tree.features(X[rows], one, columns, np.zeros_like(columns), out[rows])
    if not is_finite(out) and is_finite(X):
        (row, *_) = first_not_finite(out) or (0,)
        raise ValueError(
            f"X is too large: row {row} has a coordinate of absolute value "
            f"{np.abs(X[row]).max():.3g}, so that harmonics of degree {degree} exceed the range of "
            f"{X.dtype}; divide the rows by their norms, or pass float64"
        )
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


# A model's file may have at most so many degrees and harmonics: the tables of more would take
# minutes and gigabytes.
MOST_DEGREES, MOST_HARMONICS = 1 << 14, 1 << 24


class _Tables(NamedTuple):
    """The arrays that `_compiled/harmonics.pyx` reads."""

    runs: Integers  # of factors, each a recursion in n
    steps: Doubles
    tree: Integers  # products that several harmonics share
    tree_scale: Doubles
    n_powers: int
    columns: Integers  # factor and product of each harmonic
    scale: Doubles

    def of(self, nodes: Integers, ring: Integers, dtype: np.dtype[Any]) -> Self:
        """Return the tables of some columns, with floats of this type."""
        tables = self._replace(
            steps=self.steps.astype(dtype),
            tree_scale=self.tree_scale.astype(dtype),
            columns=np.column_stack([self.columns[nodes], ring]),
            scale=self.scale[nodes].astype(dtype),
        )
        lock(tables)
        return tables


class HarmonicTree:
    """The first `counts[l]` harmonics of each degree l, as products; each shared product once.

    The tables of the products are made when features are first asked for.
    """

    _state = stored(dim=whole(1), counts=sequence(whole(0)))

    def __init__(self, dim: int, counts: Sequence[int] | Integers) -> None:
        self.dim = dim
        self.counts = [int(count) for count in counts]

    def _check_state(self) -> None:
        few = len(self.counts) <= MOST_DEGREES and self.size <= MOST_HARMONICS
        if not few or (self.counts > alpha(np.arange(len(self.counts)), self.dim) + 0.5).any():
            raise ValueError(
                f"has counts of {self.size} harmonics of {len(self.counts)} degrees; there are not "
                f"so many in dimension {self.dim}, or no file has so many"
            )

    @property
    def size(self) -> int:
        """Number of harmonics."""
        return sum(self.counts)

    def nodes(self, degree: int, count: int) -> Integers:
        """Return the numbers of the first `count` harmonics of a degree."""
        return sum(self.counts[:degree]) + np.arange(count)

    def features(
        self,
        X: Floats,
        radial: Floats,
        nodes: Integers,
        ring: Integers,
        out: Floats,
        *,
        stream: bool = False,
    ) -> None:
        """out[:, c] = radial[:, ring[c]] times harmonic number nodes[c]."""
        last = self._last_tables.get(X.dtype)
        if last is None or last[0] is not nodes or last[1] is not ring:
            last = self._last_tables[X.dtype] = nodes, ring, self._tables.of(nodes, ring, X.dtype)
        tables = last[2]
        _harmonics.harmonic_features(
            X, radial, tables.runs, tables.steps, tables.tree, tables.tree_scale, tables.n_powers,
            tables.columns, tables.scale, out, stream, n_threads(4 * out.size),
        )  # fmt: skip

    @functools.cached_property
    def _last_tables(self) -> dict[np.dtype[Any], tuple[Integers, Integers, _Tables]]:
        """For each type the columns that were asked for last, and their tables."""
        return {}

    @functools.cached_property
    def _tables(self) -> _Tables:
        """Lay out the factors as runs (one recursion in n each), shared products as a tree."""
        wanted = [
            member
            for level, count in enumerate(self.counts)
            for member in itertools.islice(members(level, self.dim), count)
        ]
        shared = {member[i:] for member in wanted for i in range(1, len(member))}
        shared |= {member for member in wanted if len(member) == 1}
        ordered = sorted(shared, key=lambda member: (len(member), _degree(member), str(member)))
        number = {member: i for i, member in enumerate(ordered)}

        highest: dict[tuple[int, int], int] = {}
        for member in (*wanted, *ordered):
            if len(member) > 1:
                e, n, k = member[0]
                highest[e, k] = max(n, highest.get((e, k), 0))
        runs, steps = [(0, 0, 0)], [(1.0, 0.0)]  # step 0 is the constant 1
        factor: dict[tuple[int, int, int], int] = {}
        for (e, k), most in sorted(highest.items()):
            lam = k + (e - 2) / 2
            runs.append((e - 1, len(steps), most))
            for n in range(most + 1):
                factor[e, n, k] = len(steps)
                up = _step(n, lam) * 2 * (n + lam - 1) / n if n else 1.0
                down = _step(n, lam) * _step(n - 1, lam) * (n + 2 * lam - 2) / n if n > 1 else 0.0
                steps.append((up, down))

        def entry(member: Member) -> Entry:
            """Factor (or power), parent and scale of a product."""
            degree = _degree(member)
            if len(member) == 1:
                root = math.log(2) / 2 if degree and self.dim > 1 else 0.0
                part = 2 * degree + (member[0][0] == "im")
                return part, 0, math.exp(root + _log_chain(self.dim, degree, 3))
            e, n, k = member[0]
            chain = _log_chain(self.dim, degree, e + 1) - _log_chain(self.dim, k, e + 1)
            return factor[e, n, k], number[member[1:]], math.exp(chain)

        columns = [
            entry(member) if len(member) > 1 else (0, number[member], 1.0) for member in wanted
        ]
        return _Tables(
            np.array(runs, dtype=np.intp),
            np.array(steps),
            *_index_and_scale([entry(member) for member in ordered]),
            sum(len(member) == 1 for member in ordered),
            *_index_and_scale(columns),
        )


@functools.lru_cache(maxsize=1 << 14)
def _log_chain(dim: int, k: int, first: int) -> float:
    """Sum log A_(e,0,k) for e = first..dim, the constants above the last true factor.

    A^2 is (e/2)_k / ((e-1)/2)_k, with rising factorials (x)_k, so that the product telescopes.
    """
    below = max(first, 3) - 1
    above = max(dim, below)
    return 0.5 * math.fsum(math.log((above + 2 * j) / (below + 2 * j)) for j in range(k))


def _index_and_scale(entries: list[Entry]) -> tuple[Integers, Doubles]:
    """Split (index, index, scale) into an array of indices and one of scales."""
    index = np.array([entry[:2] for entry in entries], dtype=np.intp).reshape(-1, 2)
    return index, np.array([entry[2] for entry in entries], dtype=np.float64)


def _degree(member: Member) -> int:
    """Degree of a partial product."""
    return sum(int(factor[1]) for factor in member)


def _step(n: int, lam: float) -> float:
    """A_n / A_(n-1): how the normalisation changes from one factor of a run to the next."""
    return math.sqrt(n * (n + lam) / ((n + lam - 1) * (n + 2 * lam - 1)))
