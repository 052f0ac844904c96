"""The operations of `neighbours.h`, for float and double under one name."""

from cython cimport floating

from .products cimport GZK_TILE  # noqa: F401  products.h comes first

cdef extern from "neighbours.h" nogil:
    int GZK_TALL, GZK_WIDE
    void gzk_kernel_of_few_f32(const float* u, Py_ssize_t d, Py_ssize_t count, Py_ssize_t width,
                               int metric, int profile, const float* c, Py_ssize_t degree,
                               double offset, float* S)
    void gzk_kernel_of_few_f64(const double* u, Py_ssize_t d, Py_ssize_t count, Py_ssize_t width,
                               int metric, int profile, const double* c, Py_ssize_t degree,
                               double offset, double* S)
    void gzk_subtract_features_f32(const float** z, Py_ssize_t p, Py_ssize_t count, Py_ssize_t width,
                                   float* S)
    void gzk_subtract_features_f64(const double** z, Py_ssize_t p, Py_ssize_t count,
                                   Py_ssize_t width, double* S)
    void gzk_last_of_inverse_factor_f32(float* S, Py_ssize_t count, Py_ssize_t width,
                                        const float* noise, float* g)
    void gzk_last_of_inverse_factor_f64(double* S, Py_ssize_t count, Py_ssize_t width,
                                        const double* noise, double* g)


cdef inline void kernel_of_few(const floating* u, Py_ssize_t d, Py_ssize_t count, Py_ssize_t width,
                               int metric, int profile, const floating* c, Py_ssize_t degree,
                               double offset, floating* S) noexcept nogil:
    """S[j, l] = k(x_j, x_l) for l >= j."""
    if floating is float:
        gzk_kernel_of_few_f32(u, d, count, width, metric, profile, c, degree, offset, S)
    else:
        gzk_kernel_of_few_f64(u, d, count, width, metric, profile, c, degree, offset, S)


cdef inline void subtract_features(const floating** z, Py_ssize_t p, Py_ssize_t count,
                                   Py_ssize_t width, floating* S) noexcept nogil:
    """S[j, l] -= z_j . z_l for l >= j."""
    if floating is float:
        gzk_subtract_features_f32(z, p, count, width, S)
    else:
        gzk_subtract_features_f64(z, p, count, width, S)


cdef inline void last_of_inverse_factor(floating* S, Py_ssize_t count, Py_ssize_t width,
                                        const floating* noise, floating* g) noexcept nogil:
    """g = U^-1 e for S = U^T U, e the last unit vector."""
    if floating is float:
        gzk_last_of_inverse_factor_f32(S, count, width, noise, g)
    else:
        gzk_last_of_inverse_factor_f64(S, count, width, noise, g)
