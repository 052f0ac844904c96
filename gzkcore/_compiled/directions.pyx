"""Directions and frequencies from given draws, for `directions` and `fourier`.

iid_directions         rows divided by their norms.
orthogonal_directions  of each d rows an orthonormal basis, by LAPACK's QR decomposition with R's
                       signs undone, which alone makes it Haar-distributed. Blocks in parallel, with
                       BLAS held to one thread by the caller: 4/3 d^3 flops each.
fibonacci_directions   w_k = (rho cos(k g), rho sin(k g), z), z = 1 - (2k+1)/m, g the golden angle.
modified_weights       sqrt(p / q) of frequencies drawn evenly from a ball, from logarithms.
Layout                 rows contiguous; a block of rows is, to Fortran, a matrix of columns.
"""

from cython.parallel cimport prange
from libc.math cimport M_PI, cos, exp, lgamma, log, log1p, sin, sqrt
from libc.stdlib cimport free, malloc
from scipy.linalg.cython_lapack cimport dgeqrf, dorgqr


def iid_directions(
    const double[:, ::1] normals,      # IN   (m, d)
    double[:, ::1] out,                # OUT  (m, d)
    int n_threads,
):
    """Unit rows."""
    cdef Py_ssize_t i
    for i in prange(normals.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        _divide(&normals[i, 0], normals.shape[1], &out[i, 0])


cdef inline void _divide(const double* row, Py_ssize_t dim, double* out) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(dim):
        total += row[j] * row[j]
    total = sqrt(total)
    for j in range(dim):
        out[j] = row[j] / total


def orthogonal_directions(
    double[:, ::1] rows,               # IN OUT (m, d), normals, then orthonormal in blocks of d
    int n_threads,
):
    """Orthonormal rows from rows of normals, block by block; return LAPACK's worst `info`."""
    cdef Py_ssize_t m = rows.shape[0], dim = rows.shape[1], block
    cdef int info = 0
    for block in prange((m + dim - 1) // dim, schedule="dynamic", nogil=True,
                        num_threads=n_threads):
        info += _haar(&rows[block * dim, 0], <int> dim, <int> min(dim, m - block * dim))
    return info


cdef int _haar(double* rows, int dim, int count) noexcept nogil:
    """One block; 0 if it went well."""
    cdef int info = 0, size = 64 * max(count, 1), j, a
    cdef double* tau = <double*> malloc((2 * count + size) * sizeof(double))
    cdef double* sign
    if tau == NULL:
        return 1
    sign = tau + count
    dgeqrf(&dim, &count, rows, &dim, tau, sign + count, &size, &info)
    for j in range(count):
        sign[j] = -1.0 if rows[j * dim + j] < 0 else 1.0
    if info == 0:
        dorgqr(&dim, &count, &count, rows, &dim, tau, sign + count, &size, &info)
    for j in range(count):
        for a in range(dim):
            rows[j * dim + a] *= sign[j]
    free(tau)
    return 0 if info == 0 else 1


def fibonacci_directions(
    double[:, ::1] out,                # OUT  (m, 3)
    int n_threads,
):
    """m points of equal area on the sphere in R^3."""
    cdef Py_ssize_t k, m = out.shape[0]
    cdef double golden = M_PI * (3 - sqrt(5.0)), z, rho
    for k in prange(m, schedule="static", nogil=True, num_threads=n_threads):
        z = 1 - (2.0 * k + 1) / m
        rho = sqrt(1 - z * z)
        out[k, 0] = rho * cos(k * golden)
        out[k, 1] = rho * sin(k * golden)
        out[k, 2] = z


def modified_weights(
    const double[:, ::1] frequencies,  # IN   (m, d), of the standard normal spectrum
    double radius,                     # IN   of the ball
    double outside,                    # IN   what the normal density has beyond it
    double[::1] out,                   # OUT  (m,)
    int n_threads,
):
    """sqrt(p / q): p the normal density, q even in the ball and p beyond it."""
    cdef Py_ssize_t i, dim = frequencies.shape[1]
    cdef double log_even = (dim * log(radius * sqrt(M_PI)) - lgamma(0.5 * dim + 1)
                            - 0.5 * dim * log(2 * M_PI) - log1p(-outside))
    cdef double square
    for i in prange(frequencies.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        square = _square(&frequencies[i, 0], dim)
        out[i] = 1.0 if square > radius * radius else exp(0.5 * (log_even - 0.5 * square))


cdef inline double _square(const double* row, Py_ssize_t dim) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(dim):
        total += row[j] * row[j]
    return total
