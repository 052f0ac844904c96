"""The Cholesky factor of a matrix, its triangular systems and the inverse, tile by tile.

Formula    A = L L^T, L lower triangular; L X = B and L^T X = B; A^-1 = W^T W, W = L^-1.
Why        LAPACK leaves threads to BLAS, whose bits depend on how many there are and whose pool
           stalls the kernels that come next. Here each thread calls a BLAS that is held to one, on
           tiles that don't depend on the number of threads: same bits for any number. Beside other
           programs, for n = 500, 1,000, 2,000, 4,000, the factor took 3.8, 18, 120, 899 ms of
           processor time on two threads, LAPACK 2.6, 13, 101, 679 on one
           thread and 3.5, 90, 390, 1,412 on two; in elapsed time that was 3.9, 27, 684, 3,277
           against 2.6, 63, 899, 3,566 and 3.5, 451, 2,386, 4,579 (the least of 3 to 15 runs in
           turn, a load of 14 on two cores). With more cores the factor gains more.
Cost       n^3 / 3 flops for the factor, n^2 for a right-hand side of one triangle, 2 n^3 / 3 for
           the inverse. asv_bench/benchmarks/cholesky.py measures them beside LAPACK.
           Nearly all of it is products, of STEP rows or more, with which BLAS is three times as
           fast as with triangles: the inverse of 250 rows takes half as long as by solving for
           the identity, and two thirds as long as LAPACK's.
Denormals  are 0: kernels of short lengths are full of numbers that almost are.
Layout     C order, and of A and L the lower triangle. Fortran sees a C matrix transposed, hence
           'U'. A right-hand side lies in a row.
Threads    The factor goes from one block of WIDE columns to the next, TALL rows of it to a thread,
           in one long product with the columns before. Systems are cut by right-hand sides, W by
           its columns, W^T W by its rows.
"""

from cython cimport floating
from cython.parallel cimport prange
from scipy.linalg.cython_blas cimport dgemm, dtrmm, dtrsm, sgemm, strmm, strsm
from scipy.linalg.cython_lapack cimport dpotrf, dtrtri, spotrf, strtri

from .signals cimport look, seconds

cdef extern from "denormals.h" nogil:
    unsigned gzk_flush_denormals()
    void gzk_set_denormals(unsigned before)

cdef enum:
    WIDE = 256
    TALL = 128
    SIDES = 128     # right-hand sides at a time
    STEP = 64       # unknowns that are solved for at a time, of MANY sides or more
    MANY = 16


def shifted(
    const double[:, ::1] A,            # IN  (n, n), its lower triangle
    const double[::1] diagonal,        # IN  (n,)
    floating[:, ::1] out,              # OUT (n, n), its lower triangle: A + diag(diagonal)
    int num_threads,
):
    """Write a matrix with its diagonal shifted, in its own or in single precision."""
    cdef Py_ssize_t n = A.shape[0], row, column
    for row in prange(n, nogil=True, num_threads=num_threads, schedule="dynamic", chunksize=64):
        for column in range(row):
            out[row, column] = <floating> A[row, column]
        out[row, row] = <floating> (A[row, row] + diagonal[row])


def factor(
    floating[:, ::1] A,                # IN OUT (n, n), its lower triangle: becomes L
    int num_threads,
):
    """Factor a matrix in place; return 0, or the first row where it isn't positive, from 1 on."""
    cdef Py_ssize_t n = A.shape[0], block, first, end, tile, n_tiles, row, column
    cdef Py_ssize_t start, last, step = num_threads
    cdef double begun = seconds()
    cdef int info = 0, width
    if n == 0:
        return 0
    for block in range((n + WIDE - 1) // WIDE):
        first = block * WIDE
        end = min(first + <Py_ssize_t> WIDE, n)
        n_tiles = (n - first + TALL - 1) // TALL if first else 0
        start = 0
        while start < n_tiles:
            last = min(n_tiles, start + step)
            for tile in prange(start, last, nogil=True, num_threads=num_threads,
                               schedule="dynamic"):
                _take_off(&A[0, 0], n, first, end, first + tile * TALL)
            start = last
            step = look(step, &begun)
        width = <int> (end - first)
        with nogil:
            info = _factor_block(&A[first, first], n, width)
        if info:
            info = info + <int> first
            break
        n_tiles = (n - end + TALL - 1) // TALL
        for tile in prange(n_tiles, nogil=True, num_threads=num_threads, schedule="dynamic"):
            _divide(&A[0, 0], n, first, end, end + tile * TALL)
    for row in prange(n, nogil=True, num_threads=num_threads, schedule="static"):
        for column in range(row + 1, n):
            A[row, column] = 0
    return info


cdef void _take_off(floating* A, Py_ssize_t n, Py_ssize_t first, Py_ssize_t end,
                    Py_ssize_t row) noexcept nogil:
    """A[rows, first:end] -= L[rows, :first] L[first:end, :first]^T, for TALL rows from one on."""
    cdef int width = <int> (end - first), height = <int> min(<Py_ssize_t> TALL, n - row)
    cdef int inner = <int> first, stride = <int> n
    cdef unsigned before = gzk_flush_denormals()
    _subtract("T", width, height, inner, A + first * n, A + row * n, A + row * n + first, stride)
    gzk_set_denormals(before)


cdef inline void _subtract(char* which, int height, int width, int inner, const floating* A,
                           const floating* B, floating* C, int stride) noexcept nogil:
    """C -= A B, or A^T B, as Fortran sees them."""
    cdef floating minus = -1, one = 1
    if floating is float:
        sgemm(which, "N", &height, &width, &inner, &minus, <float*> A, &stride, <float*> B,
              &stride, &one, C, &stride)
    else:
        dgemm(which, "N", &height, &width, &inner, &minus, <double*> A, &stride, <double*> B,
              &stride, &one, C, &stride)


cdef int _factor_block(floating* A, Py_ssize_t n, int width) noexcept nogil:
    cdef int info = 0, stride = <int> n
    cdef unsigned before = gzk_flush_denormals()
    if floating is float:
        spotrf("U", &width, A, &stride, &info)
    else:
        dpotrf("U", &width, A, &stride, &info)
    gzk_set_denormals(before)
    return info


cdef void _divide(floating* A, Py_ssize_t n, Py_ssize_t first, Py_ssize_t end,
                  Py_ssize_t row) noexcept nogil:
    """L[rows, first:end] = A[rows, first:end] L[first:end, first:end]^-T, for TALL rows."""
    _solve(A + first * n + first, n, end - first, A + row * n + first,
           min(<Py_ssize_t> TALL, n - row), False)


def solve_lower(
    const floating[:, ::1] L,          # IN     (n, n), its lower triangle
    floating[:, ::1] B,                # IN OUT (n_sides, n), a right-hand side in a row: becomes X
    bint transposed,                   # L^T x = b instead of L x = b
    int num_threads,
):
    """Solve a triangular system in place."""
    cdef Py_ssize_t n = L.shape[0], n_sides = B.shape[0], part, parts
    cdef Py_ssize_t start = 0, end, step = num_threads
    cdef double begun = seconds()
    if n == 0 or n_sides == 0:
        return
    parts = (n_sides + SIDES - 1) // SIDES
    while start < parts:
        end = min(parts, start + step)
        for part in prange(start, end, nogil=True, num_threads=num_threads, schedule="dynamic"):
            _solve(&L[0, 0], n, n, &B[part * SIDES, 0],
                   min(<Py_ssize_t> SIDES, n_sides - part * SIDES), transposed)
        start = end
        step = look(step, &begun)


cdef void _solve(const floating* L, Py_ssize_t stride, Py_ssize_t n, floating* B,
                 Py_ssize_t n_sides, bint transposed) noexcept nogil:
    cdef int sides = <int> n_sides, ld = <int> stride
    cdef Py_ssize_t step = STEP if n_sides >= MANY else n, part, n_parts = (n + step - 1) // step
    cdef Py_ssize_t first, end
    cdef unsigned before = gzk_flush_denormals()
    for part in range(n_parts):
        first = (n_parts - 1 - part if transposed else part) * step
        end = min(first + step, n)
        _solve_part(L + first * stride + first, <int> (end - first), B + first, sides, ld,
                    transposed)
        if transposed and first:
            _subtract("N", <int> first, sides, <int> (end - first), L + first * stride, B + first,
                      B, ld)
        elif not transposed and end < n:
            _subtract("T", <int> (n - end), sides, <int> (end - first), L + end * stride + first,
                      B + first, B + end, ld)
    gzk_set_denormals(before)


cdef void _solve_part(const floating* L, int size, floating* B, int sides, int ld,
                      bint transposed) noexcept nogil:
    cdef floating one = 1
    cdef char* which = "N" if transposed else "T"
    if floating is float:
        strsm("L", "U", which, "N", &size, &sides, &one, <float*> L, &ld, B, &ld)
    else:
        dtrsm("L", "U", which, "N", &size, &sides, &one, <double*> L, &ld, B, &ld)


def invert_factors(
    double[:, :, ::1] A,               # IN OUT (n_matrices, n, n), lower triangles: become L^-1
    int num_threads,
):
    """Factor small matrices and invert the factors, a thread each; say if all are positive."""
    cdef Py_ssize_t n_matrices = A.shape[0], n = A.shape[1], i
    cdef int failed = 0
    for i in prange(n_matrices if n else 0, nogil=True, num_threads=num_threads):
        failed |= _factor_block(&A[i, 0, 0], n, <int> n)
        _invert_small(&A[i, 0, 0], <int> n)
    return failed == 0


cdef void _invert_small(double* L, int n) noexcept nogil:
    cdef int info = 0, i, j
    dtrtri("U", "N", &n, L, &n, &info)
    for i in range(n):
        for j in range(i + 1, n):
            L[i * n + j] = 0


def invert(
    const floating[:, ::1] L,          # IN   (n, n), its lower triangle
    floating[:, ::1] W,                # WORK (n, n): its lower triangle becomes L^-1
    floating[:, ::1] out,              # OUT  (n, n): (L L^T)^-1
    int num_threads,
):
    """Invert a matrix from its factor."""
    cdef Py_ssize_t n = L.shape[0], step, part, parts, start, end, phase
    cdef double begun = seconds()
    for phase in range(3 if n else 0):
        parts = (n + SIDES - 1) // SIDES if phase == 1 else (n + STEP - 1) // STEP
        start, step = 0, num_threads
        while start < parts:
            end = min(parts, start + step)
            for part in prange(start, end, nogil=True, num_threads=num_threads,
                               schedule="dynamic"):
                if phase == 0:
                    _invert_block(&L[0, 0], &W[0, 0], n, part * STEP)
                elif phase == 1:
                    _invert_columns(&L[0, 0], &W[0, 0], n, part * SIDES)
                else:
                    _rows_of_inverse(&W[0, 0], &out[0, 0], n, (parts - 1 - part) * STEP)
            start = end
            step = look(step, &begun)


cdef void _invert_block(const floating* L, floating* W, Py_ssize_t n,
                        Py_ssize_t first) noexcept nogil:
    """W[block, block] = L[block, block]^-1, with zeros above, for a block of STEP rows."""
    cdef Py_ssize_t end = min(first + <Py_ssize_t> STEP, n), i, j
    cdef int size = <int> (end - first), stride = <int> n, info = 0
    for i in range(first, end):
        for j in range(first, end):
            W[i * n + j] = L[i * n + j] if j <= i else 0
    if floating is float:
        strtri("U", "N", &size, W + first * n + first, &stride, &info)
    else:
        dtrtri("U", "N", &size, W + first * n + first, &stride, &info)


cdef void _invert_columns(const floating* L, floating* W, Py_ssize_t n,
                          Py_ssize_t first) noexcept nogil:
    """W[k, columns] = -W[k, k] L[k, before k] W[before k, columns], for SIDES columns."""
    cdef Py_ssize_t end = min(first + <Py_ssize_t> SIDES, n), part, row, i, j
    cdef int width, height, inner, stride = <int> n
    cdef floating one = 1, zero = 0, minus = -1
    cdef unsigned before = gzk_flush_denormals()
    for i in range(first, end):
        for j in range(i - i % STEP + STEP, end):
            W[i * n + j] = 0
    for part in range(first // STEP + 1, (n + STEP - 1) // STEP):
        row = part * STEP
        height, inner = <int> min(<Py_ssize_t> STEP, n - row), <int> (row - first)
        width = <int> min(row, end) - <int> first
        if floating is float:
            sgemm("N", "N", &width, &height, &inner, &one, W + first * n + first, &stride,
                  <float*> L + row * n + first, &stride, &zero, W + row * n + first, &stride)
            strmm("R", "U", "N", "N", &width, &height, &minus, W + row * n + row, &stride,
                  W + row * n + first, &stride)
        else:
            dgemm("N", "N", &width, &height, &inner, &one, W + first * n + first, &stride,
                  <double*> L + row * n + first, &stride, &zero, W + row * n + first, &stride)
            dtrmm("R", "U", "N", "N", &width, &height, &minus, W + row * n + row, &stride,
                  W + row * n + first, &stride)
    gzk_set_denormals(before)


cdef void _rows_of_inverse(const floating* W, floating* out, Py_ssize_t n,
                           Py_ssize_t first) noexcept nogil:
    """Write STEP rows of W^T W, up to the diagonal, and their copy in its columns."""
    cdef Py_ssize_t end = min(first + <Py_ssize_t> STEP, n), i, j
    cdef int width = <int> end, height = <int> (end - first), inner = <int> (n - first)
    cdef int stride = <int> n
    cdef floating one = 1, zero = 0
    cdef unsigned before = gzk_flush_denormals()
    if floating is float:
        sgemm("N", "T", &width, &height, &inner, &one, <float*> W + first * n, &stride,
              <float*> W + first * n + first, &stride, &zero, out + first * n, &stride)
    else:
        dgemm("N", "T", &width, &height, &inner, &one, <double*> W + first * n, &stride,
              <double*> W + first * n + first, &stride, &zero, out + first * n, &stride)
    for j in range(end):
        for i in range(max(first, j + 1), end):
            out[j * n + i] = out[i * n + j]
    gzk_set_denormals(before)
