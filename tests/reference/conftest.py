"""A quadrature on the sphere, exact for polynomials: expectations without noise."""

import numpy as np
import pytest
from scipy.special import roots_jacobi


def quadrature(dim, degree):
    """Return unit nodes and weights (of sum 1), exact for polynomials up to a degree.

    Gauss' rule in the last coordinate times the rule of the sphere one dimension below; equispaced
    points on the circle, and both points of S^0.
    """
    if dim == 1:
        return np.array([[-1.0], [1.0]]), np.array([0.5, 0.5])
    if dim == 2:
        angles = 2 * np.pi * (np.arange(degree + 1) + 0.3) / (degree + 1)
        nodes = np.column_stack([np.cos(angles), np.sin(angles)])
        return nodes, np.full(degree + 1, 1 / (degree + 1))
    heights, shares = roots_jacobi(degree // 2 + 1, (dim - 3) / 2, (dim - 3) / 2)
    below, weights = quadrature(dim - 1, degree)
    nodes = [np.append(np.sqrt(1 - t * t) * u, t) for t in heights for u in below]
    return np.array(nodes), np.outer(shares / shares.sum(), weights).ravel()


@pytest.fixture(scope="session")
def sphere_quadrature():
    return quadrature
