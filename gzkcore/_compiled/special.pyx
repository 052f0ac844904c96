"""Gegenbauer polynomials P_d^l and the constants around them, for `special`.

gegenbauer     P_0 = 1, P_1 = t, (l+d-2) P_(l+1) = (2l+d-2) t P_l - l P_(l-1): normalised so that
               P(1) = 1, hence |P| <= 1 on [-1, 1] and nothing overflows with degree or dimension.
               Summing Eq 2 of Han, Zandieh, Avron cancels: 5 % relative error at degree 100 in
               float64. 4 flops per degree and point.
rodrigues      Eq 5, its derivative written out by Leibniz' rule: l^2 flops a point.
coefficients   c_(j+1) = -(l-2j)(l-2j-1) / (2 (j+1) (d-1+2j)) c_j (Eq 2).
alpha          Eq 4, for arrays of degrees in double; in whole numbers where they have 63 bits.
mu             Eq 29, by logarithms: those of its factors overflow, it does not.
Layout         all arrays contiguous; points and degrees in parallel, each independent of others.
"""

from cython cimport floating
from cython.parallel cimport prange
from libc.limits cimport LLONG_MAX
from libc.math cimport INFINITY, exp, lgamma, log

from .counts cimport binomial, log_square, real_alpha, real_log_alpha, whole_alpha
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


def gegenbauer_coefficients(
    Py_ssize_t degree,
    Py_ssize_t dim,
    double[::1] out,                   # OUT  (degree // 2 + 1,)
):
    """c_j of t^(l-2j) (1-t^2)^j; in one dimension, where 1 - t^2 is 0, only c_0 is not 0."""
    cdef Py_ssize_t j
    out[0] = 1.0
    with nogil:
        for j in range(degree // 2):
            if dim == 1:
                out[j + 1] = 0.0
            else:
                out[j + 1] = (-out[j] * (degree - 2 * j) * (degree - 2 * j - 1)
                              / (2.0 * (j + 1) * (dim - 1 + 2 * j)))


def rodrigues(
    Py_ssize_t degree,
    Py_ssize_t dim,
    const floating[::1] t,             # IN   (n,)
    double[::1] factors,               # WORK (degree + 1,), of (t-1)^(l-j) (t+1)^j
    floating[::1] out,                 # OUT  (n,)
    int n_threads,
):
    """P_dim^degree(t) by Rodrigues' formula (Eq 5), in double for either type."""
    cdef Py_ssize_t i, n = t.shape[0]
    with nogil:
        _leibniz(degree, dim, factors)
    for i in prange(n, schedule="static", nogil=True, num_threads=n_threads):
        out[i] = <floating> _two_sided(factors, t[i])


cdef void _leibniz(Py_ssize_t degree, Py_ssize_t dim, double[::1] factors) noexcept nogil:
    """factors[j] = C(l, j) a^(j) a^(l-j) Gamma((d-1)/2) / (2^l Gamma(l+(d-1)/2)), a = l + (d-3)/2.

    x^(j) is the falling power x (x-1) ... (x-j+1).
    """
    cdef double a = degree + 0.5 * (dim - 3), choices = 1.0
    cdef double front = (lgamma(0.5 * (dim - 1)) - degree * log(2.0)
                         - lgamma(degree + 0.5 * (dim - 1)) + 2.0 * lgamma(a + 1))
    cdef Py_ssize_t j
    for j in range(degree + 1):
        factors[j] = choices * exp(front - lgamma(a + 1 - j) - lgamma(a + 1 - (degree - j)))
        choices = choices * (degree - j) / (j + 1)


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


def alpha(
    const Py_ssize_t[::1] degrees,     # IN   (n,)
    Py_ssize_t dim,
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """alpha(l, d): exact below 2^53 up to degree 1024, infinite beyond the range of double."""
    cdef Py_ssize_t i
    for i in prange(degrees.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = real_alpha(degrees[i], dim)


def log_alpha(
    const Py_ssize_t[::1] degrees,     # IN   (n,)
    Py_ssize_t dim,
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """log alpha(l, d), -inf where there is no harmonic."""
    cdef Py_ssize_t i
    for i in prange(degrees.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = real_log_alpha(degrees[i], dim)


def exact_alpha(Py_ssize_t degree, Py_ssize_t dim):
    """alpha(l, d) as a whole number, -1 where it takes more than 63 bits."""
    return whole_alpha(degree, dim)


def n_harmonics(Py_ssize_t degree, Py_ssize_t dim):
    """C(q+d-1, q) + C(q+d-2, q-1) as a whole number, -1 where it takes more than 63 bits."""
    cdef long long below, all_of_them
    if dim == 1:
        return 1 if degree == 0 else 2
    if degree == 0:
        return 1
    all_of_them = binomial(degree + dim - 1, degree)
    below = binomial(degree + dim - 2, degree - 1)
    if all_of_them < 0 or below < 0 or all_of_them > LLONG_MAX - below:
        return -1
    return all_of_them + below


def mu(
    const Py_ssize_t[::1] degrees,     # IN   (n,)
    const Py_ssize_t[::1] powers,      # IN   (n,)
    Py_ssize_t dim,
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """mu_l^j, the coefficient of P_d^l in the series of t^j (Eq 29)."""
    cdef Py_ssize_t i
    for i in prange(degrees.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = exp(_log_mu(degrees[i], powers[i], dim))


cdef inline double _log_mu(Py_ssize_t degree, Py_ssize_t power, Py_ssize_t dim) noexcept nogil:
    """The squared factors of Eq 12 where kappa^(j)(0) = j!."""
    if power < degree or (power - degree) % 2 == 1 or (dim == 1 and degree > 1):
        return -INFINITY
    return log_square(real_log_alpha(degree, dim), degree, (power - degree) // 2, dim,
                      lgamma(<double> (power + 1)))


def log_mu(
    const Py_ssize_t[::1] degrees,     # IN   (n,)
    const Py_ssize_t[::1] powers,      # IN   (n,)
    Py_ssize_t dim,
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """log mu_l^j, -inf where it is 0."""
    cdef Py_ssize_t i
    for i in prange(degrees.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = _log_mu(degrees[i], powers[i], dim)


def log_squared_coefficients(
    const Py_ssize_t[::1] degrees,         # IN   (n,)
    const Py_ssize_t[::1] orders,          # IN   (n,)
    const double[::1] log_derivatives,     # IN   (n,), log kappa^(l+2i)(0)
    Py_ssize_t dim,
    double[::1] out,                       # OUT  (n,)
    int n_threads,
):
    """Logarithms of the squared factors of t^(l+2i) in the radial functions (Eq 12)."""
    cdef Py_ssize_t i
    for i in prange(degrees.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = log_square(real_log_alpha(degrees[i], dim), degrees[i], orders[i], dim,
                            log_derivatives[i])
