"""Products of kernel matrices with vectors, for `products`: nothing of n^2 is stored.

Formula    out[i, q] = sum_j k(x_i, y_j) V[j, q].
Why        A kernel value costs some ten operations and is used at once, so that the product is bound
           by arithmetic and not by memory. Rows come in tiles of TILE neighbours: coordinates about the
           centre of the column's tile keep single precision exact enough, and pairs of tiles that are
           further apart than the kernel reaches are skipped. Of a symmetric matrix each pair of
           tiles is computed once and used in both directions.
Cost       n^2 (d + 12) multiply-adds (half of it where symmetric), and n^2 for each vector. Memory: the
           rows, the vectors, and `groups` copies of the result where symmetric.
Order      Rows of tiles are assigned to a fixed number of groups, and threads take groups: the sums do not
           depend on the threads. Sums within a tile are in the type of the data, across tiles in
           double.
Layout     X (I, d, TILE) and Y (J, d, TILE): coordinates of each tile about its centre; V (J, TILE, width)
           and out (groups, I, TILE, width), of which the caller adds the groups.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport sqrt
from libc.string cimport memset

from .leaf cimport GZK_LANES_F32, GZK_LANES_F64, PAGE, gzk_alloc, gzk_free
from .products cimport GZK_PRODUCT, GZK_STRIP, GZK_TILE, add_lanes, has_strips, tile


cdef inline double apart(const double* p, const double* q, Py_ssize_t d) noexcept nogil:
    """Distance of two centres."""
    cdef double total = 0
    cdef Py_ssize_t k
    for k in range(d):
        total += (p[k] - q[k]) * (p[k] - q[k])
    return sqrt(total)


cdef inline void minus_half_squares(const floating* x, Py_ssize_t d, floating* out) noexcept nogil:
    """out[i] = -|x_i|^2 / 2 for the rows of a tile."""
    cdef Py_ssize_t i, k
    for i in range(GZK_TILE):
        out[i] = 0
    for k in range(d):
        for i in range(GZK_TILE):
            out[i] -= x[k * GZK_TILE + i] * x[k * GZK_TILE + i] / 2


def kernel_product(
    const floating[:, :, ::1] X,          # IN   (I, d, TILE)
    const double[:, ::1] X_centers,       # IN   (I, d)
    const double[::1] X_radii,            # IN   (I,)
    const floating[:, :, ::1] Y,          # IN   (J, d, TILE)
    const double[:, ::1] Y_centers,       # IN   (J, d)
    const double[::1] Y_radii,            # IN   (J,)
    const floating[:, :, ::1] V,          # IN   (J, TILE, width), width 1 or a multiple of lanes
    int metric,
    int profile,
    const floating[::1] coefficients,     # IN   of the profile, from the constant on
    double offset,                        # IN   of a dot product; NaN: minus half squared distances
    double reach,                         # IN   tiles that are further apart are skipped
    bint symmetric,                       # IN   Y is X: every pair of tiles once
    double[:, :, :, ::1] out,             # OUT  (groups, I, TILE, width), zeros; one group unless symmetric
    Py_ssize_t groups,
    Py_ssize_t[::1] n_tiles,              # OUT  (groups,): how many pairs of tiles were not skipped
    int n_threads,
):
    """out[g, i, q] = sum over j of k(x_i, y_j) V[j, q], group by group."""
    cdef Py_ssize_t d = X.shape[1], width = V.shape[2], n_rows = X.shape[0], n_columns = Y.shape[0]
    cdef Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
    cdef Py_ssize_t panel = d * GZK_TILE, result = GZK_TILE * (lanes if width == 1 else width)
    cdef Py_ssize_t size = panel + 2 * GZK_TILE + result + GZK_TILE * width + GZK_STRIP * GZK_TILE
    cdef Py_ssize_t g, m, row, column, i, k, degree = coefficients.shape[0] - 1
    cdef floating *scratch
    cdef floating *u
    cdef floating *a
    cdef floating *b
    cdef floating *wi
    cdef floating *wj
    cdef floating *buffer
    cdef double *sums
    cdef double *target
    cdef floating shift
    cdef bint both, of_distances = offset != offset
    if not has_strips(<floating> 0, metric, profile):
        raise ValueError(f"there are no tiles of metric {metric} and profile {profile}")
    size = (size + PAGE) // 16 * 16
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch buffers of kernel_product")
    for g in prange(groups, schedule="dynamic", chunksize=1, nogil=True, num_threads=n_threads):
        u = scratch + threadid() * size
        a = u + panel
        b = a + GZK_TILE
        wi = b + GZK_TILE
        wj = wi + result
        buffer = wj + GZK_TILE * width
        n_tiles[g] = 0
        for m in range((n_rows + groups - 1) // groups):
            row = m * groups + (g if m % 2 == 0 else groups - 1 - g)
            if row >= n_rows:
                continue
            sums = &out[g if symmetric else 0, row, 0, 0]
            for column in range(row if symmetric else 0, n_columns):
                if (apart(&X_centers[row, 0], &Y_centers[column, 0], d) - X_radii[row]
                        - Y_radii[column] > reach):
                    continue
                n_tiles[g] = n_tiles[g] + 1
                both = symmetric and column > row
                for k in range(d):
                    shift = <floating> (X_centers[row, k] - Y_centers[column, k])
                    for i in range(GZK_TILE):
                        u[k * GZK_TILE + i] = X[row, k, i] + shift
                if of_distances:
                    minus_half_squares(u, d, a)
                    minus_half_squares(&Y[column, 0, 0], d, b)
                else:
                    for i in range(GZK_TILE):
                        a[i] = <floating> offset
                        b[i] = 0
                memset(wi, 0, result * sizeof(floating))
                if both:
                    memset(wj, 0, GZK_TILE * width * sizeof(floating))
                tile(metric, profile, u, a, &Y[column, 0, 0], b, d, &coefficients[0], degree,
                     &V[column, 0, 0], wi, &V[row if symmetric else 0, 0, 0], wj, width, both, buffer)
                if width == 1:
                    add_lanes(wi, sums)
                else:
                    for i in range(GZK_TILE * width):
                        sums[i] += wi[i]
                if both:
                    target = &out[g, column, 0, 0]
                    for i in range(GZK_TILE * width):
                        target[i] += wj[i]
    gzk_free(scratch)


def tile_rows():
    """Count the rows of a tile."""
    return GZK_TILE
