"""Where the formulas of `reference` have their mirrors: one table, from idea to modules."""

import importlib
from types import SimpleNamespace

MIRRORS = {
    "adaptive": ["features.adaptive"],
    "block": ["features.block"],
    "cca": ["learn.cca"],
    "directions": ["sphere.directions"],
    "fastfood": ["features.fastfood"],
    "fourier": ["features.fourier"],
    "gegenbauer": ["features.gegenbauer"],
    "gram": ["learn.gram"],
    "hadamard": ["features.hadamard"],
    "harmonics": ["sphere.harmonics"],
    "kernels": ["kernels"],
    "kmeans": ["learn.kmeans"],
    "maclaurin": ["features.maclaurin"],
    "metrics": ["metrics"],
    "nystrom": ["features.nystrom"],
    "pca": ["learn.pca"],
    "polysketch": ["features.polysketch"],
    "product": ["features.product"],
    "projection": ["features.projection"],
    "ridge": ["learn.ridge"],
    "series": ["sphere.series", "kernels.radial"],
    "sketch": ["features.sketch"],
    "special": ["sphere.special"],
    "theory": ["theory"],
}


def mirror_of(idea):
    """Return everything public of an idea's modules, as one namespace."""
    modules = [importlib.import_module(f"gzkcore.{name}") for name in MIRRORS[idea]]
    public = {name: getattr(module, name) for module in modules for name in module.__all__}
    return SimpleNamespace(**public, __all__=[*public])
