"""Rows in batches and in files, and what listens while models read them."""

import numpy as np
import pandas as pd

from gzkcore.rows.open import open_batches


class StoppedError(Exception):
    """What ends a pass early."""


class Cut:
    """Arrays (or None) in batches of so many rows, as often as one likes."""

    def __init__(self, *arrays, rows):
        self.arrays, self.rows, self.passes = arrays, rows, 0

    def __iter__(self):
        self.passes += 1
        for start in range(0, self.arrays[0].shape[0], self.rows):
            rows = slice(start, start + self.rows)
            yield tuple(None if array is None else array[rows] for array in self.arrays)


def data(n=3000, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal([1, 0, 3], 1.0, (n, 3)).astype(dtype)
    return X, np.sin(X[:, 0]) + X[:, 1] * 0.3 + 0.1 * rng.standard_normal(n) + 5


def in_files(X, y, folder):
    """Write rows in every format; yield the name of a file and its batches."""
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    table.to_csv(folder / "t.csv", index=False)
    table.to_parquet(folder / "t.parquet", row_group_size=777)
    np.savez(folder / "t.npz", X=X, y=y)
    np.save(folder / "t.npy", table.to_numpy())
    for name, target in (("t.csv", "y"), ("t.parquet", "y"), ("t.npz", "y"), ("t.npy", "3")):
        yield name, open_batches(folder / name, target, batch_rows=1234, dtype=X.dtype)


class Diary:
    """A callback that writes down what it is told, and asks to stop after some steps."""

    def __init__(self, stop_after=None):
        self.entries, self.stop_after = [], stop_after

    def setup(self, estimator, context):
        self.entries.append("setup")

    def teardown(self, estimator, context):
        self.entries.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.entries.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.entries.append(f"end {context.task_name}")
        return self.stop_after is not None and len(self.entries) > self.stop_after
