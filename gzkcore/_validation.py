"""Checks of arguments that several modules share; each names the parameter, the value, the remedy."""

import math
import numbers

import numpy as np


def check_integer(name, value, minimum):
    """Return value as an int, or raise naming it if it is no integer >= minimum."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r} is not an integer; use an integer >= {minimum}")
    if value < minimum:
        raise ValueError(f"{name}={value} is too small; use an integer >= {minimum}")
    return int(value)


def check_dim(dim):
    """Return the dimension of the space as an int >= 1."""
    return check_integer("dim", dim, 1)


def check_positive(name, value):
    """Return value as a float, or raise naming it if it is no finite number > 0."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={value!r} is not a number; use a number > 0")
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name}={value} is not usable; use a finite number > 0")
    return float(value)


def as_floating(name, values):
    """Return values as a contiguous flat float array (float32 is kept) and their shape."""
    array = np.asarray(values)
    if array.dtype != np.float32:
        try:
            array = array.astype(np.float64, copy=False)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} is not numeric ({error}); pass numbers") from None
    return np.ascontiguousarray(array).reshape(-1), array.shape


def empty_aligned(shape, dtype):
    """Return an uninitialised C-ordered array on a cache-line boundary, where kernels stream best."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    buffer = np.empty(size + 64, dtype=np.uint8)
    first = -buffer.ctypes.data % 64
    return buffer[first : first + size].view(dtype).reshape(shape)


def check_out(out, shape, dtype, X=None):
    """Return `out`, or a new array where it is None; raise if `out` can't take the result."""
    if out is None:
        return empty_aligned(shape, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is a {type(out).__name__}; pass a numpy array of shape {shape}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, but the result has shape {shape}")
    if out.dtype != dtype:
        raise ValueError(f"out has dtype {out.dtype}, but the result has dtype {np.dtype(dtype)}")
    if not out.flags.c_contiguous:
        raise ValueError("out is not C-contiguous; pass an array made by numpy.empty")
    if not out.flags.writeable:
        raise ValueError("out is read-only; pass a writable array")
    if X is not None and np.may_share_memory(out, X):
        raise ValueError("out overlaps X in memory; pass an array of its own")
    return out
