"""The tables of accuracy: errors of the kernel, on the Earth, and of other methods on real data."""

import time
import warnings

import numpy as np
from benchmarks.common import ball, data_generator, frobenius_error, gaussian, sphere
from benchmarks.competitors import PivotedNystroem
from printing import (
    load_arrays,
    load_elevation,
    mean_and_spread,
    report,
    run_parts,
    show,
    unit_vectors,
)
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gzkcore import (
    Gaussian,
    GegenbauerFeatures,
    ProductFeatures,
    PublishedGegenbauerFeatures,
    RandomFeatureRidgeCV,
    Zonal,
)

ALPHAS = np.logspace(-8, 2, 21)


# ---- of the kernel

SETTINGS = {
    "sphere, d=3, radius 5": (lambda n, seed: 5 * sphere(n, 3, seed=seed), 256),
    "ball, d=3, radius 4": (lambda n, seed: 4 * ball(n, 3, seed=seed), 1024),
    "sphere, d=5, radius 2": (lambda n, seed: 2 * sphere(n, 5, seed=seed), 256),
    "sphere, d=9, radius 2": (lambda n, seed: 2 * sphere(n, 9, seed=seed), 1024),
    "N(0, I), d=9": (lambda n, seed: gaussian(n, 9, seed=seed), 1024),
}
# Degrees of the published features up to where nothing is cut off, as the paper's theorems ask, and
# orders that divide the widths.
PUBLISHED_DEGREES = (4, 6, 8, 10, 25)
PUBLISHED_ORDERS = (1, 2, 4)


def published(X, width, degree, order, seed):
    """Return the transform of published features fitted on X; on a sphere, of a zonal kernel."""
    radius = np.linalg.norm(X, axis=1)
    if np.ptp(radius) > 1e-9 * radius.max():
        features = PublishedGegenbauerFeatures(
            Gaussian(0.5), width, degree=degree, order=order, random_state=seed
        )
        return features.fit(X).transform
    if order > 1:
        raise NotImplementedError("on a sphere there is one radial function")
    r = radius.mean()
    kernel = Zonal(lambda t: np.exp(r * r * (t - 1)))
    features = PublishedGegenbauerFeatures(
        kernel, width, degree=degree, order=1, random_state=seed
    ).fit(X / r)
    return lambda rows: features.transform(rows / r)


def accuracy(options):
    """Relative Frobenius error of the kernel matrix of 300 points, by four methods."""
    seeds = range(3 if options.quick else options.seeds)
    training = 1500 if options.quick else 4096
    rows = []
    for setting, (points, width) in SETTINGS.items():
        ours, rff, nystroem, theirs, as_published = [], [], [], {}, {}
        for seed in seeds:
            report(f"{setting}, seed {seed + 1}/{len(seeds)}")
            X, test = points(training, 1000 + seed), points(300, seed)
            K = Gaussian(0.5)(test)
            maps = {
                "ours": GegenbauerFeatures(Gaussian(0.5), width, random_state=seed),
                "rff": RBFSampler(gamma=0.5, n_components=width, random_state=seed),
                "nystroem": Nystroem(gamma=0.5, n_components=width, random_state=seed),
            }
            for name, errors in (("ours", ours), ("rff", rff), ("nystroem", nystroem)):
                errors.append(frobenius_error(K, maps[name].fit(X).transform(test)))
            for degree in PUBLISHED_DEGREES:
                for order in PUBLISHED_ORDERS:
                    try:
                        transform = published(X, width, degree, order, seed)
                    except NotImplementedError:
                        continue
                    error = frobenius_error(K, transform(test))
                    theirs.setdefault((degree, order), []).append(error)
        whole = [key for key in theirs if key[0] == PUBLISHED_DEGREES[-1]]
        for name, keys in (("as published", whole), ("best degree", list(theirs))):
            best = min(keys, key=lambda key, errors=theirs: np.mean(errors[key]))
            as_published[name] = f"{mean_and_spread(theirs[best])} (q={best[0]}, s={best[1]})"
        rows.append(
            {
                "points": setting,
                "features": width,
                "gzkcore, auto": mean_and_spread(ours),
                "as published": as_published["as published"],
                "as published, best degree": as_published["best degree"],
                "RBFSampler": mean_and_spread(rff),
                "Nystroem": mean_and_spread(nystroem),
            }
        )
    notes = (
        "|Z Z^T - K| / |K| in Frobenius norm on 300 points, gamma = 0.5; mean and standard "
        f"deviation of {len(seeds)} seeds, which draw points and features. Every map is fitted "
        f"on {training} other points of the same kind, so that Nystroem does not know the "
        f"points it is judged on. As published: degree q = {PUBLISHED_DEGREES[-1]}, which cuts "
        f"off next to nothing, and the best order s of {PUBLISHED_ORDERS}; then the best of "
        f"the degrees {PUBLISHED_DEGREES} too, which one would have to know beforehand."
    )
    show("Accuracy: relative error of the kernel matrix", rows, notes, options)


# ---- elevation


def elevation(options):
    """Elevation of the Earth from 1,024 features: ridge, alpha by 2-fold cross-validation."""
    X, y = load_elevation()
    if options.quick:
        X, y = X[::16], y[::16]
    splits = 2 if options.quick else options.splits
    width = 256 if options.quick else 1024
    gammas = np.logspace(0, 3, 7 if options.quick else 13)
    fixed, chosen = {}, {}
    for split in range(splits):
        order = data_generator(split).permutation(len(y))
        test, train = order[: len(y) // 10], order[len(y) // 10 :]
        maps = {
            "gzkcore, auto": GegenbauerFeatures(Gaussian(0.5), width, random_state=split),
            "as published": PublishedGegenbauerFeatures(
                Zonal(lambda t: np.exp(t - 1)), width, degree=15, order=1, random_state=split
            ),
            "RBFSampler": RBFSampler(gamma=0.5, n_components=width, random_state=split),
            "Nystroem": Nystroem(gamma=0.5, n_components=width, random_state=split),
        }
        for grid, results in ((None, fixed), ({"gamma": gammas}, chosen)):
            for name, features in maps.items():
                if grid and name == "as published":
                    continue  # its degree and order would have to follow gamma
                report(f"split {split + 1}/{splits}: {name}{', gamma chosen' if grid else ''}")
                model = RandomFeatureRidgeCV(features, alphas=ALPHAS, kernel_grid=grid, cv=2)
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a singular system at alpha = 1e-8 is expected
                    model.fit(X[train], y[train])
                seconds = time.perf_counter() - start
                error = float(np.mean(np.square(model.predict(X[test]) - y[test])))
                gamma = model.best_params_.get("gamma", 0.5)
                results.setdefault(name, []).append((error, model.alpha_, gamma, seconds))
    rows = []
    for what, results in (("gamma = 0.5", fixed), ("gamma chosen", chosen)):
        for name, values in results.items():
            error, alpha, gamma, seconds = np.array(values).T
            rows.append(
                {
                    "lengthscale": what,
                    "features": name,
                    "mean squared error, km²": mean_and_spread(error),
                    "alpha": _range(alpha),
                    "gamma": _range(gamma),
                    "fit, s": float(np.median(seconds)),
                }
            )
    notes = (
        f"{len(y):,} points on the unit sphere, elevation in km (variance {np.var(y):.3g}); "
        f"{splits} random splits 90/10, mean and standard deviation over them; {width} "
        "features each. alpha by 2-fold cross-validation over logspace(-8, 2, 21), gamma over "
        f"logspace(0, 3, {len(gammas)}); the ranges are what the splits chose."
    )
    show("Elevation of the Earth", rows, notes, options)


def _range(values):
    low, high = np.min(values), np.max(values)
    return f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"


# ---- domains: spheres, sphere x time, tables

# All methods choose their scales on so many rows of the training part.
CHOOSING_ROWS = 20_000


def domains(options):
    """Test error of ridge on 1,024 features, scales and alpha chosen on the training part."""
    parts = {"elevation": on_the_globe, "climate": in_space_and_time, "protein": in_a_table}
    run_parts("domains", options, parts)


def on_the_globe(options):
    """Predict elevation, on the sphere."""
    X, y = load_elevation()
    width = 256 if options.quick else 1024
    grid = {"kernel__gamma": [10.0, 30.0, 100.0]}
    methods = {
        "GegenbauerFeatures": (
            lambda seed: GegenbauerFeatures(Gaussian(1.0), width, random_state=seed),
            grid,
        ),
        'GegenbauerFeatures, "adapted"': (
            lambda seed: GegenbauerFeatures(
                Gaussian(1.0), width, basis="adapted", random_state=seed
            ),
            grid,
        ),
        "Nystroem, pivoted": (lambda seed: PivotedNystroem(Gaussian(1.0), width, seed), grid),
    }
    compare("Elevation of the Earth, km²", X, y, methods, options)


def in_space_and_time(options):
    """Predict monthly temperature, on the sphere times a circle."""
    data = load_arrays("climate_ncep_2p5deg")
    place = unit_vectors(data["lat"], data["lon"])
    angle = 2 * np.pi * (data["month"].astype(np.float64) - 1) / 12
    time_of_year = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.column_stack(
        [np.tile(place, (len(angle), 1)), np.repeat(time_of_year, len(place), axis=0)]
    )
    y = data["temp_c_x100"].ravel() / 100.0
    width = 256 if options.quick else 1024
    start = [(slice(0, 3), Gaussian(1.0)), (slice(3, 5), Gaussian(1.0))]
    both = {"kernel0__gamma": [3.0, 10.0, 30.0], "kernel1__gamma": [0.003, 0.01, 0.03, 0.1]}
    local = {"kernel0__gamma": [10.0, 30.0], "kernel1__gamma": [0.01, 0.03]}
    of_kernel = {f"kernel__{name}": values for name, values in both.items()}
    one = {"kernel__gamma": [0.3, 1.0, 3.0, 10.0]}
    methods = {
        "ProductFeatures": (
            lambda seed: ProductFeatures(start, width, random_state=seed),
            both,
        ),
        'ProductFeatures, "adapted"': (
            lambda seed: ProductFeatures(start, width, basis="adapted", random_state=seed),
            local,
        ),
        "Nystroem, pivoted, same kernel": (
            lambda seed: PivotedNystroem(ProductFeatures(start).kernel, width, seed),
            of_kernel,
        ),
        "isotropic: GegenbauerFeatures": (
            lambda seed: GegenbauerFeatures(Gaussian(1.0), width, random_state=seed),
            one,
        ),
        "isotropic: RBFSampler": (
            lambda seed: RBFSampler(n_components=width, random_state=seed),
            {"gamma": one["kernel__gamma"]},
        ),
        "isotropic: Nystroem": (
            lambda seed: Nystroem(n_components=width, random_state=seed),
            {"gamma": one["kernel__gamma"]},
        ),
        "isotropic: Nystroem, pivoted": (
            lambda seed: PivotedNystroem(Gaussian(1.0), width, seed),
            one,
        ),
    }
    compare("Temperature by place and month, °C²", X, y, methods, options)


def in_a_table(options):
    """Predict protein structure from nine numbers."""
    data = load_arrays("protein_casp")
    X, y = data["X"].astype(np.float64), data["y"].astype(np.float64)
    width = 256 if options.quick else 1024
    gammas, local = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2], [0.4, 0.8, 1.6]

    def rotated(features):
        return make_pipeline(StandardScaler(), PCA(), features)

    def scaled(features):
        return make_pipeline(StandardScaler(), features)

    methods = {
        "PCA, ProductFeatures": (
            lambda seed: rotated(ProductFeatures(Gaussian(1.0), width, random_state=seed)),
            {"productfeatures__kernel__gamma": gammas},
        ),
        'PCA, ProductFeatures, "adapted"': (
            lambda seed: rotated(
                ProductFeatures(Gaussian(1.0), width, basis="adapted", random_state=seed)
            ),
            {"productfeatures__kernel__gamma": local},
        ),
        'GegenbauerFeatures, "adapted"': (
            lambda seed: scaled(
                GegenbauerFeatures(Gaussian(1.0), width, basis="adapted", random_state=seed)
            ),
            {"gegenbauerfeatures__kernel__gamma": gammas[:3]},
        ),
        "GegenbauerFeatures": (
            lambda seed: scaled(GegenbauerFeatures(Gaussian(1.0), width, random_state=seed)),
            {"gegenbauerfeatures__kernel__gamma": gammas},
        ),
        "RBFSampler": (
            lambda seed: scaled(RBFSampler(n_components=width, random_state=seed)),
            {"rbfsampler__gamma": gammas},
        ),
        "Nystroem": (
            lambda seed: scaled(Nystroem(n_components=width, random_state=seed)),
            {"nystroem__gamma": gammas},
        ),
        "Nystroem, pivoted": (
            lambda seed: scaled(PivotedNystroem(Gaussian(1.0), width, seed)),
            {"pivotednystroem__kernel__gamma": gammas},
        ),
    }
    compare("Protein structure, squared Å", X, y, methods, options)


def compare(title, X, y, methods, options):
    """Print the test errors of methods, each a function of a seed and a grid of its scales."""
    if options.quick:
        X, y = X[::16], y[::16]
    splits = 2 if options.quick else options.splits
    results = {}
    for split in range(splits):
        order = data_generator(split).permutation(len(y))
        test, train = order[: len(y) // 10], order[len(y) // 10 :]
        for name, (make, grid) in methods.items():
            report(f"{title}, split {split + 1}/{splits}: {name}")
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # singular systems at alpha = 1e-8 are expected
                chosen = choose_scales(make(split), grid, X, y, train)
                middle = time.perf_counter()
                model = RandomFeatureRidgeCV(make(split).set_params(**chosen), ALPHAS, cv=2)
                model.fit(X[train], y[train])
                error = float(np.mean(np.square(model.predict(X[test]) - y[test])))
            seconds = middle - start, time.perf_counter() - middle
            results.setdefault(name, []).append((error, chosen, *seconds))
    rows = []
    for name, values in results.items():
        errors, chosen, choosing, fitting = zip(*values, strict=True)
        rows.append(
            {
                "features": name,
                "mean squared error": mean_and_spread(errors),
                "gamma": "; ".join(_range([scale[key] for scale in chosen]) for key in chosen[0]),
                "choose, s": float(np.median(choosing)),
                "fit, s": float(np.median(fitting)),
            }
        )
    notes = (
        f"{len(y):,} rows (variance {np.var(y):.3g}); {splits} random splits 90/10, mean and "
        "standard deviation over them. Scales by 2-fold cross-validation on at most "
        f"{CHOOSING_ROWS:,} rows of the training part, alpha on all of it, over logspace(-8, 2, "
        "21); grids of scales differ in size, and with them the seconds of the choice. "
        "Pivoted: landmarks by randomly pivoted Cholesky."
    )
    show(title, rows, notes, options)


def choose_scales(features, grid, X, y, train):
    """Return the entry of a grid with the least cross-validated error."""
    some = train[:CHOOSING_ROWS]
    model = RandomFeatureRidgeCV(features, ALPHAS[::2], kernel_grid=grid, cv=2)
    best = dict(model.fit(X[some], y[some]).best_params_)
    del best["alpha"]
    return best
