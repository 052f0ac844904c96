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
           in registers into pieces of rows, which go past the cache if out is large, from the first
           column on that is on a vector's boundary.
Layout     X (n, d), radial (n or 1, K), out (n, count) any row stride, unit column stride. Each
           entry is computed by the same operations in any group or thread: the same bits.
"""

from cython cimport floating
from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport int32_t

from .checks cimport agree, inside
from .leaf cimport (
    GZK_FENCE,
    GZK_LANES_F32,
    GZK_LANES_F64,
    PAGE,
    factors,
    gzk_alloc,
    gzk_free,
    load_points,
    load_radial,
    nodes,
    padded,
    place_columns,
    powers,
    write_group,
)

# Powers of x_0 + i x_1, real and imaginary: scratch has room for all up to the highest.
cdef enum:
    MOST_POWERS = 1 << 20


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
        Py_ssize_t n_factors = steps.shape[0], n_nodes = tree.shape[0], count = columns.shape[0]
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t whole = count // lanes * lanes
        Py_ssize_t degrees = 1, size, group, i, rows
        Py_ssize_t ldr = 0 if radial.shape[0] == 1 else rings
        Py_ssize_t ldo = out.strides[0] // <Py_ssize_t> sizeof(floating)
        int32_t* place
        floating* scratch
        floating* scales
        floating* factor
        floating* node
        floating* ring
        floating* row
    if n == 0 or count == 0:
        return
    if out.shape[0] != n or out.shape[1] != count or out.strides[1] != sizeof(floating):
        raise ValueError("out must have shape (n, count) and unit column stride")
    _check(d, rings, runs, n_factors, tree, n_powers, columns)
    agree((radial.shape[0] == n or ldr == 0) and steps.shape[1] == 2
          and tree_scale.shape[0] == n_nodes and scale.shape[0] == count,
          "X, radial, steps, tree, columns and scales")
    for i in range(n_powers):
        degrees = max(degrees, tree[i, 0] // 2 + 1)
    # A thread's scratch: factors, nodes, radial values, unfinished rows, coordinates and powers.
    size = (n_factors + n_nodes + rings + whole + lanes + 2 * d + 2 * degrees) * lanes + PAGE
    scratch = <floating*> gzk_alloc((n_threads * size + padded(count, lanes)) * sizeof(floating))
    place = <int32_t*> gzk_alloc(3 * padded(count, lanes) * sizeof(int32_t))
    if scratch == NULL or place == NULL:
        gzk_free(scratch)
        gzk_free(place)
        raise MemoryError("no memory for the scratch space of harmonic_features")
    place_columns(&columns[0, 0], count, lanes, place)
    scales = scratch + n_threads * size
    for i in range(padded(count, lanes)):
        scales[i] = scale[min(i, count - 1)]
    with nogil, parallel(num_threads=n_threads):
        for group in prange((n + lanes - 1) // lanes, schedule="static"):
            i = group * lanes
            rows = min(lanes, n - i)
            factor = scratch + threadid() * size
            node = factor + n_factors * lanes
            ring = node + n_nodes * lanes
            row = ring + rings * lanes
            _nodes(&X[i, 0], d, <int> rows, &runs[0, 0], runs.shape[0], &steps[0, 0],
                   &tree[0, 0], &tree_scale[0], n_powers, degrees, n_nodes,
                   row + (whole + lanes) * lanes, factor, node, lanes)
            load_radial(&radial[0 if ldr == 0 else i, 0], ldr, <int> rows, rings, ring)
            write_group(factor, node, ring, place, scales, row, &out[i, 0], ldo, rows, count,
                        lanes, stream)
        GZK_FENCE()
    gzk_free(scratch)
    gzk_free(place)


cdef int _check(
    Py_ssize_t d, Py_ssize_t rings, const Py_ssize_t[:, ::1] runs, Py_ssize_t n_factors,
    const Py_ssize_t[:, ::1] tree, Py_ssize_t n_powers, const Py_ssize_t[:, ::1] columns,
) except -1:
    """Raise ValueError unless every index is of a coordinate, a factor, a node before or a ring."""
    cdef Py_ssize_t n_nodes = tree.shape[0], i
    agree(d > 0 and rings > 0 and n_factors > 0 and 0 < n_powers <= n_nodes and runs.shape[0] > 0
          and runs.shape[1] == 3 and tree.shape[1] == 2 and columns.shape[1] == 3,
          "runs, tree and columns")
    inside(&runs[0, 0], runs.shape[0], 3, d, "runs")
    for i in range(runs.shape[0]):
        inside(&runs[i, 1], 2, 1, n_factors, "runs")
        agree(runs[i, 1] + runs[i, 2] < n_factors, "runs and steps")
    inside(&tree[0, 0], n_powers, 2, MOST_POWERS, "tree")
    for i in range(n_powers, n_nodes):
        inside(&tree[i, 0], 1, 1, n_factors, "tree")
        inside(&tree[i, 1], 1, 1, i, "tree")
    inside(&columns[0, 0], columns.shape[0], 3, n_factors, "columns")
    inside(&columns[0, 1], columns.shape[0], 3, n_nodes, "columns")
    inside(&columns[0, 2], columns.shape[0], 3, rings, "columns")
    return 0


cdef inline void _nodes(
    const floating* points, Py_ssize_t d, int rows, const Py_ssize_t* runs, Py_ssize_t n_runs,
    const floating* steps, const Py_ssize_t* tree, const floating* tree_scale, Py_ssize_t n_powers,
    Py_ssize_t degrees, Py_ssize_t n_nodes, floating* x, floating* factor, floating* node,
    Py_ssize_t lanes,
) noexcept nogil:
    """All factors and shared products for one group of rows."""
    cdef Py_ssize_t run, axis, first
    cdef floating* rho2 = x + d * lanes
    cdef floating* power = rho2 + d * lanes
    load_points(points, d, rows, d, x, rho2)
    powers(x, <const floating*> (x + lanes if d > 1 else NULL), power, degrees - 1)
    for run in range(n_runs):
        axis, first = runs[3 * run], runs[3 * run + 1]
        factors(x + axis * lanes, rho2 + axis * lanes, steps + 2 * first, factor + first * lanes,
                runs[3 * run + 2])
    nodes(power, factor, tree, tree_scale, node, n_powers, n_nodes)
