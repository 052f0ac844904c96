"""The operations of `neighbours.h`, for float and double under one name."""

from cython cimport floating

from .products cimport gzk_factor

cdef extern from "neighbours.h" nogil:
    int GZK_TALL, GZK_WIDE
    void gzk_kernel_of_few_f32(const gzk_factor*, Py_ssize_t n_factors, const float* u,
                               Py_ssize_t d, Py_ssize_t count, Py_ssize_t width, float* S)
    void gzk_kernel_of_few_f64(const gzk_factor*, Py_ssize_t n_factors, const double* u,
                               Py_ssize_t d, Py_ssize_t count, Py_ssize_t width, double* S)
    void gzk_subtract_features_f32(const float** z, Py_ssize_t p, Py_ssize_t count,
                                   Py_ssize_t width, float* S)
    void gzk_subtract_features_f64(const double** z, Py_ssize_t p, Py_ssize_t count,
                                   Py_ssize_t width, double* S)
    void gzk_last_of_inverse_factor_f32(float* S, Py_ssize_t count, Py_ssize_t width,
                                        const float* noise, float* g)
    void gzk_last_of_inverse_factor_f64(double* S, Py_ssize_t count, Py_ssize_t width,
                                        const double* noise, double* g)


cdef inline void kernel_of_few(const gzk_factor* factors, Py_ssize_t n_factors, const floating* u,
                               Py_ssize_t d, Py_ssize_t count, Py_ssize_t width,
                               floating* S) noexcept nogil:
    """S[j, l] = w_j w_l k(x_j, x_l) for l >= j."""
    if floating is float:
        gzk_kernel_of_few_f32(factors, n_factors, u, d, count, width, S)
    else:
        gzk_kernel_of_few_f64(factors, n_factors, u, d, count, width, S)


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
