"""Which features suit which data, and what the compiled formulas gain over the plain ones."""

import sys
import time

import numpy as np
from benchmarks.common import (
    data_generator,
    gaussian,
    interleave,
    must_agree,
    ratio,
    sphere,
)
from printing import mean_and_spread, report, show

from gzkcore import (
    Gaussian,
    GegenbauerFeatures,
    NeuralTangent,
    PublishedGegenbauerFeatures,
    harmonics,
    product,
    reference,
    series,
    special,
)
from gzkcore.gegenbauer import gegenbauer_features
from gzkcore.metrics import spectral_error, whitened_error


def families(options):
    """Errors of the families of features at equal width."""
    parts = {"tangent": tangent}
    unknown = set(options.parts) - set(parts)
    if unknown:
        sys.exit(f"families: no part {', '.join(sorted(unknown))}; choose from {', '.join(parts)}")
    for name, part in parts.items():
        if name in (options.parts or parts):
            part(options)


def tangent(options):
    """The neural tangent kernel: its slow series, as published and as here."""
    rows, width = [], 512
    for n in (300,) if options.quick else (300, 1000):
        kernel, found = NeuralTangent(depth=2), {}
        for seed in range(options.seeds):
            report(f"tangent, {n} rows, seed {seed + 1}/{options.seeds}")
            X = sphere(n, 9, seed=seed)
            K = kernel(X)
            ours = GegenbauerFeatures(kernel, width, random_state=seed).fit(X)
            theirs = PublishedGegenbauerFeatures(
                kernel, width, degree=20, order=1, random_state=seed
            )
            Z = ours.transform(X)
            noise = np.diag(np.sqrt(np.maximum(ours.missing_diagonal(X), 0)))
            for name, features in (
                ("gzkcore, auto", Z),
                ("the same and its missing_diagonal", np.hstack([Z, noise])),
                ("as published, degree 20", theirs.fit_transform(X)),
            ):
                errors = whitened_error(K, features, 0.1), spectral_error(K, features, 0.1)
                found.setdefault(name, []).append(errors)
        rows += [
            {
                "rows": n,
                "features": name,
                "max |mu - 1|": mean_and_spread([error for error, _ in errors]),
                "epsilon of Eq 1": mean_and_spread([error for _, error in errors]),
            }
            for name, errors in found.items()
        ]
    notes = (
        f"{width} features of NeuralTangent(depth=2) for points uniform on the unit sphere of R^9, "
        "mu the eigenvalues of Z Z^T + .1 I relative to K + .1 I; mean and standard deviation of "
        f"{options.seeds} seeds."
    )
    show("Neural tangent kernel", rows, notes, options)


# ---- what compiling gains


def mirrors(options):
    """The compiled formulas against the reference, where that takes about a second."""
    rows = []
    for name, (make, units) in MIRRORS.items():
        report(f"mirrors: {name}")
        count = _count_for(make, 0.02 if options.quick else 1.0)
        plain, compiled = make(count)
        expected = plain()
        must_agree(name, compiled(), np.asarray(expected, dtype=np.float64), 1e-9)
        rounds = 3
        times = interleave({"plain": plain, "compiled": compiled}, rounds)
        gain = ratio(times, "plain", "compiled")
        rows.append(
            {
                "formula": name,
                units: f"{count:,}",
                "plain, s": float(np.median(times["plain"])),
                "compiled, ms": 1e3 * float(np.median(times["compiled"])),
                "times faster": gain[0],
            }
        )
    notes = (
        "gzkcore.reference, plain Python, against the compiled formula of the same name on the "
        "same numbers, all threads, float64."
    )
    show("What compiling gains", rows, notes, options)


def _count_for(make, seconds):
    """Double the size until the plain formula takes about so long."""
    count = 4
    while True:
        plain, _ = make(count)
        started = time.perf_counter()
        plain()
        taken = time.perf_counter() - started
        if taken > seconds / 4:
            return max(count, int(count * seconds / taken))
        count *= 2


def _polynomial(n):
    t = data_generator(0).uniform(-1, 1, n)
    return (
        lambda: [reference.special.gegenbauer(20, 5, value) for value in t.tolist()],
        lambda: special.gegenbauer(20, 5, t),
    )


def _zonal_sum(n):
    t, c = data_generator(0).uniform(-1, 1, n), np.exp(-np.arange(21.0))
    return (
        lambda: [reference.series.zonal_sum(c.tolist(), 5, value) for value in t.tolist()],
        lambda: series.zonal_sum(c, 5, t),
    )


def _radial_table(n):
    norms = data_generator(0).uniform(0, 3, n)
    plain, kernel = reference.kernels.Gaussian(), Gaussian(0.5)
    return (
        lambda: reference.series.radial_table(plain, norms.tolist(), 5, 15, 8),
        lambda: series.radial_table(kernel, norms, 5, 15, 8),
    )


def _harmonics(n):
    X = sphere(n, 3, seed=0)
    return (
        lambda: reference.harmonics.spherical_harmonics(X.tolist(), 8),
        lambda: harmonics.spherical_harmonics(X, 8),
    )


def _features(n):
    X, W, radial = sphere(n, 3, seed=0), sphere(64, 3, seed=1), np.ones((1, 16))
    return (
        lambda: reference.gegenbauer.gegenbauer_features(X.tolist(), W.tolist(), radial.tolist()),
        lambda: gegenbauer_features(X, W, radial),
    )


def _products(n):
    parts = [gaussian(n, 16, seed=seed) for seed in range(3)]
    columns = data_generator(3).integers(0, 16, (256, 3))
    lists = [part.tolist() for part in parts]
    return (
        lambda: reference.product.product_features(lists, columns.tolist()),
        lambda: product.product_features(parts, columns),
    )


# Each makes the plain and the compiled call for so many rows.
MIRRORS = {
    "special.gegenbauer": (_polynomial, "points"),
    "series.zonal_sum": (_zonal_sum, "points"),
    "series.radial_table": (_radial_table, "points"),
    "harmonics.spherical_harmonics": (_harmonics, "points"),
    "gegenbauer.gegenbauer_features": (_features, "points"),
    "product.product_features": (_products, "points"),
}
