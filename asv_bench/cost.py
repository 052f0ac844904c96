"""Seconds and memory of a call, beyond what the process held before it."""

import threading
import time
from pathlib import Path

from gzkcore._util.memory import PeakMemory


def cost_of(call):
    """Return what a call returns, its seconds, and the megabytes by which it raised the peak."""
    peak = PeakMemory()
    start = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - start
    return result, seconds, peak.megabytes


def anonymous_cost_of(call):
    """Return a call's seconds, the anonymous megabytes before, and the most that it added.

    Pages of memory maps are not anonymous. The memory is sampled every 2 ms.
    """
    before, peak, stop = anonymous_megabytes(), [0.0], threading.Event()

    def sample():
        while not stop.wait(0.002):
            peak[0] = max(peak[0], anonymous_megabytes())

    sampler = threading.Thread(target=sample)
    sampler.start()
    start = time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    stop.set()
    sampler.join()
    return seconds, before, max(peak[0], anonymous_megabytes()) - before


def anonymous_megabytes():
    """Return RssAnon of this process, which only Linux tells."""
    with Path("/proc/self/status").open() as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("no RssAnon in /proc/self/status")
