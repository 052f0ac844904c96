"""Open sources of rows: arrays, iterables of batches, files, Dask collections."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gzkcore._util.validation import check_integer, first_not_finite
from gzkcore._util.warn import warn

from .files import open_table
from .sources import Source, is_dask, is_source
from .text import Reading

__all__ = ["open_batches"]


def as_source(X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Return the reader of X, whatever it is."""
    if is_dask(X):
        from .dask import DaskSource

        return DaskSource(X, y, sample_weight)
    if not is_source(X):
        return Source([(X, y, sample_weight)], is_one=True)
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise ValueError(
                f"{name} was passed beside a source of batches; omit it, and let the source yield "
                "(X, y) or (X, y, sample_weight)"
            )
    return Source(X)


def open_batches(
    path: str | os.PathLike[str],
    target: str | Sequence[str] | None = None,
    *,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    batch_rows: int = 65536,
    dtype: DTypeLike = np.float64,
    encoding: str = "",
) -> "Batches":
    """Open a file, which may be larger than memory, as batches for the `fit` of any learner.

    Parameters
    ----------
    path : str or path
        A .csv (also .tsv, .txt, .dat), .parquet (also a folder of such), .feather, .jsonl, .xlsx
        ("book.xlsx::sheet" for another sheet than the first), .nc, .npy or .npz file, or "-" for
        standard input. Lines that begin with # before the header of
        text are comments. Columns of lists, bytes or durations are left out with a warning. The
        columns of a .npy file are called "0", "1", ...; in a .npz file an array of one dimension is
        a column under its own name, and the columns of X are called "X0", "X1", ...
    target : str or list of str, optional
        The column, or columns, of y. None: the batches have no y.
    columns : list of str, optional
        The columns of X; by default all others but a saved index.
    sample_weight : str, optional
        The column of weights.
    batch_rows : int, default=65536
        >= 1, the number of rows of every batch but the last.
    dtype : dtype, default=float64
        Dtype of X: float64 or float32.
    encoding : str, default=""
        Of text, such as "shift_jis"; "" for UTF-8, UTF-16 with its mark, or else Windows-1252.

    Returns
    -------
    Batches
        An iterable that reads the file again in each iteration.

    Raises
    ------
    ValueError
        If there is no such file or column. While reading: where a value is missing or is not a
        finite number, or is text such as 01, which is a code, naming the file, the row (counted
        from 1, without the header) and the column.
    PermissionError
        If the file may not be read.
    ImportError
        For all but .npy and .npz without pyarrow, .xlsx without openpyxl, .nc without netCDF4.

    Notes
    -----
    Memory: a piece of the file, about 4 million values or 4 MB of text, and a batch.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gzkcore import open_batches
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.npy")
    ...     np.save(path, np.arange(12.0).reshape(6, 2))
    ...     for X, y in open_batches(path, target="1", batch_rows=4):
    ...         print(X.shape, y)
    (4, 1) [1. 3. 5. 7.]
    (2, 1) [ 9. 11.]
    """
    return Batches(path, target, columns, sample_weight, batch_rows, dtype, encoding)


class Batches:
    """Columns of a file, batch by batch: what `open_batches` returns.

    Attributes
    ----------
    path : Path
    columns : list of str
        Those of X.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: str | Sequence[str] | None,
        columns: Sequence[str] | None,
        sample_weight: str | None,
        batch_rows: int,
        dtype: DTypeLike,
        encoding: str,
    ) -> None:
        table = open_table(path, Reading(encoding=encoding))
        targets = _names("target", [target] if isinstance(target, str) else target)
        weights = _names("sample_weight", None if sample_weight is None else [sample_weight])
        if isinstance(columns, str):
            raise TypeError(f"columns={columns!r} is a single text; pass a list of names")
        if columns is None:
            table.check_whole()
            table.leave_apart()
        no_inputs = {*targets, *weights, *table.index, *table.apart}
        others = [name for name in table.names if name not in no_inputs]
        self.columns = others if columns is None else _names("columns", columns)
        index = [name for name in table.index if name not in {*targets, *weights}]
        if columns is None and index:
            table.notes.append(f"left out as a saved index: {index}; columns= can name it")
        for note in table.notes:
            warn(f"{path}: {note}", UserWarning)
        table.require([*self.columns, *targets, *weights])
        if not self.columns:
            raise ValueError(
                f"{path}: there is no column for X beside target and sample_weight; use a file "
                "with more columns"
            )
        if both := sorted(set(self.columns) & {*targets, *weights}):
            raise ValueError(
                f"columns must not contain the target or the weights; it contains {', '.join(both)}"
            )
        if len(set(targets + weights)) < len(targets + weights):
            raise ValueError(
                f"target={target!r} and sample_weight={sample_weight!r} name the same column "
                "twice; name different columns"
            )
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"columns={columns!r} names a column twice; name each column once")
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r} must be float32 or float64")
        self.path, self._given = table.path, table.given
        self.batch_rows = check_integer("batch_rows", batch_rows, 1)
        self._encoding = encoding
        self._targets, self._weights, self._one = targets, weights, isinstance(target, str)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        names = [*self.columns, *self._targets, *self._weights]
        pieces: list[NDArray[np.float64]] = []
        held = first = 0
        table = open_table(self._given, Reading(encoding=self._encoding))
        table.require(names)  # the file may have changed
        for _, values, _ in table.batches(names):
            rest = values
            while held + len(rest) >= self.batch_rows:
                cut = self.batch_rows - held
                yield self._parts([*pieces, rest[:cut]], first)
                pieces, held, rest = [], 0, rest[cut:]
                first += self.batch_rows
            if len(rest):
                pieces.append(rest)
                held += len(rest)
        if held:
            yield self._parts(pieces, first)

    def _parts(self, pieces: list[NDArray[np.float64]], first: int) -> tuple[Any, ...]:
        """Return a batch, whose first row is `first`, counted from 0."""
        values = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        width, n_targets = len(self.columns), len(self._targets)
        with np.errstate(over="ignore"):
            X = np.ascontiguousarray(values[:, :width], dtype=self.dtype)
        if self.dtype == np.float32 and (place := first_not_finite(X)) is not None:
            row, column = place
            raise ValueError(
                f"{self.path}: data row {first + row + 1}, column {self.columns[column]!r}: the "
                f"value {values[row, column]:g} is too large for float32; use "
                "dtype=float64, or scale the column"
            )
        y = values[:, width : width + n_targets].copy()
        parts = [X, y[:, 0] if self._one else y if n_targets else None]
        if self._weights:
            parts.append(values[:, -1].copy())
        return tuple(parts) if n_targets or self._weights else (X,)


def _names(parameter: str, value: Any) -> list[str]:
    """Return the names of columns in the value of a parameter, or raise."""
    try:
        names = [] if value is None else [*value]
    except TypeError:
        names = [value]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"{parameter}={value!r} is not the name of a column, or a list of names; names are "
            'texts, those of a .npy file "0", "1", ...'
        )
    return names
