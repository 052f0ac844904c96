"""Files of models: they give back the model, hold no code, and a changed one is refused."""

import copy
import gc
import io
import json
import mmap
import os
import pickle
import sys
import tracemalloc
import zipfile
from pathlib import Path
from types import SimpleNamespace

import joblib
import models
import numpy as np
import pytest
import resign
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import FunctionTransformer

import gzkcore
from gzkcore import (
    Gaussian,
    GegenbauerFeatures,
    GeneralizedZonal,
    Matern,
    ProductFeatures,
    Zonal,
)
from gzkcore._util import model_io, state
from gzkcore._util.model_io import load, save
from gzkcore.learn.pca import RandomFeaturePCA
from gzkcore.learn.ridge import RandomFeatureRidge
from gzkcore.learn.ridge_cv import RandomFeatureRidgeCV
from gzkcore.passes.gram import GramAccumulator


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.column_stack([X[:, 0] * X[:, 1], X[:, 2]])


# What files keep of each map of features is seen in test_agnostic.
MODELS = {
    "two alphas": RandomFeatureRidge(GegenbauerFeatures(Gaussian(2.0), 32, basis="random", random_state=0), [0.1, 1.0]),
    "generators": RandomFeatureRidge(
        GegenbauerFeatures(Gaussian(9.0), 32, basis="hybrid", random_state=np.random.default_rng(0)),
        random_state=np.random.RandomState(0),
    ),
    "kernels": RandomFeatureRidgeCV(
        GegenbauerFeatures(n_components=25, basis="harmonic"),
        alphas=[0.1, 1.0],
        kernel_grid={"gamma": [0.5, 2.0]},
        cv=2,
    ),
    "generalised": RandomFeatureRidgeCV(GegenbauerFeatures(n_components=25)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_file_gives_back_the_model(name, tmp_path):
    X, y = data()
    model = MODELS[name].fit(X, y)
    model.save(tmp_path / "m.gzk")
    again = load(tmp_path / "m.gzk")
    assert type(again) is type(model)
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.predict(X.astype(np.float32)), model.predict(X.astype(np.float32)))
    for one, other in zip(*(m.predict(X, return_std=True) for m in (again, model)), strict=True):
        assert_array_equal(one, other)
    assert again.n_features_in_ == 3
    assert again.features_.n_components == model.features_.n_components
    more_X, more_y = data(50, seed=1)
    for m in (again, model):  # goes on where it was
        m.partial_fit(more_X, more_y)
    assert_array_equal(again.predict(X), model.predict(X))
    if isinstance(model, RandomFeatureRidgeCV):
        assert again.best_params_ == model.best_params_
        assert again.cv_results_.keys() == model.cv_results_.keys()


def test_names_of_columns_and_nested_values(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = data()
    frame = pd.DataFrame(X, columns=["x", "y", "z"])
    model = RandomFeatureRidge(GegenbauerFeatures(n_components=9)).fit(frame, y)
    model.save(tmp_path / "m.gzk")
    again = load(tmp_path / "m.gzk")
    assert_array_equal(again.feature_names_in_, ["x", "y", "z"])
    assert_array_equal(again.predict(frame), model.predict(frame))


def test_sums_on_their_own(tmp_path):
    X, y = data()
    sums = GramAccumulator(GegenbauerFeatures(n_components=20, random_state=0).fit(X), 3)
    save(sums, tmp_path / "empty.gzk")
    assert load(tmp_path / "empty.gzk").update(X, y).n_rows == 120
    save(sums.update(X, y), tmp_path / "sums.gzk")
    again = load(tmp_path / "sums.gzk")
    assert_array_equal(again.sums, sums.sums)
    assert_array_equal(again.merge(sums).sums, sums.merge(sums).sums)


def test_a_function_is_kept_as_its_series(tmp_path):
    X, y = data()
    model = RandomFeatureRidge(GegenbauerFeatures(Zonal(np.exp), 25)).fit(X, y)
    model.save(tmp_path / "m.gzk")
    again = load(tmp_path / "m.gzk")
    assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(
        ValueError, match="no function, since files of models do not store functions"
    ):
        again.features_.kernel_(X)


def test_generators_are_kept_as_none(tmp_path):
    X, y = data()
    model = RandomFeatureRidge(
        GegenbauerFeatures(n_components=9), random_state=np.random.default_rng(0)
    )
    model.fit(X, y).save(tmp_path / "m.gzk")
    assert load(tmp_path / "m.gzk").random_state is None


def test_other_packages_are_pointed_to_skops(tmp_path):
    X, y = data()
    for features in (RBFSampler(n_components=5), FunctionTransformer()):
        model = RandomFeatureRidge(features).fit(X, y)
        with pytest.raises(TypeError, match=r"RandomFeatureRidge.features is a sklearn.*skops"):
            model.save(tmp_path / "m.gzk")
    with pytest.raises(TypeError, match=r"RandomFeatureRidge.alpha is a builtins.function"):
        save(RandomFeatureRidge(alpha=lambda: 1), tmp_path / "m.gzk")
    with pytest.raises(TypeError, match="holds only classes of gzkcore"):
        save(object(), tmp_path / "m.gzk")
    assert list(tmp_path.iterdir()) == []


def test_frozen_features_are_kept(tmp_path):
    X, y = data()
    for features in (GegenbauerFeatures(n_components=16), ProductFeatures("gaussian", 16)):
        model = RandomFeatureRidge(FrozenEstimator(features.fit(X)), 0.1).fit(X, y)
        model.save(tmp_path / "m.gzk")
        again = load(tmp_path / "m.gzk")
        assert type(again.features) is FrozenEstimator
        assert_array_equal(again.predict(X), model.predict(X))
        assert_array_equal(again.partial_fit(X, -y).predict(X), model.partial_fit(X, -y).predict(X))
        assert_array_equal(again.fit(X, y).predict(X), model.fit(X, y).predict(X))
    save(FrozenEstimator(features), tmp_path / "frozen.gzk")
    assert_array_equal(load(tmp_path / "frozen.gzk").transform(X), features.transform(X))
    foreign = FrozenEstimator(RBFSampler(n_components=5).fit(X))
    with pytest.raises(TypeError, match=r"RandomFeatureRidge.features.estimator is a skl.*skops"):
        RandomFeatureRidge(foreign).fit(X, y).save(tmp_path / "m.gzk")


def test_a_class_of_the_same_name_is_not_ours(tmp_path):
    class Gaussian:
        pass

    class FrozenEstimator:
        pass

    for foreign in (Gaussian(), FrozenEstimator()):
        with pytest.raises(TypeError, match="holds only classes of gzkcore"):
            save(foreign, tmp_path / "m.gzk")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    X, y = data()
    path = tmp_path_factory.mktemp("saved") / "m.gzk"
    RandomFeatureRidge(GegenbauerFeatures(n_components=4)).fit(X, y).save(path)
    return path.read_bytes()


def refused(content, tmp_path, message):
    path = tmp_path / "bad.gzk"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"(?s)cannot load '.*bad\.gzk': .*{message}"):
        load(path)


@pytest.mark.slow
def test_every_changed_byte_is_noticed(saved, tmp_path):
    # Each region of the archive many times over: headers, JSON, arrays, directory, checksum.
    for at in {*range(0, len(saved), 37), *range(len(saved) - 200, len(saved))}:
        changed = bytearray(saved)
        changed[at] ^= 1
        refused(changed, tmp_path, "")


def test_cut_short_or_longer(saved, tmp_path):
    for length in (1, 100, len(saved) // 2, len(saved) - 65, len(saved) - 1):
        refused(saved[:length], tmp_path, "or its end is missing")
    refused(saved + b"x", tmp_path, "")
    refused(b"x" + saved, tmp_path, "checksum is wrong")


def test_foreign_files(tmp_path):
    refused(pickle.dumps({"a": 1}), tmp_path, "not a gzkcore model")
    refused(b"a,b\n1,2\n", tmp_path, r"not a gzkcore model; name a file that save\(\)")
    refused(b"", tmp_path, "it is empty")
    archive = io.BytesIO()
    np.savez(archive, a=np.ones(3))
    refused(archive.getvalue(), tmp_path, "zip archive, but not a gzkcore model")


def forge(saved, change):
    """Change model.json, or the members of the archive, and give the file a right checksum."""
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    head = json.loads(members["model.json"])
    change(head, members)
    members["model.json"] = json.dumps(head).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = b"0" * 64
    return resign.resigned(out.getvalue())


def npy(array):
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda head, _: head.update(version=2), "format version 2, but this gzkcore reads 1"),
        (lambda head, _: head.update(format="other"), "not a gzkcore model"),
        (
            lambda head, _: head["model"].update({"class": "os.system"}),
            "os.system, which is not a class",
        ),
        (
            lambda head, _: head["model"].update({"class": "RBFSampler"}),
            "not a class of gzkcore",
        ),
        (lambda head, _: head.pop("model"), "model"),
        (
            lambda head, _: head["model"]["data"].update(_cache=1, predict=2),
            "a RandomFeatureRidge with _cache, predict, which this gzkcore does not know",
        ),
        (lambda _, members: members.update({"0.npy": npy(np.zeros(9))}), "another shape or type"),
        (
            lambda _, members: members.update({"0.npy": npy(np.array([os], object)[:0])}),
            "another shape or type",
        ),
        (lambda _, members: members.update({"0.npy": b"junk"}), ""),
        (lambda _, members: members.pop("0.npy"), "0.npy"),
    ],
)
def test_forged_files(change, message, saved, tmp_path):
    refused(forge(saved, change), tmp_path, message)


def test_a_forged_file_that_changes_nothing_is_read(saved, tmp_path):
    """So the refusals above are for what was changed."""
    (tmp_path / "m.gzk").write_bytes(forge(saved, lambda *_: None))
    assert isinstance(load(tmp_path / "m.gzk"), RandomFeatureRidge)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.gzk': there is no file of this name in /"):
        load(tmp_path / "none.gzk")
    with pytest.raises(FileNotFoundError, match=r"none\.gzk': there is no folder /.*not_there$"):
        load(tmp_path / "not_there" / "none.gzk")
    (tmp_path / "m.gzk").touch()
    with pytest.raises(FileNotFoundError, match=r"x\.gzk': there is no folder /.*m\.gzk$"):
        load(tmp_path / "m.gzk" / "x.gzk")


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"cannot load .*: it is a folder; name a file"):
        load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes that have names")
def test_devices_and_pipes_are_no_models(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(OSError, match=r"cannot load .*: it is a device or a pipe; name a file"):
            load(path)


def test_memory_that_runs_out_is_no_fault_of_the_file(saved, tmp_path, monkeypatch):
    def read(*_):
        raise MemoryError

    (tmp_path / "m.gzk").write_bytes(saved)
    monkeypatch.setattr(model_io, "_read", read)
    with pytest.raises(MemoryError):
        load(tmp_path / "m.gzk")


def test_an_interrupted_save_leaves_the_old_file(saved, tmp_path, monkeypatch):
    path = tmp_path / "m.gzk"
    path.write_bytes(saved)
    model = load(path)
    calls = iter(range(100))
    original = np.lib.format.write_array

    def interrupt(*args, **kwargs):
        if next(calls) == 3:
            raise KeyboardInterrupt
        original(*args, **kwargs)

    monkeypatch.setattr(model_io.np.lib.format, "write_array", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == saved


def test_any_zip_tool_opens_it(saved, tmp_path):
    (tmp_path / "m.gzk").write_bytes(saved)
    with zipfile.ZipFile(tmp_path / "m.gzk") as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("model.json"))["model"]["class"] == "RandomFeatureRidge"
    assert isinstance(np.load(tmp_path / "m.gzk")["0"], np.ndarray)


# ---- what a file keeps


def test_the_allow_list_names_what_there_is():
    for name, place in model_io.CLASSES.items():
        cls = model_io._class_of(name)
        assert cls.__module__.startswith(place.partition(":")[0])
        assert model_io._name_of(cls) == name


# Public estimators that no file holds, and why.
NOT_IN_FILES = {"LatLonToSphere": "it learns nothing"}


def test_files_hold_every_public_estimator():
    public = {name: getattr(gzkcore, name) for name in gzkcore.__all__}
    estimators = {name for name, each in public.items() if hasattr(each, "_get_param_names")}
    assert estimators - model_io.CLASSES.keys() == NOT_IN_FILES.keys()


def test_every_class_declares_its_state():
    for name in model_io.CLASSES:
        cls = model_io._class_of(name)
        assert hasattr(cls, "_get_param_names") or hasattr(cls, "_state"), name


# Attributes that no file keeps, and why they aren't missed.
NOT_KEPT = {
    "_spread": "worked out from the sums when a standard deviation is asked for",
    "_known": "the codes by their values, which the first prediction makes",
    "folder": "where rows were mapped while they were fitted; the file has them",
    "_near": "the fitted rows with their index, which the first prediction makes",
    "_posterior": "the system and draws, which are made again from the rows",
    "_tiles": "the fitted rows in tiles, which the first prediction makes",
    "_trend_of_rows": "the axes of a trend, which are made again from the rows",
    "_start": "solutions of a trend and residuals, which an update computes again",
    "_progress": "tells callbacks how far a fit is",
    "_tables": "of a HarmonicTree, made again where features are asked for",
    "_last_tables": "those that the last features took",
    "_cast": "the tables of the last columns, in each type",
    "_trusted": "says that parameters were checked, which are checked again",
    "_mapped": "the file that arrays are in",
}


def objects_in(value):
    """Yield all objects that a file of this value holds."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from objects_in(item)
    elif model_io._name_of(type(value)):
        yield value
        yield from objects_in(model_io._data_of(value))


def attributes_of(cls):
    return {*state.state_of(cls)}


def undeclared(value):
    """Return what the objects in a value hold that no file keeps."""
    return {
        (type(each).__name__, attribute)
        for each in objects_in(value)
        if not hasattr(each, "_from_data")  # which makes all that is not kept
        for attribute in vars(each).keys() - attributes_of(type(each)) - {*NOT_KEPT}
    }


@pytest.mark.parametrize("least", [1, 1 << 24], ids=["mapped", "read"])
@pytest.mark.parametrize(("unit", "make", "say"), [
    pytest.param(unit, make, say, id=name) for name, unit, make, say in models.cases()
])  # fmt: skip
def test_a_model_of_every_class_comes_back_whole(unit, make, say, least, tmp_path, monkeypatch):
    monkeypatch.setattr(model_io, "LEAST_MAPPED", least)
    X = models.rows(unit)
    model = make(X)
    expected = say(model, X)
    assert undeclared(model) == set()
    save(model, tmp_path / "m.gzk")
    content = (tmp_path / "m.gzk").read_bytes()
    again = load(tmp_path / "m.gzk")
    found = say(again, X)
    assert found.keys() == expected.keys()
    assert (tmp_path / "m.gzk").read_bytes() == content
    save(again, tmp_path / "again.gzk")
    assert type(load(tmp_path / "again.gzk")) is type(model)
    is_table = isinstance(getattr(model, "kernel", None), GeneralizedZonal)  # kept for a function
    for what, values in expected.items():
        atol = 512 * np.finfo(values.dtype).eps if is_table else 0
        np.testing.assert_allclose(found[what], values, rtol=0, atol=atol)


class Toy:
    _state = state.stored(places=state.plain(), _scale=state.number(), _spare=state.text())

    def __init__(self):
        self.places, self._scale, self._spare, self._cache = [1, 2], 3.0, "x", object()


class Renamed:
    _state = state.stored(places=state.plain(), _scale=state.number())


def test_a_class_may_be_renamed_and_its_files_stay(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "toys", SimpleNamespace(Toy=Toy, Renamed=Renamed))
    monkeypatch.setitem(model_io.CLASSES, "Toy", "toys:Toy")
    path = tmp_path / "toy.gzk"
    save(Toy(), path)
    assert undeclared(Toy()) == {("Toy", "_cache")}
    assert vars(load(path)) == {"places": [1, 2], "_scale": 3.0, "_spare": "x"}
    monkeypatch.setitem(model_io.CLASSES, "Toy", "toys:Renamed")
    with pytest.raises(ValueError, match="Toy with _spare, which this gzkcore does not know"):
        load(path)


def test_a_subclass_adds_to_what_its_parents_declare():
    class More(Toy):
        _state = state.stored(more=state.plain())

    assert {*state.state_of(More)} == {"places", "_scale", "_spare", "more"}


def test_files_keep_the_kind_of_output(tmp_path):
    pytest.importorskip("pandas")
    X, _ = data()
    model = RandomFeaturePCA(GegenbauerFeatures(n_components=9), 2).set_output(transform="pandas")
    save(model.fit(X), tmp_path / "m.gzk")
    assert list(load(tmp_path / "m.gzk").transform(X)) == list(model.get_feature_names_out())


@pytest.mark.parametrize("basis", ["harmonic", "random"])
def test_the_order_of_matrices_in_memory_changes_nothing(basis, tmp_path):
    """A file keeps rows one after the other, and products of matrices round by their order."""
    X = np.random.default_rng(0).standard_normal((300, 3))
    features = GegenbauerFeatures(Matern(2.5, 0.7), 256, basis=basis, random_state=0).fit(X)
    features.save(tmp_path / "m.gzk")
    assert_array_equal(load(tmp_path / "m.gzk").transform(X), features.transform(X))


def test_given_radial_functions_are_kept_as_tables(tmp_path):
    X, _ = data(40)
    X *= np.linspace(0.5, 2, 40)[:, None]
    kernel = GeneralizedZonal(lambda t: np.stack([np.exp(-t), t, np.sin(t) * t], 1))
    features = GegenbauerFeatures(kernel, 16).fit(X)
    features.save(tmp_path / "m.gzk")
    again = load(tmp_path / "m.gzk")
    further = 1.5 * X
    for points in (X, further):
        np.testing.assert_allclose(again.transform(points), features.transform(points), atol=1e-11)
    with pytest.raises(ValueError, match=r"saved up to the norm 4, and a point has 5"):
        again.transform(2.5 * X)
    with pytest.raises(
        ValueError, match=r"has no function, since files of models do not store functions"
    ):
        again.kernel_(X)


def test_a_model_makes_the_same_bytes_whenever_it_is_saved(tmp_path, monkeypatch):
    model = Gaussian(0.5)
    monkeypatch.setattr(
        model_io.zipfile.time, "localtime", lambda *_: (2001, 2, 3, 4, 5, 6, 0, 0, 0)
    )
    save(model, tmp_path / "before.gzk")
    monkeypatch.setattr(
        model_io.zipfile.time, "localtime", lambda *_: (2002, 3, 4, 5, 6, 8, 0, 0, 0)
    )
    save(model, tmp_path / "after.gzk")
    assert (tmp_path / "before.gzk").read_bytes() == (tmp_path / "after.gzk").read_bytes()


def test_files_keep_the_largest_numbers(tmp_path):
    X, y = np.arange(30.0)[:, None], np.full(30, 1e308)
    model = gzkcore.KernelRegressor(random_state=0).fit(X, y)
    model.save(tmp_path / "m.gzk")
    assert_array_equal(load(tmp_path / "m.gzk").predict(X), y)


# ---- arrays that are mapped

maps = pytest.mark.skipif(os.name == "nt", reason="Windows does not replace files that are mapped")


OPEN_FILES = Path("/proc/self/fd")
N_MAPPED = 200  # rows, more than zipfile reads at once


@pytest.fixture
def mapped(tmp_path, monkeypatch):
    """A file whose arrays are all mapped, written long ago, and a maker of its model."""
    monkeypatch.setattr(model_io, "LEAST_MAPPED", 1)
    path = tmp_path / "m.gzk"
    gzkcore.KernelRidge(alpha=0.1).fit(*data(N_MAPPED)).save(path)
    os.utime(path, ns=(1, 1))
    return path


def is_mapped(array):
    return isinstance(getattr(array.base.base, "obj", None), mmap.mmap)


@maps
def test_large_arrays_are_mapped_and_others_read(tmp_path):
    rows = model_io.LEAST_MAPPED // 8 // 4
    X = np.random.default_rng(0).uniform(size=(rows, 4))
    model = gzkcore.NearKernelRidge(Gaussian(9.0), 0.1, n_neighbors=3).fit(X, X[:, 0])
    model.save(tmp_path / "m.gzk")
    tracemalloc.start()
    try:
        again = load(tmp_path / "m.gzk")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * model._y.nbytes < 0.6 * X.nbytes  # y and the order of the rows
    assert is_mapped(again.X_fit_)
    assert again.X_fit_.ctypes.data % model_io.ALIGNMENT == 0
    assert not is_mapped(again._y)
    assert_array_equal(again.X_fit_, model.X_fit_)
    assert_array_equal(again.predict(X[:9]), model.predict(X[:9]))


@maps
def test_members_that_are_not_aligned_are_read(mapped):
    model = load(mapped)
    assert is_mapped(model.X_fit_)
    mapped.write_bytes(resign.signed(resign.parts_of(mapped.read_bytes())))
    again = load(mapped)
    assert not hasattr(again, "_mapped")
    assert_array_equal(again.X_fit_, data(N_MAPPED)[0])


@pytest.mark.parametrize("order", ["C", "F"])
def test_mapped_arrays_keep_their_order(order, mapped):
    value = {"x": np.asarray(np.arange(6.0).reshape(2, 3), order=order)}
    save(gzkcore.KernelRidge(alpha=value), mapped)
    again = load(mapped).alpha["x"]
    assert_array_equal(again, value["x"])
    assert again.flags[f"{order}_CONTIGUOUS"]


def test_where_the_system_does_not_map_arrays_are_read(mapped, monkeypatch):
    def refuse(*_, **__):
        raise OSError("no such device")

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert_array_equal(load(mapped).X_fit_, data(N_MAPPED)[0])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_mapped_arrays_are_checked(value, mapped):
    content, X = mapped.read_bytes(), data(N_MAPPED)[0].tobytes()
    assert content.count(X) == 1
    changed = content.replace(X, np.float64(value).tobytes() + X[8:])
    refused(changed, mapped.parent, "checksum is wrong")
    refused(resign.resigned(changed), mapped.parent, f"X_fit_ holds {value}, which is not finite")


def some_features():
    return GegenbauerFeatures(n_components=9, random_state=0)


def more(model):
    return model.partial_fit(*data(50, seed=1))


CHANGED = {
    "update": (gzkcore.KernelRidge(alpha=0.1), lambda m: m.update(*data(50, seed=1))),
    "forget": (gzkcore.KernelRidge(alpha=0.1), lambda m: m.forget([0, 5])),
    "update near": (
        gzkcore.NearKernelRidge(Gaussian(1.0), 0.1, n_neighbors=9),
        lambda m: m.update(*data(50, seed=1)),
    ),
    "forget near": (
        gzkcore.NearKernelRidge(Gaussian(1.0), 0.1, n_neighbors=9),
        lambda m: m.forget([0, 5]),
    ),
    "fit": (gzkcore.KernelRidge(alpha=0.1), lambda m: m.fit(*data(50, seed=1))),
    "ridge": (RandomFeatureRidge(some_features(), 0.1), more),
    "ridge cv": (RandomFeatureRidgeCV(some_features(), alphas=[0.1, 1.0]), more),
    "pca": (RandomFeaturePCA(some_features(), 2), more),
    "cca": (gzkcore.RandomFeatureCCA(some_features(), some_features(), n_components=2), more),
    "kmeans": (
        gzkcore.RandomFeatureKMeans(some_features(), n_clusters=2, random_state=0),
        lambda m: m.fit(data(50, seed=1)[0]),
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_change_of_a_mapped_model_leaves_its_file(name, mapped):
    model, change = CHANGED[name]
    X, y = data(N_MAPPED)
    model = clone(model).fit(X, y)
    model.save(mapped)
    content = mapped.read_bytes()
    again = load(mapped)
    answers = [
        (each.predict if hasattr(each, "predict") else each.transform)(X)
        for each in (change(again), change(model))
    ]
    assert_array_equal(*answers)
    assert mapped.read_bytes() == content
    again.save(mapped)
    model.save(mapped.with_name("other.gzk"))
    assert mapped.read_bytes() == mapped.with_name("other.gzk").read_bytes()


def test_who_writes_to_a_mapped_array_changes_no_file(mapped):
    model = load(mapped)
    model.X_fit_[:] = 0.0
    assert_array_equal(load(mapped).X_fit_, data(N_MAPPED)[0])


def test_copies_have_arrays_of_their_own(mapped):
    model, X = load(mapped), data(N_MAPPED)[0]
    expected = model.predict(X)
    joblib.dump(model, mapped.with_name("model.joblib"))
    copies = [
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        joblib.load(mapped.with_name("model.joblib")),
    ]
    overwrite(mapped)
    for each in copies:
        assert not is_mapped(each.X_fit_[:])
        assert_array_equal(each.predict(X), expected)
    assert_array_equal(clone(model).fit(*data(N_MAPPED)).predict(X), expected)


def overwrite(path):
    """Write to a file without making another, as cp does."""
    with path.open("r+b") as file:
        file.write(b"P")


@maps
def test_a_file_that_is_overwritten_is_noticed(mapped):
    model, X = load(mapped), data(N_MAPPED)[0]
    features = GegenbauerFeatures(Gaussian(9.0), 32, basis="random", random_state=0).fit(X)
    features.save(mapped.with_name("features.gzk"))
    os.utime(mapped.with_name("features.gzk"), ns=(1, 1))
    features = load(mapped.with_name("features.gzk"))
    for path in (mapped, mapped.with_name("features.gzk")):
        overwrite(path)
    for use in (
        lambda: model.predict(X),
        lambda: model.update(*data(5)),
        lambda: model.save(mapped),
        lambda: pickle.dumps(model),
        lambda: copy.deepcopy(model),
        lambda: features.transform(X),
        lambda: features.save(mapped),
    ):
        with pytest.raises(OSError, match=r"\.gzk' was overwritten, .*; load it again, and rep"):
            use()
    assert_array_equal(load(mapped).predict(X), load(mapped).predict(X))
    assert_array_equal(model.fit(*data(N_MAPPED)).predict(X), load(mapped).predict(X))


@maps
def test_a_file_that_is_replaced_or_removed_stays_with_its_model(mapped):
    model, X = load(mapped), data(N_MAPPED)[0]
    expected = model.predict(X)
    gzkcore.KernelRidge(alpha=9.0).fit(*data(seed=1)).save(mapped)
    assert_array_equal(model.predict(X), expected)
    mapped.unlink()
    model._outdate()
    assert_array_equal(model.predict(X), expected)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)


@maps
@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="counts open files")
def test_a_model_that_is_gone_leaves_no_file_open(mapped):
    gc.collect()
    before = len([*OPEN_FILES.iterdir()])
    model = load(mapped)
    assert len([*OPEN_FILES.iterdir()]) > before
    del model
    gc.collect()
    assert len([*OPEN_FILES.iterdir()]) == before
