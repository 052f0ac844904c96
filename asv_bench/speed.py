"""The tables of `tables.py speed`: shares of the limits of the machine, and other libraries."""

import time

import numpy as np
from benchmarks.common import (
    DTYPES,
    THREADS,
    empty,
    interleave,
    must_agree,
    ratio,
    sphere,
)
from benchmarks.competitors import (
    LIBRARIES,
    FeatureSum,
    NumpyHarmonics,
    ScipyHarmonics,
    best_batched,
    check,
)
from benchmarks.gegenbauer import AGAINST, SHAPES, WAYS, one_row_output
from benchmarks.harmonics import Columns
from calls import calls
from limits import limits_or_none, share
from new_arrays import new_arrays
from printing import report, run_parts, show
from scipy.linalg.blas import dsyrk
from threadpoolctl import threadpool_limits

from gzkcore import Gaussian, GegenbauerFeatures
from gzkcore._compiled.dispatch import ISA
from gzkcore._util.threads import limit_threads


def shapes(options):
    """Return the shapes to measure; --quick has small ones."""
    if options.quick:
        return {name: shape | {"n": 2048} for name, shape in SHAPES.items()}
    return SHAPES


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
    """Return functions of NumPy and SciPy for the same columns, after a check that they agree."""
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


SPEEDS = {
    "kernel": kernel,
    "calls": calls,
    "sums": sums,
    "harmonics": harmonics,
    "fit": fit,
    "new": new_arrays,
}


def speed(options):
    """Print shares of the machine's limits, and ratios to the best of NumPy, torch and BLAS."""
    run_parts("speed", options, SPEEDS)
