"""Radial functions of a generalized zonal kernel: tables and their interpolation.

radial_table   out[i, l, k] = exp(log_c[l, k] / 2 + (l + 2k) log t_i + envelope_i)     (Eq 12, 23)
               formed in logarithms, since Gamma, t^(l+2k) and alpha all overflow while their
               product lies in [0, 1]. One exponential per entry.
interpolate    out[i, j] = sum_p table[bin, p, j] s^p, the local polynomial of the bin of norm t_i,
               with s in [-1, 1] across the bin: P + 1 fused operations per entry, vectors over j.
zonal_sum      out[i] = sum_l c_l P_d^l(t_i), by the forward recurrence of P: 6 flops a degree and
               point.
polar          norms |u_i| in double and unit rows u_i / |u_i| for u = (x - center) scale.
Layout         all arrays contiguous, rows in parallel, every row independent of the others.
"""

from cython cimport floating
from cython.parallel cimport prange
from libc.math cimport INFINITY, exp, log, sqrt

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
    for i in prange(norms.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        s = (norms[i] - low) * inverse
        bin = <Py_ssize_t> s
        bin = 0 if bin < 0 else bins - 1 if bin >= bins else bin
        s = 2.0 * (s - bin) - 1.0
        _local(&table[bin, 0, 0], s, top, K, &out[i, 0])


cdef enum:
    STRIP = 64


cdef inline void _local(const double* table, double s, Py_ssize_t top, Py_ssize_t K,
                        floating* out) noexcept nogil:
    """Horner's rule for a strip of columns at a time, so that the sums stay in L1."""
    cdef double[STRIP] value
    cdef Py_ssize_t j, p, first, count
    first = 0
    while first < K:
        count = min(<Py_ssize_t> STRIP, K - first)
        for j in range(count):
            value[j] = table[top * K + first + j]
        for p in range(top - 1, -1, -1):
            for j in range(count):
                value[j] = value[j] * s + table[p * K + first + j]
        for j in range(count):
            out[first + j] = <floating> value[j]
        first = first + STRIP


def zonal_sum(
    const double[::1] coefficients,    # IN   (q + 1,)
    Py_ssize_t dim,
    const floating[::1] t,             # IN   (n,)
    floating[::1] out,                 # OUT  (n,)
    int n_threads,
):
    """sum_l c_l P_dim^l(t), in double for either type."""
    cdef Py_ssize_t i
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
    for i in prange(X.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        total = 0.0
        for a in range(d):
            u = (X[i, a] - center[a]) * scale[a]
            total = total + u * u
        norms[i] = sqrt(total)
        total = 1.0 / norms[i] if norms[i] > 0 else 0.0
        for a in range(d):
            unit[i, a] = <floating> ((X[i, a] - center[a]) * scale[a] * total)
