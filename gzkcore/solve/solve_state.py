"""The state of a solver of linear systems between two steps, and its file."""

import enum
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gzkcore._util import model_io
from gzkcore._util.checkpoint import Checkpoint
from gzkcore._util.state import bools, doubles, ints, nothing, stored, text
from gzkcore._util.typing import Doubles, Integers


class Status(enum.IntEnum):
    """Where a column is: on its way, waiting for a check, or done for one of five reasons."""

    RUNNING = 0
    WAITING = 1
    CONVERGED = 2
    OUT_OF_STEPS = 3
    STOPPED = 4
    STAGNATED = 5
    SINGULAR = 6


@dataclass
class State:
    """All that a solver knows between two steps: what a checkpoint holds."""

    _state = stored(
        digest=text(),
        x=doubles("n", "k"),
        r=doubles("n", "k"),
        p=doubles("n", "k"),
        power=doubles("k", finite=False),
        peak=doubles("k", finite=False),
        best=doubles("k", finite=False),
        best_x=doubles("n", "k") | nothing(),
        since=ints("k"),
        wait=ints("k"),
        n_iter=ints("k"),
        lies=ints("k"),
        exact=bools("k"),
        status=ints("k", below=len(Status)),
        history=doubles(None, "k", finite=False),
    )

    digest: str  # of the systems
    x: Doubles  # (n, k), of scaled targets
    r: Doubles  # (n, k): residuals, by recurrence since the last check
    p: Doubles  # (n, k): directions
    power: Doubles  # (k,): r^T P^-1 r
    peak: Doubles  # (k,): largest |r| since the last check
    best: Doubles  # (k,): smallest true |r| so far
    best_x: Doubles | None  # (n, k): the x that had it; None while it is the start
    since: Integers  # (k,): steps since the last check
    wait: Integers  # (k,): steps after which there will be one anyway
    n_iter: Integers  # (k,)
    lies: Integers  # (k,): checks in a row that found a recurrence of exact products wrong
    exact: NDArray[np.bool_]  # (k,): columns that need exact products
    status: Integers  # (k,)
    history: Doubles  # (n_steps, k): |r|


def resumed(state: State, checkpoint: Checkpoint) -> State:
    """Return what a checkpoint holds of the same systems, or the state itself if there is none."""
    path = Path(checkpoint.path)
    if not path.exists():
        return state
    found = model_io.load(path)
    if not isinstance(found, State):
        reason = f"it holds a {type(found).__name__}, no solution under way"
    elif found.digest != state.digest:
        reason = (
            "it is of other targets, shifts, rows, kernel, preconditioner or tol (or the bits of "
            "the product are others on this machine)"
        )
    else:
        return found
    raise ValueError(
        f"cannot resume from {str(path)!r}: {reason}; solve with the same data and settings, or "
        "delete the file to start afresh"
    )
