"""The sources of the data sets that only the papers' experiments use."""

import functools
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import fetch_olivetti_faces, fetch_openml, load_sample_images
from sklearn.utils import Bunch

from gzkcore._util.files import replacing
from gzkcore.datasets.downloads import Arrays, fetched
from gzkcore.datasets.sets import home_of, load

BERKELEY = (
    "https://berkeley-earth-temperature.s3.us-west-1.amazonaws.com/Global/Gridded/"
    "Complete_TAVG_LatLong1.nc"
)
# The address and its author's checksum.
CIFAR = (
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "md5:c32a1d4ab5d03f1284b67883e8d87530",
)
SIPI = "https://sipi.usc.edu/database/misc.zip"
CO2_BY_HAND = (
    "its source asks who you are: fetch a year of the 1 degree files from "
    "https://db.cger.nies.go.jp/dataset/ODIAC/, and put co2.npz with lat, lon, month and emission "
    "(12, n_places) in the folder of the data"
)
GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)


class Order(NamedTuple):
    """What to fetch: a set by its name, into a folder, if downloads are allowed."""

    name: str
    home: Path
    download: bool

    def file(self, address: str, checksum: str | None = None) -> Path:
        """Return the path of a file of the set, see `fetched`."""
        return fetched(self.name, address, self.home, self.download, checksum)


class Source(NamedTuple):
    """A data set, and what returns its arrays."""

    about: str
    fetch: Callable[[Order], Arrays]


def load_set(name: str, data_home: Path | None, download: bool) -> Bunch:
    """Return a set as `gzkcore.datasets.load` does, or from one of `SOURCES`."""
    try:
        arrays = load(name, data_home, download=download)
    except FileNotFoundError:
        if name not in SOURCES:
            raise
        arrays = Bunch(**SOURCES[name].fetch(Order(name, home_of(data_home), download)))
    if name in SOURCES:
        arrays.DESCR = SOURCES[name].about
    return arrays


def _by_hand(_: Order) -> Arrays:
    raise FileNotFoundError(CO2_BY_HAND)


def _openml(entry: str, version: int, order: Order) -> Arrays:
    """Fetch from OpenML, whose md5 scikit-learn verifies, and keep NAME.npz for the next time."""
    if not order.download:
        raise FileNotFoundError(f"allow the download from OpenML ({entry}, version {version})")
    try:
        data = fetch_openml(
            entry, version=version, data_home=order.home, as_frame=False, parser="liac-arff",
            n_retries=1,
        )  # fmt: skip
    except OSError as error:
        raise OSError(
            f"data set {order.name!r} could not be fetched from OpenML ({entry}, version "
            f"{version}: {error}); try again, or put {order.name}.npz with X and y in the folder "
            "of the data"
        ) from error
    X = data.data.toarray() if hasattr(data.data, "toarray") else data.data
    arrays = {"X": np.asarray(X, dtype=np.float32), "y": _labels(data.target)}
    with replacing(order.home / f"{order.name}.npz") as beside:
        np.savez_compressed(beside, **arrays)
    return arrays


def _labels(y: Any) -> Any:
    """Numbers as they are; names as 0, 1, ... in their order."""
    try:
        return np.asarray(y, dtype=np.float32)
    except ValueError:
        return np.unique(np.asarray(y, dtype=str), return_inverse=True)[1].astype(np.int16)


def _cifar(order: Order) -> Arrays:
    """The binary version: records of a label and 3,072 pixels, no pickles."""
    parts: dict[str, list[Any]] = {"train": [], "test": []}
    with tarfile.open(order.file(*CIFAR)) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            file = Path(member.name).name
            if member.isfile() and file.endswith(".bin"):
                content = b"".join(archive.extractfile(member) or ())
                records = np.frombuffer(content, dtype=np.uint8).reshape(-1, 3073)
                parts["test" if file.startswith("test") else "train"].append(records)
    arrays: Arrays = {}
    for part, batches in parts.items():
        records = np.concatenate(batches)
        arrays |= {f"X_{part}": records[:, 1:], f"y_{part}": records[:, 0]}
    return arrays


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


def _berkeley(order: Order) -> Arrays:
    """The mean of each month, of the cells of land that have one."""
    lat, lon, mean = read_netcdf(order.file(BERKELEY), "latitude", "longitude", "climatology")
    rows, columns = np.nonzero(np.isfinite(mean).all(axis=0))
    return {
        "lat": lat[rows].astype(np.float32),
        "lon": lon[columns].astype(np.float32),
        "month": np.arange(1, 13, dtype=np.int8),
        "temp_c": mean[:, rows, columns].astype(np.float32),
    }


def _photographs(_: Order) -> Arrays:
    """Squares of the two photographs that come with scikit-learn."""
    size, step = 256, 57
    squares = []
    for image in load_sample_images().images:
        grey = np.dot(np.asarray(image, dtype=np.float32), GREY)
        for top in range(0, grey.shape[0] - size + 1, step):
            for left in range(0, grey.shape[1] - size + 1, step):
                squares.append(grey[top : top + size, left : left + size].ravel())  # noqa: PERF401
    return {"X": np.array(squares)}


def _olivetti(order: Order) -> Arrays:
    """Scikit-learn fetches them, and knows their checksum."""
    try:
        faces = fetch_olivetti_faces(
            data_home=order.home, download_if_missing=order.download, n_retries=1
        )
    except OSError as error:
        raise FileNotFoundError(f"fetch_olivetti_faces of scikit-learn said: {error}") from error
    return {"X": np.asarray(faces.data, dtype=np.float32), "y": faces.target.astype(np.int16)}


def _sipi(order: Order) -> Arrays:
    """The images of 512 x 512 points, in grey."""
    path = order.file(SIPI)
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("images are read by Pillow: pip install pillow") from error
    rows = []
    with zipfile.ZipFile(path) as archive:
        for file in sorted(archive.namelist()):
            if file.lower().endswith((".tiff", ".tif")):
                with Image.open(io.BytesIO(archive.read(file))) as image:
                    if image.size == (512, 512):
                        rows.append(np.asarray(image.convert("L"), dtype=np.float32).ravel())
    return {"X": np.array(rows)}


SOURCES = {
    "co2": Source("Emissions of CO2 by place and month (ODIAC, NIES)", _by_hand),
    "climate": Source(
        "Mean temperature of 12 months on land, 1 degree (Berkeley Earth)", _berkeley
    ),
    "shuttle": Source(
        "Statlog shuttle, training and test part, 58,000 x 9 (OpenML)",
        functools.partial(_openml, "shuttle", 1),
    ),
    "connect-4": Source(
        "Connect-4, 67,557 x 42 (OpenML)", functools.partial(_openml, "connect-4", 2)
    ),
    "census": Source(
        "Prices of houses by census block, 22,784 x 16 (DELVE's census-house, OpenML)",
        functools.partial(_openml, "house_16H", 1),
    ),
    "cifar-10": Source(
        "CIFAR-10, 50,000 + 10,000 images of 32 x 32 points in 3 colours (Krizhevsky 2009)", _cifar
    ),
    "genes": Source(
        "Expression of 10,936 genes in 630 tumours of breast and colon (GEMLeR, OpenML); stands in "
        "for BC-TCGA, 590 x 17,814",
        functools.partial(_openml, "AP_Breast_Colon", 1),
    ),
    "faces": Source(
        "Faces, 400 images of 64 x 64 points (Olivetti); stand in for the AR faces of 768 x 576, "
        "which are given on request only",
        _olivetti,
    ),
    "natural-images": Source(
        "Images of 512 x 512 points, in grey (USC-SIPI, volume Miscellaneous)", _sipi
    ),
    "photographs": Source(
        "Overlapping squares of 256 x 256 points of two photographs, in grey (scikit-learn)",
        _photographs,
    ),
}
