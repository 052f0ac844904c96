"""How the blocks of block features are divided among passes over the coordinates."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def shares(total: int, most: int) -> list[int]:
    """Split `total` blocks into as few passes of at most `most` as there can be, evenly."""
    passes = -(-total // most)
    return [total // passes + (q < total % passes) for q in range(passes)]


def coordinates(of: Any) -> int:
    """Return how many coordinates blocks are made of: with a mix the next power of two."""
    dim = int(of.n_features_in_)
    return dim if of._signs is None else 1 << (dim - 1).bit_length()


def check_passes(buckets: NDArray[np.int32], n_blocks: int) -> None:
    """Raise ValueError unless each pass has blocks of its own, as many as `shares` says."""
    passes = len(buckets)
    if not 1 <= passes <= n_blocks:
        raise ValueError(f"has {passes} passes for {n_blocks} blocks")
    share, more = divmod(n_blocks, passes)
    first = np.arange(passes) * share + np.minimum(np.arange(passes), more)
    last = np.append(first[1:], n_blocks) - 1
    if (buckets.min(axis=1) < first).any() or (buckets.max(axis=1) > last).any():
        raise ValueError(
            f"has buckets_ in which a pass has others' blocks; they have those from "
            f"{first.tolist()} to {last.tolist()}"
        )
