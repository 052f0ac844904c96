"""Which of the proposed rows become landmarks, for `nystrom`: one after the other, as drawn.

Formula    A row proposed in proportion to what was left of it before the round is accepted where
           what is left now is more than its level, a uniform share of what was left then; so that
           rows have the law of being drawn one at a time (Epperly, Tropp, Webber 2024).
Cost       p^2 k operations for k of p rows accepted by `accept_pivots`, p k by `accept_distances`.
Layout     Square matrices in C order; the lower right part of `rest` is eliminated in place.
"""

from .checks cimport agree


def accept_pivots(
    double[:, ::1] rest,               # IN OUT (p, p), what landmarks before leave of the kernel
    const double[::1] levels,          # IN   (p,)
    double nothing,                    # IN   less than this is rounding
    Py_ssize_t[::1] accepted,          # OUT  (p,)
):
    """Pivoted Cholesky with the pivots that are accepted; return how many there are."""
    cdef Py_ssize_t size = rest.shape[0], count = 0, i, r, c
    cdef double factor
    cdef const double* pivot
    cdef double* row
    agree(rest.shape[1] == size and levels.shape[0] == size and accepted.shape[0] == size,
          "rest, levels and accepted")
    with nogil:
        for i in range(size):
            if rest[i, i] <= max(levels[i], nothing):
                continue
            accepted[count] = i
            count += 1
            pivot = &rest[i, 0]
            for r in range(i + 1, size):
                row = &rest[r, 0]
                factor = row[i] / pivot[i]
                for c in range(i + 1, size):
                    row[c] = row[c] - factor * pivot[c]
    return count


def accept_distances(
    const double[:, ::1] apart,        # IN   (p, p), squared distances
    double[::1] left,                  # IN OUT (p,), those to the nearest landmark
    const double[::1] levels,          # IN   (p,)
    double nothing,                    # IN   less than this is rounding
    Py_ssize_t[::1] accepted,          # OUT  (p,)
):
    """k-means++ with the rows that are accepted; return how many there are."""
    cdef Py_ssize_t size = apart.shape[0], count = 0, i, j
    agree(apart.shape[1] == size and left.shape[0] == size and levels.shape[0] == size
          and accepted.shape[0] == size, "apart, left, levels and accepted")
    with nogil:
        for i in range(size):
            if left[i] <= max(levels[i], nothing):
                continue
            accepted[count] = i
            count += 1
            for j in range(size):
                left[j] = min(left[j], apart[i, j])
    return count
