"""Products of radial functions and orthonormal spherical harmonics, in any dimension.

Formula    out[i, c] = radial[i, ring[c]] Y_of[c](x_i). A harmonic of degree l in R^d is a product of at
           most l one-dimensional factors and one power of x_0 + i x_1 (see `harmonics.py`):
           Y = scale . G_(e,n,k)(x_e, rho_e) . Y_parent,  G_n = up_n x_e G_(n-1) - down_n rho_e^2 G_(n-2).
           The normalisation lives in up, down and scale, so that nothing overflows in float32.
Cost       About 5 flops per output, whatever the dimension: a node of the tree for each harmonic, one
           product with the radial function. Reads X and radial once, writes out once.
Order      Parallel over groups of LANES rows, one row a lane: every step of every recursion is then
           one vector operation, for any shape of the tree. The group's columns are transposed in
           registers into rows, which are copied out, past the cache if out is large.
Layout     X (n, d), radial (n or 1, K), out (n, count) any row stride, unit column stride. Each entry
           is computed by the same operations in any group or thread: the same bits.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid

cdef extern from "_leaf.h" nogil:
    int GZK_LANES_F32, GZK_LANES_F64
    void gzk_copy(void* dst, const void* src, Py_ssize_t n, int stream)
    void GZK_FENCE()
    void* gzk_alloc(size_t bytes)
    void gzk_free(void* p)
    void gzk_load_points_f32(const float* points, Py_ssize_t ld, int count, Py_ssize_t d, float* x,
                             float* rho2)
    void gzk_powers_f32(const float* x, const float* y, float* power, Py_ssize_t degree)
    void gzk_factors_f32(const float* x, const float* rho2, const float* up, const float* down,
                         float* factor, Py_ssize_t degree)
    void gzk_scaled_f32(const float* power, const Py_ssize_t* which, const float* scale, float* node,
                        Py_ssize_t count)
    void gzk_nodes_f32(const float* factor, const Py_ssize_t* which, const Py_ssize_t* parent,
                       const float* scale, float* node, Py_ssize_t first, Py_ssize_t count)
    void gzk_load_radial_f32(const float* rows, Py_ssize_t ld, int count, Py_ssize_t columns, float* out)
    void gzk_columns_f32(const float* node, const Py_ssize_t* of, const float* radial,
                         const Py_ssize_t* ring, float* out, Py_ssize_t ldo, Py_ssize_t count)
    void gzk_load_points_f64(const double* points, Py_ssize_t ld, int count, Py_ssize_t d, double* x,
                             double* rho2)
    void gzk_powers_f64(const double* x, const double* y, double* power, Py_ssize_t degree)
    void gzk_factors_f64(const double* x, const double* rho2, const double* up, const double* down,
                         double* factor, Py_ssize_t degree)
    void gzk_scaled_f64(const double* power, const Py_ssize_t* which, const double* scale, double* node,
                        Py_ssize_t count)
    void gzk_nodes_f64(const double* factor, const Py_ssize_t* which, const Py_ssize_t* parent,
                       const double* scale, double* node, Py_ssize_t first, Py_ssize_t count)
    void gzk_load_radial_f64(const double* rows, Py_ssize_t ld, int count, Py_ssize_t columns, double* out)
    void gzk_columns_f64(const double* node, const Py_ssize_t* of, const double* radial,
                         const Py_ssize_t* ring, double* out, Py_ssize_t ldo, Py_ssize_t count)


def harmonic_features(
    const floating[:, ::1] X,             # IN   (n, d)
    const floating[:, ::1] radial,        # IN   (n, K), or (1, K) for all rows
    const Py_ssize_t[::1] run_axis,       # IN   (runs,)      coordinate e - 1 of each run of factors
    const Py_ssize_t[::1] run_start,      # IN   (runs + 1,)  where each run begins in up, down
    const floating[::1] up,               # IN   (factors,)
    const floating[::1] down,             # IN   (factors,)
    const Py_ssize_t[::1] which,          # IN   (nodes,)     factor of each node; a power for the first
    const Py_ssize_t[::1] parent,         # IN   (nodes,)     earlier node that the factor multiplies
    const floating[::1] scale,            # IN   (nodes,)
    Py_ssize_t n_powers,                  #      nodes that are powers of x_0 + i x_1
    const Py_ssize_t[::1] of,             # IN   (count,)     node of each column
    const Py_ssize_t[::1] ring,           # IN   (count,)     radial function of each column
    floating[:, :] out,                   # OUT  (n, count)
    bint stream,
    int n_threads,
):
    """out[i, c] = radial[i, ring[c]] Y_of[c](x_i); see the head of this file."""
    cdef:
        Py_ssize_t n = X.shape[0], d = X.shape[1], rings = radial.shape[1]
        Py_ssize_t factors = up.shape[0], nodes = which.shape[0], count = of.shape[0]
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t padded = (count + lanes - 1) // lanes * lanes
        Py_ssize_t powers = 2, size, group, i, r, rows
        Py_ssize_t row_stride = 0 if radial.shape[0] == 1 else rings
        Py_ssize_t* column_node
        Py_ssize_t* column_ring
        floating* scratch
        floating* x
        floating* rho2
        floating* factor
        floating* node
        floating* ring_values
        floating* row
    if n == 0 or count == 0:
        return
    if out.strides[1] != sizeof(floating):
        raise ValueError("out needs unit column stride")
    for i in range(n_powers):
        powers = max(powers, which[i] + 2)
    # A thread's scratch: coordinates, factors, then powers and nodes, radial values, finished rows.
    size = (2 * d + factors + powers + nodes + rings + padded) * lanes
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    column_node = <Py_ssize_t*> gzk_alloc(2 * padded * sizeof(Py_ssize_t))
    if scratch == NULL or column_node == NULL:
        gzk_free(scratch)
        gzk_free(column_node)
        raise MemoryError("no memory for the scratch space of harmonic_features")
    column_ring = column_node + padded
    for i in range(padded):                # columns beyond the last repeat it and are not copied out
        column_node[i] = of[min(i, count - 1)]
        column_ring[i] = ring[min(i, count - 1)]
    for group in prange((n + lanes - 1) // lanes, schedule="static", nogil=True,
                        num_threads=n_threads):
        i = group * lanes
        rows = min(lanes, n - i)
        x = scratch + threadid() * size
        rho2 = x + d * lanes
        factor = rho2 + d * lanes
        node = factor + (factors + powers) * lanes
        ring_values = node + nodes * lanes
        row = ring_values + rings * lanes
        _harmonics(&X[i, 0], d, <int> rows, &run_axis[0], &run_start[0], run_axis.shape[0],
                   &up[0], &down[0], &which[0], &parent[0], &scale[0], n_powers, powers, nodes,
                   x, rho2, factor, node, lanes)
        _rows(node, column_node, column_ring, &radial[0 if row_stride == 0 else i, 0], row_stride,
              <int> rows, rings, ring_values, row, padded)
        for r in range(rows):
            gzk_copy(&out[i + r, 0], row + r * padded, count * sizeof(floating), stream)
        GZK_FENCE()
    gzk_free(scratch)
    gzk_free(column_node)


cdef inline void _harmonics(
    const floating* points, Py_ssize_t d, int rows, const Py_ssize_t* run_axis,
    const Py_ssize_t* run_start, Py_ssize_t runs, const floating* up, const floating* down,
    const Py_ssize_t* which, const Py_ssize_t* parent, const floating* scale, Py_ssize_t n_powers,
    Py_ssize_t powers, Py_ssize_t nodes, floating* x, floating* rho2, floating* factor,
    floating* node, Py_ssize_t lanes,
) noexcept nogil:
    """All nodes of the tree for one group of rows; the powers stand behind the factors."""
    cdef Py_ssize_t run, start, axis
    cdef Py_ssize_t factors = run_start[runs]
    cdef floating* power = factor + factors * lanes
    cdef const floating* y = x + lanes if d > 1 else NULL
    if floating is float:
        gzk_load_points_f32(points, d, rows, d, x, rho2)
        gzk_powers_f32(x, y, power, powers // 2 - 1)
        for run in range(runs):
            start = run_start[run]
            axis = run_axis[run]
            gzk_factors_f32(x + axis * lanes, rho2 + axis * lanes, up + start, down + start,
                            factor + start * lanes, run_start[run + 1] - start - 1)
        gzk_scaled_f32(power, which, scale, node, n_powers)
        gzk_nodes_f32(factor, which, parent, scale, node, n_powers, nodes)
    else:
        gzk_load_points_f64(points, d, rows, d, x, rho2)
        gzk_powers_f64(x, y, power, powers // 2 - 1)
        for run in range(runs):
            start = run_start[run]
            axis = run_axis[run]
            gzk_factors_f64(x + axis * lanes, rho2 + axis * lanes, up + start, down + start,
                            factor + start * lanes, run_start[run + 1] - start - 1)
        gzk_scaled_f64(power, which, scale, node, n_powers)
        gzk_nodes_f64(factor, which, parent, scale, node, n_powers, nodes)


cdef inline void _rows(
    const floating* node, const Py_ssize_t* of, const Py_ssize_t* ring, const floating* radial,
    Py_ssize_t row_stride, int rows, Py_ssize_t rings, floating* ring_values, floating* row,
    Py_ssize_t padded,
) noexcept nogil:
    """The group's finished rows: radial functions times harmonics, transposed."""
    if floating is float:
        gzk_load_radial_f32(radial, row_stride, rows, rings, ring_values)
        gzk_columns_f32(node, of, ring_values, ring, row, padded, padded)
    else:
        gzk_load_radial_f64(radial, row_stride, rows, rings, ring_values)
        gzk_columns_f64(node, of, ring_values, ring, row, padded, padded)
