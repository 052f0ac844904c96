"""The operations of `neighbours.h`; see `leaf.pxd` for `...`."""

cdef extern from "neighbours.h" nogil:
    int GZK_TALL, GZK_WIDE
    # factors, n_factors, u, d, count, width, S: S[j, l] = k(x_j, x_l) for l >= j.
    void kernel_of_few "gzk_kernel_of_few"(...)
    # z, p, count, width, S: S[j, l] -= z_j . z_l for l >= j.
    void subtract_features "gzk_subtract_features"(...)
    # S, count, width, noise, g: g = U^-1 e for S = U^T U, e the last unit vector.
    void last_of_inverse_factor "gzk_last_of_inverse_factor"(...)
