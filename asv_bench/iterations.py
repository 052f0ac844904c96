"""The table of `tables.py whole iterations`: steps of conjugate gradients against rows."""

import time

import numpy as np
from benchmarks.common import data_generator, sphere
from printing import report, show

from gzkcore import Gaussian, Matern, NystromFeatures
from gzkcore.kernels.products import KernelOperator
from gzkcore.solve.preconditioners import KeptFeatures, LowRank, preconditioner_for
from gzkcore.solve.solve import conjugate_gradients

LENGTH, ALPHAS, TOL = 0.1, (0.01, 0.1), 1e-3
KERNELS = {
    "Gaussian": Gaussian(gamma=0.5 / LENGTH**2),
    "Matern-3/2": Matern(1.5, LENGTH),
}


def iterations(options):
    """Count the steps of features alone, of those with neighbours, and of what "auto" takes."""
    rows = []
    for n in (3000, 6000) if options.quick else (10_000, 30_000, 100_000):
        X = sphere(n, 3, seed=0)
        y = _waves(X)
        for name, kernel in KERNELS.items():
            kinds = {"features": None, "and neighbours": options.width, "auto": "auto"}
            for kind, choice in kinds.items():
                report(f"{n:,} rows, {name}, {kind}")
                if choice is None:
                    P = _features_alone(kernel, X, options.width)
                else:
                    P = preconditioner_for(choice, kernel, X, ALPHAS, random_state=0)
                start = time.perf_counter()
                solution = conjugate_gradients(
                    (KernelOperator(kernel, X.astype(np.float32)), KernelOperator(kernel, X)),
                    np.stack([y, y], axis=1),
                    ALPHAS,
                    preconditioner=P,
                    tol=TOL,
                )
                steps = {
                    f"steps, alpha {alpha:g}": int(taken)
                    for alpha, taken in zip(ALPHAS, solution.n_iter, strict=True)
                }
                rows.append(
                    {"rows": n, "kernel": name, "preconditioner": kind}
                    | steps
                    | {
                        "true residual": float(solution.residual.max()),
                        "setup, s": P.seconds,
                        "steps, s": time.perf_counter() - start,
                    }
                )
    notes = (
        f"Points of the sphere, waves and noise; length {LENGTH:g}, {options.width:,} Nystrom "
        f"features; to a true residual of {TOL:g}. Seconds are for both alphas in one block."
    )
    show("Steps against rows", rows, notes, options)


def _features_alone(kernel, X, width):
    landmarks = NystromFeatures(kernel, width, random_state=0).fit(X)
    features = KeptFeatures.of(landmarks, X, np.float32)
    return LowRank(features, kernel.diag(X), np.array(ALPHAS), np.ones(len(X)))


def _waves(X):
    """Return long and short waves with noise."""
    truth = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + np.sin(40 * X[:, 1]) / 2
    return truth + 0.3 * data_generator(1).standard_normal(len(X))
