"""The operations of `block.h`, for float and double under one name."""

from cython cimport floating
from libc.stdint cimport int32_t

cdef extern from "block.h" nogil:
    void gzk_scatter_f32(const float* const* rows, const int32_t* bucket, const float* w,
                         Py_ssize_t d, Py_ssize_t passes, float* acc)
    void gzk_scatter_f64(const double* const* rows, const int32_t* bucket, const double* w,
                         Py_ssize_t d, Py_ssize_t passes, double* acc)
    void gzk_scatter_columns_f32(const float* columns, const int32_t* bucket, const float* w,
                                 Py_ssize_t d, float* acc)
    void gzk_scatter_columns_f64(const double* columns, const int32_t* bucket, const double* w,
                                 Py_ssize_t d, double* acc)
    void gzk_scatter_row_f32(const float* x, const int32_t* bucket, const float* w, Py_ssize_t d,
                             float* out)
    void gzk_scatter_row_f64(const double* x, const int32_t* bucket, const double* w, Py_ssize_t d,
                             double* out)
    void gzk_unpack_f32(const float* acc, Py_ssize_t n, int count, float* out, Py_ssize_t ldo)
    void gzk_unpack_f64(const double* acc, Py_ssize_t n, int count, double* out, Py_ssize_t ldo)
    int gzk_not_finite_f32(const float* x, Py_ssize_t n)
    int gzk_not_finite_f64(const double* x, Py_ssize_t n)


cdef inline void scatter(const floating** rows, const int32_t* bucket, const floating* w,
                         Py_ssize_t d, Py_ssize_t passes, floating* acc) noexcept nogil:
    if floating is float:
        gzk_scatter_f32(rows, bucket, w, d, passes, acc)
    else:
        gzk_scatter_f64(rows, bucket, w, d, passes, acc)


cdef inline void scatter_columns(const floating* columns, const int32_t* bucket, const floating* w,
                                 Py_ssize_t d, floating* acc) noexcept nogil:
    if floating is float:
        gzk_scatter_columns_f32(columns, bucket, w, d, acc)
    else:
        gzk_scatter_columns_f64(columns, bucket, w, d, acc)


cdef inline void scatter_row(const floating* x, const int32_t* bucket, const floating* w,
                             Py_ssize_t d, floating* out) noexcept nogil:
    if floating is float:
        gzk_scatter_row_f32(x, bucket, w, d, out)
    else:
        gzk_scatter_row_f64(x, bucket, w, d, out)


cdef inline int not_finite(const floating* x, Py_ssize_t n) noexcept nogil:
    """Return whether a number is infinite or NaN."""
    if floating is float:
        return gzk_not_finite_f32(x, n)
    else:
        return gzk_not_finite_f64(x, n)


cdef inline void unpack(const floating* acc, Py_ssize_t n, int count, floating* out,
                        Py_ssize_t ldo) noexcept nogil:
    if floating is float:
        gzk_unpack_f32(acc, n, count, out, ldo)
    else:
        gzk_unpack_f64(acc, n, count, out, ldo)
