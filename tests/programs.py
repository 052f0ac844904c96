"""Programs of this folder that tests start: what they try may end a process."""

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
# BLAS has one thread, and one arena of memory: others have room in reserve, which no limit counts.
QUIET = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "MALLOC_ARENA_MAX": "1"}


def results_of(program, *arguments):
    """Run a program to its end; return the JSON that it prints, and what it says meanwhile."""
    path = os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-P", FOLDER / f"{program}.py", *map(str, arguments)],
        env=os.environ | QUIET | {"PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout), done.stderr
