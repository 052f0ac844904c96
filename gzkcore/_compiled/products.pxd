"""The tiles of `products.h`, for float and double under one name."""

from cython cimport floating

cdef extern from "products.h" nogil:
    int GZK_TILE, GZK_STRIP, GZK_PRODUCT
    ctypedef void (*gzk_strip_function_f32)(
        const float*, const float*, const float*, const float*, Py_ssize_t, const float*, Py_ssize_t,
        float*)
    ctypedef void (*gzk_strip_function_f64)(
        const double*, const double*, const double*, const double*, Py_ssize_t, const double*,
        Py_ssize_t, double*)
    gzk_strip_function_f32 gzk_strip_function_of_f32(int metric, int profile)
    gzk_strip_function_f64 gzk_strip_function_of_f64(int metric, int profile)
    void gzk_tile_f32(gzk_strip_function_f32 strip, const float* u, const float* a, const float* x,
                      const float* b, Py_ssize_t d, const float* c, Py_ssize_t degree,
                      const float* vj, float* wi, const float* vi, float* wj, Py_ssize_t width,
                      int both, float* buffer)
    void gzk_tile_f64(gzk_strip_function_f64 strip, const double* u, const double* a,
                      const double* x, const double* b, Py_ssize_t d, const double* c,
                      Py_ssize_t degree, const double* vj, double* wi, const double* vi, double* wj,
                      Py_ssize_t width, int both, double* buffer)
    void gzk_add_lanes_f32(const float* wi, double* acc)
    void gzk_add_lanes_f64(const double* wi, double* acc)


cdef inline void tile(int metric, int profile, const floating* u, const floating* a,
                      const floating* x, const floating* b, Py_ssize_t d, const floating* c,
                      Py_ssize_t degree, const floating* vj, floating* wi, const floating* vi,
                      floating* wj, Py_ssize_t width, bint both, floating* buffer) noexcept nogil:
    """Multiply a tile of kernel values by vj into wi and, with `both`, by vi into wj."""
    if floating is float:
        gzk_tile_f32(gzk_strip_function_of_f32(metric, profile), u, a, x, b, d, c, degree, vj, wi,
                     vi, wj, width, both, buffer)
    else:
        gzk_tile_f64(gzk_strip_function_of_f64(metric, profile), u, a, x, b, d, c, degree, vj, wi,
                     vi, wj, width, both, buffer)


cdef inline void add_lanes(const floating* wi, double* sums) noexcept nogil:
    """Add the lanes of each row of wi to its sum."""
    if floating is float:
        gzk_add_lanes_f32(wi, sums)
    else:
        gzk_add_lanes_f64(wi, sums)


cdef inline bint has_strips(floating unused, int metric, int profile) noexcept nogil:
    """Say whether there are kernel values for this metric and profile."""
    if floating is float:
        return gzk_strip_function_of_f32(metric, profile) != NULL
    else:
        return gzk_strip_function_of_f64(metric, profile) != NULL
