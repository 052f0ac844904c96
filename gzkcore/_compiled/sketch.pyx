"""CountSketch and TensorSketch of dense and of CSR rows, for `sketch`.

Formula    CountSketch: out[i, hashes[t, j]] += scale signs[t, j] x[j], over all t and j.
           TensorSketch: the cyclic convolution of the CountSketches of all t, in columns `first` to
           first + m of out; x ends with one constant column where hashes have one more.
Why        A sketch of the outer power of x whose length is d^p, from p sketches of x itself:
           products of Fourier transforms of length m.
Cost       A CountSketch is one addition an entry. p + 1 Fourier transforms of m real numbers, 2.5 m
           log2(m) operations each; the output is written once.
Order      Parallel over tiles of as many rows as a vector has lanes: lane i of everything is row i,
           so that neither additions to places named by a hash nor the transforms shuffle anything.
           Each row by itself: the same bits for any number of threads.
Layout     X (n, d) in C order or CSR; hashes and signs (p, d or d + 1); m a power of two; roots as
           sketch.h has them, (m / 2, 2) or more; out in C order.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int8_t, int32_t, int64_t
from libc.string cimport memset

from .leaf cimport (
    GZK_FENCE,
    GZK_LANES_F32,
    GZK_LANES_F64,
    PAGE,
    gzk_alloc,
    gzk_free,
    gzk_on_boundary,
    load_radial,
)

ctypedef fused index:
    int32_t
    int64_t


def count_sketch(
    const floating[:, ::1] X,           # IN   (n, d)
    const int32_t[:, ::1] hashes,       # IN   (s, d), below the columns of out
    const int8_t[:, ::1] signs,         # IN   (s, d)
    floating scale,
    floating[:, ::1] out,               # OUT  (n, m)
    int n_threads,
):
    """CountSketch of dense rows; see the head of this file."""
    cdef Py_ssize_t i, j, t
    for i in prange(X.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        memset(&out[i, 0], 0, out.shape[1] * sizeof(floating))
        for t in range(hashes.shape[0]):
            for j in range(X.shape[1]):
                out[i, hashes[t, j]] += signs[t, j] * X[i, j]
        for j in range(out.shape[1]):
            out[i, j] = out[i, j] * scale


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
    cdef Py_ssize_t i, j, t
    for i in prange(out.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        memset(&out[i, 0], 0, out.shape[1] * sizeof(floating))
        for t in range(hashes.shape[0]):
            for j in range(<Py_ssize_t> indptr[i], <Py_ssize_t> indptr[i + 1]):
                out[i, hashes[t, indices[j]]] += signs[t, indices[j]] * data[j]
        for j in range(out.shape[1]):
            out[i, j] = out[i, j] * scale


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
    cdef:
        Py_ssize_t n = X.shape[0], d = X.shape[1], columns = hashes.shape[1]
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t size = (columns + 2 * m) * lanes + PAGE, tile, t, j, count
        floating* scratch
        floating* x
        floating* z
        floating* product
    if n == 0:
        return
    stream = stream and _fits(&out[0, first], out.shape[1], lanes)
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch space of tensor_sketch")
    for tile in prange((n + lanes - 1) // lanes, schedule="static", nogil=True,
                       num_threads=n_threads):
        count = min(lanes, n - tile * lanes)
        z = scratch + threadid() * size
        product = z + m * lanes
        x = product + m * lanes
        load_radial(&X[tile * lanes, 0], d, <int> count, d, x)
        for j in range((columns - d) * lanes):
            x[d * lanes + j] = last
        unit_spectrum(product, m)
        for t in range(hashes.shape[0]):
            memset(z, 0, m * lanes * sizeof(floating))
            count_lanes(x, &hashes[t, 0], &signs[t, 0], columns, z)
            multiply_spectrum(z, m, &roots[0, 0], product)
        from_spectrum(product, m, &roots[0, 0])
        store_rows(product, m, scale / m, &out[tile * lanes, first], out.shape[1], <int> count,
                   stream)
        GZK_FENCE()
    gzk_free(scratch)


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
    cdef:
        Py_ssize_t n = out.shape[0], columns = hashes.shape[1]
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        Py_ssize_t size = 2 * m * lanes + PAGE, tile, t, i, j, count, where
        floating* scratch
        floating* z
        floating* product
    if n == 0:
        return
    stream = stream and _fits(&out[0, first], out.shape[1], lanes)
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch space of tensor_sketch_sparse")
    for tile in prange((n + lanes - 1) // lanes, schedule="static", nogil=True,
                       num_threads=n_threads):
        count = min(lanes, n - tile * lanes)
        z = scratch + threadid() * size
        product = z + m * lanes
        unit_spectrum(product, m)
        for t in range(hashes.shape[0]):
            memset(z, 0, m * lanes * sizeof(floating))
            for i in range(count):
                for j in range(<Py_ssize_t> indptr[tile * lanes + i],
                               <Py_ssize_t> indptr[tile * lanes + i + 1]):
                    where = hashes[t, indices[j]]
                    z[where * lanes + i] += signs[t, indices[j]] * data[j]
                if columns > d:
                    where = hashes[t, d]
                    z[where * lanes + i] += signs[t, d] * last
            multiply_spectrum(z, m, &roots[0, 0], product)
        from_spectrum(product, m, &roots[0, 0])
        store_rows(product, m, scale / m, &out[tile * lanes, first], out.shape[1], <int> count,
                   stream)
        GZK_FENCE()
    gzk_free(scratch)


cdef inline bint _fits(const floating* p, Py_ssize_t columns, Py_ssize_t lanes) noexcept nogil:
    """Whether every row can be streamed by whole vectors."""
    return gzk_on_boundary(p) and columns % lanes == 0
