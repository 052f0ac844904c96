"""Losses of a row, with slopes and curvatures in f, for regressions other than ridge.

Each takes targets and values of shape (n, k), and is convex in f. k is 1 except for `Softmax`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from gzkcore._compiled import losses as _losses
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles
from gzkcore.kernels.products import as_double

__all__ = ["Huber", "Logistic", "Loss", "Pinball", "Poisson", "Softmax", "huber_scale"]

# Values, slopes and curvatures; None for those that are not wanted.
Outputs: TypeAlias = tuple[Doubles | None, Doubles | None, Doubles | None]

# The pinball loss becomes less smooth by this factor whenever the residual is at most ROUGH. A fit
# that starts near its end skips the first SKIPPED times.
NARROWER, ROUGH, SKIPPED = 8.0, 0.1, 3
NARROWEST = 1e-12  # The last width is at least this share of the first.
# Coefficients leave a slope at least this share of the room that f leaves it.
INSIDE = 0.1
# The scale is at least this share of the targets' spread, if residuals are nearly all 0.
LEAST_SCALE = 1e-10


class Loss:
    """Base of all losses."""

    coupled: ClassVar[bool] = False  # whether the outputs of a row depend on each other

    def constant(self, y: Doubles, weight: Doubles) -> Doubles:
        """Return the constant f, of shape (k,), with the least sum of losses."""
        raise NotImplementedError

    def values(self, y: Doubles, f: Doubles) -> Doubles:
        """Return the loss of each row, of shape (n,)."""
        out = np.empty(len(f))
        self._compute(as_double(y), as_double(f), None, (out, None, None))
        return out

    def gradient(self, y: Doubles, f: Doubles) -> Doubles:
        """Return the slopes in f, of shape (n, k)."""
        out = np.empty(f.shape)
        self._compute(as_double(y), as_double(f), None, (None, out, None))
        return out

    def curvature(self, y: Doubles, f: Doubles, dual: Doubles) -> Doubles:
        """Return the curvatures in f, of shape (n, k); coupled ones are diag(h) - h h^T.

        `dual`, alpha c / w, equals minus the slopes at the minimum. If curvatures change fast,
        those between the two are better than those at f.
        """
        out = np.empty(f.shape)
        self._compute(as_double(y), as_double(f), as_double(dual), (None, None, out))
        return out

    def _compute(self, y: Doubles, f: Doubles, dual: Doubles | None, out: Outputs) -> None:
        """Write values, slopes and curvatures into the arrays that aren't None."""
        raise NotImplementedError

    def sizes(self, y: Doubles, f: Doubles) -> Doubles:
        """Return the size of the terms of each row's loss, which bounds its rounding error."""
        return np.abs(self.values(y, f))

    def begun(self, y: Doubles, f: Doubles, weight: Doubles, near: bool = False) -> "Loss | None":
        """Return the first loss of a fit; None if there is nothing to do.

        Parameters
        ----------
        f : ndarray of shape (n, k)
            The best constant.
        near : bool, default=False
            Whether the fit starts near its end.
        """
        return self if np.isfinite(f).all() else None

    def next(
        self, y: Doubles, f: Doubles, weight: Doubles, penalty: float, residual: float, tol: float
    ) -> "Loss | None":
        """Return the next loss of a fit; None if the fit is done.

        Parameters
        ----------
        penalty : float
            alpha |f|^2.
        residual : float
            The residual of the fit with this loss.
        tol : float
            The largest residual of a fit that is done.
        """
        return self if residual > tol else None


class Poisson(Loss):
    """exp(f) - y f, up to a constant: minus the log likelihood of counts of mean exp(f).

    As half the deviance, y log(y / mu) - y + mu, so that it is 0 where mu = y.
    """

    def constant(self, y: Doubles, weight: Doubles) -> Doubles:
        """Return the constant with the least sum of losses."""
        with np.errstate(divide="ignore"):
            return np.log(np.average(y, axis=0, weights=weight))

    def sizes(self, y: Doubles, f: Doubles) -> Doubles:
        """Return the size of the terms of each row's loss."""
        return np.asarray((y * (1 + np.abs(f)) + np.exp(f))[:, 0])

    def _compute(self, y: Doubles, f: Doubles, dual: Doubles | None, out: Outputs) -> None:
        _losses.poisson(y.ravel(), f.ravel(), *_flat(out), n_threads(32 * len(f)))


class Logistic(Loss):
    """log(1 + exp(-y f)) for targets of +-1: minus the log likelihood of the class."""

    def constant(self, y: Doubles, weight: Doubles) -> Doubles:
        """Return the constant with the least sum of losses."""
        return np.asarray(np.log(weight @ (y > 0)) - np.log(weight @ (y <= 0)))

    def _compute(self, y: Doubles, f: Doubles, dual: Doubles | None, out: Outputs) -> None:
        _losses.logistic(y.ravel(), f.ravel(), *_flat(out), n_threads(32 * len(f)))


class Softmax(Loss):
    """-log of the share of exp(f) that the row's class has, for targets of +-1, k classes."""

    coupled = True

    def constant(self, y: Doubles, weight: Doubles) -> Doubles:
        """Return the constant with the least sum of losses."""
        logs = np.log(np.average(y > 0, axis=0, weights=weight))
        return np.asarray(logs - logs.mean())

    def _compute(self, y: Doubles, f: Doubles, dual: Doubles | None, out: Outputs) -> None:
        _losses.softmax(y, f, *out, n_threads(32 * f.size))


@dataclass(frozen=True)
class Huber(Loss):
    """r^2 / 2 for |r| <= w, w |r| - w^2 / 2 beyond, with r = y - f and w = epsilon scale.

    Parameters
    ----------
    epsilon : float
        >= 1.
    scale : float
        The scale of the residuals, see `huber_scale`; `begun` and `next` set it.
    """

    epsilon: float
    scale: float = 1.0

    @property
    def width(self) -> float:
        """The largest residual that counts by its square."""
        return self.epsilon * self.scale

    def constant(self, y: Doubles, weight: Doubles) -> Doubles:
        """Return the constant with the least sum of losses."""
        return weighted_quantile(y, weight, 0.5)

    def begun(self, y: Doubles, f: Doubles, weight: Doubles, near: bool = False) -> "Huber":
        """Return the loss with the scale of the first residuals."""
        return self.rescaled(y, f, weight, 0.0)

    def rescaled(self, y: Doubles, f: Doubles, weight: Doubles, penalty: float) -> "Huber":
        """Return the loss with the scale of the residuals."""
        scale = huber_scale((y - f)[:, 0], self.epsilon, penalty, weight)
        away = np.abs(y - self.constant(y, weight))
        typical = float(weighted_quantile(away, weight, 0.5)[0]) or float(away.max())
        rounding = 8 * np.finfo(np.float64).eps * float(np.abs(y).max())
        return Huber(self.epsilon, max(scale, LEAST_SCALE * typical + rounding))

    def next(
        self, y: Doubles, f: Doubles, weight: Doubles, penalty: float, residual: float, tol: float
    ) -> "Huber | None":
        """Return the loss with the present scale of the residuals, None if it is steady."""
        other = self.rescaled(y, f, weight, penalty)
        steady = abs(other.scale - self.scale) <= tol * self.scale
        return None if residual <= tol and steady else other

    def _compute(self, y: Doubles, f: Doubles, dual: Doubles | None, out: Outputs) -> None:
        _losses.huber(y.ravel(), f.ravel(), self.width, *_flat(out), n_threads(4 * len(f)))


@dataclass(frozen=True)
class Pinball(Loss):
    """The pinball loss of a quantile q, max(q r, (q - 1) r) with r = y - f, smoothed.

    It is the largest value of s r for slopes s from q - 1 to q; here that of s r + m log(q - s) +
    m log(s + 1 - q), with a barrier about these: q - s = 2 m / (r + 2 m + sqrt(r^2 + 4 m^2)). The
    least sum of pinball losses and penalty is missed by at most m sum_i w_i, and m goes to 0.

    The curvature 1 / (m / (q - s)^2 + m / (s + 1 - q)^2) is that of an interior point method: one
    factor of each square is of f, the other one of the coefficients.

    Parameters
    ----------
    quantile : float
        > 0 and < 1.
    width : float
        m; `begun` and `next` set it.
    first : float
        The first m.
    """

    quantile: float
    width: float = 0.0
    first: float = 0.0

    def constant(self, y: Doubles, weight: Doubles) -> Doubles:
        """Return the constant with the least sum of losses."""
        return weighted_quantile(y, weight, self.quantile)

    def begun(
        self, y: Doubles, f: Doubles, weight: Doubles, near: bool = False
    ) -> "Pinball | None":
        """Return the loss smoothed by the typical distance of the targets from f, if not 0."""
        away = np.abs(y - f)
        first = float(weighted_quantile(away, weight, 0.5)[0]) or float(away.max())
        width = first / NARROWER**SKIPPED if near else first
        return Pinball(self.quantile, width, first) if width else None

    def next(
        self, y: Doubles, f: Doubles, weight: Doubles, penalty: float, residual: float, tol: float
    ) -> "Pinball | None":
        """Return a less smooth loss while smoothing may raise the objective by more than tol."""
        if residual > max(tol, ROUGH):
            return self
        r = (y - f)[:, 0]
        true = np.maximum(self.quantile * r, (self.quantile - 1) * r)
        small = 2 * self.width / (np.abs(r) + 2 * self.width + np.hypot(r, 2 * self.width))
        bias = weight @ (small * np.abs(r))  # of pinball losses: s r is less
        if bias > tol * (weight @ true + penalty / 2) and self.width > NARROWEST * self.first:
            return Pinball(self.quantile, self.width / NARROWER, self.first)
        return self if residual > tol else None

    def _compute(self, y: Doubles, f: Doubles, dual: Doubles | None, out: Outputs) -> None:
        duals = None if dual is None else dual.ravel()
        _losses.smoothed_pinball(
            y.ravel(), f.ravel(), duals, self.quantile, self.width, INSIDE, *_flat(out),
            n_threads(32 * len(f)),
        )  # fmt: skip


def _flat(out: Outputs) -> Outputs:
    values, slopes, curvatures = (None if array is None else array.reshape(-1) for array in out)
    return values, slopes, curvatures


def huber_scale(residuals: Any, epsilon: float, penalty: float = 0.0, weights: Any = None) -> float:
    """Return the scale s with s^2 sum_i w_i = sum_i w_i min(r_i^2, epsilon^2 s^2) + penalty.

    It is 0 if too few residuals r differ from 0.

    Parameters
    ----------
    residuals, weights : array-like of shape (n,)
        Without weights each counts 1.
    epsilon : float
        >= 1.
    penalty : float, default=0.0
        >= 0.
    """
    r = np.asarray(residuals, dtype=np.float64)
    w = np.ones(len(r)) if weights is None else np.asarray(weights, dtype=np.float64)
    order = np.argsort(np.abs(r))
    size, w = np.abs(r[order]), w[order]
    # The sum of the least of two is the least sum, over how many of the smallest are inside.
    inside = np.concatenate([[0.0], np.cumsum(w)])
    squares = np.concatenate([[0.0], np.cumsum(w * np.square(size))]) + penalty
    left = inside[-1] - epsilon**2 * (inside[-1] - inside)
    return float(np.sqrt((squares[left > 0] / left[left > 0]).min()))


def weighted_quantile(y: Doubles, weight: Doubles, quantile: float) -> Doubles:
    """Return a quantile of each column: the least value with that share of the weight up to it."""
    order = np.argsort(y, axis=0, kind="stable")
    upto = np.cumsum(weight[order], axis=0)
    place = (upto < quantile * upto[-1] * (1 - 1e-12)).sum(axis=0)
    return np.asarray(np.take_along_axis(y, order, axis=0)[place, np.arange(y.shape[1])])
