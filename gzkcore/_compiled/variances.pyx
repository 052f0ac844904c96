"""Means and variances of what features estimate, for many differences or pairs of points at once.

Each function is the closed form of its name, which stands in `reference` with its derivation; rows
are points, or differences of points, and each result is independent of the others: rows in
parallel, sums over coordinates in double. O(d) operations a row. Nothing here is hot enough for a
build for each instruction set.
"""

from cython.parallel cimport prange
from libc.math cimport M_PI, M_SQRT1_2, erf, exp, sqrt

# Kernels of kernel_moments: exp(-s) of s = |x - y|^2 and of s = |x - y|, and the spherical one.
cdef enum:
    GAUSSIAN = 0
    EXPONENTIAL = 1
    SPHERICAL = 2


# ---- Fourier features and blocks


def fourier_variance(
    const double[::1] k,               # IN   (n,)
    const double[::1] k_double,        # IN   (n,)
    Py_ssize_t n_components,
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """Variance of z(x).z(y) over independent frequencies, k at D and at 2 D."""
    cdef Py_ssize_t i
    cdef double pair, pairs = 4.0 * (n_components // 2), odd = n_components % 2
    cdef double square = <double> n_components * n_components
    for i in prange(k.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        pair = 0.5 + k_double[i] / 2 - k[i] * k[i]
        out[i] = (pairs * pair + odd * (pair + 0.5)) / square


cdef double _meetings(const double* delta, Py_ssize_t dim, Py_ssize_t n_blocks, bint stratified,
                      double* total, double* squares) noexcept nogil:
    """Expectation of the sum of x_j x_l over all j != l that meet in a block, x = delta^2.

    Beside it sum x and sum x^2.
    """
    cdef Py_ssize_t j, left = n_blocks, small = dim // n_blocks, more = dim % n_blocks
    cdef double x, pairs, segment = 0.0, inside = 0.0
    total[0] = squares[0] = 0.0
    for j in range(dim):
        x = delta[j] * delta[j]
        total[0] += x
        squares[0] += x * x
        segment += x
        left -= 1
        if left == 0:
            inside += segment * segment
            segment, left = 0.0, n_blocks
    inside += segment * segment
    if stratified:
        return (total[0] * total[0] - inside) / n_blocks
    if dim == 1:
        return 0.0
    pairs = <double> more * (small + 1) * small + <double> (n_blocks - more) * small * (small - 1)
    return pairs / (<double> dim * (dim - 1)) * (total[0] * total[0] - squares[0])


def energy_variance(
    const double[:, ::1] delta,        # IN   (n, D), differences of points
    Py_ssize_t n_blocks,
    bint stratified,
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """Variance of the energy of a block over the arrangements."""
    cdef Py_ssize_t i
    for i in prange(delta.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = _energy_variance(&delta[i, 0], delta.shape[1], n_blocks, stratified)


cdef double _energy_variance(const double* delta, Py_ssize_t dim, Py_ssize_t n_blocks,
                             bint stratified) noexcept nogil:
    cdef double total, squares, apart
    apart = _meetings(delta, dim, n_blocks, stratified, &total, &squares)
    return (squares + apart) / n_blocks - (total / n_blocks) * (total / n_blocks)


def projection_variance(
    const double[:, ::1] delta,        # IN   (n, D), differences of points
    Py_ssize_t n_blocks,
    bint stratified,
    bint normal,                       # IN   values are normal, not signs
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """Variance of |v|^2 of a block projection over values and arrangements."""
    cdef Py_ssize_t i
    for i in prange(delta.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = _projection_variance(&delta[i, 0], delta.shape[1], n_blocks, stratified, normal)


cdef double _projection_variance(const double* delta, Py_ssize_t dim, Py_ssize_t n_blocks,
                                 bint stratified, bint normal) noexcept nogil:
    cdef double total, squares, apart
    apart = _meetings(delta, dim, n_blocks, stratified, &total, &squares)
    return 2 * apart + (2 * squares if normal else 0.0)


def kernel_moments(
    int kernel,                        # IN   GAUSSIAN, EXPONENTIAL or SPHERICAL
    const double[::1] mean,            # IN   (n,), of the normal variable s
    const double[::1] std,             # IN   (n,)
    Py_ssize_t n_frequencies,
    bint printed,
    double[::1] means,                 # OUT  (n,)
    double[::1] variances,             # OUT  (n,)
    int n_threads,
):
    """Mean and variance of the estimate of a kernel (Theorem 4.1, Propositions 4.3 and 4.4)."""
    cdef Py_ssize_t i
    for i in prange(mean.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        variances[i] = _moments(kernel, mean[i], std[i], printed, &means[i]) / n_frequencies


cdef double _moments(int kernel, double mean, double std, bint printed,
                     double* once) noexcept nogil:
    """Return the variance for one frequency, and write E K(Delta)."""
    cdef double third, constant, twice, stretch
    if kernel == SPHERICAL and printed:
        third = mean * mean * mean + 3 * mean * std * std
        constant = 1 - 4.5 * mean + 2.25 * mean * mean + 3 * third - 1.5 * mean * third
        once[0] = 1 - 1.5 * mean + third / 2
        return constant + third * third / 4
    if kernel == SPHERICAL:
        once[0] = _spherical_mean(mean, std)
        twice = _spherical_mean(2 * mean, 2 * std)
    else:
        stretch = 4 if kernel == GAUSSIAN and not printed else 2
        once[0] = exp(-mean + std * std / 2)
        twice = exp(-stretch * mean + stretch * std * stretch * std / 2)
    return 0.5 + twice / 2 + (once[0] * once[0] if printed else -once[0] * once[0])


cdef inline double _below(double s, double mean, double std) noexcept nogil:
    return 0.5 * (1 + erf((s - mean) / std * M_SQRT1_2))


cdef inline double _density(double s, double mean, double std) noexcept nogil:
    return exp(-0.5 * ((s - mean) / std) * ((s - mean) / std)) / (sqrt(2 * M_PI) * std)


cdef double _spherical_mean(double mean, double std) noexcept nogil:
    """E[1 - 3/2 s + s^3/2; s < 1] for normal s, by truncated moments; below 0 the kernel is 1."""
    cdef double square = std * std, at_one = _density(1.0, mean, std)
    cdef double nearer = _below(0.0, mean, std)
    cdef double zeroth = _below(1.0, mean, std) - nearer
    cdef double first = mean * zeroth - square * (at_one - _density(0.0, mean, std))
    cdef double second = mean * first + square * (zeroth - at_one)
    cdef double third = mean * second + square * (2 * first - at_one)
    return nearer + zeroth - 1.5 * first + third / 2


def projection_moments(
    const double[::1] mean,            # IN   (n,), of the scaled energy of a block
    const double[::1] std,             # IN   (n,)
    Py_ssize_t n_components,
    bint printed,
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """Variance of |v|^2 for normal values (Theorem 4.7); its mean is `mean`."""
    cdef Py_ssize_t i
    for i in prange(mean.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        if printed:
            out[i] = (2 * mean[i] + std[i] * std[i]) / n_components
        else:
            out[i] = (2 * mean[i] * mean[i] + 2 * std[i] * std[i]) / n_components


# ---- pairs of points


cdef inline void _sums(const double* x, const double* y, Py_ssize_t dim, double* norms,
                       double* dot, double* both) noexcept nogil:
    """|x|^2 |y|^2, <x, y> and sum x_i^2 y_i^2."""
    cdef double u = 0.0, v = 0.0
    cdef Py_ssize_t j
    dot[0] = both[0] = 0.0
    for j in range(dim):
        u += x[j] * x[j]
        v += y[j] * y[j]
        dot[0] += x[j] * y[j]
        both[0] += x[j] * y[j] * x[j] * y[j]
    norms[0] = u * v


cdef inline double _power(double base, Py_ssize_t exponent) noexcept nogil:
    """base^exponent by squaring, 0^0 = 1."""
    cdef double value = 1.0
    while exponent > 0:
        if exponent % 2:
            value = value * base
        base = base * base
        exponent = exponent // 2
    return value


def maclaurin_variance(
    const double[:, ::1] X,            # IN   (n, d)
    const double[:, ::1] Y,            # IN   (n, d)
    const double[::1] coefficients,    # IN   (n_degrees,)
    const double[::1] probabilities,   # IN   (n_degrees,), > 0 where a coefficient is
    Py_ssize_t n_components,
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """Variance of z(x).z(y) of Maclaurin features over degrees and signs."""
    cdef Py_ssize_t i
    for i in prange(X.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = _maclaurin(&X[i, 0], &Y[i, 0], X.shape[1], coefficients,
                            probabilities) / n_components


cdef double _maclaurin(const double* x, const double* y, Py_ssize_t dim, const double[::1] a,
                       const double[::1] p) noexcept nogil:
    cdef double norms, dot, both, m, second = 0.0, mean = 0.0, of_m = 1.0, of_dot = 1.0
    cdef Py_ssize_t N
    _sums(x, y, dim, &norms, &dot, &both)
    m = norms + 2 * dot * dot - 2 * both
    for N in range(a.shape[0]):
        if a[N] > 0:
            second += a[N] * a[N] * of_m / p[N]
        mean += a[N] * of_dot
        of_m *= m
        of_dot *= dot
    return second - mean * mean


def tensor_sketch_variance(
    const double[:, ::1] X,            # IN   (n, d)
    const double[:, ::1] Y,            # IN   (n, d)
    Py_ssize_t degree,
    Py_ssize_t n_components,
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """Variance of <TensorSketch x, TensorSketch y>."""
    cdef Py_ssize_t i
    for i in prange(X.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = _tensor_sketch(&X[i, 0], &Y[i, 0], X.shape[1], degree, n_components)


cdef double _tensor_sketch(const double* x, const double* y, Py_ssize_t dim, Py_ssize_t p,
                           Py_ssize_t m) noexcept nogil:
    cdef double norms, dot, s, a, b, c, left, right, middle, one, both
    _sums(x, y, dim, &norms, &dot, &s)
    a = dot * dot
    b, c = norms - s, a - s
    left, right, middle = _power(a + b, p), _power(a + c, p), _power(a, p)
    one = left + right - 2 * middle
    both = _power(a + b + c, p) - left - right + middle
    return one / m + both * (1 + (m % 2 == 0)) / m / m


def poly_sketch_variance(
    const double[:, ::1] X,            # IN   (n, d)
    const double[:, ::1] Y,            # IN   (n, d)
    Py_ssize_t degree,
    Py_ssize_t n_components,
    Py_ssize_t width,                  # IN   inside the tree
    Py_ssize_t n_nonzeros,             # IN   of the leaves
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """Variance of <S x^(degree), S y^(degree)> of a tree of sketches."""
    cdef Py_ssize_t i
    for i in prange(X.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = _poly_sketch(&X[i, 0], &Y[i, 0], X.shape[1], degree, n_components, width,
                              n_nonzeros)


cdef double _poly_sketch(const double* x, const double* y, Py_ssize_t dim, Py_ssize_t degree,
                         Py_ssize_t n_components, Py_ssize_t width,
                         Py_ssize_t n_nonzeros) noexcept nogil:
    cdef double norms, dot, s
    cdef double[3] moments
    cdef Py_ssize_t leaves = 1
    _sums(x, y, dim, &norms, &dot, &s)
    while leaves < degree:
        leaves *= 2
    _node(degree, leaves, n_components, width, n_nonzeros, norms, dot * dot, s, moments)
    return moments[1] - _power(dot * dot, degree)


cdef void _node(Py_ssize_t factors, Py_ssize_t leaves, Py_ssize_t m, Py_ssize_t width,
                Py_ssize_t n_nonzeros, double norms, double a, double s,
                double* out) noexcept nogil:
    """Three second moments of a node of `leaves` leaves, of which `factors` are no constant."""
    cdef double[3] left
    cdef double[3] right
    cdef double both
    cdef Py_ssize_t half = leaves // 2
    if leaves == 1 and factors == 0:
        out[0], out[1], out[2] = 1.0, 1.0, 1.0 / n_nonzeros
        return
    if leaves == 1:
        out[0] = norms + 2 * (a - s) / m
        out[1] = a + (norms + a - 2 * s) / m
        out[2] = s / n_nonzeros + (norms + 2 * a - 3 * s) / m
        return
    _node(min(factors, half), half, width, width, n_nonzeros, norms, a, s, left)
    _node(max(factors - half, 0), half, width, width, n_nonzeros, norms, a, s, right)
    both = (left[0] + 2 * left[1] - 2 * left[2]) * (right[0] + 2 * right[1] - 2 * right[2]) / m
    out[0] = (1 - 1.0 / m) * left[0] * right[0] + both
    out[1] = (1 - 1.0 / m) * left[1] * right[1] + both
    out[2] = both


def hadamard_projection_variance(
    const double[:, ::1] X,            # IN   (n, d)
    const double[:, ::1] Y,            # IN   (n, d)
    Py_ssize_t padded,                 # IN   the least power of two >= d
    Py_ssize_t n_components,
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """Variance of <z(x), z(y)> for different rows of H, uniformly drawn."""
    cdef Py_ssize_t i, left = n_components % padded
    cdef double factor = (<double> left * (padded - left)
                          / (<double> max(padded - 1, 1) * n_components * n_components))
    for i in prange(X.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = factor * _crossed(&X[i, 0], &Y[i, 0], X.shape[1], 1.0, 1.0, 2.0)


cdef double _crossed(const double* x, const double* y, Py_ssize_t dim, double of_norms,
                     double of_square, double of_both) noexcept nogil:
    """of_norms |x|^2 |y|^2 + of_square <x, y>^2 - of_both sum x_i^2 y_i^2."""
    cdef double norms, dot, both
    _sums(x, y, dim, &norms, &dot, &both)
    return of_norms * norms + of_square * dot * dot - of_both * both


def fast_jl_variance(
    const double[:, ::1] X,            # IN   (n, d)
    const double[:, ::1] Y,            # IN   (n, d)
    Py_ssize_t padded,                 # IN   the least power of two >= d
    Py_ssize_t n_components,
    double density,
    double[::1] out,                   # OUT  (n,)
    int n_threads,
):
    """Variance of <z(x), z(y)> for a sparse normal matrix behind a Hadamard transform."""
    cdef Py_ssize_t i
    cdef double sparse = 3 * (1 / density - 1) / padded
    for i in prange(X.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        out[i] = _crossed(&X[i, 0], &Y[i, 0], X.shape[1], 1 + sparse, 1 + 2 * sparse,
                          2 * sparse) / n_components
