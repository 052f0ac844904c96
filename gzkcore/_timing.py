"""How long a transformer takes."""

import time
import warnings
from typing import Any

import numpy as np


def seconds_per_row(features: Any, rows: Any, repeats: int = 3) -> float:
    """Return the least time of a few warm calls of `transform`, for one row."""
    takes = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = np.array(features.transform(rows))
        for _ in range(repeats):
            start = time.perf_counter()
            features.transform(rows, out=out)
            takes.append(time.perf_counter() - start)
    return float(min(takes) / rows.shape[0])
