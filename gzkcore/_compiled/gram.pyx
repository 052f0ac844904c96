"""Moments of a tile of features and the ridge systems they make, without the interpreter's lock.

Formula    sums[f] += [Z 1 y]^T W [Z 1 y] over the rows of fold f, f = (row + first_fold) mod k.
Why        Z is never stored, so its Gram matrix grows tile by tile. Each Python thread has its own
           tile, its own sums and a BLAS held to one thread: a multithreaded syrk is no faster, and
           its threads go on spinning when it is done and stall the kernel that makes the next tile.
           SciPy's own wrappers of BLAS hold the interpreter's lock; these don't.
Cost       n p^2 flops for n rows of p features, p^3 / 3 for a system; asv_bench/benchmarks/gram.py
           measures it beside syrk on features that lie in memory.
Layout     C order, and of Gram matrices the lower triangle. Fortran sees a C matrix transposed,
           hence 'U' for the lower triangle. The rows of a fold are k apart, which BLAS takes as a
           leading dimension: no copy.
float32    Multiplied in float into `scratch`, ROWS rows at a time, and added in double. A sum of k
           equal products is off by up to k eps / 8: fewer rows keep that small, and more would
           hardly be faster. BLOCK columns at a time, so that what is added to stays in cache.
"""

from cython cimport floating
from libc.stdlib cimport free, malloc
from scipy.linalg.cython_blas cimport dgemm, dsyrk, sgemm, ssyrk
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs, dtrtri

from .checks cimport agree, inside


cdef enum:
    ROWS = 128
    BLOCK = 512


def add_moments(
    const floating[:, ::1] Z,          # IN    (n_rows, n_features), rows times root of weight
    const floating[:, ::1] R,          # IN    (n_rows, 1 + n_targets): ones, targets, alike
    Py_ssize_t first_fold,             # IN    fold of row 0
    double[:, :, ::1] sums,            # IN OUT (folds, features + 1 + targets, features + 2)
):
    """Add Z^T Z (lower triangle) and R^T Z of a tile to the moments of its folds."""
    cdef Py_ssize_t n_rows = Z.shape[0], n_folds = sums.shape[0], fold, row
    cdef int p = <int> Z.shape[1], q = <int> R.shape[1], stride = <int> sums.shape[2], n
    cdef int stride_z = <int> (p * n_folds), stride_r = <int> (q * n_folds)
    cdef double one = 1.0
    cdef float* scratch = NULL
    agree(n_folds > 0 and 0 <= first_fold < n_folds and p > 0 and q > 0 and R.shape[0] == n_rows
          and sums.shape[1] == p + q and stride == p + 2, "features, targets and sums")
    if floating is float:
        scratch = <float*> malloc(min(BLOCK, max(p, q)) * min(BLOCK, p) * sizeof(float))
        if scratch == NULL:
            raise MemoryError("no memory for the scratch space of add_moments")
    with nogil:
        for fold in range(n_folds):
            row = (fold + n_folds - first_fold) % n_folds      # the fold's first row in this tile
            if row >= n_rows:
                continue
            n = <int> ((n_rows - row + n_folds - 1) // n_folds)
            if floating is double:
                dsyrk("U", "N", &p, &n, &one, <double*> &Z[row, 0], &stride_z, &one,
                      &sums[fold, 0, 0], &stride)
                dgemm("N", "T", &p, &q, &n, &one, <double*> &Z[row, 0], &stride_z,
                      <double*> &R[row, 0], &stride_r, &one, &sums[fold, p, 0], &stride)
            else:
                _add_products(&Z[row, 0], stride_z, p, &Z[row, 0], stride_z, p, n,
                              &sums[fold, 0, 0], stride, scratch)
                _add_products(&R[row, 0], stride_r, q, &Z[row, 0], stride_z, p, n,
                              &sums[fold, p, 0], stride, scratch)
    free(scratch)


cdef void _add_products(const float* A, int stride_a, Py_ssize_t height, const float* B,
                        int stride_b, Py_ssize_t width, Py_ssize_t n_rows, double* sums,
                        Py_ssize_t stride, float* scratch) noexcept nogil:
    """Add A^T B (height, width) to sums, block by block; where A is B, its lower triangle."""
    cdef Py_ssize_t down, across, i, j
    for down in range((height + BLOCK - 1) // BLOCK):
        i = down * BLOCK
        for across in range(down + 1 if A == B else (width + BLOCK - 1) // BLOCK):
            j = across * BLOCK
            _add_block(A + i, stride_a, <int> min(<Py_ssize_t> BLOCK, height - i),
                       B + j, stride_b, <int> min(<Py_ssize_t> BLOCK, width - j),
                       n_rows, sums + i * stride + j, stride, scratch)


cdef void _add_block(const float* A, int stride_a, int height, const float* B, int stride_b,
                     int width, Py_ssize_t n_rows, double* sums, Py_ssize_t stride,
                     float* scratch) noexcept nogil:
    """The same of one block, ROWS rows at a time."""
    cdef Py_ssize_t piece, first, i, j
    cdef float one = 1.0, zero = 0.0
    cdef int n
    for piece in range((n_rows + ROWS - 1) // ROWS):
        first = piece * ROWS
        n = <int> min(<Py_ssize_t> ROWS, n_rows - first)
        if A == B:
            ssyrk("U", "N", &height, &n, &one, <float*> A + first * stride_a, &stride_a, &zero,
                  scratch, &width)
        else:
            sgemm("N", "T", &width, &height, &n, &one, <float*> B + first * stride_b, &stride_b,
                  <float*> A + first * stride_a, &stride_a, &zero, scratch, &width)
        for i in range(height):
            for j in range(i + 1 if A == B else width):
                sums[i * stride + j] += scratch[i * width + j]


def recentre(
    double[:, :, ::1] sums,            # IN OUT (folds, features + 1 + targets, features + 2)
    const double[::1] mean,            # IN    (features + 1 + targets,); 0 at n_features
):
    """Turn moments of rows v = [z 1 y] into those of v - mean: S - m s^T - s m^T + w m m^T.

    Here s, the sums of v, are row and column n_features of S, and w = S[n_features, n_features].
    """
    cdef Py_ssize_t p = sums.shape[2] - 2, size = sums.shape[1], fold, i, j
    cdef double w, s_i
    agree(0 <= p < size and mean.shape[0] == size, "sums and mean")
    with nogil:
        for fold in range(sums.shape[0]):
            w = sums[fold, p, p]
            for i in range(size):                    # rows of z and y first: they need the old sums
                if i == p:
                    continue
                s_i = sums[fold, p, i] if i < p else sums[fold, i, p]
                for j in range(min(i + 1, p)):
                    sums[fold, i, j] += mean[i] * (w * mean[j] - sums[fold, p, j]) - s_i * mean[j]
                if i > p:
                    sums[fold, i, p + 1] += mean[i] * (w * mean[i] - 2.0 * s_i)
                    sums[fold, i, p] = s_i - w * mean[i]
            for j in range(p):
                sums[fold, p, j] -= w * mean[j]


def mirror(
    double[:, ::1] gram,               # IN OUT (>= m, >= m)
    Py_ssize_t m,
):
    """Copy the lower triangle of the leading m x m block to the upper one, block by block."""
    cdef Py_ssize_t i, j, first_i, first_j
    agree(m <= gram.shape[0] and m <= gram.shape[1], "sums")
    with nogil:
        for first_i in range(0, m, 32):       # a block and its mirror stay in cache
            for first_j in range(0, first_i + 1, 32):
                for i in range(first_i, min(first_i + 32, m)):
                    for j in range(first_j, min(first_j + 32, i)):
                        gram[j, i] = gram[i, j]


def solve_ridge(
    const double[:, ::1] sums,         # IN   (features + 1 + targets, features + 2)
    const Py_ssize_t[::1] columns,     # IN   (m,), ascending: columns of [Z 1] that take part
    const double[::1] penalty,         # IN   (m,)
    double[:, ::1] work,               # WORK (m, m)
    double[:, ::1] coef,               # OUT  (n_targets, m)
    bint want_trace,
):
    """Solve (G + diag(penalty)) c = b for each target, G and b these columns of the moments.

    Returns LAPACK's `info` (0: solved) and tr(diag(penalty) (G + diag(penalty))^-1) where wanted.
    """
    cdef Py_ssize_t m = columns.shape[0], p = sums.shape[1] - 2, i, j, t
    cdef int n = <int> m, n_targets = <int> coef.shape[0], info = 0
    cdef double trace = 0.0
    cdef const double* row
    agree(penalty.shape[0] == m and work.shape[0] == m and work.shape[1] == m
          and coef.shape[1] == m and sums.shape[0] == p + 1 + n_targets, "sums and penalties")
    inside(&columns[0], m, 1, p + 1, "columns")
    with nogil:
        for i in range(m):
            row = &sums[columns[i], 0]
            for j in range(i + 1):
                work[i, j] = row[columns[j]]
            work[i, i] += penalty[i]
        for t in range(n_targets):
            row = &sums[p + 1 + t, 0]
            for j in range(m):
                coef[t, j] = row[columns[j]]
        dpotrf("U", &n, &work[0, 0], &n, &info)
        if info == 0:
            dpotrs("U", &n, &n_targets, &work[0, 0], &n, &coef[0, 0], &n, &info)
        if info == 0 and want_trace:
            dtrtri("U", "N", &n, &work[0, 0], &n, &info)
            for i in range(m):                       # (A^-1)_jj = sum over i of (L^-1)_ij^2
                for j in range(i + 1):
                    trace = trace + penalty[j] * work[i, j] * work[i, j]
    return info, trace
