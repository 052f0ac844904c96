"""Kernels look at the shapes of their arrays before they go by them."""

import numpy as np
import pytest

from gzkcore._compiled import losses, nystrom, series
from gzkcore.kernels import GeneralizedZonal

N, K = 5, 3
ROW, MATRIX = np.ones(N), np.ones((N, K))
SQUARE, KEPT = np.eye(N), np.zeros(N, np.intp)

# {name: (kernel, arguments)}
CALLS = {
    "poisson": (losses.poisson, [ROW, ROW, ROW, ROW, ROW, 1]),
    "logistic": (losses.logistic, [ROW, ROW, ROW, ROW, ROW, 1]),
    "huber": (losses.huber, [ROW, ROW, 1.0, ROW, ROW, ROW, 1]),
    "pinball": (losses.smoothed_pinball, [ROW, ROW, ROW, 0.5, 0.1, 0.1, ROW, ROW, ROW, 1]),
    "softmax": (losses.softmax, [MATRIX, MATRIX, ROW, MATRIX, MATRIX, 1]),
    "pivots": (nystrom.accept_pivots, [SQUARE, ROW, 0.0, KEPT]),
    "distances": (nystrom.accept_distances, [SQUARE, ROW, ROW, 0.0, KEPT]),
    "radial": (series.radial_table, [np.ones((2, 3)), ROW, ROW, np.ones((N, 2, 3)), 1]),
    "zonal": (
        series.generalized_zonal,
        [np.ones((N, 2, 3)), np.ones((2, 3, K)), MATRIX, 3, MATRIX, 1],
    ),
}  # fmt: skip


def smaller(array):
    """Yield an array without its last entries, along each axis in turn."""
    for axis in range(array.ndim):
        yield np.ascontiguousarray(np.delete(array, -1, axis))


@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_other_shapes_are_refused(name):
    kernel, arguments = CALLS[name]
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    kernel(*copies)
    for place, given in enumerate(copies):
        for array in smaller(given) if isinstance(given, np.ndarray) else []:
            with pytest.raises(ValueError, match="do not agree; fit the model again"):
                kernel(*copies[:place], array, *copies[place + 1 :])


def test_only_some_arrays_may_be_none():
    losses.poisson(ROW, ROW, None, None, None, 1)
    with pytest.raises(TypeError, match="'y' must not be None"):
        losses.poisson(None, ROW, None, None, None, 1)


def test_a_series_without_coefficients_is_refused():
    with pytest.raises(ValueError, match="coefficients, t and out do not agree"):
        series.zonal_sum(np.empty(0), 3, ROW, ROW.copy(), 1)


def test_radial_functions_of_a_number_that_changes_are_refused():
    """The kernel read beyond the fewer ones."""
    kernel = GeneralizedZonal(lambda t: np.outer(t, np.ones(9 if t.size == N else 2)) ** 0)
    with pytest.raises(ValueError, match="must be the same for all norms"):
        kernel.by_formula(np.ones((N, 2)), np.ones((3, 2)))
