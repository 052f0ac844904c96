"""Block projections and their cosines and sines, dense and sparse.

Formula    v_i = sum of weights[q, j] x_j over passes q and coordinates j with buckets[q, j] = i;
           the features are scale (cos pi v, sin pi v): whoever makes the weights folds in 1/pi.
Why        One product for each coordinate and pass, whatever the number of blocks: the cost is that
           of reading the row. block.h says how it is read at the speed of memory.
Cost       passes n D fused operations (sparse: passes nnz); reads X once for every group of passes
           whose sums fit the second level of the cache, writing their waves before they leave it;
           buckets and weights (8 bytes a coordinate) once for every 16 rows (float, AVX-512).
Order      Parallel over tiles of as many rows as a vector has lanes; fewer than a quarter of that,
           one by one. Every sum takes its coordinates in the row's order: the same bits for any
           tile, any number of threads, and for CSR.
Layout     X and out of any row stride but unit column stride; buckets and weights (passes, D);
           passes have blocks of their own, unless `apart` is false. Scratch for each thread: lanes
           times the blocks of a group, and a megabyte.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from .leaf cimport GZK_FENCE, GZK_LANES_F32, GZK_LANES_F64, PAGE, gzk_alloc, gzk_free
from .trig cimport write_angles

cdef extern from "block.h" nogil:
    void gzk_scatter_f32(const float* const* rows, const int32_t* bucket, const float* w,
                         Py_ssize_t d, Py_ssize_t passes, float* acc)
    void gzk_scatter_f64(const double* const* rows, const int32_t* bucket, const double* w,
                         Py_ssize_t d, Py_ssize_t passes, double* acc)
    void gzk_scatter_columns_f32(const float* columns, const int32_t* bucket, const float* w,
                                 Py_ssize_t d, float* acc)
    void gzk_scatter_columns_f64(const double* columns, const int32_t* bucket, const double* w,
                                 Py_ssize_t d, double* acc)
    void gzk_scatter_row_f32(const float* x, const int32_t* bucket, const float* w, Py_ssize_t d,
                             float* out)
    void gzk_scatter_row_f64(const double* x, const int32_t* bucket, const double* w, Py_ssize_t d,
                             double* out)
    void gzk_unpack_f32(const float* acc, Py_ssize_t n, int count, float* out, Py_ssize_t ldo)
    void gzk_unpack_f64(const double* acc, Py_ssize_t n, int count, double* out, Py_ssize_t ldo)
    int gzk_none_f32(const float* x, Py_ssize_t n)
    int gzk_none_f64(const double* x, Py_ssize_t n)
    void gzk_load_radial_f32(const float* rows, Py_ssize_t ld, int count, Py_ssize_t columns,
                             float* out)
    void gzk_load_radial_f64(const double* rows, Py_ssize_t ld, int count, Py_ssize_t columns,
                             double* out)

ctypedef fused index:
    int32_t
    int64_t

# Bytes of sums that are added to together, so that they stay in the second level of the cache, and
# fewer where it also has the rows, transposed once for all passes, which take at most so much;
# columns that are unpacked together, so that they stay in the first; the widest vector's lanes.
cdef enum:
    SUMS = 1 << 19
    FEWER = 1 << 17
    COLUMNS = 1 << 20
    STRIP = 256
    MOST = 16


cdef inline void _scatter(const floating** rows, const int32_t* bucket, const floating* w,
                          Py_ssize_t d, Py_ssize_t passes, floating* acc) noexcept nogil:
    if floating is float:
        gzk_scatter_f32(rows, bucket, w, d, passes, acc)
    else:
        gzk_scatter_f64(rows, bucket, w, d, passes, acc)


cdef inline void _scatter_columns(const floating* columns, const int32_t* bucket, const floating* w,
                                  Py_ssize_t d, floating* acc) noexcept nogil:
    if floating is float:
        gzk_scatter_columns_f32(columns, bucket, w, d, acc)
    else:
        gzk_scatter_columns_f64(columns, bucket, w, d, acc)


cdef inline void _transpose(const floating* x, Py_ssize_t ldx, int count, Py_ssize_t d,
                            floating* columns) noexcept nogil:
    if floating is float:
        gzk_load_radial_f32(x, ldx, count, d, columns)
    else:
        gzk_load_radial_f64(x, ldx, count, d, columns)


cdef inline void _scatter_row(const floating* x, const int32_t* bucket, const floating* w,
                              Py_ssize_t d, floating* out) noexcept nogil:
    if floating is float:
        gzk_scatter_row_f32(x, bucket, w, d, out)
    else:
        gzk_scatter_row_f64(x, bucket, w, d, out)


cdef inline int _none(const floating* x, Py_ssize_t n) noexcept nogil:
    """Return whether a number is none or infinite."""
    if floating is float:
        return gzk_none_f32(x, n)
    else:
        return gzk_none_f64(x, n)


cdef inline void _unpack(const floating* acc, Py_ssize_t n, int count, floating* out,
                         Py_ssize_t ldo) noexcept nogil:
    if floating is float:
        gzk_unpack_f32(acc, n, count, out, ldo)
    else:
        gzk_unpack_f64(acc, n, count, out, ldo)


def block_projection(
    const floating[:, :] X,            # IN   (n, D), unit column stride
    const int32_t[:, ::1] buckets,     # IN   (passes, D), from 0 to n_blocks - 1
    const floating[:, ::1] weights,    # IN   (passes, D)
    floating[:, :] out,                # OUT  (n, n_blocks), unit column stride
    bint apart,                        # each pass has blocks of its own, in order and evenly many
    int n_threads,
):
    """out[i, b] = sum of weights[q, j] X[i, j] over buckets[q, j] = b; whether all are finite."""
    return _dense(X, buckets, weights, out, apart, 0, 0.0, False, False, n_threads)


def block_fourier_features(
    const floating[:, :] X,            # IN   (n, D), unit column stride
    const int32_t[:, ::1] buckets,     # IN   (passes, D)
    const floating[:, ::1] weights,    # IN   (passes, D), in half turns
    floating[:, :] out,                # OUT  (n, n_components), unit column stride
    bint apart,
    double scale,
    double phase,                      # of an odd last column, in half turns
    bint stream,
    int n_threads,
):
    """out[i] = scale (cos pi v, sin pi v) for the projection v; whether all v are finite."""
    return _dense(X, buckets, weights, out, apart, scale, phase, True, stream, n_threads)


cdef inline Py_ssize_t _first(Py_ssize_t q, Py_ssize_t passes, Py_ssize_t k) noexcept nogil:
    """Return the first block of a pass, of k blocks that passes share evenly."""
    return q * (k // passes) + min(q, k % passes)


cdef bint _dense(const floating[:, :] X, const int32_t[:, ::1] buckets,
                 const floating[:, ::1] weights, floating[:, :] out, bint apart, double scale,
                 double phase, bint waves, bint stream, int n_threads) except -1:
    cdef:
        Py_ssize_t n = X.shape[0], d = X.shape[1], passes = buckets.shape[0]
        Py_ssize_t width = out.shape[1], m = width // 2
        bint odd = width % 2
        Py_ssize_t k = m + odd if waves else width
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t ldx = X.strides[0] // <Py_ssize_t> sizeof(floating)
        Py_ssize_t ldo = out.strides[0] // <Py_ssize_t> sizeof(floating)
        Py_ssize_t vector = lanes * <Py_ssize_t> sizeof(floating)
        bint once = passes > 1 and d * vector <= COLUMNS
        Py_ssize_t each = max(<Py_ssize_t> 1, -(-k // max(passes, 1))) * vector
        Py_ssize_t together = max(<Py_ssize_t> 1, (FEWER if once else SUMS) // each)
        int none = 0
        Py_ssize_t held, own, tile, i, r, q, p, last, low, high, j, stop, count
        floating* scratch
        floating* acc
        floating* strip
        floating* columns
        floating* row
        const floating** starts
        const floating** rows
    if n == 0 or width == 0:
        return True
    if (d > 1 and X.strides[1] != sizeof(floating)) or (
            width > 1 and out.strides[1] != sizeof(floating)) or out.shape[0] != n:
        raise ValueError("X and out must have equally many rows, and unit column stride")
    if buckets.shape[1] != d or weights.shape[0] != passes or weights.shape[1] != d:
        raise ValueError("buckets and weights must have shape (passes, D)")
    if not apart:
        together = passes
    held = min(k, min(together, passes) * (k // passes + 1))
    own = held * lanes + MOST * STRIP + (d * lanes if once else 0) + PAGE
    scratch = <floating*> gzk_alloc((n_threads * own + k) * sizeof(floating))
    starts = <const floating**> gzk_alloc(n_threads * MOST * sizeof(void*))
    if scratch == NULL or starts == NULL:
        gzk_free(scratch)
        gzk_free(<void*> starts)
        raise MemoryError("no memory for the sums of block_projection")
    for tile in prange((n + lanes - 1) // lanes, schedule="dynamic", nogil=True,
                       num_threads=n_threads):
        acc = scratch + threadid() * own
        strip = acc + held * lanes
        columns = strip + MOST * STRIP
        rows = starts + threadid() * MOST
        i = tile * lanes
        count = min(lanes, n - i)
        if 4 * count <= lanes:  # at most one tile is so short: its sums can have one place
            for r in range(count):
                row = scratch + n_threads * own if waves else &out[i + r, 0]
                memset(row, 0, k * sizeof(floating))
                for q in range(passes):
                    _scatter_row(&X[i + r, 0], &buckets[q, 0], &weights[q, 0], d, row)
                none += _none(row, k)
                if waves:
                    write_angles(row, 0, k, m, <floating> phase, <floating> scale, &out[i + r, 0],
                                 2 * m + odd, stream)
        else:
            for r in range(lanes):
                rows[r] = &X[i, 0] + min(r, count - 1) * ldx
            if once:
                _transpose(&X[i, 0], ldx, <int> count, d, columns)
            q = 0
            while q < passes:
                last = min(q + together, passes)
                low = _first(q, passes, k)
                high = _first(last, passes, k)
                memset(acc, 0, (high - low) * vector)
                if once:
                    for p in range(q, last):
                        _scatter_columns(columns, &buckets[p, 0], &weights[p, 0], d,
                                         acc - low * lanes)
                else:
                    _scatter(rows, &buckets[q, 0], &weights[q, 0], d, last - q, acc - low * lanes)
                none += _none(acc, (high - low) * lanes)
                if not waves:
                    _unpack(acc, high - low, <int> count, &out[i, low], ldo)
                j = low
                while waves and j < high:
                    stop = min(j - j % STRIP + STRIP, high)
                    _unpack(acc + (j - low) * lanes, stop - j, <int> count, strip, STRIP)
                    for r in range(count):
                        write_angles(strip + r * STRIP, j, stop - j, m, <floating> phase,
                                     <floating> scale, &out[i + r, 0], 2 * m + odd, stream)
                    j = stop
                q = last
        GZK_FENCE()
    gzk_free(scratch)
    gzk_free(<void*> starts)
    return none == 0


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
    return _sparse(data, indices, indptr, buckets, weights, out, 0, 0.0, False, False, n_threads)


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
    return _sparse(data, indices, indptr, buckets, weights, out, scale, phase, True, stream,
                   n_threads)


cdef bint _sparse(const floating[::1] data, const index[::1] indices, const index[::1] indptr,
                  const int32_t[:, ::1] buckets, const floating[:, ::1] weights, floating[:, :] out,
                  double scale, double phase, bint waves, bint stream, int n_threads) except -1:
    cdef:
        Py_ssize_t n = indptr.shape[0] - 1, passes = buckets.shape[0]
        Py_ssize_t width = out.shape[1], m = width // 2
        bint odd = width % 2
        Py_ssize_t k = m + odd if waves else width
        Py_ssize_t own = k + PAGE
        Py_ssize_t i, q, p
        int none = 0
        floating* scratch
        floating* row
        const int32_t* to
        const floating* by
    if n == 0 or width == 0:
        return True
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
        none += _none(row, k)
        if waves:
            write_angles(row, 0, k, m, <floating> phase, <floating> scale, &out[i, 0], 2 * m + odd,
                         stream)
        GZK_FENCE()
    gzk_free(scratch)
    return none == 0
