"""Losses of rows, their slopes and curvatures in f, for `losses`: one pass, whatever is asked for.

Formula    poisson           y log(y / mu) - y + mu with mu = exp(f), exp(f) - y, exp(f)
           logistic          log(1 + exp(-y f)), -y p(-y f), p(f) p(-f), p(f) = 1 / (1 + exp(-f))
           huber             r^2 / 2 within the width w, w |r| - w^2 / 2 beyond, r = y - f
           smoothed_pinball  s r + m log(q - s) + m log(s + 1 - q) at its largest over slopes s
           softmax           log sum_c exp(f_c) - f_y, p - (c is y), p
Why        NumPy makes an array of each step, and SciPy's functions run on one thread.
Cost       One or two exponentials, logarithms or roots a row.
Layout     Rows in parallel; `values`, `slopes` or `curvatures` that are None are not formed.
"""

from cython.parallel cimport prange
from libc.math cimport exp, fabs, hypot, log, log1p

from .checks cimport agree


cdef int of_rows(const double[::1] y, const double[::1] f, const double[::1] values,
                 const double[::1] slopes, const double[::1] curvatures) except -1:
    """Raise ValueError unless all arrays that are not None have a number for each row."""
    cdef Py_ssize_t n = y.shape[0]
    agree(f.shape[0] == n and (values is None or values.shape[0] == n)
          and (slopes is None or slopes.shape[0] == n)
          and (curvatures is None or curvatures.shape[0] == n), "y, f and out")
    return 0


def poisson(
    const double[::1] y,               # IN   (n,), counts >= 0
    const double[::1] f,               # IN   (n,)
    double[::1] values or None,        # OUT  (n,)
    double[::1] slopes or None,        # OUT  (n,)
    double[::1] curvatures or None,    # OUT  (n,)
    int n_threads,
):
    """Half the deviance of counts of mean exp(f)."""
    cdef bint want_values = values is not None, want_slopes = slopes is not None
    cdef bint want_curvatures = curvatures is not None
    cdef Py_ssize_t i
    cdef double mean
    of_rows(y, f, values, slopes, curvatures)
    for i in prange(y.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        mean = exp(f[i])
        if want_values:
            values[i] = (y[i] * log(y[i]) if y[i] > 0 else 0.0) - y[i] - y[i] * f[i] + mean
        if want_slopes:
            slopes[i] = mean - y[i]
        if want_curvatures:
            curvatures[i] = mean


def logistic(
    const double[::1] y,               # IN   (n,), +-1
    const double[::1] f,               # IN   (n,)
    double[::1] values or None,        # OUT  (n,)
    double[::1] slopes or None,        # OUT  (n,)
    double[::1] curvatures or None,    # OUT  (n,)
    int n_threads,
):
    """Minus the log likelihood of the class."""
    cdef bint want_values = values is not None, want_slopes = slopes is not None
    cdef bint want_curvatures = curvatures is not None
    cdef Py_ssize_t i
    cdef double margin, small
    of_rows(y, f, values, slopes, curvatures)
    for i in prange(y.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        margin = y[i] * f[i]
        small = exp(-fabs(margin))     # no exponential of a large number
        if want_values:
            values[i] = log1p(small) + (0.0 if margin > 0 else -margin)
        if want_slopes:
            slopes[i] = -y[i] * (small if margin > 0 else 1.0) / (1 + small)
        if want_curvatures:
            curvatures[i] = small / ((1 + small) * (1 + small))


def huber(
    const double[::1] y,               # IN   (n,)
    const double[::1] f,               # IN   (n,)
    double width,                      # IN   up to which a residual counts by its square
    double[::1] values or None,        # OUT  (n,)
    double[::1] slopes or None,        # OUT  (n,)
    double[::1] curvatures or None,    # OUT  (n,)
    int n_threads,
):
    """Half the square of a small residual, in proportion to a large one."""
    cdef bint want_values = values is not None, want_slopes = slopes is not None
    cdef bint want_curvatures = curvatures is not None
    cdef Py_ssize_t i
    cdef double inside
    of_rows(y, f, values, slopes, curvatures)
    for i in prange(y.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        inside = max(-width, min(y[i] - f[i], width))
        if want_values:
            values[i] = inside * ((y[i] - f[i]) - inside / 2)
        if want_slopes:
            slopes[i] = -inside
        if want_curvatures:
            curvatures[i] = 1.0 if fabs(y[i] - f[i]) <= width else 0.0


def smoothed_pinball(
    const double[::1] y,               # IN   (n,)
    const double[::1] f,               # IN   (n,)
    const double[::1] dual or None,    # IN   (n,), what coefficients take for the slopes
    double quantile,
    double width,                      # IN   m
    double inside,                     # IN   share of its room that is left to `dual`, at least
    double[::1] values or None,        # OUT  (n,)
    double[::1] slopes or None,        # OUT  (n,)
    double[::1] curvatures or None,    # OUT  (n,)
    int n_threads,
):
    """The pinball loss with barriers about its slopes: q - s is `above`, s + 1 - q `below`."""
    cdef bint want_values = values is not None, want_slopes = slopes is not None
    cdef bint want_curvatures = curvatures is not None
    cdef Py_ssize_t i
    cdef double r, small, above, below, up, low
    of_rows(y, f, values, slopes, curvatures)
    agree(not want_curvatures or dual is not None and dual.shape[0] == y.shape[0], "y and dual")
    for i in prange(y.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        r = y[i] - f[i]
        small = 2 * width / (fabs(r) + 2 * width + hypot(r, 2 * width))
        above = small if r > 0 else 1 - small
        below = 1 - small if r > 0 else small
        if want_values:
            values[i] = (quantile - above) * r + width * (log(above) + log(below))
        if want_slopes:
            slopes[i] = above - quantile
        if want_curvatures:
            up = max(quantile - dual[i], inside * above)
            low = max(dual[i] + 1 - quantile, inside * below)
            curvatures[i] = 1 / (width * (1 / (above * up) + 1 / (below * low)))


def softmax(
    const double[:, ::1] y,            # IN   (n, k), 1 for the class of the row, else -1
    const double[:, ::1] f,            # IN   (n, k)
    double[::1] values or None,        # OUT  (n,)
    double[:, ::1] slopes or None,     # OUT  (n, k)
    double[:, ::1] shares or None,     # OUT  (n, k): p, curvatures are diag(p) - p p^T
    int n_threads,
):
    """Minus the log share of exp(f) that the class of the row has."""
    cdef bint want_values = values is not None, want_slopes = slopes is not None
    cdef bint want_shares = shares is not None
    cdef Py_ssize_t i, c, k = f.shape[1]
    cdef double top, total
    agree(k > 0 and y.shape[0] == f.shape[0] and y.shape[1] == k
          and (values is None or values.shape[0] == f.shape[0])
          and (slopes is None or slopes.shape[0] == f.shape[0] and slopes.shape[1] == k)
          and (shares is None or shares.shape[0] == f.shape[0] and shares.shape[1] == k),
          "y, f and out")
    for i in prange(f.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        top = _largest(&f[i, 0], k)
        total = _exponentials(&f[i, 0], k, top)
        for c in range(k):
            if want_values and y[i, c] > 0:
                values[i] = log(total) - (f[i, c] - top)
            if want_slopes:
                slopes[i, c] = exp(f[i, c] - top) / total - (1.0 if y[i, c] > 0 else 0.0)
            if want_shares:
                shares[i, c] = exp(f[i, c] - top) / total


cdef inline double _largest(const double* f, Py_ssize_t k) noexcept nogil:
    cdef double top = f[0]
    cdef Py_ssize_t c
    for c in range(1, k):
        top = max(top, f[c])
    return top


cdef inline double _exponentials(const double* f, Py_ssize_t k, double top) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t c
    for c in range(k):
        total += exp(f[c] - top)
    return total
