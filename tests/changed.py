"""Models of which an attribute was changed: they answer or raise, and no kernel leaves its arrays.

A program that tests start: python tests/changed.py STEP FIRST NAME...
loads the model of each name in `tests/data/models`, and asks it once. Every STEP-th change of an
attribute, from the FIRST on, is made in a child of its own, which asks again: a kernel that reads or
writes elsewhere ends it. All arrays of the model end where no memory is, so that a step beyond the
end is noticed. The results are printed at the end, and what ended a child at once.
"""

import ctypes
import json
import math
import mmap
import resource
import signal
import sys
import warnings
from collections import Counter
from multiprocessing import resource_tracker  # noqa: F401  before memory is limited

import hostile
import models
import numpy as np
from programs import in_child

import gzkcore
from gzkcore.solve.wide import CrossAccumulator

SECONDS = 20  # a made-up size may take long, but not for ever
DEEPEST = 9
WITH_TARGETS = gzkcore.GramAccumulator, CrossAccumulator
INTEGERS = (-1, 1, -100_000, 5000, 2**31 - 1, -(2**31), 2**40, -(2**62))


def guarded(array):
    """Return a copy of an array that ends where a page that nobody may read begins."""
    if array.dtype.kind not in "biufc":
        return array
    page = mmap.PAGESIZE
    size = -(-max(array.nbytes, 1) // page) * page
    memory = mmap.mmap(-1, size + page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(address + size), page, 0) == 0
    made = np.frombuffer(memory, array.dtype, array.size, size - array.nbytes)
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    made = made.reshape(array.shape, order=order)
    made[...] = array
    return made


# ---- the places of a model


def _inner(value):
    """Return what a value holds, by how it is reached."""
    if isinstance(value, list | tuple):
        places = sorted({*range(min(len(value), 2)), len(value) - 1} - {-1})
        return [(i, value[i]) for i in places]
    if isinstance(value, dict):
        return list(value.items())[:4]
    if type(value).__module__.startswith(("gzkcore.", "sklearn.frozen")) and hasattr(
        value, "__dict__"
    ):
        return [(f".{name}", each) for name, each in vars(value).items()]
    return []


def places(root):
    """Yield (path, value) of all that is reached from a model, each object once."""
    seen = set()

    def walk(value, path):
        if len(path) > DEEPEST or id(value) in seen:
            return
        if path:
            yield path, value
        if _inner(value):
            seen.add(id(value))
        for key, each in _inner(value):
            yield from walk(each, (*path, key))

    yield from walk(root, ())


def put(root, path, new):
    """Set what a path leads to; tuples are made anew."""
    *before, last = path
    holder = root
    for key in before:
        holder = vars(holder)[key[1:]] if isinstance(key, str) and key[:1] == "." else holder[key]
    if isinstance(holder, tuple):
        items = [new if i == last else each for i, each in enumerate(holder)]
        made = type(holder)(*items) if hasattr(holder, "_fields") else tuple(items)
        put(root, tuple(before), made)
    elif isinstance(last, str) and last[:1] == ".":
        vars(holder)[last[1:]] = new
    else:
        holder[last] = new


# ---- the changes


def of_array(array):
    """Yield what an array is changed to."""
    for what, new in {
        "without the last": array[:-1] if array.ndim else array,
        "without the last column": array[..., :-1] if array.ndim else array,
        "empty": array[:0] if array.ndim else array,
        "twice": np.concatenate([array, array]) if array.ndim else array,
        "one more axis": array[None],
        "turned": array.T,
        "flat": array.ravel(),
        "float32": array.astype(np.float32) if array.dtype.kind != "c" else array,
        "int64": np.nan_to_num(array.real).astype(np.int64),
    }.items():
        if new.shape != array.shape or new.dtype != array.dtype or what == "turned":
            yield what, np.ascontiguousarray(new) if what != "turned" else new
    kind = array.dtype.kind
    if not array.size or kind not in "iuf":
        return
    values = [math.nan, math.inf, -1e300, 0.0]
    if kind != "f":
        info = np.iinfo(array.dtype)
        values = sorted({min(max(each, info.min), info.max) for each in INTEGERS})
    for each in values:
        for place in sorted({0, array.size // 2, array.size - 1}):
            new = array.copy()
            with np.errstate(over="ignore"):
                new.flat[place] = each
            yield f"{each} in {place}", new


def changes(value, donors):
    """Yield what is done to a value: in words, and the new value."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biufc":
            yield from ((what, guarded(np.asarray(new))) for what, new in of_array(value))
    elif isinstance(value, bool) or value is None:
        yield "other", not value
    elif isinstance(value, int | np.integer):
        yield from ((str(new), new) for new in (value + 1, value - 1, 0, *INTEGERS))
    elif isinstance(value, float | np.floating):
        yield from ((str(new), new) for new in (math.nan, math.inf, -1.0, 0.0, 1e300))
    elif isinstance(value, str):
        yield "other", "other"
    elif isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        yield from (("empty", value[:0]), ("shorter", value[:-1]), ("twice", value + value))
    elif isinstance(value, dict):
        yield "empty", {}
    else:
        for name, other in donors.get(type(value), {}).items():
            yield f"that of {name}", other
    if value is not None:
        yield "None", None


def with_guards(root):
    """Let every array of a model end where no memory is."""
    for path, value in list(places(root)):
        if isinstance(value, np.ndarray):
            put(root, path, guarded(value))
    return root


# ---- the children


def ask(model, say, X):
    """Let a model answer, and go on with more rows where it can."""
    say(model, X)
    y = models.labels(X) if hasattr(model, "classes_") else models.targets(X)
    if hasattr(model, "update"):
        model.update(X, y) if isinstance(model, WITH_TARGETS) else model.update(X)
    elif hasattr(model, "partial_fit"):
        model.partial_fit(X, y)


def attempt(model, path, new, say, X):
    """Return what comes of a change, in a child of this process."""

    def work():
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (hostile.BYTES, hostile.BYTES))
        put(model, path, new)
        try:
            ask(model, say, X)
        except Exception as error:  # noqa: BLE001  whatever it is, it is no crash
            return type(error).__name__.encode()
        return b"answered"

    came = in_child(work)
    return "took too long" if came == f"ended with {-signal.SIGALRM}" else came


def donors_of(names):
    """Return objects of each class by the model that they are of."""
    found = {}
    for name in names:
        for _, value in places(gzkcore.load(models.FOLDER / f"{name}.gzk")):
            if type(value).__module__.startswith("gzkcore."):
                found.setdefault(type(value), {})[name] = value
    return {kind: dict(list(each.items())[:6]) for kind, each in found.items()}


def main(step, first, names):
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    said, found, ended, at = hostile.ask(), Counter(), [], 0
    donors = donors_of(sorted(path.stem for path in models.FOLDER.glob("*.gzk")))
    for name in names:
        X = guarded(np.load(models.FOLDER / f"{name}.npz")["X"])
        cold, warm = (with_guards(gzkcore.load(models.FOLDER / f"{name}.gzk")) for _ in range(2))
        said[name](warm, X)
        for i, model in enumerate((warm, cold)):
            for path, value in places(model):
                for what, new in changes(value, donors):
                    at += 1
                    if at % step != first % step:
                        continue
                    came = attempt(model, path, new, said[name], X)
                    found[came] += 1
                    if came.startswith(("ended", "took")):
                        ended.append(f"{'cold' if i else 'warm'} {name} {path} {what}: {came}")
                        sys.stderr.write(ended[-1] + "\n")
    sys.stdout.write(json.dumps({"found": found, "ended": ended}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
