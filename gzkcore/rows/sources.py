"""Sources of rows: their definition, and reading their batches one after another.

A *source* is what a learner's `fit` takes besides arrays, sparse matrices and data frames: an
iterable of batches, each `X`, `(X, y)` or `(X, y, sample_weight)`, or a Dask collection. If `iter`
gives a new iterator each time, it can be read again; an iterator itself, such as a generator, is
read once.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from gzkcore._util.validation import check_table


class Batch(NamedTuple):
    """Rows of a source, and the number of their batch."""

    X: Any
    y: Any
    sample_weight: Any
    number: int


def is_dask(X: Any) -> bool:
    """Say whether X is a Dask collection, without importing Dask."""
    return hasattr(X, "__dask_graph__")


def is_source(X: Any) -> bool:
    """Say whether X is a source of batches, not an array, a sparse matrix or a data frame."""
    if isinstance(X, (str, bytes, os.PathLike)):
        raise TypeError(
            f"X={X!r} is the name of a file, not data; open it with "
            "gzkcore.open_batches(X, target=...) or numpy.load(X, mmap_mode='r')"
        )
    check_table(X)
    if is_dask(X):
        return True
    if any(hasattr(X, name) for name in ("shape", "__array__", "__dataframe__")):
        return False
    if isinstance(X, (list, tuple)):  # of batches, or of rows
        first = X[0] if X else None
        first = first[0] if isinstance(first, tuple) and first else first
        return is_dask(first) or len(getattr(first, "shape", ())) == 2
    return hasattr(X, "__iter__")


def can_reread(X: Any) -> bool:
    """Say whether a source can be read more than once."""
    return is_dask(X) or not is_source(X) or _starts_anew(X)


def _starts_anew(batches: Any) -> bool:
    return iter(batches) is not iter(batches)


def has_rows(X: Any) -> bool:
    """Say whether a batch has rows; batches of a filtered table may have none."""
    shape = getattr(X, "shape", None)
    if shape is None:
        return not isinstance(X, (list, tuple)) or len(X) > 0
    return not shape or shape[0] != 0


@contextlib.contextmanager
def in_batch(number: int, what: str = "batch") -> Iterator[None]:
    """Name the batch in a ValueError about its rows."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{what} {number}, counted from 0: {error}") from error


class Source:
    """Batches of this process, read in turn.

    Parameters
    ----------
    batches : iterable
        Of X, (X, y) or (X, y, sample_weight).
    is_one : bool, default=False
        Whether there is a single array, whose errors name no batch.
    """

    def __init__(self, batches: Any, *, is_one: bool = False) -> None:
        self.batches, self._is_one = batches, is_one
        self.reread = _starts_anew(batches)

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        for batch in self.batches:
            parts = batch if isinstance(batch, (tuple, list)) else (batch,)
            if isinstance(batch, list) and not (batch and np.ndim(batch[0]) == 2):
                parts = (batch,)  # a list of rows
            if not 1 <= len(parts) <= 3:
                raise ValueError(
                    f"a batch has {len(parts)} parts; a source must yield X, (X, y) or (X, y, "
                    "sample_weight)"
                )
            yield (*parts, None, None)[:3]

    def reduce(
        self, work: Callable[..., Any], merge: Callable[[Sequence[Any]], Any], *args: Any
    ) -> Any:
        """Return the merged results of work(batch, *args) for all batches.

        `merge` takes consecutive results and changes none of them. Batches without rows are left
        out.
        """
        # Results of 1, 2, 4 ... batches, so that each is merged rarely.
        levels: list[list[Any]] = [[]]
        for number, batch in enumerate(self):
            if not has_rows(batch[0]):
                continue
            with contextlib.nullcontext() if self._is_one else in_batch(number):
                levels[0].append(work(Batch(*batch, number), *args))
            for level, parts in enumerate(levels):
                if len(parts) < 2:
                    break
                levels += [[]] * (level + 1 == len(levels))
                levels[level + 1] = [*levels[level + 1], merge(parts)]
                levels[level] = []
        rest = [part for parts in reversed(levels) for part in parts]
        return merge(rest) if len(rest) > 1 else rest[0] if rest else None


def rows_of(X: Any) -> Any:
    """Return rows as features take them: a data frame as an array."""
    return X if sparse.issparse(X) else np.asarray(X)


def type_of(X: Any) -> Any:
    """Return the type of features of a source's rows: float32 if all columns are, else float64."""
    kinds = set(getattr(X, "dtypes", ())) or {getattr(X, "dtype", None)}
    return np.float32 if kinds == {np.dtype(np.float32)} else np.float64
