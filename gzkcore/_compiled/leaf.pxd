"""The leaf operations of `leaf.h`, each for float and double under one name, for the kernels.

The C compiler checks these declarations against the header: a wrong pointer is an error.
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
    void gzk_copy(void* dst, const void* src, Py_ssize_t n, int stream)
    void GZK_FENCE()
    void* gzk_alloc(size_t bytes)
    void gzk_free(void* p)
    void gzk_dots_f32(const float* x, Py_ssize_t ldx, const float* w, Py_ssize_t ldw, float* t,
                      Py_ssize_t ldt, Py_ssize_t d, Py_ssize_t m, int rows)
    void gzk_dots_f64(const double* x, Py_ssize_t ldx, const double* w, Py_ssize_t ldw, double* t,
                      Py_ssize_t ldt, Py_ssize_t d, Py_ssize_t m, int rows)
    void gzk_clenshaw_f32(const float* t, Py_ssize_t m, const float* c, const float* b,
                          Py_ssize_t degree, float* out, int stream)
    void gzk_clenshaw_f64(const double* t, Py_ssize_t m, const double* c, const double* b,
                          Py_ssize_t degree, double* out, int stream)
    void gzk_horner_f32(const float* x, Py_ssize_t ldx, const float* w, Py_ssize_t ldw,
                        Py_ssize_t d, Py_ssize_t m, const float* c, Py_ssize_t ldc,
                        Py_ssize_t degree, float* out, Py_ssize_t ldo, int stream, int rows)
    void gzk_horner_f64(const double* x, Py_ssize_t ldx, const double* w, Py_ssize_t ldw,
                        Py_ssize_t d, Py_ssize_t m, const double* c, Py_ssize_t ldc,
                        Py_ssize_t degree, double* out, Py_ssize_t ldo, int stream, int rows)
    void gzk_halves_f32(const float* x, Py_ssize_t ldx, const float* w, Py_ssize_t ldw,
                        Py_ssize_t d, Py_ssize_t m, const float* c, Py_ssize_t ldc,
                        Py_ssize_t degree, float* out, Py_ssize_t ldo, int stream, int rows)
    void gzk_halves_f64(const double* x, Py_ssize_t ldx, const double* w, Py_ssize_t ldw,
                        Py_ssize_t d, Py_ssize_t m, const double* c, Py_ssize_t ldc,
                        Py_ssize_t degree, double* out, Py_ssize_t ldo, int stream, int rows)
    void gzk_load_points_f32(const float* points, Py_ssize_t ld, int count, Py_ssize_t d, float* x,
                             float* rho2)
    void gzk_load_points_f64(const double* points, Py_ssize_t ld, int count, Py_ssize_t d,
                             double* x, double* rho2)
    void gzk_powers_f32(const float* x, const float* y, float* power, Py_ssize_t degree)
    void gzk_powers_f64(const double* x, const double* y, double* power, Py_ssize_t degree)
    void gzk_factors_f32(const float* x, const float* rho2, const float* steps, float* factor,
                         Py_ssize_t degree)
    void gzk_factors_f64(const double* x, const double* rho2, const double* steps, double* factor,
                         Py_ssize_t degree)
    void gzk_nodes_f32(const float* power, const float* factor, const Py_ssize_t* tree,
                       const float* scale, float* node, Py_ssize_t powers, Py_ssize_t count)
    void gzk_nodes_f64(const double* power, const double* factor, const Py_ssize_t* tree,
                       const double* scale, double* node, Py_ssize_t powers, Py_ssize_t count)
    void gzk_load_radial_f32(const float* rows, Py_ssize_t ld, int count, Py_ssize_t columns,
                             float* out)
    void gzk_load_radial_f64(const double* rows, Py_ssize_t ld, int count, Py_ssize_t columns,
                             double* out)
    void gzk_columns_f32(const float* factor, const float* node, const float* radial,
                         const int32_t* column, const float* scale, float* out, Py_ssize_t ldo,
                         Py_ssize_t count, int stream)
    void gzk_columns_f64(const double* factor, const double* node, const double* radial,
                         const int32_t* column, const double* scale, double* out, Py_ssize_t ldo,
                         Py_ssize_t count, int stream)
    void gzk_polynomials_f32(const double* table, double s, Py_ssize_t top, Py_ssize_t count,
                             float* out)
    void gzk_polynomials_f64(const double* table, double s, Py_ssize_t top, Py_ssize_t count,
                             double* out)

# What lies between the scratch of two threads, in elements: a page, or the prefetcher of one takes
# lines that another is writing.
cdef enum:
    PAGE = 1024


cdef inline void dots(const floating* x, Py_ssize_t ldx, const floating* w, Py_ssize_t ldw,
                      floating* t, Py_ssize_t ldt, Py_ssize_t d, Py_ssize_t m,
                      int rows) noexcept nogil:
    if floating is float:
        gzk_dots_f32(x, ldx, w, ldw, t, ldt, d, m, rows)
    else:
        gzk_dots_f64(x, ldx, w, ldw, t, ldt, d, m, rows)


cdef inline void clenshaw(const floating* t, Py_ssize_t m, const floating* c, const floating* b,
                          Py_ssize_t degree, floating* out, bint stream) noexcept nogil:
    if floating is float:
        gzk_clenshaw_f32(t, m, c, b, degree, out, stream)
    else:
        gzk_clenshaw_f64(t, m, c, b, degree, out, stream)


cdef inline void horner(const floating* x, Py_ssize_t ldx, const floating* w, Py_ssize_t ldw,
                        Py_ssize_t d, Py_ssize_t m, const floating* c, Py_ssize_t ldc,
                        Py_ssize_t degree, floating* out, Py_ssize_t ldo, bint stream,
                        int rows) noexcept nogil:
    if floating is float:
        gzk_horner_f32(x, ldx, w, ldw, d, m, c, ldc, degree, out, ldo, stream, rows)
    else:
        gzk_horner_f64(x, ldx, w, ldw, d, m, c, ldc, degree, out, ldo, stream, rows)


cdef inline void halves(const floating* x, Py_ssize_t ldx, const floating* w, Py_ssize_t ldw,
                        Py_ssize_t d, Py_ssize_t m, const floating* c, Py_ssize_t ldc,
                        Py_ssize_t degree, floating* out, Py_ssize_t ldo, bint stream,
                        int rows) noexcept nogil:
    if floating is float:
        gzk_halves_f32(x, ldx, w, ldw, d, m, c, ldc, degree, out, ldo, stream, rows)
    else:
        gzk_halves_f64(x, ldx, w, ldw, d, m, c, ldc, degree, out, ldo, stream, rows)


cdef inline void load_points(const floating* points, Py_ssize_t ld, int count, Py_ssize_t d,
                             floating* x, floating* rho2) noexcept nogil:
    if floating is float:
        gzk_load_points_f32(points, ld, count, d, x, rho2)
    else:
        gzk_load_points_f64(points, ld, count, d, x, rho2)


cdef inline void powers(const floating* x, const floating* y, floating* power,
                        Py_ssize_t degree) noexcept nogil:
    if floating is float:
        gzk_powers_f32(x, y, power, degree)
    else:
        gzk_powers_f64(x, y, power, degree)


cdef inline void factors(const floating* x, const floating* rho2, const floating* steps,
                         floating* factor, Py_ssize_t degree) noexcept nogil:
    if floating is float:
        gzk_factors_f32(x, rho2, steps, factor, degree)
    else:
        gzk_factors_f64(x, rho2, steps, factor, degree)


cdef inline void nodes(const floating* power, const floating* factor, const Py_ssize_t* tree,
                       const floating* scale, floating* node, Py_ssize_t n_powers,
                       Py_ssize_t count) noexcept nogil:
    if floating is float:
        gzk_nodes_f32(power, factor, tree, scale, node, n_powers, count)
    else:
        gzk_nodes_f64(power, factor, tree, scale, node, n_powers, count)


cdef inline void load_radial(const floating* rows, Py_ssize_t ld, int count, Py_ssize_t columns,
                             floating* out) noexcept nogil:
    if floating is float:
        gzk_load_radial_f32(rows, ld, count, columns, out)
    else:
        gzk_load_radial_f64(rows, ld, count, columns, out)


cdef inline void polynomials(const double* table, double s, Py_ssize_t top, Py_ssize_t count,
                             floating* out) noexcept nogil:
    if floating is float:
        gzk_polynomials_f32(table, s, top, count, out)
    else:
        gzk_polynomials_f64(table, s, top, count, out)


cdef inline void columns_of(const floating* factor, const floating* node, const floating* radial,
                            const int32_t* place, const floating* scale, floating* out,
                            Py_ssize_t ldo, Py_ssize_t count, bint stream) noexcept nogil:
    if floating is float:
        gzk_columns_f32(factor, node, radial, place, scale, out, ldo, count, stream)
    else:
        gzk_columns_f64(factor, node, radial, place, scale, out, ldo, count, stream)


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

    Where the group is full, whole vectors go to `out` at once, past the cache from the boundary on
    that all its rows have in common. All else goes by way of `row`, which holds lanes x (whole +
    lanes) values.
    """
    cdef Py_ssize_t whole = count // lanes * lanes, head = 0, r
    if stream:
        while head < min(lanes, count) and not gzk_on_boundary(out + head):
            head += 1
    if rows == lanes and (not stream or (head < lanes and gzk_on_boundary(out + head + ldo))):
        whole = (count - head) // lanes * lanes
        columns_of(factor, node, radial, place + 3 * head, scale + head, out + head, ldo, whole,
                   stream)
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
