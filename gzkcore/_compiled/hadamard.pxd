"""The Walsh-Hadamard transform of `hadamard.h`; see `leaf.pxd` for `...`."""

cdef extern from "hadamard.h" nogil:
    # x, y, n: y = H x for n a power of two; y is x or does not overlap it.
    void hadamard "gzk_hadamard"(...)
    # x, order, factor, y, n: y[j] = factor[j] x[order[j]] for n a multiple of 16.
    void permute "gzk_permute"(...)
