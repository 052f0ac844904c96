"""The table of `tables.py leverage`: directions by leverage, beside what Theorem 9 promises."""

import numpy as np
from benchmarks.common import data_generator
from printing import load_arrays, mean_and_spread, report, show, unit_vectors
from scipy.linalg import cho_factor, cho_solve
from sklearn.preprocessing import StandardScaler

from gzkcore import Gaussian, GegenbauerFeatures, PublishedGegenbauerFeatures, Zonal, datasets
from gzkcore.metrics import relative_frobenius_error, spectral_error, whitened_error
from gzkcore.theory import leverage_bound, required_directions, statistical_dimension

EPSILON, DELTA = 0.5, 0.1


def airports():
    """Return the airports of the world, on the unit sphere."""
    data = datasets.load("airports")
    return unit_vectors(data.latitude, data.longitude)


def abalone():
    """Return seven lengths and weights of sea snails, standardised, in a ball of radius 6."""
    X = load_arrays("abalone")["X"].astype(np.float64)
    X = StandardScaler().fit_transform(X[:, -7:])
    return X[np.linalg.norm(X, axis=1) <= 6]


def on_the_sphere(gamma):
    """Return exp(-gamma |x - y|^2) as a zonal kernel."""
    return Zonal(lambda t: np.exp(2 * gamma * (t - 1)))


# Name of the setting: points, kernel, degree, order, directions, lambda.
SETTINGS = {
    "airports, gamma = 10": (airports, on_the_sphere(10.0), 30, 1, 512, 0.5),
    "airports, gamma = 100": (airports, on_the_sphere(100.0), 70, 1, 512, 0.5),
    "abalone, gamma = .05": (abalone, Gaussian(0.05), 14, 8, 512, 0.01),
}


def leverage(options):
    """Print errors by uniform directions and by leverage, and what the theorem asks for."""
    n, seeds = (120, 2) if options.quick else (options.rows, options.seeds)
    rows = []
    for name, (points, kernel, degree, order, m, lam) in SETTINGS.items():
        X = points()
        X = X[data_generator(0).choice(len(X), n, replace=False)]
        count = 64 if options.quick else m
        rows += list(_of_setting(name, X, kernel, degree, order, count, lam, seeds))
    notes = (
        f"{n} rows, drawn once; mean and standard deviation of {seeds} seeds. The norm is that of "
        "(K + lambda)^-1/2 (Z Z^T - K) (K + lambda)^-1/2, which Theorem 9 bounds. L is the largest "
        "leverage, times its weight, of all directions drawn. Theorem 9: so many directions "
        f"guarantee epsilon = {EPSILON}, with probability {1 - DELTA}, if no leverage is above L. "
        "Lemma 7 bounds L without looking at any direction."
    )
    show("Directions by leverage", rows, notes, options)


def _of_setting(name, X, kernel, degree, order, m, lam, seeds):
    """Yield a row for each way to draw directions."""
    K = kernel(X)
    s_lam, factor = statistical_dimension(K, lam), cho_factor(K + lam * np.eye(len(K)))
    about = f"{name}, lambda = {lam:g}, s = {s_lam:.0f}"
    maps = {
        "iid, as published": {"directions": "iid"},
        "leverage": {"directions": "leverage"},
        "leverage at this lambda": {"directions": "leverage", "lam": lam},
        'GegenbauerFeatures, "random"': None,
    }
    for label, options in maps.items():
        errors, scores = [], []
        for seed in range(seeds):
            report(f"{name}, {label}, seed {seed + 1}/{seeds}")
            if options is None:
                features = GegenbauerFeatures(kernel, m * order, basis="random", random_state=seed)
            else:
                features = PublishedGegenbauerFeatures(
                    kernel, m * order, degree=degree, order=order, random_state=seed, **options
                )
            Z = features.fit_transform(X)
            metrics = whitened_error, spectral_error
            errors.append([*(f(K, Z, lam) for f in metrics), relative_frobenius_error(K, Z)])
            each = m * np.einsum("ij,ij->j", Z, cho_solve(factor, Z))  # weight times leverage
            scores.append(each.reshape(order, m).sum(axis=0).max())
        L = max(scores)
        yield {
            "points": about,
            "m x s": f"{m} x {order}",
            "directions": label,
            "norm": mean_and_spread([error[0] for error in errors]),
            "epsilon": mean_and_spread([error[1] for error in errors]),
            "Frobenius": mean_and_spread([error[2] for error in errors]),
            **({} if options is None else _promise(L, s_lam)),
        }
    features = PublishedGegenbauerFeatures(kernel, order, degree=degree, order=order).fit(X)
    table = features._layout.radial.exact(features._polar(X)[1])
    bound = leverage_bound(table.reshape(len(X), degree + 1, order), X.shape[1], lam)
    yield {"points": about, "directions": "iid, by Lemma 7", **_promise(bound, s_lam)}


def _promise(L, s_lam):
    m = required_directions(EPSILON, DELTA, L, s_lam)
    return {"L": float(L), "Theorem 9 asks for m =": f"{m:,}"}
