"""Functions of given draws: what they say of rows that are no real numbers."""

import numpy as np
import pytest
from scipy import sparse

from gzkcore import hadamard_transform
from gzkcore.features.adaptive import monomial_features
from gzkcore.features.block import block_fourier_features, block_projection
from gzkcore.features.fourier import fourier_features
from gzkcore.features.gegenbauer import features_in_halves, gegenbauer_features
from gzkcore.features.maclaurin import maclaurin_features
from gzkcore.features.polysketch import poly_sketch
from gzkcore.features.product import product_features
from gzkcore.features.projection import fast_jl_projection, hadamard_projection
from gzkcore.features.sketch import count_sketch, tensor_sketch
from gzkcore.sphere.harmonics import spherical_harmonics

NONE = np.zeros((1, 2, 16), dtype=int)
FUNCTIONS = {
    "block_fourier_features": lambda X: block_fourier_features(X, [[0, 0]], [[1, 1]], 2),
    "block_projection": lambda X: block_projection(X, [[0, 0]], [[1, 1]], 1),
    "count_sketch": lambda X: count_sketch(X, [[0, 0]], [[1, 1]], 1),
    "fast_jl_projection": lambda X: fast_jl_projection(X, [1, 1], [[1.0, 1.0]]),
    "features_in_halves": lambda X: features_in_halves(X, [[0.6, 0.8]], [[1.0, 2.0]]),
    "fourier_features": lambda X: fourier_features(X, [[1.0, 2.0]], 2),
    "gegenbauer_features": lambda X: gegenbauer_features(X, [[0.6, 0.8]], [[1.0, 2.0]]),
    "hadamard_projection": lambda X: hadamard_projection(X, [[1, 1]], [0]),
    "hadamard_transform": hadamard_transform,
    "maclaurin_features": lambda X: maclaurin_features(X, [[1, 1]], [1], [1.0]),
    "monomial_features": lambda X: monomial_features(X, [[0, 1]], [1.0]),
    "poly_sketch": lambda X: poly_sketch(X, 1, [[[0, 0]]], [[[1, 1]]], NONE, NONE, 1),
    "product_features": lambda X: product_features([X, X], [[0, 1]]),
    "spherical_harmonics": lambda X: spherical_harmonics(X, 1),
    "tensor_sketch": lambda X: tensor_sketch(X, [[0, 0]], [[1, 1]], 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("X", "message"), [
    ([[1.0 + 1j, 0.0]], r"(X|parts\[0\]) is complex; pass real numbers"),
    ([["a", "b"]], r"(X|parts\[0\]) is not numeric .*; pass numbers"),
    ([[1.0, 2.0], [1.0]], r"(X|parts\[0\]) is not numeric .*; pass numbers"),
    (sparse.csr_array([[1.0, 0.0]]), r"(X|parts\[0\]) is sparse, .*; pass a dense array"),
], ids=["complex", "text", "ragged", "sparse"])  # fmt: skip
def test_rows_that_are_no_real_numbers_are_told(name, X, message):
    assert np.isfinite(FUNCTIONS[name]([[1.0, 0.0]])).all()
    with pytest.raises(TypeError, match=message):
        FUNCTIONS[name](X)
