"""Seconds and megabytes of a call, the memory above what its process held before."""

import time

from gzkcore._util.memory import forget_peak, resident_memory


def cost_of(call):
    """Return what a call returns, its seconds, and its peak of memory in MB above that before."""
    forget_peak()
    before, _ = resident_memory()
    start = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - start
    _, peak = resident_memory()
    return result, seconds, (peak - before) / 1e6
