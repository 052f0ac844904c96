"""The lengthscales of a kernel by the marginal likelihood of some rows, directly from its formula.

Each target y_q is a Gaussian process of covariance tau_q M with M = K + noise diag(1 / weights),
where K has the kernel f(r) with r^2 = sum_c (x_c - y_c)^2 / lengths[c]^2, and 0 for rows of
different blocks. For given lengths and noise the best
tau_q is y_q^T M^-1 y_q / m. With this, minus the logarithm of the likelihood is, up to a constant,

    sum_q m / 2 log tau_q + T / 2 log det M        (m rows, T targets),

and log lengths and log noise have normal priors. Columns have standard deviation 1.
"""

import math

import numpy as np

__all__ = ["average_gradient_outer_product", "learned_criterion", "learned_gradient"]

LENGTH_SPREAD = 1.5  # log lengths[c] is normal about log sqrt(dim), with this standard deviation
NOISE_MIDDLE, NOISE_SPREAD = 0.02, 3.0  # log noise is normal about log 0.02

STEP = 1e-5  # of differences


def average_gradient_outer_product(model, X):
    """Return the mean over points of sum_q grad f_q grad f_q^T, by differences.

    Parameters
    ----------
    model : callable
        From points to a number each, f, or to a list of numbers each, f_1, f_2, ...
    X : sequence of points

    Returns
    -------
    list of dim rows

    Examples
    --------
    >>> M = average_gradient_outer_product(lambda X: [3 * x - 4 * y for x, y in X], [[0.0, 1.0]])
    >>> [[round(entry) for entry in row] for row in M]
    [[9, -12], [-12, 16]]
    """
    dim = len(X[0])
    total = [[0.0] * dim for _ in range(dim)]
    for x in X:
        slopes = []
        for c in range(dim):
            high, low = ([u + step * (i == c) for i, u in enumerate(x)] for step in (STEP, -STEP))
            apart = np.ravel(model([high])[0]) - np.ravel(model([low])[0])
            slopes.append(apart / (2 * STEP))
        for i in range(dim):
            for j in range(dim):
                total[i][j] += float(slopes[i] @ slopes[j]) / len(X)
    return total


def learned_criterion(profile, lengths, noise, X, Y, weights=None, blocks=None):
    """Return minus the logarithm of the likelihood and of the priors, but for a constant.

    Parameters
    ----------
    profile : callable
        f; e^(-r^2 / 2) for the Gaussian.
    lengths : sequence of dim numbers
    noise : float
        In units of tau.
    X : sequence of m points
    Y : list of m rows
        The targets are its columns.
    weights : sequence of m numbers > 0, optional
    blocks : sequence of m numbers, optional
        Which block each row is of; rows of different ones are independent.

    Returns
    -------
    float

    Examples
    --------
    One row: M = 2 and tau = 4 / 2; the length is at the middle of its prior, the noise is not.

    >>> value = learned_criterion(lambda r: 1.0, [1.0], 1.0, [[0.0]], [[2.0]])
    >>> math.isclose(value, math.log(2) + (math.log(50) / 3) ** 2 / 2)
    True
    """
    M, dim = _matrix(profile, lengths, noise, X, weights, blocks), len(lengths)
    total = len(Y[0]) / 2 * np.linalg.slogdet(M)[1]
    for y in np.transpose(Y):
        total += len(X) / 2 * math.log(y @ np.linalg.inv(M) @ y / len(X))
    for length in lengths:
        total += (math.log(length / math.sqrt(dim)) / LENGTH_SPREAD) ** 2 / 2
    return float(total + (math.log(noise / NOISE_MIDDLE) / NOISE_SPREAD) ** 2 / 2)


def learned_gradient(profile, slope, lengths, noise, X, Y, weights=None, blocks=None):
    """Differentiate `learned_criterion` by the logarithms of all lengths and of the noise.

    By log theta it is sum_ij (T M^-1 - sum_q a_q a_q^T / tau_q)_ij (dM / dlog theta)_ij / 2 with
    a_q = M^-1 y_q, and

        dM_ij / dlog lengths[c] = -f'(r) / r (x_ic - x_jc)^2 / lengths[c]^2,
        dM_ij / dlog noise = noise / weights[i] if i = j, else 0.

    Parameters
    ----------
    profile, lengths, noise, X, Y, weights, blocks
        As for `learned_criterion`.
    slope : callable
        -f'(r) / r.

    Returns
    -------
    list of dim + 1 floats

    Examples
    --------
    The first example of `learned_criterion`: only the noise's prior and M = 1 + noise have a slope,
    and tau takes back what M gives where there is one row.

    >>> gradient = learned_gradient(lambda r: 1.0, lambda r: 0.0, [1.0], 1.0, [[0.0]], [[2.0]])
    >>> gradient[0], math.isclose(gradient[1], math.log(50) / 9)
    (0.0, True)
    """
    M, dim = _matrix(profile, lengths, noise, X, weights, blocks), len(lengths)
    inverse = np.linalg.inv(M)
    Q = len(Y[0]) * inverse
    for y in np.transpose(Y):
        a = inverse @ y
        Q = Q - np.outer(a, a) / (y @ a / len(X))
    total = [math.log(length / math.sqrt(dim)) / LENGTH_SPREAD**2 for length in lengths]
    for i, x in enumerate(X):
        for j, other in enumerate(X):
            squares = [((u - v) / s) ** 2 for u, v, s in zip(x, other, lengths, strict=True)]
            if i != j and (blocks is None or blocks[i] == blocks[j]):
                steep = slope(math.sqrt(sum(squares)))
                for c in range(dim):
                    total[c] += Q[i, j] * steep * squares[c] / 2
    of_noise = math.log(noise / NOISE_MIDDLE) / NOISE_SPREAD**2
    for i in range(len(X)):
        of_noise += Q[i, i] * (noise if weights is None else noise / weights[i]) / 2
    return [*map(float, total), float(of_noise)]


def _matrix(profile, lengths, noise, X, weights, blocks):
    """M."""
    scaled = np.asarray(X, dtype=float) / lengths
    M = np.array([[profile(math.sqrt(sum((x - y) ** 2))) for y in scaled] for x in scaled])
    for i in range(len(X)):
        for j in range(len(X)):
            if blocks is not None and blocks[i] != blocks[j]:
                M[i, j] = 0.0
        M[i, i] += noise if weights is None else noise / weights[i]
    return M
