"""Which rows of a table are held out: one of each 1 / share consecutive rows, drawn by a hash.

So the share is what it says, the rows are spread over the whole table, and every reading of a file
knows which they are without keeping a list.
"""

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles

RowNumbers = NDArray[np.int64]


def held_out(rows: RowNumbers, share: float, seed: int) -> NDArray[np.bool_]:
    """Say which of these rows, numbered from 0, are held out."""
    if share <= 0:
        return np.zeros(len(rows), dtype=bool)
    group = np.floor(rows * share).astype(np.int64)
    group += rows >= _first(group + 1, share)  # where the product was rounded
    group -= rows < _first(group, share)
    first = _first(group, share)
    size = _first(group + 1, share) - first
    return np.asarray(rows == first + np.floor(hashed(group, seed) * size).astype(np.int64))


def _first(group: RowNumbers, share: float) -> RowNumbers:
    """Return the first row of a group."""
    return np.ceil(group / share).astype(np.int64)


def hashed(numbers: RowNumbers, seed: int) -> Doubles:
    """Return a number in [0, 1) for each number and seed: fixed, yet as if random (splitmix64)."""
    z = numbers.astype(np.uint64) + np.uint64(1 + seed * 0xD1342543DE82EF95 % 2**63)
    z *= np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) / 2.0**64
