"""The operations of `sketch.h`; see `leaf.pxd` for `...`."""

from cython cimport floating

cdef extern from "sketch.h" nogil:
    # x, hashes, signs, d, factors, m, acc: add the convolution of CountSketches of length m, one
    # for each of the factors.
    void count_lanes "gzk_count"(...)
    void unit_spectrum "gzk_ones"(...)     # product, m
    void store_rows "gzk_store_rows"(...)  # x, m, scale, out, ldo, count, stream
    void gzk_fourier(...)                  # z, n, b, roots
    void gzk_fourier_back(...)             # the same
    void gzk_multiply(...)                 # z, m, roots, product
    void gzk_join(...)                     # product, m, roots


cdef inline void multiply_spectrum(floating* z, Py_ssize_t m, const floating* roots,
                                   floating* product) noexcept nogil:
    """product *= the Fourier transform of the m numbers in z, which is lost."""
    gzk_fourier(z, m // 2, 0, roots)
    gzk_multiply(z, m, roots, product)


cdef inline void from_spectrum(floating* product, Py_ssize_t m,
                               const floating* roots) noexcept nogil:
    """In place m times the numbers whose transform this is."""
    gzk_join(product, m, roots)
    gzk_fourier_back(product, m // 2, 0, roots)
