"""Sketches of vectors and of their outer powers: CountSketch, OSNAP and TensorSketch.

A sketch is a random linear map S with E <S x, S y> = <x, y> for which S x costs one addition for
each entry of x. TensorSketch sketches x (x) ... (x) x, from sketches of x itself.
"""

from math import gcd, sqrt

from .special import refuse_below

__all__ = ["count_sketch", "tensor_sketch", "tensor_sketch_variance"]


def count_sketch(X, hashes, signs, n_components):
    """Add the entries of each row, with signs, at the places that their columns have.

    out[hashes[t][j]] += signs[t][j] x[j] / sqrt(s) for t = 0..s-1: CountSketch for s = 1, OSNAP for
    s different places of each column.

    Parameters
    ----------
    X : rows of d numbers
    hashes : list of s rows of d indices below n_components
    signs : list of s rows of d numbers +1 or -1
    n_components : int

    Returns
    -------
    list of rows of n_components numbers

    References
    ----------
    Charikar, Chen, Farach-Colton, Finding frequent items in data streams, 2002; Nelson, Nguyen,
    OSNAP, 2013.

    Examples
    --------
    >>> count_sketch([[1.0, 2.0, 4.0]], [[1, 0, 1]], [[1, 1, -1]], 2)
    [[2.0, -3.0]]
    """
    rows = []
    for x in X:
        out = [0.0] * n_components
        for places, sign in zip(hashes, signs, strict=True):
            for j, value in enumerate(x):
                out[places[j]] += sign[j] * value / sqrt(len(hashes))
        rows.append(out)
    return rows


def tensor_sketch(X, hashes, signs, n_components):
    """CountSketch of x (x) ... (x) x, whose entry (i_1, ..., i_p) is at sum_t h_t(i_t) mod m.

    That is the cyclic convolution of p CountSketches of x.

    Parameters
    ----------
    X : rows of d numbers
    hashes : list of p rows of d indices below n_components
    signs : list of p rows of d numbers +1 or -1
    n_components : int
        m.

    Returns
    -------
    list of rows of n_components numbers

    References
    ----------
    Pham, Pagh, Fast and scalable polynomial kernels via explicit feature maps, 2013.

    Examples
    --------
    >>> tensor_sketch([[1.0, 2.0, 4.0]], [[1, 0, 1], [0, 0, 1]], [[1, 1, -1], [1, 1, 1]], 2)
    [[-6.0, -1.0]]
    """
    m = n_components
    rows = []
    for x in X:
        product = [1.0] + [0.0] * (m - 1)
        for places, sign in zip(hashes, signs, strict=True):
            (sketch,) = count_sketch([x], [places], [sign], m)
            product = [sum(product[k] * sketch[(r - k) % m] for k in range(m)) for r in range(m)]
        rows.append(product)
    return rows


def tensor_sketch_variance(x, y, degree, n_components):
    """Variance of <TensorSketch x, TensorSketch y>, whose mean is <x, y>^p.

    In E <., .>^2 each of the p coordinates of four indices comes in equal pairs, in one of three
    ways, of weights a = <x, y>^2, b = |x|^2 |y|^2 - s and c = a - s, s = sum x_i^2 y_i^2. All of
    the first kind collide always, those with some of the second or some of the third kind with
    probability 1/m, those with both with gcd(2, m)/m^2. So the variance is

        ((a + b)^p + (a + c)^p - 2 a^p) / m
            + ((a + b + c)^p - (a + b)^p - (a + c)^p + a^p) gcd(2, m) / m^2.

    Parameters
    ----------
    x, y : sequences of d numbers
    degree : int
        p.
    n_components : int
        m.

    Returns
    -------
    float

    Examples
    --------
    >>> tensor_sketch_variance([1.0, 1.0], [1.0, 1.0], 1, 4)
    1.0
    """
    refuse_below(1, degree=degree)
    p, m = degree, n_components
    a = sum(u * v for u, v in zip(x, y, strict=True)) ** 2
    s = sum((u * v) ** 2 for u, v in zip(x, y, strict=True))
    b = sum(u * u for u in x) * sum(v * v for v in y) - s
    c = a - s
    one = (a + b) ** p + (a + c) ** p - 2 * a**p
    both = (a + b + c) ** p - (a + b) ** p - (a + c) ** p + a**p
    return one / m + both * gcd(2, m) / m**2
