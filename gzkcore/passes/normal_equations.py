"""The normal equations of ridge regression: moments in, coefficients out.

From the moments of `gram`, taken about the weighted means, the coefficients are

    c = (G + alpha I)^-1 b,    G = Z^T W Z,  b = Z^T W y.

If kernels only scale the columns of one basis, Z_theta = Z D, the system (D G D + alpha I) v = D b
has the solution v = c / D with (G + alpha D^-2) c = b. So one G serves every kernel and every
alpha, and a candidate is a diagonal that is added to G.

The sums come from `GramAccumulator`, for rows [z 1 y].
"""

import contextlib
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs, dtrtri

from gzkcore._compiled import gram as _gram
from gzkcore._util.linalg import eigh
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.validation import check_some_weight
from gzkcore._util.warn import warn

# Columns whose shares of a fit, at most D_j^2 G_jj / alpha each, add up to less than this are left
# out of a candidate's system: the score stays the same to rounding.
NEGLIGIBLE = 1e-13

# Conjugate gradients end at this squared residual, in the preconditioner's norm and relative to the
# first, or after this many steps. They are tried for few targets: a step costs 2 m^2 per target,
# Cholesky m^3 / 3.
CONVERGED = 1e-20
MOST_STEPS = 60
MOST_TARGETS = 4

# Larger matrices are factored on one thread: on two, OpenBLAS (0.3.31) factors 12,000 columns and
# overruns its memory at 16,384, a matrix of 2 GiB.
MOST_THREADED = 12_000

TINY = np.finfo(np.float64).tiny


# ---- one alpha for each target


def coefficients(
    sums: Doubles, alphas: Doubles, fit_intercept: bool, dtype: np.dtype[Any]
) -> tuple[Doubles, Doubles]:
    """Solve the ridge systems of all targets: coefficients (n_targets, p) and intercepts."""
    sums, mean = centred(sums, fit_intercept)
    p = sums.shape[1] - 2
    coef = np.empty((len(alphas), p))
    for alpha in np.unique(alphas):
        targets = np.flatnonzero(alphas == alpha)
        system = System(sums[:p, :p], alpha, dtype)
        if system.vectors is not None:
            warn(
                f"the ridge system with alpha={alpha:g} is singular to working precision; "
                f"solved by eigenvalues, in {len(system.values)} of {p} directions. A larger "
                "alpha avoids this",
                LinAlgWarning,
            )
        coef[targets] = system.solve(sums[p + 1 + targets, :p].T).T
    return coef, mean[p + 1 :] - coef @ mean[:p]


class System:
    """(G + alpha I) c = b for a Gram matrix given by its lower triangle.

    By Cholesky, A = R^T R; by eigenvalues where that fails or A is singular to working precision.
    """

    def __init__(self, gram: Doubles, alpha: float, dtype: np.dtype[Any]):
        self.alpha = alpha
        self.n_features = len(gram)
        a = np.array(gram)
        a.flat[:: len(a) + 1] += alpha
        norm = a.diagonal().max()
        # LAPACK sees the lower triangle of a C matrix as the upper one of its transpose.
        with limit_blas(1) if len(a) > MOST_THREADED else contextlib.nullcontext():
            self.r, info = dpotrf(a.T, lower=0, clean=1, overwrite_a=1)
        self.vectors = None
        if info == 0:
            info = dpocon(self.r, norm, uplo="U")[0] < np.finfo(float).eps
        if info:
            self.values, self.vectors = eigen(gram, dtype)

    def solve(self, b: Doubles) -> Any:
        """Return c for each column of b."""
        if self.vectors is None:
            return dpotrs(self.r, b, lower=0)[0]
        return self.vectors @ ((self.vectors.T @ b) / (self.values + self.alpha)[:, None])

    def root(self) -> Any:
        """Return U with U U^T = (G + alpha I)^-1."""
        if self.vectors is None:
            return dtrtri(self.r, lower=0)[0]
        return self.vectors / np.sqrt(self.values + self.alpha)

    def degrees_of_freedom(self) -> Any:
        """Return tr(G (G + alpha I)^-1)."""
        if self.vectors is None:
            return self.n_features - self.alpha * np.square(self.root()).sum()
        return np.sum(self.values / (self.values + self.alpha))


def eigen(gram: Doubles, dtype: np.dtype[Any]) -> tuple[Doubles, Doubles]:
    """Eigenvalues and eigenvectors of a Gram matrix, without those lost in its rounding errors."""
    values, vectors = eigh(gram, lower=True)
    exact = values > len(values) * np.finfo(dtype).eps * values[-1]
    return values[exact], vectors[:, exact]


def inverses_of(gram: Doubles, alphas: Doubles, dtype: np.dtype[Any]) -> tuple[Doubles, Doubles]:
    """Return V and, for each alpha, the diagonal of V^T (G + alpha I)^-1 V as `System` has it.

    Directions lost in rounding errors count, unless G + alpha I is singular: a score of an alpha
    without them would be that of another fit.
    """
    values, vectors = eigh(gram, lower=True)
    lost = values <= len(values) * np.finfo(dtype).eps * values[-1]
    sums = values[:, None] + alphas
    singular = sums[0] <= np.finfo(float).eps * (gram.diagonal().max() + alphas)
    dropped = lost[:, None] & singular
    return vectors, np.where(dropped, 0.0, 1.0) / np.where(dropped, 1.0, sums)


# ---- moments


def centred(sums: Doubles, fit_intercept: bool) -> tuple[Doubles, Doubles]:
    """Return a copy of sums about the weighted means of the rows [z 1 y], and these means."""
    p = sums.shape[-1] - 2
    total = sums.reshape(-1, *sums.shape[-2:]).sum(axis=0)
    check_some_weight(total[p, p])
    mean = np.zeros(len(total))
    if fit_intercept:
        mean[:p] = total[p, :p] / total[p, p]
        mean[p + 1 :] = total[p + 1 :, p] / total[p, p]
    sums = sums.copy()
    _gram.recentre(sums.reshape(-1, *sums.shape[-2:]), mean)
    return sums, mean


def scaled(sums: Doubles, scale: Doubles | None) -> Doubles:
    """Turn sums for features z into those for scale * z."""
    if scale is None:
        return sums
    p = len(scale)
    sums = sums.copy()
    sums[:, :p] *= scale
    sums[:p] *= scale[:, None]
    return sums


# ---- many candidates


def penalties_of(total: Doubles, scales: list[Doubles | None], alphas: Doubles, m: int) -> Doubles:
    """Return the diagonals added to G, (n_candidates, m): alpha / D_j^2, 0 for the intercept.

    They are inf for columns that a candidate leaves out.
    """
    p = total.shape[1] - 2
    diagonal = np.maximum(total.diagonal()[:p], 0.0)
    penalties = np.zeros((len(scales), len(alphas), m))
    for scale, of_scale in zip(scales, penalties, strict=True):
        square = np.ones(p) if scale is None else np.square(scale)
        for alpha, penalty in zip(alphas, of_scale, strict=True):
            dropped = square == 0
            if alpha > 0:
                share = square * diagonal / alpha
                order = np.argsort(share)
                dropped[order[np.cumsum(share[order]) <= NEGLIGIBLE]] = True
            with np.errstate(divide="ignore", over="ignore"):
                penalty[:p] = np.where(dropped, np.inf, alpha / square)
    return penalties.reshape(-1, m)


def solve_candidates(
    sums: Doubles, penalties: Doubles, dtype: np.dtype[Any], want_freedom: bool
) -> tuple[Doubles, Doubles]:
    """Coefficients (n_candidates, n_targets, m) on [Z 1], and degrees of freedom where wanted."""
    n_targets, m = len(sums) - sums.shape[1] + 1, penalties.shape[1]
    freedom = np.full(len(penalties), np.nan)
    coef = np.zeros((len(penalties), n_targets, m))
    left = np.arange(len(penalties))
    if not want_freedom and n_targets <= MOST_TARGETS:
        coef, solved = _conjugate_gradients(sums, penalties)
        left = np.flatnonzero(~solved)
    work = np.empty(m * m if left.size else 0)
    for i in left:
        used = np.flatnonzero(np.isfinite(penalties[i]))
        penalty, some = penalties[i, used], np.empty((n_targets, len(used)))
        square = work[: len(used) ** 2].reshape(len(used), len(used))
        info, trace = _gram.solve_ridge(sums, used, penalty, square, some, want_freedom)
        freedom[i] = len(used) - trace
        if info:
            some, freedom[i] = _solve_by_eigenvalues(sums, used, penalty, dtype)
        coef[i] = 0.0
        coef[i][:, used] = some
    return coef, freedom


@np.errstate(divide="ignore", invalid="ignore")  # a target of zeros: 0 / 0 never converges
def _conjugate_gradients(sums: Doubles, penalties: Doubles) -> tuple[Doubles, Any]:
    """Solve (G + diag(penalty)) c = b for all penalties at once; one product with G is a step.

    The diagonal is the preconditioner, which removes the range of the penalties; then 30 steps are
    enough for points all over a sphere. Returns the coefficients (n_candidates, n_targets, m) and
    whether each candidate has converged; slow candidates end early.
    """
    n_targets, m = len(sums) - sums.shape[1] + 1, penalties.shape[1]
    gram = sums[:m, :m]
    used = np.repeat(np.isfinite(penalties), n_targets, axis=0)
    penalty = np.where(used, np.repeat(penalties, n_targets, axis=0), 0.0)
    diagonal = gram.diagonal() + penalty
    inverse = np.where(used & (diagonal > 0), 1.0 / np.maximum(diagonal, TINY), 0.0)
    r = np.tile(sums[-n_targets:, :m], (len(penalties), 1))
    c, z = np.zeros_like(r), inverse * r
    direction = z.copy()
    size = start = dots(r, z)
    coef, solved = np.empty_like(r), np.zeros(len(r), dtype=bool)
    active = np.arange(len(r))
    for step in range(1, MOST_STEPS + 1):
        product = direction @ gram
        product += penalty * direction
        length = (size / dots(direction, product))[:, None]
        c += length * direction
        r -= length * product
        np.multiply(inverse, r, out=z)
        before, size = size, dots(r, z)
        direction *= (size / before)[:, None]
        direction += z
        if step % 5 == 0:
            decrease = size / start
            done = decrease <= CONVERGED
            coef[active[done]], solved[active[done]] = c[done], True
            # Hopeful: at twice its rate so far a candidate converges in time.
            hopeful = ~done & (decrease ** (2 * MOST_STEPS / step) <= CONVERGED)
            if not hopeful.any():
                break
            if not hopeful.all():
                active, penalty, inverse, r, c, z, direction, size, start = (
                    a[hopeful] for a in (active, penalty, inverse, r, c, z, direction, size, start)
                )
    shape = (len(penalties), n_targets, m)
    return coef.reshape(shape), solved.reshape(shape[:2]).all(axis=1)


def dots(a: Doubles, b: Doubles) -> Any:
    """Return the products of corresponding rows."""
    return np.einsum("ij,ij->i", a, b)


def _solve_by_eigenvalues(
    sums: Doubles, used: Integers, penalty: Doubles, dtype: np.dtype[Any]
) -> tuple[Doubles, float]:
    """Return coefficients and degrees of freedom, without directions lost in rounding errors."""
    p = sums.shape[1] - 2
    gram, b = sums[np.ix_(used, used)], sums[p + 1 :, used]
    intercept = int(used[-1] == p)
    f = len(used) - intercept  # features
    mean = gram[f:, :f] / gram[f:, f:].ravel()[:, None]  # (intercept, f)
    scale = np.where(penalty[:f] > 0, 1.0 / np.sqrt(np.maximum(penalty[:f], TINY)), 1.0)
    centred = gram[:f, :f] - mean.T @ gram[f:, :f]
    values, vectors = eigen(scale[:, None] * centred * scale, dtype)
    ridge = 1.0 if penalty[0] > 0 else 0.0
    c = (b[:, :f] - b[:, f:] @ mean) * scale @ vectors / (values + ridge) @ vectors.T * scale
    offset = b[:, f:] / gram[f:, f:].ravel() - c @ mean.T
    return np.hstack([c, offset]), np.sum(values / (values + ridge)) + intercept
