"""How much memory this process holds and has held."""

import contextlib
import ctypes
import sys
from pathlib import Path


def resident_memory() -> tuple[int, int]:
    """Return the resident memory in bytes: now, and at its peak.

    VmRSS and VmHWM of Linux. Elsewhere the peak that the system counts stands for both.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return (peak, peak) if sys.platform == "darwin" else (peak * 1024, peak * 1024)
    status = dict(line.split(":", 1) for line in lines)
    now, peak = (1024 * int(status[key].split()[0]) for key in ("VmRSS", "VmHWM"))
    return now, peak


def forget_peak() -> None:
    """Give back what was freed, and let the peak begin anew at what is held now, where possible."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
