"""Features of product kernels, such as sphere x time: outer products of the features of the parts.

k((x, s), (y, t)) = k1(x, y) k2(s, t). Each part has an exact basis (`GegenbauerFeatures` with
basis="harmonic"), and the products of their columns are an exact basis of the product kernel:

    z_c(x, s) = a_p(x) b_q(s),    c = (p, q).

Only products of large energy matter. The energy (mean square) of a product is the product of the
energies, so that most of the outer product is never formed.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._compiled import product as _product
from gzkcore._util.random import check_seed, generator
from gzkcore._util.state import doubles, holds, ints, nothing, number, sequence, stored, text, whole
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats, Integers, Rows, Seed
from gzkcore._util.validation import as_floats, check_choice, check_integer, dense
from gzkcore._util.warn import collected_warnings
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.product import Parts, Product, WithParts

from .base import STREAM_BYTES, RowMap, check_unit, tiles
from .fit_rows import FitRows
from .gegenbauer import GegenbauerFeatures
from .gegenbauer_layout import INTERPOLATION_ERROR
from .principal_axes import (
    CHOICE,
    WIDER,
    error_on_sample,
    principal_axes,
    rows_for_errors,
    strongest_columns,
)

__all__ = ["ProductFeatures", "product_columns", "product_features"]

Basis: TypeAlias = Literal["auto", "harmonic", "adapted"]
BASES: tuple[Basis, ...] = get_args(Basis)

# Columns of a part at first; it is made wider if more are needed.
_FIRST_WIDTH = 256


def product_columns(energies: Sequence[ArrayLike], n_components: int) -> Integers:
    """Choose the columns of a product: the largest products of the parts' energies.

    Parameters
    ----------
    energies : sequence of K arrays of shape (n_columns_k,)
        energies[k][p] >= 0 is the mean square of column p of part k. Mean squares multiply where
        the parts are independent.
    n_components : int
        Largest number of columns to choose.

    Returns
    -------
    ndarray of int of shape (n_chosen, K)
        Row c holds the column of each part. The largest product comes first; equal products are in
        lexicographic order. Products that are 0 are left out, so that there may be fewer than
        n_components.

    Notes
    -----
    The parts are joined one by one, each time with the n_components largest products so far: any
    other would have that many larger ones at the end, too. A heap compares F log F pairs.

    Examples
    --------
    >>> from gzkcore.features.product import product_columns
    >>> product_columns([[4.0, 1.0], [3.0, 2.0]], 3)  # 12, 8, 3 and, not taken, 2
    array([[0, 0],
           [0, 1],
           [1, 0]])
    """
    n_components = check_integer("n_components", n_components, 1)
    chosen, product = np.zeros((1, 0), dtype=np.intp), np.ones(1)
    for k, values in enumerate(energies):
        energy = np.asarray(values, dtype=np.float64)
        if energy.ndim != 1 or not (np.isfinite(energy) & (energy >= 0)).all():
            raise ValueError(
                f"energies[{k}]={values!r} must be a list of finite numbers >= 0, one for each "
                "column of the part"
            )
        order = np.argsort(-energy, kind="stable")[:n_components]
        size = min(n_components, product.size * order.size)
        products, columns = np.empty(size), np.empty((size, k + 1), dtype=np.intp)
        work = np.empty((2, product.size), dtype=np.intp)
        count = _product.product_columns(
            product, chosen, energy[order], order, work, products, columns
        )
        product, chosen = products[:count], columns[:count]
    return chosen


def product_features(parts: Sequence[ArrayLike], columns: ArrayLike) -> Floats:
    """Multiply chosen columns of the parts, row by row: z_c(x) = prod_k parts[k][i][columns[c][k]].

    Parameters
    ----------
    parts : sequence of K array-likes of shape (n, n_columns_k)
        float32 is kept where all are, everything else becomes float64.
    columns : array-like of int of shape (n_chosen, K)
        As `product_columns` chooses them.

    Returns
    -------
    ndarray of shape (n, n_chosen)

    Notes
    -----
    Cost: two multiplications for each output, and one for each product that outputs share. Each
    multiplication rounds once.

    Examples
    --------
    >>> from gzkcore.features.product import product_features
    >>> product_features([[[1.0, 2.0]], [[3.0, 5.0]]], [(0, 0), (1, 1)])
    array([[ 3., 10.]])
    """
    arrays = [as_floats(f"parts[{k}]", part) for k, part in enumerate(parts)]
    dtype = np.result_type(*arrays) if arrays else np.float64
    arrays = [part.astype(dtype, copy=False) for part in arrays]
    if not arrays or any(part.ndim != 2 or len(part) != len(arrays[0]) for part in arrays):
        raise ValueError(
            f"parts have the shapes {[part.shape for part in arrays]}; pass one matrix or more, "
            "with equally many rows"
        )
    widths = [part.shape[1] for part in arrays]
    index = np.asarray(columns, dtype=np.intp).reshape(-1, len(arrays))
    if ((index < 0) | (index >= widths)).any():
        raise ValueError(f"columns must be within the parts, which have {widths} columns")
    A = np.ascontiguousarray(np.concatenate(arrays, axis=1))
    out = np.empty((A.shape[0], index.shape[0]), dtype=A.dtype)
    _multiply(A, *_plan(index, widths), out, out.nbytes > STREAM_BYTES)
    return out


def _plan(index: Integers, widths: Sequence[int]) -> tuple[Integers, Integers]:
    """Return shared products of K - 2 columns, and three factors of each output.

    Entry 0 is the number 1, followed by the columns of all parts and the products.
    """
    first = 1 + np.concatenate([[0], np.cumsum(widths)[:-1]])
    entries = (index + first).astype(np.intp)
    n_parts = entries.shape[1]
    if n_parts < 3:
        columns = np.zeros((entries.shape[0], 3), dtype=np.intp)
        columns[:, :n_parts] = entries
        return np.zeros((0, 2), dtype=np.intp), columns
    base, tree = 1 + sum(widths), dict[tuple[int, int], int]()
    heads = entries[:, 0].tolist()
    for k in range(1, n_parts - 2):
        pairs = zip(entries[:, k].tolist(), heads, strict=True)
        heads = [tree.setdefault(pair, base + len(tree)) for pair in pairs]
    nodes = np.array(list(tree), dtype=np.intp).reshape(-1, 2)
    # In this order products are taken from left to right, as in the definition.
    columns = np.column_stack([entries[:, -2], heads, entries[:, -1]]).astype(np.intp)
    return nodes, columns


def _multiply(A: Floats, tree: Integers, columns: Integers, out: Floats, stream: bool) -> None:
    _product.product_features(A, tree, columns, out, stream, n_threads(2 * out.size))


def _entries(of: Any) -> int:
    """Count the entries of products: 1, the columns of the parts, the products."""
    return int(1 + sum(part._n_features_out for part in of.parts_) + len(of._tree))


class ProductFeatures(WithParts, RowMap):
    """Features of a product of kernels on groups of columns, such as sphere x time.

    k(x, y) = prod_k kernel_k(x[columns_k], y[columns_k]). The columns are the products of the exact
    columns of the parts (`GegenbauerFeatures`, basis="harmonic") with the largest energies.

    Parameters
    ----------
    parts : list of (columns, kernel), or a kernel
        Columns: a number, a list of numbers, a slice, or names of columns of a DataFrame. They may
        overlap, and columns in no part are ignored. Kernel: as for `GegenbauerFeatures`. A kernel
        instead of a list makes each column a part with this kernel, such as a Gaussian kernel with
        a lengthscale for every column.
    n_components : int, default=1024
        Width of the output, exactly.
    basis : {"auto", "harmonic", "adapted"}, default="auto"
        "auto" and "harmonic": the products with the largest energies, computed for points whose
        parts are independent and have uniform directions. "adapted": 16 n_components products are
        chosen from and compressed as the harmonics of `GegenbauerFeatures` are.
    tol : float or "auto", default="auto"
        As for `GegenbauerFeatures`.
    random_state : int, RandomState, Generator or None, default=None
        Chooses the rows that basis="adapted" uses, if there are more than it needs.

    Attributes
    ----------
    kernel_ : Product
        The exact kernel, with all parameters as numbers.
    parts_ : list of GegenbauerFeatures
        The fitted parts, no wider than necessary.
    columns_ : ndarray of int of shape (n_products, n_parts)
        The column of each part in each product, largest energy first.
    basis_ : str
        "harmonic" or "adapted".
    n_effective_ : int
        Columns that are not zero.
    truncation_error_ : float
        Largest k(x, x) - |z(x)|^2 over the training rows, which bounds the error between any two
        of them, since the missing part is a positive definite kernel.
    expected_error_ : float
        Root mean square of z(x).z(y) - k(x, y) over the pairs of (at most 512) training rows.

    See Also
    --------
    Product : The kernel by itself.

    Notes
    -----
    In `set_params` and in the `kernel_grid` of `RandomFeatureRidgeCV` the parameters of the kernels
    are called `kernel0__gamma`, `kernel1__gamma`, ...; with one kernel for all columns
    `kernel__gamma`.

    Cost per row: the columns of the parts (about 5 flops each, far fewer than n_components), then 2
    flops for each output; basis="adapted" takes 8 n_components^2, by BLAS. Memory: the output and
    tiles of a few megabytes. The features have no variance.

    Examples
    --------
    Temperature depends on the place (a unit vector) and on the month (a point of a circle):

    >>> import numpy as np
    >>> from gzkcore import Gaussian, ProductFeatures
    >>> rng = np.random.default_rng(0)
    >>> place = rng.standard_normal((200, 3))
    >>> place /= np.linalg.norm(place, axis=1, keepdims=True)
    >>> angle = 2 * np.pi * rng.integers(0, 12, 200) / 12
    >>> X = np.column_stack([place, np.cos(angle), np.sin(angle)])
    >>> features = ProductFeatures([([0, 1, 2], Gaussian(1.0)), ([3, 4], Gaussian(0.2))], 512)
    >>> Z = features.fit_transform(X)
    >>> Z.shape, bool(np.abs(Z @ Z.T - features.kernel_(X)).max() < 1e-5)
    ((200, 512), True)
    """

    _in_tiles = True

    _state = stored(
        parts=Product._state["parts"],
        kernel_=holds(Product),
        _index=sequence(sequence(whole(0, below="n_features_in_")), "k"),
        parts_=sequence(holds(GegenbauerFeatures), "k"),
        columns_=ints("c", "k"),
        _tree=ints(None, 2, dtype=np.int64),
        _factors=ints("c", 3, below=_entries, dtype=np.int64),
        _axes=doubles("c", "_n_features_out") | nothing(),
        basis_=text("harmonic", "adapted"),
        n_effective_=whole(0),
        truncation_error_=number(finite=False),
        expected_error_=number(finite=False),
    )

    _axes: Doubles | None

    def __init__(
        self,
        parts: Parts,
        n_components: int = 1024,
        *,
        basis: Basis = "auto",
        tol: float | Literal["auto"] = "auto",
        random_state: Seed = None,
    ) -> None:
        self.parts = parts
        self.n_components = n_components
        self.basis = basis
        self.tol = tol
        self.random_state = random_state

    @property
    def kernel(self) -> Product:
        """The kernel of the parameters, not resolved."""
        return Product(self.parts)

    def _check_state(self) -> None:
        for part, index in zip(self.parts_, self._index, strict=True):
            if part.n_features_in_ != len(index):
                raise ValueError(f"has a part of {part.n_features_in_} columns, not {len(index)}")
        first = _entries(self) - len(self._tree)
        if (self._tree >= first + np.arange(len(self._tree))[:, None]).any():
            raise ValueError("has products of later products")
        if self._axes is None and len(self._factors) > self._n_features_out:
            raise ValueError(
                f"has {len(self._factors)} products, and room for {self._n_features_out}"
            )

    def _fit(self, rows: FitRows) -> None:
        X, width = rows.X, self._n_features_out
        check_choice("basis", self.basis, BASES)
        check_seed(self.random_state)
        wide = CHOICE * WIDER * width if self.basis == "adapted" else width
        named = Product(self.kernel.parts_of(X.shape[1], rows.names))
        pairs = rows.learned(named).parts
        self._index = [index for index, _ in pairs]
        parts = [rows.part(index) for index in self._index]
        kernels = [part.resolve(kernel) for part, (_, kernel) in zip(parts, pairs, strict=True)]
        self._axes = None
        self._use(*self._fit_parts(parts, kernels, wide))
        self.basis_ = "adapted" if self.basis == "adapted" else "harmonic"
        if self.basis == "adapted":
            self._adapt(X)
        self.kernel_ = Product(list(zip(self._index, kernels, strict=True)))
        self._measure(X)

    def _fit_parts(
        self, rows: list[FitRows], kernels: list[Kernel], wide: int
    ) -> tuple[list[GegenbauerFeatures], Integers]:
        """Fit the parts, each to its columns of the rows, and choose `wide` products.

        Energies decrease: a part is wide enough if its last column is in no product.
        """
        widths = [min(_FIRST_WIDTH, wide)] * len(kernels)
        parts = list(map(self._fit_part, rows, kernels, widths))
        while True:
            energies = [part.column_energies() for part in parts]
            columns = product_columns(energies, wide)
            used = columns.max(axis=0, initial=0) + 1
            narrow = [
                k
                for k, (width, energy) in enumerate(zip(widths, energies, strict=True))
                if (used[k] == width or columns.shape[0] < wide)
                and width == energy.size < wide
                and energy[-1] > 0
            ]
            if not narrow:
                return parts, columns
            for k in narrow:
                widths[k] = min(4 * widths[k], wide)
                with collected_warnings():  # the first fit has warned
                    parts[k] = self._fit_part(rows[k], kernels[k], widths[k])

    def _fit_part(self, rows: FitRows, kernel: Kernel, width: int) -> GegenbauerFeatures:
        part = GegenbauerFeatures(kernel, width, basis="harmonic", tol=self.tol)
        return part.fit_valid(rows)

    def _use(self, parts: list[GegenbauerFeatures], columns: Integers) -> None:
        """Take these products, and narrow the parts to their columns."""
        self.columns_ = columns
        used = columns.max(axis=0, initial=0) + 1
        self.parts_ = [part.narrowed(int(n)) for part, n in zip(parts, used, strict=True)]
        self._tree, self._factors = _plan(columns, used.tolist())

    def _adapt(self, X: Rows) -> None:
        """Choose products by their mean squares on the data, and compress them."""
        width, rng = self._n_features_out, generator(self.random_state)
        if (count := len(self.columns_)) > WIDER * width:
            chosen = strongest_columns(self._products, X, count, WIDER * width, rng)
            self._use(self.parts_, self.columns_[chosen])
        if (count := len(self.columns_)) > width:
            self._axes = principal_axes(self._products, X, count, width, rng)

    def _measure(self, X: Rows) -> None:
        """Set the errors to those on the training rows."""
        worst, squares = 0.0, np.zeros(self._n_features_out)
        for rows in self._tiles(X):
            tile = X[rows]
            Z = np.empty((tile.shape[0], self._n_features_out), dtype=X.dtype)
            self._fill(tile, Z, rows.start, False)
            mine = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
            worst = max(worst, float((self.kernel_.diag(tile) - mine).max()))
            np.maximum(squares, np.abs(Z).max(axis=0), out=squares)
        self.n_effective_ = int(np.count_nonzero(squares))
        self.truncation_error_ = worst + INTERPOLATION_ERROR
        sample = rows_for_errors(X)
        Z = np.empty((sample.shape[0], self._n_features_out), dtype=X.dtype)
        self._fill(sample, Z, 0, False)
        self.expected_error_ = error_on_sample(self.kernel_(dense(sample)), Z)

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        for part, index in zip(self.parts_, self._index, strict=True):
            if part.kernel_.unit_sphere:
                check_unit(X[:, index])
        reach = np.array([[math.inf, 0.0]] * len(self.parts_))
        for rows in self._tiles(X):
            norms = self._fill(X[rows], out[rows], rows.start, stream)
            reach[:, 0] = np.minimum(reach[:, 0], norms.min(axis=1))
            reach[:, 1] = np.maximum(reach[:, 1], norms.max(axis=1))
        for part, (nearest, furthest) in zip(self.parts_, reach.tolist(), strict=True):
            part._warn_outside(nearest, furthest)

    def _tiles(self, X: Rows) -> Iterator[slice]:
        return tiles(X.shape[0], X.dtype.itemsize * self.columns_.shape[0])

    def _fill(self, tile: Rows, out: Floats, first: int, stream: bool) -> Doubles:
        """Write the features of one tile; return the norms of the parts, (n_parts, rows)."""
        if self._axes is not None:
            wide = np.empty((tile.shape[0], self.columns_.shape[0]), dtype=tile.dtype)
            norms = self._fill_products(tile, wide, first, False)
            np.matmul(wide, self._axes.astype(tile.dtype), out=out)
            return norms
        count = self.columns_.shape[0]
        norms = self._fill_products(tile, out[:, :count], first, stream)
        out[:, count:] = 0
        return norms

    def _fill_products(self, tile: Rows, out: Floats, first: int, stream: bool) -> Doubles:
        widths = [part.n_features_out_ for part in self.parts_]
        A = np.empty((tile.shape[0], sum(widths)), dtype=tile.dtype)
        norms = np.empty((len(self.parts_), tile.shape[0]))
        end = 0
        for k, (part, index) in enumerate(zip(self.parts_, self._index, strict=True)):
            unit, norms[k] = part._polar(tile[:, index], first)
            begin, end = end, end + widths[k]
            part._layout.fill(unit, norms[k], A[:, begin:end], False)
        _multiply(A, self._tree, self._factors, out, stream)
        return norms

    def _products(self, tile: Rows) -> Doubles:
        """Return all products of some rows, in double, before they are compressed."""
        out = np.empty((tile.shape[0], self.columns_.shape[0]), dtype=tile.dtype)
        self._fill_products(tile, out, 0, False)
        return out.astype(np.float64, copy=False)
