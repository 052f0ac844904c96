"""The whole kernel as a method beside features: cost and predictions of a `KernelRidge`."""

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from gzkcore._util.memory import PeakMemory
from gzkcore._util.typing import Doubles, Rows
from gzkcore._util.wording import plain
from gzkcore.kernels.base import Kernel
from gzkcore.learn.kernel_ridge import KernelRidge
from gzkcore.learn.kernel_ridge_cv import KernelRidgeCV
from gzkcore.solve.cost import MOST_STEPS, seconds_of

# Rows that alpha is chosen on.
CHOSEN_ROWS = 3000
# Alphas as close as those of features. One a decade, by a fifth of 200 rows, made errors 2.6 %
# larger than the best alpha would (three tables, three kernels, six seeds each), so that features
# seemed better than the kernel that they approximate; closer ones, by five folds, .9 %.
ALPHAS = np.array([float(f"{alpha:.2g}") for alpha in np.logspace(-6, 2, 25)])  # people read them
FOLDED_ROWS = 1000  # below them
# Rows that a fit and a prediction are warmed up with, before memory is measured.
WARM_ROWS = 64


def fit_and_predict(
    kernel: Kernel, train: Rows, test: Rows, y: Doubles | None, alpha: float, seed: int,
    memory: bool,
) -> tuple[dict[str, Any], Doubles | None]:  # fmt: skip
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
    peak = _peak_when_warm(model, train, targets) if memory else None
    start = time.perf_counter()
    _fit(model, train, targets)
    run: dict[str, Any] = {"fit_seconds": time.perf_counter() - start}
    predicted = model.predict(test)
    if peak is not None:
        run["megabytes"] = peak.megabytes
    run["row_seconds"] = seconds_of(lambda: model.predict(train)) / train.shape[0]
    run["width"] = int(train.shape[0])
    run["features"] = plain(model.__repr__(N_CHAR_MAX=2000))
    return run, None if y is None else predicted


def chosen_alpha(kernel: Kernel, X: Rows, y: Doubles, seed: int) -> float:
    """Choose alpha on some of the rows, by a fifth of them that it holds out; of few by folds."""
    some = np.arange(X.shape[0])
    if some.size > CHOSEN_ROWS:
        some = np.sort(np.random.default_rng(seed).choice(some.size, CHOSEN_ROWS, replace=False))
    cv = 5 if 5 <= some.size < FOLDED_ROWS else None

    def best_of(alphas: Doubles) -> float:
        return search_on(X[some], y[some], kernel, seed, alphas=alphas, cv=cv).alpha_

    decade = best_of(ALPHAS[::3])  # each alpha is a factorisation for each fold
    return best_of(ALPHAS[np.abs(np.log10(ALPHAS / decade)) < 0.9])


def search_on(
    X: Rows, y: Doubles, kernel: Kernel, seed: int, max_iter: int = MOST_STEPS, **options: Any
) -> KernelRidgeCV:
    """Choose alpha, and what else options of `KernelRidgeCV` name."""
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
            f"its solver stopped at a relative residual of {np.max(model.residual_):.2g}; use "
            "another kernel, or a larger alpha"
        )


def _peak_when_warm(model: Any, X: Rows, y: Doubles) -> PeakMemory:
    """Return the peak from when libraries are loaded and threads started."""
    small = clone(model).set_params(preconditioner=None, max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small.fit(X[:WARM_ROWS], y[:WARM_ROWS]).predict(X[:WARM_ROWS])
    return PeakMemory()
