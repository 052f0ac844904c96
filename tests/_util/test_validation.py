"""Where a value is not finite: the same words for every kind of rows."""

import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import Bunch

from gzkcore import (
    BlockProjection,
    Gaussian,
    KernelClassifier,
    KernelPoissonRegressor,
    KernelRegressor,
    KernelRidge,
    KernelRidgeCV,
    LatLonToSphere,
    RandomFeatureRidge,
    RandomFourierFeatures,
    TableEncoder,
)
from gzkcore._util.validation import (
    A_ROW,
    FEW_VALUES,
    LOOKED_AT,
    as_floats,
    check_array,
    check_labels,
    check_matrix,
    check_not_negative,
    check_not_negatives,
    check_positive,
    check_sparse,
    extremes,
    first_not_finite,
    is_finite,
    raise_not_finite,
)

N = 2 * LOOKED_AT + 5
AS_ONE = [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csr_matrix]


@pytest.mark.parametrize(
    "number", [10**400, -(10**400), Fraction(10**400, 3)], ids=["large", "small", "fraction"]
)
def test_numbers_beyond_floats(number):
    for check, wanted in ((check_positive, "> 0"), (check_not_negative, ">= 0")):
        with pytest.raises(
            ValueError, match=f"^lam is beyond the largest float, .*; use a finite number {wanted}$"
        ):
            check("lam", number)
    for check in (check_matrix, as_floats, check_not_negatives):
        with pytest.raises(TypeError, match=r"^lam.* is not numeric"):
            check("lam", [[number]])


@pytest.mark.parametrize(
    "values",
    ["0.1", ["1"], np.array(["1", "2"]), b"1", True, [True], [None], None, [0.1, True]],
)
def test_text_and_bools_are_no_numbers(values):
    with pytest.raises(TypeError, match=r"^alphas=.* is not numeric; use numbers >= 0$"):
        check_not_negatives("alphas", values)
    with pytest.raises(TypeError, match=r"^alphas=.* is not numeric; use numbers >= 0$"):
        KernelRidgeCV(alphas=values).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize(
    "values", [1, [1, 2.5], [Fraction(1, 2), 2**64], np.float32(1), np.array([1], dtype=object), []]
)
def test_numbers_of_all_kinds(values):
    found = check_not_negatives("alphas", values)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.asarray(values, dtype=np.float64))


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


@pytest.mark.parametrize("dtype", ["float32", "float64", "longdouble", "complex128"])
@pytest.mark.parametrize("size", [1, A_ROW - 1, A_ROW, A_ROW + 1, FEW_VALUES])
def test_few_values_are_read_like_many(size, dtype):
    values = np.linspace(-3, 2, size).astype(dtype)[None]
    assert is_finite(values)
    assert is_finite(np.full_like(values, np.finfo(dtype).max))
    for bad in (np.nan, np.inf, -np.inf):
        values[0, -1] = bad
        assert not is_finite(values)
        assert not is_finite(sparse.csr_array(values)) or dtype == "longdouble"


@pytest.mark.parametrize("size", [1, 2, A_ROW, A_ROW + 1])
def test_extremes(size):
    values = np.roll(np.arange(size) - 7.0, size // 3)
    assert extremes(values) == (-7.0, size - 8.0)
    assert extremes(values.astype(np.float32)[:, None]) == (-7.0, size - 8.0)
    assert extremes(values[:0], 3.0) == (3.0, 3.0)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_the_full_check_of_sparse_rows_is_for_wrong_ones(index, monkeypatch):
    """It reads the indices twice, which takes half as long as a projection."""
    X = sparse.random_array((40, 30), density=0.2, format="csr", rng=0)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    full, check_format = [], sparse.csr_array.check_format
    monkeypatch.setattr(
        sparse.csr_array,
        "check_format",
        lambda X, full_check=True: full.append(full_check) or check_format(X, full_check),
    )
    check_sparse(X)
    BlockProjection(4, random_state=0).fit(X).transform(X)
    assert full
    assert not any(full)
    for place, wrong in ((3, 30), (0, -1), (-1, np.iinfo(index).min)):
        bad = X.copy()
        bad.indices[place] = wrong
        with pytest.raises(ValueError, match="indices must be"):
            check_sparse(bad)
    bad = X.copy()
    bad.indptr[3] = bad.indptr[2] - 1
    with pytest.raises(ValueError, match="non-decreasing"):
        check_sparse(bad)
    for last in (0, -1):  # SciPy takes it for a matrix without values
        bad = X.copy()
        bad.indptr[-1] = last
        with pytest.raises(ValueError, match="non-decreasing"):
            check_sparse(bad)
    bad.indptr = bad.indptr[:0]
    with pytest.raises(ValueError, match="index pointer size 0"):
        check_sparse(bad)


def test_indices_of_two_types_become_one():
    X = sparse.random_array((40, 30), density=0.2, format="csr", rng=0)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int64)
    check_sparse(X)
    assert X.indices.dtype == X.indptr.dtype


def test_wide_sparse_rows_are_looked_at_where_they_have_values():
    wide = sparse.random_array(
        (60, 10**9), density=1e-9, format="csr", random_state=np.random.default_rng(0)
    )
    wide.data[7] = np.nan
    row = np.searchsorted(wide.indptr, 7, side="right") - 1
    with pytest.raises(ValueError, match=f"contains NaN. The first is in row {row}, column"):
        raise_not_finite(wide)


@pytest.mark.parametrize("kind", [*AS_ONE, np.ndarray.tolist], ids=lambda kind: kind.__name__)
def test_complex_values_are_not_printed(kind):
    values = kind(np.full((50, 3), 1 + 2j))
    wanted = (
        r"X has dtype complex\w*\. Complex data not supported; pass real numbers, such as X.real"
    )
    with pytest.raises(ValueError, match=f"^{wanted} or X.imag$"):
        check_array(values, accept_sparse=True)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([[1, 2], [3], [4, 5]], "row 1 has 1 value and row 0 has 2 values"),
        ([[1], [3, 4], [5, 6]], "row 0 has 1 value and row 1 has 2 values"),
        ([[1, 2], 3], "row 1 is not a list and row 0 has 2 values"),
        ([[1, 2], [3, [4, 5]]], r"has \[4, 5\] in row 1, column 1, both counted from 0; pass one"),
    ],
)
def test_ragged_rows_are_told_by_their_lengths(values, told):
    with pytest.raises(ValueError, match=rf"^rows (has rows of different lengths: )?{told}"):
        check_array(values, input_name="rows")


@pytest.mark.parametrize(
    "rows",
    [[], np.empty((0, 3)), sparse.csr_array((0, 3)), pd.DataFrame(), pd.DataFrame(columns=["a"])],
    ids=["list", "array", "sparse", "frame", "names"],
)
def test_no_rows_are_told_in_a_sentence(rows):
    with pytest.raises(ValueError, match=r"^X has no rows; pass one or more$"):
        check_array(rows, accept_sparse=True)
    for model in (KernelRegressor(), KernelClassifier(), KernelRidge(), TableEncoder()):
        with pytest.raises(ValueError, match=r"^X has no rows; pass one or more$"):
            model.fit(rows, [])


@pytest.mark.parametrize(
    "model",
    [KernelRegressor(), KernelClassifier(), KernelRidge(), RandomFourierFeatures(), TableEncoder()],
    ids=lambda model: type(model).__name__,
)
def test_what_is_no_table_is_told_of_before_its_rows_are_counted(model):
    for given, told in (
        (None, "X=None; pass rows and columns"),
        ({"a": [1, 2, 3]}, "X is a dict, not rows and columns; pass a data frame of it, pandas."),
        (Bunch(data=[[1]]), r"X is a Bunch, not rows and columns; pass X\['data'\]"),
        ({1, 2, 3}, "X is a set, not rows and columns; pass a list of rows"),
    ):
        with pytest.raises(TypeError, match=f"^{told}"):
            clone(model).fit(given, [0, 1, 0])


@pytest.mark.parametrize("given", [None, {"a": [1.0, 2.0]}])
def test_what_is_no_table_is_not_predicted(given):
    rows, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0]
    for model in (KernelRidge().fit(rows, y), KernelRegressor().fit(rows, y)):
        with pytest.raises(TypeError, match=r"^X(=None| is a dict)"):
            model.predict(given)


def test_a_number_is_no_table():
    with pytest.raises(
        ValueError, match=r"^X=3 is one value; pass rows and columns, such as \[\[3"
    ):
        KernelRidge().fit(3, [1.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("model", [KernelRegressor(), KernelRidge()], ids=["table", "ridge"])
def test_rows_without_a_target_of_several(bad, model):
    X, y = np.arange(6.0).reshape(-1, 1), np.arange(12.0).reshape(-1, 2)
    y[1, 1] = bad
    remedy = "keep = np.isfinite(y).all(axis=1), then X[keep] and y[keep]"
    with pytest.raises(ValueError, match=f"{re.escape(remedy)}$"):
        model.fit(X, y)
    keep = np.isfinite(y).all(axis=1)
    clone(model).fit(X[keep], y[keep])


@pytest.mark.parametrize("rows", [[[], []], np.empty((4, 0)), pd.DataFrame(index=range(4))])
def test_no_columns_are_told_in_a_sentence(rows):
    with pytest.raises(ValueError, match=r"^X has no columns; pass one or more"):
        check_array(rows)
    for model in (KernelRegressor(), KernelClassifier(), KernelRidge(), TableEncoder()):
        with pytest.raises(ValueError, match=r"^X has no columns; pass one or more"):
            model.fit(rows, np.arange(len(rows)))


def test_numbers_are_no_labels():
    check_labels(np.array([1.0, 2.0, 1.0]), "never")
    wanted = (
        "Unknown label type: continuous. y has numbers such as 2.5, but labels must be text or "
        "integers; use a ruler"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(wanted)}$"):
        check_labels(np.array([1.0, 2.5, 1.0]), "use a ruler")


def test_masked_values_are_refused():
    """As an array they are what the mask hides; without any the mask says nothing."""
    X, y = np.random.default_rng(0).standard_normal((40, 2)), np.arange(40.0)
    for model in (KernelRegressor(), RandomFeatureRidge(alpha=1.0), TableEncoder()):
        with pytest.raises(
            ValueError, match=r"X has masked values, .* in X pass X\.filled\(np\.nan\)"
        ):
            model.fit(np.ma.masked_greater(X, 1), y)
    for model in (KernelRegressor(), KernelClassifier(), KernelPoissonRegressor()):
        with pytest.raises(ValueError, match=r"^y has masked values"):
            model.fit(X, np.ma.masked_greater(y.astype(int), 5))
    TableEncoder().fit(np.ma.masked_greater(X, 100))


@pytest.mark.parametrize("kind", ["M8[D]", "m8[s]"])
@pytest.mark.parametrize("of", [np.asarray, pd.DataFrame])
def test_dates_are_no_numbers(kind, of):
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    dates = of(np.arange(20).reshape(10, 2).astype(kind))
    message = r"is of type (date|timedel).*, but must be numbers; pass, for example, days"
    fitted = RandomFourierFeatures(n_components=4).fit(X)
    for call in (clone(fitted).fit, fitted.transform, LatLonToSphere().fit, Gaussian(1.0)):
        with pytest.raises(TypeError, match=f"X {message}"):
            call(dates)
    with pytest.raises(TypeError, match=f"X {message}"):
        KernelRidge().fit(dates, y)
    with pytest.raises(TypeError, match=f"sample_weight {message}"):
        KernelRidge().fit(X, y, sample_weight=np.asarray(dates)[:, 0])
