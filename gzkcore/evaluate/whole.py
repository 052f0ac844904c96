"""The whole kernel as a method of `compare`: a `KernelRidge`, whose alpha is chosen first."""

import warnings

import numpy as np

from gzkcore._util.typing import Doubles, Rows
from gzkcore.kernels.base import Kernel
from gzkcore.learn.kernel_ridge import KernelRidge
from gzkcore.learn.kernel_ridge_cv import KernelRidgeCV
from gzkcore.solve.cost import MOST_STEPS

# Alpha is chosen on at most so many rows, of fewer than FOLDED_ROWS by five folds.
CHOSEN_ROWS, FOLDED_ROWS = 3000, 1000
# Alphas as close as those of features. One a decade, by a fifth of 200 rows, made errors 2.6 %
# larger than the best alpha would (three tables, three kernels, six seeds each), so that features
# seemed better than the kernel that they approximate; closer ones, by five folds, .9 %.
ALPHAS = np.array([float(f"{alpha:.2g}") for alpha in np.logspace(-6, 2, 25)])  # people read them


def whole_kernel(
    kernel: Kernel, X: Rows, y: Doubles | None, alpha: float, seed: int
) -> tuple[KernelRidge, Doubles]:
    """Return a `KernelRidge`, not yet fitted, and its targets.

    Without targets, they are noise and alpha is the one given; with targets, alpha is chosen.
    """
    if y is None:
        noise = np.random.default_rng(seed).standard_normal((X.shape[0], 1))[:, 0]
        return KernelRidge(kernel, alpha=alpha, random_state=seed), noise
    alpha = chosen_alpha(kernel, X, y, seed)
    return KernelRidge(kernel, alpha=alpha, fit_intercept=True, random_state=seed), y


def chosen_alpha(kernel: Kernel, X: Rows, y: Doubles, seed: int) -> float:
    """Choose alpha on some rows, of which a fifth is held out; on few rows by folds."""
    rows = np.arange(X.shape[0])
    if rows.size > CHOSEN_ROWS:
        rows = np.sort(np.random.default_rng(seed).choice(rows.size, CHOSEN_ROWS, replace=False))
    cv = 5 if 5 <= rows.size < FOLDED_ROWS else None

    def best_of(alphas: Doubles) -> float:
        search = KernelRidgeCV(
            kernel, fit_intercept=True, alphas=alphas, cv=cv, tol=1e-2, max_iter=MOST_STEPS,
            random_state=seed,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of alphas too small to solve for, never the best
            return float(search.fit(X[rows], y[rows]).alpha_)

    decade = best_of(ALPHAS[::3])  # each alpha is a factorisation for each fold
    return best_of(ALPHAS[np.abs(np.log10(ALPHAS / decade)) < 0.9])
