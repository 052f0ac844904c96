"""One step of the recurrence of P_d^l, for the kernels that need it in double."""


cdef inline double following(double before, double value, Py_ssize_t k, Py_ssize_t dim,
                             double t) noexcept nogil:
    """P_dim^(k+1)(t) from P^(k-1) and P^k: (k+d-2) P^(k+1) = (2k+d-2) t P^k - k P^(k-1)."""
    if dim == 1:                       # on the two points of the sphere 1 - t^2 = 0: t^l is left
        return t * value
    if dim == 2:
        return 2.0 * t * value - before
    return ((2 * k + dim - 2) * t * value - k * before) / (k + dim - 2)
