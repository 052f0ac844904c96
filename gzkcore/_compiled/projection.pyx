"""Projections by the Walsh-Hadamard transform, of dense and of CSR rows, for `projection`.

Formula    hadamard_projection: out[i, a] = scale (H D x)[rows[a]], and fast_jl_projection:
           out[i] = scale P H D x, for x = X[i] with zeros up to n = 2^p, D signs, P sparse.
Why        H = H_(n/K) (x) H_K. Of the outer factor only the rows that are kept are multiplied out:
           each piece of K columns is transformed in the cache, and k of its numbers are added to
           the sums, with signs. Pieces of padding are skipped. So no row is ever held as a whole.
Cost       hadamard_projection: log2(K) + 1 + k / K additions for each of the columns that there
           are; K is from k / 4 to 4 k, as the cache allows. CSR: the same for the pieces in which
           one of the rows of a tile has an entry. fast_jl_projection: n log2(n) additions a row,
           and a fused operation for each entry of P.
Order      Parallel over tiles of as many rows as a vector has lanes: lane i of everything is row i,
           see projection.h; hadamard_projection takes fewer than a quarter of that one by one.
           Pieces in rising order, the same additions for each row either way: the same bits for any
           number of threads and any split of the rows, dense and CSR.
Layout     X (n, d) in C order or CSR with sorted columns; signs (passes, d); P in CSR; out in C
           order. Scratch for each thread: K + k (fast_jl_projection: n + k) times lanes.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from .checks cimport agree, inside
from .hadamard cimport hadamard
from .leaf cimport (
    GZK_FENCE,
    GZK_LANES_F32,
    GZK_LANES_F64,
    PAGE,
    gzk_alloc,
    gzk_free,
    gzk_on_boundary,
    index,
)
from .sketch cimport store_rows

cdef enum:
    MOST = 16    # lanes of the widest vector


cdef inline bint _fill(const floating* data, const index* indices, const index* indptr,
                       Py_ssize_t* at, int count, const floating* sign, Py_ssize_t start,
                       Py_ssize_t size, Py_ssize_t lanes, floating* y) noexcept nogil:
    """y (size, lanes) <- columns from `start` on of CSR rows; False, and y as it was, if all are 0.

    at[r] is the first entry of row r that is not before `start`, and then not before the end.
    """
    cdef Py_ssize_t r, end = start + size
    cdef bint any_entry = False
    for r in range(count):
        while at[r] < indptr[r + 1] and indices[at[r]] < end:
            if not any_entry:
                memset(y, 0, size * lanes * sizeof(floating))
                any_entry = True
            y[(indices[at[r]] - start) * lanes + r] += sign[indices[at[r]]] * data[at[r]]
            at[r] += 1
    return any_entry


cdef inline bint _load(const floating* X, const index* indices, const index* indptr, Py_ssize_t* at,
                       Py_ssize_t i, int count, Py_ssize_t d, const floating* sign,
                       Py_ssize_t start, Py_ssize_t size, Py_ssize_t lanes,
                       floating* y) noexcept nogil:
    """y (size, lanes) <- columns from `start` on of the rows from i on, times signs, then zeros.

    False, and y as it was, if the rows are CSR and have nothing there. There may be one lane.
    """
    cdef Py_ssize_t columns = min(size, d - start), j
    if indptr != NULL:
        return _fill(X, indices, indptr + i, at, count, sign, start, size, lanes, y)
    X = X + i * d + start
    if lanes == 1:
        for j in range(columns):
            y[j] = sign[start + j] * X[j]
    else:
        load_signed(X, d, count, sign + start, columns, y)
    memset(y + columns * lanes, 0, (size - columns) * lanes * sizeof(floating))
    return True


cdef inline void _begin(const index* indptr, Py_ssize_t i, int count,
                        Py_ssize_t* at) noexcept nogil:
    """at <- the first entries of the CSR rows from i on."""
    cdef Py_ssize_t r
    if indptr != NULL:
        for r in range(count):
            at[r] = indptr[i + r]


cdef inline bint _fits(const floating* p, Py_ssize_t columns, Py_ssize_t lanes) noexcept nogil:
    """Whether every row can be streamed by whole vectors."""
    return gzk_on_boundary(p) and columns % lanes == 0


def hadamard_projection(
    const floating[:, ::1] X,           # IN   (n_rows, d)
    const floating[:, ::1] signs,       # IN   (passes, d)
    const int32_t[::1] rows,            # IN   (k,), below n
    Py_ssize_t which,                   # IN   the pass
    int bits,                           # IN   log2(K), K <= n
    floating scale,
    Py_ssize_t first,                   # IN   the first of the columns of out to write
    floating[:, ::1] out,               # OUT  (n_rows, first + k or more)
    bint stream,
    int n_threads,
):
    """One pass of the projection of dense rows; see the head of this file."""
    agree(X.shape[1] == signs.shape[1] and X.shape[0] == out.shape[0], "X, signs and out")
    _hadamard_projection[floating, int32_t](&X[0, 0], NULL, NULL, signs, rows, which, bits, scale,
                                            first, out, stream, n_threads)


def hadamard_projection_sparse(
    const floating[::1] data,           # IN   (nnz,)
    const index[::1] indices,           # IN   (nnz,), rising in each row
    const index[::1] indptr,            # IN   (n_rows + 1,)
    const floating[:, ::1] signs,
    const int32_t[::1] rows,
    Py_ssize_t which,
    int bits,
    floating scale,
    Py_ssize_t first,
    floating[:, ::1] out,               # OUT  (n_rows, first + k or more)
    bint stream,
    int n_threads,
):
    """The same for CSR rows."""
    agree(indptr.shape[0] == out.shape[0] + 1, "X and out")
    _hadamard_projection(&data[0], &indices[0], &indptr[0], signs, rows, which, bits, scale, first,
                         out, stream, n_threads)


cdef int _hadamard_projection(const floating* X, const index* indices, const index* indptr,
                              const floating[:, ::1] signs, const int32_t[::1] rows,
                              Py_ssize_t which, int bits, floating scale, Py_ssize_t first,
                              floating[:, ::1] out, bint stream, int n_threads) except -1:
    """Write one pass of the projection of dense rows, or of CSR ones where indptr isn't NULL."""
    cdef:
        Py_ssize_t n = out.shape[0], d = signs.shape[1], k = rows.shape[0]
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t each = <Py_ssize_t> 1 << bits, pieces = (d + each - 1) // each
        Py_ssize_t size = (each + k) * lanes + PAGE, tile, piece, i, r, j
        int count
        floating* scratch
        floating* y
        floating* acc
        Py_ssize_t* cursors
        Py_ssize_t* at
    if n == 0 or k == 0:
        return 0
    agree(0 <= which < signs.shape[0] and 0 <= bits < 31 and 0 <= first <= out.shape[1] - k,
          "signs, rows and out")
    stream = stream and _fits(&out[0, first], out.shape[1], lanes)
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    cursors = <Py_ssize_t*> gzk_alloc(n_threads * MOST * sizeof(Py_ssize_t))
    if scratch == NULL or cursors == NULL:
        gzk_free(scratch)
        gzk_free(cursors)
        raise MemoryError("no memory for the scratch space of hadamard_projection")
    for tile in prange((n + lanes - 1) // lanes, schedule="dynamic", nogil=True,
                       num_threads=n_threads):
        i = tile * lanes
        count = <int> min(lanes, n - i)
        y = scratch + threadid() * size
        acc = y + each * lanes
        at = cursors + threadid() * MOST
        _begin(indptr, i, count, at)
        if 4 * count <= lanes:
            for r in range(count):
                memset(acc, 0, k * sizeof(floating))
                for piece in range(pieces):
                    if _load(X, indices, indptr, at + r, i + r, 1, d, &signs[which, 0],
                             piece * each, each, 1, y):
                        hadamard(y, y, each)
                        add_signed_row(y, &rows[0], k, bits, piece, acc)
                for j in range(k):
                    out[i + r, first + j] = scale * acc[j]
            continue
        memset(acc, 0, k * lanes * sizeof(floating))
        for piece in range(pieces):
            if _load(X, indices, indptr, at, i, count, d, &signs[which, 0], piece * each, each,
                     lanes, y):
                hadamard_lanes(y, each)
                add_signed(y, &rows[0], k, bits, piece, acc)
        store_rows(acc, k, scale, &out[i, first], out.shape[1], count, stream)
        GZK_FENCE()
    gzk_free(scratch)
    gzk_free(cursors)
    return 0


def fast_jl_projection(
    const floating[:, ::1] X,           # IN   (n_rows, d)
    const floating[::1] signs,          # IN   (d,)
    const floating[::1] P,              # IN   (nnz of P,)
    const int32_t[::1] P_indices,       # IN   (nnz of P,), below n
    const int64_t[::1] P_indptr,        # IN   (k + 1,)
    int bits,                           # IN   log2(n)
    floating scale,
    floating[:, ::1] out,               # OUT  (n_rows, k)
    bint stream,
    int n_threads,
):
    """The sparse product with the transform of dense rows; see the head of this file."""
    agree(X.shape[1] == signs.shape[0] and X.shape[0] == out.shape[0], "X, signs and out")
    _fast_jl_projection[floating, int32_t](&X[0, 0], NULL, NULL, signs, P, P_indices, P_indptr,
                                           bits, scale, out, stream, n_threads)


def fast_jl_projection_sparse(
    const floating[::1] data,           # IN   (nnz,)
    const index[::1] indices,           # IN   (nnz,), rising in each row
    const index[::1] indptr,            # IN   (n_rows + 1,)
    const floating[::1] signs,
    const floating[::1] P,
    const int32_t[::1] P_indices,
    const int64_t[::1] P_indptr,
    int bits,
    floating scale,
    floating[:, ::1] out,               # OUT  (n_rows, k)
    bint stream,
    int n_threads,
):
    """The same for CSR rows."""
    agree(indptr.shape[0] == out.shape[0] + 1, "X and out")
    _fast_jl_projection(&data[0], &indices[0], &indptr[0], signs, P, P_indices, P_indptr, bits,
                        scale, out, stream, n_threads)


cdef int _fast_jl_projection(const floating* X, const index* indices, const index* indptr,
                             const floating[::1] signs, const floating[::1] P,
                             const int32_t[::1] P_indices, const int64_t[::1] P_indptr, int bits,
                             floating scale, floating[:, ::1] out, bint stream,
                             int n_threads) except -1:
    """Write the products of P with dense rows' transforms, or CSR ones' if indptr isn't NULL."""
    cdef:
        Py_ssize_t n = out.shape[0], d = signs.shape[0], k = out.shape[1]
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t each = <Py_ssize_t> 1 << bits
        Py_ssize_t size = (each + k) * lanes + PAGE, tile, i
        int count
        floating* scratch
        floating* y
        floating* acc
        Py_ssize_t* cursors
        Py_ssize_t* at
    if n == 0:
        return 0
    agree(0 <= bits < 31 and d <= each and P_indptr.shape[0] == k + 1
          and P_indices.shape[0] == P.shape[0], "signs, P and out")
    for i in range(k):
        agree(0 <= P_indptr[i] <= P_indptr[i + 1] <= P.shape[0], "P")
    if P.shape[0]:
        inside(&P_indices[0], P.shape[0], 1, each, "P_indices")
    stream = stream and _fits(&out[0, 0], out.shape[1], lanes)
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    cursors = <Py_ssize_t*> gzk_alloc(n_threads * MOST * sizeof(Py_ssize_t))
    if scratch == NULL or cursors == NULL:
        gzk_free(scratch)
        gzk_free(cursors)
        raise MemoryError("no memory for the scratch space of fast_jl_projection")
    for tile in prange((n + lanes - 1) // lanes, schedule="dynamic", nogil=True,
                       num_threads=n_threads):
        i = tile * lanes
        count = <int> min(lanes, n - i)
        y = scratch + threadid() * size
        acc = y + each * lanes
        at = cursors + threadid() * MOST
        _begin(indptr, i, count, at)
        if _load(X, indices, indptr, at, i, count, d, &signs[0], 0, each, lanes, y):
            hadamard_lanes(y, each)
            sparse_product(&P[0], &P_indices[0], &P_indptr[0], k, y, acc)
        else:
            memset(acc, 0, k * lanes * sizeof(floating))
        store_rows(acc, k, scale, &out[i, 0], out.shape[1], count, stream)
        GZK_FENCE()
    gzk_free(scratch)
    gzk_free(cursors)
    return 0
