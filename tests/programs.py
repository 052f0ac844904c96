"""Programs of this folder that tests start, and children of these: what they try may end a process."""

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

FOLDER = Path(__file__).parent
# BLAS has one thread, and one arena of memory: others have room in reserve, which no limit counts.
QUIET = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "MALLOC_ARENA_MAX": "1"}


def results_of(program, *arguments):
    """Run a program to its end; return the JSON that it prints, and what it says meanwhile."""
    folders = [str(FOLDER), os.environ.get("PYTHONPATH", "")]  # an empty one would be the root
    done = subprocess.run(
        [sys.executable, "-P", FOLDER / f"{program}.py", *map(str, arguments)],
        env=os.environ | QUIET | {"PYTHONPATH": os.pathsep.join(filter(None, folders))},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout), done.stderr


def in_child(work):
    """Return what work() returns in a child of this process, a few bytes, or how the child ended."""
    answer, end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(end, work())
            os._exit(0)
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(end)
    text = os.read(answer, 100).decode()
    os.close(answer)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return text if status == 0 else f"ended with {status}"
