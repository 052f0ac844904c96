"""Typical calls of users: features and a ridge on them, beside limits and other libraries.

Each table is measured for the two best instruction sets of the processor, such as AVX2 (v3) and
AVX-512 (v4), in processes of their own. What a number is compared with is measured in the same one.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from unittest.mock import patch

import numpy as np
from benchmarks.common import DTYPES, empty, gaussian, interleave, ratio, sphere
from cost import cost_of
from limits import limits_or_none, share
from printing import report, show
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge as Dense
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline

from gzkcore import (
    Gaussian,
    GegenbauerFeatures,
    KernelRidge,
    RandomFeatureRidge,
    RandomFourierFeatures,
    kernel_matrix,
)
from gzkcore._compiled.dispatch import ISA, usable_levels
from gzkcore._util.threads import n_threads

WIDTH = 1024
ALPHA = 1e-3
CALLS = 50


def calls(options):
    """Share of the write limit of transform(X, out=Z); calls beside those of scikit-learn."""
    for title, part in TABLES.items():
        rows, notes = [], ""
        for level in usable_levels()[-2:] or [""]:
            # Which build is used is decided by the first import of a process.
            with (
                patch.dict(os.environ, {"GZKCORE_ISA": level}),
                ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
            ):
                of_level, notes = pool.submit(part, options).result()
            rows += [{"instruction set": level or ISA} | row for row in of_level]
        if rows:
            show(title, rows, notes, options)


# Basis and dimension of features on a sphere of radius 2.
ON_THE_SPHERE = (("random", 3), ("random", 9), ("harmonic", 3), ("auto", 9))


def _warm_buffers(options):
    """Measure transform(X, out=Z), on a boundary of 64 bytes and 16 past one."""
    limits = limits_or_none()
    if limits is None:
        return [], ""
    n = 2048 if options.quick else 64_800
    rows = []
    for (basis, dim), dtype in ((case, dtype) for case in ON_THE_SPHERE for dtype in DTYPES):
        X = 2 * sphere(n, dim, dtype)
        features = GegenbauerFeatures(Gaussian(0.5), WIDTH, basis=basis, random_state=0).fit(X)
        on, off = (empty((n, WIDTH), dtype, offset=offset) for offset in (0, 16))
        timed = {
            "write": lambda on=on: limits.write(on, n_threads()),
            "fma": lambda dtype=dtype: limits.multiply_add(dtype, n_threads()),
            "on": lambda f=features, X=X, on=on: f.transform(X, out=on),
            "off": lambda f=features, X=X, off=off: f.transform(X, out=off),
        }
        name = f"{basis}, d={dim}"
        times = _in_turn(timed, name, options)
        row = {"features": name, "type": dtype, "degree": features.degree_}
        row |= {"ms": 1e3 * float(np.median(times["on"]))}
        of_write = share(times, "write", timed["write"](), "on", on.nbytes)
        of_fma = share(times, "fma", timed["fma"](), "on", n * _flops(features, dim))
        row |= {"% of write limit": of_write, "% of FMA peak": of_fma}
        row |= {"the limit that binds": "writing" if of_write > of_fma else "FMA"}
        rows.append(row | {"off boundary over on": ratio(times, "on", "off")[0]})
    notes = (
        f"transform(X, out=Z) into a warm buffer, {n:,} rows on a sphere of radius 2, {WIDTH:,} "
        f"columns, {n_threads()} threads. The limits are writing past the cache into the same "
        "buffer, and fused multiply-adds in registers, in turn; the one with the larger share "
        "binds. Off boundary: 16 bytes past a boundary of 64, as NumPy's own arrays are; its speed "
        "over that on one."
    )
    return rows, notes


def _flops(features, dim):
    """Count the operations of a row: Horner's rule in halves, or 5 for an exact column."""
    degree, random = features.degree_, float(features.n_directions_.sum())
    return 2 * (dim + degree + 3) * random + 5 * features.n_exact_


def _beside_sampler(options):
    """Measure random Fourier features, transform(X) against RBFSampler's."""
    rows = []
    sizes = (2048,) if options.quick else (16_384, 262_144)
    for dim, n in ((dim, n) for dim in (9, 64, 784) for n in sizes):
        X = gaussian(n, dim, "float32")
        ours = RandomFourierFeatures(Gaussian(0.5 / dim), WIDTH, random_state=0).fit(X)
        theirs = RBFSampler(gamma=0.5 / dim, n_components=WIDTH, random_state=0).fit(X)
        timed = {
            "gzkcore": lambda ours=ours, X=X: ours.transform(X),
            "RBFSampler": lambda theirs=theirs, X=X: theirs.transform(X),
        }
        name = f"d={dim}, n={n:,}"
        times = _in_turn(timed, name, options)
        row = {"columns": dim, "rows": f"{n:,}"}
        row |= {f"{call}, ms": 1e3 * float(np.median(times[call])) for call in timed}
        rows.append(row | {"times faster": ratio(times, "RBFSampler", "gzkcore")[0]})
    notes = (
        f"{WIDTH:,} float32 features, transform(X) and {n_threads()} threads on both sides; ours "
        "uses the memory of results that are gone again."
    )
    return rows, notes


def _ridges(options):
    """Measure the fit of a ridge on random Fourier features, by one pass and by scikit-learn."""
    n, dim = 2048 if options.quick else 65_536, 9
    gamma = 0.5 / dim
    rows = []
    for dtype in DTYPES:
        X = gaussian(n, dim, dtype)
        y = np.sin(X[:, 0]) + X[:, 1]
        features = RandomFourierFeatures(Gaussian(gamma), WIDTH, random_state=0)
        sampler = RBFSampler(gamma=gamma, n_components=WIDTH, random_state=0)
        models = {
            "gzkcore": RandomFeatureRidge(features, ALPHA),
            "scikit-learn": make_pipeline(sampler, Ridge(ALPHA)),
        }
        timed = {name: lambda m=m, X=X, y=y: m.fit(X, y) for name, m in models.items()}
        times = _in_turn(timed, f"ridge, {dtype}", options)
        row = {"type": dtype}
        row |= {f"{name}, s": float(np.median(seconds)) for name, seconds in times.items()}
        row |= {f"{name}, MB": cost_of(fit)[2] for name, fit in timed.items()}
        rows.append(row | {"times faster": ratio(times, "scikit-learn", "gzkcore")[0]})
    notes = (
        "RandomFeatureRidge(RandomFourierFeatures) and make_pipeline(RBFSampler, Ridge), "
        f"fit(X, y) with one alpha, {n:,} rows of {dim} columns, {WIDTH:,} features, "
        f"{n_threads()} threads. MB: the peak of one fit above what the process held before."
    )
    return rows, notes


def _kernel_matrices(options):
    """Measure the matrix of a Gaussian kernel beside rbf_kernel."""
    n = 500 if options.quick else 4000
    rows = []
    for dim, dtype in ((dim, dtype) for dim in (3, 64) for dtype in DTYPES):
        X, gamma = gaussian(n, dim, dtype), 0.5 / dim
        timed = {
            "kernel_matrix": lambda X=X, gamma=gamma: kernel_matrix(Gaussian(gamma), X),
            "rbf_kernel": lambda X=X, gamma=gamma: rbf_kernel(X, gamma=gamma),
        }
        times = _in_turn(timed, f"matrix, d={dim}, {dtype}", options)
        row = {"columns": dim, "type": dtype}
        row |= {f"{call}, ms": 1e3 * float(np.median(times[call])) for call in timed}
        rows.append(row | {"times faster": ratio(times, "rbf_kernel", "kernel_matrix")[0]})
    notes = f"{n:,} rows, {n_threads()} threads on both sides."
    return rows, notes


def _one_row(options):
    """Measure what one row takes of models that were fitted to 2,000 rows of 9 columns."""
    X = gaussian(2000, 9, "float64")
    y, row = np.sin(X[:, 0]) + X[:, 1], X[:1].copy()
    features = RandomFourierFeatures(Gaussian(0.1), WIDTH, random_state=0)
    models = {
        "RandomFourierFeatures": features,
        "RBFSampler": RBFSampler(gamma=0.1, n_components=WIDTH, random_state=0),
        "GegenbauerFeatures": GegenbauerFeatures(Gaussian(0.1), WIDTH, random_state=0),
        "RandomFeatureRidge": RandomFeatureRidge(features),
        "KernelRidge": KernelRidge(Gaussian(0.1), alpha=0.1),
        "sklearn KernelRidge": Dense(kernel="rbf", gamma=0.1, alpha=0.1),
    }
    timed = {}
    for name, model in models.items():
        model.fit(X, y)
        call = getattr(model, "transform", None) or model.predict
        timed[name] = lambda call=call: [call(row) for _ in range(CALLS)]
    times = _in_turn(timed, "one row", options)
    rows = [
        {"model": name, "us": 1e6 * float(np.median(seconds)) / CALLS}
        for name, seconds in times.items()
    ]
    notes = f"transform or predict of one row, float64, {WIDTH:,} features; mean of {CALLS} calls."
    return rows, notes


def _in_turn(timed, name, options):
    return interleave(timed, options.rounds, report=lambda text: report(f"{name}, {text}"))


TABLES = {
    "transform(X, out=Z) beside the bandwidth": _warm_buffers,
    "RandomFourierFeatures beside RBFSampler": _beside_sampler,
    "A fitted ridge on random Fourier features": _ridges,
    "The matrix of a Gaussian kernel beside scikit-learn's": _kernel_matrices,
    "One row": _one_row,
}
