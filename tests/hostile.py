"""Models from files that were changed and signed again: load them, and let them predict.

Tests start it as a separate program, since it may crash: python tests/hostile.py STEP FIRST NAME...
tries every STEP-th change of the files of these names, from the FIRST on. Each change is printed on
standard error before it is tried. At the end the results of all changes are printed.
"""

import faulthandler
import json
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import models
import numpy as np
import resign

import gzkcore
from gzkcore._util.memory import PeakMemory

BYTES = 4 << 30  # of addresses: a size that is made up must not fill the machine


def ask():
    """Return what to ask the model of each file."""
    found = {name: say for name, _, _, say in models.cases()}
    return found | {name: say for name, (_, say) in models.CHECKPOINTS.items()}


def known_before():
    """Return, of each file, which classes smaller files have."""
    found, seen = {}, set()
    for path in sorted(models.FOLDER.glob("*.gzk"), key=lambda path: (path.stat().st_size, path)):
        found[path.stem] = frozenset(seen)
        seen |= resign.classes_of(path.read_bytes())
    return found


def load_within_bounds(path):
    """Load a file, and assert that it costs what its size warrants, a few times over."""
    size, memory, begun = path.stat().st_size, PeakMemory(), time.process_time()
    try:
        return gzkcore.load(path)
    finally:
        seconds = time.process_time() - begun
        assert seconds < 1 + 2e-5 * size, (seconds, size)
        assert memory.bytes < 2**23 + 100 * size, (memory.bytes, size)


def attempt(content, path, say, X, bounded=True):
    """Return what comes of a file: it is refused, or a model answers, or can't."""
    path.write_bytes(content)
    try:
        model = load_within_bounds(path) if bounded else gzkcore.load(path)
    except ValueError:
        return "refused"
    try:
        say(model, X)
    except Exception as error:  # noqa: BLE001  whatever it is, it is no crash
        return type(error).__name__
    return "answered"


def limit_memory():
    if "ASAN_OPTIONS" in os.environ:  # which limits sizes itself, and takes terabytes of addresses
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def main(step, first, names):
    faulthandler.enable()
    limit_memory()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    said, known, found, slowest = ask(), known_before(), Counter(), (0.0, "")
    path = Path(tempfile.mkdtemp()) / "m.gzk"
    for name in names:
        X = np.load(models.FOLDER / f"{name}.npz")["X"]
        content = (models.FOLDER / f"{name}.gzk").read_bytes()
        attempt(content, path, said[name], X, bounded=False)  # imports its modules
        for i, (what, make) in enumerate(resign.mutations(content, known[name])):
            if i % step == first:
                sys.stderr.write(f"{name}.{what}\n")
                begun = time.perf_counter()
                found[attempt(make(), path, said[name], X)] += 1
                slowest = max(slowest, (time.perf_counter() - begun, f"{name}.{what}"))
    sys.stdout.write(json.dumps({"found": found, "slowest": slowest}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
