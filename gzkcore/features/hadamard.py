"""The fast Walsh-Hadamard transform: a rotation of n coordinates by n log2(n) additions.

H[i, j] = (-1)^popcount(i & j) for n a power of two. After random signs it spreads any vector evenly
over its coordinates. Fastfood and the projections need this.
"""

from numpy.typing import ArrayLike

from gzkcore._compiled import hadamard as _hadamard
from gzkcore._util.threads import in_parts, n_threads
from gzkcore._util.typing import Floats
from gzkcore._util.validation import as_floating, check_out

__all__ = ["hadamard_transform"]


def hadamard_transform(X: ArrayLike, *, out: Floats | None = None) -> Floats:
    """Multiply every row by the Hadamard matrix H[i, j] = (-1)^popcount(i & j).

    Parameters
    ----------
    X : array-like of shape (..., n)
        n, the length of the last axis, must be a power of two: pad with zeros. float32 is kept,
        everything else becomes float64.
    out : ndarray of the shape of X, optional
        Where to write: C-contiguous, the dtype of the result, no overlap with X.

    Returns
    -------
    ndarray of the shape of X
        Not normalised: exact for small integers; two transforms give n X. Divide by sqrt(n) for a
        rotation. The rows of H have the order of `scipy.linalg.hadamard`.

    Notes
    -----
    Cost: n log2(n) additions a row, no memory beyond the output. The error of an element is at most
    log2(n) eps |x|_1, and typically sqrt(log2(n)) eps |x|_2. Results are identical, to the last
    bit, for any number of threads and any split of the rows.

    References
    ----------
    Fino, Algazi, Unified matrix treatment of the fast Walsh-Hadamard transform, IEEE Transactions
    on Computers 25 (1976).

    Examples
    --------
    >>> from gzkcore import hadamard_transform
    >>> hadamard_transform([1.0, 2.0, 3.0, 4.0])
    array([10., -2., -4.,  0.])
    """
    flat, shape = as_floating("X", X)
    n = shape[-1] if shape else 0
    if n < 1 or n & (n - 1):
        above = 1 << max(n - 1, 0).bit_length()
        raise ValueError(
            f"X has shape {shape}, whose last axis is not a power of two; pad it with zeros to "
            f"{above}"
        )
    out = check_out(out, shape, flat.dtype, flat)
    rows, to, threads = (
        flat.reshape(-1, n),
        out.reshape(-1, n),
        n_threads(flat.size * n.bit_length()),
    )
    for part in in_parts(len(rows), n * n.bit_length()):
        _hadamard.hadamard_transform(rows[part], to[part], threads)
    return out
