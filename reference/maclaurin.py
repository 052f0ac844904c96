"""Random Maclaurin features: a dot-product kernel is a mean of products of random signs.

k(x, y) = sum_N a_N <x, y>^N with a_N >= 0, and <x, y> = E (w.x)(w.y) for independent signs w: a
column of degree N is a product of N such numbers, and N is random too.
"""

__all__ = ["maclaurin_features", "maclaurin_variance"]


def maclaurin_features(X, signs, degrees, weights):
    """Evaluate weights_j prod_(i <= N_j) (w_ij . x) for each column j.

    Its product with itself has the mean k(x, y) / F for N_j of probabilities P(N) and
    weights_j = sqrt(a_N / (P(N) F)).

    Parameters
    ----------
    X : rows of d numbers
    signs : rows of d signs
        Those of the first column, then those of the second, and so on.
    degrees : list of F int
        N_j >= 0, how many signs a column has.
    weights : list of F numbers

    Returns
    -------
    list of rows of F numbers

    References
    ----------
    Kar, Karnick, Random Feature Maps for Dot Product Kernels, 2012, Algorithm 1.

    Examples
    --------
    >>> maclaurin_features([[1.0, 2.0]], [[1, 1], [1, -1], [1, 1]], [0, 1, 2], [1.0, 1.0, 0.5])
    [[1.0, 3.0, -1.5]]
    """
    Z = []
    for x in X:
        row, first = [], 0
        for degree, weight in zip(degrees, weights, strict=True):
            value = weight
            for w in signs[first : first + degree]:
                value *= sum(a * b for a, b in zip(w, x, strict=True))
            row.append(value)
            first += degree
        Z.append(row)
    return Z


def maclaurin_variance(x, y, coefficients, probabilities, n_components):
    """Variance of z(x).z(y) over degrees and signs.

    E (w.x)^2 (w.y)^2 = |x|^2 |y|^2 + 2 <x, y>^2 - 2 sum_j x_j^2 y_j^2 =: m, so a column times F has
    the second moment sum_N a_N^2 m^N / P(N), and the mean k = sum_N a_N <x, y>^N.

    Parameters
    ----------
    x, y : lists of d numbers
    coefficients : list of numbers
        a_N.
    probabilities : list of numbers
        P(N), > 0 where a_N is.
    n_components : int
        F >= 1.

    Returns
    -------
    float

    Examples
    --------
    >>> maclaurin_variance([1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [0.0, 1.0], 2)  # 8 - 4, over two
    2.0
    """
    dot = sum(a * b for a, b in zip(x, y, strict=True))
    squares = sum(a * a for a in x) * sum(b * b for b in y)
    m = squares + 2 * dot**2 - 2 * sum((a * b) ** 2 for a, b in zip(x, y, strict=True))
    mean = second = 0.0
    for N, (a, p) in enumerate(zip(coefficients, probabilities, strict=True)):
        if a:
            mean += a * dot**N
            second += a**2 * m**N / p
    return (second - mean**2) / n_components
