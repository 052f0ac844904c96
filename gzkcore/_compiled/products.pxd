"""The tiles of `products.h`; see `leaf.pxd` for `...`."""

from cython cimport floating

cdef enum:
    MOST_FACTORS = 64

cdef extern from "products.h" nogil:
    int GZK_TILE, GZK_STRIP, GZK_PRODUCT, GZK_DIFFERENCE
    ctypedef struct gzk_factor:
        int metric, profile, of_distances, term
        Py_ssize_t first, dim
        const void* c
        Py_ssize_t degree, shift, base, pieces
        double fold, offset
        Py_ssize_t coded
        const void* gaps
    unsigned gzk_flush_denormals()
    void gzk_set_denormals(unsigned before)
    # x, shift, u: u = x + shift, for one coordinate of a tile.
    void move "gzk_shift"(...)
    # factor, u, a, x, b: write what the metric PRODUCT needs beside coordinates.
    void expand "gzk_expand"(...)
    # factors, count, i, u, a, x, b, spare, out: write kernel values of a strip of rows of a tile.
    void values "gzk_values"(...)
    # factors, count, u, a, x, b, vj, wi, vi, wj, width, both, rows, buffer: multiply the first rows
    # of a tile of kernel values by vj into wi and, with `both`, by vi into wj.
    void tile "gzk_tile"(...)
    void gzk_tile_slopes_f64(const gzk_factor* factors, const gzk_factor* slopes, Py_ssize_t count,
                             const double* u, const double* a, const double* x, const double* b,
                             const double* left, const double* right, Py_ssize_t width,
                             double* sums, double* buffer)
    # wi, sums: add the lanes of each row of wi to its sum.
    void add_lanes "gzk_add_lanes"(...)
    # c, metric, profile: whether there are kernel values for these, with coefficients such as c.
    bint has_strips "gzk_has_strips"(...)


cdef inline int fill(
    gzk_factor* out,
    const long long[:, ::1] factors,      # IN   (count, 12), as read here
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
        out[f].term = <int> factors[f, 9]
        out[f].coded = factors[f, 10]
        out[f].gaps = &coefficients[0] + factors[f, 11]
        out[f].base = <Py_ssize_t> numbers[f, 0]
        out[f].fold = numbers[f, 1]
        out[f].offset = numbers[f, 2]
        if not has_strips(&coefficients[0], out[f].metric, out[f].profile):
            raise ValueError(
                f"there are no tiles of metric {out[f].metric} and profile {out[f].profile}"
            )
    return 0
