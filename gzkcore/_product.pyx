"""Products of chosen columns of several matrices, row by row.

Formula    out[i, c] = e[columns[c, 0]] e[columns[c, 1]] e[columns[c, 2]], where the entries e of a
           row are, in this order: the number 1, the row A[i, :], and products of two earlier
           entries, e[1 + W + j] = e[tree[j, 0]] e[tree[j, 1]].
Why        Columns of K > 3 factors share most of their first K - 2: each such product is formed
           once. Up to three factors need no tree.
Cost       Two flops per output and one per node of the tree. Reads A once, writes out once.
Order      Parallel over groups of LANES rows, one row a lane, so that a product of two columns is
           one vector operation wherever the columns lie; LANES outputs are transposed in registers
           into pieces of rows, which go past the cache if out is large.
Layout     A (n, W), out (n, count) any row stride, unit column stride. Each entry is computed by
           the same multiplications in any group or thread: the same bits.
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
    void gzk_nodes_f32(const float* power, const float* factor, const Py_ssize_t* tree,
                       const float* scale, float* node, Py_ssize_t powers, Py_ssize_t count)
    void gzk_load_radial_f32(const float* rows, Py_ssize_t ld, int count, Py_ssize_t columns,
                             float* out)
    void gzk_columns_f32(const float* factor, const float* node, const float* radial,
                         const int32_t* column, const float* scale, float* out, Py_ssize_t ldo,
                         Py_ssize_t count, int stream)
    void gzk_nodes_f64(const double* power, const double* factor, const Py_ssize_t* tree,
                       const double* scale, double* node, Py_ssize_t powers, Py_ssize_t count)
    void gzk_load_radial_f64(const double* rows, Py_ssize_t ld, int count, Py_ssize_t columns,
                             double* out)
    void gzk_columns_f64(const double* factor, const double* node, const double* radial,
                         const int32_t* column, const double* scale, double* out, Py_ssize_t ldo,
                         Py_ssize_t count, int stream)

# A page lies between two threads, or the prefetcher of one takes lines that another is writing.
cdef enum:
    PAGE = 1024


def product_features(
    const floating[:, ::1] A,             # IN   (n, W), the columns of all parts side by side
    const Py_ssize_t[:, ::1] tree,        # IN   (nodes, 2), entries whose product is a new entry
    const Py_ssize_t[:, ::1] columns,     # IN   (count, 3), entries whose product is a column
    floating[:, :] out,                   # OUT  (n, count)
    bint stream,
    int n_threads,
):
    """out[i, c] = the product of three entries; see the head of this file."""
    cdef:
        Py_ssize_t n = A.shape[0], width = A.shape[1], nodes = tree.shape[0]
        Py_ssize_t count = columns.shape[0]
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t whole = count // lanes * lanes
        Py_ssize_t base = 1 + width, ones = max(whole + lanes, nodes)
        Py_ssize_t ldo = out.strides[0] // <Py_ssize_t> sizeof(floating)
        Py_ssize_t group, i, j, r, rows, size
        int32_t* place
        Py_ssize_t* steps
        floating* scratch
        floating* one
        floating* entry
        floating* row
        bint direct
    if n == 0 or count == 0:
        return
    if out.shape[0] != n or out.shape[1] != count or out.strides[1] != sizeof(floating):
        raise ValueError("out must have shape (n, count) and unit column stride")
    # A thread's scratch: its entries, and rows that are not finished.
    size = (base + nodes + whole + lanes) * lanes + PAGE
    scratch = <floating*> gzk_alloc((n_threads * size + ones) * sizeof(floating))
    place = <int32_t*> gzk_alloc(3 * (whole + lanes) * sizeof(int32_t))
    steps = <Py_ssize_t*> gzk_alloc(max(2 * nodes, 1) * sizeof(Py_ssize_t))
    if scratch == NULL or place == NULL or steps == NULL:
        gzk_free(scratch)
        gzk_free(place)
        gzk_free(steps)
        raise MemoryError("no memory for the scratch space of product_features")
    one = scratch + n_threads * size
    for i in range(ones):
        one[i] = 1
    # Where each column's three factors stand in the scratch, short so that the table stays in L1.
    # The last, partly filled vector of columns repeats the last column; only `count` are copied.
    for i in range(whole + lanes):
        r = min(i, count - 1)
        for j in range(3):
            place[3 * i + j] = <int32_t> (columns[r, j] * lanes)
    # Second factors are counted from the first node.
    for i in range(nodes):
        steps[2 * i], steps[2 * i + 1] = tree[i, 0], tree[i, 1] - base
    for group in prange((n + lanes - 1) // lanes, schedule="static", nogil=True,
                        num_threads=n_threads):
        i = group * lanes
        rows = min(lanes, n - i)
        entry = scratch + threadid() * size
        row = entry + (base + nodes) * lanes
        for r in range(lanes):
            entry[r] = 1
        _entries(&A[i, 0], width, <int> rows, steps, nodes, one, entry, lanes)
        direct = rows == lanes and (
            not stream or (gzk_on_boundary(&out[i, 0]) and gzk_on_boundary(&out[i + 1, 0])))
        if direct:
            _columns(entry, place, one, &out[i, 0], ldo, whole, stream)
        else:
            _columns(entry, place, one, row, whole + lanes, whole, False)
        if whole < count:
            _columns(entry, place + 3 * whole, one, row + whole, whole + lanes, lanes, False)
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
    gzk_free(steps)


cdef inline void _entries(const floating* rows, Py_ssize_t width, int count,
                          const Py_ssize_t* steps, Py_ssize_t nodes, const floating* one,
                          floating* entry, Py_ssize_t lanes) noexcept nogil:
    """Load a group of rows, one a lane, and form the nodes."""
    if floating is float:
        gzk_load_radial_f32(rows, width, count, width, entry + lanes)
        gzk_nodes_f32(NULL, entry, steps, one, entry + (1 + width) * lanes, 0, nodes)
    else:
        gzk_load_radial_f64(rows, width, count, width, entry + lanes)
        gzk_nodes_f64(NULL, entry, steps, one, entry + (1 + width) * lanes, 0, nodes)


cdef inline void _columns(const floating* entry, const int32_t* column, const floating* one,
                          floating* out, Py_ssize_t ldo, Py_ssize_t count,
                          bint stream) noexcept nogil:
    if floating is float:
        gzk_columns_f32(entry, entry, entry, column, one, out, ldo, count, stream)
    else:
        gzk_columns_f64(entry, entry, entry, column, one, out, ldo, count, stream)
