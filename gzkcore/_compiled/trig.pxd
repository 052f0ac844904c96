"""Cosine and sine together, of `trig.h`; see `leaf.pxd` for `...`."""

from cython cimport floating

cdef extern from "trig.h" nogil:
    # half_turns, cos_out, sin_out, n, scale, stream: cos_out[j] = scale cos(pi half_turns[j]), and
    # so the sines.
    void cos_sin "gzk_cos_sin"(...)


cdef inline void write_angles(const floating* angle, Py_ssize_t first, Py_ssize_t width,
                              Py_ssize_t pairs, floating phase, floating scale, floating* row,
                              Py_ssize_t columns, bint stream) noexcept nogil:
    """Write the features of `width` angles of one row, from number `first` on.

    A row is `pairs` cosines, then as many sines, and in an odd column scale cos(pi (angle + phase))
    of the angle after these.
    """
    cdef Py_ssize_t count = min(width, pairs - first), odd = pairs - first
    cdef floating last, ignored
    if count > 0:
        cos_sin(angle, row + first, row + pairs + first, count, scale, stream)
    if columns > 2 * pairs and 0 <= odd < width:
        last = angle[odd] + phase
        cos_sin(&last, row + 2 * pairs, &ignored, 1, scale, False)
