"""Files that an author who knows the format changed and signed: refused, or models that answer.

Each change is tried in a separate process, see `hostile`, since a change that makes compiled code
read elsewhere would end the process.
"""

import contextlib
import io
import json
import random
import zipfile

import hostile
import models
import numpy as np
import pytest
import resign
from programs import results_of

import gzkcore
from gzkcore._util import model_io, state

NAMES = sorted(path.stem for path in models.FOLDER.glob("*.gzk"))


def outcomes(step, first, names):
    """Return how often which came of every `step`-th change of the files of these names."""
    return results_of("hostile", step, first, *names)[0]["found"]


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.weekly)])
def test_some_changes_of_each_model_are_refused_or_answer(part):
    found = outcomes(149, part, NAMES[part::2])
    assert found["refused"] > 0.4 * sum(found.values()), found


@pytest.mark.weekly
@pytest.mark.parametrize("name", NAMES)
def test_every_change_of_a_model_is_refused_or_answers(name):
    found = outcomes(1, 0, [name])
    assert found["refused"] > 0, found


def refused(content, tmp_path, message):
    path = tmp_path / "bad.gzk"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"(?s)cannot load '.*bad\.gzk': .*{message}"):
        gzkcore.load(path)


def saved(name):
    return resign.parts_of((models.FOLDER / f"{name}.gzk").read_bytes())


# Of each file a field that led its kernel out of an array, and what it is set to.
LED_ASTRAY = {
    "count-sketch": ("hashes_", 5000),
    "tensor-sketch": ("hashes_", 5000),
    "fastfood": ("permutation_", 5000),
    "hadamard": ("rows_", 5000),
    "fast-jl": ("columns_", 5000),
    "block-projection": ("buckets_", 5000),
    "block-fourier": ("buckets_", 5000),
    "maclaurin": ("degrees_", 50),
    "adaptive": ("columns_", 5000),
    "product": ("_factors", 5000),
    "harmonic": ("_nodes", 5000),
    "hybrid": ("_ring", 5000),
}


@pytest.mark.parametrize("name", LED_ASTRAY)
def test_places_beyond_an_array_are_named(name, tmp_path):
    field, place = LED_ASTRAY[name]
    parts = saved(name)
    entry = parts.head["model"]["data"][field]
    array = parts.arrays[entry["array"]]
    array = array.copy()
    array.flat[0] = place
    parts.arrays[entry["array"]] = array
    refused(resign.signed(parts), tmp_path, rf"{parts.head['model']['class']}.*{place}")


@pytest.mark.parametrize(
    "name", ["count-sketch", "tensor-sketch", "fastfood", "hadamard", "fast-jl", "block-projection"]
)
def test_places_that_were_changed_since_the_fit_are_refused(name):
    model = gzkcore.load(models.FOLDER / f"{name}.gzk")
    held = vars(model)[LED_ASTRAY[name][0]]
    held.flat[0] = 5000
    with pytest.raises(ValueError, match=f"{LED_ASTRAY[name][0]} holds 5000.*fit again"):
        model.transform(np.load(models.FOLDER / f"{name}.npz")["X"])


def test_an_object_of_another_class_is_refused(tmp_path):
    parts = saved("kmeans")
    kmeans = json.loads(json.dumps(parts.head["model"]))
    kmeans["data"]["features"]["data"]["kernel"] = json.loads(json.dumps(parts.head["model"]))
    refused(
        resign.signed(resign.Parts(parts.head | {"model": kmeans}, parts.arrays)),
        tmp_path,
        "twice|kernel is a RandomFeatureKMeans",
    )


def in_a_parameter(value):
    """Return a signed file with a value where a file may hold any."""
    model = {"class": "RandomFeatureRidgeCV", "data": {"kernel_grid": value}}
    return resign.signed(
        resign.Parts({"format": "gzkcore model", "version": 1, "model": model}, [])
    )


def test_a_file_costs_what_its_size_warrants(tmp_path):
    path = tmp_path / "m.gzk"
    for value in (
        [resign.MANY_HARMONICS] * 3,
        [{"class": "Gaussian", "data": {}}] * 1000,
        [[]] * 5000,
        {"keys": [i << 40 for i in range(5000)], "values": [0] * 5000},
    ):
        path.write_bytes(in_a_parameter(value))
        hostile.load_within_bounds(path)
    # Of one hash: to put so many into a dict would take seconds, and of ten times as many, minutes.
    keys = [i * (2**61 - 1) for i in range(20_000)]
    refused(in_a_parameter({"keys": keys, "values": keys}), tmp_path, "integer 1.*64 bits")


def test_changed_files_cost_what_their_size_warrants(tmp_path):
    rng, path = random.Random(0), tmp_path / "m.gzk"
    for name in rng.sample(NAMES, 6):
        content = (models.FOLDER / f"{name}.gzk").read_bytes()
        gzkcore.load(models.FOLDER / f"{name}.gzk")  # its modules
        for at in rng.sample(resign.paths(content), 2):
            changes = resign.changes(content, at)
            path.write_bytes(changes[rng.choice(sorted(changes))]())
            with contextlib.suppress(ValueError):
                hostile.load_within_bounds(path)


def test_what_is_within_itself_too_often_is_refused(tmp_path):
    parts = saved("kernel-Gaussian")
    value = [1.0]
    for _ in range(200):
        value = [value]
    parts.head["model"]["data"]["gamma"] = value
    refused(resign.signed(parts), tmp_path, "values within values, more than 64")
    parts.head["model"]["data"]["gamma"] = "DEEP"
    # What json itself can't read is refused as well.
    deep = json.dumps(parts.head).replace('"DEEP"', "[" * 10**5 + "]" * 10**5)
    refused(with_head(deep), tmp_path, "")


def with_head(text):
    """Return a signed file whose head is this text."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("model.json", text)
        archive.comment = b"0" * 64
    return resign.resigned(out.getvalue())


def test_compressed_members_are_refused_unread(tmp_path):
    parts = saved("count-sketch")
    content = resign.signed(parts, zipfile.ZIP_DEFLATED)
    refused(content, tmp_path, "a compressed member, and files of models have none")


def test_members_that_begin_before_the_file_are_refused(tmp_path):
    content = bytearray(resign.signed(saved("kernel-Gaussian")))
    content[content.index(b"PK\x05\x06") + 16] += 1  # where the directory begins, as it is told
    refused(resign.resigned(bytes(content)), tmp_path, "begins outside of the file")


def test_arrays_larger_than_the_file_are_refused_unread(tmp_path):
    parts = saved("count-sketch")
    entry = parts.head["model"]["data"]["hashes_"]
    content = resign.signed(parts)
    shape = b"'shape': (1, 3), "
    huge = b"'shape': (1,300),"
    assert content.count(shape) == 2
    assert len(huge) == len(shape)
    refused(resign.resigned(content.replace(shape, huge, 1)), tmp_path, "")
    entry["shape"] = [1, 1 << 40]
    refused(resign.signed(parts), tmp_path, "another shape or type than announced")


def test_one_array_is_one_attribute(tmp_path):
    parts = saved("fastfood")
    data = parts.head["model"]["data"]
    data["normals_"] = data["lengths_"]
    refused(resign.signed(parts), tmp_path, "array . twice")


def test_every_field_is_declared_with_what_it_may_hold():
    """A class whose fit makes arrays says of each what it is; `anything` is for parameters."""
    free = {"params", "best_params_", "cv_results_", "kernel_grid"}  # of a grid, with its kernels
    for name in model_io.CLASSES:
        cls = model_io._class_of(name)
        own = set(cls._get_param_names()) if hasattr(cls, "_get_param_names") else set()
        for field, declared in state.state_of(cls).items():
            assert isinstance(declared, state.Field), (name, field)
            if field not in free | own:
                with pytest.raises((ValueError, AttributeError, TypeError)):
                    declared.check(object(), state.Scope({}))
