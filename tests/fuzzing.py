"""What the fuzzers share: hostile arrays, and the count of what was tried.

`python3 run.py fuzz` runs the files fuzz_*.py again and again, with other seeds, and adds up what each
process leaves in the folder GZKCORE_FUZZ: how many cases there were, and the worst error of a mirror as
a share of what is allowed. The case under way stands there too, in case that it ends the process.
"""

import atexit
import functools
import json
import os
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from scipy import sparse

FOLDER = os.environ.get("GZKCORE_FUZZ")
COUNTS: Counter[str] = Counter()
WORST: dict[str, float] = {}

often = settings(
    max_examples=int(os.environ.get("GZKCORE_FUZZ_EXAMPLES", "30")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=False,
    print_blob=True,
)

seldom = settings(often, max_examples=max(1, often.max_examples // 30))

# What may be said of bad arguments. All else is a fault.
REFUSALS = (ValueError, TypeError, OverflowError, np.linalg.LinAlgError)


def counted(what, case=""):
    """Count a case before it is tried, and write it down."""
    COUNTS[what] += 1
    if FOLDER:
        os.pwrite(_note(), f"{what}: {case!r}".encode(errors="replace")[:ROOM].ljust(ROOM), 0)


ROOM = 3000


@functools.cache
def _note():
    """Open the file of the case under way, which is kept open and as long: opening it costs more."""
    return os.open(Path(FOLDER) / f"last-{os.getpid()}.txt", os.O_WRONLY | os.O_CREAT, 0o666)


def worst(where, ratio):
    """Remember the largest error of a mirror as a share of what is allowed."""
    WORST[where] = max(ratio, WORST.get(where, 0.0))


@atexit.register
def leave():
    if FOLDER and COUNTS:
        found = {"counts": COUNTS, "worst": WORST}
        (Path(FOLDER) / f"found-{os.getpid()}.json").write_text(json.dumps(found))
        (Path(FOLDER) / f"last-{os.getpid()}.txt").unlink(missing_ok=True)


@contextmanager
def quietly():
    """Silence the warnings that hostile numbers are worth."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


# ---- the same numbers in other arrays


def _strided(array):
    wide = np.empty((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    return wide[..., 0]


def _backwards(array):
    return array[::-1].copy()[::-1]


def _unaligned(array):
    memory = np.empty(array.nbytes + 1, np.uint8)
    made = memory[1:].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def _read_only(array):
    made = array.copy()
    made.flags.writeable = False
    return made


FORMS = {
    "as it is": lambda array: array,
    "columns first": np.asfortranarray,
    "strided": _strided,
    "backwards": _backwards,
    "unaligned": _unaligned,
    "read-only": _read_only,
    "of the other order of bytes": lambda array: array.astype(array.dtype.newbyteorder("S")),
}


def in_form(array, form):
    """Return the same numbers in another array."""
    if array.ndim == 0 or array.size == 0:
        return array
    return FORMS[form](array)


# ---- numbers and arrays that nobody wants

EXTREME = [0.0, -0.0, 5e-324, 1e-310, 1e-30, 1e15, 1e18, 1e30, 3e38, 1e154, 1e300, -1e300]
NO_NUMBERS = [np.nan, np.inf, -np.inf]


@st.composite
def rows(draw, dim):
    """Draw rows of about `dim` columns, from harmless to hostile."""
    kind = draw(st.sampled_from(["normal", "normal", "unit", "extreme", "bad", "shape", "type"]))
    count = draw(st.sampled_from([1, 2, 3, 5, 8, 17, 33]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((count, dim))
    if kind == "unit":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    if kind in ("extreme", "bad"):
        values = EXTREME if kind == "extreme" else EXTREME + 3 * NO_NUMBERS
        for _ in range(draw(st.integers(1, 4))):
            X[draw(st.integers(0, count - 1)), draw(st.integers(0, dim - 1))] = draw(
                st.sampled_from(values)
            )
        if draw(st.booleans()):
            with np.errstate(over="ignore", invalid="ignore"):
                X *= draw(st.sampled_from(EXTREME))
    if kind == "shape":
        shapes = [(0, dim), (count, 0), (count, dim + 1), (count, max(dim - 1, 0)), (count,), ()]
        return np.zeros(draw(st.sampled_from([*shapes, (1, count, dim)])))
    if kind == "type":
        types = ["i1", "u8", "b1", "f2", "g", "c16", "O", "U3", "M8[s]", ">f4", ">i8"]
        dtype = np.dtype(draw(st.sampled_from(types)))
        return np.rint(X).astype(dtype) if dtype.kind in "iub" else X.astype("f8").astype(dtype)
    with np.errstate(over="ignore"):
        X = X.astype(draw(st.sampled_from(["f4", "f8"])))
    if draw(st.booleans()):
        return in_form(X, draw(st.sampled_from(sorted(FORMS))))
    return _sparse(X, draw)


def _sparse(X, draw):
    form = draw(
        st.sampled_from(["dense", "list", "csr", "csc", "coo", "unsorted", "twice", "wide"])
    )
    if form == "dense":
        return X
    if form == "list":
        return X.tolist()
    if form in ("csr", "csc", "coo"):
        return getattr(sparse, f"{form}_array")(X)
    made = sparse.csr_array(X)
    if form == "unsorted":
        order = np.concatenate(
            [
                np.arange(b - 1, a - 1, -1)
                for a, b in zip(made.indptr, made.indptr[1:], strict=False)
            ]
        ).astype(int)
        return sparse.csr_array((made.data[order], made.indices[order], made.indptr), made.shape)
    if form == "twice":
        twice = np.repeat(made.indices, 2), 2 * made.indptr
        return sparse.csr_array((np.repeat(made.data / 2, 2), *twice), made.shape)
    made.indices = made.indices + draw(st.sampled_from([0, 1, 10**6]))  # out of its columns
    return made
