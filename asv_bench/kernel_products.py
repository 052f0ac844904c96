"""The table of kernel products: entries of K per second, share of the limit, NumPy beside it."""

import time

from benchmarks.common import gaussian, interleave, ratio
from benchmarks.products import KERNELS, by_numpy, operations
from limits import limits_or_none
from printing import report, show

from gzkcore import KernelOperator
from gzkcore._util.threads import limit_blas, limit_threads


def kernel_products(options):
    """Print the rate of symmetric products on one thread, kernel by kernel."""
    n = 2000 if options.quick else 20_000
    rows = []
    with limit_threads(1), limit_blas(1):
        for name in KERNELS:
            for dim in (3, 9, 30):
                report(f"{name}, {dim} columns")
                rows.append(rates(name, dim, n, options))
    notes = (
        f"10^9 entries of K(X, X) a second, {n:,} normal rows, one thread, best round; share: "
        "of the multiply-adds that this processor does, those counted for the Gaussian."
    )
    show("Products of kernel matrices with vectors", rows, notes, options)


def rates(name, dim, n, options):
    """Return one row of the table."""
    row = {"kernel": name, "columns": dim}
    for dtype, vectors in (("float32", 1), ("float32", 16), ("float64", 1)):
        X, V = gaussian(n, dim, dtype), gaussian(n, vectors, seed=1)
        operator = KernelOperator(KERNELS[name](dim), X, tol=0)
        calls = {"ours": lambda operator=operator, V=V: operator @ V}
        first = name == "gaussian" and dtype == "float32"
        limits = limits_or_none() if first else None
        if limits:
            calls["limit"] = lambda limits=limits: limits.multiply_add("float32", 1)
        if first and vectors == 1:
            few, v = X[:4000], V[:4000].astype(dtype)
            calls["numpy"] = lambda few=few, v=v: by_numpy(few, v, 0.5 / dim)
        times = interleave(calls, min(options.rounds, 3), clock=time.thread_time)
        kind = f"{dtype}, {vectors} vectors" if vectors > 1 else dtype
        row[kind] = n * n / 1e9 / times["ours"].min()
        if limits:
            amount = operations(n, dim, vectors) / limits.multiply_add("float32", 1)
            row[f"share, {vectors}"] = f"{100 * amount * ratio(times, 'limit', 'ours')[0]:.0f} %"
        if "numpy" in calls:
            scale = (n / 4000) ** 2
            row["times NumPy"] = f"{scale * ratio(times, 'numpy', 'ours')[0]:.0f}"
    return row
