"""Random Fourier features, for `fourier`: products with the frequencies, then cosines and sines.

Formula    h = X W in half turns; z = scale [cos(pi h_j), sin(pi h_j) for j < pairs]; where there
           is an odd column, scale cos(pi (h + phase)) of the next frequency.
Why        The angles of a tile of rows never leave the cache: a product with 256 rows at a time is
           large enough for BLAS (at 16 rows it is half as fast), and cosine and sine together cost
           less than the product from some ten columns on. Few columns are multiplied here: BLAS
           spends its time on packing then.
Cost       2 d flops for each angle, about 25 for its cosine and sine; X is read once for each
           BLOCK angles, the output written once.
Order      Parallel over tiles of rows; within a tile over blocks of angles. A product by BLAS may
           round a row otherwise in a tile of another size; the others don't.
Layout     X (n, d) in C order or CSR, W (d, m) with m a multiple of a vector, out (n, columns) in
           C order: cosines, then sines, then the odd column.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid

from .blas cimport gemm
from .checks cimport agree
from .leaf cimport GZK_FENCE, PAGE, dots, gzk_alloc, gzk_free, index
from .trig cimport cos_sin, write_angles

cdef enum:
    BLOCK = 512       # angles of a row that are worked on together
    BLAS_ROWS = 256
    ROWS = 16


def cos_sin_rows(
    const floating[:, ::1] half_turns,  # IN   (n, m)
    floating scale,
    floating[:, ::1] cosines,           # OUT  (n, m)
    floating[:, ::1] sines,             # OUT  (n, m)
    bint stream,
):
    """scale cos(pi h) and scale sin(pi h) of every h.

    On one thread: it is there for tests and for the benchmark of one core. Features share their
    rows out, and call `cos_sin` within.
    """
    cdef Py_ssize_t i
    with nogil:
        for i in range(half_turns.shape[0]):
            if half_turns.shape[1]:
                cos_sin(&half_turns[i, 0], &cosines[i, 0], &sines[i, 0], half_turns.shape[1],
                        scale, stream)
        GZK_FENCE()


def fourier_features(
    const floating[:, ::1] X,          # IN   (n, d)
    const floating[:, ::1] W,          # IN   (d, m), in half turns, zero from the last angle on
    Py_ssize_t pairs,                  # IN   angles that give a cosine and a sine
    floating phase,                    # IN   of the odd column, in half turns
    floating scale,
    floating[:, ::1] out,              # OUT  (n, 2 pairs) or (n, 2 pairs + 1)
    bint blas,                         # IN   multiply by BLAS, which is held to one thread
    bint stream,
    int n_threads,
):
    """Fourier features of dense rows; see the head of this file."""
    cdef:
        Py_ssize_t n = X.shape[0], d = X.shape[1], m = W.shape[1]
        Py_ssize_t rows = BLAS_ROWS if blas else ROWS
        Py_ssize_t size = rows * BLOCK + PAGE, tile, block, i, count, first, width, r
        floating* scratch
        floating* angle
    if n == 0 or out.shape[1] == 0:
        return
    agree(W.shape[0] == d and out.shape[0] == n and 0 <= 2 * pairs <= out.shape[1],
          "X, W and out")
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch space of fourier_features")
    for tile in prange((n + rows - 1) // rows, schedule="static", nogil=True,
                       num_threads=n_threads):
        angle = scratch + threadid() * size
        i = tile * rows
        count = min(rows, n - i)
        for block in range((m + BLOCK - 1) // BLOCK):
            first = block * BLOCK
            width = min(<Py_ssize_t> BLOCK, m - first)
            if blas:
                gemm(&X[i, 0], &W[0, first], m, angle, BLOCK, count, width, d)
            else:
                for r in range(0, count, 4):
                    dots(&X[i + r, 0], d, &W[0, first], m, angle + r * BLOCK, BLOCK, d, width,
                         <int> min(4, count - r))
            for r in range(count):
                write_angles(angle + r * BLOCK, first, width, pairs, phase, scale, &out[i + r, 0],
                             out.shape[1], stream)
        GZK_FENCE()
    gzk_free(scratch)


def fourier_features_sparse(
    const floating[::1] data,          # IN   (nnz,)
    const index[::1] indices,          # IN   (nnz,)
    const index[::1] indptr,           # IN   (n + 1,)
    const floating[:, ::1] W,          # IN   (d, m), in half turns, zero from the last angle on
    Py_ssize_t pairs,
    floating phase,
    floating scale,
    floating[:, ::1] out,              # OUT  (n, 2 pairs) or (n, 2 pairs + 1)
    bint stream,
    int n_threads,
):
    """The same for CSR rows, at a cost of their entries."""
    cdef:
        Py_ssize_t n = out.shape[0], m = W.shape[1], size = BLOCK + PAGE
        Py_ssize_t i, block, first, width
        floating* scratch
        floating* angle
    if n == 0 or out.shape[1] == 0:
        return
    agree(indptr.shape[0] == n + 1 and 0 <= 2 * pairs <= out.shape[1], "X and out")
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch space of fourier_features_sparse")
    for i in prange(n, schedule="static", nogil=True, num_threads=n_threads):
        angle = scratch + threadid() * size
        for block in range((m + BLOCK - 1) // BLOCK):
            first = block * BLOCK
            width = min(<Py_ssize_t> BLOCK, m - first)
            _sparse_dots(&data[0] if data.shape[0] else NULL, indices, indptr[i], indptr[i + 1],
                         &W[0, first], m, angle, width)
            write_angles(angle, first, width, pairs, phase, scale, &out[i, 0], out.shape[1],
                         stream)
        GZK_FENCE()
    gzk_free(scratch)


cdef inline void _sparse_dots(const floating* data, const index[::1] indices, Py_ssize_t begin,
                              Py_ssize_t end, const floating* W, Py_ssize_t m, floating* angle,
                              Py_ssize_t width) noexcept nogil:
    """angle = the sum of the rows of W that an entry names, times it, in the order of the row."""
    cdef Py_ssize_t k, j
    cdef const floating* w
    cdef floating value
    for j in range(width):
        angle[j] = 0
    for k in range(begin, end):
        value = data[k]
        w = W + <Py_ssize_t> indices[k] * m
        for j in range(width):
            angle[j] = angle[j] + value * w[j]
