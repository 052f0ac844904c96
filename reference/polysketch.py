"""PolySketch: x (x) ... (x) x through a binary tree of sketches of pairs.

The leaves are CountSketches (or OSNAPs) of x; if the degree is not a power of two, some are of e_1.
A node sketches the product of its children by T(u, v)_r = (H D u)_(i_r) (H D' v)_(j_r) / sqrt(m), a
TensorSRHT. The errors of the nodes add up along the tree; those of a TensorSketch multiply.
"""

from math import sqrt

from .hadamard import hadamard_transform
from .sketch import count_sketch
from .special import refuse_below

__all__ = ["poly_sketch", "poly_sketch_variance", "tensor_srht"]


def tensor_srht(u, v, signs, places, n_components):
    """Sketch u (x) v: T_r = (H D u)_(i_r) (H D' v)_(j_r) / sqrt(n_components).

    Parameters
    ----------
    u, v : lists of m numbers, m a power of two
    signs : pair of lists of m numbers +1 or -1
        The diagonals of D and D'.
    places : pair of lists of n_components indices or more
        i and j.
    n_components : int

    Returns
    -------
    list of n_components numbers

    Examples
    --------
    >>> tensor_srht([1.0, 2.0], [3.0, 4.0], [[1, 1], [1, -1]], [[0], [1]], 1)
    [21.0]
    """
    (a,) = hadamard_transform([[s * value for s, value in zip(signs[0], u, strict=True)]])
    (b,) = hadamard_transform([[s * value for s, value in zip(signs[1], v, strict=True)]])
    return [a[places[0][r]] * b[places[1][r]] / sqrt(n_components) for r in range(n_components)]


def poly_sketch(X, degree, hashes, signs, node_signs, places, n_components):
    """Sketch x (x) ... (x) x, `degree` times.

    Parameters
    ----------
    X : rows of d numbers
    degree : int
    hashes, signs : q lists of s rows of d
        Of the CountSketch of each leaf, q >= degree a power of two. Leaves from `degree` on have
        e_1.
    node_signs, places : q pairs of lists of m
        Of the nodes: the root is 1, the children of k are 2k and 2k + 1, the leaves q to 2q - 1.
        Number 0 is not used.
    n_components : int
        At most m where q > 1.

    Returns
    -------
    list of rows of n_components numbers

    References
    ----------
    Ahle, Kapralov, Knudsen, Pagh, Velingker, Woodruff, Zandieh, Oblivious sketching of high-degree
    polynomial kernels, 2020.

    Examples
    --------
    >>> poly_sketch([[1.0, 2.0]], 1, [[[1, 0]]], [[[1, -1]]], [[[1], [1]]], [[[0], [0]]], 2)
    [[-2.0, 1.0]]
    """
    q = len(hashes)

    def below(node, x, width):
        if node >= q:
            t = node - q
            point = x if t < degree else [1.0] + [0.0] * (len(x) - 1)
            (leaf,) = count_sketch([point], hashes[t], signs[t], width)
            return leaf
        m = len(node_signs[node][0])
        u, v = below(2 * node, x, m), below(2 * node + 1, x, m)
        return tensor_srht(u, v, node_signs[node], places[node], width)

    return [below(1, list(x), n_components) for x in X]


def poly_sketch_variance(x, y, degree, n_components, width, n_nonzeros=1):
    """Variance of <S x^(degree), S y^(degree)>, whose mean is <x, y>^degree.

    Of a sketch u, u' of two points, let Q = E |u|^2 |u'|^2, A = E <u, u'>^2 and
    R = E sum_r u_r^2 u'_r^2. Signs and a Hadamard transform give each of its entries
    E (H D u)_r^2 (H D u')_r^2 = M = Q + 2 A - 2 R, so that a node has

        Q <- (1 - 1/m) Q Q' + M M' / m,    A <- (1 - 1/m) A A' + M M' / m,    R <- M M' / m.

    A leaf of width m has, with P = |x|^2 |y|^2, a = <x, y>^2 and s = sum x_i^2 y_i^2,

        Q = P + 2 (a - s) / m,  A = a + (P + a - 2 s) / m,
        R = s / n_nonzeros + (P + 2 a - 3 s) / m.

    Parameters
    ----------
    x, y : sequences of d numbers
    degree : int
    n_components : int
    width : int
        m inside the tree.
    n_nonzeros : int
        Of the leaves.

    Returns
    -------
    float

    Examples
    --------
    >>> poly_sketch_variance([1.0, 1.0], [1.0, 1.0], 1, 4, 4)
    1.0
    """
    refuse_below(1, degree=degree)
    q = 1 << (degree - 1).bit_length()

    def leaf(u, v, m):
        P = sum(t * t for t in u) * sum(t * t for t in v)
        a = sum(s * t for s, t in zip(u, v, strict=True)) ** 2
        s = sum((s * t) ** 2 for s, t in zip(u, v, strict=True))
        return (
            P + 2 * (a - s) / m,
            a + (P + a - 2 * s) / m,
            s / n_nonzeros + (P + 2 * a - 3 * s) / m,
        )

    def below(node, m):
        if node >= q:
            return leaf(x, y, m) if node - q < degree else leaf([1.0], [1.0], m)
        Q1, A1, R1 = below(2 * node, width)
        Q2, A2, R2 = below(2 * node + 1, width)
        MM = (Q1 + 2 * A1 - 2 * R1) * (Q2 + 2 * A2 - 2 * R2) / m
        return (1 - 1 / m) * Q1 * Q2 + MM, (1 - 1 / m) * A1 * A2 + MM, MM

    mean = sum(u * v for u, v in zip(x, y, strict=True)) ** degree
    return below(1, n_components)[1] - mean**2
