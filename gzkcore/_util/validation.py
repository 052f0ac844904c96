"""Checks of arguments; each error names the parameter, the value and the remedy."""

import contextlib
import functools
import math
import numbers
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse
from sklearn.utils import validation
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from .new_arrays import new_array
from .typing import Doubles, Floats, Integers, Rows
from .wording import counted, fitted_to, meant, named_columns

# What to do with a y that has gaps.
WITHOUT_TARGET = "leave out rows without a target, in pandas X[y.notna()] and y[y.notna()]"
WITH_FINITE_TARGET = (
    "leave out rows without a finite target, X[np.isfinite(y)] and y[np.isfinite(y)]"
)
WITH_ALL_TARGETS = (
    "leave out rows without a finite target in every column: keep = np.isfinite(y).all(axis=1), "
    "then X[keep] and y[keep]"
)
MOST_PLACES = 2**31 - 1  # what tables of places, in int32, count up to
MOST_COUNTED = sys.maxsize // 4 + 1  # sums of dimensions and degrees fit into a Py_ssize_t
# A kernel matrix may be so far from symmetric, in units of its largest diagonal entry: rounding in
# float32 leaves less.
ASYMMETRY = 1e-4
SQUARE = 256  # symmetry is checked in squares of this size, which stay in the cache
NO_ROWS = "{} has no rows; pass one or more"
SAME_COLUMNS = "pass the same columns as to fit"
A_ROW = 64  # so few values are read sooner as numbers of Python
FEW_VALUES = 1024  # fewer values are checked one by one, more by their sum first
LOOKED_AT = 2048  # so many rows are checked at a time, also of arrays on disk
LETTERS = 60  # of a text that is told

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


def in_floats(formula: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """Return a formula that raises ValueError where a number is beyond the range of floats."""

    @functools.wraps(formula)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                return formula(*args, **kwargs)
        except ArithmeticError:
            raise ValueError(
                f"{formula.__name__}: a number is beyond the range of floats; use less extreme "
                "arguments"
            ) from None

    return checked


def check_integer(name: str, value: Any, minimum: int) -> int:
    """Return value as an int, or raise naming it if it is not an integer >= minimum."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r} is not an integer; use an integer >= {minimum}")
    if value < minimum:
        raise ValueError(f"{name}={value} is too small; use an integer >= {minimum}")
    return int(value)


def check_integers(name: str, values: Any) -> Integers:
    """Return values, one or an array of any shape, as integers >= 0, or raise naming them."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name}={values!r} are not integers; use integers >= 0")
    if array.size and array.min() < 0:
        raise ValueError(f"{name}={array.min()} is too small; use integers >= 0")
    if array.size and array.max() > np.iinfo(np.intp).max:
        raise ValueError(f"{name}={array.max()} is too large; use integers below 2^63")
    return array.astype(np.intp)


def check_pairs(x: ArrayLike, y: ArrayLike) -> tuple[Doubles, Doubles]:
    """Return two points, or as many in one as in the other, as rows in double, or raise."""
    try:
        X, Y = (np.atleast_2d(np.asarray(point, dtype=np.float64)) for point in (x, y))
    except OverflowError as error:
        raise TypeError(f"x and y are not numeric ({error}); pass numbers") from None
    if X.ndim != 2 or X.shape != Y.shape or X.shape[1] < 1 or np.ndim(x) != np.ndim(y):
        raise ValueError(
            f"x and y have shapes {np.shape(x)} and {np.shape(y)}; pass two points of one width, "
            "or as many rows of these in one as in the other"
        )
    return np.ascontiguousarray(X), np.ascontiguousarray(Y)


def column_numbers(what: str, columns: Any, width: int, names: ArrayLike | None) -> list[int]:
    """Return the indices of columns from a slice, indices or names, or raise."""
    if isinstance(columns, slice):
        index = list(range(width))[columns]
    else:
        alone = isinstance(columns, str) or not isinstance(columns, Iterable)
        chosen = [columns] if alone else list(columns)
        if any(isinstance(column, str) for column in chosen):
            every = [] if names is None else np.asarray(names).tolist()
            known = dict(zip(reversed(every), reversed(range(len(every))), strict=True))
            unknown = [column for column in chosen if column not in known]
            if unknown:
                raise ValueError(
                    f"{what} names column {unknown[0]!r}, but X has "
                    f"{'no column names' if names is None else f'the columns {every}'}; pass a "
                    "DataFrame with that column, or numbers of columns"
                )
            chosen = [known[column] for column in chosen]
        index = [check_integer("column", column, -width) for column in chosen]
        far = [column for column in index if column >= width]
        if far:
            raise ValueError(
                f"{what} has column {far[0]}, but X has n_features={width}; columns count from 0"
            )
    if not index:
        raise ValueError(
            f"{what} has no columns: {columns!r} selects none of n_features={width}; name one "
            "or more"
        )
    return [column % width for column in index]


def check_places(name: str, places: Any, top: int) -> None:
    """Raise unless all places are below `top` and fit into an int32, as those of kernels do."""
    array = np.asarray(places)
    if array.size and not (array.min() >= 0 and array.max() < min(top, MOST_PLACES)):
        raise ValueError(
            f"{name} has places from {array.min()} to {array.max()}; use integers >= 0 and below "
            f"{min(top, MOST_PLACES)}"
        )


def check_choice(name: str, value: Any, choices: tuple[str | None, ...]) -> None:
    """Raise, naming the choices, if value is none of them."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        near = meant(value, filter(None, choices))
        raise ValueError(f"{name}={value!r} is unknown{near}; use one of {choices}")


def check_degree(degree: Any) -> int:
    """Return a degree as an int >= 0 that kernels can count to."""
    return check_dim(degree, 0, "degree")


def check_dim(value: Any, minimum: int = 1, name: str = "dim") -> int:
    """Return the dimension of the space as an int below a quarter of what kernels count in."""
    number = check_integer(name, value, minimum)
    if number >= MOST_COUNTED:
        said = f"{name}={number}" if number < 10**30 else f"{name}, of {number.bit_length()} bits,"
        raise ValueError(f"{said} is too large; use an integer below {MOST_COUNTED:,}")
    return number


def check_positive(name: str, value: Any) -> float:
    """Return value as a float, or raise naming it if it is not a finite number > 0."""
    number = _check_number(name, value, "> 0")
    if not number:
        raise ValueError(f"{name}={value} is not usable; use a finite number > 0")
    return number


def check_not_negative(name: str, value: Any) -> float:
    """Return value as a float, or raise naming it if it is not a finite number >= 0."""
    return _check_number(name, value, ">= 0")


def _check_number(name: str, value: Any, wanted: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={value!r} is not a number; use a number {wanted}")
    try:
        number = float(value)  # integers and fractions have no end
    except OverflowError:
        raise ValueError(
            f"{name} is beyond the largest float, 1.8e+308; use a finite number {wanted}"
        ) from None
    if not 0 <= number < math.inf:
        raise ValueError(f"{name}={value} is not usable; use a finite number {wanted}")
    return number


def check_share(name: str, value: Any) -> float:
    """Return value as a float, or raise naming it if it is not a number between 0 and 1."""
    number = check_positive(name, value)
    if number >= 1:
        raise ValueError(f"{name}={value} is not usable; use a number > 0 and < 1")
    return number


def check_same_class(ours: Any, theirs: Any) -> None:
    """Raise unless another object, to be merged, is of our class."""
    if not (isinstance(theirs, type(ours)) or isinstance(ours, type(theirs))):
        name = type(ours).__name__
        raise TypeError(f"other is a {type(theirs).__name__}; pass another {name} to merge")


def check_bool(name: str, value: Any) -> bool:
    """Return value as a bool, or raise naming it if it is none."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}={value!r} is not a bool; use True or False")
    return bool(value)


def check_not_negatives(name: str, values: Any) -> Doubles:
    """Return values as an array of finite doubles >= 0, or raise naming them.

    Text and bools are no numbers here, as they are none for `check_not_negative`.
    """
    try:
        # An array of numbers would hide bools among them.
        array = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
        if array.dtype.kind == "O":
            real = all(isinstance(v, numbers.Real) and not isinstance(v, bool) for v in array.flat)
        else:
            real = array.dtype.kind in "iuf"
        doubles = array.astype(np.float64) if real else None
    except (TypeError, ValueError, OverflowError):
        doubles = None
    if doubles is None:
        raise TypeError(f"{name}={values!r} is not numeric; use numbers >= 0")
    if not (np.isfinite(doubles) & (doubles >= 0)).all():
        raise ValueError(f"{name}={values!r} must be finite and >= 0")
    return doubles


def check_positives(name: str, value: Any, count: int | None = None) -> float | Doubles:
    """Return a number > 0, or an array of them: one for each of `count` columns."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.array(None)
    if array.ndim == 0:
        return check_positive(name, value.item() if isinstance(value, np.ndarray) else value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name}={value!r} holds no real numbers; use one number > 0 per column")
    if array.ndim != 1 or (count is not None and array.size != count):
        columns = "" if count is None else f", but X has {counted(count, 'column')}"
        raise ValueError(
            f"{name} has shape {array.shape}{columns}; pass one number, or one for each column"
        )
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(f"{name}={value} is not usable; every value must be finite and > 0")
    return array.astype(np.float64)


def _refuse_mask(name: str, values: Any) -> None:
    """Raise for masked values: as an array they are what the mask hides."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} has masked values, and its mask would be ignored; leave these rows out, or "
            "in X pass X.filled(np.nan)"
        )


def _refuse_dates(name: str, values: Any) -> None:
    """Raise for dates and durations: as floats they are counts of whatever unit they have."""
    for dtype in values.dtypes if hasattr(values, "columns") else [getattr(values, "dtype", None)]:
        if str(dtype).startswith(("datetime64", "timedelta64")):  # of any unit
            raise TypeError(
                f"{name} is of type {dtype}, but must be numbers; pass, for example, days: ({name} "
                f"- {name}.min()) / np.timedelta64(1, 'D')"
            )


def float_dtype(values: Any) -> type[np.float32 | np.float64]:
    """Return the type in which rows are worked on: float32 for float32 in any order of bytes."""
    return np.float32 if values.dtype.newbyteorder("=") == np.float32 else np.float64


def as_floating(name: str, values: ArrayLike) -> tuple[Floats, tuple[int, ...]]:
    """Return values as a contiguous flat float array (float32 is kept) and their shape."""
    array = as_floats(name, values)
    return np.ascontiguousarray(array).reshape(-1), array.shape


def as_floats(name: str, values: ArrayLike) -> Floats:
    """Return values as an array of floats: float32 is kept, everything else becomes float64."""
    if sparse.issparse(values):
        raise TypeError(f"{name} is sparse, which this function does not take; pass a dense array")
    _refuse_mask(name, values)
    _refuse_dates(name, values)
    try:
        array = np.asarray(values)
        if array.dtype.kind != "c":
            floats: Floats = array.astype(float_dtype(array), copy=False)
            return floats
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{name} is not numeric ({error}); pass numbers") from None
    raise TypeError(f"{name} is complex; pass real numbers")


def check_weights(sample_weight: ArrayLike | None, X: Any) -> Any:
    """Return the weights in float64, or None for none."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(X.shape[0], sample_weight)
    try:
        weight = check_array(
            sample_weight, input_name="sample_weight", dtype=np.float64, ensure_2d=False,
            ensure_all_finite=False,
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        raise type(error)(f"sample_weight must be one number per row of X: {error}") from None
    if weight.shape != (X.shape[0],):
        raise ValueError(
            f"sample_weight has shape {weight.shape}, but X has {counted(X.shape[0], 'row')}; "
            f"give one number per row, shape ({X.shape[0]},)"
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        raise ValueError(
            f"sample_weight[{bad[0]}] = {weight[bad[0]]} is not a finite number >= 0; "
            "use 0 to leave a row out"
        )
    return weight


def check_some_weight(weight: ArrayLike | None) -> None:
    """Raise unless some row has a positive weight; `weight` may be the sum of all, or None."""
    if weight is not None and not np.any(weight):
        raise ValueError("all sample weights are zero; give some rows a positive weight")


def check_sparse(X: Any) -> None:
    """Raise ValueError if sparse rows have indices outside of their columns.

    Kernels, and whatever converts such rows, would read there: this comes first.
    """
    if sparse.issparse(X) and hasattr(X, "check_format"):
        X.check_format(full_check=False)
        if not _stays_inside(X):
            X.check_format(full_check=True)
            if X.nnz <= 0 and X.indptr.any():  # where the last is 0, SciPy looks at no other
                raise ValueError("indptr must be a non-decreasing sequence")


def _stays_inside(X: Any) -> bool:
    """Say whether CSR rows pass SciPy's full check, which reads the indices twice."""
    if X.format != "csr" or not X.nnz or not X.data.dtype.isnative:
        return False
    indices, indptr = X.indices, X.indptr
    if indices.dtype != indptr.dtype or indices.dtype not in (np.int32, np.int64):
        return False
    unsigned = indices.view(f"u{indices.itemsize}")  # one below 0 becomes very large
    return bool(unsigned.max() < X.shape[-1] and (indptr[1:] >= indptr[:-1]).all())


def as_doubles(name: str, values: Any, wanted: str, order: Literal["C", "K"] = "K") -> Doubles:
    """Return values, dense or sparse, as a dense array of doubles, or raise naming them."""
    _refuse_dates(name, values)
    try:
        array = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
        if array.dtype.kind == "c":
            raise TypeError("it is complex")  # noqa: TRY301  said below, with the remedy
        doubles: Doubles = array.astype(np.float64, order=order, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{name} is not numeric ({error}); pass {wanted}") from None
    return doubles


def check_matrix(name: str, values: Any) -> Doubles:
    """Return a finite matrix of doubles, or raise naming it."""
    check_sparse(values)
    _refuse_mask(name, values)
    matrix = as_doubles(name, values, "a matrix of numbers")
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"{name} has shape {matrix.shape}; pass a matrix with one row per point")
    raise_not_finite(matrix, name, "pass finite numbers")
    return matrix


def check_scored(y: Any) -> None:
    """Raise if there is nothing to compare predictions with."""
    if y is None:
        raise ValueError("y=None, and score compares predictions with y; pass one for each row")


def check_some_rows(X: Any) -> None:
    """Raise if X has no rows, or more than two dimensions.

    Checked before y: else the message would be that y has another number of rows.
    """
    shape = getattr(X, "shape", ())
    if shape[:1] == (0,) or (isinstance(X, list) and not X):
        raise ValueError(NO_ROWS.format("X"))
    if len(shape) > 2:
        raise ValueError(_of_dimensions("X", shape))


def check_table(X: Any) -> None:
    """Raise if X is None, a dict or a set.

    Checked before anything counts or converts X: a dict of columns has as many rows as keys.
    """
    if X is None:
        raise TypeError("X=None; pass rows and columns: an array, a list of rows or a data frame")
    if isinstance(X, (dict, set, frozenset)) and not hasattr(X, "shape"):  # SciPy's dok_array
        remedy = "a list of rows"
        if isinstance(X, dict):  # scikit-learn's data sets are dicts
            remedy = "X['data']" if "data" in X else "a data frame of it, pandas.DataFrame(X)"
        raise TypeError(f"X is a {type(X).__name__}, not rows and columns; pass {remedy}")


def check_lengths(X: Any, values: Any, name: str = "y") -> None:
    """Raise unless there are as many values as rows of X; name both numbers."""
    _refuse_mask(name, values)
    n_rows, n_values = (validation._num_samples(each) for each in (X, values))
    if n_rows != n_values:
        raise ValueError(
            f"X has {counted(n_rows, 'row')}, but {name} has {n_values:,}; pass as many of one as "
            "of the other, in the same order"
        )


def check_column(name: str, values: Any, *, warn: bool = False) -> Any:
    """Return values in one dimension, or raise naming their shape."""
    _refuse_mask(name, values)
    with plain_errors(name, values, 1):
        return validation.column_or_1d(values, warn=warn)


@contextlib.contextmanager
def plain_errors(name: str, values: Any, n_dims: int | None = 2) -> Iterator[None]:
    """Replace scikit-learn's errors about the shape or the type of values by plain sentences.

    `n_dims` is how many dimensions they should have, None for one or more.
    """
    try:
        yield
    except ValueError:
        if fault := _fault(name, values, n_dims):
            raise ValueError(fault) from None
        raise


def _fault(name: str, values: Any, n_dims: int | None) -> str:
    """Say what is wrong with the shape or the type of values, "" if nothing is."""
    try:
        array = values if hasattr(values, "shape") else np.asarray(values)
    except ValueError:
        return _ragged(name, values)
    shape = tuple(array.shape)
    if getattr(getattr(array, "dtype", None), "kind", "") == "c":
        real = f"pass real numbers, such as {name}.real or {name}.imag"
        return f"{name} has dtype {array.dtype}. Complex data not supported; {real}"
    if not shape and n_dims == 2:
        return f"{name}={values!r} is one value; pass rows and columns, such as [[{values!r}]]"
    if not shape:
        return f"{name}={values!r} is one value; pass one value for each row of X"
    if n_dims == 1 and len(shape) > 1 and shape[0]:
        return f"{name} has shape {shape}; pass one value for each row of X"
    if shape[0] == 0 or (n_dims == 2 and len(shape) == 1 and not array.size):
        return NO_ROWS.format(name)
    if n_dims == 2 and len(shape) == 1:
        return one_dimension(values, name)
    if len(shape) > 2:
        return _of_dimensions(name, shape)
    if shape[1:] == (0,):  # scikit-learn's checks of estimators ask for these words
        wanted = f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        return f"{name} has no columns; pass one or more. {wanted}"
    return _text(name, values) if n_dims == 2 and not sparse.issparse(values) else ""


def _text(name: str, values: Any) -> str:
    """Say which column has text that is no number, "" if none has."""
    names = getattr(values, "columns", range(np.shape(values)[1]))
    for column, own in zip(names, np.asarray(values, dtype=object)[:LOOKED_AT].T, strict=True):
        for text in filter(_is_no_number, own):
            return (
                f"{name} has the text {fitted_to(text, LETTERS)!r} in column {column!r}; pass "
                "numbers, such as those of TableEncoder, or use KernelRegressor or KernelClassifier"
            )
    return ""


def _is_no_number(value: Any) -> bool:
    """Say whether a value is a text that is no number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return isinstance(value, str)
    return False


def _of_dimensions(name: str, shape: tuple[int, ...]) -> str:
    return (
        f"{name} has shape {shape}, of {len(shape)} dimensions, and should have rows and columns; "
        f"pass {name}.reshape(len({name}), -1) if each {name}[i] is one row"
    )


def one_dimension(values: Any, name: str = "X") -> str:
    """Say that rows and columns are wanted, and how values of one dimension become these."""
    reshaped = f"{name}.to_frame()", "a frame's iloc[[0]]"
    if not hasattr(values, "to_frame"):
        reshaped = f"{name}.reshape(-1, 1)", f"{name}.reshape(1, -1)"
    return (
        f"{name} has one dimension, of {counted(len(values), 'value')}, and should have rows and "
        "columns. Reshape your data: {} is one column, {} one row".format(*reshaped)
    )


def _ragged(name: str, values: Any) -> str:
    """Say which row has another number of entries than most, "" if all have as many."""
    rows = [row if isinstance(row, list | tuple | np.ndarray) else None for row in values]
    lengths = [-1 if row is None else len(row) for row in rows]
    usual = Counter(lengths).most_common(1)[0][0]
    other = next((i for i, length in enumerate(lengths) if length != usual), None)
    if other is not None:
        like = lengths.index(usual)
        has = ["is not a list" if n < 0 else f"has {counted(n, 'value')}" for n in lengths]
        both = f"row {other} {has[other]} and row {like} {has[like]}"
        return f"{name} has rows of different lengths: {both}, counted from 0; make them alike"
    for i, row in enumerate(rows):
        for j, value in enumerate([] if row is None else row):
            if isinstance(value, list | tuple | np.ndarray):
                return (
                    f"{name} has {value!r} in row {i}, column {j}, both counted from 0; pass one "
                    "value there"
                )
    return ""


def check_array(values: Any, *, input_name: str = "", **how: Any) -> Any:
    """Return values as scikit-learn's `check_array` does, or raise in a sentence."""
    _refuse_mask(input_name or "X", values)
    _refuse_dates(input_name or "X", values)
    with plain_errors(input_name or "X", values, 2 if how.get("ensure_2d", True) else None):
        return validation.check_array(values, input_name=input_name, **how)


def as_table(X: Any) -> NDArray[Any]:
    """Return dense rows that are no frame as an array of two dimensions, of numbers or not."""
    check_table(X)
    _refuse_mask("X", X)
    with plain_errors("X", X):
        array = np.asarray(X)
    if array.dtype.kind in "US" and not isinstance(X, np.ndarray):
        array = np.asarray(X, dtype=object)  # lists of numbers and text: each stays what it is
    if array.shape == (0,):
        raise ValueError(NO_ROWS.format("X"))
    if array.ndim == 1:
        raise ValueError(one_dimension(X))
    if array.dtype.kind in "biufc" or array.ndim != 2:
        of = None if array.dtype.kind in "iu" else np.float64  # doubles don't hold all integers
        array = check_array(array, dtype=of, ensure_all_finite=False)
    elif array.dtype.kind not in "mM":
        array = check_array(array, dtype=None, ensure_all_finite=False)
    return array


def validate_data(estimator: Any, X: Any, **how: Any) -> Any:
    """Return rows as scikit-learn's `validate_data` does, or raise in a sentence.

    Rows that it would return as they are, which takes it .1 ms to see, are seen at once.
    """
    if not how.get("reset", True) and _is_plain(estimator, X):
        finite = how.get("ensure_all_finite", True)
        if finite is False or is_finite(X):
            return X
    check_table(X)
    _refuse_mask("X", X)
    _refuse_dates("X", X)
    with plain_errors("X", X):
        try:
            return validation.validate_data(estimator, X, **how)
        except ValueError as error:
            names = getattr(estimator, "feature_names_in_", None)
            if how.get("reset", True):
                raise
            if names is not None and hasattr(X, "columns") and [*X.columns] != names.tolist():
                raise ValueError(other_columns(list(X.columns), names.tolist())) from None
            width = getattr(estimator, "n_features_in_", None)
            if width is not None and np.shape(X)[1:] != (width,):
                raise ValueError(f"{str(error).removesuffix('.')}; {SAME_COLUMNS}") from None
            raise


def _is_plain(estimator: Any, X: Any) -> bool:
    """Say whether X is an array of floats of the shape that the estimator was fitted to."""
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float64, np.float32)
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1] == vars(estimator).get("n_features_in_")
        and "feature_names_in_" not in vars(estimator)
    )


def other_columns(names: Sequence[str], wanted: Sequence[str]) -> str:
    """Say how a frame's columns differ from those of the fit."""
    missing = [name for name in wanted if name not in names]
    new = [name for name in names if name not in wanted]
    if missing:
        unknown = f"has {named_columns(new)}, which the fit did not see, but " if new else "has "
        difference = f"{unknown}no {named_columns(missing)}; {SAME_COLUMNS}"
    elif new:
        difference = f"has {named_columns(new)}, which the fit did not see; {SAME_COLUMNS}"
    else:
        difference = "has them in another order; pass X[model.feature_names_in_]"
    return f"The feature names should match those that were passed during fit: X {difference}"


def is_finite(values: Any) -> bool:
    """Say whether all values of an array or a sparse matrix are finite numbers."""
    if type(values) is not np.ndarray and sparse.issparse(values):
        values = values.data
    if values.dtype.kind not in "fc":
        return True
    if values.size < FEW_VALUES:
        if values.size <= A_ROW and values.dtype.char in "fd":
            return all(map(math.isfinite, values.ravel().tolist()))
        return bool(np.isfinite(values).all())
    with np.errstate(all="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def extremes(values: Floats, default: float = 0.0) -> tuple[float, float]:
    """Return the smallest and the largest of finite numbers, the default for none."""
    if values.size > A_ROW:
        return float(values.min()), float(values.max())
    few = values.ravel().tolist()
    return min(few, default=default), max(few, default=default)


def first_not_finite(values: Any) -> tuple[int, ...] | None:
    """Return the row, and column, of the first value that is not finite, or None."""
    for start in range(0, values.shape[0], LOOKED_AT):
        tile = values[start : start + LOOKED_AT]
        if is_finite(tile):
            continue
        if sparse.issparse(tile):
            entries = sparse.coo_array(tile)
            bad = np.column_stack([entries.row, entries.col])[~np.isfinite(entries.data)]
        else:
            bad = np.argwhere(~np.isfinite(tile))
        row, *column = min(bad.tolist())
        return start + row, *column
    return None


def raise_not_finite(
    values: Any,
    name: str = "X",
    remedy: str = "leave such rows out or fill them in, for example with "
    "sklearn.impute.SimpleImputer",
) -> None:
    """Raise a ValueError that says where the first value is that is not finite, if there is one."""
    place = first_not_finite(values)
    if place is None:
        return
    is_nan = np.isnan(values[place])
    kind = "NaN" if is_nan else f"infinity or a value too large for dtype('{values.dtype}')"
    row, *column = place
    where = f"row {row}, column {column[0]}, both" if column else f"row {row},"
    raise ValueError(
        f"Input {name} contains {kind}. The first is in {where} counted from 0; {remedy}"
    )


def raise_no_target(y: Any) -> None:
    """Raise a ValueError that says where the first target is that is not finite, if one is."""
    if not is_finite(y):
        if np.ndim(y) > 1:
            remedy = WITH_ALL_TARGETS
        else:
            remedy = WITH_FINITE_TARGET if np.isinf(y).any() else WITHOUT_TARGET
        raise_not_finite(y, "y", remedy)


def check_square(name: str, values: Any) -> Doubles:
    """Return a square matrix of doubles, or raise naming it."""
    matrix = check_matrix(name, values)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{name} has shape {matrix.shape}, which is not square; pass the kernel matrix of the "
            "points with themselves"
        )
    return matrix


def check_symmetric(name: str, values: Any) -> Doubles:
    """Return a symmetric matrix of doubles, or raise naming it."""
    matrix = check_square(name, values)
    raise_asymmetric(matrix, name, "pass the kernel matrix of the points with themselves")
    return matrix


def raise_asymmetric(K: Floats, name: str, remedy: str) -> None:
    """Raise if a kernel matrix is less symmetric than rounding in float32 leaves it.

    Entries that are not finite pass: others check these.
    """
    least = ASYMMETRY * float(np.abs(K.diagonal()).max())
    for first in range(0, len(K), SQUARE):
        for start in range(0, first + 1, SQUARE):
            rows, columns = slice(first, first + SQUARE), slice(start, start + SQUARE)
            with np.errstate(invalid="ignore"):
                apart = np.abs(K[rows, columns] - K[columns, rows].T)
            if not apart.max() > least:
                continue
            row, column = np.unravel_index(int(apart.argmax()), apart.shape)
            i, j = first + int(row), start + int(column)
            raise ValueError(
                f"the kernel matrix must be symmetric, but {name}[{i}, {j}]={K[i, j]:.6g} and "
                f"{name}[{j}, {i}]={K[j, i]:.6g} differ by {apart.max():.3g}; {remedy}"
            )


def dense(X: Rows) -> Floats:
    """Return validated rows as an ordinary array, the array itself where they are one."""
    return X if isinstance(X, np.ndarray) else X.toarray()


def check_out(
    out: Floats | None, shape: tuple[int, ...], dtype: DTypeLike, X: Rows | None = None
) -> Floats:
    """Return `out`, or a new array where it is None; raise if `out` can't take the result."""
    if out is None:
        return new_array(shape, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is a {type(out).__name__}; pass a numpy array of shape {shape}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, but the result has shape {shape}")
    if out.dtype != dtype:
        raise ValueError(f"out has dtype {out.dtype}, but the result has dtype {np.dtype(dtype)}")
    if not out.flags.c_contiguous:
        raise ValueError("out is not C-contiguous; pass an array made by numpy.empty")
    if not out.flags.writeable:
        raise ValueError("out is read-only; pass a writable array")
    if X is not None and np.may_share_memory(out, X if isinstance(X, np.ndarray) else X.data):
        raise ValueError("out overlaps X in memory; pass another array")
    return out


def check_labels(labels: Any, remedy: str) -> None:
    """Raise, with the remedy for numbers, if values are not labels of classes."""
    _refuse_mask("y", labels)
    with plain_errors("y", labels, 1):
        if not type_of_target(labels, input_name="y").startswith("continuous"):
            check_classification_targets(labels)
            return
    numbers_of = np.ravel(labels)
    some = next((v for v in numbers_of.tolist() if v != round(v)), numbers_of[0])
    raise ValueError(
        f"Unknown label type: continuous. y has numbers such as {some:.6g}, but labels must be "
        f"text or integers; {remedy}"
    )


def check_targets(y: Any, X: Any) -> Any:
    """Return y in float64, of shape (n_samples,) or (n_samples, n_targets)."""
    check_some_rows(X)
    _refuse_dates("y", y)
    _refuse_mask("y", y)
    if isinstance(y, numbers.Number | str):
        raise TypeError(
            f"y={y!r} is not an array; pass one number, or row of numbers, per row of X"
        )
    try:
        y = check_array(
            y, input_name="y", dtype=np.float64, ensure_2d=False, ensure_all_finite=False
        )
    except (TypeError, ValueError) as error:
        texts = [*filter(_is_no_number, np.ravel(np.asarray(y, dtype=object)))]
        remedy = "; for labels use a classifier, such as KernelClassifier" if texts else ""
        if texts and all(any(map(str.isdigit, text)) for text in texts):
            remedy = "; write the numbers alone, such as 1200.5, or for labels use KernelClassifier"
        reason = f"{fitted_to(texts[0], LETTERS)!r} is text" if texts else error
        raise type(error)(
            f"y must be one number, or row of numbers, per row of X: {reason}{remedy}"
        ) from None
    check_lengths(X, y)
    raise_no_target(y)
    return y
