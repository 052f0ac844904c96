"""The tables of projections: shares of the memory bandwidth, ratios to matrices, all compared."""

import functools
import itertools
import math
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from benchmarks.block import ARRANGEMENTS, Projection, SparseRows
from benchmarks.common import (
    THREADS,
    Limits,
    NoLimitsError,
    data_generator,
    empty,
    gaussian,
    interleave,
    ratio,
)
from benchmarks.competitors import OTHER, OTHER_PYTHON, OtherFastfood
from benchmarks.projection import WholeTransform
from families import images
from printing import load_arrays, mean_and_spread, report, run_parts, show
from sklearn.preprocessing import MinMaxScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from gzkcore import (
    BlockFourierFeatures,
    BlockProjection,
    CountSketch,
    FastfoodFeatures,
    FastJLProjection,
    Gaussian,
    HadamardProjection,
    RandomFourierFeatures,
    block_report,
)
from gzkcore._compiled.dispatch import ISA
from gzkcore._util.memory import PeakMemory
from gzkcore._util.threads import limit_blas, limit_threads
from gzkcore.features.block import project
from gzkcore.features.block_moments import projection_variance
from gzkcore.features.projection import fast_jl_variance, hadamard_projection_variance
from gzkcore.metrics import mean_distance_error, mean_kernel_error

# (D, k) of the paper's Table 2, and widths that are multiples of a vector register beside its k.
SIZES = tuple(
    (dim, k)
    for dim in (5_000, 17_500, 100_000, 260_000, 440_000)
    for k in (1000, 1024, 5000, 5120)
    if k <= dim
)
# (D, features) of its Table 3.
FEATURE_SIZES = tuple(
    (dim, width)
    for dim in (5_000, 10_000, 17_500, 100_000, 260_000, 440_000)
    for width in (1_000, 5_000, 10_000, 50_000, 100_000, 200_000)
)
FEATURE_ROWS = 128
# Only so many columns of a dense matrix are multiplied; the whole takes proportionally longer.
SLICE = 500


def projection(options):
    """Measure projections and block features against the read bandwidth, sgemm and scikit-learn."""
    parts = {
        "memory": from_memory,
        "footprint": beside_the_rows,
        "matrices": against_matrices,
        "features": against_features,
        "sparse": against_scipy,
        "errors": on_real_rows,
        "all": side_by_side,
    }
    run_parts("projection", options, parts)


def on_real_rows(options):
    """Errors of distances and of the kernel (Eq 8 and 9) beside those of dense matrices."""
    rows = []
    for name, data in real_rows().items():
        X = MinMaxScaler().fit_transform(data.astype(np.float64))
        for k in (128, 512):
            found = {}
            for seed in range(2 if options.quick else 10):
                report(f"errors: {name}, k={k}, seed {seed + 1}")
                projections = (
                    BlockProjection(k, random_state=seed),
                    GaussianRandomProjection(k, random_state=seed),
                )
                features = (
                    BlockFourierFeatures("gaussian", 2 * k, random_state=seed),
                    RandomFourierFeatures("gaussian", 2 * k, random_state=seed),
                )
                errors = [mean_distance_error(X, p.fit_transform(X)) for p in projections]
                Z = [f.fit_transform(X) for f in features]
                K = features[0].kernel_(X)
                errors += [mean_kernel_error(K, z) for z in Z]
                off = ~np.eye(len(X), dtype=bool)
                errors.append(float((Z[0] @ Z[0].T - K)[off].mean()))
                for column, error in zip(ERRORS, errors, strict=True):
                    found.setdefault(column, []).append(error)
            size = features[0].block_size_
            estimate = block_report(X, "gaussian", block_size=size)
            mean = {column: np.mean(values) for column, values in found.items()}
            rows.append(
                {
                    "rows": name,
                    "D": X.shape[1],
                    "k": k,
                    "block": size,
                    **{column: mean_and_spread(values) for column, values in found.items()},
                    "Eq 8, ratio": mean[ERRORS[0]] / mean[ERRORS[1]],
                    "Eq 9, ratio": mean[ERRORS[2]] / mean[ERRORS[3]],
                    "bias told": "{:.2g} to {:.2g}".format(*estimate.bias_interval),
                }
            )
    notes = (
        'Columns scaled to [0, 1], gamma "scale", blocks of at least 32 columns; mean and standard '
        "deviation over seeds. Bias: mean of z(x).z(y) - k(x, y) over pairs; told: by block_report."
    )
    show("Errors of blocks beside dense matrices", rows, notes, options)


# Errors of distances and of the kernel, by blocks and by dense matrices, and the blocks' excess.
ERRORS = ("Eq 8, blocks", "Eq 8, dense", "Eq 9, blocks", "Eq 9, Fourier", "bias")


def real_rows():
    """Return the data: images made here, and genes if they are there."""
    found = {"smooth images": images(200, 4096, data_generator(0))}
    if os.environ.get("GZKCORE_DATA"):
        found = {"genes": load_arrays("gene_chowdary")["X"]} | found
    return found


def from_memory(options):
    """Print each arrangement's share of the bandwidth of reading the same rows."""
    try:
        limits = Limits(ISA)
    except NoLimitsError as error:
        sys.stderr.write(f"no limits: {error}\n")
        return
    sizes = SIZES[:2] if options.quick else SIZES
    rows = [row for dim, k in sizes for row in _memory_rows(dim, k, limits, options)]
    notes = (
        "float32 rows, half a gigabyte, into a warm output; in per cent of reading them in four "
        "streams a thread, in the same rounds: median and quartiles of the rounds' ratios. "
        "`permutation` is the paper's arrangement."
    )
    show("Projection from memory", rows, notes, options)


def _memory_rows(dim, k, limits, options):
    total = 1 << (24 if options.quick else 29)
    cases = {name: Projection(dim, k, arrangement=name, total=total) for name in ARRANGEMENTS}
    X = cases["stratified"].X
    for case in cases.values():
        case.X = X  # the same memory for all
    for threads in THREADS:
        calls = {name: functools.partial(case, threads) for name, case in cases.items()}
        calls["read"] = functools.partial(limits.read, X, threads)
        part = 100 * X.nbytes / calls["read"]()
        times = _in_turn(calls, f"D={dim} k={k}", options, visit=0.02)
        row = {"D": dim, "k": k, "threads": threads}
        row["read, GB/s"] = X.nbytes / float(np.median(times["read"])) / 1e9
        for name in ARRANGEMENTS:
            share, (low, high) = ratio(times, "read", name)
            row[f"{name}, %"] = f"{part * share:.0f} ({part * low:.0f} to {part * high:.0f})"
        yield row


def beside_the_rows(options):
    """Print the memory that transform takes beside its input and output."""
    if not Path("/proc/self/clear_refs").exists():
        sys.exit("footprint: needs Linux, which can forget the peak of the resident memory")
    sizes = ((20_000, 1000),) if options.quick else ((440_000, 1000), (440_000, 200_000))
    rows = []
    for (dim, k), name, threads in itertools.product(sizes, FOOTPRINTS, THREADS):
        report(f"footprint: {name}, D={dim}, k={k}, {threads} threads")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:  # a fresh process
            kilobytes = pool.submit(_footprint, name, dim, k, threads).result() / 1e3
        rows.append({"D": dim, "k": k, "map": name, "threads": threads, "KB": kilobytes})
    notes = (
        "256 rows, float32: the peak of the resident memory during one transform into a buffer, "
        "over what was there before it (VmHWM, counted in pages of 4 KB). Fitted: 12 D bytes a "
        "pass."
    )
    show("Memory beside input and output", rows, notes, options)


FOOTPRINTS = {
    "BlockProjection": lambda k: BlockProjection(k, random_state=0),
    "BlockFourierFeatures": lambda k: BlockFourierFeatures(Gaussian(1.0), k, random_state=0),
}


def _footprint(name, dim, k, threads):
    X, out = np.ones((256, dim), np.float32), np.ones((256, k), np.float32)
    with limit_threads(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # equal rows have a constant kernel
        features = FOOTPRINTS[name](k).fit(X[:2])
        BlockProjection(1).fit_transform(X)  # starts the threads, and leaves nothing to reuse
        peak = PeakMemory()
        features.transform(X, out=out)
        return peak.bytes


def _in_turn(calls, what, options, **how):
    return interleave(calls, options.rounds, report=lambda text: report(f"{what}: {text}"), **how)


def against_matrices(options):
    """Print ratios to a dense product and to scikit-learn's projections, for users' calls."""
    sizes = ((5_000, 1000), (10_000, 1000), (260_000, 5000))
    sizes = sizes[:1] if options.quick else sizes
    rows = [row for dim, k in sizes for row in _matrix_rows(dim, k, options)]
    notes = (
        "transform of 2,048 rows (256 at D = 260,000), float32, all threads; the kernel alone "
        f"does not look for bad values. sgemm: {SLICE} columns of the matrix, scaled up; its rate "
        "is that of a large product. The bound on the ratio to it is 2 k operations at the rate of "
        "gemm against 4 bytes read; the paper's 1,226 had a slower product to beat."
    )
    show("Projection against matrices", rows, notes, options)


def _matrix_rows(dim, k, options):
    X = gaussian(2048 if dim < 100_000 else 256, dim, "float32")
    width = min(k, SLICE)
    R = data_generator(1).standard_normal((dim, width)).astype(np.float32)
    product, out = empty((len(X), width), "float32"), empty((len(X), k), "float32")
    block = BlockProjection(k, random_state=0).fit(X[:2])
    calls = {
        "block": lambda: block.transform(X),
        "block, kernel alone": lambda: project(X, block.buckets_, block.weights_, out),
        "sgemm": lambda: np.matmul(X, R, out=product),
    }
    if dim == 10_000:
        for cls in (GaussianRandomProjection, SparseRandomProjection):
            fitted = cls(k, random_state=0).fit(X[:2])
            calls[cls.__name__] = functools.partial(fitted.transform, X)
    times = _in_turn(calls, f"D={dim} k={k}", options)
    times["sgemm"] *= k / width
    for name in calls:
        yield {
            "D": dim,
            "k": k,
            "what": name,
            "ms": 1e3 * float(np.median(times[name])),
            "block is times faster": ratio(times, name, "block")[0],
        }


def against_features(options):
    """Print ratios of block features to random features of whole rows (kitchen sinks)."""
    sizes = FEATURE_SIZES[:1] if options.quick else FEATURE_SIZES
    rows = [row for dim, width in sizes for row in _feature_rows(dim, width, options)]
    notes = (
        f"{FEATURE_ROWS} rows, float32, all threads; figures are how many times faster block "
        f"features are. Whole rows: one product of all rows with {SLICE} frequencies, and cos, "
        "extrapolated to all. Row by row: the same for each row. As published: one pass where "
        "there are enough coordinates, of blocks as small as that takes. Cos and sin: what they "
        "take beside the sums, in percent of those. scikit-learn-extra, in double as it works: in "
        f"the interpreter that ${OTHER_PYTHON} names (it needs numpy < 2)."
    )
    show("Block features", rows, notes, options)


def _feature_rows(dim, width, options):
    X, kernel = gaussian(FEATURE_ROWS, dim, "float32"), Gaussian(0.5 / dim)
    out = empty((len(X), width), "float32")
    columns = min(width, SLICE)
    W = data_generator(1).standard_normal((dim, columns)).astype(np.float32) / dim**0.5
    product = empty((len(X), columns), "float32")
    smallest = max(1, 2 * dim // width)
    maps = {
        "block": BlockFourierFeatures(kernel, width, random_state=0),
        "as published": BlockFourierFeatures(
            kernel, width, block_size=smallest, arrangement="permutation", random_state=0
        ),
        "Fastfood": FastfoodFeatures(kernel, width, random_state=0),
    }
    for each in maps.values():
        each.fit(X[:1])
    sums = empty((len(X), sum(maps["block"].n_blocks_)), "float32")
    calls = {name: functools.partial(each.transform, X, out=out) for name, each in maps.items()}
    calls["sums alone"] = lambda: project(X, maps["block"].buckets_, maps["block"].weights_, sums)
    calls["whole rows"] = lambda: np.cos(np.matmul(X, W, out=product), out=product)
    calls["row by row"] = lambda: np.cos(X[0] @ W, out=product[0])
    with ExitStack() as stack:
        if OTHER_PYTHON in os.environ:
            elsewhere = OtherFastfood(os.environ[OTHER_PYTHON], len(X), dim, width)
            calls[OTHER] = stack.enter_context(closing(elsewhere))
        times = _in_turn(calls, f"D={dim} {width} features", options)
    times["whole rows"] *= width / columns
    times["row by row"] *= len(X) * width / columns
    waves = 100 * (np.median(times["block"] / times["sums alone"]) - 1)
    yield {
        "D": dim,
        "features": width,
        "passes": len(maps["block"].n_blocks_),
        "ms": 1e3 * float(np.median(times["block"])),
        "cos and sin, %": waves,
        **{
            name: ratio(times, name, "block")[0] if name in times else "-"
            for name in ("as published", "Fastfood", "whole rows", "row by row", OTHER)
        },
    }


def against_scipy(options):
    """Print ratios to SciPy's product with the same sparse matrix, CSR rows, D = 100,000."""
    densities = (0.01,) if options.quick else (0.001, 0.01, 0.1)
    rows = [row for density in densities for row in _sparse_rows(density, options)]
    notes = "2,000 rows, float32, k = 1,000; SciPy's product is sparse and runs on one thread."
    show("Sparse rows", rows, notes, options)


def _sparse_rows(density, options):
    case = SparseRows()
    case.n = 2000
    case.setup(density, "float32", "gzkcore", 1)

    def ours(threads):
        with limit_threads(threads):
            case.call()

    for threads in THREADS:
        calls = {"gzkcore": functools.partial(ours, threads), "scipy": lambda: case.X @ case.S}
        times = _in_turn(calls, f"density {density}", options)
        yield {
            "density": density,
            "threads": threads,
            "Gnnz/s": case.X.nnz / float(np.median(times["gzkcore"])) / 1e9,
            "times faster than scipy": ratio(times, "scipy", "gzkcore")[0],
        }


# All projections get rows of so many columns; sparse rows have so many entries.
COLUMNS, ENTRIES = 10_000, 10


def _matrix_variance(density=None):
    """Return the variance of |z|^2 for a unit vector, by a sparse or a normal matrix."""
    more = 0 if density is None else 1 / density - 3
    return lambda d, k: (2 + more * np.sum(d**4)) / k


# {name: (its constructor, the variance of |z|^2 for a unit vector)}
PROJECTIONS = {
    "GaussianRandomProjection": (GaussianRandomProjection, _matrix_variance()),
    "SparseRandomProjection(density=1/3)": (
        functools.partial(SparseRandomProjection, density=1 / 3),
        _matrix_variance(1 / 3),
    ),
    "SparseRandomProjection(density=1/sqrt(D))": (
        functools.partial(SparseRandomProjection, density=1 / math.sqrt(COLUMNS)),
        _matrix_variance(1 / math.sqrt(COLUMNS)),
    ),
    "FastJLProjection": (FastJLProjection, None),
    "HadamardProjection": (
        HadamardProjection,
        lambda d, k: hadamard_projection_variance(d, d, k),
    ),
    "BlockProjection": (BlockProjection, projection_variance),
    "CountSketch": (CountSketch, lambda d, k: (2 - 2 * np.sum(d**4)) / k),
}


def side_by_side(options):
    """Print error and time of every projection on the same rows, dense and sparse."""
    n, seeds = (200, 3) if options.quick else (512, 10)
    rng = data_generator(2)
    points = {
        "dense": gaussian(40, COLUMNS),
        "few": np.where(rng.random((40, COLUMNS)).argsort() < ENTRIES, gaussian(40, COLUMNS), 0),
    }
    rows = [row for k in (256, 1000) for row in _side_rows(k, n, seeds, points, options)]
    notes = (
        f"D = {COLUMNS:,}. Error: root mean square over the pairs of 40 points of "
        "|z_i - z_j|^2 / |x_i - x_j|^2 - 1, in per cent; mean and standard deviation over "
        f"{seeds} seeds, and what the variance's formula says. Dense: normal rows; few: {ENTRIES} "
        f"entries in each row. Time: of the processor, for transform of {n:,} dense rows, float32, "
        "one thread, without out=; the ratio to GaussianRandomProjection within rounds, median "
        "and quartiles. "
        "Whole transform: HadamardProjection by transforming padded rows and taking k of n outputs."
    )
    show("Projections side by side", rows, notes, options)


def _side_rows(k, n, seeds, points, options):
    X = gaussian(n, COLUMNS, "float32")
    fitted = {name: make(k, random_state=0).fit(X[:2]) for name, (make, _) in PROJECTIONS.items()}
    calls = {name: functools.partial(each.transform, X) for name, each in fitted.items()}
    whole = WholeTransform(fitted["HadamardProjection"], X.dtype)
    calls["whole transform"] = lambda: whole(X, np.empty((n, k), X.dtype))
    with limit_threads(1), limit_blas(1):
        times = _in_turn(calls, f"k={k}", options, clock=time.thread_time)
    first = next(iter(calls))
    for name in calls:
        middle, (low, high) = ratio(times, first, name)
        row = {"k": k, "projection": name}
        if name in PROJECTIONS:
            for kind, data in points.items():
                report(f"k={k}: errors of {name}, {kind} rows")
                found = [_distance_error(name, k, data, seed) for seed in range(seeds)]
                row[f"error, {kind}, %"] = mean_and_spread(100 * np.array(found))
                row[f"formula, {kind}, %"] = 100 * _expected_error(name, k, data)
        row["ms"] = 1e3 * float(np.median(times[name]))
        row["times faster"] = f"{middle:.3g} ({low:.3g} to {high:.3g})"
        yield row


def _differences(X):
    first, second = np.triu_indices(len(X), 1)
    return X[first] - X[second]


def _distance_error(name, k, X, seed):
    Z = PROJECTIONS[name][0](k, random_state=seed).fit(X).transform(X)
    ratios = np.square(_differences(Z)).sum(axis=1) / np.square(_differences(X)).sum(axis=1)
    return math.sqrt(np.mean((ratios - 1) ** 2))


def _expected_error(name, k, X):
    make, variance = PROJECTIONS[name]
    if variance is None:
        q = make(k).fit(X).density_
        variance = lambda d, k: fast_jl_variance(d, d, k, q)  # noqa: E731
    deltas = _differences(X)
    deltas /= np.linalg.norm(deltas, axis=1, keepdims=True)
    return math.sqrt(np.mean([variance(delta, k) for delta in deltas]))
