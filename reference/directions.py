"""Point sets on the sphere, each as a map from given draws.

The draws are arguments, so that this module and the compiled package use the same numbers.
"""

from math import cos, hypot, pi, sin, sqrt
from statistics import NormalDist

__all__ = [
    "fibonacci_directions",
    "iid_directions",
    "orthogonal_directions",
    "sobol_directions",
]


def iid_directions(normals):
    """Turn rows of standard normals into independent uniform directions.

    w = g / ||g||.
    Han, Zandieh, Avron, Definition 8: w_1, ..., w_m uniform on S^(d-1).

    Parameters
    ----------
    normals : m rows of d numbers

    Returns
    -------
    list of m unit rows

    Examples
    --------
    >>> iid_directions([[3.0, 4.0]])
    [[0.6, 0.8]]
    """
    return [[float(g) / hypot(*row) for g in row] for row in normals]


def orthogonal_directions(normals):
    """Turn rows of standard normals into directions that are orthonormal in blocks of d.

    Gram and Schmidt's process on every d rows: w_i is g_i less its parts along w_1..w_(i-1),
    normalised. Dividing by a positive length is what makes each block uniform (Haar); the Q of
    numpy.linalg.qr is not, until its columns are multiplied by the signs of the diagonal of R.

    Parameters
    ----------
    normals : m rows of d numbers
        The last block may be short.

    Returns
    -------
    list of m unit rows

    Examples
    --------
    >>> orthogonal_directions([[2.0, 0.0], [5.0, -1.0], [0.0, 3.0]])
    [[1.0, 0.0], [0.0, -1.0], [0.0, 1.0]]
    """
    directions = []
    for index, row in enumerate(normals):
        w = [float(g) for g in row]
        block = index // len(w) * len(w)
        for other in directions[block:]:
            along = sum(a * b for a, b in zip(w, other, strict=True))
            w = [a - along * b for a, b in zip(w, other, strict=True)]
        directions.append([a / hypot(*w) for a in w])
    return directions


def sobol_directions(uniforms):
    """Turn points of the unit cube into directions: through the normal quantiles.

    w = g / ||g|| with g_j the normal quantile of u_j. For scrambled Sobol points the directions
    are spread more evenly than independent ones, and each is still uniform.

    Parameters
    ----------
    uniforms : m rows of d numbers
        Strictly between 0 and 1.

    Returns
    -------
    list of m unit rows

    Examples
    --------
    >>> sobol_directions([[0.5, 0.9], [0.2, 0.5]])
    [[0.0, 1.0], [-1.0, 0.0]]
    """
    quantile = NormalDist().inv_cdf
    return iid_directions([[quantile(float(u)) for u in row] for row in uniforms])


def fibonacci_directions(n_directions):
    """Spread directions evenly over the sphere in R^3, along Fibonacci's spiral.

    w_k = (rho cos(k g), rho sin(k g), z), z = 1 - (2k+1)/m, rho = sqrt(1-z^2), with the golden
    angle g = pi (3 - sqrt(5)), for k = 0..m-1.

    Parameters
    ----------
    n_directions : int
        m.

    Returns
    -------
    list of m unit rows of 3 floats

    Examples
    --------
    >>> fibonacci_directions(1)
    [[1.0, 0.0, 0.0]]
    """
    golden_angle = pi * (3 - sqrt(5))
    directions = []
    for k in range(n_directions):
        z = 1 - (2 * k + 1) / n_directions
        rho = sqrt(1 - z * z)
        directions.append([rho * cos(k * golden_angle), rho * sin(k * golden_angle), z])
    return directions
