"""Pick the best build of the kernels for this processor.

Every kernel module `_x` with hot loops is compiled from one C file for x86-64-v2, -v3 and -v4
(`_x_v2`, `_x_v3`, `_x_v4`). This module lets the chosen one be found as `gzkcore._x`, so that the
rest of the package writes `from ._x import f`. `GZKCORE_ISA=v2|v3|v4` forces a level. On other
processors there is one plain build, `_x` itself, and nothing to choose.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from . import _cpu

KERNELS = (
    "_special",
    "_series",
    "_harmonics",
    "_gegenbauer",
    "_product",
    "_hadamard",
    "_fourier",
    "_fastfood",
    "_block",
    "_maclaurin",
    "_sketch",
    "_polysketch",
    "_projection",
)


def _choose() -> str:
    """Return the level to use: 'v2', 'v3', 'v4', or 'plain' where only one build exists."""
    if importlib.util.find_spec(f"gzkcore.{KERNELS[0]}_v2") is None:
        return "plain"
    supported = _cpu.supported_levels()
    forced = os.environ.get("GZKCORE_ISA", "")
    if forced and forced not in supported:
        raise ImportError(
            f"GZKCORE_ISA={forced!r} is not available on this processor; "
            f"unset it or use one of {supported}"
        )
    if not supported:
        raise ImportError("gzkcore needs an x86-64-v2 processor (SSE 4.2, from about 2009 on)")
    return forced or supported[-1]


class _Finder(MetaPathFinder, Loader):
    """Finds `gzkcore._x`: the build of one level, under its plain name."""

    def __init__(self, level: str) -> None:
        self.level = level

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Say who loads a module: this finder, if it is one of the kernels."""
        package, _, module = name.rpartition(".")
        return ModuleSpec(name, self) if package == "gzkcore" and module in KERNELS else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the build of the level; it is the module, under both names."""
        return importlib.import_module(f"{spec.name}_{self.level}")

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the import has done it."""


ISA = _choose()
if ISA != "plain":
    sys.meta_path.insert(0, _Finder(ISA))
