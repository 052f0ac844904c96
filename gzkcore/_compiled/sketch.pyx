"""CountSketch and TensorSketch of dense and of CSR rows, for `sketch`.

Formula    CountSketch: out[i, hashes[t, j]] += scale signs[t, j] x[j], over all t and j.
           TensorSketch: the cyclic convolution of the CountSketches of all t, in columns `first` to
           first + m of out; x ends with one constant column where hashes have one more.
Why        A sketch of the outer power of x whose length is d^p, from p sketches of x itself:
           products of Fourier transforms of length m. Few columns have so few products of a column
           of each of several factors that these are added one by one, which takes no transform.
Cost       A CountSketch is one addition an entry. Its place is looked at on the way, since a table
           of places may be longer than all rows that are sketched. p + 1 Fourier transforms of m
           real numbers, 2.5 m log2(m) operations each, less where factors go together, see
           `_together`; the output is written once.
Order      Parallel over tiles of as many rows as a vector has lanes: lane i of everything is row i,
           so that neither additions to places named by a hash nor the transforms shuffle anything.
           Each row by itself: the same bits for any number of threads.
Layout     X (n, d) in C order or CSR; hashes and signs (p, d or d + 1); m a power of two; roots as
           sketch.h has them, (m / 2, 2) or more; out in C order.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport HUGE_VAL, log2, pow
from libc.stdint cimport int8_t, int32_t
from libc.string cimport memset

from .checks cimport agree, inside
from .leaf cimport (
    GZK_FENCE,
    GZK_LANES_F32,
    GZK_LANES_F64,
    PAGE,
    gzk_alloc,
    gzk_free,
    gzk_on_boundary,
    index,
    load_radial,
)

# Costs in cycles with AVX-512, for `_together`: one addition at a place named by hashes, and a
# Fourier transform of m numbers, divided by m log2(m).
cdef double ADDITION = 6.0, TRANSFORM = 2.5


def count_sketch(
    const floating[:, ::1] X,           # IN   (n, d)
    const int32_t[:, ::1] hashes,       # IN   (s, d), below the columns of out
    const int8_t[:, ::1] signs,         # IN   (s, d)
    floating scale,
    floating[:, ::1] out,               # OUT  (n, m)
    int n_threads,
):
    """CountSketch of dense rows; return how many entries had a place outside, see the head."""
    agree(hashes.shape[1] == X.shape[1] and X.shape[0] == out.shape[0], "X, hashes and out")
    return _count_sketch[floating, int32_t](&X[0, 0], NULL, NULL, X.shape[1], hashes, signs, scale,
                                            out, n_threads)


def count_sketch_sparse(
    const floating[::1] data,           # IN   (nnz,)
    const index[::1] indices,           # IN   (nnz,)
    const index[::1] indptr,            # IN   (n + 1,)
    const int32_t[:, ::1] hashes,
    const int8_t[:, ::1] signs,
    floating scale,
    floating[:, ::1] out,               # OUT  (n, m)
    int n_threads,
):
    """The same for CSR rows."""
    agree(indptr.shape[0] == out.shape[0] + 1, "X and out")
    return _count_sketch(&data[0], &indices[0], &indptr[0], 0, hashes, signs, scale, out, n_threads)


cdef Py_ssize_t _count_sketch(const floating* X, const index* indices, const index* indptr,
                              Py_ssize_t d, const int32_t[:, ::1] hashes,
                              const int8_t[:, ::1] signs, floating scale, floating[:, ::1] out,
                              int n_threads) except -1:
    """Write the sketches of dense rows of d columns, or of CSR ones where indptr isn't NULL."""
    cdef:
        size_t m = out.shape[1]
        Py_ssize_t i, j, t, outside = 0
        size_t place
    agree(signs.shape[0] == hashes.shape[0] and signs.shape[1] == hashes.shape[1],
          "hashes and signs")
    for i in prange(out.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        memset(&out[i, 0], 0, m * sizeof(floating))
        for t in range(hashes.shape[0]):
            if indptr == NULL:
                for j in range(d):
                    place = <size_t> hashes[t, j]  # one below 0 becomes very large
                    if place < m:
                        out[i, place] += signs[t, j] * X[i * d + j]
                    else:
                        outside += 1
            else:
                for j in range(<Py_ssize_t> indptr[i], <Py_ssize_t> indptr[i + 1]):
                    place = <size_t> hashes[t, indices[j]]
                    if place < m:
                        out[i, place] += signs[t, indices[j]] * X[j]
                    else:
                        outside += 1
        for j in range(out.shape[1]):
            out[i, j] = out[i, j] * scale
    return outside


def tensor_sketch(
    const floating[:, ::1] X,           # IN   (n, d)
    const int32_t[:, ::1] hashes,       # IN   (p, d or d + 1), below m
    const int8_t[:, ::1] signs,         # IN   (p, d or d + 1)
    const floating[:, ::1] roots,       # IN   (m / 2 or more, 2)
    floating last,                      # IN   of the constant column
    Py_ssize_t m,
    Py_ssize_t first,                   # IN   the first of the columns of out to write
    floating scale,
    floating[:, ::1] out,               # OUT  (n, first + m or more)
    bint stream,
    int n_threads,
):
    """TensorSketch of dense rows; see the head of this file."""
    _tensor_sketch[floating, int32_t](&X[0, 0], NULL, NULL, X.shape[0], X.shape[1], hashes, signs,
                                      roots, last, m, first, scale, out, stream, n_threads)


def tensor_sketch_sparse(
    const floating[::1] data,           # IN   (nnz,)
    const index[::1] indices,           # IN   (nnz,)
    const index[::1] indptr,            # IN   (n + 1,)
    Py_ssize_t d,
    const int32_t[:, ::1] hashes,
    const int8_t[:, ::1] signs,
    const floating[:, ::1] roots,
    floating last,
    Py_ssize_t m,
    Py_ssize_t first,
    floating scale,
    floating[:, ::1] out,
    bint stream,
    int n_threads,
):
    """The same for CSR rows."""
    agree(indptr.shape[0] == out.shape[0] + 1, "X and out")
    _tensor_sketch(&data[0], &indices[0], &indptr[0], out.shape[0], d, hashes, signs, roots, last,
                   m, first, scale, out, stream, n_threads)


cdef int _tensor_sketch(const floating* X, const index* indices, const index* indptr, Py_ssize_t n,
                        Py_ssize_t d, const int32_t[:, ::1] hashes, const int8_t[:, ::1] signs,
                        const floating[:, ::1] roots, floating last, Py_ssize_t m,
                        Py_ssize_t first, floating scale, floating[:, ::1] out, bint stream,
                        int n_threads) except -1:
    """Write the sketches of n rows of d columns: dense, or CSR where indptr isn't NULL."""
    cdef:
        Py_ssize_t columns = hashes.shape[1]
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t degree = hashes.shape[0], factors = _together(degree, columns, m)
        Py_ssize_t held = columns if indptr == NULL or factors > 1 else 0  # of rows, transposed
        Py_ssize_t size = (held + 2 * m) * lanes + PAGE, tile, group, t, i, count
        floating* scratch
        floating* x
        floating* z
        floating* product
    if n == 0:
        return 0
    agree(degree > 0 and m > 0 and m & (m - 1) == 0 and d <= columns <= d + 1
          and signs.shape[0] == degree and signs.shape[1] == columns and roots.shape[1] == 2
          and 2 * roots.shape[0] >= m and out.shape[0] == n and 0 <= first <= out.shape[1] - m,
          "X, hashes, signs and out")
    inside(&hashes[0, 0], degree * columns, 1, m, "hashes")
    stream = stream and _fits(&out[0, first], out.shape[1], lanes)
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch space of tensor_sketch")
    for tile in prange((n + lanes - 1) // lanes, schedule="static", nogil=True,
                       num_threads=n_threads):
        i = tile * lanes
        count = min(lanes, n - i)
        z = scratch + threadid() * size
        product = z + m * lanes
        x = product + m * lanes
        if held:
            _load(X, indices, indptr, i, count, d, columns, last, lanes, x)
        if factors < degree:
            unit_spectrum(product, m)
        for group in range((degree + factors - 1) // factors):
            t = group * factors
            memset(z, 0, m * lanes * sizeof(floating))
            if held:
                count_lanes(x, &hashes[t, 0], &signs[t, 0], columns, min(factors, degree - t), m, z)
            else:
                _count_entries(X, indices, indptr + i, count, d, &hashes[t, 0], &signs[t, 0],
                               columns, last, lanes, z)
            if factors < degree:
                multiply_spectrum(z, m, &roots[0, 0], product)
        if factors < degree:
            from_spectrum(product, m, &roots[0, 0])
            store_rows(product, m, scale / m, &out[i, first], out.shape[1], <int> count, stream)
        else:
            store_rows(z, m, scale, &out[i, first], out.shape[1], <int> count, stream)
        GZK_FENCE()
    gzk_free(scratch)
    return 0


cdef Py_ssize_t _together(Py_ssize_t degree, Py_ssize_t columns, Py_ssize_t m) noexcept nogil:
    """How many factors to convolve by adding all products of columns: what takes least in all."""
    cdef:
        Py_ssize_t groups, factors, best = 1
        double transform = TRANSFORM * m * log2(m), cost, least = HUGE_VAL
    for groups in range(1, degree + 1):
        factors = (degree + groups - 1) // groups
        cost = ADDITION * ((degree // factors) * pow(columns, factors)
                           + pow(columns, degree % factors))
        if groups > 1:
            cost = cost + (groups + 1) * transform
        if cost < least:
            best, least = factors, cost
    return best


cdef inline void _load(const floating* X, const index* indices, const index* indptr, Py_ssize_t i,
                       Py_ssize_t count, Py_ssize_t d, Py_ssize_t columns, floating last,
                       Py_ssize_t lanes, floating* x) noexcept nogil:
    """Write `count` rows from row i on, dense or of CSR, to x (columns, lanes)."""
    cdef Py_ssize_t r, j
    if indptr == NULL:
        load_radial(X + i * d, d, <int> count, d, x)
    else:
        memset(x, 0, d * lanes * sizeof(floating))
        for r in range(count):
            for j in range(<Py_ssize_t> indptr[i + r], <Py_ssize_t> indptr[i + r + 1]):
                x[indices[j] * lanes + r] += X[j]
    for j in range(d * lanes, columns * lanes):
        x[j] = last


cdef inline void _count_entries(const floating* data, const index* indices, const index* indptr,
                                Py_ssize_t count, Py_ssize_t d, const int32_t* hashes,
                                const int8_t* signs, Py_ssize_t columns, floating last,
                                Py_ssize_t lanes, floating* z) noexcept nogil:
    """Add the CountSketches of `count` CSR rows, and of their constant column, to z (m, lanes)."""
    cdef Py_ssize_t i, j
    for i in range(count):
        for j in range(<Py_ssize_t> indptr[i], <Py_ssize_t> indptr[i + 1]):
            z[hashes[indices[j]] * lanes + i] += signs[indices[j]] * data[j]
        if columns > d:
            z[hashes[d] * lanes + i] += signs[d] * last


cdef inline bint _fits(const floating* p, Py_ssize_t columns, Py_ssize_t lanes) noexcept nogil:
    """Whether every row can be streamed by whole vectors."""
    return gzk_on_boundary(p) and columns % lanes == 0
