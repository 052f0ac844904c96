"""Temperatures of a published competition, by gzkcore and others: `tables.py whole satellite`.

Heaton et al., A case study competition among methods for analyzing large spatial data, JABES 24
(2019): 105,569 cells of a satellite are given, and 42,740 below clouds are asked for.
"""

import functools
import math
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
from benchmarks.common import data_generator
from printing import load_arrays, report, show
from scipy.stats import norm

from gzkcore import KernelRegressor

NEIGHBOURS = 64  # of PyKrige, which the whole kernel of its rows would take hours


def satellite(options):
    """Print the scores of the defaults and of other libraries on the satellite's temperatures."""
    rows = []
    for name in METHODS:
        report(name)
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            try:
                row = pool.submit(_scored, name, options.quick).result()
            except ImportError as missing:
                row = {"model": f"{name}: {missing}"}
        rows.append({"model": name} | row)
        report(", ".join(f"{key} {value:.4g}" for key, value in row.items() if key != "model"))
    notes = (
        "Heaton et al., A case study competition among methods for analyzing large spatial data, "
        "JABES 24 (2019), Table 3: land surface temperatures in degrees, cells below clouds held "
        "out. The best of its thirteen entries have an MAE of 1.10, an RMSE of 1.53 and a CRPS of "
        ".83 (SPDE), and an interval score of 7.44. Other libraries get as many rows, drawn at "
        "random, as they take in ten minutes, and an exponential kernel unless another is named."
    )
    show("Satellite temperatures", rows, notes, options)


def _scored(name, quick):
    """Return the scores and times of a method."""
    method, most = METHODS[name]
    data = load_arrays("modis_temperature")
    lon, lat = np.meshgrid(data["lon"], data["lat"])
    y = data["temperature_c"].astype(np.float64)
    train, test = (part & np.isfinite(y) for part in (data["train"], ~data["train"]))
    places, asked = (np.column_stack([lon[part], lat[part]]) for part in (train, test))
    some = np.sort(data_generator(0).permutation(len(places))[: 500 if quick else most])
    asked, truth = (each[:: 50 if quick else 1] for each in (asked, y[test]))
    start, cpu = time.perf_counter(), time.process_time()
    predict = method(places[some], y[train][some])
    fit = time.perf_counter() - start, time.process_time() - cpu
    mean, std = predict(asked)
    whole = time.perf_counter() - start, time.process_time() - cpu
    row = {"fitted": len(some), "asked": len(asked), **normal_scores(truth, mean, std)}
    row |= {"fit, s": fit[0], "predict, s": whole[0] - fit[0]}
    return row | {"fit, CPU s": fit[1], "predict, CPU s": whole[1] - fit[1]}


def normal_scores(y, mean, std):
    """Return MAE, RMSE, the CRPS of a normal distribution, interval score and coverage of 95 %."""
    error = y - mean
    u = error / std
    crps = std * (u * (2 * norm.cdf(u) - 1) + 2 * norm.pdf(u) - 1 / math.sqrt(math.pi))
    half = norm.ppf(0.975) * std
    beyond = np.maximum(np.abs(error) - half, 0)
    return {
        "MAE": np.abs(error).mean(), "RMSE": math.sqrt(np.square(error).mean()),
        "CRPS": crps.mean(), "interval score": (2 * half + 2 / 0.05 * beyond).mean(),
        "covered": (beyond == 0).mean(),
    }  # fmt: skip


# Each returns a function of places, whose results are means and standard deviations.


def _ours(seed, X, y):
    def table(places):
        return pd.DataFrame({"lon": places[:, 0], "lat": places[:, 1]})

    model = KernelRegressor(random_state=seed).fit(table(X), y)
    return lambda places: model.predict(table(places), return_std=True)


def _gpboost(shape, X, y):
    import gpboost

    kernel = {"cov_function": "matern", "cov_fct_shape": shape}
    model = gpboost.GPModel(gp_coords=X, gp_approx="vecchia", num_neighbors=20, **kernel)
    model.fit(y=y, X=np.ones((len(y), 1)))

    def predict(places):
        of_data = {"predict_var": True, "predict_response": True}
        found = model.predict(gp_coords_pred=places, X_pred=np.ones((len(places), 1)), **of_data)
        return found["mu"], np.sqrt(found["var"])

    return predict


def _pykrige(X, y):
    from pykrige.ok import OrdinaryKriging

    model = OrdinaryKriging(*X.T, y, variogram_model="exponential", nlags=30, exact_values=False)

    def predict(places):
        near = {"backend": "loop", "n_closest_points": NEIGHBOURS}
        mean, variance = model.execute("points", *np.ascontiguousarray(places.T), **near)
        return mean.data, np.sqrt(variance.data)

    return predict


def _gstools(X, y):
    import gstools

    lags = np.linspace(0, 1.5, 31)
    model = gstools.Exponential(dim=2)
    model.fit_variogram(*gstools.vario_estimate(X.T, y, lags, sampling_size=5000, sampling_seed=0))
    kriging = gstools.krige.Ordinary(model, X.T, y, exact=False, pseudo_inv=False)

    def predict(places):
        mean, variance = kriging(places.T)
        return mean, np.sqrt(variance)  # of an observation: the nugget is in it

    return predict


def _sklearn(X, y):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    kernel = ConstantKernel() * Matern(nu=0.5) + WhiteKernel()
    model = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
    return lambda places: model.predict(places, return_std=True)


METHODS = {  # {model: (function that fits, the most rows that it gets)}
    **{  # the choice is made on some of the rows
        f"KernelRegressor, random_state={seed}": (functools.partial(_ours, seed), 10**6)
        for seed in range(4)
    },
    "GPBoost, Vecchia, Matern-1/2": (functools.partial(_gpboost, 0.5), 10**6),
    "GPBoost, Vecchia, Matern-3/2": (functools.partial(_gpboost, 1.5), 10**6),
    "scikit-learn GaussianProcessRegressor": (_sklearn, 3000),
    f"PyKrige, {NEIGHBOURS} nearest rows": (_pykrige, 10_000),
    "GSTools": (_gstools, 2000),
}
