"""Seconds and megabytes of a call, where the memory is that above the process's memory before."""

import time

from gzkcore._util.memory import PeakMemory


def cost_of(call):
    """Return what a call returns, its seconds, and its peak of memory in MB above that before."""
    peak = PeakMemory()
    start = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - start
    return result, seconds, peak.megabytes
