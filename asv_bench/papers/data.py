"""The data of the experiments of the papers: the original set, or the most similar real one."""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import OneHotEncoder, StandardScaler, normalize
from sklearn.utils import Bunch

from gzkcore._util.typing import Doubles
from gzkcore.datasets.downloads import PUBLISHED
from gzkcore.sphere.globe import LatLonToSphere

from .downloads import CO2_BY_HAND, SOURCES, load_set

# Name in the paper -> (name for `load`, whether its cells can be held against the printed ones,
# what is different), the original first.
CANDIDATES: dict[str, tuple[tuple[str, bool, str], ...]] = {
    "Elevation": (
        ("elevation", True, ""),
        ("elevation_1deg", True, "another grid of the same planet, ETOPO5 instead of ETOPO1"),
    ),
    "CO2": (("co2", True, ""),),
    "Climate": (
        ("climate", True, ""),
        ("climate_ncep_2p5deg", False, "NCEP reanalysis, land and sea, instead of Berkeley Earth"),
    ),
    "Protein": (("protein", True, ""),),
    "Abalone": (("abalone", True, ""),),
    "Pendigits": (("pendigits", True, ""),),
    "Mushroom": (("mushroom", True, ""),),
    "Magic": (("magic", True, ""),),
    "Statlog": (("shuttle", True, "training and test part together"),),
    "Connect-4": (("connect-4", True, ""),),
    "ADULT": (("adult", True, ""),),
    "CIFAR-10": (("cifar-10", True, ""),),
    "CENSUS": (("census", False, "16 of the columns of DELVE's census-house, not 119"),),
    "Genes": (
        ("genes-bc-tcga", True, ""),
        ("gene_chowdary", False, "104 tumours x 22,283 genes instead of BC-TCGA, 590 x 17,814"),
        ("genes", False, "630 tumours x 10,936 genes instead of BC-TCGA, 590 x 17,814"),
    ),
    "Faces": (
        ("faces-ar", True, ""),
        ("faces", False, "Olivetti, 64 x 64 points, instead of AR, 768 x 576"),
    ),
    "Natural images": (
        ("natural-images", True, ""),
        ("photographs", False, "256 x 256 points cut from two photographs instead of 512 x 512"),
    ),
}


def _how_to_get(candidates: tuple[tuple[str, bool, str], ...]) -> str:
    """Say how a set that isn't there can be had: the first that has a source."""
    names = [name for name, *_ in candidates]
    if "co2" in names:
        return CO2_BY_HAND
    by_file = f"put {names[0]}.npz into the folder that GZKCORE_DATA names"
    if not {*names} & {*PUBLISHED, *SOURCES}:
        return by_file
    return f"add --download (in Python download=True) to fetch it, or {by_file}"


class Known(NamedTuple):
    """A set that is there."""

    name: str
    arrays: Bunch
    comparable: bool
    different: str

    @property
    def note(self) -> str:
        """Why cells are not held against the printed ones, or what to bear in mind."""
        return "" if self.comparable else "stand-in data"


class Data:
    """Sets by their names in the papers, loaded when they are asked for.

    Attributes: `used`, name -> line about the set; `absent`, name -> reason.
    """

    def __init__(self, home: Path | None = None, download: bool = False) -> None:
        self.home, self.download = home, download
        self.used: dict[str, str] = {}
        self.absent: dict[str, str] = {}
        self.known: dict[str, Known | None] = {}

    def get(self, name: str) -> Known | None:
        """Return a set, or None if it isn't there."""
        if name not in self.known:
            self.known[name] = self._look_for(name)
        return self.known[name]

    def _look_for(self, name: str) -> Known | None:
        reasons = []
        for file, comparable, different in CANDIDATES[name]:
            try:
                arrays = load_set(file, self.home, self.download)
            except (OSError, ImportError) as error:
                reasons.append(str(error))
                continue
            self.used[name] = arrays.DESCR + (f": {different}" if different else "")
            return Known(file, arrays, comparable, different)
        self.absent[name] = reasons[0] if self.download else _how_to_get(CANDIDATES[name])
        return None

    def digest(self, name: str) -> str | None:
        """Return a short checksum of the arrays, or None if the set isn't there."""
        known = self.get(name)
        if known is None:
            return None
        total = hashlib.sha256()
        for key in sorted(known.arrays):
            if key != "DESCR":
                total.update(key.encode())
                total.update(np.ascontiguousarray(known.arrays[key]).tobytes())
        return f"{known.name} {total.hexdigest()[:12]}"


def regression(known: Known, name: str) -> tuple[Doubles, Doubles]:
    """Return inputs and targets of [G] Table 2, as Appendix J says.

    Places as unit vectors; the month, and all of protein's columns, of mean 0 and variance 1.
    Elevation in km, temperatures in degrees, emissions as they are.
    """
    data = known.arrays
    if name == "Protein":
        # The file's first column is the label (RMSD), not its last as the paper has it.
        return _standard(data.X), np.asarray(data.y, dtype=np.float64)
    place = LatLonToSphere().transform(np.column_stack([data.lat, data.lon]).astype(np.float64))
    if name == "Elevation":
        return place, np.asarray(data.elevation_m, dtype=np.float64) / 1000
    if name == "CO2":
        values = np.asarray(data.emission, dtype=np.float64)
    elif "temp_c" in data:
        values = np.asarray(data.temp_c, dtype=np.float64)
    else:
        values = data.temp_c_x100 / 100.0
    months = _standard(np.arange(1.0, 13.0)[:, None])
    return (
        np.column_stack([np.tile(place, (12, 1)), np.repeat(months, len(place), axis=0)]),
        values.ravel(),
    )


def clusters(known: Known) -> tuple[Doubles, int]:
    """Return rows on the unit sphere and the number of classes, for [G] Table 3."""
    X = np.asarray(known.arrays.X, dtype=np.float64)
    X = X[:, np.ptp(X, axis=0) > 0]  # of mushroom one column is the same in all rows: d = 21
    classes = known.arrays.y3 if "y3" in known.arrays else known.arrays.y
    return normalize(_standard(X)), len(np.unique(classes))


def labelled(known: Known, name: str, seed: int) -> tuple[Doubles, Any, Doubles, Any]:
    """Return X, y to fit to and X, y to test with, for [B] Table 4."""
    data = known.arrays
    if name == "ADULT":
        scaler = StandardScaler().fit(data.X_num_train)
        coder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(data.X_cat_train)
        train, test = (
            np.hstack([scaler.transform(numbers), coder.transform(names)])
            for numbers, names in (
                (data.X_num_train, data.X_cat_train), (data.X_num_test, data.X_cat_test),
            )
        )  # fmt: skip
        return train, data.y_train, test, data.y_test
    if name == "CIFAR-10":
        return data.X_train / 255.0, data.y_train, data.X_test / 255.0, data.y_test
    order = np.random.default_rng(seed).permutation(len(data.y))
    fitted, judged = order[:18_000], order[18_000:]
    scaler = StandardScaler().fit(data.X[fitted])
    y = StandardScaler().fit_transform(np.asarray(data.y, dtype=np.float64)[:, None])[:, 0]
    return scaler.transform(data.X[fitted]), y[fitted], scaler.transform(data.X[judged]), y[judged]


def images(known: Known) -> Doubles:
    """Return rows of faces, images or genes; intensities of genes as logarithms, as BC-TCGA's."""
    X = np.asarray(known.arrays.X, dtype=np.float64)
    return np.log2(np.maximum(X, 1.0)) if known.name == "gene_chowdary" else X


def _standard(X: Any) -> Doubles:
    return np.asarray(StandardScaler().fit_transform(np.asarray(X, dtype=np.float64)))
