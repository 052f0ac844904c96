"""The whole kernel beside its features: what `KernelRidge` costs, and how well it predicts."""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from gzkcore._util.memory import forget_peak, resident_memory
from gzkcore._util.typing import Doubles, Rows
from gzkcore._util.validation import dense
from gzkcore._util.wording import counted, plain
from gzkcore.kernels.base import Kernel
from gzkcore.learn.fit_memory import whole_bytes
from gzkcore.learn.kernel_ridge import KernelRidge
from gzkcore.learn.kernel_ridge_cv import KernelRidgeCV
from gzkcore.learn.kernel_system import HELD_ROWS, KernelSystem

# Rows, and values of them, that the cost of all is worked out from; right-hand sides solved for.
TRIED_ROWS, TRIED_VALUES, RIGHT_SIDES = 1 << 13, 1 << 22, 8
# Steps of the solver that are waited for.
MOST_STEPS = 200
# Products in double that a fit takes.
EXACT_PRODUCTS = 2
# Rows that alpha is chosen on, and components of a preconditioner of few rows.
CHOSEN_ROWS, CHOSEN_COMPONENTS = 3000, 512
# Of a preconditioner of many rows, at least; and the power of their number that steps grow with,
# on kin40k: a trial of 2,000 rows for 8,000 took 70 steps, these 151.
LEAST_COMPONENTS, GROWTH = 256, 0.5
# Rows that a fit and a prediction are warmed up with, before memory is measured.
WARM_ROWS = 64


@dataclass(frozen=True)
class WholeCost:
    """What a `KernelRidge` on n_samples rows is expected to take.

    Attributes
    ----------
    alpha : float
    statistical_dimension : float
        tr K (K + alpha I)^-1, as far as the rows tried can tell: at most their number.
    n_iter : int
        Steps of the solver.
    converged : bool
        Whether so many steps were enough for the rows tried.
    preconditioner : str
    seconds, megabytes : float
    """

    alpha: float
    statistical_dimension: float
    n_iter: int
    converged: bool
    preconditioner: str
    seconds: float
    megabytes: float

    @property
    def about(self) -> str:
        """Seconds, steps and megabytes in words."""
        more = "about" if self.converged else "more than"
        seconds = f"{self.seconds:.2g}" if self.seconds < 10 else f"{self.seconds:,.0f}"
        steps = counted(self.n_iter, "step")
        return f"{more} {seconds} s ({steps}) and {self.megabytes:,.0f} MB"


def cost_of(
    kernel: Kernel,
    X: Rows,
    alpha: float,
    n_samples: int,
    rng: np.random.Generator,
    n_columns: int = 1,
    targets: Doubles | None = None,
) -> WholeCost:
    """Predict what a `KernelRidge` on n_samples rows takes, by one on some of these.

    On m of n rows the eigenvalues of K are about m / n of those on all, so the trial has m / n
    times alpha. Products scale with n^2, all else with n; where the matrix is factored, its memory
    with n^2 and all else with n^3. The targets of the trial are noise, unless some are given: then
    the steps are those that these take, of as small a preconditioner as many rows have, times
    (n / m)^GROWTH.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    X : {ndarray, sparse matrix} of shape (n_rows, dim)
    alpha : float
        > 0, for all n_samples rows.
    n_samples : int
    rng : Generator
    n_columns : int, default=1
        Systems that are solved at once: one for each target, and one more for an intercept.
    targets : ndarray of shape (n_rows, n_columns), optional
    """
    n_rows, dim = X.shape
    m = min(n_rows, TRIED_ROWS, max(2, TRIED_VALUES // max(dim, 1)))
    chosen = np.sort(rng.choice(n_rows, m, replace=False)) if m < n_rows else slice(None)
    rows = dense(X[chosen])
    shift, more = alpha * m / n_samples, n_samples / m
    # Few rows would be factored where all are not.
    few = m <= HELD_ROWS < n_samples
    components = CHOSEN_COMPONENTS if targets is None else LEAST_COMPONENTS
    preconditioner = components if few else "auto"
    start = time.perf_counter()
    system = KernelSystem(
        kernel, rows, np.array([shift]), preconditioner=preconditioner, max_iter=MOST_STEPS,
        random_state=int(rng.integers(2**31)),
    )  # fmt: skip
    made = system.preconditioner
    setup = time.perf_counter() - start
    noise = rng.standard_normal((m, RIGHT_SIDES))
    found = system.solve(noise, np.full(RIGHT_SIDES, shift))
    solved = time.perf_counter() - start
    dimension = m - shift * float(np.einsum("ij,ij->", noise, found.coef)) / RIGHT_SIDES
    n_iter, block = int(found.n_iter.max()), noise[:, :n_columns]
    if targets is not None:
        block, n_columns = targets[chosen], targets.shape[1]
        taken = system.solve(block, np.full(n_columns, shift)).n_iter.max()
        n_iter = math.ceil(taken * (more**GROWTH if few else 1.0))
    columns = np.zeros(n_columns, np.intp)
    products = n_iter * seconds_of(lambda: system.product(block))
    products += EXACT_PRODUCTS * seconds_of(lambda: system.exact(block))
    others = n_iter * seconds_of(lambda: made.solve(block, columns))
    made_bytes = more ** (1 + system.factored) * made.nbytes
    seconds = more**2 * products + more * (setup + others)
    return WholeCost(
        alpha=alpha,
        statistical_dimension=min(max(dimension, 0.0), float(m)),
        n_iter=n_iter,
        converged=bool(found.converged.all()),
        preconditioner=plain(repr(system.preconditioner)),
        seconds=more**3 * solved if system.factored else seconds,
        megabytes=whole_bytes(n_samples, dim, n_columns, made_bytes) / 1e6,
    )


def seconds_of(work: Callable[[], Any], repeats: int = 3) -> float:
    """Return the least time of a few calls."""
    takes = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        takes.append(time.perf_counter() - start)
    return min(takes)


# ---- as a method among others


def fit_and_predict(
    kernel: Kernel,
    train: Rows,
    test: Rows,
    y: Doubles | None,
    alpha: float,
    seed: int,
    memory: bool,
) -> tuple[dict[str, Any], Doubles | None]:
    """Fit a `KernelRidge`; return what it took, as `measure` does, and predictions of the test.

    With targets its alpha is chosen first, which is not timed; without, targets are noise and alpha
    is that given.
    """
    targets: Doubles
    if y is None:
        targets = np.random.default_rng(seed).standard_normal((train.shape[0], 1))[:, 0]
    else:
        targets, alpha = y, chosen_alpha(kernel, train, y, seed)
    model: Any = KernelRidge(kernel, alpha=alpha, fit_intercept=y is not None, random_state=seed)
    before = _memory_when_warm(model, train, targets) if memory else 0
    start = time.perf_counter()
    _fit(model, train, targets)
    run: dict[str, Any] = {"fit_seconds": time.perf_counter() - start}
    predicted = model.predict(test)
    if memory:
        run["megabytes"] = max(0.0, (resident_memory()[1] - before) / 1e6)
    run["row_seconds"] = seconds_of(lambda: model.predict(train)) / train.shape[0]
    run["width"] = int(train.shape[0])
    run["features"] = plain(model.__repr__(N_CHAR_MAX=2000))
    return run, None if y is None else predicted


def chosen_alpha(kernel: Kernel, X: Rows, y: Doubles, seed: int) -> float:
    """Choose alpha on some of the rows, by a fifth of them that it holds out."""
    some = np.arange(X.shape[0])
    if some.size > CHOSEN_ROWS:
        some = np.sort(np.random.default_rng(seed).choice(some.size, CHOSEN_ROWS, replace=False))
    return search_on(X[some], y[some], kernel, seed).alpha_


def search_on(
    X: Rows, y: Doubles, kernel: Kernel, seed: int, max_iter: int = MOST_STEPS, **options: Any
) -> KernelRidgeCV:
    """Choose alpha, and what else options of `KernelRidgeCV` name, by a fifth of the rows."""
    search = KernelRidgeCV(
        kernel, fit_intercept=True, random_state=seed, tol=1e-2, max_iter=max_iter, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of alphas too small to be solved for, none of the best
        return search.fit(X, y)


def _fit(model: Any, X: Rows, y: Doubles) -> None:
    """Fit; raise ValueError if the solver came to no solution."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    if not np.all(model.converged_):
        raise ValueError(
            f"its solver stopped at a relative residual of {np.max(model.residual_):.2g}; another "
            "kernel, or a larger alpha, would do"
        )


def _memory_when_warm(model: Any, X: Rows, y: Doubles) -> int:
    """Return what the process holds once libraries are loaded and threads started, in bytes."""
    small = clone(model).set_params(preconditioner=None, max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small.fit(X[:WARM_ROWS], y[:WARM_ROWS]).predict(X[:WARM_ROWS])
    forget_peak()
    return resident_memory()[0]
