"""The leaf operations of `leaf.h`, for the kernels.

C chooses between float and double by the type of a pointer (`GZK_OF`), and checks the arguments:
Cython, which has no such functions, passes on any (`...`). An operation is written once, in
`leaf_ops.h`; it has a macro at the end of `leaf.h` and a line here.
"""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t

# The numbers that CSR rows have their columns in.
ctypedef fused index:
    int32_t
    int64_t

cdef extern from "leaf.h" nogil:
    int GZK_LANES_F32, GZK_LANES_F64
    int gzk_on_boundary(const void* p)
    int gzk_on_line(const void* p)
    void gzk_copy(void* dst, const void* src, Py_ssize_t n, int stream)
    void GZK_FENCE()
    void* gzk_alloc(size_t bytes)
    void gzk_free(void* p)
    # x, ldx, w, ldw, t, ldt, d, m, rows
    void dots "gzk_dots"(...)
    # t, m, c, b, degree, out, stream
    void clenshaw "gzk_clenshaw"(...)
    # x, ldx, w, ldw, d, m, c, ldc, degree, out, ldo, stream, rows
    void horner "gzk_horner"(...)
    void halves "gzk_halves"(...)
    # points, ld, count, d, x, rho2
    void load_points "gzk_load_points"(...)
    # x, y, power, degree
    void powers "gzk_powers"(...)
    # x, rho2, steps, factor, degree
    void factors "gzk_factors"(...)
    # power, factor, tree, scale, node, n_powers, count
    void nodes "gzk_nodes"(...)
    # rows, ld, count, columns, out
    void load_radial "gzk_load_radial"(...)
    # factor, node, radial, place, scale, out, ldo, count, stream
    void columns_of "gzk_columns"(...)
    # table, s, top, count, out
    void polynomials "gzk_polynomials"(...)

# What lies between the scratch of two threads, in elements: a page, or the prefetcher of one takes
# lines that another is writing.
cdef enum:
    PAGE = 1024


cdef inline Py_ssize_t padded(Py_ssize_t count, Py_ssize_t lanes) noexcept nogil:
    """How many columns `write_group` looks up."""
    return count + lanes


cdef inline void place_columns(const Py_ssize_t* columns, Py_ssize_t count, Py_ssize_t lanes,
                               int32_t* place) noexcept nogil:
    """Where each column's three factors stand in the scratch, short so that the table stays in L1.

    What a vector has beyond the last column repeats it: see `write_group`. A vector may begin at
    any column, so that there are `padded` columns in all.
    """
    cdef Py_ssize_t c, j, last
    for c in range(padded(count, lanes)):
        last = min(c, count - 1)
        for j in range(3):
            place[3 * c + j] = <int32_t> (columns[3 * last + j] * lanes)


cdef inline void part_of_group(const floating* factor, const floating* node, const floating* radial,
                               const int32_t* place, const floating* scale, floating* row,
                               floating* out, Py_ssize_t ldo, Py_ssize_t rows, Py_ssize_t count,
                               Py_ssize_t lanes) noexcept nogil:
    """Write fewer columns than a vector holds, by way of `row`."""
    cdef Py_ssize_t r
    if count == 0:
        return
    columns_of(factor, node, radial, place, scale, row, lanes, lanes, False)
    for r in range(rows):
        gzk_copy(out + r * ldo, row + r * lanes, count * sizeof(floating), False)


cdef inline void write_group(const floating* factor, const floating* node, const floating* radial,
                             const int32_t* place, const floating* scale, floating* row,
                             floating* out, Py_ssize_t ldo, Py_ssize_t rows, Py_ssize_t count,
                             Py_ssize_t lanes, bint stream) noexcept nogil:
    """Write `count` columns of a group of at most `lanes` rows.

    Where the group is full, whole vectors go to `out` at once, from the boundary on that all its
    rows have in common, and past the cache from the first line on: parts of lines, of several rows
    in turn, took twice as long. All else goes by way of `row`, which holds lanes x (whole + lanes)
    values.
    """
    cdef Py_ssize_t whole = count // lanes * lanes, head = 0, near = 0, r
    if stream:
        while head < min(lanes, count) and not gzk_on_boundary(out + head):
            head += 1
    if rows == lanes and (not stream or (head < lanes and gzk_on_boundary(out + head + ldo))):
        whole = (count - head) // lanes * lanes
        while stream and near < whole and not gzk_on_line(out + head + near):
            near += lanes
        columns_of(factor, node, radial, place + 3 * head, scale + head, out + head, ldo, near,
                   False)
        columns_of(factor, node, radial, place + 3 * (head + near), scale + head + near,
                   out + head + near, ldo, whole - near, stream)
        part_of_group(factor, node, radial, place, scale, row, out, ldo, rows, head, lanes)
        head += whole
        part_of_group(factor, node, radial, place + 3 * head, scale + head, row, out + head, ldo,
                      rows, count - head, lanes)
        return
    columns_of(factor, node, radial, place, scale, row, whole + lanes, whole, False)
    if whole < count:
        columns_of(factor, node, radial, place + 3 * whole, scale + whole, row + whole,
                   whole + lanes, lanes, False)
    for r in range(rows):
        gzk_copy(out + r * ldo, row + r * (whole + lanes), count * sizeof(floating), stream)
