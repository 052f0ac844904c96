"""Published data sets: their files are fetched once, checked, and read without pickles.

NOAA and UCI publish no checksums. So the sha256 of the first download is written to
`checksums.json` beside the file, and later reads must match it (trust on first use).
"""

import functools
import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gzkcore._util.files import replacing

LEDGER = "checksums.json"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
NOAA = "https://www.ngdc.noaa.gov/mgg/global/relief/ETOPO1/data/ice_surface"

Arrays = dict[str, Any]


class Published(NamedTuple):
    """A data set that is published."""

    about: str
    addresses: tuple[str, ...]  # of its files
    read: Callable[..., Arrays]  # of the paths of these files


def fetch(name: str, home: Path, download: bool) -> Arrays:
    """Return the arrays of a published set, whose files are in `home` or are fetched."""
    source = PUBLISHED[name]
    return source.read(*(fetched(name, url, home, download) for url in source.addresses))


def fetched(
    name: str, address: str, home: Path, download: bool, checksum: str | None = None
) -> Path:
    """Return the path of a file of a set, fetched if it is not in `home`.

    Of a file that is fetched the publisher's checksum is checked if there is one, as in
    "md5:0123...".
    """
    path = home / address.rpartition("/")[2]
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
            pooch.retrieve(address, checksum, fname=path.name, path=home)
        except OSError as error:
            raise OSError(
                f"data set {name!r} could not be fetched from {address} ({error}); try again, or "
                f"fetch it by other means and put it at {path}"
            ) from error
    _check_unchanged(path)
    return path


def _check_unchanged(path: Path) -> None:
    """Raise if a file is not what it was at its first read; remember the checksum of a new one."""
    ledger = path.parent / LEDGER
    checksums = json.loads(ledger.read_text(encoding="utf-8")) if ledger.is_file() else {}
    checksum = sha256(path)
    if path.name not in checksums:
        checksums[path.name] = checksum
        with replacing(ledger) as beside:
            text = json.dumps(checksums, indent=1, sort_keys=True)
            beside.write_text(text + "\n", encoding="utf-8")
    elif checksum != checksums[path.name]:
        raise ValueError(
            f"{path}: its sha256 is {checksum}, but when it was first read it was "
            f"{checksums[path.name]} (see {ledger}); the file was changed or is incomplete: delete "
            "it to fetch it again"
        )


def sha256(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- readers

_table: Callable[..., Any] = functools.partial(
    np.loadtxt, delimiter=",", comments=None, encoding="utf-8", ndmin=2
)


def _codes(column: Any) -> Any:
    """Return the numbers of the values of a column among its values, in order."""
    return np.unique(column, return_inverse=True)[1].astype(np.uint8)


def _protein(path: Path) -> Arrays:
    """RMSD, the label, is the first column of the file; F1 to F9 are the inputs."""
    values = _table(path, np.float32, skiprows=1)
    return {"X": values[:, 1:], "y": values[:, 0]}


def _abalone(path: Path) -> Arrays:
    values = _table(path, np.float32, converters={0: "MFI".index})
    rings = values[:, -1].astype(np.int16)
    return {"X": values[:, :-1], "y": rings, "y3": np.digitize(rings, [9, 11]).astype(np.int8)}


def _pendigits(path: Path) -> Arrays:
    values = _table(path, np.int16)
    return {"X": values[:, :-1].astype(np.uint8), "y": values[:, -1].astype(np.int8)}


def _mushroom(path: Path) -> Arrays:
    letters = _table(path, str)
    X = np.column_stack([_codes(column) for column in letters.T[1:]])
    return {"X": X, "y": (letters[:, 0] == "p").astype(np.int8)}


def _magic(path: Path) -> Arrays:
    values = _table(path, np.float32, converters={-1: "gh".index})
    return {"X": values[:, :-1], "y": values[:, -1].astype(np.int8)}


def _adult(*paths: Path) -> Arrays:
    """Lines without 15 values, such as the first of the test part, are no rows."""
    numbers = [0, 2, 4, 10, 11, 12]
    texts = sorted({*range(14)} - {*numbers})
    lines = (path.read_text(encoding="utf-8").splitlines() for path in paths)
    rows = ([line.split(",") for line in part if line.count(",") == 14] for part in lines)
    parts = [np.char.strip(part) for part in rows]
    codes = np.column_stack([_codes(column) for column in np.vstack(parts).T[texts]])
    arrays: Arrays = {}
    for name, part, of_part in zip(
        ("train", "test"), parts, np.split(codes, [len(parts[0])]), strict=True
    ):
        arrays[f"X_num_{name}"] = part[:, numbers].astype(np.int32)
        arrays[f"X_cat_{name}"] = of_part
        arrays[f"y_{name}"] = np.char.startswith(part[:, -1], ">50K").astype(np.int8)
    return arrays


def _etopo(path: Path) -> Arrays:
    """ETOPO1, 10,800 x 21,600 cells of a minute from the north west, averaged to a degree."""
    with zipfile.ZipFile(path) as archive, archive.open("etopo1_ice_c_i2.bin") as file:
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


def _uci(*files: str) -> tuple[str, ...]:
    return tuple(f"{UCI}/{file}" for file in files)


PUBLISHED = {
    "elevation": Published(
        "Elevation of the Earth, 1 degree means of ETOPO1, ice surface (NOAA)",
        (f"{NOAA}/cell_registered/binary/etopo1_ice_c_i2.zip",), _etopo,
    ),
    "protein": Published(
        "Protein tertiary structure, 45,730 x 9 (UCI)", _uci("00265/CASP.csv"), _protein
    ),
    "abalone": Published(
        "Abalone, 4,177 x 8, rings and 3 classes (UCI)", _uci("abalone/abalone.data"), _abalone
    ),
    "pendigits": Published(
        "Pen-written digits, the training part, 7,494 x 16 (UCI)",
        _uci("pendigits/pendigits.tra"), _pendigits,
    ),
    "mushroom": Published(
        "Mushrooms, 8,124 x 22 codes (UCI)", _uci("mushroom/agaricus-lepiota.data"), _mushroom
    ),
    "magic": Published(
        "MAGIC gamma telescope, 19,020 x 10 (UCI)", _uci("magic/magic04.data"), _magic
    ),
    "adult": Published(
        "Adult census income, 32,561 + 16,281 rows (UCI)",
        _uci("adult/adult.data", "adult/adult.test"), _adult,
    ),
}  # fmt: skip
