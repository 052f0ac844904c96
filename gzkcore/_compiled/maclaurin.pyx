"""Random Maclaurin features, for `maclaurin`: products of projections on random signs.

Formula    z_j = envelope weights_j prod_(i < N_j) (W_i x)_j, for columns of falling degree N_j, so
           that factor i belongs to the first counts_i columns.
Why        With columns sorted by degree every factor is one product with a matrix and one
           multiplication of adjacent numbers. A tile of projections never leaves the cache.
Cost       2 d + 1 flops for each factor of each column; the output is read and written once for
           each factor, from the cache.
Order      Parallel over tiles of rows; a product by BLAS may round a row otherwise in a tile of
           another size, the package's own doesn't.
Layout     X (n, d) and out (n, F) in C order; W (d, m): the signs of factor 0, then those of
           factor 1 and so on, each padded with zeros to a multiple of LANES columns.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int64_t

from .blas cimport gemm
from .checks cimport agree
from .leaf cimport PAGE, dots, gzk_alloc, gzk_free

cdef enum:
    BLOCK = 512
    BLAS_ROWS = 256
    ROWS = 16
    LANES = 16


def maclaurin_features(
    const floating[:, ::1] X,          # IN   (n, d)
    const floating[:, ::1] W,          # IN   (d, m), signs
    const int64_t[::1] counts,         # IN   (largest degree,), falling
    const floating[::1] weights,       # IN   (F,)
    const floating[::1] envelope,      # IN   (n,)
    floating[:, ::1] out,              # OUT  (n, F)
    bint blas,                         # IN   multiply by BLAS, which is held to one thread
    int n_threads,
):
    """Random Maclaurin features of dense rows; see the head of this file."""
    cdef:
        Py_ssize_t n = X.shape[0], rows = BLAS_ROWS if blas else ROWS
        Py_ssize_t size = rows * BLOCK + PAGE, tile, i, used = 0
        floating* scratch
    if n == 0 or out.shape[1] == 0:
        return
    for i in range(counts.shape[0]):
        used += (counts[i] + LANES - 1) // LANES * LANES
        agree(0 <= counts[i] <= out.shape[1], "counts and out")
    agree(W.shape[0] == X.shape[1] and used <= W.shape[1] and weights.shape[0] == out.shape[1]
          and envelope.shape[0] == n and out.shape[0] == n, "X, W, counts, weights and out")
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch space of maclaurin_features")
    for tile in prange((n + rows - 1) // rows, schedule="static", nogil=True,
                       num_threads=n_threads):
        i = tile * rows
        _tile(X, W, counts, weights, envelope, out, blas, i, min(rows, n - i),
              scratch + threadid() * size)
    gzk_free(scratch)


cdef void _tile(const floating[:, ::1] X, const floating[:, ::1] W, const int64_t[::1] counts,
                const floating[::1] weights, const floating[::1] envelope, floating[:, ::1] out,
                bint blas, Py_ssize_t i, Py_ssize_t count, floating* t) noexcept nogil:
    """Write the rows from i on."""
    cdef Py_ssize_t first = 0, factor, padded, block, start, width, used, r, j
    cdef floating* z
    for r in range(count):
        z = &out[i + r, 0]
        for j in range(out.shape[1]):
            z[j] = weights[j] * envelope[i + r]
    for factor in range(counts.shape[0]):
        padded = (counts[factor] + LANES - 1) // LANES * LANES
        for block in range((padded + BLOCK - 1) // BLOCK):
            start = block * BLOCK
            width = min(<Py_ssize_t> BLOCK, padded - start)
            used = min(width, counts[factor] - start)
            if blas:
                gemm(&X[i, 0], &W[0, first + start], W.shape[1], t, BLOCK, count, width,
                     X.shape[1])
            else:
                for r in range(0, count, 4):
                    dots(&X[i + r, 0], X.shape[1], &W[0, first + start], W.shape[1], t + r * BLOCK,
                         BLOCK, X.shape[1], width, <int> min(4, count - r))
            for r in range(count):
                z = &out[i + r, start]
                for j in range(used):
                    z[j] = z[j] * t[r * BLOCK + j]
        first += padded
