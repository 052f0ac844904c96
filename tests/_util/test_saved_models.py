"""Models that were saved, from 0.1.0 on, load and say what they said when they were saved."""

import shutil

import models
import numpy as np
import pytest
import resign
from sklearn.base import clone

from gzkcore import load
from gzkcore._util.model_io import CLASSES

CASES = {name: say for name, _, _, say in models.cases()}
CASES |= {name: say for name, (_, say) in models.CHECKPOINTS.items()}


@pytest.mark.parametrize("name", CASES)
def test_a_saved_model_says_what_it_said(name):
    with np.load(models.FOLDER / f"{name}.npz") as saved:
        expected = dict(saved)
    X = expected.pop("X")
    found = CASES[name](load(models.FOLDER / f"{name}.gzk"), X)
    assert found.keys() == expected.keys()
    for what, values in expected.items():
        eps = np.finfo(values.dtype if values.dtype == np.float32 else np.float64).eps
        scale = np.abs(values).max(initial=1.0)
        np.testing.assert_allclose(found[what], values, rtol=0, atol=2**10 * eps * scale)


def test_a_fit_goes_on_from_a_saved_checkpoint(tmp_path):
    X = models.rows(unit=True)
    path = tmp_path / "run.gzk"
    shutil.copy(models.FOLDER / "checkpoint.gzk", path)
    learner = load(path).learner  # with the features that were fitted then
    whole = clone(learner).fit(models.Batches(X, cut=False))
    resumed = clone(learner).fit(models.Batches(X, cut=False), checkpoint=path)
    np.testing.assert_allclose(resumed.coef_, whole.coef_, rtol=1e-9, atol=1e-12)


def test_every_class_has_a_saved_model():
    files = [path.read_bytes() for path in models.FOLDER.glob("*.gzk")]
    assert set().union(*map(resign.classes_of, files)) == set(CLASSES)
