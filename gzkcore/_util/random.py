"""Random states of users, turned into independent streams of draws.

One place turns `random_state` or `rng` into a `SeedSequence`; draws come from its children, one per
purpose or fixed-size block, so that they do not depend on threads, chunks or cluster layout.
"""

import numpy as np
from numpy.typing import NDArray

from .typing import Seed

# Seeds are ours alone: numpy.random.default_rng(0) may have drawn the data, and directions that are
# the data themselves are as wrong as can be.
_OURS = (int.from_bytes(b"gzk"),)


def as_seed_sequence(random_state: Seed) -> np.random.SeedSequence:
    """Turn None, an int, a RandomState, a Generator or a SeedSequence into a SeedSequence.

    None gives fresh entropy; the two kinds of generator give 128 bits of their stream, so that a
    second call with the same generator gives other draws.
    """
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.SeedSequence):
        return np.random.SeedSequence(
            random_state.entropy, spawn_key=random_state.spawn_key, pool_size=random_state.pool_size
        )
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state={random_state} is negative; use an integer >= 0")
        return np.random.SeedSequence(int(random_state), spawn_key=_OURS)
    if isinstance(random_state, np.random.Generator):
        words = random_state.integers(0, 2**32, size=4, dtype=np.uint32)
        return np.random.SeedSequence([int(word) for word in words])
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(0, 2**32, size=4, dtype=np.uint32)
        return np.random.SeedSequence([int(word) for word in words])
    raise TypeError(
        f"random_state={random_state!r} cannot seed random draws; use None, an integer >= 0, "
        "a numpy.random.RandomState or a numpy.random.Generator"
    )


def check_seed(random_state: Seed) -> None:
    """Raise unless this seeds draws; generators are left as they are."""
    if not isinstance(random_state, (np.random.Generator, np.random.RandomState)):
        as_seed_sequence(random_state)


def generator(random_state: Seed) -> np.random.Generator:
    """Return a Generator (PCG64) seeded through `as_seed_sequence`."""
    return np.random.Generator(np.random.PCG64(as_seed_sequence(random_state)))


def batch_keys(batch: int, seed: int, n_rows: int) -> NDArray[np.int64]:
    """Return a random key for each row of the batch of this number."""
    return np.random.default_rng([batch, seed]).integers(0, 2**62, n_rows)


def least_keys(keys: NDArray[np.int64], most: int) -> NDArray[np.intp]:
    """Return, in order, the places of the smallest keys, `most` of them or all.

    The rows of the smallest keys are a random sample. Samples of parts merge: the smallest keys of
    all parts are among the smallest of each.
    """
    if keys.size <= most:
        return np.arange(keys.size)
    return np.sort(np.argpartition(keys, most)[:most])
