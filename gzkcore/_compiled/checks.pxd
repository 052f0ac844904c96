"""Checks of the arrays that kernels index by: plain Python may have changed any.

Each reads the indices once a call.
"""

from libc.stdint cimport int32_t, int64_t

# Fewer indices are checked without releasing Python's lock, which takes as long as so many.
cdef enum:
    FEW = 256

# The types of indices.
ctypedef fused integer:
    int
    int32_t
    int64_t
    Py_ssize_t


cdef inline int agree(bint they_do, str what) except -1:
    """Raise ValueError unless the shapes of arrays agree."""
    if not they_do:
        raise ValueError(f"the shapes of {what} do not agree; fit the model again")
    return 0


cdef inline Py_ssize_t _outside(const integer* indices, Py_ssize_t count, Py_ssize_t stride,
                                Py_ssize_t end) noexcept nogil:
    """The first of some indices that is not below `end`, or -1."""
    cdef Py_ssize_t i
    for i in range(count):
        if indices[i * stride] < 0 or indices[i * stride] >= end:
            return i
    return -1


cdef inline int inside(const integer* indices, Py_ssize_t count, Py_ssize_t stride, Py_ssize_t end,
                       str what) except -1:
    """Raise ValueError unless indices, each `stride` behind the one before, are below `end`."""
    cdef Py_ssize_t out
    if count < FEW:
        out = _outside(indices, count, stride, end)
    else:
        with nogil:
            out = _outside(indices, count, stride, end)
    if out >= 0:
        raise ValueError(
            f"{what} has {indices[out * stride]}, not from 0 to {end - 1}; fit the model again")
    return 0


cdef inline int rising(const Py_ssize_t[::1] starts, Py_ssize_t end) except -1:
    """Raise ValueError unless starts rise from 0 or more to `end` or less."""
    cdef Py_ssize_t i
    for i in range(starts.shape[0]):
        agree((0 if i == 0 else starts[i - 1]) <= starts[i] <= end, "starts and rows")
    return 0
