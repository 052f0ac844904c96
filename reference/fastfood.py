"""Fastfood: frequencies for random Fourier features by two Walsh-Hadamard transforms.

V = L H G P H B / (sqrt(n) |G|): B random signs, P a permutation, G independent normal numbers, L
lengths. Given B and P, a row of H G P H B is a normal vector of length sqrt(n) |G|, since H B /
sqrt(n) is a rotation. Divided by its length and multiplied by the length of another normal vector,
it is a normal vector again. Rows of one block are weakly dependent. If G consists of signs, which
have the same length, the rows are orthogonal, and each is nearly normal.
"""

from math import hypot, sqrt

from .hadamard import hadamard_matrix

__all__ = ["fastfood_frequencies"]


def fastfood_frequencies(signs, permutation, normals, lengths):
    """Multiply out one block of frequencies, V = L H G P H B / (sqrt(n) |G|).

    Parameters
    ----------
    signs : list of n numbers
        The diagonal of B; n is a power of two.
    permutation : list of n indices
        (P t)[i] = t[permutation[i]].
    normals : list of n numbers
        The diagonal of G: normal numbers, or for orthogonal rows such of absolute value 1.
    lengths : list of n numbers
        The diagonal of L: chi-distributed with n degrees for normal rows.

    Returns
    -------
    list of n rows of n numbers
        Row i has the length lengths[i].

    References
    ----------
    Le, Sarlos, Smola, Fastfood: Approximating Kernel Expansions in Loglinear Time, 2013.

    Examples
    --------
    >>> fastfood_frequencies([1, -1], [1, 0], [0.0, 2.0], [1.0, 3.0])
    [[0.7071067811865475, -0.7071067811865475], [-2.1213203435596424, 2.1213203435596424]]
    """
    n = len(signs)
    H = hadamard_matrix(n)
    size = sqrt(n) * hypot(*normals)
    mixed = [[H[i][j] * signs[j] for j in range(n)] for i in permutation]  # P H B
    return [
        [
            lengths[i] / size * sum(H[i][k] * normals[k] * mixed[k][j] for k in range(n))
            for j in range(n)
        ]
        for i in range(n)
    ]
