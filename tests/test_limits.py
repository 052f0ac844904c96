"""Where memory is short, estimators say so: no crash, no exit, no other error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.slow
@pytest.mark.parametrize("name", limits.NAMES)
def test_too_little_memory_is_a_memory_error(name):
    found, said = outcomes(name)
    assert set(found) <= {"MemoryError", "finished"}, said[-3000:]
    if name in limits.models.FEATURES:
        assert "MemoryError" in found, found
