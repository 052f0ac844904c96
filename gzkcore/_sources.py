"""Where rows come from: arrays, iterables of batches, files, Dask collections; one way to read all.

A *source* is what a learner's `fit` takes besides arrays, sparse matrices and data frames: an
iterable of batches, each `X`, `(X, y)` or `(X, y, sample_weight)`, or a Dask collection. If `iter`
gives a new iterator each time, it can be read again; an iterator itself, such as a generator, is
read once.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.frozen import FrozenEstimator

from ._typing import Doubles, Integers
from ._wording import counted

# Random rows that features are fitted to where they need rows, and their values.
SAMPLE_ROWS = 1 << 14
SAMPLE_VALUES = 1 << 21

# Norms that are kept one by one; of more, so many bits of the mantissa (a relative 1e-4).
EXACT_NORMS = 1 << 16
NORM_BITS = 13


class Batch(NamedTuple):
    """Rows of a source, and which batch they are."""

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
            "gzkcore.datasets.open_batches(X, target=...) or numpy.load(X, mmap_mode='r')"
        )
    if is_dask(X):
        return True
    if any(hasattr(X, name) for name in ("shape", "__array__", "__dataframe__")):
        return False
    if isinstance(X, (list, tuple)):  # of batches, or of rows
        first = X[0] if X else None
        first = first[0] if isinstance(first, tuple) and first else first
        return is_dask(first) or len(getattr(first, "shape", ())) == 2
    return hasattr(X, "__iter__") and not isinstance(X, (dict, set, frozenset))


def can_reread(X: Any) -> bool:
    """Say whether a source can be read more than once."""
    return is_dask(X) or not is_source(X) or _starts_anew(X)


def _starts_anew(given: Any) -> bool:
    return iter(given) is not iter(given)


def has_rows(X: Any) -> bool:
    """Say whether a batch has rows: those of a filtered table may have none, and are left out."""
    shape = getattr(X, "shape", None)
    if shape is None:
        return not isinstance(X, (list, tuple)) or len(X) > 0
    return not shape or shape[0] != 0


def batches(X: Any, y: Any = None, sample_weight: Any = None) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (X, y, sample_weight) for each batch of a source; arrays are one batch."""
    yield from as_source(X, y, sample_weight)


def as_source(X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Return the reader of X, whatever it is."""
    if is_dask(X):
        from .dask import DaskSource

        return DaskSource(X, y, sample_weight)
    if not is_source(X):
        return Source([(X, y, sample_weight)])
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise ValueError(
                f"{name} was passed beside a source of batches; let the source yield "
                "(X, y) or (X, y, sample_weight)"
            )
    return Source(X)


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
    given : iterable
        Of X, (X, y) or (X, y, sample_weight).
    """

    def __init__(self, given: Any) -> None:
        self.given = given
        self.reread = _starts_anew(given)

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        for batch in self.given:
            parts = batch if isinstance(batch, (tuple, list)) else (batch,)
            if isinstance(batch, list) and not (batch and np.ndim(batch[0]) == 2):
                parts = (batch,)  # a list of rows
            if not 1 <= len(parts) <= 3:
                raise ValueError(
                    f"a batch has {len(parts)} parts; a source yields X, (X, y) or "
                    "(X, y, sample_weight)"
                )
            yield (*parts, None, None)[:3]

    def reduce(
        self, work: Callable[..., Any], merge: Callable[[Sequence[Any]], Any], *args: Any
    ) -> Any:
        """Return the merged results of work(batch, *args) for all batches.

        `merge` takes consecutive results and changes none of them. Batches without rows are left
        out.
        """
        levels: list[list[Any]] = [[]]  # results of 1, 2, 4 ... batches: each is merged rarely
        for number, batch in enumerate(self):
            if not has_rows(batch[0]):
                continue
            with in_batch(number):
                levels[0].append(work(Batch(*batch, number), *args))
            for level, parts in enumerate(levels):
                if len(parts) < 2:
                    break
                levels += [[]] * (level + 1 == len(levels))
                levels[level + 1] = [*levels[level + 1], merge(parts)]
                levels[level] = []
        left = [part for parts in reversed(levels) for part in parts]
        return merge(left) if len(left) > 1 else left[0] if left else None


# ---- what features ask of rows they never see together


@dataclass
class Survey:
    """Mergeable summary of rows: numbers, means, squares, and random rows."""

    n_rows: int
    mean: Doubles  # of the columns
    squares: Doubles  # about the mean, by column
    rows: Any  # a random sample in order, or all rows
    keys: Integers  # of the sample: the least of all rows' random keys
    y_sum: Any  # NaN where targets are none, no numbers or not alike

    @classmethod
    def of(cls, batch: Batch) -> "Survey":
        """Survey a batch."""
        rows = rows_of(batch.X)
        if rows.ndim != 2 or 0 in rows.shape or rows.dtype.kind not in "biuf":
            raise ValueError(
                f"X has shape {rows.shape} and dtype {rows.dtype}; pass two-dimensional batches "
                "of numbers"
            )
        if rows.dtype != np.float32:
            rows = rows.astype(np.float64, copy=False)
        mean = _column_sums(rows) / rows.shape[0]
        squares = _column_squares(rows, mean)
        if not np.isfinite(squares).all():
            _raise_not_finite(rows)
        keys = np.random.default_rng([batch.number, 0x5EED]).integers(0, 2**62, rows.shape[0])
        kept = _least(keys, rows.shape[1])
        y = np.asarray(batch.y)
        y_sum = y.sum(axis=0, dtype=np.float64) if y.dtype.kind in "biuf" else np.array(np.nan)
        whole = kept.size == rows.shape[0]
        return cls(rows.shape[0], mean, squares, rows if whole else rows[kept], keys[kept], y_sum)

    @staticmethod
    def merge(parts: Sequence["Survey"]) -> "Survey":
        """Put surveys of consecutive batches together."""
        first, n = parts[0], np.array([part.n_rows for part in parts], dtype=np.float64)
        for part in parts:
            if part.mean.size != first.mean.size:
                raise ValueError(
                    f"X has {counted(part.mean.size, 'feature')}, but the batches before "
                    f"{first.mean.size}; give batches of the same columns"
                )
        mean = sum(part.mean * (share / n.sum()) for part, share in zip(parts, n, strict=True))
        squares = sum(
            part.squares + share * np.square(part.mean - mean)
            for part, share in zip(parts, n, strict=True)
        )
        keys = np.concatenate([part.keys for part in parts])
        kept = _least(keys, first.mean.size)
        rows = stack([part.rows for part in parts])
        sums = [part.y_sum for part in parts]
        alike = all(np.shape(one) == np.shape(sums[0]) for one in sums)
        y_sum = np.sum(sums, axis=0) if alike else np.array(np.nan)
        if kept.size < keys.size:
            rows, keys = rows[kept], keys[kept]
        return Survey(int(n.sum()), np.asarray(mean), np.asarray(squares), rows, keys, y_sum)

    @property
    def complete(self) -> bool:
        """Whether `rows` are all there are."""
        return self.n_rows == int(self.keys.size)

    @property
    def variance(self) -> float:
        """Variance of all entries together."""
        middle = self.mean.mean()
        return float(np.mean(self.squares / self.n_rows + np.square(self.mean - middle)))


class Norms:
    """Mergeable record of norms: the least, the largest, and quantiles.

    Up to EXACT_NORMS values are kept as they are; more are counted by their first NORM_BITS bits.
    The result depends on the values alone, not on how they were split.
    """

    def __init__(self, values: Doubles) -> None:
        self.low, self.high = float(values.min()), float(values.max())
        self.rounded = False
        self.values, self.counts = np.unique(values, return_counts=True)
        self._compress()

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        """Put records together."""
        made = cls.__new__(cls)
        made.low = min(part.low for part in parts)
        made.high = max(part.high for part in parts)
        made.rounded = any(part.rounded for part in parts)
        values = np.concatenate([part.values for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        made.values, made.counts = _counted(_round(values) if made.rounded else values, counts)
        made._compress()
        return made

    def _compress(self) -> None:
        if not self.rounded and self.values.size > EXACT_NORMS:
            self.rounded = True
            self.values, self.counts = _counted(_round(self.values), self.counts)

    def min(self) -> float:
        """Return the least."""
        return self.low

    def max(self) -> float:
        """Return the largest."""
        return self.high

    def quantile(self, q: Doubles) -> Doubles:
        """Return quantiles as `numpy.quantile` does, of the values as they are kept."""
        upto = np.cumsum(self.counts)
        place = q * (upto[-1] - 1)
        below = np.floor(place)
        low, high = (
            self.values[np.searchsorted(upto, np.minimum(k, upto[-1] - 1), side="right")]
            for k in (below, below + 1)
        )
        found: Doubles = np.clip(low + (place - below) * (high - low), self.low, self.high)
        return found


def rows_of(X: Any) -> Any:
    """Return rows as features take them: a data frame as an array."""
    return X if sparse.issparse(X) else np.asarray(X)


def type_of(X: Any) -> Any:
    """Return the type of what is made of a source's rows: float32 of such, else float64."""
    kinds = set(getattr(X, "dtypes", ())) or {getattr(X, "dtype", None)}
    return np.float32 if kinds == {np.dtype(np.float32)} else np.float64


def _round(values: Doubles) -> Doubles:
    """Replace values by the middle of all with the same first bits."""
    step = np.int64(1) << (52 - NORM_BITS)
    bits = np.ascontiguousarray(values).view(np.int64)
    rounded: Doubles = ((bits & ~(step - 1)) + step // 2).view(np.float64)
    return rounded


def _counted(values: Doubles, counts: Integers) -> tuple[Doubles, Integers]:
    different, place = np.unique(values, return_inverse=True)
    return different, np.bincount(place, counts, different.size).astype(np.intp)


def sample_size(width: int) -> int:
    """Count the rows of a sample of rows so wide."""
    return max(1, min(SAMPLE_ROWS, SAMPLE_VALUES // width))


def _least(keys: NDArray[np.int64], width: int) -> Integers:
    """Return, in order, the places of the least keys: all, or as many as a sample has."""
    most = sample_size(width)
    if keys.size <= most:
        return np.arange(keys.size)
    return np.sort(np.argpartition(keys, most)[:most])


def stack(parts: list[Any]) -> Any:
    """Put rows of several batches together: of dense and sparse ones, sparse."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def _column_sums(rows: Any) -> Doubles:
    """Sum columns in double: sparse rows sum in their own type, whatever `dtype` says."""
    if sparse.issparse(rows):
        rows = rows.astype(np.float64)
    return np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel()


def _column_squares(rows: Any, mean: Doubles) -> Doubles:
    """Sum squares about the mean, by column."""
    if sparse.issparse(rows):
        squares = _column_sums(rows.astype(np.float64).power(2))
        about: Doubles = np.maximum(squares - rows.shape[0] * np.square(mean), 0.0)
        return about
    total = np.zeros(rows.shape[1])
    for start in range(0, rows.shape[0], 8192):
        part = rows[start : start + 8192] - mean
        total += np.einsum("ij,ij->j", part, part)
    return total


def _raise_not_finite(rows: Any) -> None:
    if sparse.issparse(rows):
        entries = sparse.coo_array(rows)
        bad = np.stack([entries.row, entries.col], axis=1)[~np.isfinite(entries.data)]
    else:
        bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = min(bad.tolist())
        raise ValueError(
            f"Input X contains NaN or infinity. The first is in row {row}, column {column}, both "
            "counted from 0; leave such rows out or fill them in"
        )
    raise ValueError("the columns of X are so large that their squares overflow; scale them")


# ---- fitting features to a source


def survey_of(source: Any) -> Survey:
    """Survey all rows of a source."""
    survey: Survey | None = source.reduce(Survey.of, Survey.merge)
    if survey is None:
        raise ValueError("the source yields no batches; give it one or more")
    return survey


def asks_no_rows(features: Any) -> bool:
    """Say whether features come out the same whatever rows they are fitted to."""
    known = getattr(features, "_asks_no_rows", None)
    return isinstance(features, FrozenEstimator) or (known is not None and bool(known()))


def fit_features(features: Any, source: Any, survey: Survey) -> Any:
    """Fit features to a source that can be read again, given the survey of its rows.

    Up to SAMPLE_ROWS rows are put together, and the fit is the ordinary one. Of more rows a random
    sample takes their place, and what is known of all goes with it: the variance, for
    gamma="scale", and further passes, `source.reduce`, as `features._whole`.
    """
    if survey.complete:
        return features.fit(survey.rows)
    given = {
        name: value
        for name, value in features.get_params(deep=False).items()
        if name in ("kernel", "gamma")
        and not isinstance(getattr(type(features), name, None), property)
    }
    try:
        for name, value in given.items():
            setattr(features, name, settled(name, value, survey))
        features._whole = Whole(source, survey)
        return features.fit(survey.rows)
    finally:
        vars(features).pop("_whole", None)
        for name, value in given.items():
            setattr(features, name, value)


def fit_like(outer: Any, inner: Any, X: Any, columns: Any = None) -> Any:
    """Fit a part of features to the rows, or to columns, that the features are being fitted to."""
    whole = vars(outer).get("_whole")
    if whole is None:
        return inner.fit(X)
    try:
        inner._whole = whole if columns is None else whole.of(columns)
        return inner.fit(X)
    finally:
        del inner._whole


@dataclass
class Whole:
    """All rows, or some columns of them, for features that are fitted to a sample."""

    source: Any
    survey: Survey
    columns: Any = None

    def of(self, columns: Any) -> "Whole":
        """Return some columns of the rows, where there were all."""
        part = self.survey
        survey = replace(
            part,
            mean=part.mean[columns],
            squares=part.squares[columns],
            rows=part.rows[:, columns],
        )
        return Whole(self.source, survey, columns)

    def resolve(self, kernel: Any, X: Any) -> Any:
        """Resolve a kernel on all rows, X being the sample."""
        return settled("kernel", kernel, self.survey).resolve(X)


def settled(name: str, value: Any, survey: Survey) -> Any:
    """Return a kernel, or a gamma of scikit-learn's, with "scale" worked out from all rows."""
    if name == "gamma":
        variance = survey.variance * survey.mean.size
        return (1.0 / variance if variance else 1.0) if value == "scale" else value
    if isinstance(value, str) or hasattr(value, "resolve"):
        from .kernels import as_kernel

        kernel = as_kernel(value)
        if isinstance(gamma := getattr(kernel, "gamma", None), str) and gamma == "scale":
            number = kernel._from_spread(survey.mean.size, survey.variance)
            return type(kernel)(**kernel.get_params(deep=False) | {"gamma": number})
        return kernel
    return value
