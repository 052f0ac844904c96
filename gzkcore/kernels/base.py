"""The base of all kernels, and what each must provide for its approximations.

A kernel stores its arguments untouched (`get_params`, `set_params`, `clone` work); `resolve(X)`
returns a copy in which every parameter is a number, and only a resolved kernel can be evaluated.

Kernels that have features come in four families, with a class each. A family determines the radial
functions h_l in k(x, y) = sum_l <h_l(|x|), h_l(|y|)> P_d^l(cos) (Definition 3), and
`radial.RadialFunctions` turns these into features:

===============  =======================================  ==========================================
family           k(x, y)                                  what it tells
===============  =======================================  ==========================================
dot product      kappa(<x, y>) e(|x|) e(|y|)              `log_derivative(orders)`: Taylor's at 0,
                                                          `log_envelope(norms)`: log e
zonal            (|x| |y|)^power kappa(cos)               `power`, `series(dim, degree)`: c_l,
                                                          `noise(dim, degree)`, `at_one(dim)`
shift invariant  f(|x - y|): radial; others, such as the  `profile(distances)`: f
                 Laplacian, have no h_l
general          sum_l <h_l(|x|), h_l(|y|)> P_d^l(cos)    `radial_values(norms)`: h_l
===============  =======================================  ==========================================

All of them have `scale()`, the factor of the inputs (a number or one per column), and
`diagonal(norms)`, which is k(x, x) at scaled norms. `shift_invariant` says whether the data may be
centred, `unit_sphere` whether the kernel is defined for unit rows only. Random Fourier features
call `frequencies(normals, uniforms)`, which draws from the spectrum of the scaled kernel.
"""

import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from gzkcore._util.arguments import with_remedies
from gzkcore._util.typing import Data, Doubles, Rows
from gzkcore._util.wording import counted, shortened

from .points import double_pair, double_rows, row_norms
from .tile_form import TileForm, has_tables
from .tile_matrix import DOUBLE, form_matrix

__all__ = ["Kernel"]

# Matrices with fewer entries are computed without a table, which takes about so many itself.
FEWEST_FOR_TABLES = 1 << 14

# Names of lengthscales in other packages.
LENGTHS = ("lengthscale", "lengthscales", "length_scale", "length", "ell", "sigma", "bandwidth")


class Kernel(BaseEstimator):
    """Base of all kernels: `k(X, Y)` is the exact matrix, `k.diag(X)` its diagonal."""

    instead: ClassVar[str] = ""  # what to use if it has no radial functions
    shift_invariant: ClassVar[bool] = False  # the data may be centred
    unit_sphere: ClassVar[bool] = False  # it has a meaning for unit rows only
    rotation_invariant: ClassVar[bool] = True  # so is the kernel of the scaled rows
    max_dim: ClassVar[int | None] = None  # the most columns for which it is positive definite
    separable: ClassVar[bool] = False  # a function of the norms times one of the angle
    learnable: ClassVar[tuple[str, ...]] = ()  # parameters that may be "learn", see `learned`
    _trusted = False  # whether every parameter is a checked number

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__init__" in vars(cls):
            cls.__init__ = with_remedies(cls.__init__)  # type: ignore[method-assign]

    @classmethod
    @functools.cache  # a search makes hundreds of kernels, each by the names of its parameters
    def _get_param_names(cls) -> list[str]:
        return list(super()._get_param_names())

    def _instead_of(self, name: str, value: Any, given: Mapping[str, Any]) -> str:
        """Return what to pass instead of a parameter that is none of this kernel's."""
        if name not in LENGTHS or not hasattr(self, "with_lengths"):
            return ""
        try:
            same = shortened(repr(type(self)().with_lengths(value)))
        except (TypeError, ValueError, NotImplementedError):
            return ""
        return f"With lengthscale {value} it is {same}"

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        self.__dict__.pop("_trusted", None)

    def _trust(self) -> Self:
        """Return the kernel with its parameters trusted until one is set: they are checked."""
        self.__dict__["_trusted"] = True
        return self

    @property
    def defined_at_zero(self) -> bool:
        """Whether a row of zeros has a kernel value."""
        return True

    @property
    def holds_function(self) -> bool:
        """Whether the kernel calls a function of the user's, which no file keeps."""
        return False

    def resolve(self, X: Rows, names: ArrayLike | None = None) -> Self:
        """Return a copy with every parameter checked, and a number, on the data X.

        `names` are those of the columns, for kernels that name some.
        """
        return type(self)(**self._resolved(X))._trust()

    def _resolved(self, X: Rows) -> dict[str, Any]:
        """Return the parameters as numbers, or raise."""
        raise NotImplementedError

    def scale(self) -> float | Doubles:
        """Return the factor, or one per column, by which the inputs are multiplied."""
        return 1.0

    def diagonal(self, norms: ArrayLike) -> Doubles:
        """Return k(x, x) at scaled norms |x|."""
        raise NotImplementedError

    def frequencies(self, normals: Doubles, uniforms: Doubles) -> Doubles:
        """Turn draws into frequencies w of the scaled kernel, k(x, y) = E cos(w.(x - y)).

        The normals, (n_frequencies, dim), are standard normal, or evenly spread as they are. The
        uniforms, (n_frequencies,), are each frequency's share of the mixture.
        """
        raise ValueError(
            f"{self!r} has no spectrum to draw frequencies from; use a shift-invariant kernel "
            "(Gaussian, Laplacian, Exponential, Matern, RationalQuadratic), or GegenbauerFeatures"
        )

    def by_column(self, dim: int) -> "list[Kernel] | None":
        """Return the kernels of single columns that multiply to this one, None if none do."""
        return None

    def tile_form(self, dim: int) -> TileForm | None:
        """Return the form by which tiles compute the resolved kernel, None if they cannot."""
        return None

    def by_tiles(self, X: Doubles, Y: Doubles | None, dtype: Any) -> NDArray[Any] | None:
        """Return the matrix of checked rows by compiled tiles, None if they cannot compute it."""
        matrix = form_matrix(self.tile_form(X.shape[1]), X, Y, dtype)
        if matrix is not None and Y is None:
            np.fill_diagonal(matrix, self.diag(X))
        return matrix

    def by_formula(self, X: Doubles, Y: Doubles) -> Doubles:
        """Return the matrix of checked rows by NumPy, for few rows or where tiles cannot."""
        raise NotImplementedError

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        """Return the exact kernel matrix of shape (len(X), len(Y)); Y=None means X."""
        rows, others = double_pair(X, Y)
        self._scale_of(rows.shape[1])
        size = len(rows) * len(others) if rows.shape[1] else 0
        few = size < FEWEST_FOR_TABLES and has_tables(self.tile_form(rows.shape[1]))
        matrix = None
        if size and not few:
            matrix = self.by_tiles(rows, None if Y is None else others, DOUBLE)
        return self.by_formula(rows, others) if matrix is None else matrix

    def diag(self, X: Rows) -> Doubles:
        """Return k(x, x) for every row of X."""
        rows = double_rows(X)
        return self.diagonal(row_norms(rows * self._scale_of(rows.shape[1])))

    def _scale_of(self, width: int) -> float | Doubles:
        """Return the scale, or raise if it has one number per column of another width."""
        scale = self.scale()
        if np.ndim(scale) == 1 and np.size(scale) != width:
            raise ValueError(
                f"{self!r} has parameters for {counted(np.size(scale), 'column')}, but X has "
                f"{width}; pass one number, or one for each column"
            )
        return scale


# ---- rules that need targets

LEARNED = ("learn", "learn-isotropic")  # one length for each column, one for all columns


def asks_targets(estimator: Any) -> bool:
    """Say whether a parameter of a kernel or of features, or of their parts, is to be learned."""
    values = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    return any(isinstance(value, str) and value in LEARNED for value in values)


def raise_if_learned(name: str, value: Any) -> None:
    """Raise if a parameter is to be learned: the caller has no targets."""
    if isinstance(value, str) and value in LEARNED:
        raise ValueError(
            f"{name}={value!r} is learned from targets, and there are none here; pass y to fit, or "
            "use the kernel that gzkcore.learn_kernel(X, y, kernel) returns"
        )


def check_list(name: str, values: Any) -> Doubles:
    """Return a list of finite numbers as an array, or raise; they must not all be 0."""
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf" or (
        not np.isfinite(array).all()
    ):  # fmt: skip
        raise ValueError(f"{name}={values!r} must be a list of finite numbers")
    if not array.any():
        raise ValueError(f"{name} are all 0, so that the kernel is 0; give at least one > 0")
    return array.astype(np.float64)
