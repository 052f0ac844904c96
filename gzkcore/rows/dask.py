"""Learn from Dask collections: one task for each chunk, and only small sums are sent.

By this module every learner accepts Dask arrays and data frames in place of arrays. A task reads a
chunk, computes its features tile by tile and reduces them to an accumulator. Accumulators are
merged eight at a time, in the order of the chunks, until one is left. No task changes the result of
another. So a task that runs twice, because a worker was lost, counts once, and the sums are
identical, to the last bit, for any workers.
"""

import contextlib
import copy
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from gzkcore._util.threads import limit_blas, limit_threads, n_threads
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.validation import dense
from gzkcore._util.wording import counted

from .sources import Batch, has_rows, in_batch

FAN_IN = 8  # accumulators that one task merges


class DaskSource:
    """The chunks of Dask collections, see `Source`.

    Parameters
    ----------
    X : Dask array or data frame
    y, sample_weight : Dask array, series or data frame, or array, optional
        They must have the chunks of X; an array is divided like X if the lengths of its chunks are
        known.
    """

    reread = True

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        rows = _chunks("X", X, X)
        self.parts: list[list[Any] | None] = [rows]
        for name, values in (("y", y), ("sample_weight", sample_weight)):
            self.parts.append(None if values is None else _chunks(name, values, X))
        for name, chunks in zip(("y", "sample_weight"), self.parts[1:], strict=True):
            if chunks is not None and len(chunks) != len(rows):
                raise ValueError(
                    f"{name} has {counted(len(chunks), 'chunk')}, but X has {len(rows)}; give both "
                    "the same chunks (rechunk, repartition)"
                )

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        for chunk in self._together():
            yield _library("dask").compute(*chunk)

    def reduce(
        self, work: Callable[..., Any], merge: Callable[[Sequence[Any]], Any], *args: Any
    ) -> Any:
        """Return the merged results of work(batch, *args) for all chunks, as `Source` does."""
        return self.reduce_each([range(len(self))], work, merge, *args)[0] if len(self) else None

    def reduce_each(
        self,
        groups: Sequence[range],
        work: Callable[..., Any],
        merge: Callable[[Sequence[Any]], Any],
        *args: Any,
    ) -> list[Any]:
        """Return one merged result for each group of chunks, all computed together."""
        delayed = _library("dask").delayed
        # Each is a node of the graph, which a worker gets once. A scattered object would be
        # lost with the worker that holds it.
        shared = [delayed(arg, traverse=False) for arg in (work, *args)]
        task, join = delayed(_reduce_chunk, pure=False), delayed(_merge_results, pure=False)
        how, chunks = delayed(merge, traverse=False), list(self._together())
        trees = []
        for group in groups:
            level = [task(number, *chunks[number], *shared) for number in group]
            while len(level) > 1:
                parts = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
                level = [join(part, how) if len(part) > 1 else part[0] for part in parts]
            trees += level
        return list(_library("dask").compute(*trees))

    def held(self, work: Callable[..., Any], *args: Any) -> "DaskSource":
        """Return a source of work(batch, *args) of each chunk, which the workers hold."""
        delayed = _library("dask").delayed
        shared = [delayed(arg, traverse=False) for arg in (work, *args)]
        task, held = delayed(_reduce_chunk, pure=False), copy.copy(self)
        tasks = [task(number, *chunk, *shared) for number, chunk in enumerate(self._together())]
        held.parts = [list(_library("dask").persist(*tasks)), None, None]
        return held

    def __len__(self) -> int:
        return len(self.parts[0] or [])

    def _together(self) -> Iterator[tuple[Any, ...]]:
        for number in range(len(self)):
            yield tuple(None if part is None else part[number] for part in self.parts)


@dataclass(frozen=True)
class HeldRows:
    """Rows (n, d) that the workers of a cluster hold.

    Some of the rows, or of the columns, stay there too, until `toarray`.
    """

    source: DaskSource  # of tuples, with the rows of a chunk first
    starts: Integers  # (n_chunks + 1,): the number of the first row of each chunk
    numbers: Integers  # (n,): of these rows, among those of all chunks,
    columns: Integers  # (d,): and of their columns

    @classmethod
    def of(cls, source: DaskSource, width: int) -> tuple["HeldRows", Doubles, Doubles | None]:
        """Return the rows of a source of (X, y, weight); all y, and all weights, come here."""
        groups = [range(number, number + 1) for number in range(len(source))]
        others = source.reduce_each(groups, lambda batch: batch.X[1:], list)
        starts = np.cumsum([0, *(len(other[0]) if other else 0 for other in others)])
        y, weights = zip(*filter(None, others), strict=True)
        rows = cls(source, starts, np.arange(starts[-1]), np.arange(width))
        return rows, np.concatenate(y), None if weights[0] is None else np.concatenate(weights)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        return len(self.numbers), len(self.columns)

    def __getitem__(self, rows: Any) -> "HeldRows":
        rows, columns = rows if isinstance(rows, tuple) else (rows, slice(None))
        return replace(self, numbers=self.numbers[rows], columns=self.columns[columns])

    def copy(self) -> "HeldRows":
        """Return these rows, which nothing changes."""
        return self

    def refuse(self, *_: Any) -> NoReturn:
        """Refuse to be in a file, or an array of this process."""
        raise ValueError(
            f"the workers of a cluster hold {counted(len(self.numbers), 'row')} of this model, so "
            "that it can predict arrays and forget rows, and no more; fit to arrays: X.compute()"
        )

    __getstate__ = __array__ = refuse

    def toarray(self) -> Any:
        """Return the rows as an array."""
        return self.map(dense)

    def map(self, work: Callable[[Any], Any]) -> Any:
        """Return work(rows), a row for each, which the workers compute."""
        chosen, places = self._by_chunk()
        values = self.source.reduce(_of_some, np.concatenate, work, *chosen)
        out = np.empty_like(values)
        out[places] = values
        return out

    def held(self, work: Callable[..., Any], *args: Any) -> DaskSource:
        """Return a source of work(rows, *args), for rows whose numbers rise."""
        return self.source.held(_of_some, work, *self._by_chunk()[0], *args)

    def _by_chunk(self) -> tuple[tuple[list[Any], Any], Integers]:
        """Return which rows of each chunk these are, which columns, and the rows' places here."""
        chunk_of = np.searchsorted(self.starts, self.numbers, side="right") - 1
        places = np.argsort(chunk_of, kind="stable")
        ends = np.cumsum(np.bincount(chunk_of, minlength=len(self.source)))
        numbers = np.split(self.numbers[places], ends[:-1])
        rows = [_as_slice(own - start) for own, start in zip(numbers, self.starts, strict=False)]
        return (rows, _as_slice(self.columns)), places


class Held:
    """An object that the workers of a cluster hold, for work that is repeated.

    It is a node of the graph, as the shared arguments of `DaskSource.reduce_each`: a worker gets it
    once, and a new worker gets it again.

    Parameters
    ----------
    client : distributed.Client
    value : object
    """

    def __init__(self, client: Any, value: Any) -> None:
        self.client = client
        self.node = self._ask("persist", _library("dask").delayed(value, traverse=False))

    def each(self, work: Callable[..., Any], count: int, *args: Any) -> list[Any]:
        """Return work(value, number, *args) for the numbers below `count`."""
        dask = _library("dask")
        task = dask.delayed(functools.partial(_work_on, work), pure=False)
        shared = [dask.delayed(arg, traverse=False) for arg in args]
        # Dask would send all tasks to where the value is already. So each worker gets its share,
        # and those that are done early may take tasks of others.
        threads = [worker for worker, n in self.client.nthreads().items() for _ in range(n)]
        tasks = []
        for number in range(count):
            first = number * len(threads) // count
            with dask.annotate(workers=threads[first : first + 1], allow_other_workers=True):
                tasks.append(task(self.node, number, *shared))
        return list(self._ask("compute", tasks, sync=True))

    def _ask(self, what: str, *args: Any, **named: Any) -> Any:
        """Call the client without its warning of large graphs, which this is by intention."""
        threshold = {"distributed.admin.large-graph-warning-threshold": "1TB"}
        with _library("dask").config.set(threshold):
            return getattr(self.client, what)(*args, **named)


def client_of() -> Any:
    """Return the client of the cluster that would compute a collection now, if there is one."""
    client = getattr(_library("dask.base").get_scheduler(), "__self__", None)
    return client if hasattr(client, "persist") else None


def map_rows(
    work: Callable[[Any], Any], X: Any, shape: tuple[int, ...], dtype: Any = np.float64
) -> Any:
    """Return work(rows) of all chunks as one Dask array; a row becomes an array of `shape`."""
    da, delayed = _library("dask.array"), _library("dask").delayed
    chunks = _chunks("X", X, X)
    lengths = X.chunks[0] if _is_array(X) else [np.nan] * len(chunks)
    task = delayed(functools.partial(_map_chunk, work, shape, dtype), pure=False)
    pieces = [
        da.from_delayed(task(chunk), (length, *shape), dtype=dtype)
        for chunk, length in zip(chunks, lengths, strict=True)
    ]
    return da.concatenate(pieces, axis=0)


def map_batches(
    work: Callable[..., tuple[Any, ...]],
    source: DaskSource,
    widths: Sequence[int],
    *,
    weighted: bool,
) -> tuple[Any, ...]:
    """Return the parts of work(X, y, sample_weight) of all chunks, each as one Dask array.

    Parameters
    ----------
    work : callable
        Returns arrays of float64: of rows, of targets, and of weights or None.
    source : DaskSource
    widths : sequence of two int
        Columns of rows and targets.
    weighted : bool
        Whether there are weights.
    """
    da, delayed = _library("dask.array"), _library("dask").delayed
    shared = delayed(work, traverse=False)
    task = delayed(_work_on_batch, pure=False)
    results = [
        task(number, *chunk, shared, widths) for number, chunk in enumerate(source._together())
    ]
    shapes: list[tuple[Any, ...]] = [(np.nan, width) for width in widths]
    if weighted:
        shapes.append((np.nan,))
    return tuple(
        da.concatenate([da.from_delayed(r[part], shape, dtype=np.float64) for r in results])
        for part, shape in enumerate(shapes)
    )


def _library(name: str) -> Any:
    """Import a module of Dask when it is needed, without its types, which vary with versions."""
    return importlib.import_module(name)


def _is_array(X: Any) -> bool:
    return hasattr(X, "rechunk")


def _chunks(name: str, values: Any, X: Any) -> list[Any]:
    """Return the chunks of rows, delayed."""
    if not hasattr(values, "__dask_graph__"):
        if not _is_array(X) or np.isnan(X.chunks[0]).any():
            raise TypeError(
                f"{name} is a {type(values).__name__}, which cannot be divided like X, since the "
                "lengths of the chunks of X are unknown; pass a Dask collection with the chunks "
                "of X"
            )
        rows = np.asarray(values)
        if rows.ndim == 0:
            raise TypeError(
                f"{name} is a {type(values).__name__}; pass a Dask collection, or an array"
            )
        values = _library("dask.array").from_array(rows)
    if not hasattr(values, "to_delayed") or not hasattr(values, "ndim"):
        raise TypeError(
            f"{name} is a Dask {type(values).__name__}; pass a Dask array or data frame, "
            "for example bag.to_dataframe()"
        )
    if _is_array(values):
        known = _is_array(X) and not np.isnan([*X.chunks[0], *values.chunks[0]]).any()
        if known and values.shape[0] != X.shape[0]:
            raise ValueError(
                f"{name} has {counted(values.shape[0], 'row')}, but X has {X.shape[0]}"
            )
        cuts = {0: X.chunks[0]} if known else {}
        values = values.rechunk(cuts | dict.fromkeys(range(1, values.ndim), -1))
    return list(np.ravel(values.to_delayed()))


def _reduce_chunk(
    number: int, X: Any, y: Any, sample_weight: Any, work: Callable[..., Any], *args: Any
) -> Any:
    if X is None or not has_rows(X):
        return None
    with _own_share(), in_batch(number, "chunk"):
        return work(Batch(X, y, sample_weight, number), *args)


def _of_some(batch: Batch, work: Callable[..., Any], rows: Any, columns: Any, *args: Any) -> Any:
    here = rows[batch.number]
    return None if np.size(here) == 0 else work(batch.X[0][here][:, columns], *args)


def _merge_results(parts: Sequence[Any], merge: Callable[[Sequence[Any]], Any]) -> Any:
    """Merge the results of chunks; those without rows have None."""
    results = [part for part in parts if part is not None]
    return merge(results) if len(results) > 1 else results[0] if results else None


def _map_chunk(work: Callable[[Any], Any], shape: tuple[int, ...], dtype: Any, X: Any) -> Any:
    with _own_share():
        return work(X) if has_rows(X) else np.empty((0, *shape), dtype)


def _work_on_batch(
    number: int, X: Any, y: Any, weight: Any, work: Callable[..., Any], widths: Sequence[int]
) -> Any:
    if not has_rows(X):
        return *(np.empty((0, width)) for width in widths), np.empty(0)
    with _own_share(), in_batch(number, "chunk"):
        return work(X, y, weight)


def _work_on(work: Callable[..., Any], *args: Any) -> Any:
    with _own_share():
        return work(*args)


def _as_slice(numbers: Integers) -> Any:
    """Return consecutive numbers as a slice, of which no copy is made."""
    if numbers.size and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers


@contextlib.contextmanager
def _own_share() -> Iterator[None]:
    """Hold kernels and BLAS to this task's share: the process' threads over those of its worker."""
    share = max(1, n_threads() // _tasks_at_once())
    with limit_threads(share), limit_blas(share):
        yield


def _tasks_at_once() -> int:
    """Count the tasks that this process may run at a time."""
    try:
        from distributed import get_worker

        return int(get_worker().state.nthreads)
    except (ImportError, ValueError):  # Dask's own threads, one for each processor
        return n_threads()
