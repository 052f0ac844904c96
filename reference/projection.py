"""Random projections by the Walsh-Hadamard transform: SRHT and FJLT.

H D x, with random signs D, has the length of x (times sqrt(n)) and is spread evenly over its n
coordinates, for any x. So a few numbers are enough: some of the coordinates (the subsampled
randomized Hadamard transform), or sums of a few (the fast Johnson-Lindenstrauss transform). In both
cases E <z(x), z(y)> = <x, y>.
"""

from math import sqrt

from .hadamard import hadamard_matrix

__all__ = [
    "fast_jl_projection",
    "fast_jl_variance",
    "hadamard_projection",
    "hadamard_projection_variance",
]


def hadamard_projection(X, signs, rows):
    """Keep some of the numbers of H D x, over the root of how many: z = R H D x / sqrt(k).

    With n the least power of two that is no less than d, x ends with zeros, and entry r of the
    stacked vectors H D_0 x, H D_1 x, ... is entry r mod n of the one with the signs r // n.

    Parameters
    ----------
    X : rows of d numbers
    signs : list of rows of d numbers +1 or -1
        The diagonals of D_0, D_1, ...; more than one where k > n.
    rows : list of k indices below n times the number of rows of signs
        Which entries are kept.

    Returns
    -------
    list of rows of k numbers

    References
    ----------
    Ailon, Liberty, Fast dimension reduction using Rademacher series on dual BCH codes, 2009; Tropp,
    Improved analysis of the subsampled randomized Hadamard transform, 2011.

    Examples
    --------
    >>> hadamard_projection([[1.0, 2.0, 3.0]], [[1, -1, 1]], [0, 1, 2, 3])
    [[1.0, 3.0, -2.0, 0.0]]
    """
    d = len(signs[0])
    n = _padded(d)
    H = hadamard_matrix(n)
    out = []
    for x in X:
        z = []
        for r in rows:
            D = signs[r // n]
            z.append(sum(H[r % n][j] * D[j] * x[j] for j in range(d)) / sqrt(len(rows)))
        out.append(z)
    return out


def fast_jl_projection(X, signs, P):
    """Multiply H D x by a sparse matrix: z = P H D x / sqrt(n k).

    Parameters
    ----------
    X : rows of d numbers
    signs : list of d numbers +1 or -1
        The diagonal of D.
    P : list of k rows of n numbers
        n is the least power of two that is no less than d. For projections of density q each
        number is 0 with probability 1 - q, else normal with the variance 1/q.

    Returns
    -------
    list of rows of k numbers

    References
    ----------
    Ailon, Chazelle, The fast Johnson-Lindenstrauss transform and approximate nearest neighbors,
    2009.

    Examples
    --------
    >>> fast_jl_projection([[1.0, 2.0, 3.0]], [1, -1, 1], [[2.0, 0.0, 0.0, 0.0]])
    [[2.0]]
    """
    d = len(signs)
    n = _padded(d)
    H = hadamard_matrix(n)
    out = []
    for x in X:
        u = [sum(H[i][j] * signs[j] * x[j] for j in range(d)) / sqrt(n) for i in range(n)]
        out.append([sum(p * v for p, v in zip(row, u, strict=True)) / sqrt(len(P)) for row in P])
    return out


def hadamard_projection_variance(x, y, n_components):
    """Variance of <z(x), z(y)> for k different rows of H, uniformly drawn.

    A row r by itself gives u_r = (H D x)_r (H D y)_r. The mean of u_r over all n rows is <x, y> for
    any signs, and the mean of u_r^2 over the signs is P + 2 a - 2 s: its four indices come in two
    equal pairs, in one of three ways. Here P = |x|^2 |y|^2, a = <x, y>^2, s = sum x_i^2 y_i^2. The
    mean of k of n numbers, drawn without replacement, has (n - k)/((n - 1) k) of their variance:

        Var = (n - k) / ((n - 1) k) (P + a - 2 s).

    If k > n, then all rows are taken, for other signs again and again, and the last
    r = k mod n are drawn: (n - k)/((n - 1) k) becomes r (n - r)/((n - 1) k^2).

    Parameters
    ----------
    x, y : sequences of d numbers
    n_components : int
        k.

    Returns
    -------
    float

    Examples
    --------
    >>> hadamard_projection_variance([1.0, 1.0, 0.0], [1.0, 1.0, 0.0], 1)
    4.0
    """
    n, k = _padded(len(x)), n_components
    P, a, s = _moments(x, y)
    r = k % n
    return r * (n - r) / (max(n - 1, 1) * k**2) * (P + a - 2 * s)


def fast_jl_variance(x, y, n_components, density):
    """Variance of <z(x), z(y)> for a sparse normal matrix of density q.

    Given u = H D x / sqrt(n) and v = H D y / sqrt(n), whose product is <x, y>, the rows of P are
    independent, and since E p_j^4 = 3/q

        E (p.u)^2 (p.v)^2 = |u|^2 |v|^2 + 2 <u, v>^2 + 3 (1/q - 1) sum u_j^2 v_j^2.

    The mean of the last sum over the signs is (P + 2 a - 2 s)/n, as for the variance above:

        Var = (P + a + 3 (1/q - 1) (P + 2 a - 2 s) / n) / k.

    Parameters
    ----------
    x, y : sequences of d numbers
    n_components : int
        k.
    density : float
        q.

    Returns
    -------
    float

    Examples
    --------
    >>> fast_jl_variance([1.0, 1.0], [1.0, 1.0], 1, 0.5)
    20.0
    """
    P, a, s = _moments(x, y)
    sparse = 3 * (1 / density - 1) * (P + 2 * a - 2 * s) / _padded(len(x))
    return (P + a + sparse) / n_components


def _padded(d):
    """Least power of two that is no less than d."""
    return 1 << (d - 1).bit_length()


def _moments(x, y):
    a = sum(u * v for u, v in zip(x, y, strict=True)) ** 2
    s = sum((u * v) ** 2 for u, v in zip(x, y, strict=True))
    return sum(u * u for u in x) * sum(v * v for v in y), a, s
