"""Adaptive sketch: monomials of the data, drawn by their ridge leverage.

A kernel k(x, y) = sum_N a_N <x, y>^N has the features sqrt(a_N) x_i1 x_i2 ... x_iN, one for each
choice of N columns: the coordinates of x (x) ... (x) x. Some of them are enough. The idea is due to
Woodruff and Zandieh. This module has the steps of gzkcore: how columns are drawn one after another,
and which weight a product gets that is drawn only once.
"""

from itertools import product
from math import exp, prod, sqrt

import numpy as np

__all__ = [
    "choose_first",
    "draw_by_modes",
    "draw_by_rows",
    "monomial_features",
    "monomial_leverage",
]


def monomial_features(X, columns, weights):
    """Evaluate weights_j prod_i x_(columns_ji) for each row x and monomial j.

    Parameters
    ----------
    X : n rows of d numbers
    columns : F lists of numbers of columns
        Those < 0 are no factor.
    weights : list of F numbers

    Returns
    -------
    n lists of F numbers

    Examples
    --------
    >>> monomial_features([[2.0, 3.0]], [[], [0, 1], [1, 1]], [1.0, 1.0, 0.5])
    [[1.0, 6.0, 4.5]]
    """
    return [
        [
            w * prod(x[i] for i in chosen if i >= 0)
            for chosen, w in zip(columns, weights, strict=True)
        ]
        for x in X
    ]


def monomial_leverage(X, coefficients, lam):
    """Ridge leverage f^T (K + lambda I)^-1 f of every monomial, f its values at the rows.

    Products that differ in their order alone are one monomial, whose leverage is their sum.

    Parameters
    ----------
    X : n rows of d numbers
    coefficients : list of numbers >= 0
        a_0, a_1, ...
    lam : float
        lambda > 0.

    Returns
    -------
    dict from tuples of columns, rising, to their leverage
        Together they make the statistical dimension tr K (K + lambda I)^-1.

    References
    ----------
    Woodruff, Zandieh, Near Input Sparsity Time Kernel Embeddings via Adaptive Sampling, 2020.

    Examples
    --------
    >>> monomial_leverage([[1.0, 1.0]], [0.0, 0.0, 1.0], 4.0)  # (x0^2 + 2 x0 x1 + x1^2)^2 = 4
    {(0, 0): 0.125, (0, 1): 0.25, (1, 1): 0.125}
    """
    M = _whitened(X, coefficients, lam)
    leverage = {}
    for N, a in enumerate(coefficients):
        for chosen in product(range(len(X[0])), repeat=N):
            f = np.array([sqrt(a) * prod(x[i] for i in chosen) for x in X])
            key = tuple(sorted(chosen))
            leverage[key] = leverage.get(key, 0.0) + float(f @ M @ f)
    return {key: value for key, value in leverage.items() if value > 0}


def draw_by_modes(X, coefficients, lam, uniforms):
    """Draw a monomial in proportion to its leverage, one column after the other.

    All products that begin with u = x_i1 ... x_ij, r columns to come, have together the leverage
    a_N sum_kl u_k u_l M_kl <x_k, x_l>^r with M = (K + lambda I)^-1: d numbers decide the next
    column, not d^r.

    Parameters
    ----------
    X : n rows of d numbers
    coefficients : list of numbers >= 0
    lam : float
    uniforms : iterator of float
        One for the degree, then one for each column.

    Returns
    -------
    list of columns, in the order in which they are drawn

    Examples
    --------
    >>> draw_by_modes([[1.0, 3.0]], [0.0, 0.0, 1.0], 4.0, iter([0.5, 0.05, 0.2]))  # 1 against 9
    [0, 1]
    """
    M, d = _whitened(X, coefficients, lam), len(X[0])
    G = np.array([[_dot(x, y) for y in X] for x in X])
    N = _pick([a * float(np.sum(M * G**N)) for N, a in enumerate(coefficients)], next(uniforms))
    u, drawn = np.ones(len(X)), []
    for j in range(N):
        form = M * G ** (N - j - 1)
        ahead = [u * np.array([x[i] for x in X]) for i in range(d)]
        i = _pick([max(float(v @ form @ v), 0.0) for v in ahead], next(uniforms))
        u, drawn = ahead[i], [*drawn, i]
    return drawn


def draw_by_rows(X, coefficients, lam, uniforms):
    """Draw a monomial in proportion to its leverage: by its size first, then by chance.

    By size means by |f|^2, a mixture over rows of independent columns. Leverage is at most
    |f|^2 / lambda, and that share of it is the chance to be accepted.

    Parameters
    ----------
    X : n rows of d numbers
    coefficients : list of numbers >= 0
    lam : float
    uniforms : iterator of float
        For each attempt one for the row, one for the degree, one for each column and one for
        whether it is accepted.

    Returns
    -------
    list of columns, in the order in which they are drawn

    Examples
    --------
    >>> draw_by_rows([[1.0, 3.0]], [0.0, 0.0, 1.0], 4.0, iter([0.5, 0.5, 0.05, 0.2, 0.01]))
    [0, 1]
    """
    M = _whitened(X, coefficients, lam)
    while True:
        sizes = [[a * _dot(x, x) ** N for N, a in enumerate(coefficients)] for x in X]
        k = _pick([sum(row) for row in sizes], next(uniforms))
        N = _pick(sizes[k], next(uniforms))
        drawn = [_pick([t * t for t in X[k]], next(uniforms)) for _ in range(N)]
        f = np.array([prod(x[i] for i in drawn) for x in X])
        if next(uniforms) * float(f @ f) < lam * float(f @ M @ f):
            return drawn


def choose_first(probabilities, waits, count):
    """Choose what is drawn first, and weigh each by how likely it was to be among them.

    Draws at random times, one a second on average, bring i for the first time after
    waits_i / p_i seconds, waits_i exponential. The first `count` are kept. Given the others, i is
    among them if it comes before T, when the next one comes: with probability 1 - exp(-p_i T).

    Parameters
    ----------
    probabilities : list of numbers > 0
        p_i, of one draw.
    waits : list of numbers > 0
    count : int

    Returns
    -------
    dict from i to the weight 1 / (1 - exp(-p_i T))
        The weighted sum over those chosen has the mean of the sum over all. Weights are 1 if there
        are no more than `count`.

    References
    ----------
    Cohen, Kaplan, Summarizing Data using Bottom-k Sketches, 2007.

    Examples
    --------
    >>> chosen = choose_first([0.5, 0.25, 0.25], [1.0, 1.0, 2.0], 2)  # after 2, 4 and 8 seconds
    >>> [(i, round(weight, 3)) for i, weight in chosen.items()]
    [(0, 1.019), (1, 1.157)]
    """
    first = [wait / p for p, wait in zip(probabilities, waits, strict=True)]
    order = sorted(range(len(first)), key=first.__getitem__)
    if len(order) <= count:
        return dict.fromkeys(order, 1.0)
    T = first[order[count]]
    return {i: 1 / (1 - exp(-probabilities[i] * T)) for i in order[:count]}


def _whitened(X, coefficients, lam):
    K = [[sum(a * _dot(x, y) ** N for N, a in enumerate(coefficients)) for y in X] for x in X]
    return np.linalg.inv(np.array(K) + lam * np.eye(len(X)))


def _dot(x, y):
    return sum(s * t for s, t in zip(x, y, strict=True))


def _pick(weights, uniform):
    """Number of what a uniform number falls to, each being as wide as its weight."""
    total = np.cumsum(weights)
    return int(np.searchsorted(total, uniform * total[-1], side="right"))
