"""The tables of `tables.py whole`: the whole kernel beside features and beside other libraries."""

import math
import resource
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from benchmarks.common import data_generator
from cost import cost_of
from iterations import iterations
from prediction_data import NUMBERS
from printing import load_arrays, load_elevation, mean_and_spread, report, run_parts, show
from satellite import satellite
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import ShuffleSplit
from ways import ways

from gzkcore import (
    KernelOperator,
    KernelRegressor,
    KernelRidge,
    KernelRidgeCV,
    LatLonToSphere,
    Matern,
    NystromFeatures,
    RandomFeatureRidge,
    RandomFeatureRidgeCV,
    SeriesRidge,
    learn_kernel,
)

MULTIPLES = (0.7, 1.0, 1.4, 2.0, 2.8)  # factors of the inverse lengths that are tried
ALPHAS = np.logspace(-5, 0, 11)
CHOICE_ROWS = 8000  # on which the multiple and alpha are chosen
CENTERS = 2000


def whole(options):
    """Print the requested parts, or all."""
    parts = {
        "errors": errors, "features": features, "globe": globe, "peers": peers,
        "centers": centers, "iterations": iterations, "large": large, "satellite": satellite,
        "places": places, "passes": passes, "ways": ways,
    }  # fmt: skip
    run_parts("whole", options, parts)


# ---- tables with learned lengths


def errors(options):
    """Print errors on standardised tables, with the literature's ten splits 90/10."""
    rows = []
    for name in ("kin40k", "pol", "elevators", "protein", "bike"):
        numbers = {"whole kernel": [], "1,024 features": [], "alpha": [], "seconds": []}
        splits = 1 if options.quick else options.splits
        for split in range(splits):
            report(f"{name}, split {split + 1}/{splits}")
            train, test = standardised(name, split, options.quick)
            start = time.perf_counter()
            lengths, alpha = learned(*train, split)
            model = KernelRidge(Matern(1.5, lengths), alpha).fit(*train)
            numbers["seconds"].append(time.perf_counter() - start)
            numbers["whole kernel"].append(rmse(model, *test))
            numbers["alpha"].append(alpha)
            features = NystromFeatures(Matern(1.5, lengths), 1024, random_state=split)
            few = RandomFeatureRidge(features, alpha).fit(*train)
            numbers["1,024 features"].append(rmse(few, *test))
            report(", ".join(f"{key} {values[-1]:.4g}" for key, values in numbers.items()))
        rows.append(summary_of(name, len(train[1]), numbers))
    notes = (
        "Matern-3/2, one length per column by the marginal likelihood of 1,000 rows; its multiple "
        f"and alpha by a tenth of {CHOICE_ROWS:,} training rows. Root mean squared error of "
        "standardised y, mean and standard deviation over the splits; seconds for learning, "
        "choosing and fitting."
    )
    show("Learned lengths, whole kernel", rows, notes, options)


def features(options):
    """Print errors of features with learned lengths and smoothness, on the same splits."""
    rows, widths = [], (64, 128) if options.quick else (1024, 4096)
    for name in ("kin40k", "pol", "elevators", "protein", "bike", "magic"):
        error = percent_wrong if name == "magic" else rmse
        numbers = {}
        for split in range(1 if options.quick else options.splits):
            report(f"{name}, split {split + 1}/{options.splits}")
            train, test = standardised(name, split, options.quick)
            kernel = learn_kernel(*train, Matern("learn", "learn"), random_state=split).kernel
            chosen = data_generator(split).permutation(len(train[1]))[:CHOICE_ROWS]
            search = RandomFeatureRidgeCV(
                NystromFeatures(kernel, widths[0], random_state=split), cv=5,
                kernel_grid={"length_scale": [kernel.length_scale / c for c in MULTIPLES]},
            ).fit(*(part[chosen] for part in train))  # fmt: skip
            for width in widths:
                start = time.perf_counter()
                wider = NystromFeatures(search.kernel_, width, random_state=split)
                model = RandomFeatureRidgeCV(wider, cv=2).fit(*train)
                seconds = time.perf_counter() - start
                numbers.setdefault(f"{width:,} features", []).append(error(model, *test))
                numbers.setdefault(f"{width:,}: seconds", []).append(seconds)
            report(", ".join(f"{key} {values[-1]:.4g}" for key, values in numbers.items()))
        rows.append(summary_of(name, len(train[1]), numbers))
    notes = (
        "Nystrom features of a Matern kernel, one length per column and nu by the marginal "
        f"likelihood of 1,000 rows; its multiple by five folds of {CHOICE_ROWS:,} rows, alpha by "
        "two of all. Root mean squared error of standardised y, of magic the share of labels that "
        "are wrong in %, mean and standard deviation over the splits; seconds for the fit."
    )
    show("Learned lengths, features", rows, notes, options)


def summary_of(name, n, numbers):
    """Return a row of a table: mean and standard deviation of the numbers of all splits."""
    return {"table": name, "rows": n} | {
        key: mean_and_spread(values) for key, values in numbers.items()
    }


def standardised(name, split, quick):
    """Return (X, y) of the training and of the test rows, standardised on the former."""
    data = load_arrays("protein_casp" if name == "protein" else name)
    X, y = data["X"].astype(np.float64), data["y"].astype(np.float64)
    if "test_mask" in data:
        masks = np.unpackbits(data["test_mask"], axis=0)[: len(y)].astype(bool)
        held_out = masks[:, split]
    else:
        held_out = np.zeros(len(y), dtype=bool)
        held_out[data_generator(split).permutation(len(y))[: len(y) // 10]] = True
    train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    train = train[:2000] if quick else train
    varies = X[train].std(axis=0) > 0
    X = (X - X[train].mean(axis=0))[:, varies] / X[train].std(axis=0)[varies]
    y = (y - y[train].mean()) / y[train].std()
    return (X[train], y[train]), (X[test], y[test])


def learned(X, y, seed):
    """Return learned lengths, and the alpha with the least error."""
    lengths = learn_kernel(X, y, Matern(1.5), random_state=seed).kernel.length_scale
    chosen = data_generator(seed).permutation(len(y))[:CHOICE_ROWS]
    grid = {"length_scale": [lengths / multiple for multiple in MULTIPLES]}
    cv = ShuffleSplit(1, test_size=0.1, random_state=seed)
    search = KernelRidgeCV(Matern(1.5), ALPHAS, kernel_grid=grid, cv=cv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the smallest alpha need not converge
        search.fit(X[chosen], y[chosen])
    return search.best_params_["length_scale"], search.alpha_


def rmse(model, X, y):
    return math.sqrt(np.mean(np.square(model.predict(X) - y)))


def percent_wrong(model, X, y):
    """Return the per cent of wrong labels of a ridge regression on two labels as numbers."""
    middle = (y.min() + y.max()) / 2
    return 100 * np.mean((model.predict(X) > middle) != (y > middle))


# ---- the globe


def globe(options):
    """Print errors of elevation: the defaults, the whole kernel, features."""
    rows = []
    step = 16 if options.quick else 1
    for name, (table, length, alpha, gamma) in {
        "elevation of the Earth": ("elevation", 0.05, 0.03, 500.0),
        "airports": ("airports", 0.03, 0.1, 100.0),
    }.items():
        places, y, _ = NUMBERS[table]()
        places, y = places[::step], y[::step]
        X = LatLonToSphere().transform(places.to_numpy())
        found = {}
        for split in range(1 if options.quick else options.splits):
            report(f"{name}, split {split + 1}")
            order = data_generator(split).permutation(len(y))
            test, train = order[: len(y) // 10], order[len(y) // 10 :]
            mean = y[train].mean()
            models = {
                "KernelRegressor, defaults": KernelRegressor(random_state=split),
                "whole Matern-3/2": KernelRidge(Matern(1.5, length), alpha, random_state=split),
                "RBFSampler, 1,024": RandomFeatureRidgeCV(
                    RBFSampler(n_components=1024, random_state=split),
                    kernel_grid={"gamma": gamma * 2.0 ** np.arange(-4, 3)}, cv=2,
                ),
            }  # fmt: skip
            for method, model in models.items():
                fitted, asked = X[train], X[test]
                if "defaults" in method:
                    fitted, asked = places.iloc[train], places.iloc[test]
                start = time.perf_counter()
                model.fit(fitted, y[train] - mean)
                seconds = time.perf_counter() - start
                difference = model.predict(asked) + mean - y[test]
                square = np.mean(np.square(difference * (1 if table == "elevation" else 1e-3)))
                steps = float(np.max(model.n_iter_)) if hasattr(model, "n_iter_") else math.nan
                found.setdefault(method, []).append(
                    (square, 1000 * math.sqrt(square), seconds, steps)
                )
        for method, values in found.items():
            square, error, seconds, steps = np.array(values).T
            row = {"data": name, "rows": len(train), "model": method}
            row |= {"error, m": mean_and_spread(error), "squared, km^2": mean_and_spread(square)}
            row |= {"seconds": float(np.median(seconds))}
            rows.append(row | ({} if np.isnan(steps).any() else {"iterations": int(steps.max())}))
    notes = (
        "Random splits 90/10, mean and standard deviation over them, seconds of the fit. "
        "Error: root mean squared error in metres, and the mean squared error in km^2. "
        "KernelRegressor and the ridge on features choose everything themselves; length and alpha "
        "of the whole kernel were chosen by validation on the first split, which its seconds leave "
        "out."
    )
    show("The globe, whole", rows, notes, options)


def places(options):
    """Print time, memory and residual of `KernelRidge` on many random places."""
    rows = []
    sizes = (20_000,) if options.quick else (100_000, 1_000_000)
    cases = {
        "sphere": (Matern(1.5, 0.1), 0.1), "sphere, rough": (Matern(0.5, 0.1), 0.1),
        "sphere, short": (Matern(1.5, 0.02), 0.1), "plane": (Matern(1.5, 0.1), 0.1),
        "three columns": (Matern(1.5, 0.1), 0.1),
    }  # fmt: skip
    for where, (kernel, alpha) in cases.items():
        for n in sizes:
            report(f"{where}, {n:,} places")
            context = get_context("spawn")  # for the memory of each
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                found = pool.submit(fit_to_places, where, n, kernel, alpha).result()
            rows.append({"where": where, "rows": n, "kernel": repr(kernel), **found})
    notes = (
        "Random places; y is a smooth function and noise of .3. Residual: |y - (K + alpha) c| over "
        "|y|, of 100 rows, by tiles in double precision. Error: root mean squared difference from "
        "the smooth function at 2,000 other places."
    )
    show("Many places", rows, notes, options)


def fit_to_places(where, n, kernel, alpha):
    """Return seconds, processor seconds, gigabytes, steps, residual and error of a fit."""
    rng = np.random.default_rng(0)
    dim = {"plane": 2, "three columns": 3}.get(where)
    if dim is None:
        X = rng.standard_normal((n + 2000, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    else:
        X = rng.random((n + 2000, dim))
    smooth = np.sin(8 * X[:, 0]) * X[:, -1] + 0.3 * np.sin(40 * X[:, 1])
    y = smooth + 0.3 * rng.standard_normal(len(X))
    start, cpu = time.perf_counter(), time.process_time()
    model = KernelRidge(kernel, alpha, random_state=0).fit(X[:n], y[:n])
    found = {"seconds": time.perf_counter() - start, "CPU s": time.process_time() - cpu}
    found["GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    some = rng.choice(n, 100, replace=False)
    K = KernelOperator(kernel, X[some], X[:n], tol=0.0)
    left = y[some] - K @ model.dual_coef_ - alpha * model.dual_coef_[some]
    found |= {"steps": int(model.n_iter_), "residual": math.sqrt(np.mean(left**2) / np.mean(y**2))}
    found["error"] = math.sqrt(np.mean(np.square(model.predict(X[n:]) - smooth[n:])))
    return found


def passes(options):
    """Print time, memory, bound and error of `SeriesRidge` on many random places."""
    million = 1000 if options.quick else 1_000_000
    cases = ("sphere", 1, 256), ("sphere", 10, 256), ("plane", 10, 256), ("sphere", 100, 512)
    if options.quick:
        cases = ("sphere", 2, 48), ("plane", 2, 48)
    rows = []
    for where, count, degree in cases:
        report(f"{where}, {count} batches")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found = pool.submit(fit_in_one_pass, where, count, million, degree).result()
        rows.append({"where": where, "rows": count * million, "degree": degree, **found})
    notes = (
        "Matern-3/2 of length .1, alpha .1, random places in batches, whose making is not counted; "
        "y is a smooth function and noise of .3. Pass: seconds of a row times 10^9. Bound: of the "
        "error by what the equations are solved to, relative to standard deviations. Error: root "
        "mean squared difference from the smooth function at 20,000 other places."
    )
    show("Many places in one pass", rows, notes, options)


def fit_in_one_pass(where, count, size, degree):
    """Return what a fit to so many batches takes, and its error."""
    dim = 3 if where == "sphere" else 2
    box = None if where == "sphere" else [[-0.5, -0.5], [1.5, 1.5]]
    model = SeriesRidge(Matern(1.5, 0.1), 0.1, box=box, degree=degree)
    seconds = cpu = 0.0
    for batch in range(count + 1):
        rng = np.random.default_rng(batch)
        if dim == 3:
            X = rng.standard_normal((size, 3))
            X /= np.linalg.norm(X, axis=1, keepdims=True)
        else:
            X = rng.random((size, 2))
        smooth = np.sin(8 * X[:, 0]) * X[:, -1] + 0.3 * np.sin(40 * X[:, 1])
        if batch == count:
            break
        y = smooth + 0.3 * rng.standard_normal(size)
        start, began = time.perf_counter(), time.process_time()
        model.partial_fit(X, y)
        seconds, cpu = seconds + time.perf_counter() - start, cpu + time.process_time() - began
    start, began = time.perf_counter(), time.process_time()
    found = {"steps": int(model.n_iter_), "bound": float(model.error_bound_)}
    solved, solving = time.perf_counter() - start, time.process_time() - began
    error = model.predict(X[:20_000]) - smooth[:20_000]
    return {
        "pass, ns a row": 1e9 * seconds / (count * size), "seconds": seconds + solved,
        "CPU s": cpu + solving, **found, "error": math.sqrt(np.mean(np.square(error))),
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }  # fmt: skip


# ---- other libraries


def peers(options):
    """Print error, time and memory of other libraries with the same kernel, alpha and rows."""
    cases = ("kin40k", 4000), ("kin40k", 10_000), ("kin40k", 36_000), ("elevation", 58_320)
    notes = (
        "Matern-3/2 with the same lengths and alpha for all, fit and prediction of the test rows; "
        "MB: peak of the process above what it held before the fit. Residual 1e-3 where conjugate "
        "gradients are used."
    )
    show("The whole kernel in other libraries", _beside(PEERS, cases, 1, options), notes, options)


def centers(options):
    """Print error, time and memory of Falkon with the same kernel, alpha, rows and centres."""
    cases = ("kin40k", 36_000), ("elevation", 58_320)
    notes = (
        f"Matern-3/2 at {CENTERS:,} of the rows, with the same centres, lengths and alpha for all, "
        "fit and prediction of the test rows; medians of two rounds in turn; MB: peak of the "
        "process above what it held before the fit."
    )
    show("The kernel at centres", _beside(CENTER_PEERS, cases, 2, options), notes, options)


def _beside(methods, cases, rounds, options):
    """Return a row for each case and method; each round runs in its own process."""
    rows = []
    most = 1000 if options.quick else 10**6
    for name, wanted in cases:
        count = min(wanted, most)
        asked = [method for method, (_, limit) in methods.items() if count <= limit]
        found = {method: [] for method in asked}
        for number in range(1 if options.quick else rounds):
            for method in asked[:: 1 if number % 2 == 0 else -1]:
                report(f"{name}, {count} rows: {method}")
                with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                    try:
                        result = pool.submit(_peer, methods[method][0], name, count).result()
                    except ImportError as missing:
                        found[method] = missing
                        continue
                report("{:.4f}, {:.1f} s, {:.1f} s of processors, {:.0f} MB".format(*result))
                found[method].append(result)
        for method, results in found.items():
            row = {"data": name, "rows": count, "method": method}
            if isinstance(results, ImportError):
                rows.append(row | {"method": f"{method}: {results}"})
                continue
            names = "RMSE", "seconds", "of processors", "MB"
            rows.append(row | dict(zip(names, np.median(results, axis=0), strict=True)))
    return rows


def _peer(function, name, count):
    (X, y), (points, truth), lengths, alpha = _peer_data(name, count)
    function(X[:200], y[:200], points[:10], lengths, alpha)  # imports and compiles
    start = time.process_time()
    predicted, seconds, megabytes = cost_of(lambda: function(X, y, points, lengths, alpha))
    worked = time.process_time() - start
    return math.sqrt(np.mean(np.square(predicted - truth))), seconds, worked, megabytes


def _peer_data(name, count):
    if name == "elevation":
        X, y = load_elevation()
        order = data_generator(0).permutation(len(y))
        test, train = order[: len(y) // 10], order[len(y) // 10 :][:count]
        lengths, alpha = np.full(3, 0.05), 0.03
        y = (y - y[train].mean()) / y[train].std()
        return (X[train], y[train]), (X[test], y[test]), lengths, alpha
    train, test = standardised(name, 0, quick=False)
    chosen = data_generator(0).permutation(len(train[1]))[:count]
    lengths = learn_kernel(*train, Matern(1.5), random_state=0).kernel.length_scale
    return (train[0][chosen], train[1][chosen]), test, lengths, 1e-3


def _ours(X, y, points, lengths, alpha):
    return KernelRidge(Matern(1.5, lengths), alpha).fit(X, y).predict(points)


def _ours_single(X, y, points, lengths, alpha):
    model = KernelRidge(Matern(1.5, lengths), alpha).fit(X.astype(np.float32), y)
    return model.predict(points.astype(np.float32))


def _features(X, y, points, lengths, alpha):
    features = NystromFeatures(Matern(1.5, lengths), 1024, random_state=0)
    return RandomFeatureRidge(features, alpha).fit(X, y).predict(points)


def _sklearn_ridge(X, y, points, lengths, alpha):
    from sklearn.gaussian_process.kernels import Matern as Function
    from sklearn.kernel_ridge import KernelRidge as Dense

    function = Function(nu=1.5)
    model = Dense(alpha=alpha, kernel="precomputed").fit(function(X / lengths), y)
    return model.predict(function(points / lengths, X / lengths))


def _sklearn_process(X, y, points, lengths, alpha):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern as Function

    model = GaussianProcessRegressor(Function(lengths, nu=1.5), alpha=alpha, optimizer=None)
    return model.fit(X, y).predict(points)


def _keops(X, y, points, lengths, alpha):
    from pykeops.numpy import LazyTensor

    def matern(a, b):
        a = LazyTensor(np.ascontiguousarray(a / lengths * math.sqrt(3))[:, None])
        r = ((a - LazyTensor(np.ascontiguousarray(b / lengths * math.sqrt(3))[None])) ** 2).sum(-1)
        r = r.sqrt()
        return (1 + r) * (-r).exp()

    K = matern(X, X)
    operator = LinearOperator(
        (len(y), len(y)), lambda v: (K @ v.reshape(-1, 1)).ravel() + alpha * v, dtype=y.dtype
    )
    coef, _ = cg(operator, y, rtol=1e-3, maxiter=200)
    return (matern(points, X) @ coef.reshape(-1, 1)).ravel()


def _gpytorch(X, y, points, lengths, alpha):
    import gpytorch
    import torch

    class Process(gpytorch.models.ExactGP):
        def __init__(self, X, y, likelihood):
            super().__init__(X, y, likelihood)
            self.mean = gpytorch.means.ZeroMean()
            self.kernel = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=X.shape[1])
            self.kernel.lengthscale = torch.tensor(lengths)

        def forward(self, X):
            return gpytorch.distributions.MultivariateNormal(self.mean(X), self.kernel(X))

    likelihood = gpytorch.likelihoods.GaussianLikelihood(
        noise_constraint=gpytorch.constraints.GreaterThan(1e-8)
    )
    likelihood.noise = alpha
    model = Process(torch.tensor(X), torch.tensor(y), likelihood).double()
    model.eval()
    with (
        torch.no_grad(),
        gpytorch.settings.skip_posterior_variances(),
        gpytorch.settings.cg_tolerance(1e-3),
    ):
        return model(torch.tensor(points)).mean.numpy()


def _centers_of(X):
    return X[data_generator(1).permutation(len(X))[:CENTERS]]


def _our_centers(X, y, points, lengths, alpha):
    model = KernelRidge(Matern(1.5, lengths), alpha, centers=_centers_of(X))
    return model.fit(X, y).predict(points)


def _falkon(X, y, points, lengths, alpha, dtype=np.float64):
    """Falkon without KeOps, which is slower on processors; its penalty is a share of the rows."""
    import torch
    from falkon import Falkon, FalkonOptions
    from falkon.center_selection import FixedSelector
    from falkon.kernels import MaternKernel

    def tensor(array):
        return torch.from_numpy(np.ascontiguousarray(array, dtype=dtype))

    chosen = tensor(_centers_of(X))
    model = Falkon(
        MaternKernel(tensor(lengths), nu=1.5), alpha / len(y), len(chosen), FixedSelector(chosen),
        error_every=None, options=FalkonOptions(use_cpu=True, keops_active="no"),
    )  # fmt: skip
    return model.fit(tensor(X), tensor(y[:, None])).predict(tensor(points)).numpy().ravel()


def _falkon_single(*arguments):
    return _falkon(*arguments, dtype=np.float32)


PEERS = {  # {method: (function that predicts, the most rows that it gets)}
    "gzkcore.KernelRidge": (_ours, 10**6),
    "gzkcore.KernelRidge, float32": (_ours_single, 10**6),
    "gzkcore, 1,024 features": (_features, 10**6),
    "sklearn KernelRidge": (_sklearn_ridge, 10_000),
    "sklearn GaussianProcessRegressor": (_sklearn_process, 10_000),
    "GPyTorch": (_gpytorch, 10_000),
    "KeOps and scipy's cg": (_keops, 10_000),
}
CENTER_PEERS = {
    "gzkcore.KernelRidge(centers=...)": (_our_centers, 10**6),
    "Falkon": (_falkon, 10**6),
    "Falkon, float32": (_falkon_single, 10**6),
}


# ---- many rows


def large(options):
    """Points of the sphere: iterations and time against the number of rows."""
    rows = []
    for n in (1000, 2000) if options.quick else (10_000, 100_000, 300_000, 1_000_000):
        report(f"{n:,} rows")
        rng = data_generator(0)
        X = rng.standard_normal((n, 3))
        X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
        truth = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + np.sin(40 * X[:, 1]) / 2
        y = truth + 0.3 * rng.standard_normal(n)
        start = time.perf_counter()
        model = KernelRidge(Matern(1.5, 0.1), 0.1, random_state=0).fit(X, y)
        rows.append(
            {
                "rows": n,
                "iterations": int(np.max(model.n_iter_)),
                "true residual": float(np.max(model.residual_)),
                "setup, s": model.preconditioner_.seconds,
                "fit, s": time.perf_counter() - start,
                "peak, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    notes = "Matern-3/2 of length 0.1, alpha 0.1, float32 rows; to a true residual of 1e-3."
    show("Many rows, whole kernel", rows, notes, options)
