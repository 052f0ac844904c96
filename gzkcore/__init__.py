"""Explicit features for kernels: kernel methods as linear algebra in one pass."""

from types import ModuleType

from . import _isa  # noqa: F401  first: it registers the compiled modules under their plain names
from ._config import show_config
from .gegenbauer import GegenbauerFeatures, PublishedGegenbauerFeatures, TruncationWarning
from .kernels import Gaussian, Zonal

__version__ = "0.1.0"

__all__ = [
    "Gaussian",
    "GegenbauerFeatures",
    "PublishedGegenbauerFeatures",
    "TruncationWarning",
    "Zonal",
    "__version__",
    "reference",
    "show_config",
]


def __getattr__(name: str) -> ModuleType:
    """Import `gzkcore.reference` when it is first asked for."""
    if name == "reference":
        import importlib

        return importlib.import_module("gzkcore.reference")
    raise AttributeError(f"module 'gzkcore' has no attribute {name!r}")
