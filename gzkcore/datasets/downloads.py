"""Published data sets: downloaded once, verified, and read without pickles.

Checksums: if the publisher gives one, it is in this file, or scikit-learn has it (OpenML, the
faces). For other files the sha256 of the first download is written to `checksums.json` beside it,
and later reads must match it (trust on first use).
"""

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gzkcore._util.files import replacing

CHECKSUMS = "checksums.json"
GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
NOAA = "https://www.ngdc.noaa.gov/mgg/global/relief/ETOPO1/data/ice_surface"
BERKELEY = "https://berkeley-earth-temperature.s3.us-west-1.amazonaws.com"

Arrays = dict[str, Any]
Files = dict[str, tuple[str, str | None]]  # name -> address, the publisher's checksum


@dataclass(frozen=True)
class DataSet:
    """A public data set.

    `files` maps file names to (address, checksum "md5:..." or "sha256:..." of the publisher, or
    None), `read` turns their paths into arrays. `openml` is (name, version) there instead. Without
    either there is nothing that could be fetched, and `by_hand` says what to do.
    """

    about: str
    files: Files = field(default_factory=dict)
    read: Callable[[dict[str, Path]], Arrays] = dict
    openml: tuple[str, int] | None = None
    loader: Callable[[Path, bool], Arrays] | None = None
    by_hand: str = ""


def fetch(name: str, home: Path, download: bool) -> Arrays:
    """Return the arrays of a set, from `home` or else its source."""
    source = SOURCES[name]
    if source.by_hand:
        raise FileNotFoundError(source.by_hand)
    if source.loader is not None:
        return source.loader(home, download)
    if source.openml is not None:
        return _from_openml(name, *source.openml, home, download)
    paths = {file: _one(name, file, *where, home, download) for file, where in source.files.items()}
    return source.read(paths)


def _one(
    name: str, file: str, address: str, published: str | None, home: Path, download: bool
) -> Path:
    """Return the path of a file that is what it was, or fetch it."""
    path = home / file
    if not path.is_file():
        if not download:
            raise FileNotFoundError(
                f"{path} does not exist either; allow the download, or fetch {address}"
            )
        try:
            import pooch
        except ImportError as error:
            raise ImportError(
                "data sets are fetched by pooch: pip install 'gzkcore[data]' (or pip install pooch)"
            ) from error
        pooch.get_logger().setLevel("WARNING")
        home.mkdir(parents=True, exist_ok=True)
        try:
            pooch.retrieve(address, published, fname=file, path=home)
        except OSError as error:
            raise OSError(
                f"data set {name!r} could not be fetched from {address} ({error}); try again, or "
                f"fetch it by other means and put it at {path}"
            ) from error
    if published is None:
        _trust(path)
    else:
        kind, _, expected = published.partition(":")
        _verify(path, kind, expected, "its publisher says")
    return path


def _verify(path: Path, kind: str, expected: str, who: str) -> None:
    found = _digest(path, kind)
    if found != expected:
        raise ValueError(
            f"{path}: its {kind} is {found}, but {who} {expected}; the file was changed or is "
            "incomplete: delete it to fetch it again"
        )


def _digest(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def _trust(path: Path) -> None:
    """Remember the checksum of a file that is new, and hold all others to theirs."""
    ledger = path.parent / CHECKSUMS
    known = json.loads(ledger.read_text(encoding="utf-8")) if ledger.is_file() else {}
    if path.name in known:
        _verify(path, "sha256", known[path.name], f"when it was first read it was (see {ledger})")
        return
    known[path.name] = _digest(path, "sha256")
    with replacing(ledger) as beside:
        beside.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _from_openml(name: str, entry: str, version: int, home: Path, download: bool) -> Arrays:
    """Fetch from OpenML, whose md5 scikit-learn verifies, and keep NAME.npz for the next time."""
    from sklearn.datasets import fetch_openml

    if not download:
        raise FileNotFoundError(f"allow the download from OpenML ({entry}, version {version})")
    try:
        data = fetch_openml(
            entry, version=version, data_home=home, as_frame=False, parser="liac-arff",
            n_retries=1,
        )  # fmt: skip
    except OSError as error:
        raise OSError(
            f"data set {name!r} could not be fetched from OpenML ({entry}, version {version}: "
            f"{error}); try again, or put {name}.npz with X and y in the folder of the data"
        ) from error
    X, y = data.data, data.target
    if hasattr(X, "toarray"):
        X = X.toarray()
    arrays = {"X": np.asarray(X, dtype=np.float32), "y": _labels(y)}
    with replacing(home / f"{name}.npz") as beside:
        np.savez_compressed(beside, **arrays)
    return arrays


def _labels(y: Any) -> Any:
    """Numbers as they are; names as 0, 1, ... in their order."""
    try:
        return np.asarray(y, dtype=np.float32)
    except ValueError:
        return np.unique(np.asarray(y, dtype=str), return_inverse=True)[1].astype(np.int16)


# ---- readers


def _rows(path: Path, delimiter: str = ",", skip: int = 0) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()[skip:]
    return [[word.strip() for word in line.split(delimiter)] for line in lines if line.strip()]


def _codes(column: list[str], levels: list[str] | None = None) -> Any:
    levels = sorted(set(column)) if levels is None else levels
    return np.array([levels.index(word) for word in column], dtype=np.uint8)


def _protein(paths: dict[str, Path]) -> Arrays:
    """RMSD, the label, is the first column of the file; F1 to F9 are the inputs."""
    values = np.array(_rows(paths["CASP.csv"], skip=1), dtype=np.float32)
    return {"X": values[:, 1:], "y": values[:, 0]}


def _abalone(paths: dict[str, Path]) -> Arrays:
    rows = _rows(paths["abalone.data"])
    X = np.array([["MFI".index(row[0]), *map(float, row[1:-1])] for row in rows], dtype=np.float32)
    rings = np.array([int(row[-1]) for row in rows], dtype=np.int16)
    return {"X": X, "y": rings, "y3": np.digitize(rings, [9, 11]).astype(np.int8)}


def _pendigits(paths: dict[str, Path]) -> Arrays:
    values = np.array(_rows(paths["pendigits.tra"]), dtype=np.int16)
    return {"X": values[:, :-1].astype(np.uint8), "y": values[:, -1].astype(np.int8)}


def _mushroom(paths: dict[str, Path]) -> Arrays:
    columns = list(map(list, zip(*_rows(paths["agaricus-lepiota.data"]), strict=True)))
    X = np.column_stack([_codes(column) for column in columns[1:]])
    return {"X": X, "y": _codes(columns[0], ["e", "p"]).astype(np.int8)}


def _magic(paths: dict[str, Path]) -> Arrays:
    rows = _rows(paths["magic04.data"])
    X = np.array([row[:-1] for row in rows], dtype=np.float32)
    return {"X": X, "y": np.array(["gh".index(row[-1]) for row in rows], dtype=np.int8)}


_ADULT_NUMBERS = (0, 2, 4, 10, 11, 12)


def _adult(paths: dict[str, Path]) -> Arrays:
    parts = {
        "train": [row for row in _rows(paths["adult.data"]) if len(row) == 15],
        "test": [row for row in _rows(paths["adult.test"]) if len(row) == 15],
    }
    names = [i for i in range(14) if i not in _ADULT_NUMBERS]
    every = [*parts["train"], *parts["test"]]
    levels = {i: sorted({row[i] for row in every}) for i in names}
    out: Arrays = {}
    for part, rows in parts.items():
        numbers = [[row[i] for i in _ADULT_NUMBERS] for row in rows]
        out[f"X_num_{part}"] = np.array(numbers, dtype=np.int32)
        codes = [_codes([row[i] for row in rows], levels[i]) for i in names]
        out[f"X_cat_{part}"] = np.column_stack(codes)
        out[f"y_{part}"] = np.array([row[-1].startswith(">50K") for row in rows], dtype=np.int8)
    return out


def _cifar(paths: dict[str, Path]) -> Arrays:
    """The binary version: records of a label and 3,072 pixels, no pickles."""
    found: dict[str, list[Any]] = {"train": [], "test": []}
    with tarfile.open(paths["cifar-10-binary.tar.gz"]) as archive:
        for member in sorted(archive.getmembers(), key=lambda one: one.name):
            file = Path(member.name).name
            if member.isfile() and file.endswith(".bin"):
                content = b"".join(archive.extractfile(member) or ())
                records = np.frombuffer(content, dtype=np.uint8).reshape(-1, 3073)
                found["test" if file.startswith("test") else "train"].append(records)
    out: Arrays = {}
    for part, batches in found.items():
        records = np.concatenate(batches)
        out |= {f"X_{part}": records[:, 1:], f"y_{part}": records[:, 0]}
    return out


def _etopo(paths: dict[str, Path]) -> Arrays:
    """ETOPO1, 10,800 x 21,600 cells of a minute from the north west, averaged to a degree."""
    with (
        zipfile.ZipFile(paths["etopo1_ice_c_i2.zip"]) as archive,
        archive.open("etopo1_ice_c_i2.bin") as file,
    ):
        rows = []
        while band := file.read(60 * 21_600 * 2):  # a degree of latitude
            cells = np.frombuffer(band, dtype="<i2").reshape(60, 360, 60)
            rows.append(cells.mean(axis=(0, 2), dtype=np.float64))
    grid = np.array(rows)[::-1]  # from the south
    lat, lon = np.arange(len(grid)) - 89.5, np.arange(360) - 179.5
    return {
        "lat": np.repeat(lat, 360).astype(np.float32),
        "lon": np.tile(lon, len(grid)).astype(np.float32),
        "elevation_m": grid.ravel().astype(np.float32),
    }


def read_netcdf(path: Path, *names: str) -> list[Any]:
    """Return variables of a netCDF file, version 3 by SciPy, version 4 by h5py."""
    with path.open("rb") as file:
        start = file.read(4)
    if start.startswith(b"CDF"):
        from scipy.io import netcdf_file

        with netcdf_file(path, mmap=False) as data:
            return [np.array(data.variables[name][:], dtype=np.float64) for name in names]
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            f"{path.name} is a netCDF file of version 4, which is read by h5py: pip install h5py"
        ) from error
    with h5py.File(path) as data:
        return [np.array(data[name], dtype=np.float64) for name in names]


def _berkeley(paths: dict[str, Path]) -> Arrays:
    """The mean of each month, of the cells of land that have one."""
    lat, lon, mean = read_netcdf(
        paths["Complete_TAVG_LatLong1.nc"], "latitude", "longitude", "climatology"
    )
    where = np.isfinite(mean).all(axis=0)
    rows, columns = np.nonzero(where)
    return {
        "lat": lat[rows].astype(np.float32),
        "lon": lon[columns].astype(np.float32),
        "month": np.arange(1, 13, dtype=np.int8),
        "temp_c": mean[:, rows, columns].astype(np.float32),
    }


def _photographs(_home: Path, _download: bool) -> Arrays:
    """Squares of the two photographs that come with scikit-learn."""
    from sklearn.datasets import load_sample_images

    size, step = 256, 57
    squares = []
    for image in load_sample_images().images:
        grey = np.dot(np.asarray(image, dtype=np.float32), GREY)
        for top in range(0, grey.shape[0] - size + 1, step):
            for left in range(0, grey.shape[1] - size + 1, step):
                squares.append(grey[top : top + size, left : left + size].ravel())  # noqa: PERF401
    return {"X": np.array(squares)}


def _olivetti(home: Path, download: bool) -> Arrays:
    """Scikit-learn fetches them, and knows their checksum."""
    from sklearn.datasets import fetch_olivetti_faces

    try:
        faces = fetch_olivetti_faces(data_home=home, download_if_missing=download, n_retries=1)
    except OSError as error:
        raise FileNotFoundError(f"fetch_olivetti_faces of scikit-learn said: {error}") from error
    return {"X": np.asarray(faces.data, dtype=np.float32), "y": faces.target.astype(np.int16)}


def _sipi(paths: dict[str, Path]) -> Arrays:
    """The images of 512 x 512 points, in grey."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("images are read by Pillow: pip install pillow") from error
    rows = []
    with zipfile.ZipFile(paths["misc.zip"]) as archive:
        for file in sorted(archive.namelist()):
            if file.lower().endswith((".tiff", ".tif")):
                with Image.open(io.BytesIO(archive.read(file))) as image:
                    if image.size == (512, 512):
                        rows.append(np.asarray(image.convert("L"), dtype=np.float32).ravel())
    return {"X": np.array(rows)}


def _at(address: str, published: str | None = None) -> Files:
    return {address.rpartition("/")[2]: (address, published)}


def _of_uci(folder: str, *files: str) -> Files:
    return {file: (f"{UCI}/{folder}/{file}", None) for file in files}


SOURCES: dict[str, DataSet] = {
    "elevation": DataSet(
        "Elevation of the Earth, 1 degree means of ETOPO1, ice surface (NOAA)",
        _at(f"{NOAA}/cell_registered/binary/etopo1_ice_c_i2.zip"), _etopo,
    ),
    "protein": DataSet(
        "Protein tertiary structure, 45,730 x 9 (UCI)", _of_uci("00265", "CASP.csv"), _protein
    ),
    "co2": DataSet(
        "Emissions of CO2 by place and month (ODIAC, NIES)",
        by_hand="its source asks who you are: fetch a year of the 1 degree files from "
        "https://db.cger.nies.go.jp/dataset/ODIAC/, and put co2.npz with lat, lon, month and "
        "emission (12, n_places) in the folder of the data",
    ),
    "climate": DataSet(
        "Mean temperature of 12 months on land, 1 degree (Berkeley Earth)",
        _at(f"{BERKELEY}/Global/Gridded/Complete_TAVG_LatLong1.nc"), _berkeley,
    ),
    "abalone": DataSet(
        "Abalone, 4,177 x 8, rings and 3 classes (UCI)", _of_uci("abalone", "abalone.data"),
        _abalone,
    ),
    "pendigits": DataSet(
        "Pen-written digits, the training part, 7,494 x 16 (UCI)",
        _of_uci("pendigits", "pendigits.tra"), _pendigits,
    ),
    "mushroom": DataSet(
        "Mushrooms, 8,124 x 22 codes (UCI)", _of_uci("mushroom", "agaricus-lepiota.data"),
        _mushroom,
    ),
    "magic": DataSet(
        "MAGIC gamma telescope, 19,020 x 10 (UCI)", _of_uci("magic", "magic04.data"), _magic
    ),
    "shuttle": DataSet(
        "Statlog shuttle, training and test part, 58,000 x 9 (OpenML)", openml=("shuttle", 1)
    ),
    "connect-4": DataSet("Connect-4, 67,557 x 42 (OpenML)", openml=("connect-4", 2)),
    "adult": DataSet(
        "Adult census income, 32,561 + 16,281 rows (UCI)",
        _of_uci("adult", "adult.data", "adult.test"), _adult,
    ),
    "census": DataSet(
        "Prices of houses by census block, 22,784 x 16 (DELVE's census-house, OpenML)",
        openml=("house_16H", 1),
    ),
    "cifar-10": DataSet(
        "CIFAR-10, 50,000 + 10,000 images of 32 x 32 points in 3 colours (Krizhevsky 2009)",
        _at("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "md5:c32a1d4ab5d03f1284b67883e8d87530"),
        _cifar,
    ),
    "genes": DataSet(
        "Expression of 10,936 genes in 630 tumours of breast and colon (GEMLeR, OpenML); stands in "
        "for BC-TCGA, 590 x 17,814",
        openml=("AP_Breast_Colon", 1),
    ),
    "faces": DataSet(
        "Faces, 400 images of 64 x 64 points (Olivetti); stand in for the AR faces of 768 x 576, "
        "which are given on request only",
        loader=_olivetti,
    ),
    "natural-images": DataSet(
        "Images of 512 x 512 points, in grey (USC-SIPI, volume Miscellaneous)",
        _at("https://sipi.usc.edu/database/misc.zip"), _sipi,
    ),
    "photographs": DataSet(
        "Overlapping squares of 256 x 256 points of two photographs, in grey (scikit-learn)",
        loader=_photographs,
    ),
}  # fmt: skip
