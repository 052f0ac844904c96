"""Sums of spherical harmonics at scattered points of the sphere, and their adjoint.

Along a circle of latitude harmonics are exponentials; along a meridian they are sums of cosines or
sines. So a sum of harmonics up to degree L is one of (2 L + 1)^2 exponentials of two angles: values
on L + 2 rings (`_compiled/legendre.pyx`) go round both poles and are transformed by an FFT. The
exponentials are summed at the points by a nonuniform FFT. The adjoint takes the same steps back.
"""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft, ifft, next_fast_len
from scipy.special import roots_legendre

from gzkcore._compiled import legendre as _legendre
from gzkcore._util.nonuniform import Complexes, Exponentials
from gzkcore._util.typing import Doubles

__all__ = ["HarmonicSums", "zonal_coefficients"]


class HarmonicSums:
    """The harmonics Y_lm of degrees l = 0 .. L at n points of the sphere.

    Y_lm = P_l|m|(cos theta) e^(i m phi) with mean square 1 / (4 pi) on the sphere, so that sum_m
    Y_lm(x) conj Y_lm(y) = (2 l + 1) / (4 pi) P_l(<x, y>). Coefficients are an array of shape (L +
    1, L + 1, 2): [m, l, 0] of Y_lm and [m, l, 1] of Y_l(-m). Entries of l < m are 0, and the second
    ones of m = 0.

    Parameters
    ----------
    angles : sequence of 2 arrays of shape (n,)
        Longitudes and colatitudes, see `angles_of`.
    degree : int
        L.
    tol : float
        Relative error of a sum.

    Notes
    -----
    Either direction costs about L^3 + 20 L^2 log L + 100 n operations for tol = 1e-8. Memory: 16 n
    bytes, and while it works 200 L^2.
    """

    def __init__(self, angles: Sequence[Doubles], degree: int, tol: float) -> None:
        self.degree = degree
        self.exponentials: Any = Exponentials(angles, [2 * degree + 1] * 2, tol)
        self.n_rings = next_fast_len(degree + 1) + 1
        self._parity: Doubles = np.where(np.arange(degree + 1) % 2, -1.0, 1.0)[:, None]

    def on_grid(self) -> "HarmonicSums":
        """Return the same functions at the nodes of a grid of both angles, from 0 to 2 pi."""
        made = copy.copy(self)
        made.exponentials = self.exponentials.on_grid()
        return made

    def synthesis(self, coefficients: Complexes, n_threads: int = 1) -> Complexes:
        """Return the sum of coefficients times harmonics at every point."""
        L, last = self.degree, self.n_rings - 1
        rings = np.empty((L + 1, self.n_rings, 4))
        _legendre.legendre_synthesis(
            np.ascontiguousarray(coefficients).view(np.float64), rings, n_threads
        )
        there, back = (rings.view(np.complex128)[:, :, part] for part in range(2))
        circle = np.empty((2 * L + 1, 2 * last), np.complex128)
        for rows, half, parity in (
            (slice(0, L + 1), there, self._parity),
            (slice(None, L, -1), back[1:], self._parity[1:]),
        ):
            circle[rows, : last + 1] = half
            circle[rows, last + 1 :] = parity * half[:, last - 1 : 0 : -1]
        turned = fft(circle, axis=1, norm="forward", overwrite_x=True, workers=n_threads)
        low = np.concatenate([turned[:, : L + 1], turned[:, 2 * last - L :]], axis=1)
        sums: Complexes = self.exponentials.synthesis(low, n_threads)
        return sums

    def adjoint(self, values: Complexes, n_threads: int = 1) -> Complexes:
        """Return the sum of values times conjugate harmonics over all points."""
        L, last = self.degree, self.n_rings - 1
        sums = self.exponentials.adjoint(values, n_threads)
        rings = np.zeros((L + 1, self.n_rings, 2), np.complex128)
        rings[:, :, 0] = on_rings(sums[: L + 1], last, self._parity, n_threads)
        rings[1:, :, 1] = on_rings(sums[:L:-1], last, self._parity[1:], n_threads)
        out = np.zeros((L + 1, L + 1, 2), np.complex128)
        _legendre.legendre_adjoint(rings.view(np.float64), out.view(np.float64), n_threads)
        return out


def angles_of(X: Doubles) -> list[Doubles]:
    """Return longitudes and colatitudes of rows of any length."""
    theta = np.arctan2(np.hypot(X[:, 0], X[:, 1]), X[:, 2])
    return [np.arctan2(X[:, 1], X[:, 0]), theta]


def on_rings(sums: Complexes, last: int, parity: Doubles, n_threads: int = 1) -> Complexes:
    """Return weights of rings theta_j = pi j / last, given sums of exp(-i k theta) along axis 1.

    The weighted sums over the rings, of exponentials with this parity under theta -> -theta, equal
    the given sums.
    """
    L = sums.shape[1] // 2
    turned = np.zeros((len(sums), 2 * last), np.complex128)
    turned[:, : L + 1], turned[:, 2 * last - L :] = sums[:, : L + 1], sums[:, L + 1 :]
    circle = ifft(turned, axis=1, overwrite_x=True, workers=n_threads)
    rings: Complexes = circle[:, : last + 1].copy()
    rings[:, 1:last] += parity * circle[:, :last:-1]
    return rings


def zonal_coefficients(cosines: Doubles) -> NDArray[np.float64]:
    """Return w_l with sum_k cosines[k] cos(k theta) = sum_l w_l (2 l + 1) / (4 pi) P_l(cos theta).

    By Funk and Hecke w_l = 2 pi int f(t) P_l(t) dt, by Gauss and Legendre's rule, which is exact
    for polynomials of degree 2 L + 1.
    """
    t, quadrature = roots_legendre(len(cosines))
    values = np.polynomial.chebyshev.chebval(t, cosines)
    before, now = np.zeros_like(t), 2 * np.pi * quadrature * values
    weights = np.empty(len(cosines))
    for ell in range(len(cosines)):
        weights[ell] = now.sum()
        before, now = now, ((2 * ell + 1) * t * now - ell * before) / (ell + 1)
    return weights
