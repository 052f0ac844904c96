"""`gzkcore fit --whole`: a `KernelRidge` on the rows of a table, instead of features.

Lengthscale and alpha are chosen on some rows, of which a fifth is held out. Then the model is
fitted to all rows, or on some centres by passes over all rows.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gzkcore._util.typing import Doubles
from gzkcore.evaluate.whole import CHOSEN_COMPONENTS, CHOSEN_ROWS, search_on
from gzkcore.kernels.base import Kernel
from gzkcore.learn.kernel_ridge import KernelRidge
from gzkcore.solve.kernel_system import HELD_ROWS
from gzkcore.solve.solve import SolveProgress, Watch
from gzkcore.solve.whole_cost import cost_of

from .kernels import asked_gamma, gamma_of, grid, length_of, with_length
from .reports import Report, Say

# Rows to choose again by, since more rows may follow finer detail; steps of each choice.
MORE_ROWS, CHOSEN_STEPS = 12_000, 100
FEWEST_CHOSEN = 500  # however few centres there are
ALPHAS = tuple(10.0**k for k in range(-5, 2))
# Lengthscales to choose from, times the root of the variance of a row: that of all its coordinates.
GLOBE_LENGTHS = tuple(2.0**k for k in range(-5, 1))
COLUMN_LENGTHS = tuple(2.0**k for k in range(-1, 4))
TOL = 1e-3
# What a fit takes is announced from so many rows and seconds on.
ANNOUNCED_ROWS, ANNOUNCED_SECONDS = 1 << 14, 5.0


@dataclass(frozen=True)
class WholeFit:
    """A fitted `KernelRidge`, and how it came about."""

    model: KernelRidge
    gamma: float  # 1 / (2 lengthscale^2)
    alpha: float
    preconditioner: str | None  # None on centres, which have their own


def fit_whole(
    X: Doubles,
    y: Doubles,
    *,
    kernel: str,
    gamma: str,
    globe: bool,
    seed: int,
    report: Report,
    say: Say,
) -> WholeFit:
    """Choose the lengthscale and alpha of a kernel, and fit it to all rows.

    Parameters
    ----------
    X : ndarray of shape (n, dim)
        The first `MORE_ROWS` at random.
    y : ndarray of shape (n,)
    kernel : str
        Its name, see `kernels`.
    gamma : str
        "auto", "scale" or a number: 1 / (2 lengthscale^2).
    globe : bool
        Whether rows are points on the unit sphere.
    seed : int
    report : callable
        Is told the name of the work, the share of it that is done, and how it stands.
    say : callable
        Is told what a long fit is going to take.
    """
    chosen, alpha = _chosen(X, y, kernel, gamma, globe, seed, report)
    _announce(chosen, X, alpha, seed, say)
    model = _model(chosen, alpha, None, seed, report)
    model.fit(X, y)
    report("solving", 1)
    return WholeFit(model, gamma_of(chosen), alpha, repr(model.preconditioner_))


def fit_centers(
    batches: Iterable[tuple[Doubles, Doubles]],
    sample: tuple[Doubles, Doubles],
    centers: int,
    *,
    kernel: str,
    gamma: str,
    globe: bool,
    seed: int,
    report: Report,
) -> WholeFit:
    """Choose a kernel as `fit_whole` does, and fit its values at some of the rows.

    Parameters
    ----------
    batches : iterable of (X, y)
        All rows, anew in each iteration: they need not fit into memory.
    sample : (X, y)
        Some of them at random. As many as centres say how fine a detail these can follow.
    centers : int
    kernel, gamma, globe, seed, report
        See `fit_whole`.
    """
    X, y = (part[: max(centers, FEWEST_CHOSEN)] for part in sample)
    chosen, alpha = _chosen(X, y, kernel, gamma, globe, seed, report)
    model = _model(chosen, alpha, centers, seed, report)
    model.fit(batches)
    report("solving", 1)
    return WholeFit(model, gamma_of(chosen), alpha, None)


def _model(
    kernel: Kernel, alpha: float, centers: int | None, seed: int, report: Report
) -> KernelRidge:
    """Return a model to be fitted that tells of its steps."""
    model = KernelRidge(
        kernel, alpha=alpha, fit_intercept=True, centers=centers, tol=TOL, random_state=seed
    )
    model._watch = _watched(report)
    report("preconditioning", 0)
    return model


def _lengths(gamma: str, globe: bool, X: Doubles) -> list[float]:
    """Return the lengthscales to choose from, or the one that is asked for."""
    if (asked := asked_gamma(gamma, X)) is not None:
        return [length_of(asked)]
    root = math.sqrt(X.var(axis=0).sum())
    return [factor * root for factor in (GLOBE_LENGTHS if globe else COLUMN_LENGTHS)]


def _chosen(
    X: Doubles, y: Doubles, kernel: str, gamma: str, globe: bool, seed: int, report: Report
) -> tuple[Kernel, float]:
    """Return kernel and alpha of the least error on rows held out, of some, then of more."""
    report("choosing", 0)
    lengths, alphas = _lengths(gamma, globe, X), ALPHAS
    components: int | str = CHOSEN_COMPONENTS if len(X) > HELD_ROWS else "auto"
    some = X[:CHOSEN_ROWS], y[:CHOSEN_ROWS]
    length, alpha = _best(*some, kernel, lengths, alphas, components, seed)
    if len(X) > MORE_ROWS:
        report("choosing", 0.5)
        shorter = [length / 2, length] if len(lengths) > 1 else [length]
        less = (alpha / 10, alpha / 10**0.5, alpha)
        some = X[:MORE_ROWS], y[:MORE_ROWS]
        length, alpha = _best(*some, kernel, shorter, less, "auto", seed)
    report("choosing", 1)
    return with_length(kernel, length), alpha


def _best(
    X: Doubles,
    y: Doubles,
    kernel: str,
    lengths: list[float],
    alphas: tuple[float, ...],
    preconditioner: int | str,
    seed: int,
) -> tuple[float, float]:
    search = search_on(
        X, y, with_length(kernel, 1.0), seed, CHOSEN_STEPS, alphas=alphas,
        kernel_grid=grid(kernel, lengths), preconditioner=preconditioner,
    )  # fmt: skip
    return length_of(gamma_of(search.kernel_)), search.alpha_


def _announce(kernel: Kernel, X: Doubles, alpha: float, seed: int, say: Say) -> None:
    """Say what the fit is going to take, if that is long: some rows tell."""
    if len(X) <= ANNOUNCED_ROWS:
        return
    cost = cost_of(kernel, X, alpha, len(X), np.random.default_rng(seed), n_columns=2)
    if cost.seconds > ANNOUNCED_SECONDS:
        say(f"The whole kernel of {len(X):,} rows takes {cost.about}")


def _watched(report: Report) -> Watch:
    """Return what tells of the steps of a fit: how far the residual is on its way to `TOL`."""
    numbers = itertools.count(1)

    def watch(told: SolveProgress) -> None:
        number = next(numbers)
        if number == 1:
            report("preconditioning", 1)
        share = math.log(max(told.residual, TOL)) / math.log(TOL)
        now = f"step {number}, residual {told.residual:.1g}"
        report("solving", min(max(share, 0.0), 0.99), now)

    return watch
