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
from libc.stdint cimport int32_t
from libc.string cimport memset

from .checks cimport agree
from .leaf cimport (
    GZK_FENCE,
    GZK_LANES_F32,
    GZK_LANES_F64,
    PAGE,
    gzk_alloc,
    gzk_copy,
    gzk_free,
    index,
    load_radial,
)
from .trig cimport write_angles

cdef enum:
    SUMS = 1 << 19          # bytes of sums that are added to together: in the second cache
    TRANSPOSED = 1 << 20    # rows of so many bytes are transposed once for all passes,
    FEWER = 1 << 17         # and sums beside these take so many bytes
    STRIP = 256             # columns that are unpacked together: in the first cache
    MOST = 16               # lanes of the widest vector


def block_projection(
    const floating[:, :] X,            # IN   (n, D), unit column stride
    const int32_t[:, ::1] buckets,     # IN   (passes, D), from 0 to n_blocks - 1
    const floating[:, ::1] weights,    # IN   (passes, D)
    floating[:, :] out,                # OUT  (n, n_blocks), unit column stride
    bint apart,                        # each pass has blocks of its own, in order and evenly many
    bint stream,
    int n_threads,
):
    """out[i, b] = sum of weights[q, j] X[i, j] over buckets[q, j] = b; whether all are finite."""
    return _dense(X, buckets, weights, out, apart, _sums_of(out.shape[1], stream), n_threads)


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
    return _dense(X, buckets, weights, out, apart, _waves_of(out.shape[1], scale, phase, stream),
                  n_threads)


cdef struct Columns:
    # What the columns of out are made of.
    Py_ssize_t sums                    # of a row
    bint waves                         # their cosines and sines, or they themselves
    Py_ssize_t pairs                   # of a cosine and a sine
    Py_ssize_t width
    double scale
    double phase
    bint stream


cdef inline Columns _sums_of(Py_ssize_t width, bint stream) noexcept nogil:
    return Columns(sums=width, waves=False, pairs=0, width=width, scale=0, phase=0, stream=stream)


cdef inline Columns _waves_of(Py_ssize_t width, double scale, double phase,
                              bint stream) noexcept nogil:
    return Columns(sums=width // 2 + width % 2, waves=True, pairs=width // 2, width=width,
                   scale=scale, phase=phase, stream=stream)


cdef struct Passes:
    # How the sums of a tile of rows come about: `together` passes after another stay in the cache.
    Py_ssize_t d                       # coordinates of a row
    Py_ssize_t count
    Py_ssize_t sums                    # of all passes, shared evenly where they are apart
    Py_ssize_t together
    bint transposed                    # a tile of rows is transposed once for all of them


cdef inline Passes _passes_of(Py_ssize_t d, Py_ssize_t count, Py_ssize_t sums, bint apart,
                              Py_ssize_t vector) noexcept nogil:
    """Plan the passes for vectors of so many bytes."""
    cdef:
        bint transposed = count > 1 and d * vector <= TRANSPOSED
        Py_ssize_t each = max(<Py_ssize_t> 1, -(-sums // max(count, 1))) * vector
        Py_ssize_t together = max(<Py_ssize_t> 1, (FEWER if transposed else SUMS) // each)
    return Passes(d=d, count=count, sums=sums, together=together if apart else count,
                  transposed=transposed)


cdef inline Py_ssize_t _first(Py_ssize_t q, Passes passes) noexcept nogil:
    """Return the first sum of a pass."""
    return q * (passes.sums // passes.count) + min(q, passes.sums % passes.count)


cdef bint _dense(const floating[:, :] X, const int32_t[:, ::1] buckets,
                 const floating[:, ::1] weights, floating[:, :] out, bint apart, Columns columns,
                 int n_threads) except -1:
    cdef:
        Py_ssize_t n = X.shape[0], d = X.shape[1], sums = columns.sums
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t ldx = X.strides[0] // <Py_ssize_t> sizeof(floating)
        Py_ssize_t ldo = out.strides[0] // <Py_ssize_t> sizeof(floating)
        Passes passes = _passes_of(d, buckets.shape[0], sums, apart, lanes * sizeof(floating))
        Py_ssize_t held, own, tile, i, r, count
        int bad = 0, of_tile
        floating* scratch
        floating* acc
        floating* row
    if n == 0 or columns.width == 0:
        return True
    if (d > 1 and X.strides[1] != sizeof(floating)) or (
            columns.width > 1 and out.strides[1] != sizeof(floating)) or out.shape[0] != n:
        raise ValueError("X and out must have equally many rows, and unit column stride")
    if buckets.shape[1] != d or weights.shape[0] != passes.count or weights.shape[1] != d:
        raise ValueError("buckets and weights must have shape (passes, D)")
    held = min(sums, min(passes.together, passes.count) * (sums // passes.count + 1))
    own = held * lanes + MOST * STRIP + (d * lanes if passes.transposed else 0) + PAGE
    scratch = <floating*> gzk_alloc((n_threads * own + sums) * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the sums of block_projection")
    for tile in prange((n + lanes - 1) // lanes, schedule="dynamic", nogil=True,
                       num_threads=n_threads):
        acc = scratch + threadid() * own
        i = tile * lanes
        count = min(lanes, n - i)
        of_tile = 0
        if 4 * count <= lanes:  # at most one tile is so short: its sums can have one place
            for r in range(count):
                row = scratch + n_threads * own if columns.waves else &out[i + r, 0]
                _sum_row(&X[i + r, 0], &buckets[0, 0], &weights[0, 0], passes, row)
                of_tile = of_tile + not_finite(row, sums)
                _write_row(row, columns, &out[i + r, 0])
        else:
            of_tile = _tile(&X[i, 0], ldx, count, &buckets[0, 0], &weights[0, 0], passes, columns,
                            acc, acc + held * lanes, acc + held * lanes + MOST * STRIP, &out[i, 0],
                            ldo)
        bad += of_tile
        GZK_FENCE()
    gzk_free(scratch)
    return bad == 0


cdef inline void _sum_row(const floating* x, const int32_t* buckets, const floating* weights,
                          Passes passes, floating* row) noexcept nogil:
    """row = the sums of one row."""
    cdef Py_ssize_t q
    memset(row, 0, passes.sums * sizeof(floating))
    for q in range(passes.count):
        scatter_row(x, buckets + q * passes.d, weights + q * passes.d, passes.d, row)


cdef inline void _write_row(const floating* row, Columns columns, floating* out) noexcept nogil:
    """out = the waves of one row's sums, which else are there already."""
    if columns.waves:
        write_angles(row, 0, columns.sums, columns.pairs, <floating> columns.phase,
                     <floating> columns.scale, out, columns.width, columns.stream)


cdef inline int _tile(const floating* x, Py_ssize_t ldx, Py_ssize_t count, const int32_t* buckets,
                      const floating* weights, Passes passes, Columns columns, floating* acc,
                      floating* strip, floating* transposed, floating* out,
                      Py_ssize_t ldo) noexcept nogil:
    """Write `count` rows, at most as many as a vector has lanes; how many groups weren't finite."""
    cdef:
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t d = passes.d, q = 0, last, p, low, high, r
        int bad = 0
        const floating* rows[MOST]
    for r in range(lanes):
        rows[r] = x + min(r, count - 1) * ldx
    if passes.transposed:
        load_radial(x, ldx, <int> count, d, transposed)
    while q < passes.count:
        last = min(q + passes.together, passes.count)
        low = _first(q, passes)
        high = _first(last, passes)
        memset(acc, 0, (high - low) * lanes * sizeof(floating))
        if passes.transposed:
            for p in range(q, last):
                scatter_columns(transposed, buckets + p * d, weights + p * d, d, acc - low * lanes)
        else:
            scatter(rows, buckets + q * d, weights + q * d, d, last - q, acc - low * lanes)
        bad += not_finite(acc, (high - low) * lanes)
        if columns.waves or columns.stream:
            _write_strips(acc, low, high, count, lanes, columns, strip, out, ldo)
        else:
            unpack(acc, high - low, <int> count, out + low, ldo)
        q = last
    return bad


cdef inline void _write_strips(const floating* acc, Py_ssize_t low, Py_ssize_t high,
                               Py_ssize_t count, Py_ssize_t lanes, Columns columns, floating* strip,
                               floating* out, Py_ssize_t ldo) noexcept nogil:
    """Write the sums `low` to `high` of `count` rows, or their waves, strip by strip."""
    cdef Py_ssize_t j = low, stop, r
    while j < high:
        stop = min(j - j % STRIP + STRIP, high)
        unpack(acc + (j - low) * lanes, stop - j, <int> count, strip, STRIP)
        for r in range(count):
            if columns.waves:
                write_angles(strip + r * STRIP, j, stop - j, columns.pairs,
                             <floating> columns.phase, <floating> columns.scale, out + r * ldo,
                             columns.width, columns.stream)
            else:
                gzk_copy(out + r * ldo + j, strip + r * STRIP, (stop - j) * sizeof(floating), True)
        j = stop


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
    return _sparse(data, indices, indptr, buckets, weights, out, _sums_of(out.shape[1], False),
                   n_threads)


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
    return _sparse(data, indices, indptr, buckets, weights, out,
                   _waves_of(out.shape[1], scale, phase, stream), n_threads)


cdef bint _sparse(const floating[::1] data, const index[::1] indices, const index[::1] indptr,
                  const int32_t[:, ::1] buckets, const floating[:, ::1] weights, floating[:, :] out,
                  Columns columns, int n_threads) except -1:
    cdef:
        Py_ssize_t n = indptr.shape[0] - 1, sums = columns.sums, own = sums + PAGE, i, q, p
        int bad = 0
        floating* scratch
        floating* row
        const int32_t* to
        const floating* by
    if n == 0 or columns.width == 0:
        return True
    agree(out.shape[0] == n and weights.shape[0] == buckets.shape[0]
          and weights.shape[1] == buckets.shape[1], "X, buckets, weights and out")
    scratch = <floating*> gzk_alloc(n_threads * own * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the sums of block_projection_csr")
    for i in prange(n, schedule="dynamic", chunksize=16, nogil=True, num_threads=n_threads):
        row = scratch + threadid() * own if columns.waves else &out[i, 0]
        memset(row, 0, sums * sizeof(floating))
        for q in range(buckets.shape[0]):
            to = &buckets[q, 0]
            by = &weights[q, 0]
            for p in range(indptr[i], indptr[i + 1]):
                row[to[indices[p]]] += by[indices[p]] * data[p]
        bad += not_finite(row, sums)
        _write_row(row, columns, &out[i, 0])
        GZK_FENCE()
    gzk_free(scratch)
    return bad == 0
