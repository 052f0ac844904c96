"""Models as files: data, never code.

A file is an uncompressed zip archive of `model.json` (classes, parameters, small values) and one
.npy per array, so that any zip tool opens it and NumPy reads the arrays. The archive's comment, its
last 64 bytes, is the SHA-256 of all bytes before: one changed bit anywhere and `load` refuses it.

`load` makes objects of the classes in `CLASSES` only and never unpickles. Values may be None, bool,
int, float, str, dtypes, arrays, objects of `CLASSES`, and lists, tuples and dicts of these. Random
generators are kept as None: what was drawn from them is in the fitted arrays.

A class declares what a file keeps of its objects, beside what its parents declare:

    _state = stored("places", "signs", weight="_weight")

keeps three attributes, one of them under another name than its own. So an attribute may be renamed,
and a class too (see `CLASSES`), while the names in files stay. Parameters of estimators and what
scikit-learn notes beside them need no declaration. What else is not declared is not kept, and a
file with a name that is not declared is refused. Where attributes are not what a file should hold,
`_to_data(self) -> dict` gives other values for declared names, and `_from_data(data) -> object`
makes an object of all values by name.
"""

import hashlib
import importlib
import inspect
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .files import replacing

__all__ = ["load", "save"]

FORMAT = "gzkcore model"
VERSION = 1
DIGEST_BYTES = 64

# Everything that a file may hold: its name there, and where the class is now. FrozenEstimator, the
# one class of another package, holds features that are to stay as they are.
CLASSES = {
    "FrozenEstimator": "sklearn.frozen:FrozenEstimator",
    "RandomFeatureRidge": "gzkcore.learn.ridge:RandomFeatureRidge",
    "RandomFeatureRidgeCV": "gzkcore.learn.ridge_cv:RandomFeatureRidgeCV",
    "RandomFeatureRidgeClassifier": "gzkcore.learn.ridge_classifier:RandomFeatureRidgeClassifier",
    "RandomFeatureRidgeClassifierCV": (
        "gzkcore.learn.ridge_classifier:RandomFeatureRidgeClassifierCV"
    ),
    "KernelRidge": "gzkcore.learn.kernel_ridge:KernelRidge",
    "KernelRidgeCV": "gzkcore.learn.kernel_ridge_cv:KernelRidgeCV",
    "KernelRidgeClassifier": "gzkcore.learn.kernel_ridge_classifier:KernelRidgeClassifier",
    "KernelRidgeClassifierCV": "gzkcore.learn.kernel_ridge_classifier:KernelRidgeClassifierCV",
    "KernelClassifier": "gzkcore.learn.kernel_classifier:KernelClassifier",
    "KernelRegressor": "gzkcore.learn.kernel_regressor:KernelRegressor",
    "TableEncoder": "gzkcore.learn.table_encoder:TableEncoder",
    "Report": "gzkcore.learn.kernel_search:Report",
    "Candidate": "gzkcore.learn.kernel_search:Candidate",
    "RandomFeaturePCA": "gzkcore.learn.pca:RandomFeaturePCA",
    "RandomFeatureCCA": "gzkcore.learn.cca:RandomFeatureCCA",
    "RandomFeatureKMeans": "gzkcore.learn.kmeans:RandomFeatureKMeans",
    "CrossAccumulator": "gzkcore.learn.wide:CrossAccumulator",
    "GramAccumulator": "gzkcore.learn.gram:GramAccumulator",
    "MomentsAccumulator": "gzkcore.learn.moments:MomentsAccumulator",
    "ClusterAccumulator": "gzkcore.learn.clusters:ClusterAccumulator",
    "_Progress": "gzkcore.learn.streams:_Progress",
    "_Solve": "gzkcore.learn.solve_state:State",
    "KernelFeatures": "gzkcore.features.auto:KernelFeatures",
    "GegenbauerFeatures": "gzkcore.features.gegenbauer:GegenbauerFeatures",
    "PublishedGegenbauerFeatures": "gzkcore.features.gegenbauer:PublishedGegenbauerFeatures",
    "Recurrence": "gzkcore.features.gegenbauer_columns:Recurrence",
    "_Directions": "gzkcore.features.gegenbauer_columns:Directions",
    "FastfoodFeatures": "gzkcore.features.fastfood:FastfoodFeatures",
    "ModifiedFourierFeatures": "gzkcore.features.fourier:ModifiedFourierFeatures",
    "RandomFourierFeatures": "gzkcore.features.fourier:RandomFourierFeatures",
    "AdaptiveSketchFeatures": "gzkcore.features.adaptive:AdaptiveSketchFeatures",
    "MaclaurinFeatures": "gzkcore.features.maclaurin:MaclaurinFeatures",
    "NystromFeatures": "gzkcore.features.nystrom:NystromFeatures",
    "_Precomputed": "gzkcore.features.nystrom:Precomputed",
    "PolySketchFeatures": "gzkcore.features.polysketch:PolySketchFeatures",
    "_Tree": "gzkcore.features.polysketch:_Tree",
    "CountSketch": "gzkcore.features.sketch:CountSketch",
    "TensorSketchFeatures": "gzkcore.features.sketch:TensorSketchFeatures",
    "FastJLProjection": "gzkcore.features.projection:FastJLProjection",
    "HadamardProjection": "gzkcore.features.projection:HadamardProjection",
    "Product": "gzkcore.kernels:Product",
    "Sum": "gzkcore.kernels:Sum",
    "ProductFeatures": "gzkcore.features.product:ProductFeatures",
    "BlockFourierFeatures": "gzkcore.features.block:BlockFourierFeatures",
    "BlockProjection": "gzkcore.features.block:BlockProjection",
    "MeanNormalizer": "gzkcore.features.normalize:MeanNormalizer",
    "HarmonicTree": "gzkcore.sphere.harmonics:HarmonicTree",
    "ArcCosine": "gzkcore.kernels:ArcCosine",
    "DotProduct": "gzkcore.kernels:DotProduct",
    "Exponential": "gzkcore.kernels:Exponential",
    "ExponentialDot": "gzkcore.kernels:ExponentialDot",
    "Gaussian": "gzkcore.kernels:Gaussian",
    "GeneralizedZonal": "gzkcore.kernels:GeneralizedZonal",
    "Laplacian": "gzkcore.kernels:Laplacian",
    "Matern": "gzkcore.kernels:Matern",
    "NeuralTangent": "gzkcore.kernels:NeuralTangent",
    "Polynomial": "gzkcore.kernels:Polynomial",
    "RationalQuadratic": "gzkcore.kernels:RationalQuadratic",
    "SphereHeat": "gzkcore.kernels:SphereHeat",
    "SphereMatern": "gzkcore.kernels:SphereMatern",
    "Spherical": "gzkcore.kernels:Spherical",
    "Zonal": "gzkcore.kernels:Zonal",
    "RadialFunctions": "gzkcore.kernels.radial:RadialFunctions",
    "_Angular": "gzkcore.kernels.families:ZonalFunctions",
    "_Distances": "gzkcore.kernels.families:ShiftInvariantFunctions",
    "_Given": "gzkcore.kernels.families:GeneralFunctions",
    "_Taylor": "gzkcore.kernels.families:DotProductFunctions",
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
    arrays: list[NDArray[Any]] = []
    root = _encode(model, arrays, type(model).__name__)
    head = {"format": FORMAT, "version": VERSION, "model": root}
    with replacing(path) as beside, beside.open("w+b") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_member("model.json"), json.dumps(head, indent=1))
            for i, array in enumerate(arrays):
                with archive.open(_member(f"{i}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
            archive.comment = b"0" * DIGEST_BYTES
        digest = _digest(file)
        file.seek(-DIGEST_BYTES, os.SEEK_END)
        file.write(digest)


def _member(name: str) -> zipfile.ZipInfo:
    """Describe a member of an archive without the time: the same model makes the same bytes."""
    member = zipfile.ZipInfo(name)
    member.external_attr = 0o600 << 16  # as zipfile has it for names
    return member


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


def stored(*names: str, **attributes: str | None) -> dict[str, str | None]:
    """Declare what a file keeps: {name in the file: attribute}.

    Attributes whose names in the file are their own come first. None is for a name that files of
    earlier versions have and nobody needs any more.
    """
    return {name: name for name in names} | attributes


# Of every estimator, beside its parameters: what scikit-learn's base classes keep.
_OF_ESTIMATORS = stored(
    "n_features_in_", "feature_names_in_", "_n_features_out", "_sklearn_output_config"
)


def state_of(cls: Any) -> dict[str, str | None]:
    """Return what a file keeps of the objects of a class: {name in the file: attribute}."""
    state: dict[str, str | None] = {}
    if hasattr(cls, "_get_param_names"):
        state = stored(*cls._get_param_names()) | _OF_ESTIMATORS
    for base in reversed(cls.__mro__):
        state |= vars(base).get("_state", {})
    return state


def _class_of(name: str) -> Any:
    module, _, cls = CLASSES[name].partition(":")
    return getattr(importlib.import_module(module), cls)


def _name_of(cls: type) -> str | None:
    """Return the name of a class in files, None if they don't hold its objects."""
    names = (name for name, place in CLASSES.items() if place.endswith(f":{cls.__name__}"))
    return next((name for name in names if _class_of(name) is cls), None)


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
    named = _name_of(kind)
    if named is None:
        raise TypeError(
            f"{name} is a {kind.__module__}.{kind.__qualname__}, and a gzkcore file holds only "
            "gzkcore's own classes and plain data; keep this model with skops "
            "(https://skops.readthedocs.io) instead"
        )
    items = {k: _encode(v, arrays, f"{name}.{k}") for k, v in _data_of(value).items()}
    return {"class": named, "data": items}


def _data_of(value: Any) -> dict[str, Any]:
    """Return what a file keeps of an object of ours, by name."""
    own = vars(value)
    data = {name: own[held] for name, held in state_of(type(value)).items() if held in own}
    return data | value._to_data() if hasattr(type(value), "_to_data") else data


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
    state = state_of(cls)
    if unknown := ", ".join(sorted(value["data"].keys() - state)):
        raise ValueError(f"it holds a {name} with {unknown}, which this gzkcore does not know")
    data = {k: _decode(v, archive) for k, v in value["data"].items()}
    if hasattr(cls, "_from_data"):
        return cls._from_data(data)
    made = cls.__new__(cls)
    vars(made).update(_defaults(cls))
    vars(made).update((held, data[k]) for k, held in state.items() if held and k in data)
    return made


def _defaults(cls: Any) -> dict[str, Any]:
    """Return the defaults of an estimator's parameters: those of parameters younger than a file."""
    if not hasattr(cls, "_get_param_names"):
        return {}
    given = inspect.signature(cls).parameters.values()
    return {each.name: each.default for each in given if each.default is not each.empty}


def _read_array(value: dict[str, Any], archive: zipfile.ZipFile) -> NDArray[Any]:
    member = io.BytesIO(archive.read(f"{value['array']}.npy"))
    array = np.lib.format.read_array(member, allow_pickle=False)
    if list(array.shape) != value["shape"] or array.dtype.str != value["dtype"]:
        raise ValueError(f"array {value['array']} has another shape or type than announced")
    return array
