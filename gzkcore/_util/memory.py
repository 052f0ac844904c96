"""The memory of this process, now and at its peak, and that of the machine."""

import contextlib
import ctypes
import math
import os
import sys
from pathlib import Path
from typing import Any

from scipy import sparse

from .new_arrays import forget_waiting
from .validation import check_positive

UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "B": 1.0}


def bytes_of(name: str, value: Any) -> float:
    """Return the bytes that a number, or a text such as 500MB, 2 GB or 2e9, means; or raise."""
    if not isinstance(value, str):
        return check_positive(name, value)
    number, unit = value.strip(), 1.0
    for ending, factor in UNITS.items():
        if number.upper().endswith(ending):
            number, unit = number[: -len(ending)], factor
            break
    with contextlib.suppress(ValueError):
        if 0 < unit * float(number) < math.inf:
            return unit * float(number)
    raise ValueError(
        f"{name}={value!r} is not a number of bytes; use one such as 2e9, 500MB or 2GB"
    )


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


class PeakMemory:
    """The peak of resident memory from now on, beyond what the process holds now."""

    def __init__(self) -> None:
        forget_peak()
        self._held, _ = resident_memory()

    @property
    def bytes(self) -> int:
        """The peak up to now."""
        return max(0, resident_memory()[1] - self._held)

    @property
    def megabytes(self) -> float:
        """The same in MB."""
        return self.bytes / 1e6


def machine_memory() -> int | None:
    """Return the bytes of memory that this machine has, None where it does not tell (Windows)."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def available_memory() -> int | None:
    """Return the bytes of memory that are free (MemAvailable of Linux), elsewhere of all memory.

    None where the system tells neither (Windows).
    """
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return machine_memory()
    amounts = dict(line.split(":", 1) for line in lines if ":" in line)
    return 1024 * int(amounts["MemAvailable"].split()[0]) if "MemAvailable" in amounts else None


def check_components(n_components: int, needed: float) -> None:
    """Raise if feature maps of this width would need more bytes than this machine has."""
    memory = machine_memory()
    if memory is not None and needed > memory:
        raise MemoryError(
            f"n_components={n_components} takes about {needed:,.0f} bytes, for the fitted features "
            f"and the features of one row, and this machine has {memory:,} bytes of memory; use "
            "fewer components"
        )


# A kernel product of sparse rows holds so many dense copies of them, in double.
DENSE_COPIES = 3


def check_fits_dense(X: Any) -> None:
    """Raise if sparse rows, dense and in double, are more than this machine has."""
    needed = 8 * DENSE_COPIES * X.shape[0] * X.shape[1]
    memory = machine_memory()
    if memory is not None and sparse.issparse(X) and needed > memory:
        raise MemoryError(
            f"X is sparse, of shape {X.shape}, and kernel products need dense rows: "
            f"{needed / 2**30:,.0f} GB of {memory / 2**30:,.0f} GB of memory; use fewer columns "
            "(CountSketch, HadamardProjection), or RandomFeatureRidge, whose features accept "
            "sparse rows"
        )


def forget_peak() -> None:
    """Give back what was freed, and let the peak begin anew at what is held now, where possible."""
    forget_waiting()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
