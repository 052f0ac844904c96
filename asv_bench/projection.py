"""The tables of block projections: shares of the memory's speed, ratios to matrix products."""

import functools
import os
import sys

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
from families import images
from printing import load_arrays, mean_and_spread, report, show
from sklearn.preprocessing import MinMaxScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from gzkcore import (
    BlockFourierFeatures,
    BlockProjection,
    FastfoodFeatures,
    Gaussian,
    RandomFourierFeatures,
    block_report,
)
from gzkcore._isa import ISA
from gzkcore._threads import limit_threads
from gzkcore.block import _project
from gzkcore.metrics import mean_distance_error, mean_kernel_error

# (D, k): the paper's Table 2, and multiples of a vector beside its k.
SIZES = tuple(
    (dim, k)
    for dim in (5_000, 17_500, 100_000, 260_000, 440_000)
    for k in (1000, 1024, 5000, 5120)
    if k <= dim
)
# (D, k): the corners of its Table 3.
FEATURE_SIZES = ((17_500, 1000), (260_000, 1000), (260_000, 200_000))
# Columns of a dense matrix that are really multiplied; the whole takes proportionally longer.
SLICE = 500


def projection(options):
    """Measure block projections and features against the read bandwidth, sgemm and scikit-learn."""
    parts = {
        "memory": from_memory,
        "matrices": against_matrices,
        "features": against_features,
        "sparse": against_scipy,
        "errors": on_real_rows,
    }
    unknown = set(options.parts) - set(parts)
    if unknown:
        sys.exit(
            f"projection: no part {', '.join(sorted(unknown))}; choose from {', '.join(parts)}"
        )
    for name, part in parts.items():
        if name in (options.parts or parts):
            part(options)


def on_real_rows(options):
    """Errors of distances and of the kernel (Eq 8 and 9) beside those of dense matrices."""
    rows = []
    for name, given in real_rows().items():
        X = MinMaxScaler().fit_transform(given.astype(np.float64))
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
            told = block_report(X, "gaussian", block_size=size)
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
                    "bias told": f"{told.bias_interval[0]:.2g} to {told.bias_interval[1]:.2g}",
                }
            )
    notes = (
        'Columns scaled to [0, 1], gamma "scale", blocks of at least 32 columns; mean and standard '
        "deviation over seeds. Bias: mean of z(x).z(y) - k(x, y) over pairs; told: by block_report."
    )
    show("Errors of blocks beside dense matrices", rows, notes, options)


# Of distances and of the kernel, by blocks and by dense matrices, and what blocks add to it.
ERRORS = ("Eq 8, blocks", "Eq 8, dense", "Eq 9, blocks", "Eq 9, Fourier", "bias")


def real_rows():
    """Return the data: images made here, and genes if they are there."""
    found = {"smooth images": images(200, 4096, data_generator(0))}
    if os.environ.get("GZKCORE_DATA"):
        found = {"genes": load_arrays("gene_chowdary")["X"]} | found
    return found


def from_memory(options):
    """Share of the bandwidth of reading the same rows, for every arrangement."""
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


def _in_turn(calls, what, options, **visit):
    return interleave(calls, options.rounds, report=lambda text: report(f"{what}: {text}"), **visit)


def against_matrices(options):
    """Ratio to a dense product and to scikit-learn's projections, transform as users call it."""
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
        "block": lambda: block.transform(X, out=out),
        "block, kernel alone": lambda: _project(X, block.buckets_, block.weights_, out),
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
    """Ratio of block features to random features of whole rows (random kitchen sinks)."""
    sizes = FEATURE_SIZES[:1] if options.quick else FEATURE_SIZES
    rows = [row for dim, width in sizes for row in _feature_rows(dim, width, options)]
    notes = (
        f"256 rows, float32, all threads. Whole rows: one product of all rows with {SLICE} "
        "frequencies and cos, scaled up. As published: one pass where there are enough "
        "coordinates, of blocks as small as that takes. Sums alone: of block, without cosines "
        "and sines."
    )
    show("Block features", rows, notes, options)


def _feature_rows(dim, width, options):
    X, kernel = gaussian(256, dim, "float32"), Gaussian(0.5 / dim)
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
    calls["sums alone"] = lambda: _project(X, maps["block"].buckets_, maps["block"].weights_, sums)
    calls["whole rows"] = lambda: np.cos(np.matmul(X, W, out=product), out=product)
    times = _in_turn(calls, f"D={dim} {width} features", options)
    times["whole rows"] *= width / columns
    for name in calls:
        yield {
            "D": dim,
            "features": width,
            "what": name,
            "passes": len(maps[name].n_blocks_) if hasattr(maps.get(name), "n_blocks_") else "",
            "ms": 1e3 * float(np.median(times[name])),
            "times faster than whole rows": ratio(times, "whole rows", name)[0],
        }


def against_scipy(options):
    """Ratio to SciPy's product with the same sparse matrix, CSR rows, D = 100,000."""
    densities = (0.01,) if options.quick else (0.001, 0.01, 0.1)
    rows = [row for density in densities for row in _sparse_rows(density, options)]
    notes = "2,000 rows, float32, k = 1,000; SciPy's product is sparse and runs on one thread."
    show("Sparse rows", rows, notes, options)


def _sparse_rows(density, options):
    case = SparseRows()
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
