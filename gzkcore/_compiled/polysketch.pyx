"""PolySketch of dense and of CSR rows, for `polysketch`: a binary tree of sketches of pairs.

Formula    leaf t:  u[hashes[t, s, j]] += signs[t, s, j] x[j] / sqrt(n_nonzeros), e_0 for t >= p;
           node:    T(u, v)[r] = (H D u)[i_r] (H D' v)[j_r] / sqrt(width of T)
           from the leaves up; the root goes to columns first to first + count of out. For the
           Gaussian x has length 1 and the root is multiplied by exp(log_factor - |x|^2 / 2) |x|^p,
           in one exponential: neither power overflows.
Why        A sketch of x (x) ... (x) x whose variance grows with the number of factors like a power
           of it, not exponentially.
Cost       n_nonzeros additions for each entry and leaf, and a Walsh-Hadamard transform and m reads
           in random order for each child of a node.
Order      Parallel over rows, each by itself: the same bits for any number of threads.
Layout     X (n, d) in C order or CSR without entries that stand twice; node k has the children 2k
           and 2k + 1, the root is 1 and the leaves are q to 2q - 1; m >= 16 a power of two.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport exp, log, sqrt
from libc.stdint cimport int8_t, int32_t
from libc.string cimport memset

from .checks cimport agree, inside
from .hadamard cimport hadamard, permute
from .leaf cimport PAGE, gzk_alloc, gzk_free, index


def poly_sketch(
    const floating[:, ::1] X,               # IN   (n, d)
    const floating[::1] scale,              # IN   (d,)
    floating last,                          # IN   of a constant column, if hashes have one more
    Py_ssize_t degree,                      # IN   leaves that have x
    const int32_t[:, :, ::1] hashes,        # IN   (q, n_nonzeros, d or d + 1)
    const int8_t[:, :, ::1] signs,          # IN   (q, n_nonzeros, d or d + 1)
    const floating[:, :, ::1] node_signs,   # IN   (q, 2, m), D and D' of each node
    const int32_t[:, :, ::1] places,        # IN   (q, 2, m), i and j of each node
    bint gaussian,
    Py_ssize_t first,
    Py_ssize_t count,
    double log_factor,                      # IN   of the Gaussian's degree: -log(p!) / 2
    floating[:, ::1] out,                   # OUT  (n, first + count or more)
    int n_threads,
):
    """PolySketch of dense rows; see the head of this file."""
    agree(X.shape[1] == scale.shape[0], "X and scale")
    _sketch[floating, int32_t](&X[0, 0], NULL, NULL, X.shape[0], scale, last, degree, hashes, signs,
                               node_signs, places, gaussian, first, count, log_factor, out,
                               n_threads)


def poly_sketch_sparse(
    const floating[::1] data,               # IN   (nnz,)
    const index[::1] indices,               # IN   (nnz,)
    const index[::1] indptr,                # IN   (n + 1,)
    const floating[::1] scale,
    floating last,
    Py_ssize_t degree,
    const int32_t[:, :, ::1] hashes,
    const int8_t[:, :, ::1] signs,
    const floating[:, :, ::1] node_signs,
    const int32_t[:, :, ::1] places,
    bint gaussian,
    Py_ssize_t first,
    Py_ssize_t count,
    double log_factor,
    floating[:, ::1] out,
    int n_threads,
):
    """The same for CSR rows."""
    agree(indptr.shape[0] == out.shape[0] + 1, "X and out")
    _sketch(&data[0], &indices[0], &indptr[0], out.shape[0], scale, last, degree, hashes, signs,
            node_signs, places, gaussian, first, count, log_factor, out, n_threads)


cdef int _sketch(const floating* X, const index* indices, const index* indptr, Py_ssize_t n,
                 const floating[::1] scale, floating last, Py_ssize_t degree,
                 const int32_t[:, :, ::1] hashes, const int8_t[:, :, ::1] signs,
                 const floating[:, :, ::1] node_signs, const int32_t[:, :, ::1] places,
                 bint gaussian, Py_ssize_t first, Py_ssize_t count, double log_factor,
                 floating[:, ::1] out, int n_threads) except -1:
    """Write the sketches of n dense rows, or of CSR ones where indptr isn't NULL."""
    cdef:
        Py_ssize_t d = scale.shape[0], columns = hashes.shape[2]
        Py_ssize_t leaves = hashes.shape[0], inner = node_signs.shape[2]
        Py_ssize_t m = max(inner, count), i, begin, stored
        Py_ssize_t buffers = _buffers(leaves) * m, size = columns + buffers + PAGE
        const index* where
        floating* scratch
        floating* x
    if n == 0:
        return 0
    agree(leaves > 0 and leaves & (leaves - 1) == 0 and hashes.shape[1] > 0
          and d <= columns <= d + 1 and signs.shape[0] == leaves
          and signs.shape[1] == hashes.shape[1] and signs.shape[2] == columns,
          "X, hashes and signs")
    agree(inner >= 16 and inner & (inner - 1) == 0 and node_signs.shape[0] == leaves
          and node_signs.shape[1] == 2 and places.shape[0] == leaves and places.shape[1] == 2
          and places.shape[2] == inner and (leaves == 1 or count <= inner), "signs and places")
    agree(first >= 0 and count > 0 and first + count <= out.shape[1] and out.shape[0] == n,
          "trees and out")
    inside(&hashes[0, 0, 0], leaves * hashes.shape[1] * columns, 1,
           inner if leaves > 1 else count, "hashes")
    inside(&places[0, 0, 0], 2 * leaves * inner, 1, inner, "places")
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch space of poly_sketch")
    for i in prange(n, schedule="static", nogil=True, num_threads=n_threads):
        x = scratch + threadid() * size + buffers
        begin = i * d if indptr == NULL else indptr[i]
        stored = d if indptr == NULL else indptr[i + 1] - indptr[i]
        where = <const index*> NULL if indptr == NULL else indices + begin
        _scaled(X + begin, where, stored, &scale[0], x)
        if columns > d:
            x[stored] = last
        _row(x, where, stored, stored + columns - d, degree, hashes, signs, node_signs, places,
             gaussian, count, log_factor, x - buffers, m, &out[i, first])
    gzk_free(scratch)
    return 0


cdef inline void _scaled(const floating* row, const index* where, Py_ssize_t stored,
                         const floating* scale, floating* x) noexcept nogil:
    """x = the entries of a row times the scale of their columns: all in order if where is NULL."""
    cdef Py_ssize_t j
    if where == NULL:
        for j in range(stored):
            x[j] = scale[j] * row[j]
    else:
        for j in range(stored):
            x[j] = scale[where[j]] * row[j]


cdef inline Py_ssize_t _buffers(Py_ssize_t leaves) noexcept nogil:
    """How many vectors a tree needs: two on every floor."""
    cdef Py_ssize_t floors = 1
    while leaves > 1:
        leaves = leaves // 2
        floors = floors + 1
    return 2 * floors


cdef inline void _row(floating* x, const index* where, Py_ssize_t stored, Py_ssize_t entries,
                      Py_ssize_t degree, const int32_t[:, :, ::1] hashes,
                      const int8_t[:, :, ::1] signs, const floating[:, :, ::1] node_signs,
                      const int32_t[:, :, ::1] places, bint gaussian, Py_ssize_t count,
                      double log_factor, floating* buffers, Py_ssize_t m,
                      floating* out) noexcept nogil:
    cdef:
        double squares = 0
        floating factor = 1, shorter
        Py_ssize_t j
    if gaussian:
        for j in range(entries):
            squares = squares + <double> x[j] * x[j]
        if squares > 0:
            log_factor = log_factor + 0.5 * (degree * log(squares) - squares)
            shorter = <floating> (1 / sqrt(squares))
            for j in range(entries):
                x[j] = shorter * x[j]
        factor = <floating> exp(log_factor)
    _node(x, where, stored, entries, degree, hashes, signs, node_signs, places, 1, count, buffers,
          m, buffers)
    for j in range(count):
        out[j] = factor * buffers[j]


cdef void _node(const floating* x, const index* where, Py_ssize_t stored, Py_ssize_t entries,
                Py_ssize_t degree, const int32_t[:, :, ::1] hashes, const int8_t[:, :, ::1] signs,
                const floating[:, :, ::1] node_signs, const int32_t[:, :, ::1] places,
                Py_ssize_t node, Py_ssize_t width, floating* buffers, Py_ssize_t m,
                floating* out) noexcept nogil:
    """out = the sketch below a node, `width` numbers (whole vectors are written)."""
    cdef:
        Py_ssize_t leaves = hashes.shape[0], inner = node_signs.shape[2], j, t
        floating* u = buffers + 2 * m
        floating* v = buffers + 3 * m
    if node >= leaves:
        _leaf(x, where, stored, entries, node - leaves < degree, hashes, signs, node - leaves,
              width, out)
        return
    _node(x, where, stored, entries, degree, hashes, signs, node_signs, places, 2 * node, inner,
          u, m, u)
    _node(x, where, stored, entries, degree, hashes, signs, node_signs, places, 2 * node + 1,
          inner, u, m, v)
    for j in range(inner):
        u[j] = node_signs[node, 0, j] * u[j]
        v[j] = node_signs[node, 1, j] * v[j]
    hadamard(u, u, inner)
    hadamard(v, v, inner)
    for j in range(inner):
        out[j] = 1 / sqrt(<floating> width)
    t = (width + 15) // 16 * 16
    permute(u, &places[node, 0, 0], out, out, t)
    permute(v, &places[node, 1, 0], out, out, t)


cdef inline void _leaf(const floating* x, const index* where, Py_ssize_t stored,
                       Py_ssize_t entries, bint has_x, const int32_t[:, :, ::1] hashes,
                       const int8_t[:, :, ::1] signs, Py_ssize_t leaf, Py_ssize_t width,
                       floating* out) noexcept nogil:
    """CountSketch or OSNAP of x, whose last entry is of the constant column, or of e_0."""
    cdef:
        Py_ssize_t s, j, k, nonzeros = hashes.shape[1], last = hashes.shape[2] - 1
        floating share = 1 / sqrt(<floating> nonzeros)
    memset(out, 0, width * sizeof(floating))
    for s in range(nonzeros):
        if not has_x:
            out[hashes[leaf, s, 0]] += signs[leaf, s, 0] * share
            continue
        for j in range(stored):
            k = j if where == NULL else where[j]
            out[hashes[leaf, s, k]] += signs[leaf, s, k] * share * x[j]
        if stored < entries:
            out[hashes[leaf, s, last]] += signs[leaf, s, last] * share * x[stored]
