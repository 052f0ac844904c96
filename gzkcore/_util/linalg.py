"""Dense linear algebra that is better held to one thread: steps of LAPACK that wait for each other.

Eigenvectors of p x p matrices on two cores with another program beside, seconds with one thread
of OpenBLAS and with two: p = 512: .1 and .2 to 1.5; 1,024: .4 and 3 to 4; 2,048: 2.3 and 9 to 11;
4,096: 13 and 42. Products gain from threads and keep them.
"""

from typing import Any

import scipy.linalg

from .threads import limit_blas
from .typing import Doubles


def eigh(matrix: Doubles, *against: Doubles, **options: Any) -> Any:
    """`scipy.linalg.eigh` on one thread, which also gives the same bits for any number of them."""
    with limit_blas(1):
        return scipy.linalg.eigh(matrix, *against, **options)


def orthonormal(columns: Doubles) -> Doubles:
    """Return an orthonormal basis of what the columns span, on one thread."""
    with limit_blas(1):
        basis: Doubles = scipy.linalg.qr(columns, mode="economic", check_finite=False)[0]
    return basis
