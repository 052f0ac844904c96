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

from .sources import Batch, rows_of

# Random rows that features are fitted to where they need rows, and their values.
SAMPLE_ROWS = 1 << 14
SAMPLE_VALUES = 1 << 21

# Norms that are kept one by one; of more, so many bits of the mantissa (a relative 1e-4).
EXACT_NORMS = 1 << 16
NORM_BITS = 13


# ---- what features ask of rows they never see together


@dataclass
class Survey:
    """Mergeable summary of rows: numbers, means, squares, and random rows.

    Rows of weight 0 are counted, and are not there otherwise.
    """

    n_rows: int
    n_used: int  # of a weight that isn't 0
    total: float  # sum of the weights
    mean: Doubles  # of the columns, weighted
    squares: Doubles  # about the mean, by column, weighted
    rows: Any  # a random sample in order, or all rows in use
    weight: Any  # of the sample, or None: 1 each
    keys: Integers  # of the sample: the least of all rows' random keys
    y_sum: Any  # NaN without targets, or where they are not numbers of one shape
    targets: Any = None  # of the sample; None without any, for too many, or for various shapes

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
        kept = least_keys(keys, sample_size(rows.shape[1]))
        if kept.size < keys.size:
            rows, weight = rows[kept], None if weight is None else weight[kept]
            targets = None if targets is None else targets[kept]
        return cls(
            n_rows, keys.size, total, mean, squares, rows, weight, keys[kept], y_sum, targets
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
        kept = least_keys(keys, sample_size(first.mean.size))
        rows = stack([part.rows for part in parts])
        sums = [part.y_sum for part in parts]
        alike = all(np.shape(one) == np.shape(sums[0]) for one in sums)
        y_sum = np.sum(sums, axis=0) if alike else np.array(np.nan)
        weight = None
        if any(part.weight is not None for part in parts):
            given = [np.ones(p.keys.size) if p.weight is None else p.weight for p in parts]
            weight = np.concatenate(given)[kept]
        targets = None
        if all(np.shape(part.targets)[1:] == np.shape(first.targets)[1:] for part in parts) and (
            all(part.targets is not None for part in parts)
        ):
            targets = np.concatenate([part.targets for part in parts])[kept]
        if kept.size < keys.size:
            rows, keys = rows[kept], keys[kept]
        n_rows, n_used = sum(part.n_rows for part in parts), sum(part.n_used for part in parts)
        return Survey(
            n_rows, n_used, total, np.asarray(mean), np.asarray(squares), rows, weight, keys,
            y_sum, targets,
        )  # fmt: skip

    @property
    def complete(self) -> bool:
        """Whether `rows` are all that are in use."""
        return self.n_used == self.keys.size

    @property
    def variance(self) -> float:
        """Variance of all entries together."""
        middle = self.mean.mean()
        return float(np.mean(self.squares / self.total + np.square(self.mean - middle)))


class Norms:
    """Mergeable record of norms: the least, the largest, and quantiles.

    Up to EXACT_NORMS values are kept as they are; more are counted by their first NORM_BITS bits.
    The result depends on the values and their weights alone, not on how they were split.
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
        made = cls.__new__(cls)
        made.low = min(part.low for part in parts)
        made.high = max(part.high for part in parts)
        made.rounded = any(part.rounded for part in parts)
        made.unit = min(part.unit for part in parts)
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

    def largest_within(self, most: float) -> float:
        """Return the largest up to a limit, or 0."""
        if self.high <= most:
            return self.high
        return float(self.values[self.values <= most].max(initial=0.0))

    def quantile(self, q: Doubles) -> Doubles:
        """Return quantiles as `numpy.quantile` does, of the values as they are kept.

        Each is counted as often as its weight holds the smallest one, if that is no less than what
        the sum can tell.
        """
        upto = np.cumsum(self.counts)
        upto /= max(self.unit, upto[-1] * np.finfo(float).eps)
        place = q * (upto[-1] - 1)
        below = np.floor(place)
        low, high = (
            self.values[np.searchsorted(upto, np.minimum(k, upto[-1] - 1), side="right")]
            for k in (below, below + 1)
        )
        return np.asarray(np.clip(low + (place - below) * (high - low), self.low, self.high))


def _round(values: Doubles) -> Doubles:
    """Replace values by the middle of all with the same first bits."""
    step = np.int64(1) << (52 - NORM_BITS)
    bits = np.ascontiguousarray(values).view(np.int64)
    return ((bits & ~(step - 1)) + step // 2).view(np.float64)


def _counted(values: Doubles, counts: Doubles | None) -> tuple[Doubles, Doubles]:
    different, place = np.unique(values, return_inverse=True)
    return different, np.bincount(place, counts, different.size).astype(np.float64)


def sample_size(width: int) -> int:
    """Count the rows of a sample of rows so wide."""
    return max(1, min(SAMPLE_ROWS, SAMPLE_VALUES // width))


def stack(parts: list[Any]) -> Any:
    """Put rows of several batches together: of dense and sparse ones, sparse."""
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
    """Leave out rows of weight 0; return the others, their weights, and which they are.

    None stands for weights that aren't given, and for all rows.
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
