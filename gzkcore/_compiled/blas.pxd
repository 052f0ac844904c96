"""Products of matrices in C order by BLAS, for float and double under one name."""

from cython cimport floating
from scipy.linalg.cython_blas cimport dgemm, sgemm


cdef inline void gemm(const floating* X, const floating* W, Py_ssize_t ldw, floating* out,
                      Py_ssize_t ldo, Py_ssize_t n_rows, Py_ssize_t n_columns,
                      Py_ssize_t inner) noexcept nogil:
    """out = X W. Fortran sees C matrices transposed: out^T = W^T X^T."""
    cdef int rows = <int> n_rows, columns = <int> n_columns, d = <int> inner
    cdef int lda = <int> ldw, ldc = <int> ldo
    cdef floating one = 1, zero = 0
    if floating is float:
        sgemm("N", "N", &columns, &rows, &d, &one, <float*> W, &lda, <float*> X, &d, &zero, out,
              &ldc)
    else:
        dgemm("N", "N", &columns, &rows, &d, &one, <double*> W, &lda, <double*> X, &d, &zero, out,
              &ldc)
