"""Newton's method for regressions with the whole kernel and any convex loss.

Minimises P(c, b) = sum_i w_i l(y_i, f_i) + alpha / 2 c^T K c for f = K c + b. With the slopes g =
w l'(f), the curvatures H = w l''(f) and r = g + alpha c, a step (d, e) solves

    r + alpha d + H (K d + e) = 0,

which is a ridge regression whose rows have the weights H. Write H = A A^T, with A = sqrt(H) for
outputs that are not coupled, and d = A u. Then (alpha I + A^T K A) u = -A^+ r - A^T e, which is
symmetric, and well conditioned as weights go to 0. Rows without curvature have d = -r / alpha and
are left out of the system.

**Coupled outputs** (softmax): H = diag(p) - p p^T = A A^T with A = diag(q) (I - q q^T), q = sqrt p,
in each row. All outputs share the products with K. If K is stored, the preconditioner is the exact
inverse. Otherwise each output has its own preconditioner; then more steps are needed, in particular
if classes are nearly certain.

**The intercept** has in each step a prior with variance kappa / alpha about its current value: then
e = kappa sum_i (c_i + d_i), and K + kappa replaces K. The prior moves with the steps: each step
multiplies an error in b by at most alpha / (kappa sum H).

**Step lengths**: a step is shortened until the slope along it has fallen by half, so that P never
increases. f moves by t (K d + e), and trying a t costs no product. **The end**: by Newton's
quadratic model P exceeds its minimum by half of -P'(0), the slope along the step. The residual is
the square root of this excess over the decrease of P since the best constant. The last step is
still taken.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.wording import counted
from gzkcore.passes.streams import Step, as_step

from .losses import Loss
from .preconditioner import Preconditioner
from .solve import NotPositiveDefinite, Solution, conjugate_gradients
from .system import SINGLE_TOL, FactoredSystem, KernelSystem

__all__ = ["Minimum", "minimise"]

FLATTEST = 1e-10  # Curvatures below this share of the largest are 0.
SLOWEST = 1e-3  # A step leaves at most this share of an error in the intercept.
ALIKE = 2.0  # Weights that differ by no more than this factor share a preconditioner.
# The tolerance of a step's system is LOOSE at first, then TIGHTER times the residual.
LOOSE, TIGHTER = 1e-2, 0.1
FINEST = 1e-12  # Double precision allows this tolerance.
HALF = 0.5  # A step ends where the slope has fallen to this share of the slope at 0.
MOST_TRIED = 60  # So many lengths of a step are tried.
MOST_HELD = 1 << 25  # The inverses of coupled outputs have at most so many numbers.
MOST_FAILED = 3  # So many systems may miss their tolerance.


@dataclass
class Minimum:
    """The result of `minimise`.

    Attributes
    ----------
    coef : ndarray of shape (n, k)
    intercept : ndarray of shape (k,)
    loss : Loss
        The last one, with its final scale or width.
    n_iter : int
        Steps.
    residual : float
    converged : bool
    trouble : str
        Why it did not converge, with a remedy; "" if it did.
    objective : list of (float, float)
        P before and after each step, by the loss of that step.
    smooth : ndarray of shape (n, k)
        K coef.
    """

    coef: Doubles
    intercept: Doubles
    loss: Loss
    n_iter: int
    residual: float
    converged: bool
    trouble: str
    objective: list[tuple[float, float]]
    smooth: Doubles


@dataclass
class Point:
    """Coefficients, the intercept and their values at the rows."""

    coef: Doubles  # (n, k)
    intercept: Doubles  # (k,)
    smooth: Doubles  # (n, k): K c

    @property
    def f(self) -> Doubles:
        """The values at the rows."""
        return self.smooth + self.intercept

    def moved(self, step: "Point", length: float) -> "Point":
        """Return the point at this length along a step."""
        return Point(
            self.coef + length * step.coef,
            self.intercept + length * step.intercept,
            self.smooth + length * step.smooth,
        )


@dataclass
class Curvature:
    """H = A A^T of each row: A u = roots (u - q q^T u), with q the directions A leaves out."""

    weights: Doubles  # (n, k)
    roots: Doubles  # (n, k)
    q: Doubles | None

    @classmethod
    def of(cls, loss: Loss, y: Doubles, at: Point, weight: Doubles, alpha: float) -> "Curvature":
        """Return the curvature of a loss."""
        weight = weight[:, None]
        curvature = loss.curvature(y, at.f, alpha * at.coef / weight)
        q = None
        if loss.coupled:
            curvature = np.maximum(curvature, FLATTEST)
            curvature /= curvature.sum(axis=1, keepdims=True)
            q = np.sqrt(curvature)
        return cls(weight * curvature, np.sqrt(weight * curvature), q)

    @property
    def curved(self) -> Integers:
        """Rows with a curvature."""
        return np.flatnonzero(self.weights.max(axis=1) > FLATTEST * self.weights.max())

    def part(self, rows: Integers) -> "Curvature":
        """Return the curvature of some rows."""
        q = None if self.q is None else self.q[rows]
        return Curvature(self.weights[rows], self.roots[rows], q)

    def project(self, u: Doubles) -> Doubles:
        """Return u - q q^T u."""
        return u if self.q is None else u - self.q * (self.q * u).sum(axis=1, keepdims=True)

    def times(self, u: Doubles) -> Doubles:
        """Return A u."""
        return self.roots * self.project(u)

    def transposed(self, v: Doubles) -> Doubles:
        """Return A^T v."""
        return self.project(self.roots * v)

    def inverse(self, r: Doubles) -> Doubles:
        """Return A^+ r."""
        return self.project(r / self.roots)


class Preconditioned(Preconditioner):
    """A^+ P^-1 A^+T, near (alpha I + A^T K A)^-1, with P near K + alpha / p for each output."""

    def __init__(self, parts: list[Preconditioner], curvature: Curvature) -> None:
        self.parts, self.curvature = parts, curvature
        self.one = np.zeros(1, np.intp)

    def __repr__(self) -> str:
        return repr(self.parts[0])

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return P^-1 R for one column, all outputs one below the other."""
        roots = self.curvature.roots
        scaled = self.curvature.project(R.reshape(roots.shape)) / roots
        solved = [part.solve(scaled[:, [k]], self.one)[:, 0] for k, part in enumerate(self.parts)]
        return self.curvature.project(np.column_stack(solved) / roots).reshape(R.shape)


class Coupled(Preconditioner):
    """(alpha I + A^T K A)^-1 itself for coupled outputs, where K is held.

    With E_c = (K + alpha / p_c)^-1 it is A^+ (E - E 1 (sum_c E_c)^-1 1^T E) A^+T, E the blocks of
    all outputs and 1 the sum over these (Rasmussen, Williams 2006, section 3.5): k inverses.
    """

    def __init__(self, matrix: Doubles, alpha: float, curvature: Curvature) -> None:
        self.curvature, n = curvature, len(matrix)
        self.inverses = []
        with limit_blas(1):
            for weights in curvature.weights.T:
                factor = cho_factor(matrix + np.diag(alpha / weights), check_finite=False)
                self.inverses.append(cho_solve(factor, np.eye(n), check_finite=False))
            self.total = cho_factor(np.sum(self.inverses, axis=0), check_finite=False)

    def __repr__(self) -> str:
        return f"the whole matrix of {counted(len(self.inverses[0]), 'row')}"

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return P^-1 R for one column, all outputs one below the other."""
        roots = self.curvature.roots
        scaled = self.curvature.project(R.reshape(roots.shape)) / roots
        solved = np.column_stack([E @ scaled[:, k] for k, E in enumerate(self.inverses)])
        common = cho_solve(self.total, solved.sum(axis=1), check_finite=False)
        solved -= np.column_stack([E @ common for E in self.inverses])
        return self.curvature.project(solved / roots).reshape(R.shape)


class Newton:
    """The steps of one fit, see `minimise`."""

    def __init__(
        self,
        system: KernelSystem,
        loss: Loss,
        y: Doubles,
        weight: Doubles | None,
        *,
        fit_intercept: bool,
        step: Step | None,
        start: Minimum | None = None,
    ) -> None:
        self.system, self.loss, self.y, self.step = system, loss, y, step
        self.weight = np.ones(len(y)) if weight is None else weight
        self.alpha, self.fit_intercept = float(system.alphas[0]), fit_intercept
        self.trouble, self.failed = "", 0  # of the last linear system; how many had some
        # Weights, and the preconditioners that were made for them.
        self._made: tuple[Doubles, list[Preconditioner]] | None = None
        constant = self._constant(y)
        self.first = np.broadcast_to(constant, y.shape)
        self.near = start is not None
        if start is None:
            self.at = Point(np.zeros_like(y), constant, np.zeros_like(y))
        else:
            self.at = Point(start.coef, self._constant(y - start.smooth), start.smooth)

    def _constant(self, y: Doubles) -> Doubles:
        return self.loss.constant(y, self.weight) if self.fit_intercept else np.zeros(y.shape[1])

    def value(self, at: Point) -> float:
        """Return P."""
        with np.errstate(over="ignore", invalid="ignore"):
            losses = self.weight @ self.loss.values(self.y, at.f)
        return float(losses) + self.penalty(at) / 2

    def penalty(self, at: Point) -> float:
        """Return alpha c^T K c."""
        return max(0.0, self.alpha * float(np.einsum("ij,ij->", at.coef, at.smooth)))

    def gradient(self, at: Point) -> Doubles:
        """Return g."""
        with np.errstate(over="ignore"):
            return self.weight[:, None] * self.loss.gradient(self.y, at.f)

    def slope(self, at: Point, step: Point) -> float:
        """Return the slope of P along a step: r^T K d + g^T e."""
        g = self.gradient(at)
        with np.errstate(over="ignore", invalid="ignore"):
            along = np.einsum("ij,ij->", g + self.alpha * at.coef, step.smooth)
            slope = float(along + g.sum(axis=0) @ step.intercept)
        return slope if np.isfinite(slope) else np.inf

    def product(self, V: Doubles) -> Any:
        """Return K V in double."""
        return as_step(self.step, lambda: self.system.exact(V))

    def direction(self, tol: float) -> Point:
        """Return Newton's step, its system solved to a tolerance."""
        r = self.gradient(self.at) + self.alpha * self.at.coef
        curvature = Curvature.of(self.loss, self.y, self.at, self.weight, self.alpha)
        curved = curvature.curved
        kappa = 0.0
        if self.fit_intercept:
            size = float(self.system.kernel.diag(self.system.rows[:1])[0]) or 1.0
            total = float(curvature.weights.sum(axis=0).min())
            kappa = (size + (self.alpha / total if total > 0 else 0.0)) / SLOWEST
        if curved.size == len(r):
            d = self._solve(curvature, curved, r, np.zeros_like(r), kappa, tol)
        else:
            d = self._beside_flat(curvature, curved, r, kappa, tol)
        e = kappa * (self.at.coef.sum(axis=0) + d.sum(axis=0))
        return Point(d, e, self.product(d))

    def _beside_flat(
        self, curvature: Curvature, curved: Integers, r: Doubles, kappa: float, tol: float
    ) -> Doubles:
        """Return d if some rows have no curvature; the curved rows compensate for their sum."""
        d = -r / self.alpha
        d[curved] = 0.0
        if not curved.size:
            return d
        part = curvature.part(curved)
        if self.fit_intercept:
            excess = self.at.coef.sum(axis=0) + d.sum(axis=0)
            d[curved] = -excess * part.weights / part.weights.sum(axis=0)
        rest, moved = (r + self.alpha * d)[curved], self.product(d)[curved]
        d[curved] += self._solve(part, curved, rest, moved, kappa, tol, d.sum(axis=0))
        return d

    def _solve(
        self,
        part: Curvature,
        curved: Integers,
        r: Doubles,
        moved: Doubles,
        kappa: float,
        tol: float,
        added: Doubles | float = 0.0,
    ) -> Doubles:
        """Return A u, the remainder of the step d at the curved rows.

        The coefficients of d so far add up to `added`, and move f at these rows by `moved`.

        (alpha I + A^T (K + kappa) A) u = -A^+ r - A^T (moved + kappa (sum of c, and added)).
        """
        whole = len(curved) == len(self.y)
        system = self.system if whole else self.system.part(curved)
        own = -part.inverse(r) - part.transposed(moved)
        total = kappa * (self.at.coef.sum(axis=0) + added)
        target = own - part.transposed(np.broadcast_to(total, r.shape))
        if not target.any():
            return np.zeros_like(r)
        # The intercept's part may be large, and must not loosen the tolerance of the others.
        relative = float(np.linalg.norm(own) / np.linalg.norm(target))
        tol = max(tol * min(relative, 1.0), FINEST)

        def product_by(multiply: Any) -> Any:
            def product(U: Doubles) -> Doubles:
                V = part.times(U.reshape(r.shape))
                image = as_step(self.step, lambda: multiply(V)) + kappa * V.sum(axis=0)
                return part.transposed(image).reshape(U.shape)

            return product

        quick = system.product if tol >= SINGLE_TOL else system.exact

        def solved(preconditioner: Preconditioner) -> Solution:
            return conjugate_gradients(
                (product_by(quick), product_by(system.exact)), target.reshape(-1, 1), [self.alpha],
                preconditioner=preconditioner, tol=tol, max_iter=system.equations.max_iter,
            )  # fmt: skip

        preconditioner = self._preconditioner(system, part, kappa, whole)
        try:
            solution = solved(preconditioner)
        except NotPositiveDefinite:  # by rounding, where alpha is tiny
            if not isinstance(preconditioner, Coupled):
                raise
            solution = solved(self._separate(system, part, kappa, whole))
        self.trouble, self.failed = solution.trouble, self.failed + bool(solution.trouble)
        return part.times(solution.coef.reshape(r.shape))

    def _preconditioner(
        self, system: KernelSystem, part: Curvature, kappa: float, whole: bool
    ) -> Preconditioner:
        """Return a preconditioner: of coupled outputs together if K is stored and they are few."""
        few = part.weights.size * len(part.weights) <= MOST_HELD
        if isinstance(system, FactoredSystem) and part.q is not None and few:
            try:
                return Coupled(system.matrix + kappa, self.alpha, part)
            except LinAlgError:  # K is singular, or indefinite: the others raise for the latter
                pass
        return self._separate(system, part, kappa, whole)

    def _separate(
        self, system: KernelSystem, part: Curvature, kappa: float, whole: bool
    ) -> Preconditioner:
        """Return a preconditioner of each output; an expensive one serves for similar weights."""
        weights = part.weights
        if whole and self._made is not None and not isinstance(system, FactoredSystem):
            ratio = weights / self._made[0]
            if ratio.max() <= ALIKE and ratio.min() >= 1 / ALIKE:
                return Preconditioned(self._made[1], part)
        made = [system.preconditioned(1 / column, kappa) for column in weights.T]
        if whole:
            self._made = weights, made
        return Preconditioned(made, part)

    def length(self, step: Point, slope: float) -> float:
        """Return the length of a step: 1, or where the slope has fallen by half; 0 if nowhere."""
        low, high, length, before = 0.0, np.inf, 1.0, self.value(self.at)
        for _ in range(MOST_TRIED):
            there = self.at.moved(step, length)
            now = self.slope(there, step)
            if now < HALF * slope:
                low = length
            elif now <= 0 or (now <= -HALF * slope and self.value(there) <= before):
                return length
            else:
                high = length
            length = 2 * low if np.isinf(high) else (low + high) / 2
        return low

    def run(self, tol: float, max_iter: int) -> Minimum:
        """Step until the loss is done or nothing helps."""
        residual, stuck, n_iter = np.inf, "", 0
        objective: list[tuple[float, float]] = []
        begun = self.loss.begun(self.y, self.first, self.weight, self.near)
        if begun is None:
            return self._minimum(0, 0.0, "", objective)
        self.loss = begun
        exactness = LOOSE
        while n_iter < max_iter and self.failed < MOST_FAILED:
            step = self.direction(exactness)
            slope = self.slope(self.at, step)
            n_iter += 1
            if slope >= 0 and exactness > tol * TIGHTER and np.abs(step.smooth).any():
                exactness *= LOOSE
                continue
            before = self.value(self.at)
            length = self.length(step, slope) if slope < 0 else 0.0
            self.at = self.at.moved(step, length)
            objective.append((before, self.value(self.at)))
            residual = self.residual(max(-slope, 0.0))
            exactness = max(min(LOOSE, TIGHTER * residual), TIGHTER * tol)
            if length == 0.0 and residual > tol:
                stuck = "stagnates, since rounding errors are as large as its steps; "
                stuck += "use a larger tol"
                break
            penalty = self.penalty(self.at)
            other = self.loss.next(self.y, self.at.f, self.weight, penalty, residual, tol)
            if other is None:
                return self._minimum(n_iter, residual, "", objective)
            self.loss = other
        if self.failed == MOST_FAILED:
            stuck = f"does without exact steps, and of the last one's linear system {self.trouble}"
        stuck = stuck or "needs more steps; use a larger max_iter or tol"
        trouble = (
            f"tol={tol:g} is not reached after {counted(n_iter, 'step')}, where the residual is "
            f"{residual:.2g}, with alpha={self.alpha:g}: it {stuck}, or a larger alpha"
        )
        return self._minimum(n_iter, residual, trouble, objective)

    def residual(self, decrement: float) -> float:
        """Return the root of the excess of P over its minimum, relative to its decrease."""
        first = self.weight @ self.loss.values(self.y, self.first)
        fall = max(float(first - self.value(self.at)), self.penalty(self.at) / 2)
        sizes = self.weight @ self.loss.sizes(self.y, self.at.f) + self.penalty(self.at)
        noise = np.finfo(np.float64).eps * sizes
        if decrement / 2 <= noise and fall <= noise:
            return 0.0
        return float(np.sqrt(decrement / 2 / fall)) if fall > 0 else np.inf

    def _minimum(self, n_iter: int, residual: float, trouble: str, objective: Any) -> Minimum:
        at = self.at
        return Minimum(
            at.coef, at.intercept, self.loss, n_iter, residual, not trouble, trouble, objective,
            at.smooth,
        )  # fmt: skip


def minimise(
    system: KernelSystem,
    loss: Loss,
    y: Doubles,
    weight: Doubles | None = None,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 100,
    step: Step | None = None,
    start: Minimum | None = None,
) -> Minimum:
    """Minimise sum_i w_i l(y_i, f_i) + alpha / 2 c^T K c over c and b, with f = K c + b.

    Returns a `Minimum`.

    Parameters
    ----------
    system : KernelSystem
        With one alpha > 0, and no noise.
    loss : Loss
    y : ndarray of shape (n, k)
    weight : ndarray of shape (n,), optional
        > 0.
    fit_intercept : bool, default=True
        Without it b is 0.
    tol : float, default=1e-3
        The largest residual, see the head of the module.
    max_iter : int, default=100
        The most steps.
    step : callable, optional
        Runs each product.
    start : Minimum, optional
        Where steps begin: the minimum of a similar loss on the same rows, both of y - f alone.
    """
    newton = Newton(system, loss, y, weight, fit_intercept=fit_intercept, step=step, start=start)
    return newton.run(tol, max_iter)
