"""Conjugate gradients for (K + alpha_k diag(noise)) x_k = b_k: one product serves all columns.

A step multiplies K by one vector for each column, which is nearly all of its cost; each column has
a shift alpha_k and scalars of its own, and leaves the block when it is done. The product may be in
single precision: what counts is the true residual, by `exact_product`, and where that is not small
enough, the column goes on from it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator

from gzkcore._util.typing import Doubles, Integers

__all__ = ["NotPositiveDefinite", "Solution", "conjugate_gradients"]

Product: TypeAlias = Callable[[Doubles], Doubles]

# A round of steps in single precision that leaves more than this of the true residual is the last.
WORTH = 0.1


class NotPositiveDefinite(np.linalg.LinAlgError):
    """The matrix of the system, or the preconditioner, has a negative or no curvature."""


@dataclass
class Solution:
    """What `conjugate_gradients` found, for each column."""

    coef: Doubles  # (n, k)
    residual: Doubles  # (k,): |b - (K + alpha N) x| / |b|, with K in double
    n_iter: Integers  # (k,): steps
    converged: Any  # (k,): whether the residual is at most tol
    history: list[Doubles] = field(default_factory=list)  # the recurrences' residuals of each step


def conjugate_gradients(
    product: Product | LinearOperator,
    targets: ArrayLike,
    shifts: ArrayLike,
    *,
    noise: ArrayLike | None = None,
    preconditioner: Any = None,
    exact_product: Product | LinearOperator | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    start: ArrayLike | None = None,
    progress: Any = None,
    checkpoint: Any = None,
) -> Solution:
    """Solve (K + shifts[k] diag(noise)) x_k = targets[:, k] for all columns k at once."""
    b = np.asarray(targets, dtype=np.float64)
    shifts = np.asarray(shifts, dtype=np.float64)
    diagonal = None if noise is None else np.asarray(noise, dtype=np.float64)[:, None]
    multiply = _as_function(product)
    exact = multiply if exact_product is None else _as_function(exact_product)

    def shifted(product: Product, V: Doubles, columns: Integers) -> Doubles:
        found = product(V) + shifts[columns] * (V if diagonal is None else V * diagonal)
        if not np.isfinite(found).all():
            raise ValueError("the product of the kernel with a vector is not finite")
        return found

    n, k = b.shape
    size = np.linalg.norm(b, axis=0)
    goal = tol * size
    x = np.zeros((n, k)) if start is None else np.array(start, dtype=np.float64)
    r = b.copy() if start is None else b - shifted(exact, x, np.arange(k))
    true = np.linalg.norm(r, axis=0)
    n_iter, history = np.zeros(k, dtype=np.intp), []
    in_double = np.full(k, exact is multiply)
    left = np.flatnonzero(true > goal)
    while left.size:
        single = left[~in_double[left]]
        columns = single if single.size else left
        now, before = multiply if single.size else exact, true[columns]

        # Steps, until the recurrence of each column says that it is done.
        active, (y, s) = columns, (x[:, columns], r[:, columns])
        z = _solve(preconditioner, s, active)
        p, rz = z.copy(), _dots(s, z)
        while active.size:
            q = shifted(now, p, active)
            curvature = _dots(p, q)
            if (curvature <= 0).any():
                if now is multiply and exact is not multiply:
                    in_double[active[curvature <= 0]] = True
                else:
                    k = active[np.argmin(curvature)]
                    raise NotPositiveDefinite(
                        f"K + {shifts[k]:g} N is not positive definite (p^T A p = "
                        f"{curvature.min():.3g}): the kernel is not, or alpha is too small for the "
                        "precision; use another kernel, a larger alpha, or double"
                    )
            length = np.where(curvature > 0, rz / np.where(curvature > 0, curvature, 1), 0.0)
            y += length * p
            s -= length * q
            n_iter[active] += 1
            found = np.full(k, np.nan)
            found[active] = np.linalg.norm(s, axis=0)
            history.append(found / np.where(size > 0, size, 1))
            done = (found[active] <= goal[active]) | (n_iter[active] >= max_iter) | (curvature <= 0)
            if done.any():
                x[:, active[done]], r[:, active[done]] = y[:, done], s[:, done]
                active, y, s, p, q, rz, length = (
                    active[~done], y[:, ~done], s[:, ~done], p[:, ~done], q[:, ~done], rz[~done],
                    length[~done],
                )  # fmt: skip
                if not active.size:
                    break
            z = _solve(preconditioner, s, active)
            # r_new - r_old = -length q: flexible, at no cost
            beta = np.maximum(-length * _dots(z, q) / rz, 0.0)
            rz = _dots(s, z)
            p = z + beta * p

        r[:, columns] = b[:, columns] - shifted(exact, x[:, columns], columns)
        true[columns] = np.linalg.norm(r[:, columns], axis=0)
        stuck = in_double[columns] & (true[columns] > 0.5 * before)
        in_double[columns] |= true[columns] > WORTH * before
        again = (true[columns] > goal[columns]) & (n_iter[columns] < max_iter) & ~stuck
        left = np.concatenate([np.setdiff1d(left, columns), columns[again]])
    residual = np.divide(true, size, out=np.zeros(k), where=size > 0)
    return Solution(x, residual, n_iter, true <= goal, history)


def _as_function(product: Any) -> Product:
    return (lambda V: product @ V) if isinstance(product, LinearOperator) else product


def _solve(preconditioner: Any, R: Doubles, columns: Integers) -> Doubles:
    return R if preconditioner is None else preconditioner.solve(R, columns)


def _dots(A: Doubles, B: Doubles) -> Doubles:
    found: Doubles = np.einsum("ij,ij->j", A, B)
    return found
