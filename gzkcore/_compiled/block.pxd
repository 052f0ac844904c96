"""The operations of `block.h`; see `leaf.pxd` for `...`."""

cdef extern from "block.h" nogil:
    void scatter "gzk_scatter"(...)                  # rows, bucket, w, d, passes, acc
    void scatter_columns "gzk_scatter_columns"(...)  # columns, bucket, w, d, acc
    void scatter_row "gzk_scatter_row"(...)          # x, bucket, w, d, out
    void unpack "gzk_unpack"(...)                    # acc, n, count, out, ldo
    int not_finite "gzk_not_finite"(...)             # x, n: whether a number is infinite or NaN
