"""Where a long fit saves its state, and how often."""

import os
from dataclasses import dataclass
from typing import Any

from .files import as_path
from .validation import check_positive


@dataclass
class Checkpoint:
    """Where a long fit saves its state, and how often.

    For a Dask collection the state is saved after 64 chunks, or after a multiple of 64 that takes
    about `seconds`. At the end of each such step the workers wait for the slowest one.

    Parameters
    ----------
    path : str or path
        It usually ends with ``.gzk``. The file is complete at any time, since it is written under
        another name and then renamed. The fit removes it at the end, unless it reached `max_iter`.
    seconds : float, default=60.0
        > 0, the time between two writes. Each write is of the sums: 8 p^2 / 2 bytes for p features,
        for each fold.

    Examples
    --------
    >>> from gzkcore import Checkpoint
    >>> Checkpoint("run.gzk", seconds=300)
    Checkpoint(path='run.gzk', seconds=300)
    """

    path: str | os.PathLike[str]
    seconds: float = 60.0


def as_checkpoint(checkpoint: Any) -> Checkpoint | None:
    """Return the argument `checkpoint` of a fit, a path among others, as a Checkpoint; or raise."""
    if checkpoint is None:
        return None
    if isinstance(checkpoint, (str, os.PathLike)):
        checkpoint = Checkpoint(checkpoint)
    if not isinstance(checkpoint, Checkpoint):
        raise TypeError(
            f"checkpoint={checkpoint!r} is not a path; pass a file name, or "
            "gzkcore.Checkpoint(path, seconds=...)"
        )
    as_path(checkpoint.path)
    check_positive("seconds", checkpoint.seconds)
    return checkpoint
