"""Radial functions of a generalized zonal kernel, and Gegenbauer series.

radial_table   out[i, l, k] = exp(log_c[l, k] / 2 + (l + 2k) log t_i + envelope_i)     (Eq 12, 23)
               formed in logarithms, since Gamma, t^(l+2k) and alpha all overflow while their
               product lies in [0, 1]. One exponential per entry.
interpolate    out[i, j] = sum_p table[bin, p, j] s^p, the local polynomial of the bin of norm t_i,
               with s in [-1, 1] across the bin: P + 1 fused operations per entry, vectors over j.
zonal_sum      out[i] = sum_l c_l P_d^l(t_i), by the forward recurrence of P: 6 flops a degree and
               point.
polar          norms |u_i| in double and unit rows u_i / |u_i| for u = (x - center) scale.
gegenbauer_rule    alpha(l, d) w_k P_d^l(t_k) at the nodes of a quadrature: the loop over nodes of
               Eq 8. What is left of it is a product of matrices with the values of the functions.
taylor_series  c_l = sum_j mu_l^j kappa^(j)(0) / j! (Eq 29).
angular_energy the sum over i of Eq 23: positive terms, each from the one before.
generalized_zonal  sum_l <h_l(x), h_l(y)> P_d^l(cos) (Eq 11), 2 s + 6 flops a degree and pair.
Layout         all arrays contiguous, rows (nodes, degrees, pairs) in parallel, each independent of
               the others.
"""

from cython cimport floating
from cython.parallel cimport prange
from libc.math cimport INFINITY, exp, fabs, lgamma, log, sqrt

from .checks cimport agree
from .counts cimport log_square, real_alpha, real_log_alpha
from .leaf cimport polynomials
from .recurrence cimport following


def radial_table(
    const double[:, ::1] log_c,        # IN   (q + 1, s), logarithms of squared factors
    const double[::1] norms,           # IN   (n,)
    const double[::1] envelope,        # IN   (n,)
    double[:, :, ::1] out,             # OUT  (n, q + 1, s)
    int n_threads,
):
    """Values of the monomial radial functions h_(l,i); 0^0 is 1."""
    cdef Py_ssize_t i, level, k
    cdef double log_t
    agree(envelope.shape[0] == norms.shape[0] == out.shape[0]
          and out.shape[1] == log_c.shape[0] and out.shape[2] == log_c.shape[1],
          "norms, envelope and out")
    for i in prange(norms.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        log_t = log(norms[i]) if norms[i] > 0 else -INFINITY
        for level in range(log_c.shape[0]):
            for k in range(log_c.shape[1]):
                if level + 2 * k == 0:
                    out[i, level, k] = exp(0.5 * log_c[level, k] + envelope[i])
                elif norms[i] > 0:
                    out[i, level, k] = exp(
                        0.5 * log_c[level, k] + (level + 2 * k) * log_t + envelope[i])
                else:
                    out[i, level, k] = 0.0


def interpolate(
    const double[:, :, ::1] table,     # IN   (bins, P + 1, K), power coefficients in s
    const double[::1] norms,           # IN   (n,)
    double low,
    double high,
    floating[:, ::1] out,              # OUT  (n, K)
    int n_threads,
):
    """Values of K radial functions at norms in [low, high], from their piecewise polynomials."""
    cdef Py_ssize_t i, bin
    cdef Py_ssize_t bins = table.shape[0], top = table.shape[1] - 1, K = table.shape[2]
    cdef double inverse = bins / (high - low) if high > low else 0.0
    cdef double s
    agree(bins > 0 and top >= 0 and out.shape[0] == norms.shape[0] and out.shape[1] == K,
          "table, norms and out")
    for i in prange(norms.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        s = (norms[i] - low) * inverse
        bin = <Py_ssize_t> s if 1 <= s < bins else bins - 1 if s >= bins else 0
        s = 2.0 * (s - bin) - 1.0
        polynomials(&table[bin, 0, 0], s, top, K, &out[i, 0])


# Points, or directions, that are worked on while their sums stay in L1.
cdef enum:
    STRIP = 64


def zonal_sum(
    const double[::1] coefficients,    # IN   (q + 1,)
    Py_ssize_t dim,
    const floating[::1] t,             # IN   (n,)
    floating[::1] out,                 # OUT  (n,)
    int n_threads,
):
    """sum_l c_l P_dim^l(t), in double for either type."""
    cdef Py_ssize_t i
    agree(coefficients.shape[0] > 0 and out.shape[0] == t.shape[0], "coefficients, t and out")
    for i in prange(t.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = <floating> _zonal(&coefficients[0], coefficients.shape[0] - 1, dim, t[i])


cdef inline double _zonal(const double* c, Py_ssize_t degree, Py_ssize_t dim,
                          double t) noexcept nogil:
    cdef double before = 1.0, value = t, after, total = c[0]
    cdef Py_ssize_t k
    for k in range(1, degree + 1):
        total = total + c[k] * value
        after = following(before, value, k, dim, t)
        before = value
        value = after
    return total


def polar(
    const floating[:, ::1] X,          # IN   (n, d)
    const double[::1] center,          # IN   (d,)
    const double[::1] scale,           # IN   (d,)
    floating[:, ::1] unit,             # OUT  (n, d)
    double[::1] norms,                 # OUT  (n,)
    int n_threads,
):
    """Norms and unit rows of u = (x - center) scale; a zero row has norm 0 and unit row 0."""
    cdef Py_ssize_t i, a, d = X.shape[1]
    cdef double u, total
    agree(center.shape[0] == d and scale.shape[0] == d and unit.shape[0] == X.shape[0]
          and unit.shape[1] == d and norms.shape[0] == X.shape[0], "X, center and scale")
    for i in prange(X.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        total = 0.0
        for a in range(d):
            u = (X[i, a] - center[a]) * scale[a]
            total = total + u * u
        norms[i] = sqrt(total)
        total = 1.0 / norms[i] if norms[i] > 0 else 0.0
        for a in range(d):
            unit[i, a] = <floating> ((X[i, a] - center[a]) * scale[a] * total)


# ---- coefficients of series


cdef inline double _next(double before, double value, Py_ssize_t level, Py_ssize_t dim,
                         double t) noexcept nogil:
    """P^(level+1) from the two before; at level 0 there is one."""
    return following(before, value, level, dim, t) if level > 0 else t


def gegenbauer_rule(
    const double[::1] t,               # IN   (n,), nodes
    const double[::1] weights,         # IN   (n,)
    Py_ssize_t dim,
    double[:, ::1] out,                # OUT  (q + 1, n)
    int n_threads,
):
    """out[l, k] = alpha(l, d) weights_k P_dim^l(t_k): times values at the nodes it is Eq 8."""
    cdef Py_ssize_t strip, n = t.shape[0]
    for strip in prange((n + STRIP - 1) // STRIP, schedule="static", nogil=True,
                        num_threads=n_threads):
        _rule(t, weights, dim, out, strip * STRIP, min(<Py_ssize_t> STRIP, n - strip * STRIP))


cdef void _rule(const double[::1] t, const double[::1] weights, Py_ssize_t dim,
                double[:, ::1] out, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    cdef double[STRIP] before
    cdef double[STRIP] value
    cdef double size, after
    cdef Py_ssize_t level, k
    for k in range(count):
        before[k], value[k] = 0.0, 1.0
    for level in range(out.shape[0]):
        size = real_alpha(level, dim)
        for k in range(count):
            out[level, first + k] = size * weights[first + k] * value[k]
            after = _next(before[k], value[k], level, dim, t[first + k])
            before[k] = value[k]
            value[k] = after


def taylor_series(
    const double[::1] taylor,          # IN   (n,), kappa^(j)(0) / j!
    Py_ssize_t dim,
    double[::1] out,                   # OUT  (q + 1,)
    int n_threads,
):
    """c_l = sum_j mu_l^j taylor_j (Eq 29), with the rounding of sums carried along."""
    cdef Py_ssize_t level
    for level in prange(out.shape[0], schedule="dynamic", nogil=True, num_threads=n_threads):
        out[level] = _taylor_sum(taylor, level, dim)


cdef double _taylor_sum(const double[::1] taylor, Py_ssize_t level, Py_ssize_t dim) noexcept nogil:
    cdef double total = 0.0, lost = 0.0, log_size = real_log_alpha(level, dim)
    cdef Py_ssize_t i
    if dim == 1 and level > 1:
        return 0.0
    for i in range((taylor.shape[0] - level + 1) // 2 if taylor.shape[0] > level else 0):
        if taylor[level + 2 * i] != 0.0:
            add(&total, &lost, taylor[level + 2 * i] * exp(
                log_square(log_size, level, i, dim, lgamma(level + 2.0 * i + 1.0))))
    return total + lost


cdef inline void add(double* total, double* lost, double term) noexcept nogil:
    """Add a term; what rounding takes goes into `lost` (Neumaier)."""
    cdef double after = total[0] + term
    if fabs(total[0]) >= fabs(term):
        lost[0] += (total[0] - after) + term
    else:
        lost[0] += (term - after) + total[0]
    total[0] = after


def angular_energy(
    Py_ssize_t degree,
    const double[::1] a,               # IN   (n,), norms
    const double[::1] b,               # IN   (n,)
    Py_ssize_t dim,
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """A_l(a, b) of the Gaussian, its sum over i of positive terms, each from the one before."""
    cdef Py_ssize_t i
    for i in prange(a.shape[0], schedule="dynamic", nogil=True, num_threads=n_threads):
        out[i] = _energy(degree, a[i], b[i], dim)


cdef double _energy(Py_ssize_t degree, double a, double b, Py_ssize_t dim) noexcept nogil:
    """exp(-(a-b)^2/2) exp(-ab) alpha Gamma(d/2) sum_i (ab/2)^(l+2i) / (i! Gamma(i+l+d/2)).

    The term of i = 0 is the product over k < l of ab (k+d-2) / ((k+1) (2k+d-2)), 1 of them at
    k = 0 being (d-2) / (d-2) = 1. What has been summed is at most exp(ab), so that of exp(-ab) a
    part is left wherever the sum grows beyond the range of double.
    """
    cdef double x = a * b, left = x, term = 1.0, total, lost = 0.0, nu, peak
    cdef double large = 1e200, part = exp(-256.0)
    cdef Py_ssize_t i
    for i in range(degree):
        term = term * x if i == 0 else term * (x / (i + 1) * (i + dim - 2) / (2 * i + dim - 2))
        if term == 0.0:
            return 0.0
        if term > large:
            term, left = term * part, left - 256.0
    nu = degree + 0.5 * dim
    peak = 0.5 * (sqrt(nu * nu + x * x) - nu)     # the largest term's i
    total = term
    for i in range(<Py_ssize_t> (peak + 9.0 * sqrt(peak + 1.0) + 24.0)):
        term = term * (0.5 * x / (i + 1)) * (0.5 * x / (i + nu))
        add(&total, &lost, term)
        if total > large:
            term, total, lost, left = term * part, total * part, lost * part, left - 256.0
    # In two halves, since exp(-left) may be below the range where its product with the sum is not.
    return (total + lost) * exp(-0.5 * left) * exp(-0.5 * left) * exp(-0.5 * (a - b) * (a - b))


# ---- sums over degrees


def generalized_zonal(
    const double[:, :, ::1] h,         # IN   (n, q + 1, s), radial functions of the rows
    const double[:, :, ::1] g,         # IN   (q + 1, s, m), those of the columns
    const double[:, ::1] t,            # IN   (n, m), cosines
    Py_ssize_t dim,
    double[:, ::1] out,                # OUT  (n, m)
    int n_threads,
):
    """out[i, j] = sum_l <h_l(i), g_l(j)> P_dim^l(t_ij) (Eq 11)."""
    cdef Py_ssize_t i
    agree(h.shape[0] == t.shape[0] == out.shape[0] and g.shape[2] == t.shape[1] == out.shape[1]
          and h.shape[1] == g.shape[0] and h.shape[2] == g.shape[1],
          "the radial functions of rows and columns")
    for i in prange(t.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        _zonal_row(h, g, t, dim, i, out)


cdef void _zonal_row(const double[:, :, ::1] h, const double[:, :, ::1] g, const double[:, ::1] t,
                     Py_ssize_t dim, Py_ssize_t i, double[:, ::1] out) noexcept nogil:
    """One row, a strip of columns at a time: vectors run over columns."""
    cdef double[STRIP] before
    cdef double[STRIP] value
    cdef double[STRIP] dot
    cdef Py_ssize_t strip, first, width, level, k, j, m = t.shape[1]
    cdef const double* factor
    cdef double after
    for strip in range((m + STRIP - 1) // STRIP):
        first = strip * STRIP
        width = min(<Py_ssize_t> STRIP, m - first)
        for j in range(width):
            before[j], value[j], out[i, first + j] = 0.0, 1.0, 0.0
        for level in range(h.shape[1]):
            for j in range(width):
                dot[j] = 0.0
            for k in range(h.shape[2]):
                factor = &g[level, k, first]
                for j in range(width):
                    dot[j] = dot[j] + h[i, level, k] * factor[j]
            for j in range(width):
                out[i, first + j] += dot[j] * value[j]
                after = _next(before[j], value[j], level, dim, t[i, first + j])
                before[j] = value[j]
                value[j] = after
