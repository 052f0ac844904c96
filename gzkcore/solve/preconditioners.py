"""Preconditioners of K + alpha N, the kernel matrix plus noise: close to it, cheap to invert.

Conjugate gradients take about sqrt(c) / 2 log(2 / tol) steps, where c is the condition number of
P^-1 (K + alpha N): without a preconditioner up to n / alpha. Features Z of the kernel, with Z Z^T
close to K, represent its smooth, long-range part. The remainder is local, and a sparse factor on
nearest neighbours represents it. N is diagonal: the noise of each row relative to alpha.
"""

import contextlib
import functools
import math
import operator
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_solve, solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.linalg import cholesky, eigh, shifted, solve_factored
from gzkcore._util.random import generator
from gzkcore._util.threads import limit_blas, n_threads, on_threads
from gzkcore._util.typing import Doubles, Floats, Integers, Seed
from gzkcore._util.validation import check_not_negatives
from gzkcore.features.nystrom import pivots
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.fast_sums import FastSums
from gzkcore.kernels.general import Precomputed
from gzkcore.kernels.products import KernelOperator, Pairs, kernel_matrix
from gzkcore.kernels.transformed import unmapped
from gzkcore.passes.kernel_passes import Sums, sum_tiles
from gzkcore.passes.tiles import width_of

from .far_features import FarFeatures, far_part
from .near_landmarks import LANDMARKS_SEEN, NearLandmarks
from .neighbours import Neighbours, SparseFactor
from .preconditioner import Preconditioner, factor_of
from .solve import NotPositiveDefinite, OfColumns, check_noise, conjugate_gradients

__all__ = ["Diagonal", "KeptFeatures", "LowRank", "NearAndFar", "preconditioner_for"]


# The columns of features are padded to a multiple of LANES: compiled kernels take whole vectors.
LANES = 16
# Rows are worked on in so many groups, so that sums are the same for any number of threads.
ROW_GROUPS = 8
# A tile of rows in double has so many bytes, and stays in the cache.
TILE_BYTES = 1 << 20
# At least so many rows at a time are added to a Gram matrix, which is read and written each time:
# 16,000 rows of 2,800 features took 35 s with 46 at a time, and 12 s with these.
GRAM_ROWS = 512


class KeptFeatures:
    """Features Z (n, p) in memory, with the products that preconditioners need.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        float32 or float64. Products are of these numbers, in double: rounding to float32 changes
        Z Z^T once, and what is inverted is exactly that of the rounded features.
    """

    def __init__(self, Z: Floats, width: int | None = None) -> None:
        self.Z, self.shape = Z, Z.shape
        self.width = Z.shape[1] if width is None else width

    @classmethod
    def of(cls, features: Any, X: Floats, dtype: Any) -> "KeptFeatures":
        """Return the features of the rows of X by a fitted feature map."""
        width = int(width_of(features, X))
        Z = np.zeros((len(X), -(-width // LANES) * LANES), dtype)

        def store(part: slice, tile: Floats, _sums: Sums) -> None:
            Z[part, :width] = tile

        sum_tiles(features, X, store, ())
        return cls(Z, width)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self.Z.nbytes)

    def squares(self) -> Doubles:
        """Return |z|^2 of every row."""
        return self._each(lambda Z: np.einsum("ij,ij->i", Z, Z))

    def product(self, V: Doubles) -> Doubles:
        """Return Z V."""
        return self._each(lambda Z: Z @ V)

    def transposed_product(self, V: Doubles) -> Any:
        """Return Z^T V."""
        return self._sum(lambda rows, Z: Z.T @ V[rows])

    def weighted_gram(self, weights: Doubles) -> Any:
        """Return Z^T diag(weights) Z."""
        roots = np.sqrt(weights)
        return self.gram(lambda rows, Z: Z * roots[rows, None])

    def system(self, noise: Doubles, mu: Doubles) -> "FactoredGram":
        """Return what solves systems with mu I + Z^T diag(1 / noise) Z."""
        return FactoredGram(self.weighted_gram(1 / noise), mu)

    def gram(self, factor: Callable[[slice, Doubles], Doubles]) -> Any:
        """Return the lower triangle of W^T W for W = factor(rows, Z[rows]), a tile at a time."""
        p = self.Z.shape[1]

        def squares(tiles: Iterator[tuple[slice, Doubles]]) -> Doubles:
            total = np.zeros((p, p))
            for rows, Z in tiles:  # 'U', since Fortran sees a C matrix transposed
                W = np.ascontiguousarray(factor(rows, Z), dtype=np.float64)
                dsyrk(1.0, W.T, 1.0, total.T, overwrite_c=True)
            return total

        return functools.reduce(operator.iadd, self._by_group(squares, GRAM_ROWS))

    def _each(self, work: Callable[[Doubles], Doubles]) -> Doubles:
        """Return work(Z) of all tiles, one below the other."""

        def join(tiles: Iterator[tuple[slice, Doubles]]) -> Doubles:
            return np.concatenate([work(Z) for _, Z in tiles])

        return np.concatenate(list(self._by_group(join)))

    def _sum(self, term: Callable[[slice, Doubles], Doubles]) -> Any:
        """Add up the terms of all tiles, in the same order for any number of threads."""
        parts = self._by_group(lambda tiles: sum(term(rows, Z) for rows, Z in tiles))
        return functools.reduce(operator.iadd, parts)

    def _by_group(
        self, use: Callable[[Iterator[tuple[slice, Doubles]]], Any], least: int = 1
    ) -> Iterator[Any]:
        """Yield use(tiles) of each group, in order, as many at a time as there are threads.

        Tiles have at least `least` rows, unless the group has fewer.
        """
        n = len(self.Z)
        step = max(1, -(-n // ROW_GROUPS))
        parts = [slice(i, min(i + step, n)) for i in range(0, n, step)]
        threads = min(n_threads(), len(parts))
        for first in range(0, len(parts), threads):
            some = parts[first : first + threads]
            results: list[Any] = [None] * len(some)

            def run(thread: int, _: Any, some: Any = some, results: Any = results) -> None:
                results[thread] = use(self._tiles(some[thread], least))

            on_threads(run, len(some))
            yield from results

    def _tiles(self, part: slice, least: int) -> Iterator[tuple[slice, Doubles]]:
        """Yield tiles of doubles, which last until the next."""
        step = max(least, TILE_BYTES // (8 * self.Z.shape[1]))
        buffer = np.empty((min(step, part.stop - part.start), self.Z.shape[1]))
        for start in range(part.start, part.stop, step):
            rows = slice(start, min(start + step, part.stop))
            tile = buffer[: rows.stop - rows.start]
            np.copyto(tile, self.Z[rows])
            yield rows, tile


class FactoredGram:
    """(mu I + G)^-1 for several mu, by factors; the lower triangle of G is read."""

    def __init__(self, gram: Doubles, mu: Doubles) -> None:
        self._mu = mu
        self._factors = {
            value: cholesky(shifted(gram, np.full(len(gram), value)), overwrite=True)
            for value in np.unique(mu).tolist()
        }

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return the solutions for the mu of these columns."""
        for j, value in enumerate(self._mu[columns].tolist()):
            R[:, j] = solve_factored(self._factors[value], R[:, j : j + 1])[:, 0]
        return R


# Landmarks of features are chosen among so many rows for each of them, and not among all. At 16,000
# rows of kin40k 1,400 of 2, 4 or 16 times as many rows took 37, 38 and 43 steps.
SAMPLED_FOR_EACH = 4
# This share of the largest k(x, x) is added to the diagonal of the landmarks' matrix; if it has no
# factor, MORE_NOISE times as much.
LANDMARK_NOISE, MORE_NOISE = 1e-10, 100.0
# The remainder of features is estimated on so many rows, its largest eigenvalue on half of them.
SAMPLED_ROWS = 1000
# Up to so many rows have features alone: their factors take a fraction of a second.
ROWS_OF_FEATURES = 2000
# Each row has so many neighbours; with the row itself they are whole vectors of 16.
NEIGHBOURS = 31
# If a product takes linear time, each row has so many neighbours and sees so many landmarks. At
# 200,000 rows on the sphere (Matern-1/2, 3/2, lengths .1 and .02, alpha .1 and .001) 3 to 4 steps
# became 4 to 8, and a fit took .65 to .82 of the processor time.
FEW_NEIGHBOURS, FEW_SEEN = 15, 16
# These cost NEAR_ROW nanoseconds of a thread for each row, NEAR_FACTOR for each landmark cubed,
# NEAR_APPLY for each row and step, and NEAR_STEPS steps at NEAR_STEPS_AT rows, which grow with this
# power of the rows: 4 to 8 at 200,000, 13 at 10^6, 25 at 3 10^6 and 65 at 10^7.
NEAR_ROW, NEAR_FACTOR, NEAR_APPLY = 6200, 0.06, 370
NEAR_STEPS, NEAR_STEPS_AT, NEAR_POWER = 13, 1e6, 0.7
# Up to so many columns the landmarks about a row screen it from all others; in more columns balls
# have more of them than a row sees.
FEW_COLUMNS = 3
# A multiply-add of a factor, in double, takes as long as so many of a kernel product in single
# precision: 12e9 to 16e9 in a second, and 66e9, of Matern-3/2 at 100,000 rows in three columns.
FACTOR_COST = 5
# There is one landmark for so many rows, up to MANY_LANDMARKS. At 30,000 rows 1,875 left 9 steps of
# a Gaussian on the sphere and at airports, 1,600 left 11.
ROWS_OF_LANDMARK, MANY_LANDMARKS = 16, 2048
# There are FEWEST to MOST_COMPONENTS features or landmarks. FEATURES_ALONE is the first number of
# features for kernels without a compiled form, and for few rows.
FEWEST, MOST_COMPONENTS, FEATURES_ALONE = 256, 4096, 512
# The features of all rows take so many bytes at most.
MOST_BYTES = 1 << 30
# If steps are few, the Gram matrix of the features may cost as much as so many kernel products.
PRODUCTS = 2
# Steps are tried on one row in ROWS_OF_TRIED, on LEAST_TRIED at least, with FEWEST features, up to
# MOST_TRIED_STEPS steps or TRIED_TOL; all rows take about STEPS_OF_ALL times as many. At 36,000
# rows of kin40k and an alpha of .001 there were 325 steps with 1,120 features, 151 with 2,000, 77
# with 2,816 (104, 70, 56 s of processor time), at 13,500 of pol 20 with 512, 14 with 1,024, 10 with
# 2,048 (4.4, 4.8, 8.2 s).
ROWS_OF_TRIED, LEAST_TRIED, MOST_TRIED_STEPS, TRIED_TOL, STEPS_OF_ALL = 10, 1500, 100, 1e-2, 6
# Up to FEW_ROWS rows, steps are not tried if FEATURES_OF_FEW features leave at most LITTLE alpha: a
# trial takes longer than it saves. On elevators, diamonds and adult there were 1 to 16 steps.
FEW_ROWS, FEATURES_OF_FEW, LITTLE = 1 << 13, 384, 3.0
# A matrix of this condition number has the diagonal as preconditioner: eight steps to 1e-3.
WELL_CONDITIONED = 4.0
# From this alpha on, relative to k(x, x), features are held in single precision: their rounding,
# 1e-7 k(x, x) for each product of two, is a thousandth of it.
LEAST_IN_SINGLE = 1e-4
# A smaller alpha, relative to k(x, x), is replaced by this: the factor of Z^T M Z + I, with up to n
# over it on the diagonal, would be rounding errors.
LEAST_ALPHA = 1e-9


class Diagonal(Preconditioner):
    """The diagonal of K + alpha N.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        k(x, x).
    shifts : ndarray of shape (n_shifts,)
        The alphas.
    noise : ndarray of shape (n,)
        The diagonal of N.
    """

    def __init__(self, diagonal: Doubles, shifts: Doubles, noise: Doubles) -> None:
        self.diagonal, self.shifts, self.noise = diagonal, shifts, noise
        self.nbytes = diagonal.nbytes + noise.nbytes

    def __repr__(self) -> str:
        return "Diagonal()"

    def _of(self, columns: Integers) -> Doubles:
        return np.asarray(self.diagonal[:, None] + self.noise[:, None] * self.shifts[columns])

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Divide by the diagonal, see `Preconditioner`."""
        return R / self._of(columns)


class LowRank(Preconditioner):
    """P = Z Z^T + mu N, inverted by Woodbury's identity.

    P^-1 = (N^-1 - N^-1 Z (mu I + Z^T N^-1 Z)^-1 Z^T N^-1) / mu. What the features leave, K - Z Z^T,
    is replaced by its mean on the diagonal: mu = max(alpha, tr N^-1 (K - Z Z^T) / n, least).

    Parameters
    ----------
    features : KeptFeatures or FarFeatures
        Z (n, p).
    diagonal, shifts, noise
        See `Diagonal`.
    least : float or None, default=None
        The least mu, for features by which Z Z^T may exceed K. None: those of landmarks, for which
        K - Z Z^T is positive semidefinite.

    Notes
    -----
    Making it takes n p^2 operations, and p^3 / 3 for each alpha; `solve` 4 n p for a column.
    """

    def __init__(
        self,
        features: KeptFeatures | FarFeatures,
        diagonal: Doubles,
        shifts: Doubles,
        noise: Doubles,
        least: float | None = None,
    ) -> None:
        self.features, self.shifts, self.noise = features, shifts, noise
        self.semidefinite = least is None
        self.n_components, self.nbytes = features.width, features.nbytes
        self.left = float((np.maximum(diagonal - features.squares(), 0.0) / noise).sum())
        self.mu = np.maximum(shifts, max(self.left / len(noise), least or 0.0))
        self.system: Any = features.system(noise, self.mu)

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return P^-1 R by Woodbury's identity, see `Preconditioner`."""
        mu, noise = self.mu[columns], self.noise[:, None]
        scaled: Doubles = R / noise
        inner = self.system.solve(self.features.transposed_product(scaled), columns)
        scaled -= self.features.product(inner) / noise
        scaled /= mu
        return scaled

    def condition_bound(self, column: int) -> float:
        """Return 1 + tr(N^-1 (K - Z Z^T)) / alpha for landmarks; of other features inf.

        Let R = K - Z Z^T, which is positive semidefinite, and rho the largest eigenvalue of
        N^-1 R. Then P is at most mu / alpha times K + alpha N. And K + alpha N is at most
        max(1, (rho + alpha) / mu) times P. The product of the two factors is the larger one of
        1 + rho / alpha and mu / alpha. Neither is more than the bound, since rho and n (mu - alpha)
        are at most the trace. Where features leave much, the trace is far larger than rho, and
        conjugate gradients take far fewer steps than the bound says.
        """
        return 1.0 + self.left / float(self.shifts[column]) if self.semidefinite else math.inf


class NearAndFar(Preconditioner):
    """P = Z Z^T + (G^T G)^-1: features for the far, a sparse factor for the near part.

    G^T G = M is near (K - Z Z^T + alpha N)^-1, and P^-1 = M - M Z (I + Z^T M Z)^-1 Z^T M.

    Parameters
    ----------
    features : KeptFeatures
        Z (n, p), in the order of the neighbours.
    neighbours : Neighbours
    pairs : Pairs
        The kernel at pairs of rows.
    shifts, noise
        See `Diagonal`; noise in the order of the rows.

    Notes
    -----
    Making it takes n m (m p + m^2 / 3 + m d) / 2 operations for m neighbours, n p^2 for each alpha,
    and a search that is no more than a kernel product. `solve` takes 4 n (p + 2 m) for a column.
    Memory: n (4 p + 9 m) bytes, and 4 n m for each alpha, twice as much in double precision.
    """

    def __init__(
        self,
        features: KeptFeatures,
        neighbours: Neighbours,
        pairs: Pairs,
        shifts: Doubles,
        noise: Doubles,
    ) -> None:
        self.features, self.neighbours = features, neighbours
        self.distinct, self._which = np.unique(shifts, return_inverse=True)
        self.make_factors(pairs, noise)
        self.n_components, self.n_neighbours = features.width, neighbours.table.shape[1]
        cores = sum(core.nbytes for core in self._cores)
        self.nbytes = features.nbytes + neighbours.nbytes + self.factor.values.nbytes + cores

    def make_factors(self, pairs: Pairs, noise: Doubles) -> None:
        """Compute the factors, which depend on the noise of the rows."""
        order = self.neighbours.order
        of_rows = np.multiply.outer(self.distinct, noise[order])
        self.factor = SparseFactor(self.neighbours, pairs.take(order), self.features.Z, of_rows)
        self._cores = [self._core(s) for s in range(len(of_rows))]

    def _core(self, s: int) -> Any:
        """Return the factor of I + Z^T M Z = I + (G Z)^T G Z."""
        Z = self.features.Z
        return factor_of(self.features.gram(lambda rows, _: self.factor.multiply(s, Z, rows)), 1.0)

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return P^-1 R, see `Preconditioner`."""
        which, order = self._which[columns], self.neighbours.order
        near = self._near(R[order], which)
        # Features are read once for all alphas.
        inner = self.features.transposed_product(near)
        for s in np.unique(which):
            inner[:, which == s] = cho_solve((self._cores[s], True), inner[:, which == s])
        near -= self._near(self.features.product(inner), which)
        solved = np.empty(R.shape)
        solved[order] = near
        return solved

    def _near(self, R: Doubles, which: Integers) -> Doubles:
        """Return M R, for the alpha of each column."""
        near = np.empty(R.shape)
        for s in np.unique(which):
            near[:, which == s] = self.factor.apply(s, R[:, which == s])
        return near


# ---- the choice


def preconditioner_for(
    preconditioner: Any,
    kernel: Kernel,
    X: Floats,
    shifts: ArrayLike,
    *,
    noise: ArrayLike | None = None,
    random_state: Seed = None,
    sums: FastSums | None = None,
) -> Preconditioner:
    """Make a `Preconditioner` of K(X, X) + alpha N for each of several alphas.

    Parameters
    ----------
    preconditioner : "auto", int, feature map, None or Preconditioner
        "auto": the cheapest, see Notes. An int: this number of Nystrom features, with neighbours if
        the kernel has a compiled form and there are more than 2,000 rows. A transformer, fitted or
        not: its features, with neighbours if Z Z^T does not exceed the kernel. None: the diagonal.
        A preconditioner: itself; ValueError if it was made for another number of rows or for other
        alphas.
    kernel : Kernel
        Every parameter a number.
    X : ndarray of shape (n, d)
        Dense, with one row at least.
    shifts : array-like of shape (n_shifts,)
        The alphas, >= 0. In P, an alpha below 1e-9 k(x, x) is replaced by this value.
    noise : array-like of shape (n,), optional
        The diagonal of N, > 0; None: ones.
    random_state : int, RandomState, Generator or None, default=None
        Random seed of the landmarks and of the order of rows.
    sums : FastSums, optional
        K(X, X), where products with it take linear time: then more steps with a cheaper
        preconditioner are faster.

    Notes
    -----
    "auto" chooses as follows. The diagonal, if it gives a condition number below 4. With at most
    2,000 rows, 512 features. With at most three columns, landmarks, of which each row uses 48, and
    31 neighbours (16 and 15 with sums): one landmark for 16 rows up to 2,048, and more, up to
    4,096, if they can be factored in the time of a kernel product. With sums, the kernel's lowest
    harmonics or frequencies instead, if they are expected to cost less: for most kernels of 100,000
    rows or more on the sphere or in a plane. With more columns, features and 31 neighbours, with as
    many features (256 to 4,096, at most 1 GiB) as can be multiplied in the time of two kernel
    products, and more if a trial with a tenth of the rows shows that they save more time than they
    cost. For kernels without a compiled form, and for sums with more columns or of terms that lack
    a column, features only, whose number is doubled as long as they leave more than alpha.

    References
    ----------
    Diaz, Epperly, Frangella, Tropp, Webber, Robust, randomized preconditioning for kernel ridge
    regression, 2023; Zhao, Xu, Huang, Chow, Xi, An adaptive factorized Nystrom preconditioner for
    regularized kernel matrices, 2023; Kolotilina, Yeremin, Factorized sparse approximate inverse
    preconditionings, 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Matern
    >>> from gzkcore.solve.preconditioners import preconditioner_for
    >>> X = np.random.default_rng(0).uniform(size=(3000, 2))
    >>> P = preconditioner_for("auto", Matern(nu=1.5, length_scale=0.2), X, [0.1], random_state=0)
    >>> P
    NearLandmarks(256 landmarks, 31 neighbours)
    >>> P.solve(np.ones((3000, 1)), np.array([0])).shape
    (3000, 1)
    """
    if issparse(X):
        raise TypeError("X is sparse, but preconditioners take dense rows; pass X.toarray()")
    if np.ndim(X) != 2 or not len(X):
        raise ValueError(f"X has shape {np.shape(X)}; pass rows of shape (n, d), one at least")
    made_for = len(X), tuple(_check_shifts(shifts).tolist())
    if isinstance(preconditioner, Preconditioner):
        return _made_for_these(preconditioner, *made_for)
    began = time.perf_counter()
    rows: Doubles = np.asarray(X, dtype=np.float64)
    problem = Problem(kernel, rows, shifts, noise, generator(random_state))
    problem.sums = sums
    made = _make(preconditioner, problem)
    made.seconds, made.made_for = time.perf_counter() - began, made_for
    return made


def preconditioner_of_some(
    kernel: Kernel, X: Floats, shift: float, n_rows: int, random_state: Seed = None
) -> Preconditioner:
    """Make the preconditioner that K(X, X) + shift I has as a part of one of n_rows rows.

    It is of the kind that "auto" chooses for all rows, with as many features or landmarks, but half
    of X at most, and the share of the neighbours that are among the n rows of X. `shift` is n /
    n_rows times the alpha of all.
    """
    rows: Doubles = np.asarray(X, dtype=np.float64)
    return _make("auto", Problem(kernel, rows, [shift], None, generator(random_state), n_rows))


def _made_for_these(
    preconditioner: Preconditioner, n: int, shifts: tuple[float, ...]
) -> Preconditioner:
    """Return a preconditioner, or raise if it was made for other rows or alphas."""
    made_n, made_shifts = preconditioner.made_for or (n, shifts)
    if made_n != n:
        raise ValueError(
            f"preconditioner={preconditioner!r} was made for {made_n:,} rows, but X has {n:,}; "
            "make one for these rows with preconditioner_for, or pass 'auto'"
        )
    if made_shifts != shifts:
        raise ValueError(
            f"preconditioner={preconditioner!r} was made for the alphas {_list(made_shifts)}, but "
            f"these are {_list(shifts)}; pass the same alphas to preconditioner_for, in this "
            "order, or pass 'auto'"
        )
    return preconditioner


def _list(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


class Problem:
    """The matrix to be preconditioned: kernel, rows, alphas and noise.

    Sizes are those for n_rows rows, of which X may be a part.
    """

    sums: FastSums | None = None  # products with K in linear time

    def __init__(
        self,
        kernel: Kernel,
        X: Doubles,
        shifts: ArrayLike,
        noise: ArrayLike | None,
        rng: np.random.Generator,
        n_rows: int | None = None,
    ) -> None:
        self.kernel, self.X, self.rng = kernel, X, rng
        self.n_rows = n_rows or len(X)
        self.most = len(X) if self.n_rows == len(X) else max(1, len(X) // 2)  # components
        self.n_neighbours = max(1, NEIGHBOURS * len(X) // self.n_rows)
        self.noise = np.ones(len(X)) if noise is None else check_noise(noise, len(X))
        self.diagonal = kernel.diag(X)
        least = LEAST_ALPHA * float((self.diagonal / self.noise).max())
        self.shifts = np.maximum(_check_shifts(shifts), max(least, np.finfo(np.float64).tiny))

    def some(self, size: int) -> Integers:
        """Choose some of the rows, all if there are no more."""
        n = len(self.X)
        return self.rng.choice(n, size, replace=False) if size < n else np.arange(n)

    @property
    def dtype(self) -> Any:
        """The dtype of the features: single precision if alpha is far above its rounding."""
        least = self.shifts.min() * self.noise.min()
        return np.float32 if least >= LEAST_IN_SINGLE * self.diagonal.max() else np.float64

    def is_well_conditioned(self) -> bool:
        """Whether K + alpha N needs no more than its diagonal."""
        return self._largest(self._values) <= (WELL_CONDITIONED - 1) * float(self.shifts.min())

    def excess(self, features: Any) -> float:
        """Estimate by how much Z Z^T exceeds K: the largest eigenvalue of the difference, or 0."""

        def difference(some: Integers) -> Doubles:
            Z = np.asarray(features.transform(self.X[some]), dtype=np.float64)
            return np.asarray(Z @ Z.T - self._values(some))

        return max(self._largest(difference), 0.0)

    def _values(self, some: Integers) -> Doubles:
        """Return the kernel matrix of some rows (a block of it if the kernel is precomputed)."""
        rows = self.X[some]
        return rows[:, some] if isinstance(self.kernel, Precomputed) else self.kernel(rows)

    def _largest(self, matrix: Callable[[Integers], Doubles]) -> float:
        """Estimate the largest eigenvalue of N^-1 times a matrix of all rows from a sample."""
        some = self.some(SAMPLED_ROWS // 2)
        roots = 1 / np.sqrt(self.noise[some])
        values = eigh(roots[:, None] * matrix(some) * roots, eigvals_only=True)
        return float(values[-1]) * len(self.X) / len(some)


def _check_shifts(shifts: ArrayLike) -> Doubles:
    """Return one or more finite numbers >= 0."""
    values = check_not_negatives("shifts", shifts)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"shifts has shape {values.shape}; pass an array of shape (n_shifts,)")
    return values


def is_count(preconditioner: Any) -> bool:
    """Say whether a preconditioner is a number of components, or raise if it is < 1."""
    if isinstance(preconditioner, bool) or not isinstance(preconditioner, int | np.integer):
        return False
    if preconditioner < 1:
        raise ValueError(f"preconditioner={preconditioner} components; use 1 or more, or None")
    return True


def _make(preconditioner: Any, problem: Problem) -> Preconditioner:
    """Choose the kind, see `preconditioner_for`."""
    if isinstance(preconditioner, str) and preconditioner != "auto":
        raise ValueError(
            f"preconditioner={preconditioner!r} is unknown; use 'auto', None, a number of "
            "components or a feature map"
        )
    n, dim = problem.n_rows, problem.X.shape[1]
    auto = isinstance(preconditioner, str)
    if preconditioner is None or (auto and problem.is_well_conditioned()):
        return Diagonal(problem.diagonal, problem.shifts, problem.noise)
    pairs = local_pairs(problem.kernel, problem.X, problem.dtype) if n > ROWS_OF_FEATURES else None
    if is_count(preconditioner):
        features = _landmarks(problem, min(int(preconditioner), problem.most))
    elif not auto:
        return _by_features(problem, _fitted(preconditioner, problem.X), pairs)
    elif pairs is not None and dim <= FEW_COLUMNS:
        count = min(problem.most, count_landmarks(n, dim))
        n_neighbours, n_seen = problem.n_neighbours, LANDMARKS_SEEN
        if problem.sums is not None:
            made = _lowest_functions(problem, problem.sums, count)
            if made is not None:
                return made
            n_neighbours, n_seen = FEW_NEIGHBOURS, FEW_SEEN
        return NearLandmarks(
            problem.kernel, problem.X, pairs, count, n_neighbours, n_seen, problem.shifts,
            problem.noise, problem.rng,
        )  # fmt: skip
    elif pairs is not None:
        features = _for_neighbours(problem)
    else:
        features = _enough(problem)
    if pairs is not None:
        return _near_and_far(problem, features, pairs)
    return _low_rank(problem, features)


def local_pairs(kernel: Kernel, X: Doubles, dtype: Any) -> Pairs | None:
    """Return the kernel at pairs of rows, if it has a compiled form and near rows tell most.

    So they do for products of kernels, and in few columns for sums of kernels of all columns. In
    additive models far rows tell as much.
    """
    inner, row, _ = unmapped(kernel, X[:1], None)
    dim = row.shape[1]
    columns = [
        {column for factor in term.factors for column in factor.columns or range(dim)}
        for term in inner.tile_form(dim) or ()
    ]
    if len(columns) > 1 and not (dim <= FEW_COLUMNS and all(len(c) == dim for c in columns)):
        return None
    return Pairs.of(kernel, X, dtype)


def _lowest_functions(problem: Problem, sums: FastSums, n_landmarks: int) -> LowRank | None:
    """Return the preconditioner of a kernel's lowest functions, None if it costs more."""
    most_cost = _cost_of_near(sums, n_landmarks, len(problem.shifts))
    far = far_part(sums, problem.shifts, problem.noise)
    if far is None or far.cost >= most_cost:
        return None
    features = far.features()
    made = LowRank(features, problem.diagonal, problem.shifts, problem.noise, far.least)
    some = features.transposed_product(problem.rng.standard_normal((len(problem.X), 1)))
    return made if made.system.is_fast(some, far.most_steps(most_cost)) else None


def _cost_of_near(sums: FastSums, n_landmarks: int, n_shifts: int) -> float:
    """Return the nanoseconds of a thread that a solution with landmarks and neighbours takes."""
    n = sums.shape[0]
    steps = NEAR_STEPS * (n / NEAR_STEPS_AT) ** NEAR_POWER
    made = NEAR_ROW * n + NEAR_FACTOR * n_landmarks**3
    step = (n_shifts + 1) // 2 * sums.cost + n_shifts * NEAR_APPLY * n
    return float(n_shifts * made + steps * step)


def _by_features(problem: Problem, features: Any, pairs: Pairs | None) -> Preconditioner:
    """Take a feature map for the far part; neighbours only where Z Z^T stays below K + alpha N.

    Random features exceed the kernel in some directions. There mu must not be small: for an excess
    e the condition number is up to (e / mu)^2. Of e, e / 4 and 0 the second was best or nearly so
    for Fourier and Gegenbauer features of Gaussian and Matern kernels in 2, 3 and 8 columns.
    """
    excess = problem.excess(features)
    if pairs is not None and excess <= problem.shifts.min():
        return _near_and_far(problem, features, pairs)
    return _low_rank(problem, features, excess / 4)


def _low_rank(problem: Problem, features: Any, least: float | None = None) -> LowRank:
    Z = KeptFeatures.of(features, problem.X, problem.dtype)
    return LowRank(Z, problem.diagonal, problem.shifts, problem.noise, least)


def _near_and_far(problem: Problem, features: Any, pairs: Pairs) -> NearAndFar:
    neighbours = Neighbours.of(pairs.rows, problem.n_neighbours, problem.rng)
    Z = KeptFeatures.of(features, problem.X[neighbours.order], problem.dtype)
    return NearAndFar(Z, neighbours, pairs, problem.shifts, problem.noise)


@dataclass(frozen=True)
class _AtLandmarks:
    """Nystrom features k(x, landmarks) L^-T, where L is a factor of the landmarks' matrix.

    `NystromFeatures` has the same Z Z^T by eigenvectors, which take thirty times as many operations
    to compute, and twice as many for each row.
    """

    kernel: Kernel
    landmarks: Floats
    factor: Doubles

    def transform(self, X: Doubles) -> Doubles:
        """Return the features of some rows."""
        values: Doubles = kernel_matrix(self.kernel, X, self.landmarks, dtype=np.float64)
        with limit_blas(1):
            features: Doubles = solve_triangular(
                self.factor, values.T, lower=True, overwrite_b=True, check_finite=False
            )
        return features.T


def _landmarks(problem: Problem, count: int) -> _AtLandmarks:
    """Choose landmarks by randomly pivoted Cholesky, among some of the rows."""
    some = problem.X[problem.some(SAMPLED_FOR_EACH * count)]
    landmarks = some[pivots(problem.kernel, some, count, problem.rng)]
    square = problem.kernel(landmarks)
    largest = float(square.diagonal().max())
    noise = LANDMARK_NOISE * largest
    while True:
        try:
            factor = cholesky(shifted(square, np.full(len(square), noise)), overwrite=True)
        except LinAlgError:
            noise *= MORE_NOISE
            if not noise < largest:
                raise
        else:
            return _AtLandmarks(problem.kernel, landmarks, factor)


def _left(problem: Problem, features: _AtLandmarks) -> float:
    """Return the mean of what features leave of k(x, x), on some rows."""
    probes = problem.X[problem.some(SAMPLED_ROWS)]
    left = problem.kernel.diag(probes) - np.square(features.transform(probes)).sum(axis=1)
    return float(np.mean(left))


def _for_neighbours(problem: Problem) -> _AtLandmarks:
    """Choose landmarks beside neighbours: fewer than a trial asks for where these leave little."""
    if problem.n_rows <= FEW_ROWS:
        features = _landmarks(problem, min(problem.most, FEATURES_OF_FEW))
        if _left(problem, features) <= LITTLE * problem.shifts.min():
            return features
    return _landmarks(problem, min(problem.most, _as_costly_as_steps(problem)))


def _enough(problem: Problem) -> _AtLandmarks:
    """Double the landmarks while they leave more than alpha and are not too costly."""
    count = min(FEATURES_ALONE, problem.most)
    affordable = count_components(problem.n_rows, problem.X.shape[1], problem.dtype)
    most = max(count, min(problem.most, affordable))
    while True:
        features = _landmarks(problem, count)
        if _left(problem, features) <= problem.shifts.min() or 2 * count > most:
            return features
        count *= 2


def count_landmarks(n: int, d: int) -> int:
    """Count landmarks: one for 16 rows up to 2,048, more if factoring takes no more than a product.

    A smooth kernel needs hardly more for more rows. The factors take 2 q^3 / 3 operations.
    """
    affordable = int((n**2 * (d + 12) / 2 * 3 / 2 / FACTOR_COST) ** (1 / 3))
    few = min(n // ROWS_OF_LANDMARK, max(MANY_LANDMARKS, affordable))
    return min(n, max(FEWEST, min(MOST_COMPONENTS, few)))


def _as_costly_as_steps(problem: Problem) -> int:
    """Count the features that cost as much as the remaining steps, by a trial of few rows.

    The eigenvalues of m of n rows are about m / n of those of all: so is the alpha of the trial.
    """
    n, d, n_shifts = problem.n_rows, problem.X.shape[1], problem.shifts.size
    some = problem.some(max(n // ROWS_OF_TRIED, LEAST_TRIED))
    shift = problem.shifts.min(keepdims=True) * some.size / len(problem.X)
    few = Problem(problem.kernel, problem.X[some], shift, problem.noise[some], problem.rng)
    pairs = local_pairs(few.kernel, few.X, few.dtype)
    steps = MOST_TRIED_STEPS
    if pairs is not None:
        with contextlib.suppress(NotPositiveDefinite):
            made = _near_and_far(few, _landmarks(few, FEWEST), pairs)
            steps = conjugate_gradients(
                KernelOperator.of(few.kernel, few.X, dtype=np.float32),
                problem.rng.standard_normal((some.size, 1)), few.shifts, noise=few.noise,
                preconditioner=OfColumns(made, np.zeros(1, np.intp)), tol=TRIED_TOL,
                max_iter=MOST_TRIED_STEPS,
            ).n_iter.max()  # fmt: skip
    return count_components(n, d, problem.dtype, STEPS_OF_ALL * int(steps), n_shifts)


def most_components(n: int, d: int, dtype: Any) -> int:
    """Return the largest number of features, whatever a trial says."""
    return count_components(n, d, dtype, STEPS_OF_ALL * MOST_TRIED_STEPS)


def count_components(n: int, d: int, dtype: Any, steps: int = 0, n_shifts: int = 1) -> int:
    """Count the features whose Gram matrices cost as much as PRODUCTS; more for many steps.

    If there are so many steps with FEWEST features, q of them leave about steps * FEWEST / q, and
    cost q^2 / unit: the sum is least where the former is twice the latter.
    """
    unit = n * (d + 12) / 6 / n_shifts  # q^2 that take as long as a kernel product
    count = int(max(math.sqrt(PRODUCTS * unit), (steps * FEWEST * unit / 2) ** (1 / 3)))
    held = MOST_BYTES // (n * np.dtype(dtype).itemsize)
    affordable = min(held, max(FEWEST, count), MOST_COMPONENTS) // LANES * LANES
    return int(min(n, max(FEWEST // 2, affordable)))


def _fitted(features: Any, X: Doubles) -> Any:
    """Return the feature map, fitted to X unless it is fitted already."""
    if not hasattr(features, "transform"):
        raise TypeError(
            f"preconditioner={features!r} has no transform; use 'auto', None, a number of "
            "components, a feature map or a preconditioner"
        )
    try:
        check_is_fitted(features)
    except NotFittedError:
        return clone(features).fit(X)
    return features
