"""Statistics of rows in one pass: mergeable means, squares, norms and random samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from gzkcore._util.random import batch_keys, least_keys
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.validation import check_weights, raise_not_finite
from gzkcore._util.wording import counted

from .coded import CodedRows
from .sources import Batch, rows_of

# A sample has at most so many random rows, with at most so many values.
SAMPLE_ROWS = 1 << 14
SAMPLE_VALUES = 1 << 21

# Up to so many norms are exact; of more, so many bits of the mantissa (a relative error of 1e-4).
EXACT_NORMS = 1 << 16
NORM_BITS = 13


# ---- surveys of rows that are never together in memory


@dataclass
class Survey:
    """A mergeable summary of rows: counts, means, squares, and random rows.

    Rows of weight 0 are counted in `n_rows` only.
    """

    n_rows: int
    n_used: int  # rows whose weight isn't 0
    total: float  # sum of the weights
    mean: Doubles  # weighted, of each column
    squares: Doubles  # weighted sum of squares about the mean, of each column
    rows: Any  # a random sample in order, or all used rows
    weight: Any  # of the sample; None if all are 1
    keys: Integers  # of the sample: the least of all rows' random keys
    y_sum: Any  # NaN without targets, or if they are not numbers of one shape
    targets: Any = None  # of the sample; None if there are none, too many or various shapes

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
        y = np.asarray(batch.y)
        y_sum = y.sum(axis=0, dtype=np.float64) if y.dtype.kind in "biuf" else np.array(np.nan)
        n_rows = rows.shape[0]
        keys = batch_keys(batch.number, 0x5EED, n_rows)
        few = y.size * sample_size(rows.shape[1]) <= n_rows * SAMPLE_VALUES
        targets = y if few and y.shape[:1] == (n_rows,) else None
        rows, weight, used = without_zeros(rows, batch.sample_weight)
        if used is not None:
            keys, targets = keys[used], None if targets is None else targets[used]
        total = float(rows.shape[0] if weight is None else weight.sum())
        mean = _column_sums(rows, weight) / (total or 1.0)
        squares = _column_squares(rows, mean, weight)
        if not np.isfinite(squares).all():
            raise_not_finite(rows_of(batch.X))
            raise ValueError(
                "the columns of X are so large that their squares overflow; scale them"
            )
        sample = least_keys(keys, sample_size(rows.shape[1]))
        if sample.size < keys.size:
            rows, weight = rows[sample], None if weight is None else weight[sample]
            targets = None if targets is None else targets[sample]
        return cls(
            n_rows, keys.size, total, mean, squares, rows, weight, keys[sample], y_sum, targets
        )

    @staticmethod
    def merge(parts: Sequence["Survey"]) -> "Survey":
        """Put surveys of consecutive batches together."""
        first, totals = parts[0], np.array([part.total for part in parts])
        for part in parts:
            if part.mean.size != first.mean.size:
                raise ValueError(
                    f"X has {counted(part.mean.size, 'feature')}, but earlier batches had "
                    f"{first.mean.size}; give batches with the same columns"
                )
        total = float(totals.sum())
        mean = sum(part.mean * (part.total / (total or 1.0)) for part in parts)
        squares = sum(part.squares + part.total * np.square(part.mean - mean) for part in parts)
        keys = np.concatenate([part.keys for part in parts])
        sample = least_keys(keys, sample_size(first.mean.size))
        rows = stack([part.rows for part in parts])
        sums = [part.y_sum for part in parts]
        alike = all(np.shape(y_sum) == np.shape(sums[0]) for y_sum in sums)
        y_sum = np.sum(sums, axis=0) if alike else np.array(np.nan)
        weight = None
        if any(part.weight is not None for part in parts):
            weights = [np.ones(p.keys.size) if p.weight is None else p.weight for p in parts]
            weight = np.concatenate(weights)[sample]
        targets = None
        if all(np.shape(part.targets)[1:] == np.shape(first.targets)[1:] for part in parts) and (
            all(part.targets is not None for part in parts)
        ):
            targets = np.concatenate([part.targets for part in parts])[sample]
        if sample.size < keys.size:
            rows, keys = rows[sample], keys[sample]
        n_rows, n_used = sum(part.n_rows for part in parts), sum(part.n_used for part in parts)
        return Survey(
            n_rows, n_used, total, np.asarray(mean), np.asarray(squares), rows, weight, keys,
            y_sum, targets,
        )  # fmt: skip

    @property
    def complete(self) -> bool:
        """Whether `rows` are all used rows."""
        return self.n_used == self.keys.size

    @property
    def variance(self) -> float:
        """The variance of all entries together."""
        middle = self.mean.mean()
        return float(np.mean(self.squares / self.total + np.square(self.mean - middle)))


class Norms:
    """A mergeable record of norms: the least, the largest, and quantiles.

    Up to EXACT_NORMS values are exact; more are counted by their first NORM_BITS bits. The result
    depends on the values and their weights only, not on how they were split.
    """

    def __init__(self, values: Doubles, weight: Doubles | None = None) -> None:
        self.low, self.high = float(values.min()), float(values.max())
        self.rounded = False
        self.unit = 1.0 if weight is None else float(weight.min())
        self.values, self.counts = _counted(values, weight)
        self._compress()

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        """Put records together."""
        merged = cls.__new__(cls)
        merged.low = min(part.low for part in parts)
        merged.high = max(part.high for part in parts)
        merged.rounded = any(part.rounded for part in parts)
        merged.unit = min(part.unit for part in parts)
        values = np.concatenate([part.values for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        merged.values, merged.counts = _counted(
            _round(values) if merged.rounded else values, counts
        )
        merged._compress()
        return merged

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

    def largest_within(self, most: float) -> float:
        """Return the largest up to a limit, or 0."""
        if self.high <= most:
            return self.high
        return float(self.values[self.values <= most].max(initial=0.0))

    def quantile(self, q: Doubles) -> Doubles:
        """Return quantiles of the recorded values as `numpy.quantile` does.

        A value counts as often as the smallest weight goes into its own, if that weight is not lost
        in the rounding error of the sum.
        """
        cumulated = np.cumsum(self.counts)
        cumulated /= max(self.unit, cumulated[-1] * np.finfo(float).eps)
        place = q * (cumulated[-1] - 1)
        below = np.floor(place)
        low, high = (
            self.values[np.searchsorted(cumulated, np.minimum(k, cumulated[-1] - 1), side="right")]
            for k in (below, below + 1)
        )
        return np.asarray(np.clip(low + (place - below) * (high - low), self.low, self.high))


def _round(values: Doubles) -> Doubles:
    """Replace values by the middle of those with the same first bits."""
    step = np.int64(1) << (52 - NORM_BITS)
    bits = np.ascontiguousarray(values).view(np.int64)
    return ((bits & ~(step - 1)) + step // 2).view(np.float64)


def _counted(values: Doubles, counts: Doubles | None) -> tuple[Doubles, Doubles]:
    different, place = np.unique(values, return_inverse=True)
    return different, np.bincount(place, counts, different.size).astype(np.float64)


def sample_size(width: int) -> int:
    """Return the number of rows of a sample with so many columns."""
    return max(1, min(SAMPLE_ROWS, SAMPLE_VALUES // width))


def stack(parts: list[Any]) -> Any:
    """Put rows of several batches together; sparse if one batch is."""
    parts = [part.toarray() if isinstance(part, CodedRows) else part for part in parts]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def _column_sums(rows: Any, weight: Doubles | None) -> Doubles:
    """Sum columns in double: sparse rows sum in their own type, whatever `dtype` says."""
    if sparse.issparse(rows):
        rows = rows.astype(np.float64)
        return np.asarray(rows.sum(axis=0) if weight is None else weight @ rows).ravel()
    if weight is None:
        return np.asarray(rows.sum(axis=0, dtype=np.float64))
    return np.asarray(np.einsum("i,ij->j", weight, rows, dtype=np.float64, casting="safe"))


def _column_squares(rows: Any, mean: Doubles, weight: Doubles | None) -> Doubles:
    """Sum squares about the mean, by column."""
    if sparse.issparse(rows):
        squares = _column_sums(rows.astype(np.float64).power(2), weight)
        total = rows.shape[0] if weight is None else weight.sum()
        return np.asarray(np.maximum(squares - total * np.square(mean), 0.0))
    total = np.zeros(rows.shape[1])
    for start in range(0, rows.shape[0], 8192):
        part = rows[start : start + 8192] - mean
        if weight is not None:
            part *= np.sqrt(weight[start : start + 8192, None])
        total += np.einsum("ij,ij->j", part, part)
    return total


def without_zeros(rows: Any, sample_weight: Any) -> tuple[Any, Doubles | None, Integers | None]:
    """Return the rows whose weight is not 0, their weights (None if not given) and their indices.

    The indices are None if these are all rows.
    """
    weight = check_weights(sample_weight, rows)
    if weight is None or weight.all():
        return rows, weight, None
    used = np.flatnonzero(weight)
    return rows[used], weight[used], used


# ---- surveying a source


def survey_of(source: Any) -> Survey:
    """Survey all rows of a source."""
    survey: Survey | None = source.reduce(Survey.of, Survey.merge)
    if survey is None:
        raise ValueError("the source yields no batches; pass a source with one or more")
    if survey.n_used == 0:
        raise ValueError("sample_weight is zero for every row; give some a weight > 0")
    return survey
