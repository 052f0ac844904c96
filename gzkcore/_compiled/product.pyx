"""Products of chosen columns of several matrices, row by row; and which columns to choose.

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
from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport int32_t

from .checks cimport agree, inside
from .leaf cimport (
    GZK_FENCE,
    GZK_LANES_F32,
    GZK_LANES_F64,
    PAGE,
    gzk_alloc,
    gzk_free,
    load_radial,
    nodes,
    padded,
    place_columns,
    write_group,
)


cdef int _check(const Py_ssize_t[:, ::1] tree, const Py_ssize_t[:, ::1] columns,
                Py_ssize_t base) except -1:
    """Raise ValueError unless nodes are of entries before them, and columns of any."""
    cdef Py_ssize_t i, n_nodes = tree.shape[0]
    agree(columns.shape[1] == 3 and (n_nodes == 0 or tree.shape[1] == 2), "tree and columns")
    for i in range(n_nodes):
        inside(&tree[i, 0], 2, 1, base + i, "tree")
    inside(&columns[0, 0], 3 * columns.shape[0], 1, base + n_nodes, "columns")
    return 0


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
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t count = columns.shape[0], whole = count // lanes * lanes
        Py_ssize_t base = 1 + width, ones = max(padded(count, lanes), n_nodes)
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
    _check(tree, columns, base)
    # A thread's scratch: its entries, and rows that are not finished.
    size = (base + n_nodes + whole + lanes) * lanes + PAGE
    scratch = <floating*> gzk_alloc((n_threads * size + ones) * sizeof(floating))
    place = <int32_t*> gzk_alloc(3 * padded(count, lanes) * sizeof(int32_t))
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
    with nogil, parallel(num_threads=n_threads):
        for group in prange((n + lanes - 1) // lanes, schedule="static"):
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


# ---- which columns


cdef struct Parts:
    const double* values           # products of the parts before, falling
    const Py_ssize_t* chosen       # their columns, `width` of each
    Py_ssize_t width
    const double* energy           # of the next part, falling
    const Py_ssize_t* order        # which column each is
    Py_ssize_t* place              # of each product before, the next column that it meets


cdef inline bint _before(const Parts* of, Py_ssize_t p, Py_ssize_t r) noexcept nogil:
    """Whether the next pair of p comes before that of r: the larger one, else by columns."""
    cdef double one = of.values[p] * of.energy[of.place[p]]
    cdef double other = of.values[r] * of.energy[of.place[r]]
    cdef Py_ssize_t j
    if one != other:
        return one > other
    for j in range(of.width):
        if of.chosen[p * of.width + j] != of.chosen[r * of.width + j]:
            return of.chosen[p * of.width + j] < of.chosen[r * of.width + j]
    return of.order[of.place[p]] < of.order[of.place[r]]


cdef inline void _sink(const Parts* of, Py_ssize_t* heap, Py_ssize_t size,
                       Py_ssize_t at) noexcept nogil:
    """Move an entry down until none below comes before it."""
    cdef Py_ssize_t moved = heap[at], below = 2 * at + 1
    while below < size:
        if below + 1 < size and _before(of, heap[below + 1], heap[below]):
            below += 1
        if not _before(of, heap[below], moved):
            break
        heap[at] = heap[below]
        at, below = below, 2 * below + 1
    heap[at] = moved


def product_columns(
    const double[::1] values,             # IN   (n,), falling: products of the parts before
    const Py_ssize_t[:, ::1] chosen,      # IN   (n, k), their columns
    const double[::1] energy,             # IN   (m,), falling: of the columns of the next part
    const Py_ssize_t[::1] order,          # IN   (m,), which columns these are
    Py_ssize_t[:, ::1] work,              # WORK (2, n)
    double[::1] products,                 # OUT  (count,)
    Py_ssize_t[:, ::1] columns,           # OUT  (count, k + 1)
):
    """The largest products with one part more, largest first; return how many are not 0.

    A heap holds of each product before the largest pair that is not taken yet: log n comparisons
    for each pair that is. Equal ones come in the order of their columns.
    """
    cdef Parts of
    cdef Py_ssize_t size = values.shape[0], count = 0, j, p
    cdef Py_ssize_t* heap
    if size == 0 or energy.shape[0] == 0 or products.shape[0] == 0:
        return 0
    of.values, of.chosen, of.width = &values[0], &chosen[0, 0], chosen.shape[1]
    of.energy, of.order, of.place = &energy[0], &order[0], &work[1, 0]
    heap = &work[0, 0]
    with nogil:
        for p in range(size):
            heap[p], of.place[p] = p, 0
        for p in range(size // 2 - 1, -1, -1):
            _sink(&of, heap, size, p)
        while count < products.shape[0] and size > 0:
            p = heap[0]
            products[count] = of.values[p] * of.energy[of.place[p]]
            if not products[count] > 0:
                break
            for j in range(of.width):
                columns[count, j] = of.chosen[p * of.width + j]
            columns[count, of.width] = of.order[of.place[p]]
            count += 1
            of.place[p] += 1
            if of.place[p] == energy.shape[0]:
                size -= 1
                heap[0] = heap[size]
            if size > 0:
                _sink(&of, heap, size, 0)
    return count
