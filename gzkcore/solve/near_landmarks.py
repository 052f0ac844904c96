"""A preconditioner P with thousands of landmarks, of which each row uses only the nearest."""

import numpy as np
from scipy.linalg import LinAlgError, cho_solve
from scipy.linalg.lapack import dpotri

from gzkcore._compiled import neighbours as _neighbours
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Integers
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.products import Pairs, kernel_matrix

from .neighbours import Nearest, Neighbours, Seen, SparseFactor
from .preconditioner import Preconditioner, factor_of

__all__ = ["NearLandmarks"]

# A row sees so many landmarks: with 31 neighbours and itself five vectors of 16. With 32 a Gaussian
# took 12 steps instead of 10; with 64 it took one less on the sphere, and one more on clusters.
LANDMARKS_SEEN = 48
# This share of the largest k(x, x) is added to the diagonal of the landmarks' matrix: thousands of
# landmarks have eigenvalues below rounding, and the matrix of those that a row sees is factored in
# the arithmetic of the factor. In single precision 1e-4 took 9 steps where 1e-5 took 10.
LANDMARK_NOISE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}
# Landmarks are chosen among so many rows for each of them: enough to lie evenly.
SAMPLED_FOR_EACH = 16
# The density about a row of this sample is estimated from the distance of its 16th neighbour.
NEIGHBOUR_OF_DENSITY = 16


def spread_landmarks(X: Doubles, count: int, rng: np.random.Generator) -> Integers:
    """Choose rows of X that are evenly spread, and closer together where there are more rows.

    The next row is always the one that is furthest from those chosen. Distances are divided by
    r^(3/4), where r is the distance to the 16th neighbour in a sample of the rows, so that the
    distance between chosen rows is of this order. This is a compromise: rows that are evenly spaced
    would mostly be isolated rows, and rows drawn in proportion to the density would be too few
    elsewhere. For a Gaussian at airports r^(1/4) took 12 steps, r^(1/2) 10 and r^(3/4) 8. On the
    sphere even distances matter: with rows from the middle of cells of a k-d tree the Gaussian took
    16 steps instead of 10.
    """
    n, size = len(X), SAMPLED_FOR_EACH * count
    some = rng.choice(n, size, replace=False) if n > size else np.arange(n)
    rows = X[some] - np.median(X[some], axis=0)
    last = Nearest(rows).to(rows, min(NEIGHBOUR_OF_DENSITY, len(rows)))[:, -1]
    radii = np.linalg.norm(rows - rows[last], axis=1)
    middle = float(np.median(radii[radii > 0])) if radii.any() else 1.0
    radii = np.clip(radii / middle, 1e-3, 1e3)  # of duplicates: 0
    points = np.ascontiguousarray(rows.T, dtype=np.float32)
    chosen = np.empty(count, np.intp)
    _neighbours.spread(
        points, (radii**-1.5).astype(np.float32), int(rng.integers(len(rows))),
        np.empty(len(rows), np.float32), chosen,
    )  # fmt: skip
    return some[chosen]


class NearLandmarks(Preconditioner):
    """P by conditional distributions: of values at landmarks, then of those at rows, one by one.

    The covariance of the values u at the landmarks is their kernel matrix K_u. The value y of a
    row, with noise, is predicted from u at the landmarks nearest to it and from the nearest earlier
    rows: G y + B u = e with white noise e, for sparse G (n, n), triangular, and B (n, q). Hence

    P = G^-1 (I + B K_u B^T) G^-T and P^-1 = G^T (I - B (K_u^-1 + B^T B)^-1 B^T) G.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray of shape (n, d)
    pairs : Pairs
        The kernel at pairs of rows of X.
    count : int
        q.
    n_neighbours, n_seen : int
        How many neighbours and landmarks a row depends on.
    shifts, noise
        See `Diagonal`.
    rng : Generator

    Notes
    -----
    Computing it takes n (l + m)^2 ((d + 12) / 2 + (l + m) / 6 for each alpha) operations for l seen
    landmarks and m neighbours of each row, two searches, and q^3 + q^3 / 3 for each alpha. `solve`
    takes 4 n (l + m) + 2 q^2 for a column. Memory: n (9 (l + m) + 20) + 8 q^2 bytes, and 4 n (l +
    m) + 8 q^2 for each alpha, where 4 n (l + m) doubles in double precision.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Doubles,
        pairs: Pairs,
        count: int,
        n_neighbours: int,
        n_seen: int,
        shifts: Doubles,
        noise: Doubles,
        rng: np.random.Generator,
    ) -> None:
        dtype = pairs.known.coefficients.dtype
        self.neighbours = Neighbours.of(pairs.rows, n_neighbours, rng)
        order = self.neighbours.order
        self.landmarks = spread_landmarks(pairs.rows, count, rng)
        self.seen = Seen.of(pairs.rows[order], pairs.rows[self.landmarks], n_seen)
        K = kernel_matrix(kernel, X[self.landmarks], dtype=np.float64)
        own = LANDMARK_NOISE[dtype] * float(K.diagonal().max())
        self.distinct, self._which = np.unique(shifts, return_inverse=True)
        self._own, self._root = own, factor_of(K, own)
        self.make_factors(pairs, noise)
        self.n_components, self.n_neighbours = count, self.neighbours.table.shape[1]
        factors = self.factor.values.nbytes + self.factor.at_seen.nbytes
        cores = (1 + len(self._cores)) * self._root.nbytes
        self.nbytes = self.neighbours.nbytes + self.seen.nbytes + factors + cores

    def make_factors(self, pairs: Pairs, noise: Doubles) -> None:
        """Compute the factors, which depend on the noise of the rows."""
        order, n_landmarks = self.neighbours.order, len(self.landmarks)
        of_rows = np.multiply.outer(self.distinct, noise[order])
        of_landmarks = np.full((len(of_rows), n_landmarks), self._own)
        self.factor = SparseFactor(
            self.neighbours,
            pairs.take(np.concatenate([order, self.landmarks])),
            np.empty((len(order) + n_landmarks, 0), pairs.known.coefficients.dtype),
            np.concatenate([of_rows, of_landmarks], axis=1),
            self.seen,
        )
        with limit_blas(1):
            inverse, info = dpotri(self._root, lower=True)  # the lower triangle
        if info:
            raise LinAlgError(f"the kernel matrix of {n_landmarks} landmarks is singular")
        self._cores = [factor_of(self.seen.gram(B).T + inverse, 0.0) for B in self.factor.at_seen]

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return P^-1 R, see `Preconditioner`."""
        solved, which, order = np.empty(R.shape), self._which[columns], self.neighbours.order
        for s in np.unique(which):
            mine, B = which == s, self.factor.at_seen[s]
            white = self.factor.multiply(s, R[order][:, mine], slice(0, len(R)))
            inner = self.seen.transposed_product(B, white)
            with limit_blas(1):
                inner = cho_solve((self._cores[s], True), inner)
            self.seen.subtract_product(B, inner, white)
            solved[np.ix_(order, mine)] = self.factor.multiply_transposed(s, white)
        return solved

    def __repr__(self) -> str:
        return super().__repr__().replace("component", "landmark")
