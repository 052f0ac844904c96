"""Sketches: CountSketch and OSNAP of vectors, TensorSketch of their outer powers.

A sketch is a random linear map that keeps inner products on average and costs one addition for each
entry that isn't 0. TensorSketch sketches x (x) ... (x) x, which gives the polynomial kernel.
"""

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gzkcore._compiled import sketch as _sketch
from gzkcore._compiled import variances as _variances
from gzkcore._util.new_arrays import empty_aligned
from gzkcore._util.random import generator
from gzkcore._util.state import check_arrays, holds, ints, sequence, signs, stored, whole
from gzkcore._util.threads import in_parts, n_threads
from gzkcore._util.typing import Doubles, Floats, Rows, Seed
from gzkcore._util.validation import (
    as_floating,
    check_integer,
    check_places,
)
from gzkcore._util.wording import counted
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.dot_product import Polynomial

from .base import KernelMap, RowMap, call_kernel, cast_once, moment_of_pairs, warn_if_trivial
from .fit_rows import FitRows

__all__ = [
    "CountSketch",
    "TensorSketchFeatures",
    "count_sketch",
    "tensor_sketch",
    "tensor_sketch_variance",
]


def count_sketch(X: ArrayLike, hashes: ArrayLike, signs: ArrayLike, n_components: int) -> Floats:
    """Add the entries of each row, with signs, at the places of their columns: see `CountSketch`.

    Parameters
    ----------
    X : array-like of shape (n, d)
        float32 stays float32, everything else becomes float64.
    hashes : array-like of int of shape (s, d)
        Places, >= 0 and below n_components.
    signs : array-like of shape (s, d)
        +1 or -1.
    n_components : int

    Returns
    -------
    ndarray of shape (n, n_components)
        CountSketch for s = 1, OSNAP for s different places of each column: divided by sqrt(s).

    Examples
    --------
    >>> from gzkcore.features.sketch import count_sketch
    >>> count_sketch([[1.0, 2.0, 4.0]], [[1, 0, 1]], [[1, 1, -1]], 2)
    array([[ 2., -3.]])
    """
    width = check_integer("n_components", n_components, 1)
    rows, places, flips = _checked(X, hashes, signs, width)
    out = empty_aligned((rows.shape[0], width), rows.dtype)
    scale = 1 / math.sqrt(places.shape[0])
    _sketch.count_sketch(rows, places, flips, scale, out, n_threads(rows.size))
    return out


def tensor_sketch(X: ArrayLike, hashes: ArrayLike, signs: ArrayLike, n_components: int) -> Floats:
    """Sketch x (x) ... (x) x, p times: the cyclic convolution of p CountSketches of x.

    Parameters
    ----------
    X : array-like of shape (n, d)
        float32 stays float32, everything else becomes float64.
    hashes : array-like of int of shape (p, d)
        Places, >= 0 and below n_components; entry (i_1, ..., i_p) goes to the sum of its p places
        modulo n_components.
    signs : array-like of shape (p, d)
        +1 or -1.
    n_components : int
        A power of two.

    Returns
    -------
    ndarray of shape (n, n_components)

    See Also
    --------
    TensorSketchFeatures : Takes any width, for a polynomial kernel.

    Examples
    --------
    >>> from gzkcore.features.sketch import tensor_sketch
    >>> tensor_sketch([[1.0, 2.0, 4.0]], [[1, 0, 1], [0, 0, 1]], [[1, 1, -1], [1, 1, 1]], 2)
    array([[-6., -1.]])
    """
    width = check_integer("n_components", n_components, 1)
    if width & (width - 1):
        raise ValueError(
            f"n_components={width} is not a power of two; use {1 << width.bit_length()}, or "
            "TensorSketchFeatures, which takes any width"
        )
    rows, places, flips = _checked(X, hashes, signs, width)
    out = empty_aligned((rows.shape[0], width), rows.dtype)
    roots = _roots(width, rows.dtype)
    work = places.shape[0] * (rows.shape[1] + width * width.bit_length())
    threads = n_threads(rows.shape[0] * work)
    for part in in_parts(rows.shape[0], work):
        _sketch.tensor_sketch(
            rows[part], places, flips, roots, 0.0, width, 0, 1.0, out[part], False, threads
        )
    return out


def _checked(
    X: ArrayLike, hashes: ArrayLike, signs: ArrayLike, width: int
) -> tuple[Floats, NDArray[np.int32], NDArray[np.int8]]:
    flat, shape = as_floating("X", X)
    check_places("hashes", hashes, width)
    places, flips = np.asarray(hashes, dtype=np.int32), np.asarray(signs, dtype=np.int8)
    if len(shape) != 2 or places.ndim != 2 or places.shape != flips.shape:
        raise ValueError(
            f"X, hashes and signs have shapes {shape}, {places.shape} and {flips.shape}; pass rows "
            "and hashes and signs of one shape with a column for each of theirs"
        )
    if places.shape[0] < 1 or places.shape[1] != shape[1]:
        raise ValueError(
            f"hashes has shape {places.shape}, but X has {counted(shape[1], 'column')}; pass a "
            f"row or more of {shape[1]} places"
        )
    return flat.reshape(shape), np.ascontiguousarray(places), np.ascontiguousarray(flips)


def _roots(width: int, dtype: DTypeLike) -> Floats:
    """Return exp(i pi v(q)), v(q) the bits of q in reverse as a fraction; see sketch.h."""
    fractions: Doubles = np.zeros(1)
    while fractions.size < width // 2:
        fractions = np.concatenate([fractions, fractions + 0.5 / fractions.size])
    roots = np.stack([np.cos(math.pi * fractions), np.sin(math.pi * fractions)], axis=1)
    return roots.astype(dtype)


def tensor_sketch_variance(x: ArrayLike, y: ArrayLike, degree: int, n_components: int) -> Any:
    """Variance of <TensorSketch x, TensorSketch y>, whose mean is <x, y>^degree.

    Parameters
    ----------
    x, y : array-like of shape (d,), or (n, d) for as many pairs
    degree : int
    n_components : int
        Width of one sketch. For the features of a kernel with gamma and coef0, scale x and y by
        sqrt(gamma) and append sqrt(coef0) to both.

    Returns
    -------
    float, or ndarray of shape (n,)
        ((a + b)^p + (a + c)^p - 2 a^p) / m, where a = <x, y>^2, b = |x|^2 |y|^2 - s, c = a - s and
        s = sum x_i^2 y_i^2; plus terms over m^2, see `reference.sketch.tensor_sketch_variance`.

    Notes
    -----
    The formula is exact, by counting which of four indices may be equal. For x = y with many small
    entries it tends to 2 (2^p - 1) |x|^4p / m; the bound of Avron, Nguyen and Woodruff (2014) has
    3^p - 1 instead of 2 (2^p - 1).

    Examples
    --------
    >>> from gzkcore.features.sketch import tensor_sketch_variance
    >>> tensor_sketch_variance([1.0, 1.0], [1.0, 1.0], 1, 4)
    1.0
    """
    p, m = check_integer("degree", degree, 1), check_integer("n_components", n_components, 1)
    return moment_of_pairs(_variances.tensor_sketch_variance, x, y, p, m)


def _draw(rng: np.random.Generator, widths: ArrayLike, columns: int) -> NDArray[np.int32]:
    """Draw places below each of these widths."""
    return rng.integers(0, np.reshape(widths, (-1, 1)), (np.size(widths), columns), dtype=np.int32)


def _flip(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int8]:
    return 1 - 2 * rng.integers(0, 2, shape, dtype=np.int8)


def _degree(of: Any) -> int:
    return int(of.kernel_.degree)


def _columns(of: Any) -> int:
    return int(of.n_features_in_) + 1


class CountSketch(RowMap):
    """CountSketch and OSNAP: projections that cost one addition, or a few, for each entry.

    Parameters
    ----------
    n_components : int, default=1024
        Width of the output.
    n_nonzeros : int, default=1
        s, the number of places that each column is added to, at most n_components. 1 is
        CountSketch. More is OSNAP, with each place in a different part of the output.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The dot product, which the sketch keeps.
    hashes_ : ndarray of int32 of shape (n_nonzeros, n_features)
    signs_ : ndarray of int8 of shape (n_nonzeros, n_features)

    Notes
    -----
    Unbiased for <x, y>. The variance is (|x|^2 |y|^2 + <x, y>^2 - 2 sum x_i^2 y_i^2) / F with F
    columns, for any s that divides F; a larger s makes large errors rarer. Cost: s additions for
    each entry that is not 0.

    References
    ----------
    Charikar, Chen, Farach-Colton, Finding frequent items in data streams, 2002; Nelson, Nguyen,
    OSNAP: Faster numerical linear algebra algorithms via sparser subspace embeddings, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import CountSketch
    >>> X = np.random.default_rng(0).standard_normal((50, 3000))
    >>> Z = CountSketch(n_components=1000, random_state=0).fit_transform(X)
    >>> Z.shape, bool(np.abs((Z * Z).sum(axis=1) / (X * X).sum(axis=1) - 1).max() < 0.2)
    ((50, 1000), True)
    """

    _state = stored(
        kernel_=holds(Kernel),
        hashes_=ints("s", "n_features_in_", below="_n_features_out", dtype=np.int32),
        signs_=signs("s", "n_features_in_"),
    )
    _most_columns = sys.maxsize

    def __init__(
        self, n_components: int = 1024, *, n_nonzeros: int = 1, random_state: Seed = None
    ) -> None:
        self.n_components = n_components
        self.n_nonzeros = n_nonzeros
        self.random_state = random_state

    def _fit(self, rows: FitRows) -> None:
        X, width = rows.X, self._n_features_out
        count = check_integer("n_nonzeros", self.n_nonzeros, 1)
        if count > width:
            raise ValueError(
                f"n_nonzeros={count} is more than n_components={width}, the number of columns; use "
                f"at most {width}"
            )
        rng = generator(self.random_state)
        ends = np.arange(count + 1) * width // count
        self.hashes_: NDArray[np.int32] = (
            _draw(rng, np.diff(ends), X.shape[1]) + ends[:-1, None]
        ).astype(np.int32)
        self.signs_ = _flip(rng, self.hashes_.shape)
        self.kernel_: Kernel = Polynomial(1, coef0=0.0).resolve(X)

    def _bytes(self, width: int, rows: int, columns: int) -> float:
        return 8.0 * width + 5.0 * columns

    def _flops(self, density: float) -> float:
        return 2 * self.hashes_.size * density + self._n_features_out

    def _about(self) -> str:
        return f"{self.hashes_.shape[0]} of {self._n_features_out} places for each column"

    def _check_arrays(self) -> None:
        """Check shapes only: the kernel checks each place."""
        shape = self.hashes_.shape
        if shape != self.signs_.shape or shape[1:] != (self.n_features_in_,):
            check_arrays(self)

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        scale = 1 / math.sqrt(self.hashes_.shape[0])
        made = self.hashes_, self.signs_, scale, out, n_threads(X.size * len(self.hashes_))
        outside = call_kernel(_sketch.count_sketch, _sketch.count_sketch_sparse, X, *made)
        if outside:
            check_arrays(self)


class TensorSketchFeatures(KernelMap):
    """TensorSketch features of the polynomial kernel, in O(degree (nnz + F log F)) a row.

    Parameters
    ----------
    kernel : str or Kernel, default="polynomial"
        `Polynomial`, or its alias: (gamma <x, y> + coef0)^degree.
    n_components : int, default=1024
        F, the width of the output, exactly. It consists of sketches whose widths are powers of two,
        one for each binary digit of F; more of them take more additions, at the same variance.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, with all parameters as numbers.
    widths_ : list of int
        The powers of two whose sum is F, the largest first.
    hashes_ : ndarray of int32 of shape (len(widths_), degree, n_features + 1)
        The last column is the constant one, sqrt(coef0).
    signs_ : ndarray of int8 of shape (len(widths_), degree, n_features + 1)

    See Also
    --------
    PolySketchFeatures : The variance grows more slowly with the degree; Gaussian kernels too.
    GegenbauerFeatures : Exact for polynomials of few columns.

    Notes
    -----
    Unbiased: the mean of z(x).z(y) over random states is k(x, y). `tensor_sketch_variance` gives
    the variance for each of the widths. It grows like 2^degree: high degrees need many components.
    Zeros of CSR rows cost nothing. Memory beside the output: scratch for one vector of rows.

    References
    ----------
    Pham, Pagh, Fast and scalable polynomial kernels via explicit feature maps, 2013; Avron, Nguyen,
    Woodruff, Subspace embeddings for the polynomial kernel, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Polynomial, TensorSketchFeatures
    >>> X = np.random.default_rng(0).standard_normal((50, 100))
    >>> features = TensorSketchFeatures(Polynomial(2, gamma=0.01), 5000, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape, bool(np.abs(Z @ Z.T - features.kernel_(X)).max() < 0.5)
    ((50, 5000), True)
    """

    _state = stored(
        kernel_=holds(Polynomial),
        widths_=sequence(whole(1), "w"),
        hashes_=ints("w", _degree, _columns, below="_n_features_out", dtype=np.int32),
        signs_=signs("w", _degree, _columns),
    )

    def __init__(
        self,
        kernel: str | Kernel = "polynomial",
        n_components: int = 1024,
        *,
        random_state: Seed = None,
    ) -> None:
        super().__init__(kernel, n_components, random_state=random_state)

    def _check_state(self) -> None:
        widths = np.array(self.widths_)
        if widths.sum() != self._n_features_out or (widths & (widths - 1)).any():
            raise ValueError(
                f"has widths_ {self.widths_}, not powers of two with the sum {self._n_features_out}"
            )
        beyond = self.hashes_.reshape(widths.size, -1).max(axis=1, initial=0) >= widths
        if beyond.any() or self.widths_[0] != widths.max():
            raise ValueError(f"has hashes_ beyond the widths of its sketches, {self.widths_}")

    def _fit(self, rows: FitRows) -> None:
        X, width = rows.X, self._n_features_out
        kernel = as_kernel(self.kernel)
        if not isinstance(kernel, Polynomial):
            raise ValueError(  # noqa: TRY004  it is a kernel, only not for this
                f"{kernel!r} is not a polynomial kernel, and TensorSketch needs one; use "
                "Polynomial, or PolySketchFeatures or GegenbauerFeatures for other kernels"
            )
        kernel = rows.resolve(kernel)
        rng = generator(self.random_state)
        self.widths_ = [1 << bit for bit in reversed(range(width.bit_length())) if width >> bit & 1]
        columns = X.shape[1] + 1
        places = [_draw(rng, [size] * kernel.degree, columns) for size in self.widths_]
        self.hashes_: NDArray[np.int32] = np.stack(places)
        self.signs_ = _flip(rng, self.hashes_.shape)
        self.kernel_: Polynomial = kernel
        warn_if_trivial(kernel, X)

    def _bytes(self, width: int, rows: int, columns: int) -> float:
        return 144.0 * width  # of them 128 for two vectors of rows in their transforms

    def _flops(self, density: float) -> float:
        width = self._n_features_out
        transforms = 2.5 * width * math.log2(width + 1) * (self.kernel_.degree + 1)
        return 2 * self.hashes_.size * density + transforms

    def _about(self) -> str:
        return (
            f"degree {self.kernel_.degree}, sketches of width {', '.join(map(str, self.widths_))}"
        )

    def _highest_power(self) -> int:
        return int(self.kernel_.degree)

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        degree, width = self.kernel_.degree, out.shape[1]
        last = math.sqrt(self.kernel_.coef0 / self.kernel_.gamma)
        roots = cast_once(self, X.dtype, _roots, self.widths_[0])
        work = int(X.shape[0] * self._flops(1.0))
        first = 0
        for m, hashes, flips in zip(self.widths_, self.hashes_, self.signs_, strict=True):
            scale = self.kernel_.gamma ** (degree / 2) * math.sqrt(m / width)
            drawn = hashes, flips, roots, last, m, first, scale, out, stream, n_threads(work)
            if isinstance(X, np.ndarray):
                packed = np.require(X, requirements=["C", "ALIGNED"])
                _sketch.tensor_sketch(packed, *drawn)
            else:
                _sketch.tensor_sketch_sparse(X.data, X.indices, X.indptr, X.shape[1], *drawn)
            first += m
