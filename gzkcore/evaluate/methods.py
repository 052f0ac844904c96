"""The methods of `compare`, by name: to add one, add a line to `METHODS`.

A method is a function of `Wanted` that returns features, not yet fitted, or raises
`UnsuitableError`, which gives the reason in one line. The whole kernel, `whole`, is a method
without features.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import kernel_approximation
from sklearn.base import clone

from gzkcore._util.typing import Data, Doubles, Rows
from gzkcore._util.validation import dense
from gzkcore.features.adaptive import AdaptiveSketchFeatures
from gzkcore.features.auto import KernelFeatures
from gzkcore.features.base import plain_output
from gzkcore.features.block import BlockFourierFeatures
from gzkcore.features.fastfood import FastfoodFeatures
from gzkcore.features.fourier import ModifiedFourierFeatures, RandomFourierFeatures
from gzkcore.features.gegenbauer import GegenbauerFeatures, PublishedGegenbauerFeatures
from gzkcore.features.maclaurin import MaclaurinFeatures
from gzkcore.features.nystrom import NystromFeatures
from gzkcore.features.polysketch import PolySketchFeatures
from gzkcore.features.product import ProductFeatures
from gzkcore.features.sketch import TensorSketchFeatures
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.dot_product import Polynomial
from gzkcore.kernels.general import FunctionKernel, as_exact_kernel
from gzkcore.kernels.product import Product
from gzkcore.kernels.shift_invariant import Gaussian, Laplacian
from gzkcore.kernels.zonal import Zonal
from gzkcore.metrics import relative_frobenius_error


class UnsuitableError(ValueError):
    """A method has no features for a kernel, for the reason that the message gives."""


@dataclass(frozen=True)
class Wanted:
    """The features to make: of a resolved kernel, this wide, to be fitted to rows, with a seed."""

    kernel: Any
    width: int
    rows: Rows
    seed: int

    @property
    def gamma(self) -> float:
        """The kernel's gamma, if it is one number."""
        if np.ndim(self.kernel.gamma):
            raise UnsuitableError(
                "takes one gamma, not one for each column; scale the columns instead"
            )
        return float(self.kernel.gamma)


Method: TypeAlias = Callable[[Wanted], Any]

# The published Gegenbauer features are tried with these degrees and orders, on so many rows.
DEGREES, ORDERS, TRIED_ROWS = (4, 6, 8, 10, 25), (1, 2, 4), 256
# With more columns a product of one-dimensional expansions takes too many products.
MOST_COLUMNS = 8


class _OfHistograms(Kernel):
    """Kernels of rows >= 0 that only scikit-learn has features for, and Nystrom."""

    instead = "only NystromFeatures and scikit-learn have features for it"

    def resolve(self, X: Rows, names: ArrayLike | None = None) -> Self:
        values = X if isinstance(X, np.ndarray) else X.data
        if values.size and values.min() < 0:
            raise ValueError(f"X has the value {values.min():g}; this kernel takes values >= 0")
        return self

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        rows = np.asarray(X, dtype=np.float64)
        others = rows if Y is None else np.asarray(Y, dtype=np.float64)
        return np.array([self.row(x, others) for x in rows]).reshape(len(rows), len(others))

    def row(self, x: Doubles, Y: Doubles) -> Doubles:
        """Return k(x, y) for all rows y of Y."""
        raise NotImplementedError

    def diag(self, X: Rows) -> Doubles:
        return np.concatenate([self.row(x, x[None]) for x in np.asarray(dense(X), np.float64)])


class AdditiveChi2(_OfHistograms):
    """Additive chi-squared kernel sum_i 2 x_i y_i / (x_i + y_i)."""

    def row(self, x: Doubles, Y: Doubles) -> Doubles:
        """Return k(x, y) for all rows y of Y."""
        both = x + Y
        values: Doubles = (2 * x * Y / np.where(both > 0, both, 1.0)).sum(axis=1)
        return values


class SkewedChi2(_OfHistograms):
    """Skewed chi-squared kernel prod_i 2 sqrt(x_i + 1) sqrt(y_i + 1) / (x_i + y_i + 2)."""

    def row(self, x: Doubles, Y: Doubles) -> Doubles:
        """Return k(x, y) for all rows y of Y."""
        values: Doubles = (2 * np.sqrt((x + 1) * (Y + 1)) / (x + Y + 2)).prod(axis=1)
        return values


OF_HISTOGRAMS: dict[str, type[Kernel]] = {"additive_chi2": AdditiveChi2, "skewed_chi2": SkewedChi2}


def as_any_kernel(kernel: Any) -> Kernel:
    """Return the kernel of an alias (also scikit-learn's two) or function, or the kernel itself."""
    if isinstance(kernel, str) and kernel in OF_HISTOGRAMS:
        return OF_HISTOGRAMS[kernel]()
    return as_exact_kernel(kernel)


def on_sphere(gamma: float, cosines: NDArray[Any]) -> Doubles:
    """Return the Gaussian kernel of unit vectors, given their cosine."""
    return np.exp(2 * gamma * (cosines - 1))


def _ours(features: Any, **params: Any) -> Method:
    """Return the method of a class of this package with these parameters."""

    def make(want: Wanted) -> Any:
        if isinstance(want.kernel, FunctionKernel) and features is not NystromFeatures:
            raise UnsuitableError("needs a kernel of gzkcore.kernels, not a function")
        return features(want.kernel, n_components=want.width, random_state=want.seed, **params)

    return make


def _published(want: Wanted) -> Any:
    """Return published Gegenbauer features of the degree and order that do best on some rows."""
    sample = np.asarray(dense(want.rows[:TRIED_ROWS]), dtype=np.float64)
    K = want.kernel(sample)
    norms = np.sqrt(np.einsum("ij,ij->i", sample, sample))
    if isinstance(want.kernel, Gaussian) and np.allclose(norms, 1):
        # On the unit sphere their kernel is zonal, Eq 9.
        want = replace(want, kernel=Zonal(functools.partial(on_sphere, want.gamma)))
    errors: list[tuple[float, Any]] = []
    reason: ValueError = UnsuitableError("no degree and order fit into this width")
    for degree in (*DEGREES, math.isqrt(want.width - 1)):
        for order in (1,) if want.kernel.separable else ORDERS:
            if want.width % order:
                continue
            features = _ours(PublishedGegenbauerFeatures, degree=degree, order=order)(want)
            try:
                Z = plain_output(features).fit(sample).transform(sample)
            except ValueError as error:
                reason = error
                continue
            errors.append((relative_frobenius_error(K, Z), features))
    if not errors:
        raise reason
    return clone(min(errors, key=lambda pair: pair[0])[1])


def _product(want: Wanted) -> Any:
    """Return features of a product of kernels, or of a kernel that is one over the columns."""
    if isinstance(want.kernel, Product):
        return ProductFeatures(want.kernel.parts, want.width, random_state=want.seed)
    dim = want.rows.shape[1]
    kernels = want.kernel.by_column(dim)
    if kernels is None:
        raise UnsuitableError(
            "is not a product of kernels of single columns; use Gaussian or Product"
        )
    if dim > MOST_COLUMNS:
        raise UnsuitableError(f"takes too many products for {dim} columns; group them, see Product")
    return ProductFeatures(list(enumerate(kernels)), want.width, random_state=want.seed)


def _of_sklearn(kernel: type[Kernel], only: str, make: Callable[[Wanted], Any]) -> Method:
    """Return the method of scikit-learn's features that `make` returns, for one kernel only."""

    def make_sized(want: Wanted) -> Any:
        if not isinstance(want.kernel, kernel):
            raise UnsuitableError(f"is for {only}")
        return make(want).set_params(n_components=want.width, random_state=want.seed)

    return make_sized


def _nystroem(want: Wanted) -> Any:
    names: dict[type[Any], str] = {Gaussian: "rbf", Laplacian: "laplacian", Polynomial: "poly"}
    name = names.get(type(want.kernel))
    if name is None:
        raise UnsuitableError("has no name for this kernel; use NystromFeatures")
    params = {"degree": want.kernel.degree, "coef0": want.kernel.coef0} if name == "poly" else {}
    return kernel_approximation.Nystroem(
        name, gamma=want.gamma, **params, n_components=want.width, random_state=want.seed
    )


def _polynomial_count_sketch(want: Wanted) -> Any:
    return kernel_approximation.PolynomialCountSketch(
        gamma=want.gamma, degree=want.kernel.degree, coef0=want.kernel.coef0
    )


def _additive_chi2_sampler(want: Wanted) -> Any:
    """Return the sampler with as many steps as fit, at most the three that have good intervals."""
    if not isinstance(want.kernel, AdditiveChi2):
        raise UnsuitableError("is for kernel='additive_chi2' alone")
    steps = min(3, (want.width // want.rows.shape[1] + 1) // 2)
    if steps < 1:
        raise UnsuitableError(f"takes at least a column for each of {want.rows.shape[1]}")
    return kernel_approximation.AdditiveChi2Sampler(sample_steps=steps)


METHODS: dict[str, Method] = {
    "auto": _ours(KernelFeatures),
    "gegenbauer": _ours(GegenbauerFeatures),
    "gegenbauer-harmonic": _ours(GegenbauerFeatures, basis="harmonic"),
    "gegenbauer-random": _ours(GegenbauerFeatures, basis="random"),
    "gegenbauer-hybrid": _ours(GegenbauerFeatures, basis="hybrid"),
    "gegenbauer-adapted": _ours(GegenbauerFeatures, basis="adapted"),
    "gegenbauer-published": _published,
    "product": _product,
    "fourier-iid": _ours(RandomFourierFeatures),
    "fourier-orthogonal": _ours(RandomFourierFeatures, frequencies="orthogonal"),
    "fourier-qmc": _ours(RandomFourierFeatures, frequencies="qmc"),
    "fourier-modified": _ours(ModifiedFourierFeatures),
    "fastfood": _ours(FastfoodFeatures),
    "fastfood-published": _ours(FastfoodFeatures, frequencies="normal"),
    "block": _ours(BlockFourierFeatures),
    "block-hadamard": _ours(BlockFourierFeatures, mix="hadamard"),
    "maclaurin": _ours(MaclaurinFeatures),
    "maclaurin-published": _ours(MaclaurinFeatures, degrees="geometric"),
    "tensorsketch": _ours(TensorSketchFeatures),
    "polysketch": _ours(PolySketchFeatures),
    "adaptive": _ours(AdaptiveSketchFeatures),
    "nystrom-rpcholesky": _ours(NystromFeatures),
    "nystrom-rls": _ours(NystromFeatures, landmarks="rls"),
    "nystrom-accelerated-rls": _ours(NystromFeatures, landmarks="accelerated-rls"),
    "nystrom-kmeans++": _ours(NystromFeatures, landmarks="kmeans++"),
    "nystrom-uniform": _ours(NystromFeatures, landmarks="uniform"),
    "sklearn-RBFSampler": _of_sklearn(
        Gaussian,
        "the Gaussian alone; use RandomFourierFeatures",
        lambda want: kernel_approximation.RBFSampler(gamma=want.gamma),
    ),
    "sklearn-Nystroem": _nystroem,
    "sklearn-PolynomialCountSketch": _of_sklearn(
        Polynomial, "the polynomial kernel alone", _polynomial_count_sketch
    ),
    "sklearn-AdditiveChi2Sampler": _additive_chi2_sampler,
    "sklearn-SkewedChi2Sampler": _of_sklearn(
        SkewedChi2,
        "kernel='skewed_chi2' alone",
        lambda _: kernel_approximation.SkewedChi2Sampler(skewedness=1.0),
    ),
}

# The whole kernel is a method without features, and so without a width.
WHOLE = "whole"
NAMES = (*METHODS, WHOLE)
