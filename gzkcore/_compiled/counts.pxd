"""How many spherical harmonics there are, for the kernels that need it."""

from libc.limits cimport LLONG_MAX
from libc.math cimport INFINITY, lgamma, log


cdef inline long long binomial(Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """C(n, k), or -1 where it takes more than 63 bits on the way."""
    cdef long long value = 1
    cdef Py_ssize_t i
    k = min(k, n - k)
    for i in range(1, k + 1):
        if value > LLONG_MAX // (n - k + i):
            return -1
        value = value * (n - k + i) // i
    return value


cdef inline long long whole_alpha(Py_ssize_t degree, Py_ssize_t dim) noexcept nogil:
    """alpha(l, d) = (2l+d-2) C(l+d-3, l-1) / l (Eq 4), or -1 where it takes more than 63 bits."""
    cdef long long value
    if degree == 0:
        return 1
    if dim == 1:
        return 1 if degree == 1 else 0
    value = binomial(degree + dim - 3, degree - 1)
    if value < 0 or value > LLONG_MAX // (2 * degree + dim - 2):
        return -1
    return value * (2 * degree + dim - 2) // degree


cdef inline double real_alpha(Py_ssize_t degree, Py_ssize_t dim) noexcept nogil:
    """alpha(l, d), exact below 2^53 up to degree 1024, infinite beyond the range of double."""
    cdef double value = 1.0, most = 9007199254740992.0     # 2^53
    cdef long long exact
    cdef Py_ssize_t i, n = degree + dim - 3, k = min(degree - 1, dim - 2)
    if degree == 0:
        return 1.0
    if dim == 1:
        return 1.0 if degree == 1 else 0.0
    for i in range(1, k + 1):          # exact as long as the products are whole numbers of 53 bits
        value = value * (n - k + i) / i
        if value == INFINITY:
            return value
    if most / (2 * degree + dim - 2) <= value < most:
        exact = whole_alpha(degree, dim)
        if exact >= 0:
            return <double> exact
    return value * (2 * degree + dim - 2) / degree


cdef inline double real_log_alpha(Py_ssize_t degree, Py_ssize_t dim) noexcept nogil:
    """log alpha(l, d); by log Gammas, which cancel, only where alpha overflows."""
    cdef double value = real_alpha(degree, dim)
    if value < INFINITY:
        return log(value) if value > 0 else -INFINITY
    return (log(2.0 * degree + dim - 2) + lgamma(<double> (degree + dim - 2))
            - lgamma(<double> (degree + 1)) - lgamma(<double> (dim - 1)))


cdef inline double log_square(double log_size, Py_ssize_t degree, Py_ssize_t order, Py_ssize_t dim,
                              double log_derivative) noexcept nogil:
    """Logarithm of the squared factor of t^(l+2i) in h_(l,i) (Eq 12), from log alpha(l, d).

    alpha(l, d) Gamma(d/2) kappa^(l+2i)(0) / (2^(l+2i) i! Gamma(i + l + d/2)); the printed
    Gamma(i+1/2) / (sqrt(pi) (2i)!) is 1 / (4^i i!).
    """
    return (log_size + lgamma(0.5 * dim) + log_derivative - (degree + 2 * order) * log(2.0)
            - lgamma(<double> (order + 1)) - lgamma(order + degree + 0.5 * dim))
