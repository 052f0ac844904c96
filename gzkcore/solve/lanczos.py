"""Logarithms of determinants by stochastic Lanczos quadrature, from products with K only.

For A = K + alpha N and a preconditioner P, log det A = log det P + tr log(P^-1/2 A P^-1/2). A draw
from N(0, P) is a standard normal u in these coordinates, and the mean of n u^T log(...) u / u^T u
is the trace. The steps of conjugate gradients from this draw, with lengths a_j and factors b_j, are
Lanczos' process from u. Its tridiagonal matrix T has

    T_jj = 1 / a_j + b_(j-1) / a_(j-1),    T_j(j+1) = sqrt(b_j) / a_j,

and (log T)_11 is Gauss' quadrature for the quadratic form: it decreases with every step and
converges to it. One product serves all draws of all alphas; a column is finished when its
quadrature has settled. Lost orthogonality only repeats nodes and divides their weights (Greenbaum
1989), so that no reorthogonalisation is needed. The closer P is to A, the fewer steps are needed,
and the smaller is the part that is estimated.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, eigh_tridiagonal
from scipy.sparse.linalg import LinearOperator

from gzkcore._util.typing import Doubles
from gzkcore._util.validation import (
    check_integer,
    check_matrix,
    check_not_negatives,
    check_positive,
)

from .solve import (
    NotPositiveDefinite,
    OfColumns,
    Product,
    ShiftedSystems,
    check_noise,
    dots,
    not_finite,
)

__all__ = ["LogDeterminant", "log_determinant"]

EXHAUSTED = 1e-26  # of |r|^2: nothing of the start is left, and T is complete
INDEFINITE = (
    "is not positive definite to the precision of the product; use double, a larger alpha, or a "
    "kernel that is positive definite on these rows"
)


@dataclass
class LogDeterminant:
    """What `log_determinant` found.

    Attributes
    ----------
    value : ndarray of shape (k,)
        log det(K + alpha N) of each alpha, in nats.
    standard_error : ndarray of shape (k,)
        Estimated from the spread over the draws.
    n_iter : int
        Products made.
    converged : ndarray of bool of shape (k,)
        Whether the quadratures of all draws have settled.
    """

    value: Doubles
    standard_error: Doubles
    n_iter: int
    converged: NDArray[np.bool_]


def log_determinant(
    product: Product | LinearOperator,
    shifts: ArrayLike,
    normals: ArrayLike,
    *,
    noise: ArrayLike | None = None,
    preconditioner: Any = None,
    tol: float = 1e-5,
    max_iter: int = 1000,
) -> LogDeterminant:
    """Estimate log det(K + shifts[k] diag(noise)) for all k at once, as a `LogDeterminant`.

    Parameters
    ----------
    product : callable or LinearOperator
        As for `solve.conjugate_gradients`.
    shifts : array-like of shape (k,)
        alpha of each matrix, >= 0.
    normals : array-like of shape (n, n_draws) or (n_components + n, n_draws)
        Independent standard normals, two draws or more; a preconditioner needs n_components + n of
        them. Without a preconditioner random signs are possible too, with a smaller spread.
    noise : array-like of shape (n,), optional
        > 0; ones by default.
    preconditioner : Preconditioner, optional
        With `solve(R, columns)`, `sample(normals, column)` -> draws of N(0, P), and
        `log_determinant(column)` = log det P; `column` counts the shifts.
    tol : float, default=1e-5
        > 0: a quadrature has settled when two successive steps change it by at most tol n.
    max_iter : int, default=1000
        Largest number of products.

    Raises
    ------
    NotPositiveDefinite
        If K + alpha N has a direction without positive curvature.
    ValueError, TypeError
        If arguments do not match, or a product is not finite.

    Notes
    -----
    The standard error is proportional to 1 / sqrt(n_draws), and to sqrt(n) times the spread of the
    logarithms of the eigenvalues of P^-1 A. Use products in double precision unless the rounding
    errors of K are far below alpha. Each step takes one product for all draws of all shifts.

    References
    ----------
    Ubaru, Chen, Saad, SIAM J. Matrix Anal. Appl. 38 (2017); Wenger, Pleiss, Hennig, Cunningham,
    Gardner, ICML 2022, on preconditioning it.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian
    >>> from gzkcore.solve.lanczos import log_determinant
    >>> rng = np.random.default_rng(0)
    >>> K = Gaussian(0.5)(rng.standard_normal((100, 2)))
    >>> found = log_determinant(lambda V: K @ V, [0.1], rng.choice([-1.0, 1.0], (100, 20)))
    >>> exact = np.linalg.slogdet(K + 0.1 * np.eye(100))[1]
    >>> bool(abs(found.value[0] - exact) < 3 * found.standard_error[0])
    True
    """
    drawn = check_matrix("normals", normals)
    alphas = np.atleast_1d(check_not_negatives("shifts", shifts))
    if alphas.ndim != 1 or not alphas.size:
        raise ValueError(f"shifts={shifts!r} must be a list of one or more numbers >= 0")
    n_draws = drawn.shape[1]
    if n_draws < 2:
        raise ValueError(
            "normals has one column; pass two or more, so that the error can be estimated"
        )
    tol, max_iter = check_positive("tol", tol), check_integer("max_iter", max_iter, 1)
    known = np.zeros(alphas.size)
    starts = [drawn] * alphas.size
    if preconditioner is not None:
        starts = [preconditioner.sample(drawn, column) for column in range(alphas.size)]
        known[:] = [preconditioner.log_determinant(column) for column in range(alphas.size)]
    places = np.repeat(np.arange(alphas.size), n_draws)
    system = ShiftedSystems(
        product, None, np.concatenate(starts, axis=1), alphas[places],
        None if noise is None else check_noise(noise, len(drawn)),
        None if preconditioner is None else OfColumns(preconditioner, places), None,
    )  # fmt: skip
    means, settled, n_iter = quadratures(system, tol, max_iter)
    estimates = system.n_rows * means.reshape(alphas.size, n_draws)
    error = estimates.std(axis=1, ddof=1) / np.sqrt(n_draws)
    all_settled = np.array([each.all() for each in settled.reshape(alphas.size, n_draws)])
    return LogDeterminant(known + estimates.mean(axis=1), error, n_iter, all_settled)


def quadratures(
    system: ShiftedSystems, tol: float, max_iter: int
) -> tuple[Doubles, NDArray[np.bool_], int]:
    """Return u^T log(P^-1/2 A P^-1/2) u / u^T u of each column, which settled, and the steps."""
    made = [Quadrature() for _ in range(system.n_columns)]
    active, r = np.arange(system.n_columns), system.targets * system.scale
    z, power = system.precondition(r, active)
    p = z.copy()
    nothing = EXHAUSTED * dots(r, r)
    n_iter, look = 0, 1
    while active.size and n_iter < max_iter:
        q = system.times(p, active, exact=False)
        curvature = dots(p, q)
        if not np.isfinite(curvature).all():
            raise not_finite("product")
        if (curvature <= 0).any():
            shift = system.shifts[active[np.argmin(curvature)]]
            raise NotPositiveDefinite(f"K + {shift:g} N {INDEFINITE}")
        lengths = power / curvature
        r -= lengths * q
        n_iter += 1
        looks = n_iter >= look
        look = n_iter + 1 + n_iter // 10 if looks else look
        left = dots(r, r) > nothing[active]
        for j, column in enumerate(active.tolist()):
            made[column].lengths.append(lengths[j])
            left[j] &= not (looks and made[column].settles(tol))
            made[column].complete |= not left[j]
        active, r, p = active[left], r[:, left], p[:, left]
        if active.size:
            z, power_now = system.precondition(r, active)
            factors = power_now / power[left]
            for column, factor in zip(active.tolist(), factors, strict=True):
                made[column].factors.append(factor)
            p *= factors
            p += z
            power = power_now
    values = np.array([each.value() for each in made])
    return values, np.array([each.complete for each in made]), n_iter


class Quadrature:
    """Gauss' quadrature for the logarithm, from the scalars of conjugate gradients."""

    def __init__(self) -> None:
        self.lengths: list[float] = []
        self.factors: list[float] = []
        self.complete = False
        self._last, self._quiet = np.inf, 0

    def value(self) -> float:
        """Return (log T)_11."""
        steps = 1.0 / np.array(self.lengths)
        factors = np.array(self.factors[: len(steps) - 1])
        diagonal = steps.copy()
        diagonal[1:] += factors * steps[:-1]
        beside = np.sqrt(factors) * steps[:-1]
        try:
            nodes, vectors = eigh_tridiagonal(diagonal, beside)
        except LinAlgError:  # of some LAPACKs the fastest driver gives up where this one doesn't
            nodes, vectors = eigh_tridiagonal(diagonal, beside, lapack_driver="stev")
        if nodes[0] <= 0:
            raise NotPositiveDefinite(f"K + alpha N {INDEFINITE}")
        return float(np.square(vectors[0]) @ np.log(nodes))

    def settles(self, tol: float) -> bool:
        """Tell whether two looks in a row changed the value by at most tol."""
        before, self._last = self._last, self.value()
        self._quiet = self._quiet + 1 if abs(before - self._last) <= tol else 0
        return self._quiet == 2
