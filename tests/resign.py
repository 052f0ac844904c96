"""Files of models in parts, changed and signed again, as an attacker who knows the format would.

`parts_of` reads a file; `signed` writes one in which only the values may be wrong. `mutations`
changes every field of a file, one at a time, each to a forbidden value.
"""

import copy
import hashlib
import io
import json
import math
import zipfile
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np


class Parts(NamedTuple):
    """What a file is made of: the text at its head, and its arrays."""

    head: dict[str, Any]
    arrays: list[Any]


def parts_of(content: bytes) -> Parts:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        head = json.loads(archive.read("model.json"))
        n_arrays = len(archive.namelist()) - 1
        arrays = [np.load(io.BytesIO(archive.read(f"{i}.npy"))) for i in range(n_arrays)]
    return Parts(head, arrays)


def signed(parts: Parts, compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return the bytes of a file, with a right checksum."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.writestr("model.json", json.dumps(parts.head))
        for i, array in enumerate(parts.arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            archive.writestr(f"{i}.npy", member.getvalue())
        archive.comment = b"0" * 64
    content = out.getvalue()[:-64]
    return content + hashlib.sha256(content).hexdigest().encode()


def resigned(content: bytes) -> bytes:
    """Return changed bytes of a file with the checksum that they should have."""
    return content[:-64] + hashlib.sha256(content[:-64]).hexdigest().encode()


# A few bytes that ask for tables of gigabytes.
MANY_HARMONICS = {"class": "HarmonicTree", "data": {"dim": 1 << 24, "counts": [0, 1 << 24]}}


# ---- changes of one field

Change = Callable[[Parts], None]


def classes_of(content: bytes) -> set[str]:
    """Return the names of the classes in a file."""
    found = set()

    def look(value: Any) -> None:
        if isinstance(value, dict) and "class" in value:
            found.add(value["class"])
        inner = value.values() if isinstance(value, dict) else value
        for item in inner if isinstance(value, dict | list) else ():
            look(item)

    look(parts_of(content).head["model"])
    return found


def mutations(content: bytes, known: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """Yield what is changed in a file, and a function that makes it, for each of its values.

    Objects within of classes that are `known` stay as they are.
    """
    parts = parts_of(content)
    for path in list(_paths(parts.head["model"], known)):
        value = _at(parts.head["model"], path)
        for what, change in _changes(value, parts, path):
            yield f"{'.'.join(map(str, path))}: {what}", partial(_changed, parts, change)


def paths(content: bytes) -> list[tuple[Any, ...]]:
    """Return the places of all values of a file."""
    return list(_paths(parts_of(content).head["model"], ()))


def changes(content: bytes, path: tuple[Any, ...]) -> dict[str, Any]:
    """Return what makes a file with one value changed, by what is changed."""
    parts = parts_of(content)
    found = _changes(_at(parts.head["model"], path), parts, path)
    return {what: partial(_changed, parts, change) for what, change in found}


def _changed(parts: Parts, change: Change) -> bytes:
    made = Parts(copy.deepcopy(parts.head), list(parts.arrays))
    change(made)
    return signed(made)


def _paths(
    value: Any, known: Collection[str], path: tuple[Any, ...] = ()
) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values that stand for something."""
    if path:
        yield path
    if path and isinstance(value, dict) and value.get("class") in known:
        return
    if isinstance(value, list):
        inner = [(i, value[i]) for i in sorted({*range(min(len(value), 2)), len(value) - 1} - {-1})]
    elif isinstance(value, dict) and "array" not in value:
        inner = value.items()
    else:
        return
    for key, item in inner:
        if key not in ("class", "keys", "dtype"):
            yield from _paths(item, known, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _changes(value: Any, parts: Parts, path: tuple[Any, ...]) -> Iterator[tuple[str, Change]]:
    *where, last = path

    def put(new: Any) -> Change:
        def change(made: Parts) -> None:
            _at(made.head["model"], where)[last] = new

        return change

    if isinstance(value, dict) and "array" in value:
        yield from _changes_of_array(value, parts.arrays[value["array"]], path)
    if isinstance(value, bool) or value is None:
        others: list[Any] = [None if value is not None else 3, 2**62, "text"]
    elif isinstance(value, int):
        others = [value + 1, value - 1, -1, 0, 5000, 2**31, 2**62, 10**30, 1.5, None, "text", True]
    elif isinstance(value, float):
        others = [-value, 0.0, 1e300, math.nan, math.inf, None, "text"]
    elif isinstance(value, str):
        others = ["", "other", 7, None]
    elif isinstance(value, list):
        others = [[], value[:-1], value * 2, None, 3]
    else:
        others = [None, 3, {"class": "Report", "data": {"candidates": [], "remarks": []}}]
        others += [{"class": "Gaussian", "data": {"gamma": 1.0}}, {"tuple": []}, MANY_HARMONICS]
    for other in others:
        if other is not value:
            yield f"{value!r:.30} -> {other!r:.60}", put(other)
    if isinstance(_at(parts.head["model"], where), dict) and "data" in where[-1:]:
        yield "missing", lambda made: _at(made.head["model"], where).pop(last)


def _changes_of_array(
    value: dict[str, Any], array: Any, path: tuple[Any, ...]
) -> Iterator[tuple[str, Change]]:
    def put(new: Any) -> Change:
        def change(made: Parts) -> None:
            made.arrays[value["array"]] = new
            announced = {"shape": list(new.shape), "dtype": new.dtype.str}
            _at(made.head["model"], path).update(announced)

        return change

    found = {
        "longer": np.concatenate([array, array]) if array.ndim else np.array([array, array]),
        "shorter": array[:-1] if array.ndim else array[None][:0],
        "empty": array.reshape(-1)[:0],
        "flat": array.reshape(-1),
        "one more axis": array[..., None],
        "turned": array.T,
        "backwards": array[::-1] if array.ndim else array,
        "texts": np.full(array.shape, "x"),
        "complex": np.zeros(array.shape, complex),
    }
    if array.dtype.kind in "biuf":
        for dtype in ("i1", "i4", "i8", "u8", "f4", "f8", ">i4", ">i8", ">f8", "b1"):
            with np.errstate(all="ignore"):
                found[dtype] = array.astype(dtype)
    if array.dtype.kind in "iu" and array.size:
        info = np.iinfo(array.dtype)
        for each in (-1, 1, 100, 5000, info.min, info.max):
            for place in (0, array.size // 2, -1):
                one = array.copy()
                one.flat[place] = max(min(each, info.max), info.min)
                found[f"{each} in {place}"] = one
    if array.dtype.kind == "f" and array.size:
        for each in (math.nan, math.inf, -1e300, 0.0):
            one = array.copy()
            with np.errstate(over="ignore"):
                one.flat[array.size // 2] = each
            found[f"{each} within"] = one
    for what, new in found.items():
        if new.dtype != array.dtype or not np.array_equal(new, array):
            yield what, put(np.asarray(new))
