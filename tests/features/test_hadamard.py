"""The Walsh-Hadamard transform: its matrix, every length, and what is refused."""

import numpy as np
import pytest
from scipy.linalg import hadamard
from tolerances import TWINS

from gzkcore import hadamard_transform, reference
from gzkcore._util.threads import limit_threads

LENGTHS = [2**p for p in range(14)]
every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def integers(*shape, seed=0):
    """Return small integers, for which every sum below 2^24 is exact in either type."""
    return np.random.default_rng(seed).integers(-99, 100, shape)


@pytest.mark.parametrize("n", [1, 2, 4, 64])
def test_the_matrix_of_signs(n):
    np.testing.assert_array_equal(reference.hadamard.hadamard_matrix(n), hadamard(n))
    by_halving = reference.hadamard.hadamard_transform(np.eye(n, dtype=int).tolist())
    np.testing.assert_array_equal(by_halving, hadamard(n))


@every_type
@pytest.mark.parametrize("n", LENGTHS[:12])
def test_against_the_matrix(n, dtype):
    X = integers(5, n)
    value = hadamard_transform(X.astype(dtype))
    assert value.dtype == dtype
    np.testing.assert_array_equal(value, X @ hadamard(n))


@every_type
@pytest.mark.parametrize("p", [13, 16, 17, 18, 20])
def test_long_rows(p, dtype):
    """Chosen entries of the product, since the matrix would not fit; and twice is n times."""
    n = 2**p
    x = integers(n, seed=p) % 8
    value = hadamard_transform(x.astype(dtype))
    index = np.arange(n, dtype=np.uint32)
    for i in [0, 1, 2, 15, 16, n // 2, n // 4 + 3, n - 1, *integers(9) % n]:
        assert value[i] == x @ (1 - 2 * (np.bitwise_count(index & np.uint32(i)) % 2).astype(int))
    np.testing.assert_array_equal(hadamard_transform(value.astype(np.float64)), n * x)


@every_type
@pytest.mark.parametrize("n", [8, 64, 1024])
def test_rotations_keep_lengths(n, dtype):
    X = np.random.default_rng(0).standard_normal((9, n)).astype(dtype)
    Y = hadamard_transform(X) / np.sqrt(n)
    tolerance = TWINS["hadamard.hadamard_transform"](dtype, n)
    np.testing.assert_allclose(Y @ Y.T, X @ X.T, rtol=0, atol=tolerance * n**0.5)


@every_type
def test_shapes_and_layouts(dtype):
    X = integers(6, 5, 32).astype(dtype)
    expected = X @ hadamard(32).astype(dtype)
    for other in (X, np.asfortranarray(X), X[::-1][::-1], X.tolist(), X.astype(int)):
        np.testing.assert_array_equal(hadamard_transform(other), expected)
    np.testing.assert_array_equal(hadamard_transform(X[0, 0]), expected[0, 0])
    assert hadamard_transform(X[:0]).shape == (0, 5, 32)
    unaligned = np.frombuffer(b"." + X.tobytes(), dtype, offset=1).reshape(X.shape)
    np.testing.assert_array_equal(hadamard_transform(unaligned), expected)


def test_threads():
    X = np.random.default_rng(0).standard_normal((301, 2048))
    with limit_threads(1):
        expected = hadamard_transform(X)
    with limit_threads(3):
        np.testing.assert_array_equal(hadamard_transform(X), expected)


def test_out():
    X = integers(3, 8).astype(np.float64)
    out = np.empty((3, 8))
    assert hadamard_transform(X, out=out) is out
    np.testing.assert_array_equal(out, X @ hadamard(8))
    with pytest.raises(ValueError, match="out overlaps X"):
        hadamard_transform(X, out=X)
    with pytest.raises(ValueError, match=r"out has shape \(8, 3\)"):
        hadamard_transform(X, out=np.empty((8, 3)))


@pytest.mark.parametrize(("X", "error", "message"), [
    (np.ones((2, 3)), ValueError, r"X has shape \(2, 3\), .* pad it with zeros to 4"),
    (np.ones((2, 0)), ValueError, "pad it with zeros to 1"),
    (1.0, ValueError, r"X has shape \(\), whose last axis is not a power of two"),
    ([1j, 2], TypeError, "X is complex"),
    (["a", "b"], TypeError, "X is not numeric"),
])  # fmt: skip
def test_bad_input(X, error, message):
    with pytest.raises(error, match=message):
        hadamard_transform(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_place_of_the_result_changes_no_bit(dtype):
    """Long rows are copied first where result and row are near modulo 4,096."""
    n = 1 << 14
    X = np.random.default_rng(0).standard_normal((2, n)).astype(dtype)
    expected = hadamard_transform(X)
    np.testing.assert_allclose(hadamard_transform(expected) / n, X, atol=1e-5)
    room = np.empty(X.nbytes + 8192, np.uint8)
    for distance in (0, 16, 64, 512, 1024, 2048, 4032, 4080):
        first = (X.ctypes.data + distance - room.ctypes.data) % 4096
        out = room[first : first + X.nbytes].view(dtype).reshape(X.shape)
        np.testing.assert_array_equal(hadamard_transform(X, out=out), expected)
