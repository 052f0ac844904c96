"""Attributes that plain Python changed: the model answers or raises, and no kernel leaves its arrays.

See `changed`, which tries each change in a process of its own.
"""

import sys

import models
import numpy as np
import pytest
from programs import results_of

import gzkcore
from gzkcore._util import model_io

changed = pytest.importorskip("changed", reason="needs limits of POSIX", exc_type=ImportError)

NAMES = sorted(path.stem for path in models.FOLDER.glob("*.gzk"))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs pages without access")


def outcomes(step, first, names):
    """Return how often which came of every `step`-th change of the models of these names."""
    said, _ = results_of("changed", step, first, *names)
    assert not said["ended"], said["ended"]
    return said["found"]


@pytest.mark.slow
def test_some_changed_attributes():
    found = outcomes(61, 0, ["harmonic", "product", "poly-sketch", "gram"])
    assert found["ValueError"] > 10, found


@pytest.mark.weekly
@pytest.mark.parametrize("name", NAMES)
def test_every_changed_attribute(name):
    assert sum(outcomes(1, 0, [name]).values()) > 10


@pytest.mark.slow
def test_a_model_of_every_class_is_changed():
    """A class that no model of the folder has would not be tried."""
    classes = {type(value).__name__ for name in NAMES for value in objects_of(name)}
    wanted = {model_io._class_of(name).__name__ for name in model_io.CLASSES}
    assert wanted <= classes


def objects_of(name):
    model = gzkcore.load(models.FOLDER / f"{name}.gzk")
    return [model, *(value for _, value in changed.places(model))]


# What is changed in the tables of harmonics, and to what: each led the kernel out of an array.
WRONG_TABLES = {
    "runs": lambda table: table - 100_000,
    "steps": lambda table: table[:-1],
    "tree": lambda table: table - 100_000,
    "tree_scale": lambda table: table[:-1],
    "n_powers": lambda _: -100_000,
    "columns": lambda table: np.full_like(table, -100_000),
    "scale": lambda _: None,
}


@pytest.mark.parametrize("name", WRONG_TABLES)
def test_tables_of_harmonics_are_looked_at(name):
    model = gzkcore.load(models.FOLDER / "harmonic.gzk")
    X = np.load(models.FOLDER / "harmonic.npz")["X"]
    expected, tree = model.transform(X), model._layout.tree
    *of, right = tree._last_tables[X.dtype]
    wrong = {name: WRONG_TABLES[name](getattr(right, name))}
    tree._last_tables[X.dtype] = *of, right._replace(**wrong)
    with pytest.raises((ValueError, IndexError, TypeError)):
        model.transform(X)
    tree._last_tables[X.dtype] = *of, right
    np.testing.assert_array_equal(model.transform(X), expected)


def test_nobody_writes_to_tables_by_accident():
    model = gzkcore.load(models.FOLDER / "harmonic.gzk")
    model.transform(np.load(models.FOLDER / "harmonic.npz")["X"])
    *_, tables = model._layout.tree._last_tables[np.dtype(float)]
    for table in (tables.runs, tables.steps, tables.columns, tables.scale):
        with pytest.raises(ValueError, match="read-only"):
            table[0, 0] = -100_000


@pytest.mark.parametrize("center", [np.zeros(2), np.zeros(0), np.zeros(4)])
def test_a_centre_of_other_length_is_refused(center):
    model = gzkcore.load(models.FOLDER / "harmonic.gzk")
    model.center_ = center
    with pytest.raises(ValueError, match="center"):
        model.transform(np.load(models.FOLDER / "harmonic.npz")["X"])
