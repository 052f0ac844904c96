"""Ctrl-C within a second: long kernels take their rows part by part, and look for it in between."""

from cpython.exc cimport PyErr_CheckSignals
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef enum:
    MOST_ROWS = 1 << 30


cdef inline double seconds() noexcept nogil:
    """Return the seconds of a clock that is never set back."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + 1e-9 * now.tv_nsec


cdef inline Py_ssize_t look(Py_ssize_t step, double* begun) except -1:
    """Raise at Ctrl-C; return how many rows to take next, about .1 s of work.

    `begun` has the time at which the last rows began, and is set to now.
    """
    cdef double before = begun[0], took
    PyErr_CheckSignals()
    begun[0] = seconds()
    took = begun[0] - before
    if took < 0.05 and step < MOST_ROWS:
        return 2 * step
    return max(<Py_ssize_t> 1, step // 2) if took > 0.2 else step
