"""Preconditioners of K + alpha N, the kernel matrix of all rows and noise: P near it, P^-1 cheap.

Conjugate gradients take about sqrt(c) / 2 log(2 / tol) steps, c the condition number of P^-1 (K +
alpha N). Features Z of the kernel are what makes c small: Z Z^T near K is spectral approximation.
N is a diagonal matrix, the noise of each row relative to alpha.
"""

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Floats, Integers, Seed
from gzkcore._util.wording import counted
from gzkcore.features.base import tiles
from gzkcore.features.nystrom import NystromFeatures
from gzkcore.kernels.base import Kernel

__all__ = ["Diagonal", "LowRank", "Preconditioner", "preconditioner_for"]

COMPONENTS = 512
SAMPLE = 16  # landmarks are chosen among so many rows for each of them


class Preconditioner:
    """Base: `solve` returns P^-1 R, with a P for each column's alpha; P is symmetric and positive.

    Attributes
    ----------
    n_components : int
        Columns of Z.
    n_neighbours : int
        Rows that each row is compared with.
    nbytes : int
        Memory held.
    seconds : float
        Time that it took to make.
    """

    n_components = 0
    n_neighbours = 0
    nbytes = 0
    seconds = 0.0

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return P^-1 R of shape (n, len(columns)): column j with the shift of number columns[j]."""
        raise NotImplementedError

    def condition_bound(self, column: int) -> float:
        """Return a number that the condition number is at most, inf if none is known."""
        return math.inf

    def log_determinant(self, column: int) -> float:
        """Return log det P for the shift of this number."""
        raise NotImplementedError


class Diagonal(Preconditioner):
    """The diagonal of K + alpha N."""

    def __init__(self, diagonal: Doubles, shifts: Doubles, noise: Doubles) -> None:
        self.diagonal, self.shifts, self.noise = diagonal, shifts, noise

    def __repr__(self) -> str:
        return "the diagonal"

    def _of(self, columns: Integers) -> Doubles:
        values: Doubles = self.diagonal[:, None] + self.noise[:, None] * self.shifts[columns]
        return values

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Divide by the diagonal."""
        return R / self._of(columns)

    def log_determinant(self, column: int) -> float:
        """Return log det P."""
        return float(np.log(self._of(np.array([column]))).sum())


class LowRank(Preconditioner):
    """P = Z Z^T + mu N, inverted by Woodbury's identity."""

    def __init__(self, Z: Floats, diagonal: Doubles, shifts: Doubles, noise: Doubles) -> None:
        began = time.perf_counter()
        self.Z, self.shifts, self.noise = Z, shifts, noise
        self.n_components = Z.shape[1]
        left = np.maximum(diagonal - _squares(Z), 0.0)
        self.left = float((left / noise).sum())
        self.mu = np.maximum(shifts, self.left / len(Z))
        self.nbytes = Z.nbytes
        self._gram = _gram(Z, 1 / noise)
        self._factors: dict[float, Any] = {}
        self.seconds = time.perf_counter() - began

    def __repr__(self) -> str:
        return f"{counted(self.n_components, 'component')}"

    def _factor(self, mu: float) -> Any:
        if mu not in self._factors:
            with limit_blas(1):
                matrix = self._gram + mu * np.eye(self.n_components)
                self._factors[mu] = cho_factor(matrix, lower=True, overwrite_a=True)
        return self._factors[mu]

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return (N^-1 R - N^-1 Z (mu I + Z^T N^-1 Z)^-1 Z^T N^-1 R) / mu."""
        scaled: Doubles = R / self.noise[:, None]
        inner = _transposed_product(self.Z, scaled)
        for j, mu in enumerate(self.mu[columns]):
            inner[:, j] = cho_solve(self._factor(mu), inner[:, j])
        found = scaled - _product(self.Z, inner) / self.noise[:, None]
        return found / self.mu[columns]

    def condition_bound(self, column: int) -> float:
        """Return 1 + trace(N^-1 (K - Z Z^T)) / alpha, for Z Z^T that nowhere exceeds K."""
        return 1.0 + self.left / float(self.shifts[column])

    def log_determinant(self, column: int) -> float:
        """Return log det P, by the determinant of what Woodbury inverts."""
        mu = float(self.mu[column])
        inner = 2 * np.log(np.diag(self._factor(mu)[0])).sum()
        n, p = self.Z.shape
        return float(inner + (n - p) * math.log(mu) + np.log(self.noise).sum())


def preconditioner_for(
    given: Any,
    kernel: Kernel,
    X: Floats,
    shifts: Doubles,
    *,
    noise: Doubles | None = None,
    random_state: Seed = None,
) -> Preconditioner:
    """Make the preconditioner of K(X, X) + alpha N for each alpha of shifts."""
    if isinstance(given, Preconditioner):
        return given
    began = time.perf_counter()
    X = np.asarray(X, dtype=np.float64)
    shifts = np.asarray(shifts, dtype=np.float64)
    noise = np.ones(len(X)) if noise is None else np.asarray(noise, dtype=np.float64)
    diagonal = kernel.diag(X)
    if given is None:
        return Diagonal(diagonal, shifts, noise)
    if given == "auto":
        given = COMPONENTS
    features = (
        NystromFeatures(kernel, min(int(given), len(X)), random_state=random_state)
        if isinstance(given, int | np.integer)
        else given
    )
    made = LowRank(_features(features, X), diagonal, shifts, noise)
    made.seconds = time.perf_counter() - began
    return made


def _features(features: Any, X: Doubles) -> Floats:
    """Return Z in single precision: its arithmetic is in double, so P stays what it is said to be."""
    try:
        check_is_fitted(features)
    except NotFittedError:
        rows = X
        if isinstance(features, NystromFeatures):
            size = SAMPLE * features.n_components
            rows = X[np.random.default_rng(0).permutation(len(X))[:size]]
        features = clone(features).fit(rows)
    parts = [
        np.asarray(features.transform(X[rows]), dtype=np.float32)
        for rows in tiles(len(X), 8 * (X.shape[1] + 1024))
    ]
    return np.concatenate(parts)


# ---- products with Z: held in single precision, multiplied in double, a tile of rows at a time


def _doubles(Z: Floats) -> Iterator[tuple[slice, Doubles]]:
    buffer = np.empty((0, Z.shape[1]))
    for rows in tiles(len(Z), 16 * Z.shape[1]):
        if len(buffer) < rows.stop - rows.start:
            buffer = np.empty((rows.stop - rows.start, Z.shape[1]))
        tile = buffer[: rows.stop - rows.start]
        np.copyto(tile, Z[rows])
        yield rows, tile


def _squares(Z: Floats) -> Doubles:
    return np.concatenate([np.einsum("ij,ij->i", tile, tile) for _, tile in _doubles(Z)])


def _gram(Z: Floats, weights: Doubles) -> Doubles:
    total = np.zeros((Z.shape[1], Z.shape[1]))
    for rows, tile in _doubles(Z):
        tile *= np.sqrt(weights[rows, None])
        total += tile.T @ tile
    return total


def _transposed_product(Z: Floats, V: Doubles) -> Doubles:
    total = np.zeros((Z.shape[1], V.shape[1]))
    for rows, tile in _doubles(Z):
        total += tile.T @ V[rows]
    return total


def _product(Z: Floats, V: Doubles) -> Doubles:
    return np.concatenate([tile @ V for _, tile in _doubles(Z)])
