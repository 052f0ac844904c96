"""Which features suit which data, and the gain of the compiled formulas over plain Python."""

import functools
import itertools
import time

import numpy as np
from benchmarks.common import (
    data_generator,
    empty,
    frobenius_error,
    gaussian,
    interleave,
    must_agree,
    ratio,
    sphere,
)
from printing import load_arrays, mean_and_spread, report, run_parts, show
from scipy.fft import idctn
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from gzkcore import (
    AdaptiveSketchFeatures,
    FastfoodFeatures,
    Gaussian,
    GegenbauerFeatures,
    KernelFeatures,
    NeuralTangent,
    NystromFeatures,
    Polynomial,
    PolySketchFeatures,
    PublishedGegenbauerFeatures,
    RandomFourierFeatures,
    TensorSketchFeatures,
    hadamard_transform,
    reference,
)
from gzkcore._util.threads import limit_threads
from gzkcore.evaluate.measure import seconds_per_row
from gzkcore.features import block, fourier, product
from gzkcore.features.auto import candidates
from gzkcore.features.gegenbauer import gegenbauer_features
from gzkcore.kernels.radial import radial_table
from gzkcore.metrics import spectral_error, whitened_error
from gzkcore.sphere import harmonics, series, special


def families(options):
    """Errors of the families of features at equal width."""
    parts = {
        "dimensions": dimensions,
        "choice": choice,
        "tangent": tangent,
        "monomials": monomials,
    }
    run_parts("families", options, parts)


# Widths, and the scale of the kernel exp(-scale |x - y|^2 / d): far apart, and smooth.
WIDTH = 1024
SCALES = {"exp(-|x-y|²/d)": 1.0, "exp(-|x-y|²/(4d))": 0.25}


def dimensions(options):
    """From which dimension on to leave Gegenbauer features for random Fourier features."""
    rows, width = [], 128 if options.quick else WIDTH
    for (name, scale), d in itertools.product(SCALES.items(), (16, 32, 64, 128, 256, 784)):
        kernel = Gaussian(scale / d)
        results = {}
        for seed in range(options.seeds):
            report(f"dimensions: {name}, d={d}, seed {seed + 1}/{options.seeds}")
            X, test = gaussian(1000, d, seed=seed), gaussian(300, d, seed=1000 + seed)
            K = kernel(test)
            for label, features in in_many_dimensions(kernel, width, d, seed).items():
                Z = features.fit(X).transform(test)
                results.setdefault(label, []).append(frobenius_error(K, Z))
        report(f"dimensions: {name}, d={d}, times")
        times = at_equal_time(kernel, width, d, 1000 if options.quick else 20_000)
        for seed in range(options.seeds):
            X, test = gaussian(1000, d, seed=seed), gaussian(300, d, seed=1000 + seed)
            wider = in_many_dimensions(kernel, round(width * times), d, seed)["orthogonal"]
            error = frobenius_error(kernel(test), wider.fit(X).transform(test))
            results.setdefault("orthogonal, equal time", []).append(error)
        rows.append(
            {
                "kernel": name,
                "d": d,
                **{label: mean_and_spread(errors) for label, errors in results.items()},
                "time: Gegenbauer / orthogonal": times,
            }
        )
    notes = (
        f"Relative Frobenius error of the kernel of 300 points of N(0, I), {width} features fitted "
        f"to others, mean and standard deviation of {options.seeds} seeds. reduce: projected to so "
        "many columns first, error included. Constant: the best multiple of the matrix of ones. "
        "Time: Gegenbauer over orthogonal, float32, one thread, median of ratios; at equal time, "
        "as many times more orthogonal features."
    )
    show("Many dimensions", rows, notes, options)


def in_many_dimensions(kernel, width, d, seed):
    """Return the features that compete, by name."""
    return {
        "Gegenbauer": GegenbauerFeatures(kernel, width, random_state=seed),
        "reduce=16": GegenbauerFeatures(
            kernel, width, reduce=16 if d > 16 else None, random_state=seed
        ),
        "reduce=64": GegenbauerFeatures(
            kernel, width, reduce=64 if d > 64 else None, random_state=seed
        ),
        "Fourier": RandomFourierFeatures(kernel, width, random_state=seed),
        "orthogonal": RandomFourierFeatures(
            kernel, width, frequencies="orthogonal", random_state=seed
        ),
        "Fastfood": FastfoodFeatures(kernel, width, random_state=seed),
        "Fastfood, published": FastfoodFeatures(
            kernel, width, frequencies="normal", random_state=seed
        ),
        "constant": Constant(kernel),
    }


def at_equal_time(kernel, width, d, n):
    """Return how many times as long Gegenbauer features take as orthogonal ones."""
    X, out = gaussian(n, d, seed=0, dtype=np.float32), empty((n, width), np.float32)
    rivals = in_many_dimensions(kernel, width, d, 0)
    calls = {
        name: functools.partial(rivals[name].fit(X[:1000]).transform, X, out=out)
        for name in ("Gegenbauer", "orthogonal")
    }
    with limit_threads(1), threadpool_limits(1, user_api="blas"):
        return ratio(interleave(calls, 5), "Gegenbauer", "orthogonal")[0]


class Constant:
    """One column, the root of the kernel's mean: what any features must beat."""

    def __init__(self, kernel):
        self.kernel = kernel

    def fit(self, X):
        self.root = float(np.sqrt(self.kernel(X).mean()))
        return self

    def transform(self, X):
        return np.full((len(X), 1), self.root)


# ---- KernelFeatures


def images(n, d, rng):
    """Smooth random images: the spectrum falls off as the square of the frequency."""
    side = int(d**0.5)
    k = np.arange(side)
    fall = 1.0 / (1.0 + k[:, None] ** 2 + k**2)
    X = np.empty((n, d), dtype=np.float32)
    for start in range(0, n, 20_000):
        size = min(20_000, n - start)
        waves = fall * rng.standard_normal((size, side, side), dtype=np.float32)
        X[start : start + size] = idctn(waves, axes=(1, 2), norm="ortho").reshape(size, d)
    return X


def documents(n, d, rng):
    """Sparse rows of unit norm: 50 words of a Zipf law each, as counts."""
    words = np.minimum(rng.zipf(1.3, (n, 50)) - 1, d - 1).astype(np.int32)
    indptr = np.arange(0, 50 * n + 1, 50)
    X = csr_array((np.ones(50 * n, np.float32), words.ravel(), indptr), shape=(n, d))
    X.sum_duplicates()
    return normalize(X)


DATA = {
    "R^3, N(0, I)": (lambda n, rng: rng.standard_normal((n, 3), dtype=np.float32), 0.5),
    "R^9, N(0, I)": (lambda n, rng: rng.standard_normal((n, 9), dtype=np.float32), 0.05),
    "R^784, smooth images": (lambda n, rng: images(n, 784, rng), "scale"),
    "R^20000, sparse documents": (lambda n, rng: documents(n, 20_000, rng), 0.5),
}


def choice(options):
    """What KernelFeatures takes for a million points, and what it was worth."""
    n, width = (4000, 64) if options.quick else (options.rows, WIDTH)
    for name, (make, gamma) in DATA.items():
        report(f"choice: {name}")
        X = make(n, data_generator(0))
        test = make(1000, data_generator(1))
        started = time.perf_counter()
        front = KernelFeatures(Gaussian(gamma), width, random_state=0).fit(X)
        fitting = time.perf_counter() - started
        K = front.kernel_(test if isinstance(test, np.ndarray) else test.toarray())
        rows = []
        for candidate in candidates(front.kernel_, width, X[:2048], 0):
            report(f"choice: {name}, {candidate.name}")
            features = candidate.features.fit(X)
            Z = features.transform(test)
            rows.append(
                {
                    "features": candidate.name,
                    "chosen": "yes" if candidate.name == front.family_ else "",
                    "error": frobenius_error(K, Z),
                    "error on the sample": front.errors_[candidate.name],
                    "microseconds a row": 1e6 * seconds_per_row(features, test),
                }
            )
        notes = (
            f"{n:,} rows, {front.kernel_!r}, {width} features fitted to all rows; error on 1,000 "
            f"others, relative, Frobenius. KernelFeatures.fit took {fitting:.0f} s. {front.why_}"
        )
        show(name, rows, notes, options)


def tangent(options):
    """The neural tangent kernel: its slow series, as published and as here."""
    rows, width = [], 512
    for n in (300,) if options.quick else (300, 1000):
        kernel, results = NeuralTangent(depth=2), {}
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
                results.setdefault(name, []).append(errors)
        rows += [
            {
                "rows": n,
                "features": name,
                "max |mu - 1|": mean_and_spread([error for error, _ in errors]),
                "epsilon of Eq 1": mean_and_spread([error for _, error in errors]),
            }
            for name, errors in results.items()
        ]
    notes = (
        f"{width} features of NeuralTangent(depth=2) for points uniform on the unit sphere of R^9, "
        "mu the eigenvalues of Z Z^T + .1 I relative to K + .1 I; mean and standard deviation of "
        f"{options.seeds} seeds."
    )
    show("Neural tangent kernel", rows, notes, options)


# ---- monomials, landmarks and sketches


def monomials(options):
    """AdaptiveSketchFeatures beside landmarks and sketches, at equal width."""
    n, width = (200, 64) if options.quick else (600, 200)
    rng = data_generator(0)
    proteins = load_arrays("protein_casp")["X"].astype(np.float64)
    proteins = (proteins - proteins.mean(axis=0)) / proteins.std(axis=0)
    data = {
        "clusters": _clusters(n, 5, rng),
        "protein": proteins[rng.permutation(len(proteins))[:n]],
    }
    kernels = {
        "clusters": (Gaussian(0.5), Polynomial(6)),
        "protein": (Gaussian(0.05), Polynomial(4, gamma=0.1)),
    }
    for name, X in data.items():
        for kernel in kernels[name]:
            rows = list(_compared(name, X, kernel, width, options))
            notes = (
                f"{len(X):,} rows, {X.shape[1]} columns, {kernel!r}, {width} features, lambda the "
                "20th eigenvalue of K. epsilon: of the (epsilon, lambda)-spectral approximation; "
                "error: largest eigenvalue of |Z Z^T - K| over that of K; mean and deviation "
                f"of {options.seeds} seeds. Times are medians."
            )
            show(f"Monomials, landmarks and sketches: {name}", rows, notes, options)


def _clusters(n, dim, rng):
    """Points in clusters of very different size."""
    sizes = [n * 3 // 4, n // 6, n // 24, *[8] * 5]
    places = rng.standard_normal((len(sizes), dim))
    parts = [
        place + 0.35 * rng.standard_normal((size, dim))
        for place, size in zip(places, sizes, strict=True)
    ]
    return np.concatenate(parts)


def _compared(name, X, kernel, width, options):
    """Yield a row of the table for each way to make features."""
    K = kernel(X)
    eigenvalues = np.linalg.eigvalsh(K)[::-1]
    lam = float(eigenvalues[19])
    makers = {
        "adaptive": lambda seed: AdaptiveSketchFeatures(kernel, width, random_state=seed),
        **{
            f"Nystrom, {rule}": lambda seed, rule=rule: NystromFeatures(
                kernel, width, landmarks=rule, random_state=seed
            )
            for rule in ("rls", "rpcholesky", "uniform")
        },
        "PolySketch": lambda seed: PolySketchFeatures(kernel, width, random_state=seed),
    }
    if isinstance(kernel, Polynomial):
        makers["TensorSketch"] = lambda seed: TensorSketchFeatures(kernel, width, random_state=seed)
    for label, make in makers.items():
        results = []
        for seed in range(options.seeds):
            report(f"monomials: {name}, {label}, seed {seed + 1}/{options.seeds}")
            features = make(seed)
            started = time.perf_counter()
            features.fit(X)
            fitting = time.perf_counter() - started
            Z = features.transform(X)
            off = np.abs(np.linalg.eigvalsh(Z @ Z.T - K)).max() / eigenvalues[0]
            speed = seconds_per_row(features, X)
            results.append((spectral_error(K, Z, lam), off, fitting, speed))
        epsilon, off, fitting, speed = zip(*results, strict=True)
        yield {
            "features": label,
            "epsilon": mean_and_spread(epsilon),
            "error": mean_and_spread(off),
            "fit, ms": 1e3 * float(np.median(fitting)),
            "microseconds a row": 1e6 * float(np.median(speed)),
        }


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
        lambda: radial_table(kernel, norms, 5, 15, 8),
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


def _hadamard(n):
    X = gaussian(n, 1024, seed=0)
    return (
        lambda: reference.hadamard.hadamard_transform(X.tolist()),
        lambda: hadamard_transform(X),
    )


def _fourier(n):
    X, W = gaussian(n, 9, seed=0), gaussian(64, 9, seed=1)
    return (
        lambda: reference.fourier.fourier_features(X.tolist(), W.tolist(), 128),
        lambda: fourier.fourier_features(X, W, 128),
    )


def _blocks(n):
    X, rng = gaussian(n, 5000, seed=0), data_generator(1)
    buckets, weights = rng.integers(0, 100, (1, 5000)), rng.standard_normal((1, 5000))
    return (
        lambda: reference.block.block_projection(
            X.tolist(), buckets.tolist(), weights.tolist(), 100
        ),
        lambda: block.block_projection(X, buckets, weights, 100),
    )


# Each makes the plain and the compiled call for so many rows.
MIRRORS = {
    "special.gegenbauer": (_polynomial, "points"),
    "series.zonal_sum": (_zonal_sum, "points"),
    "series.radial_table": (_radial_table, "points"),
    "harmonics.spherical_harmonics": (_harmonics, "points"),
    "gegenbauer.gegenbauer_features": (_features, "points"),
    "product.product_features": (_products, "points"),
    "hadamard.hadamard_transform": (_hadamard, "points"),
    "fourier.fourier_features": (_fourier, "points"),
    "block.block_projection": (_blocks, "points"),
}
