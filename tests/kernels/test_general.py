"""Generalized zonal kernels: their matrices, and what is refused."""

import numpy as np
import pytest
from naming import named
from points import gaussian
from tolerances import TWINS

from gzkcore._util.threads import limit_threads
from gzkcore.kernels import GeneralizedZonal
from gzkcore.sphere.special import gegenbauer

X3 = gaussian(5, 3)


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (GeneralizedZonal(3), TypeError, r"radial=3 is not callable"),
        (GeneralizedZonal(lambda t: t), ValueError, r"shape \(1, q \+ 1, s\); got shape \(1,\)"),
        (
            GeneralizedZonal(lambda t: np.ones((t.size, 3, 1))),
            ValueError,
            r"h_1\(0\) = 1: for l >= 1 it must be 0",
        ),
        (GeneralizedZonal(lambda t: np.full((t.size, 1), np.nan)), ValueError, r"not finite"),
    ],
    ids=named,
)
def test_bad_parameters(kernel, error, message):
    with pytest.raises(error, match=message):
        kernel.resolve(X3)


@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_matrices_wider_than_a_strip(dim):
    """The sum over degrees of products of matrices, each times a polynomial of the cosines."""
    levels = np.arange(2 if dim == 1 else 10)
    kernel = GeneralizedZonal(
        lambda t: np.stack([t[:, None] ** levels, t[:, None] ** levels / (1 + levels)], axis=2)
    )
    X, Y = gaussian(70, dim, seed=1), gaussian(131, dim, seed=2)
    with limit_threads(1):
        found = kernel(X, Y)
    h, g = (kernel.radial_values(np.linalg.norm(each, axis=1)) for each in (X, Y))
    cosines = (X @ Y.T) / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Y, axis=1))
    expected = sum(
        (h[:, level] @ g[:, level].T) * gegenbauer(level, dim, np.clip(cosines, -1, 1))
        for level in levels.tolist()
    )
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=TWINS["special.mu"]() * scale)
    with limit_threads(2):
        assert np.array_equal(kernel(X, Y), found)
