"""Random Fourier features: a shift-invariant kernel is the mean of a cosine over frequencies.

k(x - y) = E cos(w.(x - y)) for w drawn from the kernel's spectrum (Bochner), and
cos(w.(x - y)) = cos(w.x) cos(w.y) + sin(w.x) sin(w.y). So each frequency gives two columns.
"""

from math import cos, exp, gamma, hypot, pi, sin, sqrt

__all__ = [
    "fourier_features",
    "fourier_variance",
    "modified_weight",
    "orthogonal_frequencies",
]


def fourier_features(X, W, n_components, phase=0.0):
    """Evaluate sqrt(2/F) [cos(w_j.x), sin(w_j.x)] for F columns.

    All cosines come first, then all sines. An odd F ends with sqrt(2/F) cos(w.x + phase), whose
    product with itself has the mean k / F for a phase uniform in [0, 2 pi).

    For an even F it is the second phi of "A Simple and Efficient Method for Random Fourier
    Features", and <z(x), z(y)> the mean of Eq 4, whose expectation is Eq 3.

    Parameters
    ----------
    X : rows of d numbers
    W : at least ceil(F / 2) rows of d numbers
        Frequencies.
    n_components : int
        F >= 1.
    phase : float

    Returns
    -------
    list of rows of F numbers

    References
    ----------
    Rahimi, Recht, Random Features for Large-Scale Kernel Machines, 2007.

    Examples
    --------
    >>> fourier_features([[0.0]], [[1.0], [5.0]], 4)  # a row has the norm 1
    [[0.7071067811865476, 0.7071067811865476, 0.0, 0.0]]
    """
    pairs, size = n_components // 2, sqrt(2 / n_components)
    Z = []
    for x in X:
        angles = [sum(a * b for a, b in zip(x, w, strict=True)) for w in W]
        row = [cos(angle) for angle in angles[:pairs]] + [sin(angle) for angle in angles[:pairs]]
        if n_components % 2:
            row.append(cos(angles[pairs] + phase))
        Z.append([size * value for value in row])
    return Z


def fourier_variance(k, k_double, n_components):
    """Variance of z(x).z(y) over independent frequencies, and over the phase.

    A pair of columns has the variance 1/2 + k(2D)/2 - k(D)^2 of a cosine, D = x - y (Eq 11 of "A
    Simple and Efficient Method for Random Fourier Features"); an odd column,
    cos(w.D) + cos(w.(x + y) + 2 phase), 1/2 more.

    Parameters
    ----------
    k, k_double : float
        The kernel at D and at 2 D.
    n_components : int

    Returns
    -------
    float

    Examples
    --------
    >>> fourier_variance(1.0, 1.0, 100)  # a point with itself: no variance
    0.0
    """
    pair = 0.5 + k_double / 2 - k**2
    return (4 * (n_components // 2) * pair + (n_components % 2) * (pair + 0.5)) / n_components**2


def orthogonal_frequencies(normals, lengths):
    """Turn blocks of d normal rows into orthonormal rows times lengths.

    Within a block the frequencies are orthogonal, and each is normal for itself where its length is
    that of another normal vector: chi-distributed with d degrees.

    Parameters
    ----------
    normals : matrices of d rows of d numbers
    lengths : list of m numbers
        The last block's surplus rows are dropped.

    Returns
    -------
    list of m rows of d numbers

    References
    ----------
    Yu, Suresh, Choromanski, Holtmann-Rice, Kumar, Orthogonal Random Features, 2016.

    Examples
    --------
    >>> orthogonal_frequencies([[[2.0, 0.0], [1.0, 1.0]]], [1.0, 3.0])
    [[1.0, 0.0], [0.0, 3.0]]
    """
    rows = []
    for block in normals:
        done = []
        for row in block:  # Gram and Schmidt
            rest = row
            for other in done:
                share = sum(a * b for a, b in zip(rest, other, strict=True))
                rest = [a - share * b for a, b in zip(rest, other, strict=True)]
            done.append([a / hypot(*rest) for a in rest])
        rows += done
    return [[length * a for a in row] for row, length in zip(rows, lengths, strict=False)]


def modified_weight(w, radius, outside):
    """Weigh a frequency drawn evenly from a ball instead of from the normal density p.

    With q(w) = (1 - outside) / volume in the ball and q = p beyond it, E_q[p/q cos(w.D)] = k(D).
    Each column is multiplied by sqrt(p(w) / q(w)).

    Parameters
    ----------
    w : list of d numbers
    radius : float
        Of the ball.
    outside : float
        What p has beyond it, P(|w| > radius).

    Returns
    -------
    float
        sqrt(p / q).

    References
    ----------
    Avron, Kapralov, Musco, Musco, Velingker, Zandieh, Random Fourier Features for Kernel Ridge
    Regression: Approximation Bounds and Statistical Guarantees, 2017.

    Examples
    --------
    >>> round(modified_weight([0.0], 4.0, 0.0) ** 2, 6)  # 8 / sqrt(2 pi)
    3.191538
    """
    dim, norm = len(w), hypot(*w)
    if norm > radius:
        return 1.0
    density = exp(-(norm**2) / 2) / (2 * pi) ** (dim / 2)
    volume = pi ** (dim / 2) / gamma(dim / 2 + 1) * radius**dim
    return sqrt(density * volume / (1 - outside))
