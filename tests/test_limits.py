"""Where memory is short, estimators say so: no crash, no exit, no other error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gzkcore

limits = pytest.importorskip("limits", reason="needs limits of POSIX", exc_type=ImportError)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the limits of Linux")


def outcomes(name):
    program = Path(limits.__file__)
    # One arena: others have room in reserve, which no limit counts.
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, "-P", program, name],
        env=os.environ | threads | {"PYTHONPATH": str(program.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)[name], done.stderr


def test_every_public_estimator_is_limited():
    models = [limits.models.FOLDER / f"{name}.gzk" for name in limits.NAMES]
    tried = {type(gzkcore.load(path)) for path in models if path.exists()}
    public = {getattr(gzkcore, name) for name in dir(gzkcore)}
    estimators = {each for each in public if isinstance(each, type) and hasattr(each, "fit")}
    assert estimators == tried | set(limits.ENCODERS.values())


@pytest.mark.weekly
@pytest.mark.parametrize("name", limits.NAMES)
def test_too_little_memory_is_a_memory_error(name):
    found, said = outcomes(name)
    assert set(found) <= {"MemoryError", "finished"}, said[-3000:]
    if name in limits.models.FEATURES and name != "mean-normalizer":  # as wide as its rows
        assert "MemoryError" in found, found
