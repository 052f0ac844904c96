"""Real data sets by name, and the step from latitude and longitude to the unit sphere."""

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Bunch, check_array
from sklearn.utils.validation import validate_data

# name -> what it holds, and the sha256 of the .npz that this version was tested with
SETS = {
    "abalone": (
        "Abalone, 4,177 x 8, rings and 3 classes (UCI)",
        "ffc80978880a1604bbefc0413147f580ab399208de310c19b8ccb9499a7ab59f",
    ),
    "adult": (
        "Adult census income, 32,561 + 16,281 rows (UCI)",
        "8830c425308828e4977932124c160579f58b49e07272a410d25dba05d923cb16",
    ),
    "climate_ncep_2p5deg": (
        "Monthly mean air temperature, 2.5 degree grid (NOAA PSL, NCEP-NCAR Reanalysis 1)",
        "f39d902c7ee9cddb28aed40aeef53fa058f46286fedfd2624c1c6f6b3d74a8c2",
    ),
    "elevation_1deg": (
        "Elevation of the Earth, 1 degree grid (NOAA ETOPO5, averaged)",
        "11665f25f0dc3b59aabf999694765ee82e71b0570523905d7d2bb61fb13f1638",
    ),
    "gene_chowdary": (
        "Gene expression of 62 breast and 42 colon tumours, 22,283 genes (Chowdary et al. 2006)",
        "5fd5a5b3daf9fe124c085f757ac2213fe8e454da663fd70e3f63f54c4b8c1529",
    ),
    "magic": (
        "MAGIC gamma telescope, 19,020 x 10 (UCI)",
        "092e4a9b646eeee3bc982cf7b5ba9bbde0ef0de706ecba428d76e78cd558d6d4",
    ),
    "mushroom": (
        "Mushrooms, 8,124 x 22 codes (UCI)",
        "9890d3a11c1a63e858793ff8e0188e8a36ebe2ec2b9764f1be23fe50375530fb",
    ),
    "pendigits_train": (
        "Pen-written digits, 7,494 x 16 (UCI)",
        "a40fb302f023cf88b716bafea7849d9c3ff16e2da6f5677b302d977678a4462a",
    ),
    "protein_casp": (
        "Protein tertiary structure, 45,730 x 9 (UCI)",
        "22ede4b9cb6da856e9ea2e8e1ed444c2a7892cd0f189527fde1400df9ac0b7bf",
    ),
}

METRES_PER_FOOT = 0.3048


def load(name: Any, data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        ``"airports"`` (28,000 airports, from the package airportsdata), or the name of a file
        NAME.npz in `data_home`. Files of a name listed in ``gzkcore.datasets.SETS`` are checked
        against a known sha256; files of other names are loaded as they are.
    data_home : str or path, optional
        Folder with the .npz files. By default the one in the environment variable
        ``GZKCORE_DATA``.

    Returns
    -------
    sklearn.utils.Bunch
        The arrays by their own names, and ``DESCR``, a line about the set.
        For airports: ``latitude``, ``longitude`` (degrees), ``elevation`` (metres) and
        ``n_dropped``, how many entries of the source had no usable position or elevation.

    Examples
    --------
    >>> from gzkcore.datasets import load
    >>> airports = load("airports")
    >>> airports.latitude.shape == airports.longitude.shape == airports.elevation.shape
    True
    """
    if name == "airports":
        return _airports()
    plain = isinstance(name, str) and name == Path(name).name != ""
    if not plain or name.endswith(".npz"):
        raise ValueError(
            f"name={name!r} is not the name of a data set: no folder and no .npz, "
            f"for example {', '.join(map(repr, ('airports', *SETS)))}"
        )
    home = data_home if data_home is not None else os.environ.get("GZKCORE_DATA")
    path = Path(home or ".", f"{name}.npz").expanduser()
    if home is None or not path.is_file():
        raise FileNotFoundError(
            f"data set {name!r} was not found: "
            + (f"there is no {path}" if home else "data_home and GZKCORE_DATA are not set")
            + f"; this version does not download it: put {name}.npz in a folder and name the "
            "folder in data_home or in the environment variable GZKCORE_DATA"
        )
    description, expected = SETS.get(name, (f"{name}.npz", None))
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if expected is not None and found != expected:
        raise ValueError(
            f"{path} is not the {name!r} that gzkcore knows: its sha256 is {found}, not "
            f"{expected}; replace the file, or give it another name to load it as it is"
        )
    with np.load(path, allow_pickle=False) as arrays:
        return Bunch(**arrays, DESCR=description)


def _airports() -> Bunch:
    try:
        import airportsdata
    except ImportError as error:
        raise ImportError(
            "the data set 'airports' comes with a package of its own: "
            "pip install 'gzkcore[cli]' (or pip install airportsdata)"
        ) from error
    entries: list[Any] = list(airportsdata.load("ICAO").values())
    keys = ("lat", "lon", "elevation")
    latitude, longitude, feet = np.array(
        [[np.nan if entry[key] in ("", None) else entry[key] for key in keys] for entry in entries],
        dtype=np.float64,
    ).T
    elevation = feet * METRES_PER_FOOT
    usable = (
        (np.abs(latitude) <= 90)
        & (np.abs(longitude) <= 180)
        & (elevation >= -500)  # the shore of the Dead Sea lies at -430 m
        & (elevation <= 9000)
    )
    dropped = int((~usable).sum())
    return Bunch(
        latitude=latitude[usable],
        longitude=longitude[usable],
        elevation=elevation[usable],
        n_dropped=dropped,
        DESCR=(
            f"{usable.sum():,} airports of the package airportsdata {airportsdata.__version__}: "
            f"degrees and metres above the sea; {dropped} entries without a usable position or "
            "elevation were dropped. An elevation of 0 may also mean that it is not known."
        ),
    )


class LatLonToSphere(TransformerMixin, BaseEstimator):
    """Latitude and longitude in degrees to points on the unit sphere.

    (latitude, longitude) -> (cos lat cos lon, cos lat sin lon, sin lat)

    On the sphere there is no edge at 180 degrees and nothing special about the poles, so that a
    kernel of the distance between points means the same everywhere. There is nothing to fit.

    Parameters of `transform`: X of shape (n_samples, 2), float32 or float64 (kept; anything else
    becomes float64), latitude from -90 to 90 and longitude from -180 to 360 degrees. Anything
    outside raises ValueError and names the row, counted from 0.

    See Also
    --------
    gzkcore.GegenbauerFeatures : Features of kernels on the sphere.

    Examples
    --------
    >>> from gzkcore import LatLonToSphere
    >>> LatLonToSphere().fit_transform([[0, 0], [0, 90], [90, 0]]).round(3) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    def fit(self, X: Any, y: Any = None) -> "LatLonToSphere":
        """Check the shape and the ranges of X; there is nothing else to learn."""
        self._validate(X, reset=True)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Turn (n_samples, 2) degrees into (n_samples, 3) unit vectors."""
        X = self._validate(X, reset=False)
        latitude, longitude = np.radians(X.T, dtype=np.float64)
        out = np.empty((len(X), 3), X.dtype)
        np.multiply(np.cos(latitude), np.cos(longitude), out=out[:, 0], casting="same_kind")
        np.multiply(np.cos(latitude), np.sin(longitude), out=out[:, 1], casting="same_kind")
        np.sin(latitude, out=out[:, 2], casting="same_kind")
        return out

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Turn (n_samples, 3) vectors of any length but 0 into latitude and longitude."""
        X = check_array(X, dtype=(np.float64, np.float32))
        if X.shape[1] != 3:
            raise ValueError(
                f"X has {X.shape[1]} columns, but a point on the sphere has 3: x, y, z"
            )
        x, y, z = X.T
        zero = (x == 0) & (y == 0) & (z == 0)
        if zero.any():
            raise ValueError(
                f"X, row {zero.argmax()}: the zero vector has no latitude or longitude"
            )
        degrees: NDArray[Any] = np.degrees([np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)])
        return np.ascontiguousarray(degrees.T)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the three coordinates: x, y, z."""
        return np.array(["x", "y", "z"], dtype=object)

    def _validate(self, X: Any, reset: bool) -> Any:
        X = validate_data(self, X, dtype=(np.float64, np.float32), reset=reset)
        if X.shape[1] != 2:
            raise ValueError(
                f"X has {X.shape[1]} feature(s), but LatLonToSphere needs 2: latitude and longitude"
            )
        if (wrong := off_globe(X)) is not None:
            raise ValueError("X, row {}: {}".format(*wrong))
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def off_globe(X: NDArray[Any]) -> tuple[int, str] | None:
    """Return the first row of X (latitude, longitude) out of range and what is wrong, or None."""
    latitude, longitude = X.T
    bad_latitude = ~(np.abs(latitude) <= 90)
    bad = bad_latitude | ~((longitude >= -180) & (longitude <= 360))
    if not bad.any():
        return None
    row = int(bad.argmax())
    if bad_latitude[row]:
        return row, (
            f"latitude {latitude[row]:g} is outside -90 to 90 degrees; "
            "are latitude and longitude the right way round?"
        )
    return row, f"longitude {longitude[row]:g} is outside -180 to 360 degrees"
