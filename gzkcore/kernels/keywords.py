"""Error messages for unknown kernel parameters, such as another library's lengthscale."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from gzkcore._util.wording import shortened

# What others call a lengthscale.
LENGTHS = ("lengthscale", "lengthscales", "length_scale", "length", "ell", "sigma", "bandwidth")


def with_remedies(init: Callable[..., None]) -> Callable[..., None]:
    """Return an `__init__` that names the right parameter where a wrong one is passed."""
    known = list(inspect.signature(init).parameters.values())[1:]
    names = [each.name for each in known]
    if any(each.kind is each.VAR_KEYWORD for each in known):
        return init

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        for name, value in kwargs.items():
            if name not in names:
                raise TypeError(_remedy(type(self), names, name, value))
        init(self, *args, **kwargs)

    return checked


def _remedy(kernel: Any, names: list[str], name: str, value: Any) -> str:
    text = f"{kernel.__name__} has no parameter {name!r}; it has {', '.join(names) or 'none'}"
    if name not in LENGTHS or not hasattr(kernel, "with_lengths"):
        return text
    try:
        same = shortened(repr(kernel().with_lengths(value)))
    except (TypeError, ValueError):
        return text
    return f"{text}. With lengthscale {value} it is {same}"
