"""The Walsh-Hadamard transform of `hadamard.h`, for float and double under one name."""

from cython cimport floating
from libc.stdint cimport int32_t

cdef extern from "hadamard.h" nogil:
    void gzk_hadamard_f32(const float* x, float* y, Py_ssize_t n)
    void gzk_hadamard_f64(const double* x, double* y, Py_ssize_t n)
    void gzk_permute_f32(const float* x, const int32_t* order, const float* factor, float* y,
                         Py_ssize_t n)
    void gzk_permute_f64(const double* x, const int32_t* order, const double* factor, double* y,
                         Py_ssize_t n)


cdef inline void hadamard(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y = H x for n a power of two; y is x or does not overlap it."""
    if floating is float:
        gzk_hadamard_f32(x, y, n)
    else:
        gzk_hadamard_f64(x, y, n)


cdef inline void permute(const floating* x, const int32_t* order, const floating* factor,
                         floating* y, Py_ssize_t n) noexcept nogil:
    """y[j] = factor[j] x[order[j]] for n a multiple of 16."""
    if floating is float:
        gzk_permute_f32(x, order, factor, y, n)
    else:
        gzk_permute_f64(x, order, factor, y, n)
