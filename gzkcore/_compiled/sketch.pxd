"""The operations of `sketch.h`, for float and double under one name, and CountSketch itself."""

from cython cimport floating
from libc.stdint cimport int8_t, int32_t

cdef extern from "sketch.h" nogil:
    void gzk_count_f32(const float* x, const int32_t* hashes, const int8_t* signs, Py_ssize_t d,
                       Py_ssize_t factors, Py_ssize_t m, float* acc)
    void gzk_count_f64(const double* x, const int32_t* hashes, const int8_t* signs, Py_ssize_t d,
                       Py_ssize_t factors, Py_ssize_t m, double* acc)
    void gzk_fourier_f32(float* z, Py_ssize_t n, Py_ssize_t b, const float* roots)
    void gzk_fourier_f64(double* z, Py_ssize_t n, Py_ssize_t b, const double* roots)
    void gzk_fourier_back_f32(float* z, Py_ssize_t n, Py_ssize_t b, const float* roots)
    void gzk_fourier_back_f64(double* z, Py_ssize_t n, Py_ssize_t b, const double* roots)
    void gzk_multiply_f32(const float* z, Py_ssize_t m, const float* roots, float* product)
    void gzk_multiply_f64(const double* z, Py_ssize_t m, const double* roots, double* product)
    void gzk_ones_f32(float* product, Py_ssize_t m)
    void gzk_ones_f64(double* product, Py_ssize_t m)
    void gzk_join_f32(float* product, Py_ssize_t m, const float* roots)
    void gzk_join_f64(double* product, Py_ssize_t m, const double* roots)
    void gzk_store_rows_f32(const float* x, Py_ssize_t m, float scale, float* out, Py_ssize_t ldo,
                            int count, int stream)
    void gzk_store_rows_f64(const double* x, Py_ssize_t m, double scale, double* out,
                            Py_ssize_t ldo, int count, int stream)


cdef inline void count_lanes(const floating* x, const int32_t* hashes, const int8_t* signs,
                             Py_ssize_t d, Py_ssize_t factors, Py_ssize_t m,
                             floating* acc) noexcept nogil:
    """Add the convolution of CountSketches of length m, one for each of the factors."""
    if floating is float:
        gzk_count_f32(x, hashes, signs, d, factors, m, acc)
    else:
        gzk_count_f64(x, hashes, signs, d, factors, m, acc)


cdef inline void unit_spectrum(floating* product, Py_ssize_t m) noexcept nogil:
    if floating is float:
        gzk_ones_f32(product, m)
    else:
        gzk_ones_f64(product, m)


cdef inline void multiply_spectrum(floating* z, Py_ssize_t m, const floating* roots,
                                   floating* product) noexcept nogil:
    """product *= the Fourier transform of the m numbers in z, which is lost."""
    if floating is float:
        gzk_fourier_f32(z, m // 2, 0, roots)
        gzk_multiply_f32(z, m, roots, product)
    else:
        gzk_fourier_f64(z, m // 2, 0, roots)
        gzk_multiply_f64(z, m, roots, product)


cdef inline void from_spectrum(floating* product, Py_ssize_t m,
                               const floating* roots) noexcept nogil:
    """In place m times the numbers whose transform this is."""
    if floating is float:
        gzk_join_f32(product, m, roots)
        gzk_fourier_back_f32(product, m // 2, 0, roots)
    else:
        gzk_join_f64(product, m, roots)
        gzk_fourier_back_f64(product, m // 2, 0, roots)


cdef inline void store_rows(const floating* x, Py_ssize_t m, floating scale, floating* out,
                            Py_ssize_t ldo, int count, bint stream) noexcept nogil:
    if floating is float:
        gzk_store_rows_f32(x, m, scale, out, ldo, count, stream)
    else:
        gzk_store_rows_f64(x, m, scale, out, ldo, count, stream)
