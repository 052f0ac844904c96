"""Real data sets by name, files as batches, and latitude and longitude on the unit sphere."""

import hashlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Bunch, check_array
from sklearn.utils.validation import validate_data

from ._downloads import SOURCES, fetch
from ._tables import Table, open_table
from ._validation import check_integer
from ._wording import counted

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

NO_FOLDER = "data_home and GZKCORE_DATA are not set"
METRES_PER_FOOT = 0.3048


# A set by the name of the paper -> the file of the table above that has the same rows.
SAME = {"pendigits": "pendigits_train", "protein": "protein_casp"}


def load(
    name: Any, data_home: str | os.PathLike[str] | None = None, *, download: bool = True
) -> Bunch:
    """Load a data set by its name, from a folder or from where it is published.

    Parameters
    ----------
    name : str
        ``"airports"`` (28,000 airports, from the package airportsdata); a set in
        ``gzkcore.datasets.SOURCES``, which is downloaded; or the name of a file NAME.npz in
        `data_home`, which comes first. Files of a name listed in ``gzkcore.datasets.SETS`` are
        checked against a known sha256; files of other names are loaded as they are.
    data_home : str or path, optional
        Folder with the files. By default the one in the environment variable ``GZKCORE_DATA``, and
        without it a folder ``gzkcore`` among the caches of the user.
    download : bool, default=True
        Whether to fetch a set that is not there.

    Returns
    -------
    sklearn.utils.Bunch
        The arrays by their own names, and ``DESCR``, a line about the set.
        For airports: ``latitude``, ``longitude`` (degrees), ``elevation`` (metres) and
        ``n_dropped``, how many entries of the source had no usable position or elevation.

    Raises
    ------
    ValueError
        If there is no such set, or a file differs from what it was.
    FileNotFoundError
        If the set is not there, and is not to be fetched or can't be.
    ImportError
        If the package that fetches or reads it is missing; the message says how to install it.
    OSError
        If its source can't be reached.

    Notes
    -----
    Files are verified by their publisher's checksum where there is one (CIFAR-10, faces, all of
    OpenML); of others the sha256 of the first download is kept in ``checksums.json`` beside them,
    and a file that no longer matches is refused. No file is read as a pickle.

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
            f"for example {', '.join(map(repr, dict.fromkeys(('airports', *SETS, *SOURCES))))}"
        )
    given = data_home if data_home is not None else os.environ.get("GZKCORE_DATA")
    home = Path(given).expanduser() if given else None
    for file in (name, SAME.get(name, name)):
        if home is not None and (home / f"{file}.npz").is_file():
            return _of_file(file, home / f"{file}.npz")
    where = f"there is no {home / f'{name}.npz'}" if home else NO_FOLDER
    remedy = f"put {name}.npz in a folder and name it in data_home or in the variable GZKCORE_DATA"
    if name not in SOURCES:
        raise FileNotFoundError(f"data set {name!r} was not found: {where}; {remedy}")
    try:
        arrays = fetch(name, home if home is not None else _cache(), download)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"data set {name!r}: {where}; {remedy}; or: {error}") from None
    return Bunch(**arrays, DESCR=SOURCES[name].about)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "gzkcore"


def _of_file(name: str, path: Path) -> Bunch:
    about = SOURCES[name].about if name in SOURCES else f"{name}.npz"
    description, expected = SETS.get(name, (about, None))
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


def open_batches(
    path: str | os.PathLike[str],
    target: str | Sequence[str] | None = None,
    *,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    batch_rows: int = 65536,
    dtype: DTypeLike = np.float64,
) -> "Batches":
    """Open a file larger than memory as batches, a source that every learner's `fit` takes.

    Parameters
    ----------
    path : str or path
        A .csv (also .tsv, .txt), .parquet, .npy or .npz file. The columns of a .npy file are called
        "0", "1", ...; in a .npz file an array of one dimension is a column under its own name, and
        the columns of X are called "X0", "X1", ...
    target : str or list of str, optional
        The column, or columns, of y. None: the batches have no y.
    columns : list of str, optional
        Those of X; by default all others.
    sample_weight : str, optional
        The column of weights.
    batch_rows : int, default=65536
        >= 1. Every batch has so many rows, but the last.
    dtype : dtype, default=float64
        Of X: float64 or float32.

    Returns
    -------
    Batches
        Iterate over it as often as you like: each time the file is read anew.

    Raises
    ------
    ValueError
        If there is no such file or column. While reading: where a value is missing or is no finite
        number, naming the file, the row (counted from 1, without the header) and the column.
    ImportError
        For .csv and .parquet without pyarrow.

    Notes
    -----
    Holds a piece of the file, about 4 million values or 4 MB of text, and a batch.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gzkcore.datasets import open_batches
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.npy")
    ...     np.save(path, np.arange(12.0).reshape(6, 2))
    ...     for X, y in open_batches(path, target="1", batch_rows=4):
    ...         print(X.shape, y)
    (4, 1) [1. 3. 5. 7.]
    (2, 1) [ 9. 11.]
    """
    return Batches(path, target, columns, sample_weight, batch_rows, dtype)


class Batches:
    """Columns of a file, batch by batch: what `open_batches` returns.

    Attributes
    ----------
    path : Path
    columns : list of str
        Those of X.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: str | Sequence[str] | None,
        columns: Sequence[str] | None,
        sample_weight: str | None,
        batch_rows: int,
        dtype: DTypeLike,
    ) -> None:
        table = self._open(Path(path))
        targets = [] if target is None else [target] if isinstance(target, str) else [*target]
        weights = [] if sample_weight is None else [sample_weight]
        if isinstance(columns, str):
            raise TypeError(f"columns={columns!r} is one text; pass a list of names")
        others = [name for name in table.names if name not in {*targets, *weights}]
        self.columns = others if columns is None else [*columns]
        table.require([*self.columns, *targets, *weights])
        if not self.columns:
            raise ValueError(f"{path}: no column is left for X beside target and sample_weight")
        if both := sorted(set(self.columns) & {*targets, *weights}):
            raise ValueError(f"columns names {', '.join(both)} too, which target or weight is")
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r} must be float32 or float64")
        self.path = Path(path)
        self.batch_rows = check_integer("batch_rows", batch_rows, 1)
        self._targets, self._weights, self._one = targets, weights, isinstance(target, str)

    @staticmethod
    def _open(path: Path) -> Table:
        table = open_table(path) if path.suffix in (".npy", ".npz") or _has_pyarrow() else None
        if table is None:
            raise ImportError(
                f"{path}: reading {path.suffix} files needs pyarrow: pip install 'gzkcore[cli]' "
                "(or pip install pyarrow)"
            )
        return table

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        names = [*self.columns, *self._targets, *self._weights]
        pieces: list[NDArray[np.float64]] = []
        held = 0
        for _, values, _ in self._open(self.path).batches(names):
            rest = values
            while held + len(rest) >= self.batch_rows:
                cut = self.batch_rows - held
                yield self._parts([*pieces, rest[:cut]])
                pieces, held, rest = [], 0, rest[cut:]
            if len(rest):
                pieces.append(rest)
                held += len(rest)
        if held:
            yield self._parts(pieces)

    def _parts(self, pieces: list[NDArray[np.float64]]) -> tuple[Any, ...]:
        values = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        width, n_targets = len(self.columns), len(self._targets)
        X = np.ascontiguousarray(values[:, :width], dtype=self.dtype)
        y = values[:, width : width + n_targets].copy()
        parts = [X, y[:, 0] if self._one else y if n_targets else None]
        if self._weights:
            parts.append(values[:, -1].copy())
        return tuple(parts) if n_targets or self._weights else (X,)


def _has_pyarrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


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
                f"X has {counted(X.shape[1], 'column')}, but a point on the sphere has 3: x, y, z"
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
                f"X has n_features={X.shape[1]}, but LatLonToSphere needs 2: latitude and longitude"
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
