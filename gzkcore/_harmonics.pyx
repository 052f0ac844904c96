"""Products of radial functions and orthonormal spherical harmonics, in any dimension.

Formula    out[i, c] = radial[i, ring] Y_c(x_i). A harmonic of degree l in R^d is a product of at
           most l one-dimensional factors and one power of x_0 + i x_1 (see `harmonics.py`):
           Y = scale . G_(e,n,k)(x_e, rho_e) . node,
           G_n = up_n x_e G_(n-1) - down_n rho_e^2 G_(n-2),
           where a node is a product that several harmonics share. The normalisation lives in up,
           down and scale, so that nothing overflows in float32.
Cost       About 5 flops per output, whatever the dimension. Reads X and radial once, writes out
           once.
Order      Parallel over groups of LANES rows, one row a lane: every step of every recursion is then
           one vector operation, for any shape of the tree. LANES columns are formed and transposed
           in registers into pieces of rows, which go past the cache if out is large.
Layout     X (n, d), radial (n or 1, K), out (n, count) any row stride, unit column stride. Each
           entry is computed by the same operations in any group or thread: the same bits.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t

cdef extern from "_leaf.h" nogil:
    int GZK_LANES_F32, GZK_LANES_F64
    int gzk_on_boundary(const void* p)
    void gzk_copy(void* dst, const void* src, Py_ssize_t n, int stream)
    void GZK_FENCE()
    void* gzk_alloc(size_t bytes)
    void gzk_free(void* p)
    void gzk_load_points_f32(const float* points, Py_ssize_t ld, int count, Py_ssize_t d, float* x,
                             float* rho2)
    void gzk_powers_f32(const float* x, const float* y, float* power, Py_ssize_t degree)
    void gzk_factors_f32(const float* x, const float* rho2, const float* steps, float* factor,
                         Py_ssize_t degree)
    void gzk_nodes_f32(const float* power, const float* factor, const Py_ssize_t* tree,
                       const float* scale, float* node, Py_ssize_t powers, Py_ssize_t count)
    void gzk_load_radial_f32(const float* rows, Py_ssize_t ld, int count, Py_ssize_t columns,
                             float* out)
    void gzk_columns_f32(const float* factor, const float* node, const float* radial,
                         const int32_t* column, const float* scale, float* out, Py_ssize_t ldo,
                         Py_ssize_t count, int stream)
    void gzk_load_points_f64(const double* points, Py_ssize_t ld, int count, Py_ssize_t d,
                             double* x, double* rho2)
    void gzk_powers_f64(const double* x, const double* y, double* power, Py_ssize_t degree)
    void gzk_factors_f64(const double* x, const double* rho2, const double* steps, double* factor,
                         Py_ssize_t degree)
    void gzk_nodes_f64(const double* power, const double* factor, const Py_ssize_t* tree,
                       const double* scale, double* node, Py_ssize_t powers, Py_ssize_t count)
    void gzk_load_radial_f64(const double* rows, Py_ssize_t ld, int count, Py_ssize_t columns,
                             double* out)
    void gzk_columns_f64(const double* factor, const double* node, const double* radial,
                         const int32_t* column, const double* scale, double* out, Py_ssize_t ldo,
                         Py_ssize_t count, int stream)

cdef enum:
    PAGE = 1024


def harmonic_features(
    const floating[:, ::1] X,             # IN   (n, d)
    const floating[:, ::1] radial,        # IN   (n, K), or (1, K) for all rows
    const Py_ssize_t[:, ::1] runs,        # IN   (runs, 3)     coordinate, first factor, highest n
    const floating[:, ::1] steps,         # IN   (factors, 2)  up and down
    const Py_ssize_t[:, ::1] tree,        # IN   (nodes, 2)    factor (or power), parent of a node
    const floating[::1] tree_scale,       # IN   (nodes,)
    Py_ssize_t n_powers,                  # so many nodes, the first ones, are powers
    const Py_ssize_t[:, ::1] columns,     # IN   (count, 3)    factor, node and radial function
    const floating[::1] scale,            # IN   (count,)
    floating[:, :] out,                   # OUT  (n, count)
    bint stream,
    int n_threads,
):
    """out[i, c] = radial[i, ring] Y_c(x_i); see the head of this file."""
    cdef:
        Py_ssize_t n = X.shape[0], d = X.shape[1], rings = radial.shape[1]
        Py_ssize_t factors = steps.shape[0], nodes = tree.shape[0], count = columns.shape[0]
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t whole = count // lanes * lanes
        Py_ssize_t powers = 2, size, group, i, j, r, rows
        Py_ssize_t ldr = 0 if radial.shape[0] == 1 else rings
        Py_ssize_t ldo = out.strides[0] // <Py_ssize_t> sizeof(floating)
        int32_t* place
        floating* scratch
        floating* scales
        floating* factor
        floating* node
        floating* ring
        floating* row
        bint direct
    if n == 0 or count == 0:
        return
    if out.shape[0] != n or out.shape[1] != count or out.strides[1] != sizeof(floating):
        raise ValueError("out must have shape (n, count) and unit column stride")
    for i in range(n_powers):
        powers = max(powers, tree[i, 0] + 2)
    # A thread's scratch: coordinates and powers, factors, nodes, radial values, unfinished rows.
    # A page lies between two threads, or the prefetcher of one takes lines that another is writing.
    size = (2 * d + powers + factors + nodes + rings + whole + lanes) * lanes + PAGE
    scratch = <floating*> gzk_alloc((n_threads * size + whole + lanes) * sizeof(floating))
    place = <int32_t*> gzk_alloc(3 * (whole + lanes) * sizeof(int32_t))
    if scratch == NULL or place == NULL:
        gzk_free(scratch)
        gzk_free(place)
        raise MemoryError("no memory for the scratch space of harmonic_features")
    # Where each column's three factors stand in the scratch, short so that the table stays in L1.
    # The last, partly filled vector of columns repeats the last column; only `count` are copied.
    scales = scratch + n_threads * size
    for i in range(whole + lanes):
        r = min(i, count - 1)
        for j in range(3):
            place[3 * i + j] = <int32_t> (columns[r, j] * lanes)
        scales[i] = scale[r]
    for group in prange((n + lanes - 1) // lanes, schedule="static", nogil=True,
                        num_threads=n_threads):
        i = group * lanes
        rows = min(lanes, n - i)
        factor = scratch + threadid() * size
        node = factor + factors * lanes
        ring = node + nodes * lanes
        row = ring + rings * lanes
        _nodes(&X[i, 0], d, <int> rows, &runs[0, 0], runs.shape[0], &steps[0, 0], &tree[0, 0],
               &tree_scale[0], n_powers, powers, nodes, row + (whole + lanes) * lanes, factor, node,
               lanes)
        _load_radial(&radial[0 if ldr == 0 else i, 0], ldr, <int> rows, rings, ring)
        direct = rows == lanes and (
            not stream or (gzk_on_boundary(&out[i, 0]) and gzk_on_boundary(&out[i + 1, 0])))
        if direct:
            _columns(factor, node, ring, place, scales, &out[i, 0], ldo, whole, stream)
        else:
            _columns(factor, node, ring, place, scales, row, whole + lanes, whole, False)
        if whole < count:
            _columns(factor, node, ring, place + 3 * whole, scales + whole, row + whole,
                     whole + lanes, lanes, False)
        for r in range(rows):
            if not direct:
                gzk_copy(&out[i + r, 0], row + r * (whole + lanes), count * sizeof(floating),
                         stream)
            elif whole < count:
                gzk_copy(&out[i + r, whole], row + r * (whole + lanes) + whole,
                         (count - whole) * sizeof(floating), False)
        GZK_FENCE()
    gzk_free(scratch)
    gzk_free(place)


cdef inline void _nodes(
    const floating* points, Py_ssize_t d, int rows, const Py_ssize_t* runs, Py_ssize_t n_runs,
    const floating* steps, const Py_ssize_t* tree, const floating* tree_scale, Py_ssize_t n_powers,
    Py_ssize_t powers, Py_ssize_t nodes, floating* x, floating* factor, floating* node,
    Py_ssize_t lanes,
) noexcept nogil:
    """All factors and shared products for one group of rows."""
    cdef Py_ssize_t run, axis, first
    cdef floating* rho2 = x + d * lanes
    cdef floating* power = rho2 + d * lanes
    cdef const floating* y = x + lanes if d > 1 else NULL
    if floating is float:
        gzk_load_points_f32(points, d, rows, d, x, rho2)
        gzk_powers_f32(x, y, power, powers // 2 - 1)
        for run in range(n_runs):
            axis, first = runs[3 * run], runs[3 * run + 1]
            gzk_factors_f32(x + axis * lanes, rho2 + axis * lanes, steps + 2 * first,
                            factor + first * lanes, runs[3 * run + 2])
        gzk_nodes_f32(power, factor, tree, tree_scale, node, n_powers, nodes)
    else:
        gzk_load_points_f64(points, d, rows, d, x, rho2)
        gzk_powers_f64(x, y, power, powers // 2 - 1)
        for run in range(n_runs):
            axis, first = runs[3 * run], runs[3 * run + 1]
            gzk_factors_f64(x + axis * lanes, rho2 + axis * lanes, steps + 2 * first,
                            factor + first * lanes, runs[3 * run + 2])
        gzk_nodes_f64(power, factor, tree, tree_scale, node, n_powers, nodes)


cdef inline void _load_radial(const floating* radial, Py_ssize_t ldr, int rows, Py_ssize_t rings,
                              floating* ring) noexcept nogil:
    if floating is float:
        gzk_load_radial_f32(radial, ldr, rows, rings, ring)
    else:
        gzk_load_radial_f64(radial, ldr, rows, rings, ring)


cdef inline void _columns(
    const floating* factor, const floating* node, const floating* ring, const int32_t* columns,
    const floating* scale, floating* out, Py_ssize_t ldo, Py_ssize_t count, bint stream,
) noexcept nogil:
    if floating is float:
        gzk_columns_f32(factor, node, ring, columns, scale, out, ldo, count, stream)
    else:
        gzk_columns_f64(factor, node, ring, columns, scale, out, ldo, count, stream)
