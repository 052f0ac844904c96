"""Block projections and their cosines and sines, dense and sparse.

Formula    v_i = sum of weights[q, j] x_j over passes q and coordinates j with buckets[q, j] = i;
           the features are scale (cos pi v, sin pi v): whoever makes the weights folds in 1/pi.
Why        One product for each coordinate and pass, whatever the number of blocks: the cost is that
           of reading the row. _block.h says how it is read at the speed of memory.
Cost       passes n D fused operations (sparse: passes nnz); reads X once for every group of passes
           whose sums fit the second level of the cache, buckets and weights (8 bytes a coordinate)
           once for every 16 rows (float, AVX-512).
Order      Parallel over tiles of as many rows as a vector has lanes; fewer than a quarter of that,
           one by one. Every sum takes its coordinates in the row's order: the same bits for any
           tile, any number of threads, and for CSR.
Layout     X and out of any row stride but unit column stride; buckets and weights (passes, D);
           every pass has blocks of its own. Scratch: n_blocks times lanes for each thread.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from ._leaf cimport GZK_FENCE, GZK_LANES_F32, GZK_LANES_F64, PAGE, gzk_alloc, gzk_free
from ._trig cimport write_angles

cdef extern from "_block.h" nogil:
    void gzk_scatter_f32(const float* const* rows, const int32_t* bucket, const float* w,
                         Py_ssize_t d, Py_ssize_t passes, float* acc)
    void gzk_scatter_f64(const double* const* rows, const int32_t* bucket, const double* w,
                         Py_ssize_t d, Py_ssize_t passes, double* acc)
    void gzk_scatter_row_f32(const float* x, const int32_t* bucket, const float* w, Py_ssize_t d,
                             float* out)
    void gzk_scatter_row_f64(const double* x, const int32_t* bucket, const double* w, Py_ssize_t d,
                             double* out)
    void gzk_unpack_f32(const float* acc, Py_ssize_t n, int count, float* out, Py_ssize_t ldo)
    void gzk_unpack_f64(const double* acc, Py_ssize_t n, int count, double* out, Py_ssize_t ldo)

ctypedef fused index:
    int32_t
    int64_t

# Bytes of sums that are added to together, so that they stay in the second level of the cache;
# columns that are unpacked together, so that they stay in the first; the widest vector's lanes.
cdef enum:
    SUMS = 1 << 19
    STRIP = 256
    MOST = 16


cdef inline void _scatter(const floating** rows, const int32_t* bucket, const floating* w,
                          Py_ssize_t d, Py_ssize_t passes, floating* acc) noexcept nogil:
    if floating is float:
        gzk_scatter_f32(rows, bucket, w, d, passes, acc)
    else:
        gzk_scatter_f64(rows, bucket, w, d, passes, acc)


cdef inline void _scatter_row(const floating* x, const int32_t* bucket, const floating* w,
                              Py_ssize_t d, floating* out) noexcept nogil:
    if floating is float:
        gzk_scatter_row_f32(x, bucket, w, d, out)
    else:
        gzk_scatter_row_f64(x, bucket, w, d, out)


cdef inline void _unpack(const floating* acc, Py_ssize_t n, int count, floating* out,
                         Py_ssize_t ldo) noexcept nogil:
    if floating is float:
        gzk_unpack_f32(acc, n, count, out, ldo)
    else:
        gzk_unpack_f64(acc, n, count, out, ldo)


cdef inline void _group(const floating** rows, const floating* x, Py_ssize_t ldx, Py_ssize_t count,
                        Py_ssize_t lanes, const int32_t* bucket, const floating* w, Py_ssize_t d,
                        Py_ssize_t passes, Py_ssize_t together, floating* acc,
                        Py_ssize_t n_blocks) noexcept nogil:
    """acc (n_blocks, lanes) <- the sums of `count` rows; rows that are missing repeat the last."""
    cdef Py_ssize_t r, q
    for r in range(lanes):
        rows[r] = x + min(r, count - 1) * ldx
    memset(acc, 0, n_blocks * lanes * sizeof(floating))
    q = 0
    while q < passes:
        _scatter(rows, bucket + q * d, w + q * d, d, min(together, passes - q), acc)
        q = q + together


def block_projection(
    const floating[:, :] X,            # IN   (n, D), unit column stride
    const int32_t[:, ::1] buckets,     # IN   (passes, D), from 0 to n_blocks - 1
    const floating[:, ::1] weights,    # IN   (passes, D)
    floating[:, :] out,                # OUT  (n, n_blocks), unit column stride
    int n_threads,
):
    """out[i, b] = sum of weights[q, j] X[i, j] over buckets[q, j] = b; see the head."""
    _dense(X, buckets, weights, out, 0, 0.0, False, False, n_threads)


def block_fourier_features(
    const floating[:, :] X,            # IN   (n, D), unit column stride
    const int32_t[:, ::1] buckets,     # IN   (passes, D)
    const floating[:, ::1] weights,    # IN   (passes, D), in half turns
    floating[:, :] out,                # OUT  (n, n_components), unit column stride
    double scale,
    double phase,                      # of an odd last column, in half turns
    bint stream,
    int n_threads,
):
    """out[i] = scale (cos pi v, sin pi v) for the projection v; see the head of this file."""
    _dense(X, buckets, weights, out, scale, phase, True, stream, n_threads)


cdef _dense(const floating[:, :] X, const int32_t[:, ::1] buckets, const floating[:, ::1] weights,
            floating[:, :] out, double scale, double phase, bint waves, bint stream,
            int n_threads):
    cdef:
        Py_ssize_t n = X.shape[0], d = X.shape[1], passes = buckets.shape[0]
        Py_ssize_t width = out.shape[1], m = width // 2
        bint odd = width % 2
        Py_ssize_t k = m + odd if waves else width
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t ldx = X.strides[0] // <Py_ssize_t> sizeof(floating)
        Py_ssize_t ldo = out.strides[0] // <Py_ssize_t> sizeof(floating)
        Py_ssize_t each = -(-k // max(passes, 1)) * lanes * <Py_ssize_t> sizeof(floating)
        Py_ssize_t together = max(<Py_ssize_t> 1, SUMS // max(each, <Py_ssize_t> 1))
        Py_ssize_t own = k * lanes + MOST * STRIP + PAGE
        Py_ssize_t tile, i, r, q, j, count, columns
        floating* scratch
        floating* acc
        floating* strip
        floating* row
        const floating** starts
        const floating** rows
    if n == 0 or width == 0:
        return
    if (d > 1 and X.strides[1] != sizeof(floating)) or (
            width > 1 and out.strides[1] != sizeof(floating)) or out.shape[0] != n:
        raise ValueError("X and out must have equally many rows, and unit column stride")
    if buckets.shape[1] != d or weights.shape[0] != passes or weights.shape[1] != d:
        raise ValueError("buckets and weights must have shape (passes, D)")
    scratch = <floating*> gzk_alloc(n_threads * own * sizeof(floating))
    starts = <const floating**> gzk_alloc(n_threads * MOST * sizeof(void*))
    if scratch == NULL or starts == NULL:
        gzk_free(scratch)
        gzk_free(<void*> starts)
        raise MemoryError("no memory for the sums of block_projection")
    for tile in prange((n + lanes - 1) // lanes, schedule="dynamic", nogil=True,
                       num_threads=n_threads):
        acc = scratch + threadid() * own
        strip = acc + k * lanes
        rows = starts + threadid() * MOST
        i = tile * lanes
        count = min(lanes, n - i)
        if 4 * count <= lanes:
            for r in range(count):
                row = acc if waves else &out[i + r, 0]
                memset(row, 0, k * sizeof(floating))
                for q in range(passes):
                    _scatter_row(&X[i + r, 0], &buckets[q, 0], &weights[q, 0], d, row)
                if waves:
                    write_angles(row, 0, k, m, <floating> phase, <floating> scale, &out[i + r, 0],
                                 2 * m + odd, stream)
        else:
            _group(rows, &X[i, 0], ldx, count, lanes, &buckets[0, 0], &weights[0, 0], d, passes,
                   together, acc, k)
            if not waves:
                _unpack(acc, k, <int> count, &out[i, 0], ldo)
            else:
                for q in range((k + STRIP - 1) // STRIP):
                    j = q * STRIP
                    columns = min(<Py_ssize_t> STRIP, k - j)
                    _unpack(acc + j * lanes, columns, <int> count, strip, STRIP)
                    for r in range(count):
                        write_angles(strip + r * STRIP, j, columns, m, <floating> phase,
                                     <floating> scale, &out[i + r, 0], 2 * m + odd, stream)
        GZK_FENCE()
    gzk_free(scratch)
    gzk_free(<void*> starts)


def block_projection_csr(
    const floating[::1] data,          # IN   (nnz,)
    const index[::1] indices,          # IN   (nnz,), columns
    const index[::1] indptr,           # IN   (n + 1,)
    const int32_t[:, ::1] buckets,     # IN   (passes, D), from 0 to n_blocks - 1
    const floating[:, ::1] weights,    # IN   (passes, D)
    floating[:, :] out,                # OUT  (n, n_blocks), unit column stride
    int n_threads,
):
    """`block_projection` of the rows of a CSR matrix."""
    _sparse(data, indices, indptr, buckets, weights, out, 0, 0.0, False, False, n_threads)


def block_fourier_features_csr(
    const floating[::1] data,          # IN   (nnz,)
    const index[::1] indices,          # IN   (nnz,), columns
    const index[::1] indptr,           # IN   (n + 1,)
    const int32_t[:, ::1] buckets,     # IN   (passes, D)
    const floating[:, ::1] weights,    # IN   (passes, D), in half turns
    floating[:, :] out,                # OUT  (n, n_components), unit column stride
    double scale,
    double phase,                      # of an odd last column, in half turns
    bint stream,
    int n_threads,
):
    """`block_fourier_features` of the rows of a CSR matrix."""
    _sparse(data, indices, indptr, buckets, weights, out, scale, phase, True, stream, n_threads)


cdef _sparse(const floating[::1] data, const index[::1] indices, const index[::1] indptr,
             const int32_t[:, ::1] buckets, const floating[:, ::1] weights, floating[:, :] out,
             double scale, double phase, bint waves, bint stream, int n_threads):
    cdef:
        Py_ssize_t n = indptr.shape[0] - 1, passes = buckets.shape[0]
        Py_ssize_t width = out.shape[1], m = width // 2
        bint odd = width % 2
        Py_ssize_t k = m + odd if waves else width
        Py_ssize_t own = k + PAGE
        Py_ssize_t i, q, p
        floating* scratch
        floating* row
        const int32_t* to
        const floating* by
    if n == 0 or width == 0:
        return
    scratch = <floating*> gzk_alloc(n_threads * own * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the sums of block_projection_csr")
    for i in prange(n, schedule="dynamic", chunksize=16, nogil=True, num_threads=n_threads):
        row = scratch + threadid() * own if waves else &out[i, 0]
        memset(row, 0, k * sizeof(floating))
        for q in range(passes):
            to = &buckets[q, 0]
            by = &weights[q, 0]
            for p in range(indptr[i], indptr[i + 1]):
                row[to[indices[p]]] += by[indices[p]] * data[p]
        if waves:
            write_angles(row, 0, k, m, <floating> phase, <floating> scale, &out[i, 0], 2 * m + odd,
                         stream)
        GZK_FENCE()
    gzk_free(scratch)
