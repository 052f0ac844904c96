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

from .leaf cimport (
    GZK_FENCE,
    GZK_LANES_F32,
    GZK_LANES_F64,
    PAGE,
    gzk_alloc,
    gzk_free,
    load_radial,
    nodes,
    place_columns,
    write_group,
)


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
        Py_ssize_t n = A.shape[0], width = A.shape[1], n_nodes = tree.shape[0]
        Py_ssize_t count = columns.shape[0]
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t whole = count // lanes * lanes
        Py_ssize_t base = 1 + width, ones = max(whole + lanes, n_nodes)
        Py_ssize_t ldo = out.strides[0] // <Py_ssize_t> sizeof(floating)
        Py_ssize_t group, i, j, rows, size
        int32_t* place
        Py_ssize_t* steps
        floating* scratch
        floating* one
        floating* entry
        floating* row
    if n == 0 or count == 0:
        return
    if out.shape[0] != n or out.shape[1] != count or out.strides[1] != sizeof(floating):
        raise ValueError("out must have shape (n, count) and unit column stride")
    # A thread's scratch: its entries, and rows that are not finished.
    size = (base + n_nodes + whole + lanes) * lanes + PAGE
    scratch = <floating*> gzk_alloc((n_threads * size + ones) * sizeof(floating))
    place = <int32_t*> gzk_alloc(3 * (whole + lanes) * sizeof(int32_t))
    steps = <Py_ssize_t*> gzk_alloc(max(2 * n_nodes, 1) * sizeof(Py_ssize_t))
    if scratch == NULL or place == NULL or steps == NULL:
        gzk_free(scratch)
        gzk_free(place)
        gzk_free(steps)
        raise MemoryError("no memory for the scratch space of product_features")
    one = scratch + n_threads * size
    for i in range(ones):
        one[i] = 1
    place_columns(&columns[0, 0], count, lanes, place)
    # Second factors are counted from the first node.
    for i in range(n_nodes):
        steps[2 * i], steps[2 * i + 1] = tree[i, 0], tree[i, 1] - base
    for group in prange((n + lanes - 1) // lanes, schedule="static", nogil=True,
                        num_threads=n_threads):
        i = group * lanes
        rows = min(lanes, n - i)
        entry = scratch + threadid() * size
        row = entry + (base + n_nodes) * lanes
        for j in range(lanes):
            entry[j] = 1
        load_radial(&A[i, 0], width, <int> rows, width, entry + lanes)
        nodes(<const floating*> NULL, entry, steps, one, entry + base * lanes, 0, n_nodes)
        write_group(entry, entry, entry, place, one, row, &out[i, 0], ldo, rows, count, lanes,
                    stream)
        GZK_FENCE()
    gzk_free(scratch)
    gzk_free(place)
    gzk_free(steps)
