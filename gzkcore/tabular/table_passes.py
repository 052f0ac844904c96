"""Tables that are read in passes: the first draws random rows, later ones read all rows, encoded.

The rows drawn determine the encoding and the kernel; the model is fitted to all rows.
"""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from gzkcore._util.random import batch_keys, least_keys
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.validation import check_some_weight, check_weights
from gzkcore._util.wording import counted
from gzkcore.passes.streams import Slices
from gzkcore.rows.frames import Frame
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import Batch, has_rows, in_batch, is_source

from .table_encoder import TableEncoder

# A choice, both: rows that are drawn, and values in them.
DRAWN_ROWS, DRAWN_VALUES = 1 << 14, 1 << 27
SLICE_VALUES = 1 << 22  # of an array on disk that are read at a time

Targets: TypeAlias = Callable[[Any, Any], Doubles]  # of y and X: (n, n_targets)
EncodedBatch: TypeAlias = tuple[Doubles, Doubles, Doubles | None]  # rows, targets, weights


@dataclass
class Drawn:
    """Mergeable summary of a table: random rows, and how the targets of all are spread.

    Rows of weight 0 are counted, and are not there otherwise.
    """

    n_rows: int
    n_used: int  # of a weight that isn't 0
    total: float  # sum of the weights
    X: Any
    y: Any  # as given
    weight: Doubles | None
    keys: Integers  # of the rows drawn: the least of all rows' random keys
    largest: Doubles  # of the targets, and of these in its units:
    mean: Doubles
    squares: Doubles  # about the mean
    low: Doubles
    high: Doubles

    @classmethod
    def of(cls, batch: Batch, targets: Targets, most: int, seed: int) -> "Drawn":
        """Draw from a batch."""
        X = batch.X if hasattr(batch.X, "shape") else _as_array(batch.X)
        n_rows = _num_samples(X)
        Y = targets(_given(batch.y), X)
        weight = check_weights(batch.sample_weight, Y)
        used = np.arange(n_rows) if weight is None else np.flatnonzero(weight)
        Y, w = Y[used], np.ones(len(used)) if weight is None else weight[used]
        largest, total = np.abs(Y).max(axis=0, initial=0.0), float(w.sum())
        Y = Y / np.where(largest, largest, 1.0)
        mean = w @ Y / (total or 1.0)
        keys = batch_keys(batch.number, seed, n_rows)[used]
        drawn = least_keys(keys, _most_of(most, X))
        rows = used[drawn]
        return cls(
            n_rows, len(used), total, rows_of_table(X, rows), np.asarray(batch.y)[rows],
            None if weight is None else weight[rows], keys[drawn], largest, mean,
            w @ np.square(Y - mean), Y.min(axis=0, initial=1.0) * largest,
            Y.max(axis=0, initial=-1.0) * largest,
        )  # fmt: skip

    @staticmethod
    def merge(parts: Sequence["Drawn"], most: int) -> "Drawn":
        """Put what was drawn from consecutive batches together."""
        largest = np.max([part.largest for part in parts], axis=0)
        units = [part.largest / np.where(largest, largest, 1.0) for part in parts]
        total = sum(part.total for part in parts)
        in_units = list(zip(parts, units, strict=True))
        mean = sum(part.total * part.mean * unit for part, unit in in_units) / (total or 1.0)
        squares = sum(
            part.squares * unit**2 + part.total * np.square(part.mean * unit - mean)
            for part, unit in in_units
        )
        X, keys = stack_tables([part.X for part in parts]), np.concatenate([p.keys for p in parts])
        y, weight = np.concatenate([part.y for part in parts]), None
        if any(part.weight is not None for part in parts):
            weights = [np.ones(len(p.keys)) if p.weight is None else p.weight for p in parts]
            weight = np.concatenate(weights)
        drawn = least_keys(keys, _most_of(most, X))
        used = [part for part in parts if part.n_used] or parts
        return Drawn(
            sum(part.n_rows for part in parts), sum(part.n_used for part in parts), total,
            rows_of_table(X, drawn), y[drawn], None if weight is None else weight[drawn],
            keys[drawn], largest, np.asarray(mean), np.asarray(squares),
            np.min([part.low for part in used], axis=0),
            np.max([part.high for part in used], axis=0),
        )  # fmt: skip

    @property
    def complete(self) -> bool:
        """Whether these are all rows of positive weight."""
        return self.n_used == len(self.keys)


class EncodedTable:
    """All rows of a table that is read in passes, encoded, with targets of mean 0 and variance 1.

    Parameters
    ----------
    source : Source or DaskSource
    encoder : TableEncoder
    targets : callable
    drawn : Drawn
        From this source.

    Attributes
    ----------
    means, scales : ndarray of shape (n_targets,)
        Of the targets; the scale of a constant is 0.
    """

    def __init__(self, source: Any, encoder: TableEncoder, targets: Targets, drawn: Drawn) -> None:
        self.source, self.encoder, self._targets = source, encoder, targets
        self.n_rows, self.n_used = drawn.n_rows, drawn.n_used
        self._weighted, self._mean_weight = drawn.weight is not None, drawn.total / drawn.n_used
        self._largest = np.where(drawn.largest, drawn.largest, 1.0)
        constant = drawn.low == drawn.high
        self._middle = np.where(constant, drawn.low / self._largest, drawn.mean)
        spread = np.where(constant, 0.0, np.sqrt(drawn.squares / drawn.total))
        self._spread = np.where(spread, spread, 1.0)
        self.means, self.scales = self._middle * self._largest, spread * self._largest

    def standardised(self, Y: Doubles) -> Doubles:
        """Return targets of mean 0 and variance 1."""
        return np.asarray((Y / self._largest - self._middle) / self._spread)

    def encoded(self, X: Any, y: Any, sample_weight: Any) -> EncodedBatch:
        """Return the rows of a batch, their targets and weights of mean 1."""
        rows = self.encoder.transform(X)
        weight = check_weights(sample_weight, rows)
        if weight is None and self._weighted:
            weight = np.ones(len(rows))
        weight = None if weight is None else weight / self._mean_weight
        return rows, self.standardised(self._targets(_given(y), rows)), weight

    def batches(self) -> tuple[Any, ...]:
        """Return what a learner's `fit` takes: a source, or Dask arrays."""
        if not hasattr(self.source, "reduce_each"):
            return (self,)
        from gzkcore.rows.dask import map_batches

        widths = [len(self.encoder.sources_), len(self.means)]
        return map_batches(self.encoded, self.source, widths, weighted=self._weighted)

    def __iter__(self) -> Iterator[EncodedBatch]:
        seen = 0
        for number, batch in enumerate(self.source):
            if has_rows(batch[0]):
                with in_batch(number):
                    encoded = self.encoded(*batch)
                seen += len(encoded[0])
                yield encoded
        if seen != self.n_rows:
            raise ValueError(
                f"the source yielded {counted(self.n_rows, 'row')} in the first pass and {seen:,} "
                "in a later one; every iter() of it must start again and give the same rows"
            )


def source_of(X: Any, y: Any, sample_weight: Any) -> Any:
    """Return the reader of a table that is read in passes: a source, or an array on disk.

    Raises
    ------
    ValueError
        For an iterator, whose rows come once.
    """
    if is_source(X):
        source = as_source(X, y, sample_weight)
        if not source.reread:
            raise ValueError(
                "X is an iterator, which gives its rows once, but a fit reads them several times; "
                "pass an object whose iter() starts again, such as gzkcore.open_batches(...) or a "
                "list of batches"
            )
        return source
    weight = check_weights(sample_weight, X)
    return as_source(Slices(X, y, weight, slice_rows(X)))


def on_disk(X: Any) -> bool:
    """Say whether X is an array on disk, whose rows are not to be copied into memory."""
    return isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "biuf"


def slice_rows(X: Any) -> int:
    """Return how many rows of an array on disk are read at a time."""
    return max(1, SLICE_VALUES // max(1, int(X.shape[1])))


def draw(source: Any, targets: Targets, seed: int) -> Drawn:
    """Draw rows at random by one pass over a source."""
    of = functools.partial(Drawn.of, targets=targets, most=DRAWN_ROWS, seed=seed)
    drawn: Drawn | None = source.reduce(of, functools.partial(Drawn.merge, most=DRAWN_ROWS))
    if drawn is None:
        raise ValueError("the source yields no batches with rows; pass a source with one or more")
    check_some_weight(drawn.n_used)
    return drawn


def _most_of(most: int, X: Any) -> int:
    """Return how many rows of this width are drawn."""
    width = X.shape[1] if len(X.shape) > 1 else 1
    return max(1, min(most, DRAWN_VALUES // max(1, width)))


def _given(y: Any) -> Any:
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: the source must yield (X, y)"
        )
    return y


def _as_array(X: Any) -> Any:
    """Return a list of rows as an array; of numbers and text each stays what it is."""
    rows = np.asarray(X)
    return np.asarray(X, dtype=object) if rows.dtype.kind in "US" else rows


def rows_of_table(X: Any, rows: Integers) -> Any:
    """Return some rows of an array, a sparse matrix or a data frame."""
    return X.take(rows) if isinstance(X, Frame) else _safe_indexing(X, rows)


def stack_tables(parts: list[Any]) -> Any:
    """Put rows of tables of the same kind and columns together."""
    first = parts[0]
    if isinstance(first, Frame):
        return Frame.stacked(parts)
    if hasattr(first, "columns") and hasattr(first, "dtypes"):
        return _stack_frames(parts)
    widths = [part.shape[1] for part in parts if len(part.shape) > 1]
    wrong = next((width for width in widths if width != widths[0]), None)
    if wrong is not None:
        raise ValueError(
            f"X has {counted(wrong, 'feature')}, but earlier batches had {widths[0]}; give batches "
            "with the same columns"
        )
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(parts, format="csr")
    kinds = {part.dtype.kind in "biufc" for part in parts}
    return np.concatenate([part if len(kinds) == 1 else part.astype(object) for part in parts])


def _stack_frames(parts: list[Any]) -> Any:
    names = list(parts[0].columns)
    for part in parts:
        if not hasattr(part, "columns") or set(part.columns) != set(names):
            raise ValueError(
                f"the columns of a batch are not those of the first, {names[:8]}; give batches "
                "with the same columns"
            )
    library = sys.modules[type(parts[0]).__module__.partition(".")[0]]
    if library.__name__ == "polars":
        return library.concat([part[names] for part in parts], how="vertical_relaxed")
    return library.concat([part[names] for part in parts], ignore_index=True)


def predicted(work: Callable[[Any], Any], X: Any) -> Any:
    """Return work(X), of an array on disk put together of pieces."""
    if not on_disk(X) or len(X) <= slice_rows(X):
        return work(X)
    step = slice_rows(X)
    parts = [work(X[start : start + step]) for start in range(0, len(X), step)]
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))
    return np.concatenate(parts)
