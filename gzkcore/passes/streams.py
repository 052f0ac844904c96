"""Reading sources into accumulators, batch by batch or on a cluster, with checkpoints.

A learner reads all rows through a `Reader`. For arrays and sources alike, its `fit` calls

    reader.begin(self)                           checks arrays, or the first batch
    reader.fit(features)                         a pass, if features need to know all rows
    reader.accumulate(self, accumulator)         the pass

`self._rows(X, y, sample_weight, reset=False)` checks rows: arrays all at once, sources batch by
batch. `self._summands` turns checked rows into the input of the accumulator.
"""

import contextlib
import copy
import functools
import hashlib
import inspect
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

from gzkcore._util import model_io
from gzkcore._util.checkpoint import Checkpoint, as_checkpoint
from gzkcore._util.files import check_place, remove_parts
from gzkcore._util.state import fitted_attributes, has, stored, text, whole
from gzkcore._util.typing import Doubles
from gzkcore._util.validation import (
    check_some_weight,
    check_sparse,
    float_dtype,
    raise_not_finite,
)
from gzkcore._util.warn import collected_warnings
from gzkcore._util.wording import counted
from gzkcore.features.base import RowMap
from gzkcore.features.fit_rows import FitRows, asks_no_rows, fit_features
from gzkcore.kernels.base import asks_targets
from gzkcore.rows.coded import CodedRows
from gzkcore.rows.dask import HeldRows, client_of
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import Batch, Source, has_rows, in_batch, is_dask, is_source
from gzkcore.rows.survey import Survey, stack, survey_of, without_zeros

Step: TypeAlias = Callable[[Callable[[], Any]], Any]  # runs a step of a fit and reports it

# Rows of an array between two checks for a due checkpoint.
ARRAY_ROWS = 1 << 16
# Chunks of a Dask collection that a checkpoint counts as one: two levels of its tree.
GROUP = 64


def as_step(step: Step | None, work: Callable[[], Any]) -> Any:
    """Return work(), run as a step of a fit if there is one."""
    if step is None:
        return work()
    results: list[Any] = []
    step(lambda: results.append(work()))
    return results[0]


class Reader:
    """The rows of one fit: a source or arrays, as `fit` was given them."""

    def __init__(
        self, X: Any, y: Any, sample_weight: Any, checkpoint: Any = None, *, one_pass: bool = False
    ) -> None:
        self.survey: Survey | None = None
        self.checkpoint: Any = as_checkpoint(checkpoint)
        self.progress: Any = None
        self.array: Any = None if is_source(X) else X
        self.targets, self.weight = y, sample_weight
        if self.array is None:
            self.source = as_source(X, y, sample_weight)
        self.distributed = is_dask(X)
        self._begun: Iterator[tuple[Any, Any, Any]] | None = None
        self.one_pass = one_pass or (self.array is None and not self.source.reread)
        if self.one_pass and self.checkpoint is not None:
            raise ValueError(
                "checkpoint= needs a source that can be read again, but X is an iterator; pass an "
                "object whose iter() starts again"
            )

    def begin(self, learner: Any) -> None:
        """Let a learner check the first batch, or all rows of an array; both are read again."""
        self._learner = learner
        first = self._first() if self.array is None else (self.array, self.targets, self.weight)
        self.rows, self.targets, self.weight = learner._rows(*first, reset=True)
        self.names = getattr(learner, "feature_names_in_", None)
        if self.array is not None:
            self.array = self.rows
            at_once = getattr(learner, "_rows_at_once", ARRAY_ROWS)
            self.source = Source(Slices(self.rows, self.targets, self.weight, at_once))

    def _first(self) -> Any:
        """Return the first batch with rows, which is read again."""
        begun, empty = iter(self.source), list[Any]()
        for batch in begun:
            if has_rows(batch[0]):
                self._begun = itertools.chain(empty, [batch], begun)
                return batch
            empty.append(batch)
        raise ValueError("the source yields no batches; pass a source with one or more")

    def _batches(self) -> Iterator[tuple[Any, Any, Any]]:
        """Return all batches, at first by the iterator that `_first` has begun."""
        begun, self._begun = self._begun, None
        return begun or iter(self.source)

    def summands(self, learner: Any) -> Iterator[Any]:
        """Yield what a learner sums, batch by batch."""
        for number, batch in enumerate(self._batches()):
            if has_rows(batch[0]):
                with self._named(number):
                    summands = self._checked(learner, batch)
                yield summands

    def _checked(self, learner: Any, batch: tuple[Any, Any, Any]) -> Any:
        """Return what a learner sums of a batch, and check it unless it is cut from arrays."""
        return learner._summands(*(learner._rows(*batch) if self.array is None else batch))

    def gather(self, learner: Any, *, held: bool = False) -> tuple[Any, Any, Any]:
        """Return what a learner takes of all rows, put together in this process.

        With `held` the workers of a cluster hold the rows, as `HeldRows`, if there is one.
        """
        if held and self.distributed and client_of() is not None:
            chunks = self.source.held(_of_summands, tuple, copy.copy(learner), True)
            self.rows, y, weight = HeldRows.of(chunks, self.rows.shape[1])
            return self.rows, y, weight
        if self.array is not None:
            rows, y, weight = learner._summands(self.rows, self.targets, self.weight)
            return valid_rows(rows), y, weight
        batches = list(self.summands(learner))
        rows, targets, weights = zip(*batches, strict=True)
        weight = None
        if any(part is not None for part in weights):
            pairs = zip(weights, targets, strict=True)
            weight = np.concatenate([np.ones(len(y)) if w is None else w for w, y in pairs])
        self.rows, self.targets = valid_rows(stack(list(rows))), np.concatenate(targets)
        self.weight = weight
        return self.rows, self.targets, weight

    def reduce(
        self, learner: Any, work: Callable[..., Any], merge: Callable[..., Any], *args: Any
    ) -> Any:
        """Return the merged results of work(summands, *args) for all batches: one more pass.

        `merge` takes consecutive results and changes none of them. The rows of a Dask collection
        stay where they are: the learner, `args` and the results are sent.
        """
        afar = copy.copy(learner)
        if hasattr(afar, "moments_"):
            afar.moments_ = afar.moments_._emptied()
        check = self.array is None
        return self.source.reduce(_of_summands, merge, work, afar, check, *args)

    def fit(self, features: Any, y: Any = None) -> Any:
        """Fit features to all rows, or to the first batch of an iterator."""
        with self._named(0):
            if asks_no_rows(features):
                return features.fit(self.rows, None)
            if self.array is not None or self.one_pass:
                return fit_on_rows(
                    features, self.rows, y, self.weight, self.one_pass, names=self.names
                )
        return fit_features(features, self.source, self._surveyed(features), self.names)

    def resolve(self, kernel: Any) -> Any:
        """Resolve a kernel on all rows, or on the first batch of those that are not gathered."""
        if self.survey is None and not isinstance(self.rows, HeldRows):
            rows = FitRows.of_array(self.rows, self.weight, self.targets, self.names)
        else:
            survey = self._surveyed(kernel)
            rows = FitRows.of_survey(survey.rows, survey, names=self.names)
        return rows.resolve(kernel)

    @property
    def n_rows(self) -> int:
        """Number of rows of the array or the survey, or else of the first batch."""
        return int(self.rows.shape[0] if self.survey is None else self.survey.n_rows)

    def sample(self) -> tuple[Any, Doubles | None]:
        """Return rows and weights: all rows of an array, or the sample of a source's survey."""
        if self.array is not None or self.one_pass:
            return self.rows, self.weight
        survey = self._surveyed()
        return survey.rows, survey.weight

    def _surveyed(self, asker: Any = None) -> Survey:
        """Return the survey of all rows, with regressed targets if the asker learns from them."""
        if self.survey is None:
            self.survey = survey_of(self.source)
        y, regresses = self.survey.targets, hasattr(self._learner, "_targets")
        if asker is None or y is None or not asks_targets(asker) or not regresses:
            return self.survey
        return replace(self.survey, targets=self._learner._targets(y, self.survey.rows, False))

    def typical(self) -> Doubles:
        """Return the mean of all targets, as one row, or else the targets of the first rows."""
        if self.survey is None or not np.isfinite(self.survey.y_sum).all():
            return np.asarray(self.targets)
        return np.asarray(self.survey.y_sum / self.survey.n_rows)[None]

    def accumulate(self, learner: Any, accumulator: Any, step: Step | None = None) -> Any:
        """Add all rows to an accumulator and return it; each batch is a `step`.

        After `resume`, rows that the checkpoint had seen are compared, not added.
        """
        before = 0 if self.progress else accumulator.n_rows
        if self.distributed:
            self._accumulate_chunks(learner, accumulator)
        else:
            self._accumulate_batches(learner, accumulator, step)
        seen = accumulator.n_rows - before
        if seen == 0 and self.survey is None:
            raise ValueError(
                "the source yields no batches with rows; pass a source with one or more"
            )
        if self.survey is not None and seen != self.survey.n_rows:
            raise ValueError(
                f"the source yielded {counted(self.survey.n_rows, 'row')} in the first pass and "
                f"{seen} in a later one; every iter() of it must give the same rows"
            )
        return accumulator

    def _accumulate_batches(self, learner: Any, accumulator: Any, step: Step | None) -> None:
        done = 0 if self.progress is None else self.progress.batches
        seen, written = hashlib.sha256(), time.monotonic()
        if self.checkpoint is not None and not done:
            self._write(learner, 0, seen)
        number = -1
        for number, batch in enumerate(self._batches()):
            if self.checkpoint is not None:
                _digest(seen, batch)
            if number < done:
                if number == done - 1:
                    self._compare(seen)
                continue
            if not has_rows(batch[0]):
                continue
            with self._named(number):
                as_step(step, functools.partial(self._take, learner, accumulator, batch))
            if self.checkpoint and time.monotonic() - written >= self.checkpoint.seconds:
                self._write(learner, number + 1, seen)
                written = time.monotonic()
        if number + 1 < done:
            raise self._refusal(f"the data have {number + 1} batches, it has seen {done}")
        self._read = number + 1, seen

    def _take(self, learner: Any, accumulator: Any, batch: Any) -> None:
        accumulator.add(*self._checked(learner, batch))

    @contextlib.contextmanager
    def _named(self, number: int) -> Iterator[None]:
        """Name the batch in a ValueError, or the row of the array."""
        if self.array is None:
            with in_batch(number):
                yield
            return
        try:
            yield
        except ValueError:
            raise_not_finite(self.array)
            if np.ndim(self.targets) == 2 or sparse.issparse(self.targets):
                raise_not_finite(self.targets, "y")
            raise

    def _accumulate_chunks(self, learner: Any, accumulator: Any) -> None:
        """Add the chunks of a Dask collection: at once, or by groups with checkpoints between."""
        empty, afar = accumulator._emptied(), copy.copy(learner)
        if hasattr(afar, "moments_"):
            afar.moments_ = empty
        if hasattr(accumulator, "look"):  # here, since warnings of workers stay with them
            accumulator.look(self.rows, self.weight)
        if self.checkpoint is None:
            total = self.source.reduce(_add, _merge, afar, empty)
            if total is not None:
                accumulator.merge(total)
            return
        done, chunks = 0 if self.progress is None else self.progress.batches, len(self.source)
        seen = hashlib.sha256()
        if chunks < done:
            raise self._refusal(f"the data have {counted(chunks, 'chunk')}, it has seen {done}")
        if done:
            (digests,) = self.source.reduce_each([range(done)], _hash, b"".join)
            seen.update(digests)
            self._compare(seen)
        else:
            self._write(learner, 0, seen)
        at_once = 1
        while done < chunks:
            starts = range(done, chunks, GROUP)[:at_once]
            groups = [range(start, min(start + GROUP, chunks)) for start in starts]
            begun = time.monotonic()
            for group in self.source.reduce_each(groups, _add_hashed, _merge_hashed, afar, empty):
                if group is not None:
                    accumulator.merge(group[0])
                    seen.update(group[1])
            done = groups[-1].stop
            if done < chunks:
                self._write(learner, done, seen)
            fitting = at_once * self.checkpoint.seconds / (time.monotonic() - begun + 1e-9)
            at_once = max(1, min(2 * at_once, int(fitting)))
        self._read = done, seen

    def resume(self, learner: Any) -> bool:
        """Give a learner the state of its checkpoint; return whether there was one."""
        if self.checkpoint is None:
            return False
        path, ours = Path(self.checkpoint.path), _settings(learner)
        check_place(path)  # now, not after the passes that features may need
        if not path.exists():
            return False
        progress = model_io.load(path)
        if not isinstance(progress, _UnfinishedFit):
            raise self._refusal(f"it holds a {type(progress).__name__}, not an unfinished fit")
        if type(progress.learner) is not type(learner):
            raise self._refusal(f"it is of a {type(progress.learner).__name__}")
        its = _settings(progress.learner)
        different = [name for name in ours if its[name] != ours[name]]
        if different:
            raise self._refusal(f"{', '.join(different)} was another when it was written")
        if progress.batches == 0:  # features, perhaps of other rows
            return False
        self.progress = progress
        vars(learner).update(fitted_attributes(progress.learner))
        return True

    def hold(self, learner: Any) -> Checkpoint | None:
        """Save the sums of all rows; return the checkpoint for the steps of a solver."""
        if self.checkpoint is None:
            return None
        self._write(learner, *self._read)
        return Checkpoint(f"{os.fspath(self.checkpoint.path)}.steps", self.checkpoint.seconds)

    def hand_over(self) -> Any:
        """Return the checkpoint to a solver that writes and removes it."""
        checkpoint, self.checkpoint = self.checkpoint, None
        return checkpoint

    def finish(self) -> None:
        """Remove the checkpoint of a fit that is done, unless its solver left its steps."""
        path = None if self.checkpoint is None else os.fspath(self.checkpoint.path)
        if path is not None and not Path(f"{path}.steps").exists():
            Path(path).unlink(missing_ok=True)
            remove_parts(path)

    def _write(self, learner: Any, batches: int, seen: Any) -> None:
        model_io.save(_UnfinishedFit(learner, batches, seen.hexdigest()), self.checkpoint.path)

    def _compare(self, seen: Any) -> None:
        if seen.hexdigest() != self.progress.digest:
            raise self._refusal(
                f"the first {self.progress.batches} batches are not those of the checkpoint (other "
                "rows, or the same rows in other batches)"
            )

    def _refusal(self, reason: str) -> ValueError:
        return ValueError(
            f"cannot resume from {os.fspath(self.checkpoint.path)!r}: {reason}; fit with the same "
            "data and settings, or delete the file to start afresh"
        )


def reduced(source: Any, work: Callable[..., Any], merge: Callable[..., Any], *args: Any) -> Any:
    """Return `Source.reduce`, or raise if there are no batches."""
    result = source.reduce(work, merge, *args)
    if result is None:
        raise ValueError("the source yields no batches; pass a source with one or more")
    return result


def fit_on_rows(
    features: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    one_pass: bool = False,
    name: str = "X",
    names: Any = None,
) -> Any:
    """Fit features to rows whose form was checked; by `partial_fit` if it is `one_pass`.

    Rows of weight 0 are left out. Weights are passed to features that take them, and the names of
    the columns to maps of this package. Errors call X by `name`.
    """
    check_some_weight(sample_weight)
    if isinstance(features, RowMap) and not one_pass:
        rows = FitRows.of_array(valid_rows(X, name), sample_weight, y, names)
        return features.fit_valid(rows)
    in_batches = one_pass and not isinstance(features, FrozenEstimator)
    fit = getattr(features, "partial_fit", features.fit) if in_batches else features.fit
    rows, weight, used = without_zeros(X, sample_weight)
    targets = y if y is None or used is None else _safe_indexing(y, used)
    knows = weight is not None and "sample_weight" in inspect.signature(fit).parameters
    try:
        return fit(rows, targets, **({"sample_weight": weight} if knows else {}))
    except ValueError:
        raise_not_finite(X, name)  # names the row, which the transformer may not
        raise


def valid_rows(X: Any, name: str = "X") -> Any:
    """Return rows as our feature maps take them: finite, float32 or float64."""
    if isinstance(X, CodedRows):
        return X
    raise_not_finite(X, name)
    check_sparse(X)
    return X.astype(float_dtype(X), copy=False)


def map_rows(
    work: Any, X: Any, shape: tuple[int, ...] = (), dtype: Any = np.float64, results: int = 1
) -> Any:
    """Apply `work` to the rows of each batch of a source: an iterator, or a lazy Dask array.

    `shape` and `dtype` are those of the result of one row. If `work` returns a tuple (of batches
    only), `results` is its length.
    """
    if is_dask(X):
        from gzkcore.rows.dask import map_rows as lazily

        return lazily(work, X, shape, dtype)
    return _mapped(work, X, shape, dtype, results)


def _mapped(work: Any, X: Any, shape: tuple[int, ...], dtype: Any, results: int) -> Iterator[Any]:
    for number, (rows, *_) in enumerate(as_source(X)):
        if has_rows(rows):
            with in_batch(number):
                result = work(rows)
            yield result
        else:
            nothing = tuple(np.empty((0, *shape), dtype) for _ in range(results))
            yield nothing if results > 1 else nothing[0]


@dataclass
class _UnfinishedFit:
    """The content of a checkpoint: a learner, and the number and the hash of its batches."""

    _state = stored(learner=has("fit", "partial_fit"), batches=whole(0), digest=text())

    learner: Any
    batches: int
    digest: str


class Slices:
    """Arrays in batches of a number of rows."""

    def __init__(self, X: Any, y: Any, sample_weight: Any, rows: int) -> None:
        self.parts, self.rows = (X, y, sample_weight), rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for start in range(0, self.parts[0].shape[0], self.rows):
            rows = slice(start, start + self.rows)
            yield tuple(None if part is None else part[rows] for part in self.parts)


def _of_summands(
    batch: Batch, work: Callable[..., Any], learner: Any, check: bool, *args: Any
) -> Any:
    """Return work(summands, *args) of a batch, which is checked unless it is cut from arrays."""
    rows = learner._rows(*batch[:3]) if check else batch[:3]
    return work(learner._summands(*rows), *args)


def _add(batch: Batch, learner: Any, accumulator: Any) -> Any:
    """Return an accumulator of one batch, without the features, which are not sent back."""
    with collected_warnings():  # here each chunk is a first one
        part = copy.copy(accumulator).add(*learner._summands(*learner._rows(*batch[:3])))
    for name in ("features", "features_y"):
        if hasattr(part, name):
            setattr(part, name, None)
    return part


def _merge(parts: Sequence[Any]) -> Any:
    """Return the sum of consecutive accumulators, whose copies share no sums that change."""
    total = copy.copy(parts[0])
    for part in parts[1:]:
        total.merge(part)
    return total


def _hash(batch: Batch) -> bytes:
    seen = hashlib.sha256()
    _digest(seen, batch[:3])
    return seen.digest()


def _add_hashed(batch: Batch, learner: Any, accumulator: Any) -> tuple[Any, bytes]:
    return _add(batch, learner, accumulator), _hash(batch)


def _merge_hashed(parts: Sequence[tuple[Any, bytes]]) -> tuple[Any, bytes]:
    return _merge([part[0] for part in parts]), b"".join(part[1] for part in parts)


def _settings(learner: Any) -> dict[str, str]:
    """Return a fingerprint of each parameter that the state of a fit depends on."""
    fingerprints, parameters = {}, clone(learner).get_params(deep=False)
    parameters.pop("max_iter", None)  # a fit that ran out of steps goes on with more
    for name, value in parameters.items():
        arrays: list[Any] = []
        text = json.dumps(model_io._encode(value, arrays, name))
        digest = hashlib.sha256(text.encode())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        fingerprints[name] = digest.hexdigest()
    return fingerprints


def _digest(seen: Any, batch: tuple[Any, ...]) -> None:
    """Add a batch to a running hash."""
    for part in batch:
        if part is None:
            seen.update(b"-")
            continue
        if sparse.issparse(part):
            pieces = [part.data, part.indices, part.indptr]
        else:
            pieces = [np.asarray(part)]
        for piece in pieces:
            if piece.dtype.hasobject:
                piece = np.asarray(piece, dtype=str)  # noqa: PLW2901
            seen.update(f"{piece.dtype.str}{np.shape(part)}{piece.shape}".encode())
            seen.update(np.ascontiguousarray(piece).reshape(-1).view(np.uint8))
