"""Errors about arguments: they name the class, and the parameters that it has."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .wording import meant

Method = TypeVar("Method", bound=Callable[..., Any])


def with_remedies(method: Method) -> Method:
    """Return a method, or `__init__`, whose errors about arguments name the ones it has.

    A class may add a remedy in `_instead_of(name, value, others)`, for a keyword that is unknown.
    """
    signature = inspect.signature(method)
    names = [*signature.parameters][1:]

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except TypeError:
            try:
                signature.bind(self, *args, **kwargs)
            except TypeError as error:
                reason = _remedy(self, method.__name__, names, kwargs, str(error))
                raise TypeError(reason) from None
            raise

    return checked  # type: ignore[return-value]


def _remedy(owner: Any, method: str, names: list[str], given: dict[str, Any], reason: str) -> str:
    called = type(owner).__name__ + (f".{method}" if method != "__init__" else "")
    unknown = next((name for name in given if name not in names), None)
    if unknown is None:
        return f"{called}: {reason}; its parameters are {', '.join(names)}"
    instead = getattr(owner, "_instead_of", lambda *_: "") if method == "__init__" else None
    hint = instead(unknown, given[unknown], given) if instead else ""
    near = "" if hint else meant(unknown, names)
    text = f"{called} has no parameter {unknown!r}{near}; it has {', '.join(names) or 'none'}"
    return f"{text}. {hint}" if hint else text
