"""What `gzkcore demo` shows: feature maps compared in the same ridge, on 28,000 airports.

Every method gets the same splits, the same number of features, the same lengthscales and ridges to
choose from and the same two folds to choose by. Each runs in a process of its own, so that its peak
of memory is its own.
"""

import contextlib
import functools
import math
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem, RBFSampler

from gzkcore._util.memory import resident_memory
from gzkcore.datasets.globe import LatLonToSphere, lengthscale_km
from gzkcore.datasets.sets import load
from gzkcore.evaluate.measure import memory_when_warm
from gzkcore.evaluate.methods import on_sphere
from gzkcore.evaluate.worker import Worker
from gzkcore.features.gegenbauer import GegenbauerFeatures, PublishedGegenbauerFeatures
from gzkcore.kernels.zonal import Zonal
from gzkcore.learn.ridge_cv import RandomFeatureRidgeCV

from .maps import draw_map

GAMMAS = (32.0, 64.0, 128.0, 256.0)
TEST_FRACTION = 0.1


def _gegenbauer(n_components: int, seed: int, basis: Any = "auto") -> tuple[Any, dict[str, Any]]:
    features = GegenbauerFeatures(n_components=n_components, basis=basis, random_state=seed)
    return features, {"gamma": GAMMAS}


def _published(n_components: int, seed: int) -> tuple[Any, dict[str, Any]]:
    # On the unit sphere the kernel is zonal, Eq 9: one radial function, order 1, is all it has.
    kernels = [Zonal(functools.partial(on_sphere, gamma)) for gamma in GAMMAS]
    features = PublishedGegenbauerFeatures(
        kernels[0], n_components, degree=published_degree(n_components), order=1, random_state=seed
    )
    return features, {"kernel": kernels}


def published_degree(n_components: int) -> int:
    """Return the lowest degree up to which there are n_components harmonics, (degree + 1)^2.

    Of 31, 40, 63 and 95 with 1,024 features this did best by far: more degrees than the width can
    tell apart only add variance.
    """
    return math.isqrt(n_components - 1)


def _fourier(n_components: int, seed: int) -> tuple[Any, dict[str, Any]]:
    return RBFSampler(n_components=n_components, random_state=seed), {"gamma": GAMMAS}


def _nystroem(n_components: int, seed: int) -> tuple[Any, dict[str, Any]]:
    return Nystroem(n_components=n_components, random_state=seed), {"gamma": GAMMAS}


FEATURES: dict[str, Callable[[int, int], tuple[Any, dict[str, Any]]]] = {
    "Gegenbauer": _gegenbauer,
    "Gegenbauer, random basis": functools.partial(_gegenbauer, basis="random"),
    "Gegenbauer, published": _published,
    "random Fourier": _fourier,
    "Nystroem": _nystroem,
}


def airports() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return latitude and longitude, (n, 2), and elevation in metres."""
    data = load("airports")
    return np.column_stack([data.latitude, data.longitude]), data.elevation


def compare(n_components: int, seeds: int, report: Callable[[str, float], None]) -> dict[str, Any]:
    """Fit and test every method on `seeds` splits; return what `gzkcore demo --json` prints."""
    degrees, y = airports()
    X = LatLonToSphere().transform(degrees)
    rows: list[dict[str, Any]] = []
    with contextlib.closing(Worker(_measure, (n_components, seeds, X, y))) as worker:
        for method in FEATURES:
            report(method, 0)
            runs = []
            for run in worker.run(method):
                runs.append(run)
                report(method, len(runs) / seeds)
            rows.append({"method": method, "runs": runs} | _summary(runs))
    constant = []
    for seed in range(seeds):
        train, test = _split(len(y), seed)
        constant.append({"rmse": float(np.sqrt(np.mean((y[test] - y[train].mean()) ** 2)))})
    rows.append({"method": "predicting the mean", "runs": constant} | _summary(constant))
    for row in rows:
        row["r2"] = 1 - statistics.fmean(
            (run["rmse"] / mean["rmse"]) ** 2
            for run, mean in zip(row["runs"], constant, strict=True)
        )
    return {
        "airports": len(y),
        "n_components": n_components,
        "seeds": seeds,
        "lengthscales_km": [lengthscale_km(gamma) for gamma in GAMMAS],
        "published_degree": published_degree(n_components),
        "memory": "peak resident memory (VmHWM) of a process of its own, above that before it fits",
        "methods": rows,
    }


def _summary(runs: list[dict[str, float]]) -> dict[str, float]:
    errors = [run["rmse"] for run in runs]
    spread = statistics.stdev(errors) if len(errors) > 1 else 0.0
    summary = {"rmse": statistics.fmean(errors), "rmse_spread": spread}
    if "alpha" in runs[0]:
        for key in ("lengthscale_km", "alpha"):
            summary[key] = statistics.mode(run[key] for run in runs)
        summary["seconds"] = statistics.fmean(run["seconds"] for run in runs)
        summary["peak_memory_mb"] = max(run["peak_memory_mb"] for run in runs)
    return summary


def draw(path: Path, n_components: int) -> None:
    """Draw the surface that Gegenbauer features fit to all airports."""
    degrees, y = airports()
    sphere = LatLonToSphere()
    features, grid = _gegenbauer(n_components, 0)
    model = RandomFeatureRidgeCV(features, kernel_grid=grid, cv=2).fit(sphere.transform(degrees), y)
    draw_map(
        path,
        lambda places: model.predict(sphere.transform(places)),
        degrees,
        f"Elevation, predicted from {len(y):,} airports by {n_components:,} Gegenbauer features",
        "elevation (m)",
        model.best_params_["gamma"],
        terrain=True,
        remark="rims and hollows between the airports are no land: a sum of waves rings where no "
        "data hold it",
    )


def _measure(
    task: tuple[int, int, NDArray[Any], NDArray[Any]], method: str
) -> Iterator[dict[str, float]]:
    """Yield what a method is worth on each split."""
    n_components, seeds, X, y = task
    before = memory_when_warm(FEATURES[method](n_components, 0)[0], X)
    for seed in range(seeds):
        train, test = _split(len(y), seed)
        features, grid = FEATURES[method](n_components, seed)
        started = time.perf_counter()
        model = RandomFeatureRidgeCV(features, kernel_grid=grid, cv=2).fit(X[train], y[train])
        seconds = time.perf_counter() - started
        best = model.best_params_
        gamma = best["gamma"] if "gamma" in best else best["kernel"].function.args[0]
        yield {
            "rmse": float(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2))),
            "lengthscale_km": lengthscale_km(gamma),
            "alpha": best["alpha"],
            "seconds": seconds,
            "peak_memory_mb": (resident_memory()[1] - before) / 1e6,
        }


def _split(n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows to fit and the rows to test with."""
    order = np.random.default_rng(seed).permutation(n)
    n_test = round(n * TEST_FRACTION)
    return order[n_test:], order[:n_test]
