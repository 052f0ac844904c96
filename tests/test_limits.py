"""Where memory is short, estimators say so: no crash, no exit, no other error."""

import sys

import pytest
from programs import results_of

import gzkcore

limits = pytest.importorskip("limits", reason="needs limits of POSIX", exc_type=ImportError)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the limits of Linux")


def test_every_public_estimator_is_limited():
    models = [limits.models.FOLDER / f"{name}.gzk" for name in limits.NAMES]
    tried = {type(gzkcore.load(path)) for path in models if path.exists()}
    public = {getattr(gzkcore, name) for name in dir(gzkcore)}
    estimators = {each for each in public if isinstance(each, type) and hasattr(each, "fit")}
    assert estimators == tried | set(limits.ENCODERS.values())


@pytest.mark.weekly
@pytest.mark.parametrize("name", limits.NAMES)
def test_too_little_memory_is_a_memory_error(name):
    results, said = results_of("limits", name)
    found = results[name]
    assert set(found) <= {"MemoryError", "finished"}, said[-3000:]
    if name in limits.models.FEATURES and name != "mean-normalizer":  # as wide as its rows
        assert "MemoryError" in found, found
