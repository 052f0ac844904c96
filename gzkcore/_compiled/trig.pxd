"""Cosine and sine together, of `trig.h`, for float and double under one name."""

from cython cimport floating

cdef extern from "trig.h" nogil:
    void gzk_cos_sin_f32(const float* half_turns, float* cos_out, float* sin_out, Py_ssize_t n,
                         float scale, int stream)
    void gzk_cos_sin_f64(const double* half_turns, double* cos_out, double* sin_out, Py_ssize_t n,
                         double scale, int stream)


cdef inline void cos_sin(const floating* half_turns, floating* cos_out, floating* sin_out,
                         Py_ssize_t n, floating scale, bint stream) noexcept nogil:
    """cos_out[j] = scale cos(pi half_turns[j]), sin_out[j] = scale sin(pi half_turns[j])."""
    if floating is float:
        gzk_cos_sin_f32(half_turns, cos_out, sin_out, n, scale, stream)
    else:
        gzk_cos_sin_f64(half_turns, cos_out, sin_out, n, scale, stream)


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
