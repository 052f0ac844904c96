"""Models as files: data, never code.

A file is an uncompressed zip archive of `model.json` (classes, parameters, small values) and one
.npy per array, so that any zip tool opens it and NumPy reads the arrays. The comment of the
archive, its last 64 bytes, is the SHA-256 of all bytes before, so that `load` refuses a file with a
single changed bit. Then it maps large arrays, and reads the others.

`load` creates only objects of the classes in `CLASSES` and never unpickles. Values may be None,
bool, int, float, str, dtypes, arrays, objects of `CLASSES`, and lists, tuples and dicts of these.
Random generators become None: the numbers drawn from them are in the fitted arrays.

A class declares the attributes that files keep, and `load` checks them: see `state`. Parameters of
estimators, and the attributes that scikit-learn adds, need no declaration. Other attributes are not
saved, and a file with an undeclared name is refused. If a file should hold other values than the
attributes, `_to_data(self) -> dict` returns them for declared names, and `_from_data(data) ->
object` makes an object from all values by name, after the checks.
"""

import functools
import hashlib
import importlib
import inspect
import json
import math
import mmap
import os
import re
import struct
import weakref
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .files import allowed, as_path, meant_file, replacing
from .state import check_fields, check_mapped, check_rest, state_of

FORMAT = "gzkcore model"
VERSION = 1
DIGEST_BYTES = 64
ZIP = b"PK\x03\x04"  # how an archive begins
HEADER_BYTES, ZIP64_BYTES = 30, 20  # before a member's name, and after it
PADDING = 0xD935  # names the extra field that other tools align members with, too
ALIGNMENT = 64  # Only arrays that begin at a multiple of so many bytes are mapped,
LEAST_MAPPED = 1 << 24  # if they have so many.
# Types of arrays: numbers, booleans, text, dates and durations.
DTYPES = r"[<>|=]([biufcU]\d{1,6}|[mM]8\[\d{0,6}([YMWDhms]|[munpfa]s)\])"
DEEPEST = 64  # values may be nested so deep; those of models are, a dozen levels

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
    "NearKernelRidge": "gzkcore.learn.near_kernel_ridge:NearKernelRidge",
    "KernelRidgeClassifier": "gzkcore.learn.kernel_ridge_classifier:KernelRidgeClassifier",
    "KernelRidgeClassifierCV": "gzkcore.learn.kernel_ridge_classifier:KernelRidgeClassifierCV",
    "KernelLogisticRegression": "gzkcore.learn.kernel_logistic:KernelLogisticRegression",
    "KernelPoissonRegressor": "gzkcore.learn.kernel_losses:KernelPoissonRegressor",
    "KernelHuberRegressor": "gzkcore.learn.kernel_losses:KernelHuberRegressor",
    "KernelQuantileRegressor": "gzkcore.learn.kernel_quantile:KernelQuantileRegressor",
    "KernelClassifier": "gzkcore.tabular.kernel_classifier:KernelClassifier",
    "KernelRegressor": "gzkcore.tabular.kernel_regressor:KernelRegressor",
    "TableEncoder": "gzkcore.tabular.table_encoder:TableEncoder",
    "CodedRows": "gzkcore.rows.coded:CodedRows",
    "FittedTable": "gzkcore.tabular.fitted_table:FittedTable",
    "Remark": "gzkcore._util.remark:Remark",
    "Report": "gzkcore.tabular.report:Report",
    "Candidate": "gzkcore.tabular.report:Candidate",
    "Deviations": "gzkcore.tabular.deviations:Deviations",
    "Link": "gzkcore.tabular.probabilities:Link",
    "VaryingNoise": "gzkcore.tabular.varying_noise:VaryingNoise",
    "SeriesRidge": "gzkcore.learn.series_ridge:SeriesRidge",
    "ExponentialSums": "gzkcore.passes.exponential_sums:ExponentialSums",
    "RandomFeaturePCA": "gzkcore.learn.pca:RandomFeaturePCA",
    "RandomFeatureCCA": "gzkcore.learn.cca:RandomFeatureCCA",
    "RandomFeatureKMeans": "gzkcore.learn.kmeans:RandomFeatureKMeans",
    "CrossAccumulator": "gzkcore.solve.wide:CrossAccumulator",
    "GramAccumulator": "gzkcore.passes.gram:GramAccumulator",
    "MomentsAccumulator": "gzkcore.passes.moments:MomentsAccumulator",
    "ClusterAccumulator": "gzkcore.passes.clusters:ClusterAccumulator",
    "_UnfinishedFit": "gzkcore.passes.streams:_UnfinishedFit",
    "_Solve": "gzkcore.solve.solve:State",
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
    "_Precomputed": "gzkcore.kernels.general:Precomputed",
    "PolySketchFeatures": "gzkcore.features.polysketch:PolySketchFeatures",
    "_Tree": "gzkcore.features.polysketch:_Tree",
    "CountSketch": "gzkcore.features.sketch:CountSketch",
    "TensorSketchFeatures": "gzkcore.features.sketch:TensorSketchFeatures",
    "FastJLProjection": "gzkcore.features.projection:FastJLProjection",
    "HadamardProjection": "gzkcore.features.projection:HadamardProjection",
    "Product": "gzkcore.kernels:Product",
    "Sum": "gzkcore.kernels:Sum",
    "Transformed": "gzkcore.kernels:Transformed",
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
    "ProductMatern": "gzkcore.kernels:ProductMatern",
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

    The file is written completely or not at all: first under another name, then renamed.

    Parameters
    ----------
    model : object of one of gzkcore's classes
        A model with transformers of other packages raises TypeError: save it with skops. A
        `sklearn.frozen.FrozenEstimator` of features of gzkcore is possible.
    path : str or path
        It usually ends with ``.gzk``. An existing file is replaced.
    """
    arrays: list[NDArray[Any]] = []
    root = _encode(model, arrays, type(model).__name__)
    head = {"format": FORMAT, "version": VERSION, "model": root}
    with replacing(path) as beside, beside.open("w+b") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_member("model.json"), json.dumps(head, indent=1))
            for i, array in enumerate(arrays):
                with archive.open(_member(f"{i}.npy", file.tell()), "w", force_zip64=True) as out:
                    np.lib.format.write_array(out, array, allow_pickle=False)
            archive.comment = b"0" * DIGEST_BYTES
        digest = _digest(file)
        file.seek(-DIGEST_BYTES, os.SEEK_END)
        file.write(digest)


def _member(name: str, start: int = 0) -> zipfile.ZipInfo:
    """Describe a member that starts at this byte, with a zip64 header: its content is aligned.

    The time is left out: the same model makes the same bytes.
    """
    member = zipfile.ZipInfo(name)
    member.external_attr = 0o600 << 16  # as zipfile has it for names
    padding = -(start + HEADER_BYTES + ZIP64_BYTES + 4 + len(name)) % ALIGNMENT
    member.extra = struct.pack("<HH", PADDING, padding) + bytes(padding)
    return member


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` has written.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    object
        The model. Raises ValueError if the file is incomplete, changed, or not a gzkcore model;
        FileNotFoundError if there is none, IsADirectoryError if it is a folder, OSError if it is a
        device or a pipe, PermissionError if it may not be read.

    Notes
    -----
    Time and memory are at most in proportion to the size of the file, whatever it holds. What a
    model computes once, such as the tables of its harmonics, it computes when it is first used.

    Arrays of 16 MB or more are mapped. So replace a file as `save` does, by renaming another: if it
    is overwritten, its models raise OSError at their next use, or the system ends the process.
    """
    with _opened(as_path(path)) as file:
        try:
            return _read(file)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # whatever is wrong inside a file, it is the file that is wrong
            raise ValueError(f"cannot load {os.fspath(path)!r}: {error}") from error


def _opened(path: Path) -> BinaryIO:
    """Open a file to read, or say in words what stands at this path."""
    with allowed("load", path):
        if path.is_dir():
            raise IsADirectoryError(f"cannot load {str(path)!r}: it is a folder; name a file in it")
        if path.exists() and not path.is_file():  # which might wait for ever, or never end
            raise OSError(f"cannot load {str(path)!r}: it is a device or a pipe; name a file")
        try:
            return path.open("rb")
        except (FileNotFoundError, NotADirectoryError):
            folder = path.parent.resolve()
            where = f"folder {folder}"
            if folder.is_dir():
                where = f"file of this name in {folder}{meant_file(path)}"
            raise FileNotFoundError(f"cannot load {str(path)!r}: there is no {where}") from None


def _read(file: BinaryIO) -> Any:
    mapped = _Mapped(file)  # before it is checked
    if not zipfile.is_zipfile(file):
        file.seek(0)
        start = file.read(len(ZIP))
        if not start:
            raise ValueError("it is empty; save the model again")
        if ZIP.startswith(start):
            raise ValueError("it is not a gzkcore model, or its end is missing")
        raise ValueError(
            "it is not a gzkcore model; name a file that save() or the command gzkcore fit wrote"
        )
    with zipfile.ZipFile(file) as archive:
        if len(archive.comment) != DIGEST_BYTES or "model.json" not in archive.namelist():
            raise ValueError("it is a zip archive, but not a gzkcore model, or its end is missing")
        if archive.comment != _digest(file):
            raise ValueError("its checksum is wrong: it was altered or damaged")
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("it has a compressed member, and files of models have none")
        size = file.seek(0, os.SEEK_END)
        if any(not 0 <= member.header_offset < size for member in members):
            raise ValueError("it has a member that begins outside of the file")
        if sum(member.file_size for member in members) > size:
            raise ValueError("its members are larger than the file")
        head = json.loads(archive.read("model.json"), parse_int=_integer)
        if head["format"] != FORMAT:
            raise ValueError("it is not a gzkcore model")
        if head["version"] != VERSION:
            raise ValueError(
                f"it has format version {head['version']}, but this gzkcore reads {VERSION}; use "
                "the gzkcore that wrote it, or a newer one"
            )
        return _Decoder(archive, mapped).value(head["model"])


def _integer(digits: str) -> int:
    """Return an integer of JSON; of larger ones many could have one hash, and dicts take long."""
    value = int(digits)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"it has the integer {digits:.40}, and files of models have 64 bits")
    return value


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
    module, _, cls = CLASSES[name].partition(":")
    return getattr(importlib.import_module(module), cls)


@functools.cache
def _defaults(cls: type) -> dict[str, Any]:
    known = inspect.signature(cls).parameters.values()
    return {p.name: p.default for p in known if p.default is not p.empty}


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
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUcmM":
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
            f"{name} is a {kind.__module__}.{kind.__qualname__}, but a gzkcore file holds only "
            "classes of gzkcore and plain data; save this model with skops "
            "(https://skops.readthedocs.io) instead"
        )
    items = {k: _encode(v, arrays, f"{name}.{k}") for k, v in _data_of(value).items()}
    return {"class": named, "data": items}


def _data_of(value: Any) -> dict[str, Any]:
    """Return what a file keeps of an object of ours, by name."""
    check_mapped(value)
    own = vars(value)
    data = {name: own[name] for name in state_of(value.__class__) if name in own}
    return data | value._to_data() if hasattr(type(value), "_to_data") else data


class _Mapped:
    """The large arrays of a file: read where touched, shared by processes, copied where changed."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.written = file, os.fstat(file.fileno()).st_mtime_ns
        self.maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()

    def array(self, member: zipfile.ZipInfo, n_bytes: int, dtype: Any) -> NDArray[Any] | None:
        """Return the last bytes of a member as an array; None if they must be read."""
        self.file.seek(member.header_offset + HEADER_BYTES - 4)
        lengths, number = struct.unpack("<HH", self.file.read(4)), self.file.fileno()
        start = member.header_offset + HEADER_BYTES + sum(lengths) + member.file_size - n_bytes
        # Windows does not replace a file that is mapped.
        if n_bytes < LEAST_MAPPED or start % ALIGNMENT or os.name == "nt":
            return None
        at = start % mmap.ALLOCATIONGRANULARITY
        try:
            pages = mmap.mmap(number, at + n_bytes, access=mmap.ACCESS_COPY, offset=start - at)
        except OSError:  # a file system without maps
            return None
        if not self.maps:
            self.descriptor = os.dup(number)
            weakref.finalize(self, os.close, self.descriptor)
        self.maps.add(pages)
        return np.frombuffer(pages, dtype, offset=at)

    def check(self) -> None:
        """Raise OSError if the file was overwritten while arrays of it are in use."""
        if self.maps and os.fstat(self.descriptor).st_mtime_ns != self.written:
            raise OSError(
                f"{str(self.file.name)!r} was overwritten, but a model that was loaded from it has "
                "its large arrays there; load it again, and replace a file by renaming another"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave None in pickles and copies, which have arrays of their own."""
        self.check()
        return type(None), ()


class _Decoder:
    """Undoes `_encode`. Of an author who knows this code nothing is believed."""

    def __init__(self, archive: zipfile.ZipFile, mapped: _Mapped) -> None:
        self.archive, self.mapped, self.depth = archive, mapped, 0
        self.read: set[Any] = set()  # numbers of arrays: each belongs to one attribute

    def value(self, value: Any) -> Any:
        """Return what an encoded value stands for."""
        if not isinstance(value, dict | list):
            return value
        self.depth += 1
        if self.depth > DEEPEST:
            raise ValueError(f"it has values within values, more than {DEEPEST}")
        made = self._list(value) if isinstance(value, list) else self._dict(value)
        self.depth -= 1
        return made

    def _list(self, value: list[Any]) -> list[Any]:
        return [self.value(item) for item in value]

    def _dict(self, value: dict[str, Any]) -> Any:
        if "array" in value:
            return self._array(value)
        if "objects" in value:
            items = self._list(value["objects"])
            made = np.empty(len(items), dtype=object)
            for place, item in enumerate(items):  # which may be lists
                made[place] = item
            return made
        if "dtype" in value:
            return _dtype(value["dtype"])
        if "tuple" in value:
            return tuple(self._list(value["tuple"]))
        if "keys" in value:
            keys, values = self._list(value["keys"]), self._list(value["values"])
            return dict(zip(keys, values, strict=True))
        return self._object(value["class"], value["data"])

    def _object(self, name: str, given: dict[str, Any]) -> Any:
        if name not in CLASSES:
            raise ValueError(f"it holds a {name}, which is not a class of gzkcore")
        cls = _class_of(name)
        state = state_of(cls)
        if unknown := ", ".join(sorted(given.keys() - state)):
            raise ValueError(f"it holds a {name} with {unknown}, which this gzkcore does not know")
        data = {name: self.value(each) for name, each in given.items()}
        is_fitted = check_fields(cls, data)
        if hasattr(cls, "_from_data"):
            made = cls._from_data(data)
        else:
            made = cls.__new__(cls)
            if hasattr(cls, "_get_param_names"):  # a file leaves out parameters that are no data
                vars(made).update(_defaults(cls))
            vars(made).update(data)
        if self.mapped.maps and hasattr(cls, "_get_param_names"):
            made._mapped = self.mapped
        if is_fitted:
            check_rest(made)
        return made

    def _array(self, value: dict[str, Any]) -> NDArray[Any]:
        number, shape, dtype = value["array"], tuple(value["shape"]), _dtype(value["dtype"])
        if number in self.read:
            raise ValueError(f"it has array {number} twice")
        self.read.add(number)
        info, n_bytes = self.archive.getinfo(f"{number}.npy"), math.prod(shape) * dtype.itemsize
        with self.archive.open(info) as member:
            header = _HEADERS[np.lib.format.read_magic(member)](member)
            if header[0] != shape or header[2] != dtype:
                raise ValueError(f"array {number} has another shape or type than announced")
            if n_bytes != info.file_size - member.tell():
                raise ValueError(f"array {number} has another size than announced")
            values = self.mapped.array(info, n_bytes, dtype)
            if values is not None:
                return values.reshape(shape, order="F" if header[1] else "C")
            member.seek(0)
            return np.lib.format.read_array(member, allow_pickle=False)


_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def _dtype(name: Any) -> np.dtype[Any]:
    if not isinstance(name, str) or not re.fullmatch(DTYPES, name):
        raise ValueError(f"it has values of type {name!r:.40}, and files of models have none")
    return np.dtype(name)
