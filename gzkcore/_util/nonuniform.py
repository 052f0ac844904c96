"""Sums of exponentials at scattered points, by the nonuniform FFT of finufft (the extra `maps`).

A transform costs a constant for each point, which grows with the digits and the number of axes, and
an FFT of 2^d times as many numbers as there are frequencies.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import fftn, ifftn

from .threads import on_threads
from .typing import Doubles

__all__ = ["Exponentials", "evened", "paired"]

Complexes = NDArray[np.complex128]

# Points are divided into at most MOST_GROUPS groups of POINTS_OF_GROUP or more; each group has an
# FFT of its own.
MOST_GROUPS, POINTS_OF_GROUP = 8, 1 << 16


def has_finufft() -> bool:
    """Say whether there is finufft; it is imported where it is used."""
    return find_spec("finufft") is not None


def evened(V: Doubles) -> tuple[Doubles, Any]:
    """Return columns divided by powers of 2 to one size, and the exponents.

    Two columns that share a transform share its error.
    """
    power = np.frexp(np.abs(V).max(axis=0, initial=0.0))[1]
    return np.ldexp(V, -power), power


def paired(V: Doubles) -> Complexes:
    """Return one or two columns as one of complex numbers."""
    return np.asarray(V[:, 0] + 1j * V[:, 1] if V.shape[1] == 2 else V[:, 0], np.complex128)


class Exponentials:
    """The functions exp(i <k, x>) on the torus [0, 2 pi)^d at n points, for k_j = -m_j .. m_j.

    Parameters
    ----------
    angles : sequence of d arrays of shape (n,)
    shape : sequence of d odd int
        How many k there are along each axis, 2 m + 1. Coefficients are in the order of FFTs: 0 to
        m, then -m to -1.
    tol : float
        Relative error of a sum.

    Notes
    -----
    Results do not depend on the threads: each of a fixed number of groups of points has its own
    transform on one thread, and groups are added in their order.
    """

    def __init__(self, angles: Sequence[Doubles], shape: Sequence[int], tol: float) -> None:
        self.angles = [np.ascontiguousarray(each) for each in angles]
        self.shape, self.tol, self.n_points = tuple(shape), tol, len(self.angles[0])
        size = math.prod(shape) * math.log2(math.prod(shape) + 1)
        count = int(self.n_points / max(size, POINTS_OF_GROUP))
        count = min(max(count, 1), MOST_GROUPS)
        ends = [number * self.n_points // count for number in range(count + 1)]
        self.groups = [slice(*each) for each in itertools.pairwise(ends)]
        self._idle: dict[int, list[Any]] = {1: [], 2: []}  # plans of both types that no thread uses

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the plans, which are of this process."""
        return {**vars(self), "_idle": {1: [], 2: []}}

    def on_grid(self) -> "GridExponentials":
        """Return the same functions at the nodes of a grid, twice as many along each axis."""
        return GridExponentials(self.shape, [2 * size for size in self.shape])

    def synthesis(self, coefficients: Complexes, n_threads: int = 1) -> Complexes:
        """Return sum_k coefficients[k] exp(i <k, x>) at every point."""
        out = np.empty(self.n_points, np.complex128)

        def work(group: int) -> None:
            out[self.groups[group]] = self._execute(2, group, coefficients)

        self._each(work, n_threads)
        return out

    def adjoint(self, values: Complexes, n_threads: int = 1) -> Complexes:
        """Return sum_x values[x] exp(-i <k, x>) for every k."""
        sums: dict[int, Complexes] = {}

        def work(group: int) -> None:
            sums[group] = self._execute(1, group, values[self.groups[group]])

        self._each(work, n_threads)
        total = sums[0]
        for group in range(1, len(self.groups)):
            total += sums[group]
        return total

    def _each(self, work: Callable[[int], None], n_threads: int) -> None:
        """Call work(group) for every group."""
        waiting = itertools.count()

        def run(_thread: int, stopped: Callable[[], bool]) -> None:
            while (group := next(waiting)) < len(self.groups) and not stopped():
                work(group)

        if min(n_threads, len(self.groups)) == 1:
            run(0, lambda: False)
        else:
            on_threads(run, min(n_threads, len(self.groups)))

    def _execute(self, kind: int, group: int, data: Complexes) -> Any:
        try:
            plan = self._idle[kind].pop()
        except IndexError:
            plan = import_module("finufft").Plan(
                kind, self.shape, 1, self.tol, -1 if kind == 1 else 1, nthreads=1, modeord=1
            )
        plan.setpts(*[each[self.groups[group]] for each in self.angles])
        sums = plan.execute(np.ascontiguousarray(data))
        self._idle[kind].append(plan)
        return sums


class GridExponentials:
    """`Exponentials` at the nodes of a grid, 2 pi j / size along each axis, by FFTs."""

    def __init__(self, shape: Sequence[int], sizes: Sequence[int]) -> None:
        self.sizes, self.n_points = tuple(sizes), math.prod(sizes)
        halves = [size // 2 for size in shape]
        places = [np.r_[: most + 1, -most:0] for most in halves]  # from both ends
        self._places = np.ix_(*places)

    def synthesis(self, coefficients: Complexes, n_threads: int = 1) -> Complexes:
        """Return sum_k coefficients[k] exp(i <k, x>) at every node."""
        padded = np.zeros(self.sizes, np.complex128)
        padded[self._places] = coefficients
        values = ifftn(padded, norm="forward", overwrite_x=True, workers=n_threads)
        return np.asarray(values.ravel())

    def adjoint(self, values: Complexes, n_threads: int = 1) -> Complexes:
        """Return sum_x values[x] exp(-i <k, x>) for every k."""
        sums = fftn(values.reshape(self.sizes), workers=n_threads)
        return np.asarray(sums[self._places])
