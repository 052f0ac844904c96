"""The attributes of an object that files keep: declared in its class, checked by `load`.

A class says at its head what its file holds, beside what its parents declare:

    _state = stored(
        hashes_=ints("s", "n_features_in_", below="_n_features_out", dtype=np.int32),
        _weight=number().if_there(),
    )

This declares two attributes, which have the same names in the file. `hashes_` is a matrix of
integers with any number of rows and as many columns as X, each at least 0 and below the width of
the output. `_weight` is a number that some objects have. Malicious files are refused, since
compiled code does not check where it writes.

A dimension of a shape, or a bound, is a number, the name of another field, or a function of all
fields. A dimension of one letter is any number, but the same for all arrays of the object; None is
any number. Further conditions are in `_check_state(self)` of the class, which raises ValueError.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, Self, TypeAlias, TypeVar, cast

import numpy as np

Method = TypeVar("Method", bound=Callable[..., Any])
Size: TypeAlias = int | str | Callable[[Any], int] | None
Bound: TypeAlias = float | str | Callable[[Any], float]

_MOST = 2**63 - 1
_NUMBERS = (int, float, np.integer)


class Scope:
    """The fields of one object, on which sizes and bounds depend."""

    def __init__(self, fields: Any) -> None:
        self.fields = fields  # by attribute
        self.letters: dict[str, int] = {}

    def number(self, size: Any) -> Any:
        """Return the number that a size or a bound stands for."""
        if isinstance(size, str):
            size = getattr(self.fields, size, None)
        elif callable(size):
            size = size(self.fields)
        if not isinstance(size, _NUMBERS):
            raise ValueError(f"depends on a number, which is {shown(size)}")
        return size

    def check_shape(self, shape: tuple[int, ...], declared: tuple[Size, ...]) -> None:
        """Raise unless a shape is as declared."""
        sizes: list[Any] = []
        for i, size in enumerate(declared):
            actual: Any = shape[i] if i < len(shape) else size or "any"
            if size is None:
                sizes.append(actual)
            elif not isinstance(size, str) or len(size) > 1:
                sizes.append(self.number(size))
            else:
                if size not in self.letters and i < len(shape):
                    self.letters[size] = shape[i]
                sizes.append(self.letters.get(size, actual))
        if list(shape) != sizes:
            raise ValueError(f"has shape {shape}, not ({', '.join(map(str, sizes))})")


class Field:
    """What one name in a file may hold; of all else `check(value, scope)` raises ValueError."""

    optional: bool = False  # it may be missing where others are there

    def __init__(self, check: Callable[[Any, Scope], None]) -> None:
        self.check = check

    def if_there(self) -> Self:
        """Let some objects do without."""
        self.optional = True
        return self

    def __or__(self, other: "Field") -> "Field":
        def check(value: Any, scope: Scope) -> None:
            reasons = []
            for choice in (self, other):
                letters = dict(scope.letters)
                try:
                    choice.check(value, scope)
                except ValueError as error:
                    reasons.append(str(error))
                    scope.letters = letters
                else:
                    return
            raise ValueError(", or ".join(dict.fromkeys(reasons)))

        return Field(check)


class _Array(Field):
    def __init__(
        self,
        kinds: str,
        shape: tuple[Size, ...],
        least: Bound | None = None,
        below: Bound | None = None,
        dtype: Any = None,
        finite: bool = True,
    ) -> None:
        super().__init__(self.check_array)
        self.kinds, self.shape, self.least, self.below = kinds, shape, least, below
        self.dtype, self.finite = None if dtype is None else np.dtype(dtype), finite

    def check_array(self, value: Any, scope: Scope, *, whole: bool = True) -> None:
        """Check an array; without `whole` leave out the entries, unless they are integers."""
        if not isinstance(value, np.ndarray) or value.dtype.kind not in self.kinds:
            wanted = {"iu": "integers", "f": "floating-point numbers", "b": "bools"}[self.kinds]
            raise ValueError(f"is {shown(value)}, not an array of {wanted}")
        if self.dtype is not None and value.dtype.newbyteorder("=") != self.dtype:
            raise ValueError(f"has dtype {value.dtype}, not {self.dtype}")
        scope.check_shape(value.shape, self.shape)
        if not value.size or not self.finite or not (whole or self.kinds == "iu"):
            return
        low, high = value.min(), value.max()
        if self.kinds == "f" and not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"holds {value[~np.isfinite(value)][0]}, which is not finite")
        if self.least is not None and low < scope.number(self.least):
            raise ValueError(f"holds {low}, which is less than {scope.number(self.least)}")
        if self.below is not None and high >= scope.number(self.below):
            raise ValueError(f"holds {high}, which is not below {scope.number(self.below)}")


# ---- what a field may hold


def ints(
    *shape: Size, below: Bound | None = None, least: Bound | None = 0, dtype: Any = None
) -> Field:
    """Declare an array of integers, at least `least` and below `below`."""
    return _Array("iu", shape, least, below, dtype)


def signs(*shape: Size) -> Field:
    """Declare an array of -1, 0 and 1 in int8."""
    return ints(*shape, least=-1, below=2, dtype=np.int8)


def doubles(
    *shape: Size, least: Bound | None = None, below: Bound | None = None, finite: bool = True
) -> Field:
    """Declare an array of numbers of float64, finite unless they may be otherwise."""
    return _Array("f", shape, least, below, np.float64, finite)


def floats(*shape: Size) -> Field:
    """Declare an array of finite numbers of float32 or float64."""
    return _Array("f", shape)


def bools(*shape: Size) -> Field:
    """Declare an array of bools."""
    return _Array("b", shape)


def whole(least: Bound = 0, below: Bound = _MOST) -> Field:
    """Declare an integer."""

    def check(value: Any, scope: Scope) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"is {shown(value)}, not an integer")
        low, high = scope.number(least), scope.number(below)
        if not low <= value < high:
            raise ValueError(f"is {value}, not from {low} to {high - 1}")

    return Field(check)


def number(least: Bound = -math.inf, most: Bound = math.inf, *, finite: bool = True) -> Field:
    """Declare a number, finite unless it may be otherwise."""

    def check(value: Any, scope: Scope) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"is {shown(value)}, not a number")
        if finite and not math.isfinite(value):
            raise ValueError(f"is {value}, which is not finite")
        low, high = scope.number(least), scope.number(most)
        if not math.isnan(value) and not low <= value <= high:
            raise ValueError(f"is {value}, not from {low} to {high}")

    return Field(check)


def text(*choices: str) -> Field:
    """Declare a text, one of the choices if there are any."""

    def check(value: Any, _: Scope) -> None:
        if not isinstance(value, str) or (choices and value not in choices):
            wanted = f"not one of {choices}" if choices else "not a text"
            raise ValueError(f"is {shown(value)}, {wanted}")

    return Field(check)


def flag() -> Field:
    """Declare True or False."""
    return holds(bool)


def nothing() -> Field:
    """Declare None."""
    return holds(type(None))


def holds(*classes: type) -> Field:
    """Declare an object of one of these classes."""

    def check(value: Any, _: Scope) -> None:
        if not isinstance(value, classes):
            wanted = " or ".join(cls.__name__ for cls in classes)
            raise ValueError(f"is {shown(value)}, not a {wanted}")

    return Field(check)


def has(*methods: str) -> Field:
    """Declare an object that has these methods."""

    def check(value: Any, _: Scope) -> None:
        for method in methods:
            if not callable(getattr(value, method, None)):
                raise ValueError(f"is {shown(value)}, which has no {method}")

    return Field(check)


def names(length: Size) -> Field:
    """Declare an array of texts as objects, as scikit-learn has the names of columns."""

    def check(value: Any, scope: Scope) -> None:
        if not isinstance(value, np.ndarray) or not all(isinstance(v, str) for v in value.flat):
            raise ValueError(f"is {shown(value)}, not an array of texts")
        scope.check_shape(value.shape, (length,))

    return Field(check)


def labels(length: Size) -> Field:
    """Declare an array of classes: numbers or texts."""

    def check(value: Any, scope: Scope) -> None:
        if not isinstance(value, np.ndarray):
            raise ValueError(f"is {shown(value)}, not an array of labels")
        scope.check_shape(value.shape, (length,))
        kinds = {type(v) for v in value.flat} if value.dtype.kind == "O" else set()
        if not kinds <= {str, int, float, bool}:
            raise ValueError("holds something that is not a label")

    return Field(check)


def floating_dtype() -> Field:
    """Declare float32 or float64."""

    def check(value: Any, _: Scope) -> None:
        if not isinstance(value, np.dtype) or value not in (np.float32, np.float64):
            raise ValueError(f"is {shown(value)}, not float32 or float64")

    return Field(check)


def sequence(
    each: Field, length: Size = None, kind: type[list[Any] | tuple[Any, ...]] = list
) -> Field:
    """Declare a list of such values."""

    def check(value: Any, scope: Scope) -> None:
        if not isinstance(value, kind):
            raise ValueError(f"is {shown(value)}, not a {kind.__name__}")
        if length is not None:
            scope.check_shape((len(value),), (length,))
        for i, item in enumerate(value):
            with _inside(i):
                each.check(item, scope)

    return Field(check)


def pairs(each: Field, length: Size = 2) -> Field:
    """Declare a tuple of such values, a pair unless its length is said."""
    return sequence(each, length, tuple)


def mapping(key: Field, value: Field) -> Field:
    """Declare a dict of such keys and values."""

    def check(items: Any, scope: Scope) -> None:
        if not isinstance(items, dict):
            raise ValueError(f"is {shown(items)}, not a dict")
        for name, item in items.items():
            with _inside(name):
                key.check(name, scope)
                value.check(item, scope)

    return Field(check)


def entries(**fields: Field) -> Field:
    """Declare a dict with these keys."""

    def check(value: Any, scope: Scope) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"is {shown(value)}, not a dict")
        if unknown := [key for key in value if key not in fields]:
            raise ValueError(f"has the entry {shown(unknown[0])}, which is unknown")
        inner = Scope(SimpleNamespace(**vars(scope.fields) | value))
        inner.letters = scope.letters
        for name, field in fields.items():
            if name in value:
                with _inside(name):
                    field.check(value[name], inner)
            elif not field.optional:
                raise ValueError(f"has no entry {name!r}")

    return Field(check)


@contextlib.contextmanager
def _inside(key: Any) -> Iterator[None]:
    """Say in which part of a value something is wrong."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"[{shown(key)}] {error}") from None


def plain() -> Field:
    """Declare plain data: numbers, text, arrays, dtypes, and lists, tuples, dicts of these."""

    def check(value: Any, scope: Scope) -> None:
        if isinstance(value, dict):
            value = [*value.keys(), *value.values()]
        if isinstance(value, list | tuple):
            for item in value:
                check(item, scope)
        elif not isinstance(value, bool | int | float | str | np.ndarray | np.dtype | None):
            raise ValueError(f"is {shown(value)}, not plain data")

    return Field(check)


def anything() -> Field:
    """Declare any value that a file may hold: what only the next fit looks at."""
    return Field(lambda *_: None)


def shown(value: Any) -> str:
    """Return a value as a message can show it."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | str | np.dtype):
        return f"{value!r:.60}"
    return f"a {type(value).__name__}"


# ---- what a class declares


def stored(**fields: Field) -> dict[str, Field]:
    """Declare what a file keeps, see the head of this file."""
    return fields


# Of every estimator, beside its parameters: what scikit-learn's base classes keep.
_OF_ESTIMATORS = stored(
    n_features_in_=whole(1),
    feature_names_in_=names("n_features_in_").if_there(),
    _sklearn_output_config=plain().if_there(),
)

# Of classes of other packages.
_OF_OTHERS = {"FrozenEstimator": stored(estimator=has("transform"))}


@functools.cache
def state_of(cls: Any) -> dict[str, Field]:
    """Return what a file keeps of the objects of a class, by attribute."""
    state: dict[str, Field] = {}
    if cls.__name__ in _OF_OTHERS:
        state = dict(_OF_OTHERS[cls.__name__])
    elif hasattr(cls, "_get_param_names"):
        state = {name: plain() for name in cls._get_param_names()}
        if "random_state" in state:
            state["random_state"] = whole() | nothing()
        state |= _OF_ESTIMATORS
    for base in reversed(cls.__mro__):
        state |= vars(base).get("_state", {})
    return state


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """Return the attributes that fits have set, by name."""
    settings = {*estimator._get_param_names(), "_sklearn_output_config"}
    fitted = state_of(estimator.__class__).keys() - settings
    return {name: value for name, value in vars(estimator).items() if name in fitted}


def forget(estimator: Any) -> None:
    """Take an estimator back to before its first fit."""
    for name in fitted_attributes(estimator):
        delattr(estimator, name)


def all_or_nothing(method: Method) -> Method:
    """Let a method work on a copy of its object, which takes over the copy's state at the end.

    So an error or an interrupt changes nothing, and other threads see the old state or the new.
    """

    @functools.wraps(method)
    def on_copy(self: Any, *args: Any, **options: Any) -> Any:
        other = object.__new__(self.__class__)
        other.__dict__.update(self.__dict__)
        result = method(other, *args, **options)
        self.__dict__ = other.__dict__
        return self if result is other else result

    return cast(Method, on_copy)


def check_fields(cls: Any, data: dict[str, Any]) -> bool:
    """Raise ValueError unless the values of a file, by name, are what the class declares.

    Returns whether all that a fit gives is there: an estimator may be unfitted.
    """
    state, name_of = state_of(cls), cls.__name__
    is_estimator = hasattr(cls, "_get_param_names")
    parameters = cls._get_param_names() if is_estimator else ()
    needed = [
        name for name, field in state.items() if not field.optional and name not in parameters
    ]
    there = [name for name in needed if name in data]
    if (there or not is_estimator) and len(there) < len(needed):
        missing = next(name for name in needed if name not in data)
        raise ValueError(f"{name_of} has no {missing}, though it is fitted")
    scope = Scope(SimpleNamespace(**data))
    for name, field in state.items():
        if name not in data:
            continue
        try:
            field.check(data[name], scope)
        except ValueError as error:
            raise ValueError(f"{name_of}.{name} {error}") from None
        except (LookupError, AttributeError, TypeError) as error:  # of a size or a bound
            raise ValueError(f"{name_of}.{name} does not fit its other fields: {error}") from None
    return len(there) == len(needed)


def lock(values: Iterable[Any]) -> None:
    """Let nobody write to the arrays among some values, which kernels go by."""
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False


def check_arrays(made: Any) -> None:
    """Raise ValueError unless an object's arrays have the shapes and places that it declares.

    For kernels, which index by them: anybody may have changed an attribute since the fit.
    """
    check_mapped(made)
    held = vars(made)
    scope = Scope(made)
    for name, field in _arrays_of(made.__class__).items():
        if name in held:
            try:
                field.check_array(held[name], scope, whole=False)
            except ValueError as error:
                raise ValueError(f"{type(made).__name__}.{name} {error}; fit again") from None
    check_rest(made)


def check_mapped(made: Any) -> None:
    """Raise OSError if the file of a loaded estimator, which maps arrays of it, has changed."""
    if mapped := vars(made).get("_mapped"):
        mapped.check()


@functools.cache
def _arrays_of(cls: Any) -> dict[str, _Array]:
    return {name: field for name, field in state_of(cls).items() if isinstance(field, _Array)}


def check_rest(made: Any) -> None:
    """Raise ValueError if an object is not what its class says beyond its declaration."""
    if hasattr(made, "_check_state"):
        try:
            made._check_state()
        except ValueError as error:
            raise ValueError(f"{type(made).__name__} {error}") from None
