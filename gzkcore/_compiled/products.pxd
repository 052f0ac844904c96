"""The tiles of `products.h`, for float and double under one name."""

from cython cimport floating

cdef enum:
    MOST_FACTORS = 64

cdef extern from "products.h" nogil:
    int GZK_TILE, GZK_STRIP, GZK_PRODUCT, GZK_DIFFERENCE
    ctypedef struct gzk_factor:
        int metric, profile, of_distances
        Py_ssize_t first, dim
        const void* c
        Py_ssize_t degree, shift, base, pieces
        double fold, offset
    unsigned gzk_flush_denormals()
    void gzk_set_denormals(unsigned before)
    void* gzk_strip_function_of_f32(int metric, int profile)
    void* gzk_strip_function_of_f64(int metric, int profile)
    void gzk_shift_f32(const float* x, float shift, float* u)
    void gzk_shift_f64(const double* x, double shift, double* u)
    void gzk_expand_f32(const gzk_factor*, float* u, float* a, const float* x, float* b)
    void gzk_expand_f64(const gzk_factor*, double* u, double* a, const double* x, double* b)
    void gzk_values_f32(const gzk_factor*, Py_ssize_t count, Py_ssize_t i, const float* u,
                        const float* a, const float* x, const float* b, float* spare, float* out)
    void gzk_values_f64(const gzk_factor*, Py_ssize_t count, Py_ssize_t i, const double* u,
                        const double* a, const double* x, const double* b, double* spare,
                        double* out)
    void gzk_tile_f32(const gzk_factor*, Py_ssize_t count, const float* u, const float* a,
                      const float* x, const float* b, const float* vj, float* wi, const float* vi,
                      float* wj, Py_ssize_t width, int both, float* buffer)
    void gzk_tile_f64(const gzk_factor*, Py_ssize_t count, const double* u, const double* a,
                      const double* x, const double* b, const double* vj, double* wi,
                      const double* vi, double* wj, Py_ssize_t width, int both, double* buffer)
    void gzk_tile_slopes_f64(const gzk_factor* factors, const gzk_factor* slopes, Py_ssize_t count,
                             const double* u, const double* a, const double* x, const double* b,
                             const double* left, const double* right, Py_ssize_t width,
                             double* sums, double* buffer)
    void gzk_add_lanes_f32(const float* wi, double* sums)
    void gzk_add_lanes_f64(const double* wi, double* sums)


cdef inline void move(const floating* x, floating shift, floating* u) noexcept nogil:
    """u = x + shift, for one coordinate of a tile."""
    if floating is float:
        gzk_shift_f32(x, shift, u)
    else:
        gzk_shift_f64(x, shift, u)


cdef inline void expand(const gzk_factor* factor, floating* u, floating* a, const floating* x,
                        floating* b) noexcept nogil:
    """Write what the metric PRODUCT needs beside coordinates."""
    if floating is float:
        gzk_expand_f32(factor, u, a, x, b)
    else:
        gzk_expand_f64(factor, u, a, x, b)


cdef inline void values(const gzk_factor* factors, Py_ssize_t count, Py_ssize_t i,
                        const floating* u, const floating* a, const floating* x,
                        const floating* b, floating* spare, floating* out) noexcept nogil:
    """Write kernel values of a strip of rows of a tile."""
    if floating is float:
        gzk_values_f32(factors, count, i, u, a, x, b, spare, out)
    else:
        gzk_values_f64(factors, count, i, u, a, x, b, spare, out)


cdef inline void tile(const gzk_factor* factors, Py_ssize_t count, const floating* u,
                      const floating* a, const floating* x, const floating* b,
                      const floating* vj, floating* wi, const floating* vi, floating* wj,
                      Py_ssize_t width, bint both, floating* buffer) noexcept nogil:
    """Multiply a tile of kernel values by vj into wi and, with `both`, by vi into wj."""
    if floating is float:
        gzk_tile_f32(factors, count, u, a, x, b, vj, wi, vi, wj, width, both, buffer)
    else:
        gzk_tile_f64(factors, count, u, a, x, b, vj, wi, vi, wj, width, both, buffer)


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


cdef inline int fill(
    gzk_factor* out,
    const long long[:, ::1] factors,      # IN   (count, 9), as read here
    const double[:, ::1] numbers,         # IN   (count, 4): base, fold, offset, and the reach
    const floating[::1] coefficients,     # IN   of all factors
) except -1:
    """Write what the tiles need to know of each factor."""
    cdef Py_ssize_t f
    if factors.shape[0] > MOST_FACTORS:
        raise ValueError(f"{factors.shape[0]} factors are more than {MOST_FACTORS}")
    for f in range(factors.shape[0]):
        out[f].metric = <int> factors[f, 0]
        out[f].profile = <int> factors[f, 1]
        out[f].of_distances = <int> factors[f, 2]
        out[f].first = factors[f, 3]
        out[f].dim = factors[f, 4]
        out[f].c = &coefficients[factors[f, 5]]
        out[f].degree = factors[f, 6]
        out[f].shift = factors[f, 7]
        out[f].pieces = factors[f, 8]
        out[f].base = <Py_ssize_t> numbers[f, 0]
        out[f].fold = numbers[f, 1]
        out[f].offset = numbers[f, 2]
        if not has_strips(<floating> 0, out[f].metric, out[f].profile):
            raise ValueError(
                f"there are no tiles of metric {out[f].metric} and profile {out[f].profile}"
            )
    return 0
