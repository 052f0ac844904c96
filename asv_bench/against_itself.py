#!/usr/bin/env python3
"""Check that against.py finds a slowdown of 1.3, and reports none where there is none.

    python asv_bench/against_itself.py [TIMES] [--factor 1.3]

It compares the installed package TIMES times with copies in which three functions spin until they
have taken `factor` times as long, and with itself. Each time exactly these three must be found. The
exit status is 1 if any comparison fails.
"""

import argparse
import re
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

import against

# Benchmark -> the module of the function that it times, and its name: from .2 to 40 ms, on one
# thread and two.
SLOWED = {
    "formulas.AgainstReference.time_gzkcore(block.energy_variance)": (
        "features.block_moments",
        "energy_variance",
    ),
    "hadamard.Transform.time_gzkcore(14, float32, 2)": ("features.hadamard", "hadamard_transform"),
    "kernels.GaussianMatrix.time_gzkcore(3, float32)": (
        "kernels.shift_invariant",
        "Gaussian.__call__",
    ),
}
# These benchmarks are compared, and one that no copy slows.
BENCH = "|".join([*map(re.escape, SLOWED), "^special.Polynomial.*8, 3, float32"])

PATCH = """

def _slowed(function):
    import functools
    import time

    @functools.wraps(function)
    def slow(*args, **options):
        start = time.perf_counter()
        result = function(*args, **options)
        end = start + {factor} * (time.perf_counter() - start)
        while time.perf_counter() < end:
            pass
        return result

    return slow


{name} = _slowed({name})
"""


def slow_copy(installed, folder, factor):
    """Copy the package into a folder, and slow the functions that SLOWED names."""
    shutil.copytree(installed / "gzkcore", folder / "gzkcore")
    for module, name in SLOWED.values():
        path = folder / "gzkcore" / f"{module.replace('.', '/')}.py"
        path.write_text(path.read_text() + PATCH.format(name=name, factor=factor))


def verdicts(old, new):
    """Return {benchmark: verdict} of a comparison, and show it."""
    rows = list(against.compare(old, new, BENCH))
    sys.stdout.write("\n".join([*against.table(rows), ""]))
    return {name: verdict for name, _, verdict in rows}


def main():
    """Compare so many times, and print how often all verdicts were right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("times", type=int, nargs="?", default=10)
    parser.add_argument("--factor", type=float, default=1.3)
    options = parser.parse_args()
    installed = Path(sysconfig.get_path("platlib"))
    found = passed = 0
    with tempfile.TemporaryDirectory() as name:
        slow_copy(installed, Path(name), options.factor)
        for time in range(1, options.times + 1):
            slowed = verdicts(installed, Path(name))
            right = {case for case in slowed if case in SLOWED}
            found += {case for case in slowed if slowed[case] == "SLOWER"} == right
            passed += "SLOWER" not in verdicts(installed, installed).values()
            sys.stdout.write(f"{time}: found {found}, passed {passed}\n")
            sys.stdout.flush()
    return int(min(found, passed) < options.times)


if __name__ == "__main__":
    sys.exit(main())
