"""PolySketch: outer powers, sketched by a binary tree, for high degrees.

The leaves are CountSketches (or OSNAPs) of x. Each node sketches the outer product of its two
children by random signs, a Walsh-Hadamard transform and a sample of pairs. The errors of the nodes
add up along the tree; those of a TensorSketch multiply.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.special import gammaln, pdtrc

from gzkcore._compiled import polysketch as _polysketch
from gzkcore._compiled import variances as _variances
from gzkcore._util.new_arrays import empty_aligned
from gzkcore._util.random import generator
from gzkcore._util.state import holds, ints, number, sequence, signs, stored, whole
from gzkcore._util.threads import in_parts, n_threads
from gzkcore._util.typing import Doubles, Floats, Rows, Seed
from gzkcore._util.validation import (
    MOST_PLACES,
    as_floating,
    check_integer,
    check_places,
)
from gzkcore._util.warn import warn
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.dot_product import Polynomial
from gzkcore.kernels.shift_invariant import Gaussian

from .base import (
    KernelMap,
    TruncationWarning,
    call_kernel,
    cast_once,
    contiguous,
    moment_of_pairs,
    warn_if_trivial,
)
from .fit_rows import FitRows
from .hadamard import hadamard_transform

__all__ = ["PolySketchFeatures", "poly_sketch", "poly_sketch_variance", "tensor_srht"]

# The smallest width of sketches inside a tree, which fills a vector.
_LEAST_WIDTH = 16

# The largest share of k(x, x), at the largest norm, of the degrees that are left out.
_MISSING = 1e-3


def tensor_srht(
    u: ArrayLike, v: ArrayLike, signs: ArrayLike, places: ArrayLike, n_components: int
) -> Doubles:
    """Sketch an outer product: T_r = (H D u)[i_r] (H D' v)[j_r] / sqrt(n_components).

    Parameters
    ----------
    u, v : array-like of shape (m,)
        m a power of two.
    signs : array-like of shape (2, m)
        The diagonals of D and D', +1 or -1.
    places : array-like of int of shape (2, n_components or more)
        i and j.
    n_components : int

    Returns
    -------
    ndarray of shape (n_components,)

    Notes
    -----
    Use it to inspect one node; the features evaluate whole trees. O(m log m) operations.

    Examples
    --------
    >>> from gzkcore.features.polysketch import tensor_srht
    >>> tensor_srht([1.0, 2.0], [3.0, 4.0], [[1, 1], [1, -1]], [[0], [1]], 1)
    array([21.])
    """
    width = check_integer("n_components", n_components, 1)
    both = np.asarray(signs, dtype=np.float64) * np.stack([u, v])
    a, b = hadamard_transform(both)
    check_places("places", places, both.shape[1])
    chosen = np.asarray(places, dtype=np.intp)
    if chosen.ndim != 2 or chosen.shape[0] != 2 or chosen.shape[1] < width:
        raise ValueError(
            f"places has shape {chosen.shape}; pass two rows of {width} places or more"
        )
    i, j = chosen[:, :width]
    product: Doubles = a[i] * b[j] / math.sqrt(width)
    return product


def poly_sketch(
    X: ArrayLike,
    degree: int,
    hashes: ArrayLike,
    signs: ArrayLike,
    node_signs: ArrayLike,
    places: ArrayLike,
    n_components: int,
) -> Floats:
    """Sketch x (x) ... (x) x, `degree` times, by a tree, as `PolySketchFeatures` does.

    Parameters
    ----------
    X : array-like of shape (n, d)
        float32 stays float32, everything else becomes float64.
    degree : int
    hashes, signs : array-like of shape (q, n_nonzeros, d)
        Hashes and signs of the leaves' CountSketches; q >= degree is a power of two. Leaves from
        number `degree` on sketch e_1.
    node_signs, places : array-like of shape (q, 2, m)
        Signs and places of the nodes; m >= 16 is a power of two. The root is node 1, the children
        of k are 2k and 2k + 1, the leaves are q to 2q - 1. Number 0 is not used.
    n_components : int
        At most m.

    Returns
    -------
    ndarray of shape (n, n_components)

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore.features.polysketch import poly_sketch
    >>> none = np.zeros((1, 2, 16), dtype=int)
    >>> poly_sketch([[1.0, 2.0]], 1, [[[1, 0]]], [[[1, -1]]], none, none, 2)
    array([[-2.,  1.]])
    """
    flat, shape = as_floating("X", X)
    rows = flat.reshape(shape)
    width = check_integer("n_components", n_components, 1)
    count = check_integer("degree", degree, 0)
    check_places("hashes", hashes, MOST_PLACES)
    check_places("places", places, MOST_PLACES)
    draws = (hashes, np.int32), (signs, np.int8), (node_signs, np.int8), (places, np.int32)
    arrays: Any = (np.ascontiguousarray(array, dtype=dtype) for array, dtype in draws)
    tree = _Tree(count, 0, width, 0.0, *arrays)
    tree.check(rows)
    out = empty_aligned((rows.shape[0], width), rows.dtype)
    for part in in_parts(rows.shape[0], tree.flops(1.0)):
        tree.write(rows[part], np.ones(rows.shape[1], dtype=rows.dtype), 0.0, False, out[part])
    return out


def poly_sketch_variance(
    x: ArrayLike,
    y: ArrayLike,
    degree: int,
    n_components: int,
    width: int,
    n_nonzeros: int = 1,
) -> Any:
    """Variance of <S x^(degree), S y^(degree)>, whose mean is <x, y>^degree.

    Parameters
    ----------
    x, y : array-like of shape (d,), or (n, d) for as many pairs
    degree, n_components : int
    width : int
        m, the width of the nodes inside the tree.
    n_nonzeros : int, default=1
        Of the leaves.

    Returns
    -------
    float, or ndarray of shape (n,)

    Notes
    -----
    Exact, by a recursion over three second moments of a node, see `docs/polysketch.md`. O(d +
    degree) operations.

    Examples
    --------
    >>> from gzkcore.features.polysketch import poly_sketch_variance
    >>> poly_sketch_variance([1.0, 1.0], [1.0, 1.0], 1, 4, 4)
    1.0
    """
    p, width = check_integer("degree", degree, 1), check_integer("width", width, 1)
    m = check_integer("n_components", n_components, 1)
    nonzeros = check_integer("n_nonzeros", n_nonzeros, 1)
    return moment_of_pairs(_variances.poly_sketch_variance, x, y, p, m, width, nonzeros)


def _leaves(degree: int) -> int:
    return 1 << max(degree - 1, 0).bit_length()


@dataclass(eq=False)
class _Tree:
    """The draws of the columns `first` to `first + width`, of one degree."""

    _state = stored(
        degree=whole(0),
        first=whole(0),
        width=whole(1),
        log_factor=number(),
        hashes=ints("q", "s", "c", dtype=np.int32),
        signs=signs("q", "s", "c"),
        node_signs=signs("q", 2, "m"),
        places=ints("q", 2, "m", dtype=np.int32),
    )

    degree: int
    first: int
    width: int
    log_factor: float
    hashes: NDArray[np.int32]
    signs: NDArray[np.int8]
    node_signs: NDArray[np.int8]
    places: NDArray[np.int32]

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        degree: int,
        first: int,
        width: int,
        log_factor: float,
        columns: int,
        n_nonzeros: int,
    ) -> Self:
        leaves = _leaves(degree)
        m = max(_LEAST_WIDTH, 1 << (width - 1).bit_length()) if leaves > 1 else width
        ends = np.arange(n_nonzeros + 1) * m // n_nonzeros
        shape = (leaves, n_nonzeros, columns)
        hashes = rng.integers(ends[:-1, None], ends[1:, None], shape).astype(np.int32)
        nodes = (leaves, 2, m if leaves > 1 else _LEAST_WIDTH)
        return cls(
            degree, first, width, log_factor, hashes,
            1 - 2 * rng.integers(0, 2, shape, dtype=np.int8),
            1 - 2 * rng.integers(0, 2, nodes, dtype=np.int8),
            rng.integers(0, nodes[2], nodes, dtype=np.int32),
        )  # fmt: skip

    def check(self, rows: Floats) -> None:
        if rows.ndim != 2 or self.hashes.ndim != 3 or self.hashes.shape[2] != rows.shape[1]:
            raise ValueError(
                f"X has shape {rows.shape} and hashes {self.hashes.shape}; pass rows, and a place "
                "in each sketch of each leaf for every column"
            )
        self._check_state()

    def _check_state(self) -> None:
        q, m = self.hashes.shape[0], self.node_signs.shape[-1]
        if q < 1 or q & (q - 1) or self.degree > q or self.signs.shape != self.hashes.shape:
            raise ValueError(
                f"hashes and signs have shapes {self.hashes.shape} and {self.signs.shape}; pass "
                f"the same for {_leaves(self.degree)} leaves"
            )
        if self.node_signs.shape != (q, 2, m) or self.places.shape != (q, 2, m):
            raise ValueError(
                f"node_signs and places are {self.node_signs.shape} and {self.places.shape}; "
                f"pass {q} pairs of rows each"
            )
        if m < _LEAST_WIDTH or m & (m - 1) or (q > 1 and self.width > m):
            raise ValueError(
                f"nodes are {m} wide; use a power of two >= {_LEAST_WIDTH} and n_components="
                f"{self.width}"
            )
        for places, top in ((self.hashes, m if q > 1 else self.width), (self.places, m)):
            if places.size and not (places.min() >= 0 and places.max() < top):
                raise ValueError(f"places reach {places.max()}; use integers >= 0 and below {top}")

    def flops(self, density: float) -> float:
        leaves, m = self.hashes.shape[0], self.node_signs.shape[2]
        nodes = (2 * leaves - 2) * m * (math.log2(m) + 4)
        return float(2 * self.hashes.size * density * self.degree / leaves + nodes + self.width)

    def write(self, X: Rows, scale: Floats, last: float, gaussian: bool, out: Floats) -> None:
        node_signs = cast_once(self, X.dtype, contiguous, self.node_signs)
        made = (
            scale, last, self.degree, self.hashes, self.signs, node_signs, self.places, gaussian,
            self.first, self.width, self.log_factor, out,
            n_threads(int(X.shape[0] * self.flops(1.0))),
        )  # fmt: skip
        call_kernel(_polysketch.poly_sketch, _polysketch.poly_sketch_sparse, X, *made)


class PolySketchFeatures(KernelMap):
    """PolySketch features of polynomial and Gaussian kernels, for high degrees and sparse rows.

    Parameters
    ----------
    kernel : str or Kernel, default="polynomial"
        `Polynomial`, `Gaussian`, or an alias.
    n_components : int, default=1024
        F, the width of the output, exactly.
    n_nonzeros : int, default=1
        Number of places of a leaf that each column is added to, a power of two: 1 is CountSketch,
        more is OSNAP.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, with all parameters as numbers.
    degrees_, widths_ : list of int
        The degrees that are sketched, and the number of columns of each.
    trees_ : list
        The random draws of each tree.

    See Also
    --------
    TensorSketchFeatures : Faster, for polynomials of low degree.
    GegenbauerFeatures : Far more accurate in few dimensions.

    Notes
    -----
    Unbiased for `Polynomial`, with the variance `poly_sketch_variance`. The Gaussian is e(x) e(y)
    sum_N <x, y>^N / N!, in scaled rows and with e(x) = exp(-|x|^2 / 2). There are as many degrees
    as an error of at most 0.001 at the largest norm of the training rows needs, if there are enough
    columns, which degrees share by their weights. Large norms need high degrees: centre the columns
    first. Cost: O(degree nnz + degree F log F) a row. Memory: the output and a few vectors of its
    width.

    References
    ----------
    Ahle, Kapralov, Knudsen, Pagh, Velingker, Woodruff, Zandieh, Oblivious sketching of high-degree
    polynomial kernels, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Polynomial, PolySketchFeatures
    >>> X = np.random.default_rng(0).standard_normal((50, 100))
    >>> features = PolySketchFeatures(Polynomial(2, gamma=0.01), 5000, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape, bool(np.abs(Z @ Z.T - features.kernel_(X)).max() < 0.4)
    ((50, 5000), True)
    """

    _state = stored(
        kernel_=holds(Polynomial, Gaussian),
        trees_=sequence(holds(_Tree), "t"),
        degrees_=sequence(whole(0), "t"),
        widths_=sequence(whole(1), "t"),
    )

    def __init__(
        self,
        kernel: str | Kernel = "polynomial",
        n_components: int = 1024,
        *,
        n_nonzeros: int = 1,
        random_state: Seed = None,
    ) -> None:
        super().__init__(kernel, n_components, random_state=random_state)
        self.n_nonzeros = n_nonzeros

    def _fit(self, rows: FitRows) -> None:
        X, width = rows.X, self._n_features_out
        count = check_integer("n_nonzeros", self.n_nonzeros, 1)
        if count & (count - 1) or count > _LEAST_WIDTH:
            raise ValueError(f"n_nonzeros={count} is not usable; use 1, 2, 4, 8 or 16")
        kernel = as_kernel(self.kernel)
        if not isinstance(kernel, Polynomial | Gaussian):
            raise ValueError(  # noqa: TRY004  it is a kernel, only not for this
                f"{kernel!r} is neither a polynomial nor a Gaussian kernel; use one of these, or "
                "GegenbauerFeatures for other kernels"
            )
        kernel = rows.resolve(kernel)
        if isinstance(kernel, Polynomial):
            degrees, widths, logs = [kernel.degree], [width], [0.0]
        else:
            squares = _squares(X, kernel.scale())
            degrees, widths = _share(float(squares.max()), rows.sum(squares) / rows.total, width)
            missing = float(pdtrc(degrees[-1], squares.max()))
            if missing > 100 * _MISSING:
                warn(
                    f"n_components={width} is enough for degrees up to {degrees[-1]}, which miss "
                    f"{missing:.2g} of the kernel at the largest norm of the scaled rows, "
                    f"{math.sqrt(squares.max()):.3g}; centre the columns, use a smaller gamma, or "
                    "RandomFourierFeatures",
                    TruncationWarning,
                )
            logs = [-0.5 * float(gammaln(N + 1)) for N in degrees]
        rng = generator(self.random_state)
        self.trees_, first = [], 0
        columns = X.shape[1] + isinstance(kernel, Polynomial)
        for degree, size, log_factor in zip(degrees, widths, logs, strict=True):
            nonzeros = count if degree > 1 else min(count, 1 << size.bit_length() - 1)
            tree = _Tree.draw(rng, degree, first, size, log_factor, columns, nonzeros)
            self.trees_.append(tree)
            first += size
        self.degrees_, self.widths_ = degrees, widths
        self.kernel_: Polynomial | Gaussian = kernel
        warn_if_trivial(kernel, X)

    def _check_state(self) -> None:
        columns, first = self.n_features_in_ + isinstance(self.kernel_, Polynomial), 0
        for tree in self.trees_:
            tree._check_state()
            if tree.first != first or tree.hashes.shape[2] != columns:
                raise ValueError(
                    f"has a tree of {tree.hashes.shape[2]} columns from {tree.first} on; trees "
                    f"have {columns}, and this one begins at {first}"
                )
            first += tree.width
        if first != self._n_features_out:
            raise ValueError(f"has trees of {first} columns, not {self._n_features_out}")

    def _bytes(self, width: int, rows: int, columns: int) -> float:
        return 224.0 * width  # of them 192 for three vectors of rows in a node

    def _flops(self, density: float) -> float:
        return sum(tree.flops(density) for tree in self.trees_)

    def _about(self) -> str:
        return f"{len(self.trees_)} trees, degree {self.degrees_[0]} to {self.degrees_[-1]}"

    def _highest_power(self) -> int:
        return int(max(self.degrees_, default=1))

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        gaussian = isinstance(self.kernel_, Gaussian)
        last = 0.0 if isinstance(self.kernel_, Gaussian) else math.sqrt(self.kernel_.coef0)
        scale = cast_once(self, X.dtype, _scale_of, self.kernel_, self.n_features_in_)
        if not isinstance(X, np.ndarray) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        for tree in self.trees_:
            tree.write(X, scale, last, gaussian, out)


def _scale_of(kernel: Kernel, columns: int, dtype: DTypeLike) -> Floats:
    return contiguous(np.broadcast_to(kernel.scale(), (columns,)), dtype)


def _squares(X: Rows, scale: float | Doubles) -> Doubles:
    """Return the squared norms of scaled rows."""
    factors = np.square(np.broadcast_to(scale, (X.shape[1],)).astype(np.float64))
    squares: Doubles
    if isinstance(X, np.ndarray):
        squares = np.einsum("ij,ij,j->i", X, X, factors, dtype=np.float64)
    else:
        squares = np.asarray(X.multiply(X) @ factors, dtype=np.float64).ravel()
    return squares


def _share(top: float, middle: float, width: int) -> tuple[list[int], list[int]]:
    """Choose the degrees of the Gaussian, and split the columns by exp(-r^2) r^2N / N!.

    `top` and `middle` are the largest and the mean squared norm.
    """
    last = 0
    while last < width - 1 and pdtrc(last, top) > _MISSING:
        last += 1
    degrees = np.arange(last + 1)
    logs = degrees * math.log(max(middle, 1e-300)) - gammaln(degrees + 1) + np.log1p(degrees) / 2
    shares = np.exp(logs[1:] - logs[1:].max(initial=-np.inf)) if last else np.zeros(0)
    # Degree 0 is a constant and needs one column; all others have at least one.
    free = width - 1 - last
    ideal = free * shares / shares.sum() if last else shares
    widths = np.floor(ideal).astype(int)
    rest = free - int(widths.sum())
    if last:
        widths[np.argsort(widths - ideal, kind="stable")[:rest]] += 1
    return degrees.tolist(), [1 + (0 if last else free), *(1 + widths).tolist()]
