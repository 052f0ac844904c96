"""Features of rows, tile by tile and on several threads, without storing all of them.

The values of rows are checked here, tile by tile, when they are read.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.frozen import FrozenEstimator

from gzkcore._util import threads
from gzkcore._util.new_arrays import new_array
from gzkcore._util.typing import Data, Floats
from gzkcore._util.validation import (
    check_array,
    check_sparse,
    float_dtype,
    is_finite,
    raise_not_finite,
    validate_data,
)
from gzkcore.features.base import RowMap

# Rows of a tile: adding its product to all sums costs 4 % of a product 1,024 wide.
TILE_ROWS = 2048
# Bytes of the features of a tile: tiles of wide features have fewer rows.
FEATURES_BYTES = 2**24
# Bytes of the sums of all threads together.
ALL_SUMS_BYTES = 2**30


def for_each_tile(
    features: Any,
    X: Any,
    use: Callable[[int, slice, Floats], None],
    n_threads: int | None = None,
    name: str = "X",
) -> None:
    """Call use(thread, rows, Z) with Z = features.transform(X[rows]) for all tiles of X's rows.

    Thread t of `n_threads` takes the tiles t, t + n_threads, ... In each, our kernels and BLAS
    share the processors that remain, usually one: if both used all of them, the threads of BLAS
    would spin after a call and stall the next kernel.

    Z is C-contiguous, of the dtype of X (float32 or float64), and may be overwritten afterwards.
    Errors about values call X by `name`.
    """
    n_samples = X.shape[0]
    n_threads = n_threads or thread_count(X)
    n_rows = tile_rows(features, X, n_threads)

    def run(thread: int, stopped: Callable[[], bool]) -> None:
        tile_of = Tiles(features, X, n_rows, name)
        for start in range(thread * n_rows, n_samples, n_threads * n_rows):
            if stopped():
                return
            rows = slice(start, min(start + n_rows, n_samples))
            use(thread, rows, tile_of(rows))

    threads.on_threads(run, n_threads, max(1, threads.n_threads() // n_threads))


def tile_rows(features: Any, X: Any, n_threads: int) -> int:
    """Count the rows of a tile."""
    n_rows = max(1, FEATURES_BYTES // (8 * width_of(features, X)))
    # Sums within a tile are in the type of the data: fewer rows keep float32 close.
    most = TILE_ROWS // 2 if float_dtype(X) == np.float32 else TILE_ROWS
    return int(min(n_rows, most, -(-X.shape[0] // n_threads)))


class Tiles:
    """Features of a few rows at a time, in one buffer where the transformer takes `out`.

    Maps of this package write the features of a tile without validating it again: rows are checked
    here.
    """

    def __init__(self, features: Any, X: Any, n_rows: int, name: str = "X"):
        self.features, self.X, self.name = features, X, name
        self.buffer: Floats | None = None
        check_sparse(X)
        while isinstance(features, FrozenEstimator):
            features = features.estimator
        # A map of this package; a transform of its own does more than `write`.
        ours = getattr(type(features), "transform", None) is RowMap.transform
        self.map: RowMap | None = features if ours else None
        if ours or "out" in inspect.signature(self.features.transform).parameters:
            self.buffer = new_array((n_rows, width_of(features, X)), float_dtype(X))
        if self.map is not None:  # raises unless X has the columns of fit
            lenient: Any = {"accept_sparse": "csr", "ensure_all_finite": False}
            validate_data(self.map, X[:1], reset=False, **lenient)

    def __call__(self, rows: slice) -> Any:
        """Return the features of some rows, which may be overwritten by the next."""
        tile = self.X[rows].astype(float_dtype(self.X), copy=False)
        if not is_finite(tile):
            raise_not_finite(self.X, self.name)
        if self.buffer is not None:
            Z = self.buffer[: tile.shape[0]]
            if self.map is None:
                self.features.transform(tile, out=Z)
            else:
                self.map.write(tile, Z)
            return Z
        Z = self.features.transform(tile)
        Z = Z.toarray() if sparse.issparse(Z) else np.asarray(Z)
        return np.ascontiguousarray(Z, dtype=np.float32 if Z.dtype == np.float32 else np.float64)


def thread_count(X: Any, bytes_each: int = 1) -> int:
    """Count the threads worth starting: one per 256 rows, all their sums within 1 GiB."""
    most = min(int(X.shape[0]) // 256, ALL_SUMS_BYTES // bytes_each)
    return min(most, threads.n_threads()) if most > 1 else 1


def width_of(features: Any, X: Any) -> Any:
    """Count the columns that a fitted transformer makes."""
    known = getattr(features, "_n_features_out", None)  # scikit-learn's name
    return features.transform(X[:1]).shape[1] if known is None else known


def as_rows(X: Data) -> Any:
    """Return X as an array or CSR matrix without copying it, memory maps least of all."""
    check_sparse(X)
    return check_array(X, accept_sparse="csr", ensure_all_finite=False)
