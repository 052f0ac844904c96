"""The operations of `projection.h`, for float and double under one name."""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t

cdef extern from "projection.h" nogil:
    void gzk_load_signed_f32(const float* x, Py_ssize_t ldx, int count, const float* sign,
                             Py_ssize_t columns, float* y)
    void gzk_load_signed_f64(const double* x, Py_ssize_t ldx, int count, const double* sign,
                             Py_ssize_t columns, double* y)
    void gzk_hadamard_lanes_f32(float* y, Py_ssize_t n)
    void gzk_hadamard_lanes_f64(double* y, Py_ssize_t n)
    void gzk_add_signed_f32(const float* y, const int32_t* rows, Py_ssize_t count, int bits,
                            Py_ssize_t piece, float* acc)
    void gzk_add_signed_f64(const double* y, const int32_t* rows, Py_ssize_t count, int bits,
                            Py_ssize_t piece, double* acc)
    void gzk_add_signed_row_f32(const float* y, const int32_t* rows, Py_ssize_t count, int bits,
                                Py_ssize_t piece, float* acc)
    void gzk_add_signed_row_f64(const double* y, const int32_t* rows, Py_ssize_t count, int bits,
                                Py_ssize_t piece, double* acc)
    void gzk_sparse_product_f32(const float* data, const int32_t* columns, const int64_t* indptr,
                                Py_ssize_t count, const float* y, float* acc)
    void gzk_sparse_product_f64(const double* data, const int32_t* columns, const int64_t* indptr,
                                Py_ssize_t count, const double* y, double* acc)


cdef inline void load_signed(const floating* x, Py_ssize_t ldx, int count, const floating* sign,
                             Py_ssize_t columns, floating* y) noexcept nogil:
    if floating is float:
        gzk_load_signed_f32(x, ldx, count, sign, columns, y)
    else:
        gzk_load_signed_f64(x, ldx, count, sign, columns, y)


cdef inline void hadamard_lanes(floating* y, Py_ssize_t n) noexcept nogil:
    if floating is float:
        gzk_hadamard_lanes_f32(y, n)
    else:
        gzk_hadamard_lanes_f64(y, n)


cdef inline void add_signed(const floating* y, const int32_t* rows, Py_ssize_t count, int bits,
                            Py_ssize_t piece, floating* acc) noexcept nogil:
    if floating is float:
        gzk_add_signed_f32(y, rows, count, bits, piece, acc)
    else:
        gzk_add_signed_f64(y, rows, count, bits, piece, acc)


cdef inline void add_signed_row(const floating* y, const int32_t* rows, Py_ssize_t count, int bits,
                                Py_ssize_t piece, floating* acc) noexcept nogil:
    if floating is float:
        gzk_add_signed_row_f32(y, rows, count, bits, piece, acc)
    else:
        gzk_add_signed_row_f64(y, rows, count, bits, piece, acc)


cdef inline void sparse_product(const floating* data, const int32_t* columns, const int64_t* indptr,
                                Py_ssize_t count, const floating* y, floating* acc) noexcept nogil:
    if floating is float:
        gzk_sparse_product_f32(data, columns, indptr, count, y, acc)
    else:
        gzk_sparse_product_f64(data, columns, indptr, count, y, acc)
