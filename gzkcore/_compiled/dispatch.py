"""Pick the best build of the kernels for this processor.

Every kernel module `x` with hot loops is compiled from one C file for x86-64-v2, -v3 and -v4, as
`x_v2`, `x_v3`, `x_v4`, or for the level of one machine (the table is in meson.build). This module
lets the chosen one be found as `gzkcore._compiled.x`. `GZKCORE_ISA=v2|v3|v4` forces a level. A
module without such builds is found as any other; on other processors that is all of them.

The library of OpenMP is loaded here too, with threads that soon sleep where they wait (`_waiting`).
"""

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

PACKAGE = __name__.rpartition(".")[0]
# What the system says where the memory for a library runs out; Python makes an ImportError of it.
_NO_MEMORY = "failed to map segment", "cannot allocate", "cannot create shared object"


class _Kernel(ExtensionFileLoader):
    """Loads a kernel; MemoryError if there is no memory for it."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Load the library of a kernel."""
        try:
            return super().create_module(spec)
        except ImportError as error:
            if any(said in str(error).lower() for said in _NO_MEMORY):
                raise MemoryError(f"there is no memory to load {spec.name}: {error}") from None
            raise


def _has_build(module: str, level: str, path: Sequence[str] | None) -> bool:
    """Say whether a module of the package was compiled for a level."""
    return PathFinder.find_spec(f"{PACKAGE}.{module}_{level}", path) is not None


class _Finder(MetaPathFinder, Loader):
    """Finds `gzkcore._compiled.x`: the build of one level, under its plain name."""

    level = "plain"

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Say who loads a module: this finder, if it was compiled for the level."""
        package, _, module = name.rpartition(".")
        if package != PACKAGE:
            return None
        if _has_build(module, self.level, path):
            return ModuleSpec(name, self)
        spec = PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, ExtensionFileLoader):
            spec.loader = _Kernel(spec.loader.name, spec.loader.path)
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the build of the level; it is the module, under both names."""
        return importlib.import_module(f"{spec.name}_{self.level}")

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the import has done it."""


_finder = _Finder()
sys.meta_path.insert(0, _finder)


# How the OpenMP of gcc is told to look at a barrier 1,000 times before a thread sleeps, and that of
# LLVM to sleep at once.
WAITING = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}


@contextmanager
def _waiting() -> Iterator[None]:
    """Let threads that wait for others sleep after some microseconds, if OpenMP is loaded within.

    By default they spin for milliseconds. A fit has thousands of parallel regions, each of which
    then loses a time slice beside other programs. The variables are read when the library is
    loaded, and removed, so that other libraries and programs don't see them. Whoever has set one,
    or OMP_WAIT_POLICY, decides.
    """
    own = {} if {"OMP_WAIT_POLICY", *WAITING} & os.environ.keys() else WAITING
    os.environ.update(own)
    try:
        yield
    finally:
        for name in own:
            os.environ.pop(name, None)


try:
    with _waiting():
        from . import cpu
except ImportError as error:
    if (Path(__file__).parent / "meson.build").exists():
        raise ImportError(
            f"{str(Path(__file__).parents[1])!r} holds the sources of gzkcore, which are not "
            "compiled. They hide an installed package: run Python in another folder, or as "
            "`python -P`. To install it: pip install ."
        ) from None
    raise ImportError(
        f"the kernels in {str(Path(__file__).parent)!r} cannot be loaded; install gzkcore again"
    ) from error


def built_levels() -> list[str]:
    """Return the levels of x86-64 that the kernels were compiled for; none for a plain build."""
    path = sys.modules[PACKAGE].__path__
    return [level for level in ("v2", "v3", "v4") if _has_build("special", level, path)]


def usable_levels() -> list[str]:
    """Return those of the built levels that this processor runs."""
    supported = cpu.supported_levels()
    return [level for level in built_levels() if level in supported]


def _choose() -> str:
    """Return the level to use: 'v2', 'v3', 'v4', or 'plain' where the only build is a plain one."""
    built, usable = built_levels(), usable_levels()
    if not built:
        return "plain"
    if not usable:
        raise ImportError(
            f"gzkcore was compiled for x86-64 processors of level {' and '.join(built)}; this is "
            "a lesser one. Install it on this machine, or compile it for all of them: "
            "pip install . -Csetup-args=-Dlevels=all (it needs v2: SSE 4.2, from about 2009 on)"
        )
    forced = os.environ.get("GZKCORE_ISA", "")
    if forced and forced not in usable:
        raise ImportError(
            f"GZKCORE_ISA={forced!r} is not available on this processor, or was not compiled; "
            f"unset it or use one of {usable}"
        )
    return forced or usable[-1]


ISA = _finder.level = _choose()
