"""The command `gzkcore demo`: `KernelRegressor`, boosting and feature maps, on 28,000 airports.

`Airports` is the short form: `KernelRegressor` and boosting on one split, and the map that the
first draws. `compare` measures all methods on the same splits. `KernelRegressor` and boosting
choose their own settings. All feature maps have the same number of features, and choose among the
same lengthscales and ridges by the same two folds. Each method runs in a separate process, so that
its peak memory can be measured.
"""

import contextlib
import functools
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics import r2_score, root_mean_squared_error

from gzkcore._util.memory import PeakMemory
from gzkcore._util.typing import OnProgress
from gzkcore.datasets.sets import load
from gzkcore.evaluate.measure import prediction_errors
from gzkcore.evaluate.methods import on_sphere
from gzkcore.evaluate.worker import Worker
from gzkcore.features.gegenbauer import GegenbauerFeatures, PublishedGegenbauerFeatures
from gzkcore.kernels.zonal import Zonal
from gzkcore.learn.ridge_cv import RandomFeatureRidgeCV
from gzkcore.rows.frames import Frame
from gzkcore.sphere.globe import LatLonToSphere, lengthscale_km
from gzkcore.tabular.kernel_regressor import KernelRegressor

from .baselines import BOOSTING
from .maps import EARTH, draw_elevation, length_km, surface_of

# A function from latitude and longitude to predictions, and the parameters that were chosen.
Fitted: TypeAlias = tuple[Callable[[NDArray[Any]], NDArray[Any]], dict[str, float]]

WARM_ROWS, WARM_COMPONENTS = 2000, 64
GAMMAS = (64.0, 128.0, 256.0)
TEST_FRACTION = 0.1


def _gaussian(
    features: Any, n_components: int, seed: int, **params: Any
) -> tuple[Any, dict[str, Any]]:
    made = features(n_components=n_components, random_state=seed, **params)
    return made, {"gamma": GAMMAS}


def _published(n_components: int, seed: int) -> tuple[Any, dict[str, Any]]:
    # On the unit sphere the kernel is zonal, Eq 9: one radial function, order 1, is all it has.
    kernels = [Zonal(functools.partial(on_sphere, gamma)) for gamma in GAMMAS]
    features = PublishedGegenbauerFeatures(
        kernels[0], n_components, degree=published_degree(n_components), order=1, random_state=seed
    )
    return features, {"kernel": kernels}


def published_degree(n_components: int) -> int:
    """Return the highest degree up to which there are at most n_components harmonics.

    There are (degree + 1)^2 of them. Of 31, 40, 63 and 95 with 1,024 features, 31 did best by far:
    more degrees than the features can tell apart only add variance.
    """
    return math.isqrt(n_components - 1)


OURS = "KernelRegressor"
FEATURES: dict[str, Callable[[int, int], tuple[Any, dict[str, Any]]]] = {
    "Gegenbauer": functools.partial(_gaussian, GegenbauerFeatures),
    "Gegenbauer, random basis": functools.partial(_gaussian, GegenbauerFeatures, basis="random"),
    "Gegenbauer, published": _published,
    "random Fourier": functools.partial(_gaussian, RBFSampler),
    "Nystroem": functools.partial(_gaussian, Nystroem),
}
METHODS = (OURS, BOOSTING, *FEATURES)


def airports() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return latitude and longitude, (n, 2), and elevation in metres."""
    data = load("airports")
    return np.column_stack([data.latitude, data.longitude]), data.elevation


def compare(n_components: int, seeds: int, report: OnProgress) -> dict[str, Any]:
    """Fit and test every method on `seeds` splits; return what `--compare --json` prints."""
    degrees, y = airports()
    rows: list[dict[str, Any]] = []
    with contextlib.closing(Worker(_measure, (n_components, seeds, degrees, y))) as worker:
        for method in METHODS:
            report(method, 0)
            runs = []
            for run in worker.run(method):
                runs.append(run)
                report(method, len(runs) / seeds)
            rows.append({"method": method, "runs": runs} | _summary(runs))
    constant = []
    for seed in range(seeds):
        train, test = _split(len(y), seed)
        constant.append(prediction_errors(np.full(len(test), y[train].mean()), y[test]))
    rows.append({"method": "predicting the mean", "runs": constant} | _summary(constant))
    return {
        "airports": len(y),
        "n_components": n_components,
        "seeds": seeds,
        "lengthscales_km": [lengthscale_km(gamma) for gamma in GAMMAS],
        "published_degree": published_degree(n_components),
        "memory": "peak resident memory (VmHWM) of a separate process, minus that before the fit",
        "methods": rows,
    }


def _summary(runs: list[dict[str, float]]) -> dict[str, float]:
    errors = [run["rmse"] for run in runs]
    spread = statistics.stdev(errors) if len(errors) > 1 else 0.0
    summary = {"rmse": statistics.fmean(errors), "rmse_spread": spread}
    summary["r2"] = statistics.fmean(run["r2"] for run in runs)
    for key in ("lengthscale_km", "alpha"):
        if key in runs[0]:
            summary[key] = statistics.mode(run[key] for run in runs)
    if "seconds" in runs[0]:
        summary["seconds"] = statistics.fmean(run["seconds"] for run in runs)
        summary["peak_memory_mb"] = max(run["peak_memory_mb"] for run in runs)
    return summary


class Airports:
    """One split of the airports, and the learners that are fitted to it.

    Attributes
    ----------
    train, test : pairs of arrays
        Latitude and longitude, (n, 2), and elevation: of the rows to fit, and of a held-out tenth.
    model_ : KernelRegressor
    """

    def __init__(self) -> None:
        degrees, y = airports()
        self.train, self.test = ((degrees[rows], y[rows]) for rows in _split(len(y), 0))

    def errors(self) -> Iterator[dict[str, Any]]:
        """Fit `KernelRegressor`, then boosting; yield name, error, R2 and seconds of each."""
        self.model_ = KernelRegressor(random_state=0)
        yield self._measured(OURS, self.model_, _frame)
        yield self._measured(BOOSTING, HistGradientBoostingRegressor(random_state=0), np.asarray)

    def _measured(
        self, name: str, model: Any, rows_at: Callable[[NDArray[Any]], Any]
    ) -> dict[str, Any]:
        (degrees, y), (places, truth) = self.train, self.test
        started = time.perf_counter()
        model.fit(rows_at(degrees), y)
        seconds = time.perf_counter() - started
        predicted = model.predict(rows_at(places))
        return {
            "method": name,
            "rmse": float(root_mean_squared_error(truth, predicted)),
            "r2": float(r2_score(truth, predicted)),
            "seconds": seconds,
        }

    def draw(self, path: Path, hatched: bool = True) -> None:
        """Draw the surface that `KernelRegressor` has learned: the README's map."""
        surface = surface_of(self.model_, _frame, *self.train, window=EARTH, hatched=hatched)
        draw_elevation(path, surface)


def _frame(degrees: NDArray[Any]) -> Frame:
    return Frame({"latitude": degrees[:, 0], "longitude": degrees[:, 1]})


def _measure(
    task: tuple[int, int, NDArray[Any], NDArray[Any]], method: str
) -> Iterator[dict[str, float]]:
    """Yield what a method is worth on each split."""
    n_components, seeds, degrees, y = task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warm = _fitter(method, min(n_components, WARM_COMPONENTS))
        warm(degrees[:WARM_ROWS], y[:WARM_ROWS], 0)  # libraries are loaded, threads started
    fit, peak = _fitter(method, n_components), PeakMemory()
    for seed in range(seeds):
        train, test = _split(len(y), seed)
        started = time.perf_counter()
        predict, chosen = fit(degrees[train], y[train], seed)
        seconds = time.perf_counter() - started
        yield {
            **prediction_errors(predict(degrees[test]), y[test]),
            **chosen,
            "seconds": seconds,
            "peak_memory_mb": peak.megabytes,
        }


def _fitter(method: str, n_components: int) -> Callable[[NDArray[Any], NDArray[Any], int], Fitted]:
    known = {OURS: _regressor, BOOSTING: _boosting}
    return known.get(method) or functools.partial(_ridge, FEATURES[method], n_components)


def _regressor(degrees: NDArray[Any], y: NDArray[Any], seed: int) -> Fitted:
    model = KernelRegressor(random_state=seed).fit(_frame(degrees), y)
    chosen = {"lengthscale_km": length_km(model, degrees), "alpha": model.alpha_ or 0.0}
    return lambda places: model.predict(_frame(places)), chosen


def _boosting(degrees: NDArray[Any], y: NDArray[Any], seed: int) -> Fitted:
    model = HistGradientBoostingRegressor(random_state=seed).fit(degrees, y)
    return model.predict, {}


def _ridge(
    make: Callable[[int, int], tuple[Any, dict[str, Any]]], n_components: int,
    degrees: NDArray[Any], y: NDArray[Any], seed: int,
) -> Fitted:  # fmt: skip
    features, grid = make(n_components, seed)
    sphere = LatLonToSphere()
    model = RandomFeatureRidgeCV(features, kernel_grid=grid, cv=2).fit(sphere.transform(degrees), y)
    best = model.best_params_
    gamma = best["gamma"] if "gamma" in best else best["kernel"].function.args[0]
    chosen = {"lengthscale_km": lengthscale_km(gamma), "alpha": best["alpha"]}
    return lambda places: model.predict(sphere.transform(places)), chosen


def _split(n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows to fit and the rows to test with."""
    order = np.random.default_rng(seed).permutation(n)
    n_test = round(n * TEST_FRACTION)
    return order[n_test:], order[:n_test]
