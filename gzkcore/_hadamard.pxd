"""The Walsh-Hadamard transform of `_hadamard.h`, for float and double under one name."""

from cython cimport floating

cdef extern from "_hadamard.h" nogil:
    void gzk_hadamard_f32(const float* x, float* y, Py_ssize_t n)
    void gzk_hadamard_f64(const double* x, double* y, Py_ssize_t n)


cdef inline void hadamard(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y = H x for n a power of two; y is x or does not overlap it."""
    if floating is float:
        gzk_hadamard_f32(x, y, n)
    else:
        gzk_hadamard_f64(x, y, n)
