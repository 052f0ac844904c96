"""Where a value is not finite: the same words for every kind of rows."""

import re

import numpy as np
import pytest
from scipy import sparse

from gzkcore._util.validation import LOOKED_AT, first_not_finite, is_finite, raise_not_finite

N = 2 * LOOKED_AT + 5
AS_ONE = [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csr_matrix]


@pytest.mark.parametrize("kind", AS_ONE, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("row", [0, LOOKED_AT, N - 1])
def test_the_first_of_several(kind, row):
    values = np.zeros((N, 3))
    assert first_not_finite(kind(values)) is None
    values[row, 2], values[-1, 2] = -np.inf, np.nan
    values[row, 1] = np.inf
    assert first_not_finite(kind(values)) == (row, 1)
    said = "Input X contains infinity or a value too large for dtype('float64'). The first is in "
    with pytest.raises(
        ValueError, match=re.escape(f"{said}row {row}, column 1, both counted from 0;")
    ):
        raise_not_finite(kind(values))


def test_targets_have_no_column():
    y = np.array([1.0, np.nan, np.inf], dtype=np.float32)
    wanted = "Input y contains NaN. The first is in row 1, counted from 0; leave it out"
    with pytest.raises(ValueError, match=f"^{re.escape(wanted)}$"):
        raise_not_finite(y, "y", "leave it out")


def test_finite_values_whose_sum_is_not():
    large = np.full((2, 2), 1e308)
    assert is_finite(large)
    raise_not_finite(large)
    raise_not_finite(np.array([[1, 2]]))


def test_wide_sparse_rows_are_looked_at_where_they_have_values():
    wide = sparse.random_array(
        (60, 10**9), density=1e-9, format="csr", random_state=np.random.default_rng(0)
    )
    wide.data[7] = np.nan
    row = np.searchsorted(wide.indptr, 7, side="right") - 1
    with pytest.raises(ValueError, match=f"contains NaN. The first is in row {row}, column"):
        raise_not_finite(wide)
