"""Point clouds that several tests share."""

import numpy as np


def sphere(n, dim, radius=1.0, seed=0):
    """Return n uniform points on the sphere of a radius."""
    X = np.random.default_rng(seed).standard_normal((n, dim))
    return radius * X / np.linalg.norm(X, axis=1, keepdims=True)


def ball(n, dim, radius=1.0, seed=0):
    """Return n uniform points in the ball of a radius."""
    return shell(n, dim, 0.0, radius, seed)


def shell(n, dim, low, high, seed=0):
    """Return n uniform points with norms between low and high."""
    share = np.random.default_rng([seed, 1]).random((n, 1))
    norms = high * (share + (1 - share) * (low / high) ** dim) ** (1 / dim)
    return np.clip(norms, low, high) * sphere(n, dim, 1.0, seed)


def gaussian(n, dim, scale=1.0, seed=0):
    """Return n standard normal points times a scale."""
    return scale * np.random.default_rng(seed).standard_normal((n, dim))


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape)


def symmetric(values, seed=0):
    """Return a matrix with these eigenvalues."""
    Q = np.linalg.qr(normal(len(values), len(values), seed=seed))[0]
    return Q * values @ Q.T


def with_constant(X, kernel):
    """Rows whose dot products, to the power of the degree, are the kernel."""
    last = np.full((len(X), 1), kernel.coef0**0.5)
    return np.hstack([kernel.gamma**0.5 * X, last])


def waves(n=500, seed=0, noise=0.1):
    """Return rows of which the first two columns matter, the first more, of very unlike sizes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = np.sin(3 * X[:, 0]) + 0.5 * np.cos(X[:, 1]) + noise * rng.standard_normal(n)
    return X * [1e-3, 1.0, 1e4, 1.0], 100 + 7 * y
