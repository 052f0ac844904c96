"""What predictions of y will be worth with all rows, by what some of them are: errors and costs.

A `KernelRegressor` chooses a kernel on a sample. Each form - the whole kernel, centres, features -
is fitted to half of the sample and to all of it, a fifth being held out. Errors go on falling as a
power of the number of rows, the whole kernel's at nearly the rate between the two fits, those of a
given size at half of it, since they end at what that size can do. Seconds grow by as much for each
row as between the two fits, and those of the whole kernel as `cost_of` says.
"""

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from gzkcore._util.typing import Doubles
from gzkcore.features.nystrom import NystromFeatures
from gzkcore.learn.kernel_regressor import KernelRegressor
from gzkcore.learn.kernel_ridge import KernelRidge
from gzkcore.learn.ridge_cv import RandomFeatureRidgeCV

from .whole import cost_of

# Rows of the fits, and rows held out, of which there is one in so many or more.
FITTED, TESTED, HELD_OUT = 6400, 4000, 5
# Of the rate, a choice: rates fall with the number of rows, most where the size is given.
WHOLE, SIZED = 0.9, 0.5


@dataclass(frozen=True)
class Forecast:
    """What a form is expected to be worth, fitted to all rows.

    Attributes
    ----------
    form : {"whole", "centres", "features"}
    size : int or None
        Centres or features; None: the whole kernel.
    error : float
        Root mean square on new rows, in units of y.
    seconds, megabytes : float
        Of the fit with a kernel that is known.
    """

    form: str
    size: int | None
    error: float
    seconds: float
    megabytes: float


def forecasts(
    X: Doubles, y: Doubles, n_samples: int, widths: Sequence[int], seed: int
) -> list[Forecast]:
    """Forecast each form of a `KernelRegressor` on n_samples rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Some of the rows at random.
    y : ndarray of shape (n_rows,)
    n_samples : int
    widths : sequence of int
        Numbers of features, and of centres.
    seed : int

    Returns
    -------
    list of Forecast
        The whole kernel first; none where the mean is as good as any kernel.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    n_fitted = min(FITTED, len(X) - len(X) // HELD_OUT)
    train, test = order[:n_fitted], order[n_fitted : n_fitted + TESTED]
    model = KernelRegressor(random_state=seed).fit(X[train], y[train])
    if model.kernel_ is None:
        return []
    encoded = model.encoder_.transform(X)
    mean, scale = y[train].mean(), y[train].std()
    rows = _Rows(encoded, (y - mean) / scale, train, test, n_samples)
    kernel, alpha = model.kernel_, float(model.alpha_ or 1.0)
    cost = cost_of(kernel, encoded[train], alpha, n_samples, rng)
    error, _ = rows.expected(KernelRidge(kernel, alpha, random_state=seed), WHOLE)
    found = [Forecast("whole", None, error * scale, cost.seconds, cost.megabytes)]
    for width in widths:
        if width >= len(train) // 2:  # more than the smaller fit has rows
            continue
        dim = encoded.shape[1]
        features = NystromFeatures(kernel, width, random_state=seed)
        for form, unfitted in (
            ("centres", KernelRidge(kernel, alpha, centers=width, random_state=seed)),
            ("features", RandomFeatureRidgeCV(features, fit_intercept=False, cv=2)),
        ):
            error, seconds = rows.expected(unfitted, SIZED)
            megabytes = 8e-6 * (3 * width**2 + n_samples * dim)
            found.append(Forecast(form, width, error * scale, seconds, megabytes))
    return found


@dataclass(frozen=True)
class _Rows:
    """Encoded rows of a sample with standardised targets, split."""

    X: Doubles
    y: Doubles
    train: Any
    test: Any
    n_samples: int

    def expected(self, model: Any, share: float) -> tuple[float, float]:
        """Return error and seconds with all rows, by those with half of the sample and with it."""
        (half, some), (error, more) = (self._fitted(model, step) for step in (2, 1))
        n = len(self.train)
        rate = share * max(0.0, math.log2(half / error)) if error else 0.0
        each = max(0.0, more - some) / (n - n // 2)
        return error * (self.n_samples / n) ** -rate, more + (self.n_samples - n) * each

    def _fitted(self, model: Any, step: int) -> tuple[float, float]:
        rows = self.train[::step]
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = clone(model).fit(self.X[rows], self.y[rows])
        seconds = time.perf_counter() - started
        missed = fitted.predict(self.X[self.test]) - self.y[self.test]
        return float(np.sqrt(np.mean(np.square(missed)))), seconds
