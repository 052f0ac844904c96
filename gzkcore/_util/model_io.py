"""Models as files: data, never code.

A file is an uncompressed zip archive of `model.json` (classes, parameters, small values) and one
.npy per array, so that any zip tool opens it and NumPy reads the arrays. The archive's comment, its
last 64 bytes, is the SHA-256 of all bytes before: one changed bit anywhere and `load` refuses it.

`load` makes objects of the classes in `CLASSES` only and never unpickles. Of an object its
attributes are kept, unless its class says what by `_to_data(self) -> dict` and, where that does not
give the attributes back, `_from_data(data) -> object`. Values may be None, bool, int, float, str,
dtypes, arrays, objects of `CLASSES`, and lists, tuples and dicts of these. Random generators are
kept as None: what was drawn from them is in the fitted arrays.
"""

import hashlib
import importlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

__all__ = ["load", "save"]

FORMAT = "gzkcore model"
VERSION = 1
DIGEST_BYTES = 64

# Everything that a file may hold, with the module that has it. FrozenEstimator, the one class of
# another package, holds features that are to stay as they are.
CLASSES = {
    "FrozenEstimator": "sklearn.frozen",
    "RandomFeatureRidge": "gzkcore.learn.ridge",
    "RandomFeatureRidgeCV": "gzkcore.learn.ridge",
    "RandomFeatureRidgeClassifier": "gzkcore.learn.ridge",
    "RandomFeatureRidgeClassifierCV": "gzkcore.learn.ridge",
    "RandomFeaturePCA": "gzkcore.learn.pca",
    "RandomFeatureCCA": "gzkcore.learn.cca",
    "RandomFeatureKMeans": "gzkcore.learn.kmeans",
    "GramAccumulator": "gzkcore.learn.gram",
    "MomentsAccumulator": "gzkcore.learn.gram",
    "ClusterAccumulator": "gzkcore.learn.gram",
    "_Progress": "gzkcore.learn.streams",
    "KernelFeatures": "gzkcore.features.auto",
    "GegenbauerFeatures": "gzkcore.features.gegenbauer",
    "PublishedGegenbauerFeatures": "gzkcore.features.gegenbauer",
    "Recurrence": "gzkcore.features.gegenbauer",
    "_Directions": "gzkcore.features.gegenbauer",
    "FastfoodFeatures": "gzkcore.features.fastfood",
    "ModifiedFourierFeatures": "gzkcore.features.fourier",
    "RandomFourierFeatures": "gzkcore.features.fourier",
    "AdaptiveSketchFeatures": "gzkcore.features.adaptive",
    "MaclaurinFeatures": "gzkcore.features.maclaurin",
    "NystromFeatures": "gzkcore.features.nystrom",
    "_Precomputed": "gzkcore.features.nystrom",
    "PolySketchFeatures": "gzkcore.features.polysketch",
    "_Tree": "gzkcore.features.polysketch",
    "CountSketch": "gzkcore.features.sketch",
    "TensorSketchFeatures": "gzkcore.features.sketch",
    "FastJLProjection": "gzkcore.features.projection",
    "HadamardProjection": "gzkcore.features.projection",
    "Product": "gzkcore.features.product",
    "ProductFeatures": "gzkcore.features.product",
    "BlockFourierFeatures": "gzkcore.features.block",
    "BlockProjection": "gzkcore.features.block",
    "MeanNormalizer": "gzkcore.features.block",
    "HarmonicTree": "gzkcore.sphere.harmonics",
    "ArcCosine": "gzkcore.kernels",
    "DotProduct": "gzkcore.kernels",
    "Exponential": "gzkcore.kernels",
    "ExponentialDot": "gzkcore.kernels",
    "Gaussian": "gzkcore.kernels",
    "GeneralizedZonal": "gzkcore.kernels",
    "Laplacian": "gzkcore.kernels",
    "Matern": "gzkcore.kernels",
    "NeuralTangent": "gzkcore.kernels",
    "Polynomial": "gzkcore.kernels",
    "RationalQuadratic": "gzkcore.kernels",
    "SphereHeat": "gzkcore.kernels",
    "SphereMatern": "gzkcore.kernels",
    "Spherical": "gzkcore.kernels",
    "Zonal": "gzkcore.kernels",
    "RadialFunctions": "gzkcore.kernels.radial",
    "_Angular": "gzkcore.kernels.radial",
    "_Distances": "gzkcore.kernels.radial",
    "_Given": "gzkcore.kernels.radial",
    "_Taylor": "gzkcore.kernels.radial",
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model of this package to a file.

    The file appears whole or not at all: it is written beside its place under another name first.

    Parameters
    ----------
    model : object of one of gzkcore's classes
        One that holds transformers of other packages raises TypeError: keep those with skops.
        A `sklearn.frozen.FrozenEstimator` of gzkcore's features is kept.
    path : str or path
        By custom it ends with ``.gzk``. An existing file is replaced.
    """
    path = Path(path)
    arrays: list[NDArray[Any]] = []
    root = _encode(model, arrays, type(model).__name__)
    head = {"format": FORMAT, "version": VERSION, "model": root}
    check_place(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w+b") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr("model.json", json.dumps(head, indent=1))
                for i, array in enumerate(arrays):
                    with archive.open(f"{i}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, array, allow_pickle=False)
                archive.comment = b"0" * DIGEST_BYTES
            digest = _digest(file)
            file.seek(-DIGEST_BYTES, os.SEEK_END)
            file.write(digest)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def check_place(path: Path) -> None:
    """Raise OSError unless `save` can write to this path."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot save to {str(path)!r}: there is no folder {path.parent}")
    if path.is_dir():
        raise IsADirectoryError(f"cannot save to {str(path)!r}: it is a folder; name a file")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(
            f"cannot save to {str(path)!r}: nothing may be written in {path.parent}; name another "
            "folder"
        )


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` has written.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    object
        The model. ValueError if the file is cut short, altered, or not a gzkcore model.
    """
    with Path(path).open("rb") as file:
        try:
            return _read(file)
        except OSError:
            raise
        except Exception as error:  # whatever is wrong inside a file, it is the file that is wrong
            raise ValueError(f"cannot load {os.fspath(path)!r}: {error}") from error


def _read(file: BinaryIO) -> Any:
    if not zipfile.is_zipfile(file):
        raise ValueError("it is not a gzkcore model, or its end is missing")
    with zipfile.ZipFile(file) as archive:
        if len(archive.comment) != DIGEST_BYTES or "model.json" not in archive.namelist():
            raise ValueError("it is a zip archive, but not a gzkcore model, or its end is missing")
        if archive.comment != _digest(file):
            raise ValueError("its checksum is wrong: it was altered or damaged")
        head = json.loads(archive.read("model.json"))
        if head["format"] != FORMAT:
            raise ValueError("it is not a gzkcore model")
        if head["version"] != VERSION:
            raise ValueError(
                f"it has format version {head['version']}, and this gzkcore reads {VERSION}; use "
                "the gzkcore that wrote it, or a newer one"
            )
        return _decode(head["model"], archive)


def _digest(file: BinaryIO) -> bytes:
    """Hash all bytes of an open file but its last DIGEST_BYTES."""
    remaining = file.seek(0, os.SEEK_END) - DIGEST_BYTES
    file.seek(0)
    sha = hashlib.sha256()
    while remaining > 0:
        block = file.read(min(remaining, 2**20))
        sha.update(block)
        remaining -= len(block)
    return sha.hexdigest().encode()


def _class_of(name: str) -> Any:
    return getattr(importlib.import_module(CLASSES[name]), name)


def _encode(value: Any, arrays: list[NDArray[Any]], name: str) -> Any:
    """Turn a value into what JSON can hold, moving arrays to a list; `name` is for messages."""
    if isinstance(value, np.random.RandomState | np.random.Generator | np.random.SeedSequence):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUc":
        arrays.append(np.asarray(value))
        i = len(arrays) - 1
        return {"array": i, "shape": list(value.shape), "dtype": value.dtype.str}
    if isinstance(value, np.ndarray):  # of objects: feature names
        return {"objects": _encode(value.tolist(), arrays, name)}
    if isinstance(value, np.dtype):
        return {"dtype": value.str}
    if isinstance(value, list):
        return [_encode(item, arrays, f"{name}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"tuple": _encode(list(value), arrays, name)}
    if isinstance(value, dict):
        keys = _encode(list(value), arrays, name)
        values = [_encode(item, arrays, f"{name}[{key!r}]") for key, item in value.items()]
        return {"keys": keys, "values": values}
    kind = type(value)
    if kind.__name__ not in CLASSES or kind is not _class_of(kind.__name__):
        raise TypeError(
            f"{name} is a {kind.__module__}.{kind.__qualname__}, and a gzkcore file holds only "
            "gzkcore's own classes and plain data; keep this model with skops "
            "(https://skops.readthedocs.io) instead"
        )
    data = value._to_data() if hasattr(kind, "_to_data") else vars(value)
    items = {k: _encode(v, arrays, f"{name}.{k}") for k, v in data.items()}
    return {"class": kind.__name__, "data": items}


def _decode(value: Any, archive: zipfile.ZipFile) -> Any:
    """Undo `_encode`."""
    if isinstance(value, list):
        return [_decode(item, archive) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return _read_array(value, archive)
    if "objects" in value:
        return np.array(_decode(value["objects"], archive), dtype=object)
    if "dtype" in value:
        return np.dtype(value["dtype"])
    if "tuple" in value:
        return tuple(_decode(value["tuple"], archive))
    if "keys" in value:
        keys, values = _decode(value["keys"], archive), _decode(value["values"], archive)
        return dict(zip(keys, values, strict=True))
    name = value["class"]
    if name not in CLASSES:
        raise ValueError(f"it holds a {name}, which is none of gzkcore's classes")
    cls = _class_of(name)
    data = {k: _decode(v, archive) for k, v in value["data"].items()}
    if hasattr(cls, "_from_data"):
        return cls._from_data(data)
    made = cls.__new__(cls)
    vars(made).update(data)
    return made


def _read_array(value: dict[str, Any], archive: zipfile.ZipFile) -> NDArray[Any]:
    member = io.BytesIO(archive.read(f"{value['array']}.npy"))
    array = np.lib.format.read_array(member, allow_pickle=False)
    if list(array.shape) != value["shape"] or array.dtype.str != value["dtype"]:
        raise ValueError(f"array {value['array']} has another shape or type than announced")
    return array
