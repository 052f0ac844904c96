"""Explicit features for kernels: kernel methods as linear algebra in one pass."""

from typing import Any as _Any

from . import _isa as _isa  # first: it registers the compiled modules under their plain names
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


def __getattr__(name: str) -> _Any:
    """Import `gzkcore.reference` when it is first asked for."""
    if name == "reference":
        import importlib

        return importlib.import_module("gzkcore.reference")
    raise AttributeError(f"module 'gzkcore' has no attribute {name!r}")
