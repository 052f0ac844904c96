"""The inputs of `plan` and `compare`: rows for features, targets as numbers or labels."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing, assert_all_finite, column_or_1d

from gzkcore._util.typing import Data, Integers, Rows
from gzkcore._util.validation import check_labels, check_lengths, check_targets, raise_not_finite
from gzkcore.features.base import RowMap, check_rows, plain_output
from gzkcore.learn.classification import distinct
from gzkcore.rows.frames import Frame
from gzkcore.rows.sources import is_dask
from gzkcore.rows.values import missing_of
from gzkcore.tabular.table_encoder import CATEGORICAL_DTYPES, TableEncoder, columns_of

FEWEST_ROWS = 50  # of a sample that predictions are judged by
NUMBERS = ("int", "uint", "float", "bool")  # that names of types begin with


def as_rows(X: Data, asker: str) -> Rows:
    """Return rows of numbers as they are, others encoded as `KernelRegressor` does, or raise.

    Errors about rows of numbers name who asks for them.
    """
    if encodes(X):
        rows: Rows = plain_output(TableEncoder()).fit_transform(X)
    else:
        rows = check_rows(type(asker, (RowMap,), {})(), X, reset=True, finite=False)
    raise_not_finite(rows)
    return rows


def encodes(X: Any) -> bool:
    """Say whether a table has columns of another kind than numbers, or gaps."""
    if is_dask(X) or sparse.issparse(X):
        return False
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return bool(np.ndim(X) == 2 and np.asarray(X).dtype.kind in "OUSmM")
    if not all(_kind(dtype).startswith(NUMBERS) for dtype in X.dtypes):
        return True
    return any(missing_of(values).any() for values, _ in columns_of(X)[1])


def _kind(dtype: Any) -> str:
    return str(dtype).lower().partition("(")[0]


def as_targets(y: ArrayLike, X: Data, classify: bool) -> tuple[NDArray[Any], bool]:
    """Return what is to be predicted, one of each row, and whether these are labels.

    Text, booleans and categories always are, numbers if `classify` says so.
    """
    array = np.asarray(y)
    classify = classify or array.dtype.kind in "USb" or _kind(getattr(y, "dtype", "")) in (
        CATEGORICAL_DTYPES
    )  # fmt: skip
    if array.dtype.kind == "O":
        classify = classify or any(isinstance(value, str | bool) for value in array.flat)
    targets = _labels(y, X) if classify else np.asarray(check_targets(y, X))
    if targets.ndim > 1 and targets.shape[1] > 1:
        raise ValueError(
            f"y has {targets.shape[1]} columns, but plan takes one; plan each separately"
        )
    if len(targets) < FEWEST_ROWS:
        raise ValueError(
            f"a plan for a target (y) needs {FEWEST_ROWS} rows or more; got {len(targets)}, which "
            "can be fitted in seconds without a plan (gzkcore fit, KernelRegressor)"
        )
    return targets.reshape(-1), classify


def _labels(y: ArrayLike, X: Data) -> NDArray[Any]:
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    check_lengths(X, labels)
    assert_all_finite(labels, input_name="y")
    classes, _ = distinct(labels)
    check_labels(labels, "to predict numbers leave out classify=True")
    if len(classes) < 2:
        raise ValueError(
            f"y has one class, {classes.tolist()}, but plan needs two or more; pass rows of other "
            "classes too, or omit y"
        )
    return labels


def take(X: Any, rows: Integers) -> Any:
    """Return some of the rows of a table of any kind."""
    if isinstance(X, Frame):
        return X.take(rows)
    return _safe_indexing(X.tocsr() if sparse.issparse(X) else X, rows)
