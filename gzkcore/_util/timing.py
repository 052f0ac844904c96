"""The time of a transformer."""

import time
import warnings
from typing import Any

import numpy as np


def seconds_per_row(features: Any, rows: Any, repeats: int = 3, *, reuse: bool = True) -> float:
    """Return the least time of a few warm calls of `transform`, for one row.

    With `reuse` all write to the same array; without, as transformers must that know no `out`, each
    call to a new one.
    """
    takes = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {"out": np.array(features.transform(rows))} if reuse else {}
        for _ in range(repeats):
            start = time.perf_counter()
            features.transform(rows, **given)
            takes.append(time.perf_counter() - start)
    return float(min(takes) / rows.shape[0])
