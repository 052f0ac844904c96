"""Fastfood features, for `fastfood`: products with structured frequencies, then cosines and sines.

Formula    h = lengths H (normals * (H (signs * x))[permutation]) for each block of d' angles, in
           half turns; z = scale [cos(pi h), sin(pi h)] as in fourier.pyx.
Why        Two Walsh-Hadamard transforms and three multiplications replace a product with d' x d'
           normal numbers.
Cost       2 d' log2(d') additions, d' reads in random order out of the first cache, and d' cosines
           and sines for each block of d' angles; the output is written once.
Order      Parallel over tiles of rows; within a tile over blocks, whose draws then stay in the
           first cache. Small blocks are worked on together, up to 512 angles, so that cosines and
           sines come in whole vectors. Each row by itself: the same bits for any number of threads.
Layout     X (n, d) in C order or CSR, d <= d'; signs, permutation, normals, lengths (blocks,
           d'), d' >= 16 a power of two; out (n, columns) in C order.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t

from .checks cimport agree
from .hadamard cimport hadamard, permute
from .leaf cimport GZK_FENCE, PAGE, gzk_alloc, gzk_free, index
from .trig cimport write_angles

cdef enum:
    ANGLES = 512      # angles of a row that are worked on together, if blocks are smaller
    ROWS = 16


def fastfood_features(
    const floating[:, ::1] X,           # IN   (n, d)
    const floating[:, ::1] signs,       # IN   (blocks, d'), times the scale of the columns
    const int32_t[:, ::1] permutation,  # IN   (blocks, d')
    const floating[:, ::1] normals,     # IN   (blocks, d')
    const floating[:, ::1] lengths,     # IN   (blocks, d'), so that angles are in half turns
    Py_ssize_t pairs,                   # IN   angles that give a cosine and a sine
    floating phase,                     # IN   of the odd column, in half turns
    floating scale,
    floating[:, ::1] out,               # OUT  (n, 2 pairs) or (n, 2 pairs + 1)
    bint stream,
    int n_threads,
):
    """Fastfood features of dense rows; see the head of this file."""
    _features[floating, int32_t](&X[0, 0], NULL, NULL, X.shape[0], X.shape[1], signs, permutation,
                                 normals, lengths, pairs, phase, scale, out, stream, n_threads)


def fastfood_features_sparse(
    const floating[::1] data,           # IN   (nnz,)
    const index[::1] indices,           # IN   (nnz,)
    const index[::1] indptr,            # IN   (n + 1,)
    const floating[:, ::1] signs,
    const int32_t[:, ::1] permutation,
    const floating[:, ::1] normals,
    const floating[:, ::1] lengths,
    Py_ssize_t pairs,
    floating phase,
    floating scale,
    floating[:, ::1] out,               # OUT  (n, 2 pairs) or (n, 2 pairs + 1)
    bint stream,
    int n_threads,
):
    """The same for CSR rows."""
    agree(indptr.shape[0] == out.shape[0] + 1, "X and out")
    _features(&data[0], &indices[0], &indptr[0], out.shape[0], 0, signs, permutation, normals,
              lengths, pairs, phase, scale, out, stream, n_threads)


cdef int _features(const floating* X, const index* indices, const index* indptr, Py_ssize_t n,
                   Py_ssize_t d, const floating[:, ::1] signs, const int32_t[:, ::1] permutation,
                   const floating[:, ::1] normals, const floating[:, ::1] lengths, Py_ssize_t pairs,
                   floating phase, floating scale, floating[:, ::1] out, bint stream,
                   int n_threads) except -1:
    """Write the features of n rows: dense ones of d columns, or CSR where indptr isn't NULL."""
    cdef:
        Py_ssize_t blocks = signs.shape[0], width = signs.shape[1]
        Py_ssize_t together = max(<Py_ssize_t> 1, ANGLES // max(<Py_ssize_t> 1, width))
        Py_ssize_t size = (together + 1) * width + PAGE, tile, group, i, first, count, b
        floating* scratch
        floating* angle
        floating* mixed
    if n == 0:
        return 0
    agree(width >= 16 and width & (width - 1) == 0 and d <= width and out.shape[0] == n
          and permutation.shape[0] == blocks and permutation.shape[1] == width
          and normals.shape[0] == blocks and normals.shape[1] == width
          and lengths.shape[0] == blocks and lengths.shape[1] == width
          and 0 <= 2 * pairs <= out.shape[1], "X, signs, permutation, normals, lengths and out")
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch space of fastfood_features")
    for tile in prange((n + ROWS - 1) // ROWS, schedule="static", nogil=True,
                       num_threads=n_threads):
        mixed = scratch + threadid() * size
        angle = mixed + width
        for group in range((blocks + together - 1) // together):
            first = group * together
            count = min(together, blocks - first)
            for i in range(tile * ROWS, min(n, (tile + 1) * ROWS)):
                for b in range(first, first + count):
                    _load(X, indices, indptr, i, d, &signs[b, 0], mixed, width)
                    _angles(mixed, &permutation[b, 0], &normals[b, 0], &lengths[b, 0],
                            angle + (b - first) * width, width)
                write_angles(angle, first * width, count * width, pairs, phase, scale, &out[i, 0],
                             out.shape[1], stream)
        GZK_FENCE()
    gzk_free(scratch)
    return 0


cdef inline void _load(const floating* X, const index* indices, const index* indptr, Py_ssize_t i,
                       Py_ssize_t d, const floating* signs, floating* mixed,
                       Py_ssize_t width) noexcept nogil:
    """mixed = signs times row i, with zeros up to the width of a block."""
    cdef Py_ssize_t j
    if indptr == NULL:
        for j in range(d):
            mixed[j] = signs[j] * X[i * d + j]
        for j in range(d, width):
            mixed[j] = 0
        return
    for j in range(width):
        mixed[j] = 0
    for j in range(<Py_ssize_t> indptr[i], <Py_ssize_t> indptr[i + 1]):
        mixed[indices[j]] += signs[indices[j]] * X[j]


cdef inline void _angles(floating* mixed, const int32_t* permutation, const floating* normals,
                         const floating* lengths, floating* angle, Py_ssize_t n) noexcept nogil:
    """angle = lengths H (normals * (H mixed)[permutation])."""
    cdef Py_ssize_t j
    hadamard(mixed, mixed, n)
    permute(mixed, permutation, normals, angle, n)
    hadamard(angle, angle, n)
    for j in range(n):
        angle[j] = lengths[j] * angle[j]
