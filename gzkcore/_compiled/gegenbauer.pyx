"""Gegenbauer features: a polynomial per row, at the cosines between rows and directions; and Phi.

Formula    out[i, j] = sum_k coefficients[i, k] p_k(<x_i, w_j>), with p_0 = 1, p_1 = t and
           p_(k+1) = t p_k - beta[k] p_(k-1). With the beta of `Recurrence` in
           `gegenbauer_columns.py` this is the sum of Eq 13 of Han, Zandieh, Avron; with beta = 0
           it is Horner's rule on monomials. Without any beta p_k = t^(k mod 2) u^(k div 2) with
           u = 2 t^2 - 1, the rule in halves: Horner's in u, for even and odd powers.
Why        Clenshaw's rule needs two fused operations a degree and direction, Horner's one, that in
           halves three more in all; the plain recurrence needs three. Which is safe is decided
           there. In u the degree is half as high, and the loss of digits the root of that in t.
Cost       n m (d + 2 q) fused operations (d + q by Horner's); reads X and coefficients once, writes
           out once. For d = 3, q = 15 and Horner arithmetic and memory take equally long.
Order      Parallel over tiles of rows. In a tile, four rows share the loads of the directions
           (stored transposed, so that vectors run over directions). By Horner's rules a few cosines
           at a time turn into features in registers; by Clenshaw's, whose steps need more of them,
           by way of a strip of cosines in L1. Stores go past the cache if out is large; then the
           strips begin at the first column on a vector's boundary, and the columns before it are
           a strip of their own, as is the last, partly filled vector.
Layout     X (n, d) unit rows, W (m, d) unit rows, out any row stride but unit column stride.
           Whoever calls transposes the directions, once (a call with one row took less time than
           that), strip by strip: at d = 784 steps of m columns, which are steps of pages, took
           twice as long.
           Each entry is computed by the same operations whatever the tile or thread: the same bits.

The operator Phi of the features phi_i(x, w) = sum_l radial[x, l, i] P_d^l(<x, w>) (Eq 13, roots of
alpha in `radial`), applied to vectors:

Formula    apply_operator  out[i, w, c] += sum_x phi_i(x, w) v[x, c]      (Eq 14, at nodes w)
           apply_adjoint   out[x, c] = sum_(i, w) phi_i(x, w) f[i, w, c]  (Eq 15 with Eq 6)
Why        The features of n rows at m nodes are n m s numbers, which are used once: each strip of
           them is multiplied while it is in L1, and none is stored.
Cost       n m (2 d + 4 q + 2 q s) flops for the features, 2 n m s for each vector.
Order      Parallel over strips of nodes, or over rows: each result belongs to one thread, and its
           terms are added in the same order whatever their number. Vectors run over nodes.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid

from .checks cimport agree
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
    halves,
    horner,
)

cdef enum:
    ROWS = 4        # rows whose cosines are formed together
    COLUMNS = 256   # columns that are worked on together: they stay in the first cache
    TILE = 64       # rows that a thread takes at a time
    STRIP = ROWS * COLUMNS + PAGE
    NODES = 64      # nodes of the sphere that the operator takes at a time


def strip_columns():
    """Return how many columns a strip has."""
    return COLUMNS


def gegenbauer_features(
    const floating[:, ::1] X,              # IN   (n, d), unit rows
    const floating[:, :, ::1] W,           # IN   (strips, d, COLUMNS): direction j of norm 1 (times
                                           #      the recurrence's scale), or 0 where j >= m
    const floating[:, ::1] coefficients,   # IN   (n, q + 1), or (1, q + 1) for all rows
    const floating[::1] beta,              # IN   (q + 1,), beta[0] unused; or (0,): in halves
    floating[:, :] out,                    # OUT  (n, m), unit column stride
    bint stream,
    int n_threads,
):
    """out[i, j] = sum_k coefficients[i, k] p_k(<x_i, w_j>); see the head of this file."""
    cdef:
        Py_ssize_t n = X.shape[0], d = X.shape[1], m = out.shape[1]
        Py_ssize_t degree = coefficients.shape[1] - 1
        Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
        bint one_row = coefficients.shape[0] == 1
        Py_ssize_t ldc = 0 if one_row else degree + 1
        Py_ssize_t ldo = out.strides[0] // <Py_ssize_t> sizeof(floating)
        Py_ssize_t tile, strip, group, i, j, r, a, rows, columns, width, last
        Py_ssize_t whole, strips
        bint in_halves = beta.shape[0] == 0, by_horner = True, direct
        const floating* wide
        floating* scratch
        floating* t
        floating* row
        const floating* c
    if n == 0 or m == 0:
        return
    if out.shape[0] != n or out.strides[1] != sizeof(floating):
        raise ValueError("out must have shape (n, m) and unit column stride")
    agree(W.shape[0] * COLUMNS >= m and W.shape[1] == d > 0 and W.shape[2] == COLUMNS
          and degree >= 0 and (one_row or coefficients.shape[0] == n)
          and (in_halves or beta.shape[0] > degree), "X, W, coefficients and beta")
    for a in range(1, 0 if in_halves else degree + 1):
        by_horner = by_horner and beta[a] == 0
    # The last strip has what fills no vector, if there is anything.
    whole = m // lanes * lanes
    strips = (whole + COLUMNS - 1) // COLUMNS + (m > whole)
    scratch = <floating*> gzk_alloc((n_threads + 1) * STRIP * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the cosines of gegenbauer_features")
    for tile in prange((n + TILE - 1) // TILE, schedule="dynamic", chunksize=4, nogil=True,
                       num_threads=n_threads):
        t = scratch + threadid() * STRIP
        last = min(n, (tile + 1) * TILE)
        for strip in range(strips):
            j = min(strip * COLUMNS, whole)
            width = min(<Py_ssize_t> COLUMNS, (m if j == whole else whole) - j)
            columns = (width + lanes - 1) // lanes * lanes
            wide = &W[j // COLUMNS, 0, j % COLUMNS]
            for group in range((last - tile * TILE + ROWS - 1) // ROWS):
                i = tile * TILE + group * ROWS
                rows = min(<Py_ssize_t> ROWS, last - i)
                c = &coefficients[0 if one_row else i, 0]
                row = &out[i, j]
                # By way of the strip: partly filled vectors, or rows off the boundary.
                direct = width == columns and (
                    not stream or (gzk_on_boundary(row) and gzk_on_boundary(row + ldo)))
                if in_halves and direct:
                    halves(&X[i, 0], d, wide, COLUMNS, d, columns, c, ldc, degree, row, ldo,
                           stream, <int> rows)
                elif in_halves:
                    halves(&X[i, 0], d, wide, COLUMNS, d, columns, c, ldc, degree, t, COLUMNS,
                           False, <int> rows)
                elif by_horner and direct:
                    horner(&X[i, 0], d, wide, COLUMNS, d, columns, c, ldc, degree, row, ldo,
                           stream, <int> rows)
                elif by_horner:
                    horner(&X[i, 0], d, wide, COLUMNS, d, columns, c, ldc, degree, t, COLUMNS,
                           False, <int> rows)
                else:
                    dots(&X[i, 0], d, wide, COLUMNS, t, COLUMNS, d, columns, <int> rows)
                    for r in range(rows):
                        clenshaw(t + r * COLUMNS, columns, c + r * ldc, &beta[0], degree,
                                 row + r * ldo if direct else t + r * COLUMNS,
                                 direct and stream)
                if not direct:
                    for r in range(rows):
                        gzk_copy(row + r * ldo, t + r * COLUMNS, width * sizeof(floating), stream)
        GZK_FENCE()
    gzk_free(scratch)


# ---- the operator Phi, applied to vectors


cdef void _features(const double* x, const double[:, ::1] W, Py_ssize_t first, Py_ssize_t width,
                    const double* radial, Py_ssize_t degree, Py_ssize_t order,
                    double* out) noexcept nogil:
    """The features of a row at `width` nodes, (order, NODES)."""
    cdef double[NODES] t
    cdef double[NODES] before
    cdef double[NODES] value
    cdef Py_ssize_t dim = W.shape[0], a, i, k, level
    cdef const double* w
    cdef double* row
    cdef double h, up, down, after
    for k in range(width):
        t[k], before[k], value[k] = 0.0, 0.0, 1.0
    for a in range(dim):
        w, h = &W[a, first], x[a]
        for k in range(width):
            t[k] = t[k] + h * w[k]
    for i in range(order):
        row = out + i * NODES
        for k in range(width):
            row[k] = radial[i]
    for level in range(1, degree + 1):
        # (l+d-3) P_l = (2l+d-4) t P_(l-1) - (l-1) P_(l-2); t^l on the line
        up, down = 1.0, 0.0
        if level > 1 and dim > 1:
            up = (2.0 * level + dim - 4) / (level + dim - 3)
            down = (level - 1.0) / (level + dim - 3)
        for k in range(width):
            after = up * t[k] * value[k] - down * before[k]
            before[k] = value[k]
            value[k] = after
        for i in range(order):
            row, h = out + i * NODES, radial[level * order + i]
            for k in range(width):
                row[k] = row[k] + h * value[k]


def apply_operator(
    const double[:, ::1] X,            # IN   (n, d), unit rows
    const double[:, ::1] W,            # IN   (d, m), nodes
    const double[:, :, ::1] radial,    # IN   (n, q + 1, s)
    const double[:, ::1] v,            # IN   (n, c)
    double[:, :, ::1] out,             # IN OUT (s, m, c), added to
    int n_threads,
):
    """Add sum over x of phi_i(x, w) v[x, c] to out[i, w, c]."""
    cdef Py_ssize_t m = W.shape[1], size = radial.shape[2] * NODES + PAGE, strip
    cdef double* scratch = <double*> gzk_alloc(n_threads * size * sizeof(double))
    if scratch == NULL:
        raise MemoryError("no memory for the features of apply_operator")
    for strip in prange((m + NODES - 1) // NODES, schedule="static", nogil=True,
                        num_threads=n_threads):
        _operate(X, W, radial, v, out, strip * NODES, scratch + threadid() * size)
    gzk_free(scratch)


cdef void _operate(const double[:, ::1] X, const double[:, ::1] W, const double[:, :, ::1] radial,
                   const double[:, ::1] v, double[:, :, ::1] out, Py_ssize_t first,
                   double* features) noexcept nogil:
    """The same of one strip of nodes."""
    cdef Py_ssize_t order = radial.shape[2], n_vectors = v.shape[1], row, i, k, c
    cdef Py_ssize_t width = min(<Py_ssize_t> NODES, W.shape[1] - first)
    cdef double* target
    cdef const double* vectors
    cdef const double* phi
    for row in range(X.shape[0]):
        _features(&X[row, 0], W, first, width, &radial[row, 0, 0], radial.shape[1] - 1, order,
                  features)
        vectors = &v[row, 0]
        for i in range(order):
            phi, target = features + i * NODES, &out[i, first, 0]
            if n_vectors == 1:
                for k in range(width):
                    target[k] += phi[k] * vectors[0]
                continue
            for k in range(width):
                for c in range(n_vectors):
                    target[k * n_vectors + c] += phi[k] * vectors[c]


def apply_adjoint(
    const double[:, ::1] X,            # IN   (n, d), unit rows
    const double[:, ::1] W,            # IN   (d, m), nodes
    const double[:, :, ::1] radial,    # IN   (n, q + 1, s)
    const double[:, :, ::1] f,         # IN   (s, m, c)
    double[:, ::1] out,                # OUT  (n, c)
    int n_threads,
):
    """out[x, c] = sum over i and w of phi_i(x, w) f[i, w, c]."""
    cdef Py_ssize_t n = X.shape[0], size = radial.shape[2] * NODES + PAGE, row
    cdef double* scratch = <double*> gzk_alloc(n_threads * size * sizeof(double))
    if scratch == NULL:
        raise MemoryError("no memory for the features of apply_adjoint")
    for row in prange(n, schedule="static", nogil=True, num_threads=n_threads):
        _adjoin(X, W, radial, f, out, row, scratch + threadid() * size)
    gzk_free(scratch)


cdef void _adjoin(const double[:, ::1] X, const double[:, ::1] W, const double[:, :, ::1] radial,
                  const double[:, :, ::1] f, double[:, ::1] out, Py_ssize_t row,
                  double* features) noexcept nogil:
    """The same of one row."""
    cdef Py_ssize_t order = radial.shape[2], n_vectors = f.shape[2], m = W.shape[1]
    cdef Py_ssize_t strip, first, width, i, k, c
    cdef const double* values
    cdef const double* phi
    for c in range(n_vectors):
        out[row, c] = 0.0
    for strip in range((m + NODES - 1) // NODES):
        first = strip * NODES
        width = min(<Py_ssize_t> NODES, m - first)
        _features(&X[row, 0], W, first, width, &radial[row, 0, 0], radial.shape[1] - 1, order,
                  features)
        for i in range(order):
            phi, values = features + i * NODES, &f[i, first, 0]
            for k in range(width):
                for c in range(n_vectors):
                    out[row, c] += phi[k] * values[k * n_vectors + c]
