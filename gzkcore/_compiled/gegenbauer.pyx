"""Gegenbauer features: a polynomial per row, at the cosines between rows and directions.

Formula    out[i, j] = sum_k coefficients[i, k] p_k(<x_i, w_j>), with p_0 = 1, p_1 = t and
           p_(k+1) = t p_k - beta[k] p_(k-1). With the beta of `Recurrence` in
           `gegenbauer_columns.py` this is the sum of Eq 13 of Han, Zandieh, Avron; with beta = 0
           it is Horner's rule on monomials.
Why        Clenshaw's rule needs two fused operations per degree and direction, Horner's one; the
           plain recurrence needs three. Which of the two is safe is decided there.
Cost       n m (d + 2 q) fused operations (d + q by Horner); reads X and coefficients once, writes
           out once. For d = 3, q = 15 and Horner arithmetic and memory take equally long.
Order      Parallel over tiles of rows. In a tile, four rows share the loads of the directions
           (stored transposed, so that vectors run over directions). By Horner's rule a few cosines
           at a time turn into features in registers; by Clenshaw's, whose steps need more of them,
           by way of a strip of cosines in L1. Stores go past the cache if out is large.
Layout     X (n, d) unit rows, W (m, d) unit rows, out any row stride but unit column stride.
           The transposed directions of a strip lie together: at d = 784 steps of m columns, which
           are steps of pages, took twice as long.
           Each entry is computed by the same operations whatever the tile or thread: the same bits.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid

from .leaf cimport (
    GZK_FENCE,
    GZK_LANES_F32,
    GZK_LANES_F64,
    PAGE,
    clenshaw,
    dots,
    gzk_alloc,
    gzk_copy,
    gzk_free,
    gzk_on_boundary,
    horner,
)

# Rows whose cosines are formed together, columns that are worked on while they stay in L1, and rows
# that a thread takes at a time.
cdef enum:
    ROWS = 4
    COLUMNS = 256
    TILE = 64
    STRIP = ROWS * COLUMNS + PAGE


def gegenbauer_features(
    const floating[:, ::1] X,              # IN   (n, d), unit rows
    const floating[:, ::1] W,              # IN   (m, d), unit rows (times the recurrence's scale)
    const floating[:, ::1] coefficients,   # IN   (n, q + 1), or (1, q + 1) for all rows
    const floating[::1] beta,              # IN   (q + 1,), beta[0] unused
    floating[:, :] out,                    # OUT  (n, m), unit column stride
    bint stream,
    int n_threads,
):
    """out[i, j] = sum_k coefficients[i, k] p_k(<x_i, w_j>); see the head of this file."""
    cdef:
        Py_ssize_t n = X.shape[0], d = X.shape[1], m = W.shape[0]
        Py_ssize_t degree = coefficients.shape[1] - 1
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t padded = (m + lanes - 1) // lanes * lanes
        bint one_row = coefficients.shape[0] == 1
        Py_ssize_t ldc = 0 if one_row else degree + 1
        Py_ssize_t ldo = out.strides[0] // <Py_ssize_t> sizeof(floating)
        Py_ssize_t tile, strip, group, i, j, r, a, rows, columns, width, last
        bint by_horner = True, direct
        floating* w
        floating* t
        floating* row
        const floating* c
    if n == 0 or m == 0:
        return
    if out.shape[0] != n or out.shape[1] != m or out.strides[1] != sizeof(floating):
        raise ValueError("out must have shape (n, m) and unit column stride")
    for a in range(1, degree + 1):
        by_horner = by_horner and beta[a] == 0
    # The directions, strip by strip, transposed and padded to whole vectors; then one strip of
    # cosines a thread.
    w = <floating*> gzk_alloc((d * padded + (n_threads + 1) * STRIP) * sizeof(floating))
    if w == NULL:
        raise MemoryError("no memory for the directions of gegenbauer_features")
    for strip in range((m + COLUMNS - 1) // COLUMNS):
        i = strip * COLUMNS
        columns = min(<Py_ssize_t> COLUMNS, padded - i)
        for a in range(d):
            for j in range(columns):
                w[i * d + a * columns + j] = W[i + j, a] if i + j < m else 0
    for tile in prange((n + TILE - 1) // TILE, schedule="dynamic", chunksize=4, nogil=True,
                       num_threads=n_threads):
        t = w + d * padded + PAGE + threadid() * STRIP
        last = min(n, (tile + 1) * TILE)
        for strip in range((m + COLUMNS - 1) // COLUMNS):
            j = strip * COLUMNS
            columns = min(<Py_ssize_t> COLUMNS, padded - j)
            width = min(<Py_ssize_t> COLUMNS, m - j)
            for group in range((last - tile * TILE + ROWS - 1) // ROWS):
                i = tile * TILE + group * ROWS
                rows = min(<Py_ssize_t> ROWS, last - i)
                c = &coefficients[0 if one_row else i, 0]
                row = &out[i, j]
                # By way of the strip: a last, partly filled vector, or rows off the boundary.
                direct = width == columns and (
                    not stream or (gzk_on_boundary(row) and gzk_on_boundary(row + ldo)))
                if by_horner and direct:
                    horner(&X[i, 0], d, w + j * d, columns, d, columns, c, ldc, degree, row, ldo,
                           stream, <int> rows)
                elif by_horner:
                    horner(&X[i, 0], d, w + j * d, columns, d, columns, c, ldc, degree, t, COLUMNS,
                           False, <int> rows)
                else:
                    dots(&X[i, 0], d, w + j * d, columns, t, COLUMNS, d, columns, <int> rows)
                    for r in range(rows):
                        clenshaw(t + r * COLUMNS, columns, c + r * ldc, &beta[0], degree,
                                 row + r * ldo if direct else t + r * COLUMNS,
                                 direct and stream)
                if not direct:
                    for r in range(rows):
                        gzk_copy(row + r * ldo, t + r * COLUMNS, width * sizeof(floating), stream)
        GZK_FENCE()
    gzk_free(w)
