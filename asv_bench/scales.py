"""One lengthscale per column, by the exact marginal likelihood of some rows.

theta = (log l_1, ..., log l_d, log lambda); M = K + lambda I for the kernel with these lengths,
a = M^-1 y and tau = y^T a / m. The criterion is

    N = m / 2 log tau + 1 / 2 log |M| + priors,

with log l_j normal about log sqrt(d), sd 1.5, and log lambda about log .02, sd 3. With x the
scaled rows, H = -k'(r) / r, Q = (a a^T / tau - M^-1) o H and q = Q 1 the gradient is

    dN / d log l_j     = -(q^T x_j^2 - x_j^T Q x_j),
    dN / d log lambda  = lambda / 2 (tr M^-1 - a^T a / tau).
"""

import math

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform

ROWS = 1000


def matern_32(r):
    """Return k(r) and -k'(r) / r."""
    decay = np.exp(-math.sqrt(3) * r)
    return (1 + math.sqrt(3) * r) * decay, 3 * decay


def criterion(theta, X, y):
    """Return N and its gradient."""
    m, d = X.shape
    lengths, noise = np.exp(theta[:-1]), np.exp(theta[-1])
    x = X / lengths
    K, H = matern_32(squareform(pdist(x)))
    factor, failed = lapack.dpotrf(K + noise * np.eye(m), lower=1)
    if failed:
        return 1e25, np.zeros(d + 1)
    inverse = lapack.dpotri(factor, lower=1)[0]
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    a = inverse @ y
    tau = float(y @ a) / m
    Q = (np.outer(a, a) / tau - inverse) * H
    gradient = np.empty(d + 1)
    gradient[:-1] = -(Q.sum(axis=1) @ x**2 - np.einsum("ij,ij->j", x, Q @ x))
    gradient[-1] = noise / 2 * (np.trace(inverse) - a @ a / tau)
    mean = np.append(np.full(d, math.log(math.sqrt(d))), math.log(0.02))
    spread = np.append(np.full(d, 1.5), 3.0)
    value = m / 2 * math.log(tau) + np.log(np.diag(factor)).sum()
    value += 0.5 * np.sum(((theta - mean) / spread) ** 2)
    return value, gradient + (theta - mean) / spread**2


def learn_lengths(X, y, rng, rows=ROWS):
    """Return one length per column, and the noise."""
    chosen = rng.permutation(len(y))[:rows]
    d = X.shape[1]
    start = np.append(np.full(d, math.log(math.sqrt(d))), math.log(0.05))
    bounds = [(-4, 8)] * d + [(math.log(1e-6), math.log(10))]
    found = minimize(
        criterion, start, (X[chosen], y[chosen]), "L-BFGS-B", jac=True, bounds=bounds,
        options={"maxiter": 60, "ftol": 1e-6, "gtol": 1e-3 * rows**0.5},
    )  # fmt: skip
    return np.exp(found.x[:-1]), math.exp(found.x[-1])
