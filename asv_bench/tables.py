#!/usr/bin/env python3
"""Print the tables of the README and of docs/speed.md, one command for each.

    python asv_bench/tables.py accuracy
    python asv_bench/tables.py elevation
    python asv_bench/tables.py domains [elevation] [climate] [protein]
    python asv_bench/tables.py families [dimensions] [choice] [tangent] [monomials]
    python asv_bench/tables.py clusters [abalone] [pendigits] [mushroom] [magic]
    python asv_bench/tables.py speed [kernel] [sums] [harmonics] [fit] [new]
    python asv_bench/tables.py mirrors
    python asv_bench/tables.py projection [memory] [footprint] [matrices] [features] ...
    python asv_bench/tables.py peers [fourier] [fastfood] [sketch] [polysketch] [nystrom] ...
    python asv_bench/tables.py products
    python asv_bench/tables.py memory
    python asv_bench/tables.py scale [disk] [dask] [simulate]
    python asv_bench/tables.py dense
    python asv_bench/tables.py whole [errors] [globe] [peers] [large]
    python asv_bench/tables.py prediction [kin40k] [pol] [elevators] ... [adult] [magic] ...
    python asv_bench/tables.py promises [kin40k] [pol] ...
    python asv_bench/tables.py forecasts [kin40k] [pol] ... [protein] [adult] ...
    python asv_bench/tables.py import

Each prints a Markdown table (with --json the same as JSON) and says on what machine, with which
instruction set, threads and versions. --quick runs tiny sizes, only to see that all runs. Speeds
are worth something only on a machine that does nothing else; docs/speed.md says how to read them.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from benchmarks.common import (
    DTYPES,
    THREADS,
    Limits,
    NoLimitsError,
    ball,
    data_generator,
    empty,
    frobenius_error,
    gaussian,
    interleave,
    must_agree,
    ratio,
    sphere,
)
from benchmarks.competitors import (
    LIBRARIES,
    FeatureSum,
    NumpyHarmonics,
    PivotedNystroem,
    ScipyHarmonics,
    best_batched,
    check,
)
from benchmarks.gegenbauer import AGAINST, SHAPES, WAYS, one_row_output
from benchmarks.harmonics import Columns
from clusters import clusters
from dense import dense
from families import families, mirrors
from forecasts import forecasts, options_of_forecasts
from kernel_products import kernel_products
from new_arrays import new_arrays
from peers import PEERS, peers
from prediction import options_of_prediction, prediction
from printing import (
    load_arrays,
    load_elevation,
    mean_and_spread,
    report,
    run_parts,
    show,
    unit_vectors,
)
from projection import projection
from promises import options_of_promises, promises
from scale import anonymous_megabytes, scale
from scipy.linalg.blas import dsyrk
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from whole import whole

from gzkcore import (
    Gaussian,
    GegenbauerFeatures,
    ProductFeatures,
    PublishedGegenbauerFeatures,
    RandomFeatureRidgeCV,
    Zonal,
)
from gzkcore._compiled.dispatch import ISA
from gzkcore._util.threads import limit_threads, n_threads

ALPHAS = np.logspace(-8, 2, 21)


# ---- accuracy

SETTINGS = {
    "sphere, d=3, radius 5": (lambda n, seed: 5 * sphere(n, 3, seed=seed), 256),
    "ball, d=3, radius 4": (lambda n, seed: 4 * ball(n, 3, seed=seed), 1024),
    "sphere, d=5, radius 2": (lambda n, seed: 2 * sphere(n, 5, seed=seed), 256),
    "sphere, d=9, radius 2": (lambda n, seed: 2 * sphere(n, 9, seed=seed), 1024),
    "N(0, I), d=9": (lambda n, seed: gaussian(n, 9, seed=seed), 1024),
}
# Of the published features: degrees up to where nothing is cut off, as the paper's theorems ask
# for, and orders that divide the widths.
PUBLISHED_DEGREES = (4, 6, 8, 10, 25)
PUBLISHED_ORDERS = (1, 2, 4)


def published(X, width, degree, order, seed):
    """Return the transform of published features fitted on X; on a sphere, of a zonal kernel."""
    radius = np.linalg.norm(X, axis=1)
    if np.ptp(radius) > 1e-9 * radius.max():
        features = PublishedGegenbauerFeatures(
            Gaussian(0.5), width, degree=degree, order=order, random_state=seed
        )
        return features.fit(X).transform
    if order > 1:
        raise NotImplementedError("on a sphere there is one radial function")
    r = radius.mean()
    kernel = Zonal(lambda t: np.exp(r * r * (t - 1)))
    features = PublishedGegenbauerFeatures(
        kernel, width, degree=degree, order=1, random_state=seed
    ).fit(X / r)
    return lambda rows: features.transform(rows / r)


def accuracy(options):
    """Relative Frobenius error of the kernel matrix of 300 points, by four methods."""
    seeds = range(3 if options.quick else options.seeds)
    training = 1500 if options.quick else 4096
    rows = []
    for setting, (points, width) in SETTINGS.items():
        ours, rff, nystroem, theirs, found = [], [], [], {}, {}
        for seed in seeds:
            report(f"{setting}, seed {seed + 1}/{len(seeds)}")
            X, test = points(training, 1000 + seed), points(300, seed)
            K = Gaussian(0.5)(test)
            maps = {
                "ours": GegenbauerFeatures(Gaussian(0.5), width, random_state=seed),
                "rff": RBFSampler(gamma=0.5, n_components=width, random_state=seed),
                "nystroem": Nystroem(gamma=0.5, n_components=width, random_state=seed),
            }
            for name, errors in (("ours", ours), ("rff", rff), ("nystroem", nystroem)):
                errors.append(frobenius_error(K, maps[name].fit(X).transform(test)))
            for degree in PUBLISHED_DEGREES:
                for order in PUBLISHED_ORDERS:
                    try:
                        transform = published(X, width, degree, order, seed)
                    except NotImplementedError:
                        continue
                    error = frobenius_error(K, transform(test))
                    theirs.setdefault((degree, order), []).append(error)
        whole = [key for key in theirs if key[0] == PUBLISHED_DEGREES[-1]]
        for name, keys in (("as published", whole), ("best degree", list(theirs))):
            best = min(keys, key=lambda key, errors=theirs: np.mean(errors[key]))
            found[name] = f"{mean_and_spread(theirs[best])} (q={best[0]}, s={best[1]})"
        rows.append(
            {
                "points": setting,
                "features": width,
                "gzkcore, auto": mean_and_spread(ours),
                "as published": found["as published"],
                "as published, best degree": found["best degree"],
                "RBFSampler": mean_and_spread(rff),
                "Nystroem": mean_and_spread(nystroem),
            }
        )
    notes = (
        "|Z Z^T - K| / |K| in Frobenius norm on 300 points, gamma = 0.5; mean and standard "
        f"deviation of {len(seeds)} seeds, which draw points and features. Every map is fitted "
        f"on {training} other points of the same kind, so that Nystroem does not know the "
        f"points it is judged on. As published: degree q = {PUBLISHED_DEGREES[-1]}, which cuts "
        f"off next to nothing, and the best order s of {PUBLISHED_ORDERS}; then the best of "
        f"the degrees {PUBLISHED_DEGREES} too, which one would have to know beforehand."
    )
    show("Accuracy: relative error of the kernel matrix", rows, notes, options)


# ---- elevation


def elevation(options):
    """Elevation of the Earth from 1,024 features: ridge, alpha by 2-fold cross-validation."""
    X, y = load_elevation()
    if options.quick:
        X, y = X[::16], y[::16]
    splits = 2 if options.quick else options.splits
    width = 256 if options.quick else 1024
    gammas = np.logspace(0, 3, 7 if options.quick else 13)
    fixed, chosen = {}, {}
    for split in range(splits):
        order = data_generator(split).permutation(len(y))
        test, train = order[: len(y) // 10], order[len(y) // 10 :]
        maps = {
            "gzkcore, auto": GegenbauerFeatures(Gaussian(0.5), width, random_state=split),
            "as published": PublishedGegenbauerFeatures(
                Zonal(lambda t: np.exp(t - 1)), width, degree=15, order=1, random_state=split
            ),
            "RBFSampler": RBFSampler(gamma=0.5, n_components=width, random_state=split),
            "Nystroem": Nystroem(gamma=0.5, n_components=width, random_state=split),
        }
        for grid, results in ((None, fixed), ({"gamma": gammas}, chosen)):
            for name, features in maps.items():
                if grid and name == "as published":
                    continue  # its degree and order would have to follow gamma
                report(f"split {split + 1}/{splits}: {name}{', gamma chosen' if grid else ''}")
                model = RandomFeatureRidgeCV(features, alphas=ALPHAS, kernel_grid=grid, cv=2)
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a singular system at alpha = 1e-8 is expected
                    model.fit(X[train], y[train])
                seconds = time.perf_counter() - start
                error = float(np.mean(np.square(model.predict(X[test]) - y[test])))
                gamma = model.best_params_.get("gamma", 0.5)
                results.setdefault(name, []).append((error, model.alpha_, gamma, seconds))
    rows = []
    for what, results in (("gamma = 0.5", fixed), ("gamma chosen", chosen)):
        for name, values in results.items():
            error, alpha, gamma, seconds = np.array(values).T
            rows.append(
                {
                    "lengthscale": what,
                    "features": name,
                    "mean squared error, km²": mean_and_spread(error),
                    "alpha": _range(alpha),
                    "gamma": _range(gamma),
                    "fit, s": float(np.median(seconds)),
                }
            )
    notes = (
        f"{len(y):,} points on the unit sphere, elevation in km (variance {np.var(y):.3g}); "
        f"{splits} random splits 90/10, mean and standard deviation over them; {width} "
        "features each. alpha by 2-fold cross-validation over logspace(-8, 2, 21), gamma over "
        f"logspace(0, 3, {len(gammas)}); the ranges are what the splits chose."
    )
    show("Elevation of the Earth", rows, notes, options)


def _range(values):
    low, high = np.min(values), np.max(values)
    return f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"


# ---- domains: spheres, sphere x time, tables

# Rows of the training part on which scales are chosen, for all methods alike.
CHOOSING_ROWS = 20_000


def domains(options):
    """Test error of ridge on 1,024 features, scales and alpha chosen on the training part."""
    parts = {"elevation": on_the_globe, "climate": in_space_and_time, "protein": in_a_table}
    run_parts("domains", options, parts)


def on_the_globe(options):
    """Elevation, on the sphere."""
    X, y = load_elevation()
    width = 256 if options.quick else 1024
    grid = {"kernel__gamma": [10.0, 30.0, 100.0]}
    methods = {
        "GegenbauerFeatures": (
            lambda seed: GegenbauerFeatures(Gaussian(1.0), width, random_state=seed),
            grid,
        ),
        'GegenbauerFeatures, "adapted"': (
            lambda seed: GegenbauerFeatures(
                Gaussian(1.0), width, basis="adapted", random_state=seed
            ),
            grid,
        ),
        "Nystroem, pivoted": (lambda seed: PivotedNystroem(Gaussian(1.0), width, seed), grid),
    }
    compare("Elevation of the Earth, km²", X, y, methods, options)


def in_space_and_time(options):
    """Monthly temperature, on the sphere times a circle."""
    data = load_arrays("climate_ncep_2p5deg")
    place = unit_vectors(data["lat"], data["lon"])
    angle = 2 * np.pi * (data["month"].astype(np.float64) - 1) / 12
    time_of_year = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.column_stack(
        [np.tile(place, (len(angle), 1)), np.repeat(time_of_year, len(place), axis=0)]
    )
    y = data["temp_c_x100"].ravel() / 100.0
    width = 256 if options.quick else 1024
    start = [(slice(0, 3), Gaussian(1.0)), (slice(3, 5), Gaussian(1.0))]
    both = {"kernel0__gamma": [3.0, 10.0, 30.0], "kernel1__gamma": [0.003, 0.01, 0.03, 0.1]}
    local = {"kernel0__gamma": [10.0, 30.0], "kernel1__gamma": [0.01, 0.03]}
    of_kernel = {f"kernel__{name}": values for name, values in both.items()}
    one = {"kernel__gamma": [0.3, 1.0, 3.0, 10.0]}
    methods = {
        "ProductFeatures": (
            lambda seed: ProductFeatures(start, width, random_state=seed),
            both,
        ),
        'ProductFeatures, "adapted"': (
            lambda seed: ProductFeatures(start, width, basis="adapted", random_state=seed),
            local,
        ),
        "Nystroem, pivoted, same kernel": (
            lambda seed: PivotedNystroem(ProductFeatures(start).kernel, width, seed),
            of_kernel,
        ),
        "isotropic: GegenbauerFeatures": (
            lambda seed: GegenbauerFeatures(Gaussian(1.0), width, random_state=seed),
            one,
        ),
        "isotropic: RBFSampler": (
            lambda seed: RBFSampler(n_components=width, random_state=seed),
            {"gamma": one["kernel__gamma"]},
        ),
        "isotropic: Nystroem": (
            lambda seed: Nystroem(n_components=width, random_state=seed),
            {"gamma": one["kernel__gamma"]},
        ),
        "isotropic: Nystroem, pivoted": (
            lambda seed: PivotedNystroem(Gaussian(1.0), width, seed),
            one,
        ),
    }
    compare("Temperature by place and month, °C²", X, y, methods, options)


def in_a_table(options):
    """Protein structure from nine numbers."""
    data = load_arrays("protein_casp")
    X, y = data["X"].astype(np.float64), data["y"].astype(np.float64)
    width = 256 if options.quick else 1024
    gammas, local = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2], [0.4, 0.8, 1.6]

    def rotated(features):
        return make_pipeline(StandardScaler(), PCA(), features)

    def scaled(features):
        return make_pipeline(StandardScaler(), features)

    methods = {
        "PCA, ProductFeatures": (
            lambda seed: rotated(ProductFeatures(Gaussian(1.0), width, random_state=seed)),
            {"productfeatures__kernel__gamma": gammas},
        ),
        'PCA, ProductFeatures, "adapted"': (
            lambda seed: rotated(
                ProductFeatures(Gaussian(1.0), width, basis="adapted", random_state=seed)
            ),
            {"productfeatures__kernel__gamma": local},
        ),
        'GegenbauerFeatures, "adapted"': (
            lambda seed: scaled(
                GegenbauerFeatures(Gaussian(1.0), width, basis="adapted", random_state=seed)
            ),
            {"gegenbauerfeatures__kernel__gamma": gammas[:3]},
        ),
        "GegenbauerFeatures": (
            lambda seed: scaled(GegenbauerFeatures(Gaussian(1.0), width, random_state=seed)),
            {"gegenbauerfeatures__kernel__gamma": gammas},
        ),
        "RBFSampler": (
            lambda seed: scaled(RBFSampler(n_components=width, random_state=seed)),
            {"rbfsampler__gamma": gammas},
        ),
        "Nystroem": (
            lambda seed: scaled(Nystroem(n_components=width, random_state=seed)),
            {"nystroem__gamma": gammas},
        ),
        "Nystroem, pivoted": (
            lambda seed: scaled(PivotedNystroem(Gaussian(1.0), width, seed)),
            {"pivotednystroem__kernel__gamma": gammas},
        ),
    }
    compare("Protein structure, squared Å", X, y, methods, options)


def compare(title, X, y, methods, options):
    """Print the test errors of methods, each a function of a seed and a grid of its scales."""
    if options.quick:
        X, y = X[::16], y[::16]
    splits = 2 if options.quick else options.splits
    results = {}
    for split in range(splits):
        order = data_generator(split).permutation(len(y))
        test, train = order[: len(y) // 10], order[len(y) // 10 :]
        for name, (make, grid) in methods.items():
            report(f"{title}, split {split + 1}/{splits}: {name}")
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # singular systems at alpha = 1e-8 are expected
                chosen = choose_scales(make(split), grid, X, y, train)
                middle = time.perf_counter()
                model = RandomFeatureRidgeCV(make(split).set_params(**chosen), ALPHAS, cv=2)
                model.fit(X[train], y[train])
                error = float(np.mean(np.square(model.predict(X[test]) - y[test])))
            seconds = middle - start, time.perf_counter() - middle
            results.setdefault(name, []).append((error, chosen, *seconds))
    rows = []
    for name, values in results.items():
        errors, chosen, choosing, fitting = zip(*values, strict=True)
        rows.append(
            {
                "features": name,
                "mean squared error": mean_and_spread(errors),
                "gamma": "; ".join(_range([scale[key] for scale in chosen]) for key in chosen[0]),
                "choose, s": float(np.median(choosing)),
                "fit, s": float(np.median(fitting)),
            }
        )
    notes = (
        f"{len(y):,} rows (variance {np.var(y):.3g}); {splits} random splits 90/10, mean and "
        "standard deviation over them. Scales by 2-fold cross-validation on at most "
        f"{CHOOSING_ROWS:,} rows of the training part, alpha on all of it, over logspace(-8, 2, "
        "21). Pivoted: landmarks by randomly pivoted Cholesky."
    )
    show(title, rows, notes, options)


def choose_scales(features, grid, X, y, train):
    """Return the entry of a grid with the least cross-validated error."""
    some = train[:CHOOSING_ROWS]
    model = RandomFeatureRidgeCV(features, ALPHAS[::2], kernel_grid=grid, cv=2)
    best = dict(model.fit(X[some], y[some]).best_params_)
    del best["alpha"]
    return best


# ---- speed


def speed(options):
    """Shares of what the machine can do, and ratios to the best of NumPy, torch and BLAS."""
    parts = {"kernel": kernel, "sums": sums, "harmonics": harmonics, "fit": fit, "new": new_arrays}
    run_parts("speed", options, parts)


def shapes(options):
    """Return the shapes to measure, small ones for --quick."""
    if options.quick:
        return {name: shape | {"n": 2048} for name, shape in SHAPES.items()}
    return SHAPES


def limits_or_none():
    """Return the probe of the machine's limits, or None with a word on stderr."""
    try:
        return Limits(ISA)
    except NoLimitsError as error:
        sys.stderr.write(f"no limits: {error}\n")
        return None


def share(times, limit, done, call, amount):
    """Return in percent how much of a limit (`done` work in its time) a call's `amount` reaches."""
    return 100 * amount / done * ratio(times, limit, call)[0]


def kernel(options):
    """Measure the feature kernel against the FMA peak in cache, the write limit to memory."""
    limits, rows = limits_or_none(), []
    for (name, shape), dtype in ((item, d) for item in shapes(options).items() for d in DTYPES):
        for threads in THREADS:
            rows += _kernel_rows(name, shape, dtype, threads, limits, options)
    notes = (
        "Limits are measured in the same run, in turn with the kernel, at as many threads: "
        "writing past the cache into the same buffer, and fused multiply-adds in registers. "
        "To memory: all rows into a warm buffer on a boundary of 64 bytes; off boundary: 16 "
        "bytes past one, as NumPy's own large arrays are. In cache: every row is written to "
        "the same place. GFLOP/s counts d + q (Horner), d + q + 3 (in halves) or d + 2q (Clenshaw) "
        "fused operations a feature, two flops each."
    )
    show("Feature kernel", rows, notes, options)


def _kernel_rows(name, shape, dtype, threads, limits, options):
    problem = FeatureSum(**shape, dtype=dtype)
    n, m = problem.shape
    outputs = {"to memory": empty((n, m), dtype), "off boundary": empty((n, m), dtype, offset=16)}
    if threads == 1:
        outputs["in cache"] = one_row_output(n, m, dtype)
    calls, errors, done = {}, {}, {}
    for where, out in outputs.items():
        for way in WAYS:
            stream = where != "in cache"
            call = problem.ours(ISA, out, threads, way=way, stream=stream)
            if stream:
                errors[way] = check(call, problem, out)
            calls[where, way] = call
    if limits:
        target = outputs["to memory"]
        calls["write"] = lambda: limits.write(target, threads)
        calls["plain"] = lambda: limits.write_plain(target, threads)
        calls["read"] = lambda: limits.read(target, threads)
        calls["fma"] = lambda: limits.multiply_add(dtype, threads)
        done = {key: calls[key]() for key in ("write", "plain", "read", "fma")}
    times = interleave(
        calls,
        options.rounds,
        report=lambda text: report(f"{name} {dtype} T{threads}, {text}"),
    )
    common = {"shape": _shape(problem), "type": dtype, "threads": threads}
    rows = []
    for key, limit in done.items():
        seconds = float(np.median(times[key]))
        unit = "GFLOP/s" if key == "fma" else "GB/s"
        names = {"write": "write past cache", "plain": "plain write", "read": "read", "fma": "FMA"}
        row = {"what": f"limit: {names[key]}", "ms": 1e3 * seconds, unit: limit / seconds / 1e9}
        rows.append(common | row)
    for where, way in [key for key in calls if isinstance(key, tuple)]:
        seconds, flops = float(np.median(times[where, way])), problem.flops(way)
        row = common | {
            "what": f"{way}, {where}",
            "ms": 1e3 * seconds,
            "GB/s": outputs[where].nbytes / seconds / 1e9 if where != "in cache" else "",
            "GFLOP/s": flops / seconds / 1e9,
        }
        if limits:
            row["% of FMA peak"] = share(times, "fma", done["fma"], (where, way), flops)
            if where != "in cache":
                amount = outputs[where].nbytes
                row["% of write limit"] = share(times, "write", done["write"], (where, way), amount)
        rows.append(row | {"error": f"{errors[way]:.0e}"})
    return rows


def _shape(problem):
    n, m = problem.shape
    return f"n={n:,} d={problem.dim} q={problem.degree} m={m}"


def sums(options):
    """Measure the same features by the best batched NumPy and torch (--compile: compiled, too)."""
    rows = []
    libraries = list(LIBRARIES)
    if options.compile and "torch" in LIBRARIES:
        libraries.append("torch.compile")
    for (name, shape), dtype in ((item, d) for item in shapes(options).items() for d in DTYPES):
        for threads in THREADS:
            problem = FeatureSum(**shape, dtype=dtype)
            out = empty(problem.shape, dtype)
            calls, errors = {}, {}
            prefix = f"{name} {dtype} T{threads}, "
            with threadpool_limits(1, user_api="blas"):
                for way in AGAINST:
                    calls[way] = problem.ours(ISA, out, threads, way=way)
                    errors[way] = check(calls[way], problem, out)
                for library in libraries:
                    for way, rules in AGAINST.items():
                        found = best_batched(
                            rules,
                            problem,
                            out,
                            threads,
                            [library],
                            lambda t, p=prefix: report(p + t),
                        )
                        calls[library, way] = found
                        errors[library, way] = check(found, problem, out)
                times = interleave(
                    calls, options.rounds, report=lambda t, p=prefix: report(f"{p}{t}")
                )
            for key in [key for key in calls if isinstance(key, tuple)]:
                times_faster, (low, high) = ratio(times, key, key[1])
                rows.append(
                    {
                        "shape": _shape(problem),
                        "type": dtype,
                        "threads": threads,
                        "sum": "stable" if key[1] == "clenshaw" else "monomial",
                        "theirs": calls[key].name,
                        "theirs, ms": 1e3 * float(np.median(times[key])),
                        "ours, ms": 1e3 * float(np.median(times[key[1]])),
                        "times faster": times_faster,
                        "quartiles": f"{low:.3g} to {high:.3g}",
                        "error theirs": f"{errors[key]:.0e}",
                        "error ours": f"{errors[key[1]]:.0e}",
                    }
                )
    notes = (
        "The same sum into the same warm buffer, checked to be the same numbers, timed in "
        "turn. Theirs is the fastest rule and batch size found in this run; on two threads "
        "each takes half the rows. Stable: recurrences; monomial: Horner's rule and its kin, "
        "for sums where it loses no digits. torch.compile (with --compile, and many minutes) "
        "generates and compiles C++ on the user's machine; that time isn't counted."
    )
    show("The sum, against NumPy and torch", rows, notes, options)


def harmonics(options):
    """Measure exact harmonics to memory against the write limit, and against NumPy and SciPy."""
    limits, rows = limits_or_none(), []
    n = 2048 if options.quick else 64_800
    for dim, dtype, threads in ((d, t, k) for d in (3, 5) for t in DTYPES for k in THREADS):
        buffers = {"ours": Columns(n, dim, 1024, dtype)}
        buffers["ours, off boundary"] = Columns(n, dim, 1024, dtype, offset=16)
        calls, done = dict(buffers), 0
        ours = buffers["ours"]
        ours()
        if threads == 1 and dim == 3:  # 1,024 columns are whole degrees here
            few = slice(0, min(n, 4096))
            calls |= _other_harmonics(ours, few)
        if limits:
            calls["write"] = lambda c=ours, k=threads: limits.write(c.out, k)
            done = calls["write"]()
        prefix = f"d={dim} {dtype} T{threads}, "
        with limit_threads(threads), threadpool_limits(1, user_api="blas"):
            times = interleave(calls, options.rounds, report=lambda t, p=prefix: report(p + t))
            ours()
        common = {"dim": dim, "type": dtype, "threads": threads}
        for key in calls:
            seconds = float(np.median(times[key]))
            row = common | {"what": "limit: write past cache" if key == "write" else key}
            if key in buffers:
                row |= {
                    "ns a row": 1e9 * seconds / n,
                    "GB/s": ours.out.nbytes / seconds / 1e9,
                    "error": f"{buffers[key].error():.0e}",
                }
                if limits:
                    row["% of write limit"] = share(times, "write", done, key, ours.out.nbytes)
            elif key == "write":
                row |= {"ns a row": 1e9 * seconds / n, "GB/s": done / seconds / 1e9}
            else:
                scale = n / calls[key].X.shape[0]
                row |= {
                    "ns a row": 1e9 * seconds * scale / n,
                    "times slower than ours": scale * ratio(times, key, "ours")[0],
                }
            rows.append(row)
    notes = (
        f"1,024 columns on {n:,} rows into a warm buffer; the limit in the same run, same "
        "buffer. NumPy and SciPy run on 4,096 rows of the same, on one thread; they are "
        "checked to compute the same numbers. The error is the largest violation of the "
        "addition theorem, relative."
    )
    show("Exact harmonics", rows, notes, options)


def _other_harmonics(ours, rows):
    """Return NumPy's and SciPy's way to the same columns, checked."""
    found = {}
    expected = ours.out[rows].copy()
    tolerance = 1e-4 if expected.dtype == np.float32 else 1e-11
    for make in (NumpyHarmonics, ScipyHarmonics):
        call = make(ours.X[rows], ours.degree, ours.radial, np.full_like(expected, np.nan))
        call()
        must_agree(call.name, call.out, expected, tolerance)
        found[call.name] = call
    return found


def fit(options):
    """Measure a whole float64 fit from rows to coefficients, against syrk on stored features."""
    from gzkcore.learn.ridge import RandomFeatureRidge

    rows = []
    width = 256 if options.quick else 1024
    for shape in shapes(options).values():
        n, dim = shape["n"], shape["dim"]
        X = sphere(n, dim, seed=1)
        y = np.sin(3 * X[:, 0]) + X[:, 1]
        features = GegenbauerFeatures(
            Gaussian(0.5), width, radius=(1.0, 1.0), center=None, random_state=0
        )
        # F order without a copy: syrk sees Z^T, whose columns are the rows of Z.
        Z = features.fit(X).transform(X)
        gram = np.zeros((width, width), order="F")
        for threads in THREADS:
            solve = []

            def whole(features=features, X=X, y=y, solve=solve):
                model = RandomFeatureRidge(features, alpha=1e-3).partial_fit(X, y)
                start = time.perf_counter()
                coef = model.coef_
                solve.append(time.perf_counter() - start)
                return coef

            calls = {
                "fit": whole,
                "features": lambda f=features, X=X: f.fit(X),
                "syrk": lambda Z=Z, gram=gram: dsyrk(1.0, Z.T, c=gram, overwrite_c=1),
            }
            with limit_threads(threads), threadpool_limits(threads, user_api="blas"):
                times = interleave(
                    calls,
                    options.rounds,
                    gap=0.3,
                    report=lambda t, n=n, k=threads: report(f"n={n:,} T{k}, {t}"),
                )
            solving = float(np.median(solve))
            without = {"fit": times["fit"] - solving, "syrk": times["syrk"]}
            middle, (low, high) = ratio(without, "fit", "syrk")
            seconds = {key: float(np.median(value)) for key, value in times.items()}
            rows.append(
                {
                    "shape": f"n={n:,} d={dim}, {width} features",
                    "basis": features.basis_,
                    "threads": threads,
                    "fit without solve, s": seconds["fit"] - solving,
                    "of it choosing the basis, s": seconds["features"],
                    "solve, s": solving,
                    "syrk, s": seconds["syrk"],
                    "syrk GFLOP/s": n * width * (width + 1) / seconds["syrk"] / 1e9,
                    "fit / syrk": middle,
                    "quartiles": f"{low:.3g} to {high:.3g}",
                }
            )
    notes = (
        "float64, one alpha. Fit: from X to coefficients, features included, Z never stored; "
        "syrk: the same BLAS on as many threads, Z^T Z alone of a stored Z of the same shape."
    )
    show("A whole fit, against BLAS", rows, notes, options)


# ---- memory


def memory(options):
    """Anonymous memory of a fit from a memory map, over the imports."""
    if not Path("/proc/self/status").exists():
        sys.exit("memory: needs Linux, which tells anonymous memory apart (RssAnon)")
    n = 50_000 if options.quick else options.rows_fitted
    rows = []
    for dtype in DTYPES:
        with tempfile.TemporaryDirectory() as folder:
            report(f"{dtype}: writing {n:,} rows")
            path = Path(folder)
            X = np.lib.format.open_memmap(path / "X.npy", "w+", dtype, (n, 3))
            y = np.lib.format.open_memmap(path / "y.npy", "w+", dtype, (n,))
            for start in range(0, n, 100_000):
                part = sphere(min(100_000, n - start), 3, dtype, seed=start)
                X[start : start + len(part)] = part
                y[start : start + len(part)] = np.sin(4 * part[:, 0])
            X.flush(), y.flush()
            del X, y
            report(f"{dtype}: fitting")
            # A fresh process, so that nothing of ours is in its memory.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                rows.append(pool.submit(fit_from_disk, path, options.quick).result())
    notes = (
        f"{n:,} rows of 3 columns in a memory map, 1,024 features, one alpha. Anonymous memory "
        "(RssAnon) sampled every 2 ms; imports are what it was before the fit."
    )
    show("Memory of a fit larger than memory", rows, notes, options)


def fit_from_disk(path, quick):
    """Fit in this process and return a row of the table."""
    from gzkcore.learn.ridge import RandomFeatureRidge

    X, y = np.load(path / "X.npy", mmap_mode="r"), np.load(path / "y.npy", mmap_mode="r")
    features = GegenbauerFeatures(Gaussian(20.0), 256 if quick else 1024, random_state=0)
    model = RandomFeatureRidge(features, alpha=1e-3)
    before, peak, stop = anonymous_megabytes(), [0.0], threading.Event()

    def sample():
        while not stop.wait(0.002):
            peak[0] = max(peak[0], anonymous_megabytes())

    watcher = threading.Thread(target=sample)
    watcher.start()
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    stop.set()
    watcher.join()
    few = slice(0, 2000)
    return {
        "type": str(X.dtype),
        "threads": n_threads(),
        "imports, MB": before,
        "fit, MB over imports": max(peak[0], anonymous_megabytes()) - before,
        "fit, s": seconds,
        "Z would be, MB": X.shape[0] * features.n_components * X.dtype.itemsize / 1e6,
        "rms residual": float(np.sqrt(np.mean(np.square(model.predict(X[few]) - y[few])))),
    }


# ---- import


def import_time(options):
    """Seconds to import gzkcore, over scikit-learn."""
    commands = {
        "nothing": "pass",
        "sklearn": "import sklearn",
        "gzkcore": "import gzkcore",
    }
    with tempfile.TemporaryDirectory() as folder:  # away from the sources, which would be imported

        def call(code):
            return lambda: subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)

        calls = {name: call(code) for name, code in commands.items()}
        rounds = 3 if options.quick else 3 * options.rounds
        times = interleave(calls, rounds, visit=0.0, report=report)
    over = np.quantile(times["gzkcore"] - times["sklearn"], [0.25, 0.5, 0.75])
    rows = [
        {"import": name, "s": float(np.median(seconds)), "fastest, s": float(seconds.min())}
        for name, seconds in times.items()
    ]
    rows.append(
        {
            "import": "gzkcore over sklearn",
            "s": float(over[1]),
            "fastest, s": float(times["gzkcore"].min() - times["sklearn"].min()),
            "quartiles": f"{over[0]:.3g} to {over[2]:.3g}",
        }
    )
    notes = f"Whole processes, files in the page cache, in turn; median of {rounds} rounds."
    show("Import", rows, notes, options)


# ---- the command


def main():
    """Read the command line and print the table."""
    about, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(prog="tables.py", description=about)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    shared.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    shared.add_argument("--rounds", type=int, default=7, help="rounds of timing (default 7)")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, function):
        added = commands.add_parser(name, parents=[shared], help=function.__doc__)
        added.set_defaults(function=function)
        return added

    command("accuracy", accuracy).add_argument("--seeds", type=int, default=10)
    command("elevation", elevation).add_argument("--splits", type=int, default=10)
    added = command("domains", domains)
    added.add_argument("--splits", type=int, default=5)
    added.add_argument("parts", nargs="*", help="elevation, climate, protein; by default all")
    added = command("families", families)
    added.add_argument("--seeds", type=int, default=5)
    added.add_argument("--rows", type=int, default=1_000_000, help="of choice; default 1,000,000")
    added.add_argument(
        "parts", nargs="*", help="dimensions, choice, tangent, monomials; by default all"
    )
    added = command("clusters", clusters)
    added.add_argument("--seeds", type=int, default=5)
    added.add_argument("--starts", type=int, default=10, help="of k-means; default 10")
    added.add_argument("--rows", type=int, default=10**9, help="at most so many, every n-th row")
    added.add_argument("parts", nargs="*", help="names of data sets; by default all")
    command("mirrors", mirrors)
    added = command("speed", speed)
    added.add_argument(
        "parts", nargs="*", help="kernel, sums, harmonics, fit, new; all of them by default"
    )
    added.add_argument("--compile", action="store_true", help="sums: torch.compile, too")
    added = command("projection", projection)
    added.add_argument(
        "parts",
        nargs="*",
        help="memory, footprint, matrices, features, sparse, errors, all; by default each",
    )
    command("peers", peers).add_argument("parts", nargs="*", help=f"{', '.join(PEERS)}; each")
    command("products", kernel_products)
    command("memory", memory).add_argument(
        "--rows", dest="rows_fitted", type=int, default=2_000_000, help="default 2,000,000"
    )
    added = command("scale", scale)
    added.add_argument("parts", nargs="*", help="disk, dask, simulate; by default all")
    added.add_argument("--plot", help="simulate: draw time against workers to this file (.png)")
    added.add_argument("--gigabits", type=float, default=10.0, help="of the network; default 10")
    added.add_argument("--latency", type=float, default=0.5, help="of it, in ms; default 0.5")
    added.add_argument(
        "--rows", dest="rows_fitted", type=int, default=5_000_000, help="default 5,000,000"
    )
    command("dense", dense).add_argument(
        "--rows", dest="rows_fitted", type=int, default=20_000, help="default 20,000, with 10 GB"
    )
    added = command("whole", whole)
    added.add_argument("--splits", type=int, default=5)
    added.add_argument(
        "parts", nargs="*", help="errors, features, globe, peers, iterations, large; by default all"
    )
    added.add_argument("--width", type=int, default=512, help="iterations: of features; 512")
    options_of_prediction(command("prediction", prediction))
    options_of_promises(command("promises", promises))
    options_of_forecasts(command("forecasts", forecasts))
    command("import", import_time)
    _run(parser.parse_args())


def _run(options):
    if options.quick:
        options.rounds = min(options.rounds, 3)
    options.function(options)


if __name__ == "__main__":
    main()
