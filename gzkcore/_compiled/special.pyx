"""Gegenbauer polynomials P_d^l at many points, for `special.gegenbauer`.

Formula    P_0 = 1, P_1 = t, (l+d-2) P_(l+1) = (2l+d-2) t P_l - l P_(l-1): normalised so that
           P(1) = 1, hence |P| <= 1 on [-1, 1] and nothing overflows with degree or dimension.
Why        Summing Eq 2 of Han, Zandieh, Avron cancels: 5 % relative error at degree 100 in float64.
Cost       4 flops per degree and point, one read and one write per point.
Layout     t and out contiguous; every point is independent, points in parallel.
"""

from cython cimport floating
from cython.parallel cimport prange

from .recurrence cimport following


cdef inline double _gegenbauer(Py_ssize_t degree, Py_ssize_t dim, double t) noexcept nogil:
    cdef double before = 1.0, value = t, after
    cdef Py_ssize_t k
    if degree == 0:
        return 1.0
    for k in range(1, degree):
        after = following(before, value, k, dim, t)
        before = value
        value = after
    return value


def rodrigues(
    const double[::1] factors,         # IN   (degree + 1,) of (t-1)^(l-j) (t+1)^j
    const floating[::1] t,             # IN   (n,)
    floating[::1] out,                 # OUT  (n,)
    int n_threads,
):
    """P_dim^degree(t) from the factors of Rodrigues' formula (Eq 5), in double for either type."""
    cdef Py_ssize_t i
    for i in prange(t.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = <floating> _two_sided(factors, t[i])


cdef inline double _two_sided(const double[::1] factors, double t) noexcept nogil:
    cdef double value = 0.0, high = 1.0
    cdef Py_ssize_t j, _k, degree = factors.shape[0] - 1
    cdef double low
    for j in range(degree + 1):        # (t + 1)^j grows in high, (t - 1)^(l-j) is formed anew
        low = 1.0
        for _k in range(degree - j):
            low = low * (t - 1.0)
        value = value + factors[j] * low * high
        high = high * (t + 1.0)
    return value


def gegenbauer(
    Py_ssize_t degree,
    Py_ssize_t dim,
    const floating[::1] t,             # IN   (n,)
    floating[::1] out,                 # OUT  (n,)
    int n_threads,
):
    """P_dim^degree(t) by the three-term recurrence, in double for either type."""
    cdef Py_ssize_t i
    for i in prange(t.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = <floating> _gegenbauer(degree, dim, t[i])
