"""Explicit features for kernels: kernel methods as linear algebra in one pass.

A public name is imported when it is first asked for: what a program doesn't use costs it no time.
"""

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING
from typing import Any as _Any

from . import _isa as _isa  # first: it finds the compiled modules by their plain names

if TYPE_CHECKING:
    from ._config import show_config
    from ._streams import Checkpoint
    from .adaptive import AdaptiveSketchFeatures
    from .auto import KernelFeatures, compare, plan
    from .block import BlockFourierFeatures, BlockProjection, MeanNormalizer, block_report
    from .cca import RandomFeatureCCA
    from .datasets import LatLonToSphere
    from .fastfood import FastfoodFeatures
    from .fourier import ModifiedFourierFeatures, RandomFourierFeatures
    from .gegenbauer import GegenbauerFeatures, PublishedGegenbauerFeatures, TruncationWarning
    from .gram import ClusterAccumulator, GramAccumulator, MomentsAccumulator
    from .hadamard import hadamard_transform
    from .kernels import (
        ArcCosine,
        DotProduct,
        Exponential,
        ExponentialDot,
        Gaussian,
        GeneralizedZonal,
        Laplacian,
        Matern,
        NeuralTangent,
        Polynomial,
        RationalQuadratic,
        SphereHeat,
        SphereMatern,
        Spherical,
        Zonal,
    )
    from .kmeans import RandomFeatureKMeans
    from .maclaurin import MaclaurinFeatures
    from .model_io import load
    from .nystrom import NystromFeatures
    from .pca import RandomFeaturePCA
    from .polysketch import PolySketchFeatures
    from .product import Product, ProductFeatures
    from .projection import FastJLProjection, HadamardProjection
    from .ridge import (
        RandomFeatureRidge,
        RandomFeatureRidgeClassifier,
        RandomFeatureRidgeClassifierCV,
        RandomFeatureRidgeCV,
    )
    from .sketch import CountSketch, TensorSketchFeatures

__version__ = "0.1.0"

__all__ = [
    "AdaptiveSketchFeatures",
    "ArcCosine",
    "BlockFourierFeatures",
    "BlockProjection",
    "Checkpoint",
    "ClusterAccumulator",
    "CountSketch",
    "DotProduct",
    "Exponential",
    "ExponentialDot",
    "FastJLProjection",
    "FastfoodFeatures",
    "Gaussian",
    "GegenbauerFeatures",
    "GeneralizedZonal",
    "GramAccumulator",
    "HadamardProjection",
    "KernelFeatures",
    "Laplacian",
    "LatLonToSphere",
    "MaclaurinFeatures",
    "Matern",
    "MeanNormalizer",
    "ModifiedFourierFeatures",
    "MomentsAccumulator",
    "NeuralTangent",
    "NystromFeatures",
    "PolySketchFeatures",
    "Polynomial",
    "Product",
    "ProductFeatures",
    "PublishedGegenbauerFeatures",
    "RandomFeatureCCA",
    "RandomFeatureKMeans",
    "RandomFeaturePCA",
    "RandomFeatureRidge",
    "RandomFeatureRidgeCV",
    "RandomFeatureRidgeClassifier",
    "RandomFeatureRidgeClassifierCV",
    "RandomFourierFeatures",
    "RationalQuadratic",
    "SphereHeat",
    "SphereMatern",
    "Spherical",
    "TensorSketchFeatures",
    "TruncationWarning",
    "Zonal",
    "__version__",
    "block_report",
    "compare",
    "hadamard_transform",
    "load",
    "plan",
    "reference",
    "show_config",
]

# Public name -> its module; the imports above say the same to those who check types.
_HOMES = {
    "show_config": "_config",
    "Checkpoint": "_streams",
    "AdaptiveSketchFeatures": "adaptive",
    "KernelFeatures": "auto",
    "compare": "auto",
    "plan": "auto",
    "BlockFourierFeatures": "block",
    "BlockProjection": "block",
    "MeanNormalizer": "block",
    "block_report": "block",
    "RandomFeatureCCA": "cca",
    "LatLonToSphere": "datasets",
    "FastfoodFeatures": "fastfood",
    "ModifiedFourierFeatures": "fourier",
    "RandomFourierFeatures": "fourier",
    "GegenbauerFeatures": "gegenbauer",
    "PublishedGegenbauerFeatures": "gegenbauer",
    "TruncationWarning": "gegenbauer",
    "ClusterAccumulator": "gram",
    "GramAccumulator": "gram",
    "MomentsAccumulator": "gram",
    "hadamard_transform": "hadamard",
    "ArcCosine": "kernels",
    "DotProduct": "kernels",
    "Exponential": "kernels",
    "ExponentialDot": "kernels",
    "Gaussian": "kernels",
    "GeneralizedZonal": "kernels",
    "Laplacian": "kernels",
    "Matern": "kernels",
    "NeuralTangent": "kernels",
    "Polynomial": "kernels",
    "RationalQuadratic": "kernels",
    "SphereHeat": "kernels",
    "SphereMatern": "kernels",
    "Spherical": "kernels",
    "Zonal": "kernels",
    "RandomFeatureKMeans": "kmeans",
    "MaclaurinFeatures": "maclaurin",
    "load": "model_io",
    "NystromFeatures": "nystrom",
    "RandomFeaturePCA": "pca",
    "PolySketchFeatures": "polysketch",
    "Product": "product",
    "ProductFeatures": "product",
    "FastJLProjection": "projection",
    "HadamardProjection": "projection",
    "RandomFeatureRidge": "ridge",
    "RandomFeatureRidgeClassifier": "ridge",
    "RandomFeatureRidgeClassifierCV": "ridge",
    "RandomFeatureRidgeCV": "ridge",
    "CountSketch": "sketch",
    "TensorSketchFeatures": "sketch",
}


if not TYPE_CHECKING:  # who checks types sees the imports above, and that nothing else is there

    def __getattr__(name: str) -> _Any:
        """Import a public name, or a module, when it is first asked for."""
        if name in _HOMES:
            found = getattr(_import_module(f".{_HOMES[name]}", __name__), name)
        elif name.isidentifier() and name[0] != "_" and _find_spec(f"{__name__}.{name}"):
            found = _import_module(f".{name}", __name__)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """List what is there, imported yet or not."""
    return sorted({*globals(), *__all__})
