"""Legendre transforms: between coefficients of spherical harmonics and values on rings.

Formula    rings[m, j] = sum_l P_lm(cos theta_j) coefficients[m, l], and the adjoint of that, for
           theta_j = pi j / (R - 1) and the functions with int |P_lm(cos theta) e^(i m phi)|^2 = 1:
           P_l = a_l (x P_(l-1) - P_(l-2) / a_(l-1)),  a_l^2 = (4 l^2 - 1) / (l^2 - m^2).
Cost       (L + 1)^2 R / 4 steps of the recurrence, each for four sums. Memory: what is given.
Why        P_mm is a multiple of sin^m theta, near the poles below the range of doubles. There a
           value is held times 2^(900 s). While s > 0 it is too small to count; it grows, and once
           it is large s is less by one. So the recurrence is stable for any degree.
Order      Parallel over m. A block of WIDE rings is a few vectors. P_lm(-x) is P_lm(x) times
           (-1)^(l + m): sums over even and over odd l + m give both hemispheres.
Layout     Four numbers for each l, or ring: real and imaginary parts for m, and for -m.
"""

from cython.parallel cimport prange
from libc.math cimport INFINITY, M_PI, cos, exp2, floor, log2, sin, sqrt
from libc.string cimport memset

from .checks cimport agree

cdef enum:
    WIDE = 64
    LANES = 8
    PARTS = 4
    STEP = 900    # powers of 2 between two scales

cdef double LARGE = 2.0 ** (STEP // 2)
cdef double DOWN = 2.0 ** -STEP


cdef struct Block:
    double x[WIDE]        # cos theta
    double p[WIDE]        # P_l, and the one before
    double before[WIDE]
    double scale[WIDE]    # s
    double value[WIDE]    # P_l, 0 where s > 0
    int scaled            # how many s are above 0


cdef void begin(Block* block, Py_ssize_t m, Py_ssize_t first, Py_ssize_t n_rings) noexcept nogil:
    """Set P_mm = (1 (1 + 1/2) (1 + 1/4) ... (1 + 1/(2 m)) / (4 pi))^(1/2) sin^m theta."""
    cdef double theta, power, constant = -log2(4 * M_PI) / 2, s
    cdef Py_ssize_t i, k
    for k in range(1, m + 1):
        constant += log2(1 + 0.5 / k) / 2
    block.scaled = 0
    for i in range(WIDE):
        theta = M_PI * (first + i) / (n_rings - 1)
        block.x[i] = cos(theta) if 2 * (first + i) < n_rings - 1 else 0.0
        power = constant + (m * log2(sin(theta)) if m else 0.0)
        if 2 * (first + i) >= n_rings + 1:  # beyond the equator there are no rings
            power = -INFINITY
        s = 0
        if power == -INFINITY:
            block.p[i] = 0
        else:
            if power < -STEP // 2:
                s = floor((STEP // 2 - power) / STEP)
            block.p[i] = exp2(power + STEP * s)
        block.before[i] = 0
        block.scale[i] = s
        block.scaled += s > 0
        block.value[i] = 0.0 if s > 0 else block.p[i]


cdef inline void advance(Block* block, double a, double b) noexcept nogil:
    """Go from P_l to P_(l + 1)."""
    cdef double one
    cdef Py_ssize_t i
    for i in range(WIDE):
        one = a * (block.x[i] * block.p[i] - b * block.before[i])
        block.before[i] = block.p[i]
        block.p[i] = one
        block.value[i] = one
    if block.scaled:
        for i in range(WIDE):
            if block.scale[i] > 0:
                if block.p[i] > LARGE or block.p[i] < -LARGE:
                    block.p[i] *= DOWN
                    block.before[i] *= DOWN
                    block.scale[i] -= 1
                    block.scaled -= block.scale[i] == 0
                block.value[i] = 0.0 if block.scale[i] > 0 else block.p[i]


cdef inline double step_of(Py_ssize_t ell, Py_ssize_t m) noexcept nogil:
    """a_l."""
    return sqrt((4.0 * ell * ell - 1) / ((<double> (ell - m)) * (ell + m)))


cdef void to_rings(Py_ssize_t m, Py_ssize_t degree, Py_ssize_t n_rings, const double* c,
                   double* rings) noexcept nogil:
    """Write the sums of one m on all rings."""
    cdef Block block
    cdef double sums[2][PARTS][WIDE]
    cdef double a, b, own
    cdef double *here
    cdef Py_ssize_t half = (n_rings + 1) // 2, number, first, ell, i, q
    for number in range((half + WIDE - 1) // WIDE):
        first = number * WIDE
        begin(&block, m, first, n_rings)
        memset(sums, 0, sizeof(sums))
        b = 0
        for ell in range(m, degree + 1):
            for q in range(PARTS if block.scaled < WIDE else 0):
                own = c[PARTS * ell + q]
                here = sums[(ell - m) & 1][q]
                for i in range(WIDE):
                    here[i] += own * block.value[i]
            a = step_of(ell + 1, m)
            advance(&block, a, b)
            b = 1 / a
        for i in range(min(<Py_ssize_t> WIDE, half - first)):
            for q in range(PARTS):
                rings[PARTS * (n_rings - 1 - first - i) + q] = sums[0][q][i] - sums[1][q][i]
                rings[PARTS * (first + i) + q] = sums[0][q][i] + sums[1][q][i]


cdef void from_rings(Py_ssize_t m, Py_ssize_t degree, Py_ssize_t n_rings, const double* rings,
                     double* c) noexcept nogil:
    """Add up the sums of one m over all rings."""
    cdef Block block
    cdef double both[2][PARTS][WIDE]
    cdef double some[LANES]
    cdef double a, b, north, south
    cdef double *here
    cdef Py_ssize_t half = (n_rings + 1) // 2, number, first, ell, i, k, q, ring
    for number in range((half + WIDE - 1) // WIDE):
        first = number * WIDE
        begin(&block, m, first, n_rings)
        memset(both, 0, sizeof(both))
        for i in range(min(<Py_ssize_t> WIDE, half - first)):
            ring = first + i
            for q in range(PARTS):
                north = rings[PARTS * ring + q]
                south = rings[PARTS * (n_rings - 1 - ring) + q] if 2 * ring < n_rings - 1 else 0.0
                both[0][q][i] = north + south
                both[1][q][i] = north - south
        b = 0
        for ell in range(m, degree + 1):
            for q in range(PARTS if block.scaled < WIDE else 0):
                here = both[(ell - m) & 1][q]
                for i in range(LANES):
                    some[i] = 0
                    for k in range(0, WIDE // LANES):
                        some[i] += here[i + k * LANES] * block.value[i + k * LANES]
                c[PARTS * ell + q] += (
                    ((some[0] + some[1]) + (some[2] + some[3]))
                    + ((some[4] + some[5]) + (some[6] + some[7])))
            a = step_of(ell + 1, m)
            advance(&block, a, b)
            b = 1 / a


cdef int check(Py_ssize_t orders, Py_ssize_t degrees, Py_ssize_t n_rings, bint they_do) except -1:
    """Raise ValueError unless there are as many orders as degrees, and rings enough for both."""
    return agree(they_do and 0 < orders == degrees and n_rings >= 2, "coefficients and rings")


def legendre_synthesis(
    const double[:, :, ::1] coefficients,    # IN   (L + 1, L + 1, 4): of m and l; l < m is not read
    double[:, :, ::1] rings,                 # OUT  (L + 1, R, 4): of m and ring, from pole to pole
    int n_threads,
):
    """rings[m, j] = sum_l P_lm(cos theta_j) coefficients[m, l]."""
    cdef Py_ssize_t orders = coefficients.shape[0], n_rings = rings.shape[1], m
    check(orders, coefficients.shape[1], n_rings,
          coefficients.shape[2] == rings.shape[2] == PARTS and rings.shape[0] == orders)
    for m in prange(orders, schedule="dynamic", chunksize=1, nogil=True, num_threads=n_threads):
        to_rings(m, orders - 1, n_rings, &coefficients[m, 0, 0], &rings[m, 0, 0])


def legendre_adjoint(
    const double[:, :, ::1] rings,           # IN   (L + 1, R, 4)
    double[:, :, ::1] coefficients,          # OUT  (L + 1, L + 1, 4), zeros
    int n_threads,
):
    """coefficients[m, l] = sum_j P_lm(cos theta_j) rings[m, j]."""
    cdef Py_ssize_t orders = coefficients.shape[0], n_rings = rings.shape[1], m
    check(orders, coefficients.shape[1], n_rings,
          coefficients.shape[2] == rings.shape[2] == PARTS and rings.shape[0] == orders)
    for m in prange(orders, schedule="dynamic", chunksize=1, nogil=True, num_threads=n_threads):
        from_rings(m, orders - 1, n_rings, &rings[m, 0, 0], &coefficients[m, 0, 0])
