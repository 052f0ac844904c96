"""The operations of `projection.h`; see `leaf.pxd` for `...`."""

cdef extern from "projection.h" nogil:
    void load_signed "gzk_load_signed"(...)        # x, ldx, count, sign, columns, y
    void hadamard_lanes "gzk_hadamard_lanes"(...)  # y, n
    void add_signed "gzk_add_signed"(...)          # y, rows, count, bits, piece, acc
    void add_signed_row "gzk_add_signed_row"(...)  # the same
    void sparse_product "gzk_sparse_product"(...)  # data, columns, indptr, count, y, acc
