"""Fitted weights, cast to the dtype of the rows once for each dtype instead of in every call.

The casts are kept beside the features, not in them: files, pickles and copies do not hold them, and
transform changes no attribute. A new fit replaces the weights; nothing else changes them.
"""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import DTypeLike

from gzkcore._util.typing import Floats
from gzkcore._util.validation import is_finite

_KEPT: WeakKeyDictionary[Any, tuple[tuple[Any, ...], dict[DTypeLike, Any]]] = WeakKeyDictionary()


def cast_once(owner: Any, dtype: DTypeLike, make: Callable[..., Any], *weights: Any) -> Any:
    """Return make(*weights, dtype), made anew only where `owner` has other weights than before.

    One result for each dtype is kept, as long as the owner lives and has these weights. Threads
    that come at once may each make it, and all get what is right.
    """
    kept = _KEPT.get(owner)
    if kept is None or any(a is not b for a, b in zip(kept[0], weights, strict=True)):
        kept = _KEPT[owner] = weights, {}
    if dtype not in kept[1]:
        kept[1][dtype] = make(*weights, dtype)
    return kept[1][dtype]


def contiguous(array: Any, dtype: DTypeLike) -> Floats:
    """Return an array in C order and of this dtype: itself, if it is.

    Raises if numbers exceed the range of the dtype.
    """
    with np.errstate(over="ignore"):
        made = np.ascontiguousarray(array, dtype=dtype)
    if made is not array and not is_finite(made):
        raise ValueError(
            f"the fit has numbers that exceed the range of {made.dtype}; scale the columns "
            "(sklearn.preprocessing.StandardScaler), or pass float64"
        )
    return made
