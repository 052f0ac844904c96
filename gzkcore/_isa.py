"""Pick the best build of the kernels for this processor.

Every kernel module `_x` with hot loops is compiled from one C file for x86-64-v2, -v3 and -v4
(`_x_v2`, `_x_v3`, `_x_v4`). Importing this module registers the chosen one as `gzkcore._x`, so that
the rest of the package writes `from ._x import f`. `GZKCORE_ISA=v2|v3|v4` forces a level. On other
processors there is one plain build, `_x` itself, and nothing to choose.
"""

import importlib
import importlib.util
import os
import sys

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


def _register(level: str) -> None:
    """Make each kernel module of this level importable under its plain name."""
    package = sys.modules["gzkcore"]
    for name in KERNELS:
        module = importlib.import_module(f"gzkcore.{name}_{level}")
        sys.modules[f"gzkcore.{name}"] = module
        setattr(package, name, module)


ISA = _choose()
if ISA != "plain":
    _register(ISA)
