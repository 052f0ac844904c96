"""The average gradient outer product of a fitted model: which columns matter, alone and together.

M = mean over rows of sum_q grad f_q grad f_q^T. Its diagonal says how quickly the model changes
with each column; its eigenvectors say along which directions. Recursive feature machines use it as
a metric, see `learn_kernel`. It is a sum over rows, which may come in any batches.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Data, Doubles
from gzkcore._util.validation import check_same_class, check_weights, dense, raise_not_finite
from gzkcore._util.wording import counted
from gzkcore.features.nystrom import NystromFeatures
from gzkcore.kernels.slopes import gradients
from gzkcore.passes.streams import reduced
from gzkcore.passes.tiles import as_rows
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import Batch, has_rows, in_batch, is_source
from gzkcore.rows.survey import without_zeros

from .kernel_losses import KernelPoissonRegressor
from .whole_kernel import WholeKernel

__all__ = ["GradientAccumulator", "average_gradient_outer_product"]

# Gradients of at most so many rows are in memory at a time.
ROWS = 4096
# The step of a difference is this share of a column's range, about the cube root of eps: the error
# of the formula grows with its square, that of rounding with its inverse.
STEP = 2e-6
# No step is smaller than so many units in the last place of the column's largest number.
LEAST_STEP = 64


class GradientAccumulator:
    """Sum gradient outer products of a model over rows that come in any batches.

    Parameters
    ----------
    model : fitted regressor or classifier, or callable
        As for `average_gradient_outer_product`.
    diagonal : bool, default=False
        Sum only the squares of derivatives.

    Attributes
    ----------
    sums : ndarray of shape (n_features, n_features) or (n_features,), or None
        Weighted sums over rows; None before the first.
    total : float
        Sum of the weights.

    Notes
    -----
    The step of a difference is a share of the column's range in the first rows that are added. For
    a single row, or a constant column, it is a share of the value.

    Examples
    --------
    >>> from gzkcore.learn.agop import GradientAccumulator
    >>> halves = [GradientAccumulator(lambda X: X @ [1.0, 2.0]) for _ in range(2)]
    >>> for half, rows in zip(halves, ([[0.0, 0.0]], [[1.0, 5.0]])):
    ...     _ = half.update(rows)
    >>> halves[0].merge(halves[1]).finalize().round(6)
    array([[1., 2.],
           [2., 4.]])
    """

    def __init__(self, model: Any, diagonal: bool = False) -> None:
        self.model, self.diagonal = model, diagonal
        self.sums: Doubles | None = None
        self.total = 0.0
        self._steps: Any = None

    def update(self, X: Data, sample_weight: ArrayLike | None = None) -> "GradientAccumulator":
        """Add the rows of a batch, and return self.

        Parameters
        ----------
        X, sample_weight
            As for `GramAccumulator.update`.
        """
        X, weight = _used(X, sample_weight)
        sums = np.zeros(X.shape[1] if self.diagonal else (X.shape[1], X.shape[1]))
        if self.sums is not None:
            _check_columns(sums, self.sums)
        if self._steps is None and X.shape[0]:
            self._steps = _steps(_extremes(X))
        for rows in _tiles(X):
            tile = _doubles(X[rows])
            slopes = exact_gradients(self.model, tile)  # (n_rows, n_targets, n_features)
            if slopes is None:
                slopes = self._differences(tile)
            if weight is not None:
                slopes *= np.sqrt(weight[rows])[:, None, None]
            slopes = slopes.reshape(-1, X.shape[1])
            with limit_blas(1):  # whose bits depend on its threads
                sums += np.square(slopes).sum(axis=0) if self.diagonal else slopes.T @ slopes
        self.sums = sums if self.sums is None else self.sums + sums
        self.total += float(X.shape[0] if weight is None else weight.sum())
        return self

    def merge(self, other: "GradientAccumulator") -> "GradientAccumulator":
        """Add the rows of another accumulator of the same model, and return self."""
        check_same_class(self, other)
        if other.sums is not None:
            if self.sums is not None:
                _check_columns(other.sums, self.sums)
            self._steps = other._steps if self._steps is None else self._steps
            self.sums = other.sums.copy() if self.sums is None else self.sums + other.sums
            self.total += other.total
        return self

    def finalize(self) -> Doubles:
        """Return the average over the rows."""
        if self.sums is None or not self.total:
            raise ValueError("there are no rows of positive weight yet; call update(X) first")
        return self.sums / self.total

    def _differences(self, X: Doubles) -> Doubles:
        predict, columns = _predictor(self.model), []
        for column, step in enumerate(self._steps.tolist()):
            low, high = X.copy(), X.copy()
            low[:, column] -= step
            high[:, column] += step
            width = high[:, column] - low[:, column]  # exact in floating point
            columns.append((predict(high) - predict(low)) / width[:, None])
        return np.stack(columns, axis=2)


def average_gradient_outer_product(
    model: Any, X: Data, sample_weight: ArrayLike | None = None, *, diagonal: bool = False
) -> Doubles:
    """Return the average gradient outer product (AGOP) of a model: mean of grad f grad f^T.

    Parameters
    ----------
    model : fitted regressor or classifier, or callable
        Any estimator with `predict`, or, for classes, `decision_function`; or a function of rows.
        Outer products are summed over several targets.
    X : array-like or sparse matrix of shape (n_samples, n_features), or a source
        The rows to average over. A source (batches, Dask) is read once, or twice if derivatives are
        approximated by differences. For an iterator the ranges of the columns are those of its
        first batch.
    sample_weight : array-like of shape (n_samples,), optional
        Weights >= 0. The weights of a source come with its batches.
    diagonal : bool, default=False
        Return only the diagonal: for each column the mean square of the derivative.

    Returns
    -------
    ndarray of shape (n_features, n_features) or (n_features,)
        In units of the target squared over those of the columns: multiply by their standard
        deviations to compare columns.

    Notes
    -----
    Models with the whole kernel (such as `KernelRidge`) and models on `NystromFeatures` are
    differentiated exactly, if the kernel has lengthscales or depends on dot products. That takes n
    m values of the kernel and n m d multiply-adds for n rows, d columns, and m rows or landmarks of
    the model. At equal rows a kernel with a kink has the slope 0. Other models are differentiated
    by central differences of 2e-6 of a column's range, with 2 d predictions of all rows; they must
    be smooth and compute in double precision. At most 4,096 rows are held in memory.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit, Belkin, Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models, Science 383 (2024).

    Examples
    --------
    A sine of the sum of two columns depends on one direction only:

    >>> import numpy as np
    >>> from gzkcore import KernelRidge, average_gradient_outer_product
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    >>> model = KernelRidge("gaussian", 1e-3).fit(X, np.sin(X[:, 0] + X[:, 1]))
    >>> M = average_gradient_outer_product(model, X)
    >>> direction = np.linalg.eigh(M)[1][:, -1]
    >>> np.abs(direction).round(1)
    array([0.7, 0.7, 0. ])
    """
    if not is_source(X):
        return GradientAccumulator(model, diagonal).update(X, sample_weight).finalize()
    source = as_source(X, None, sample_weight)
    if source.reread:
        steps = None
        if _by_differences(model):
            steps = _steps(source.reduce(_extremes_of_batch, _widest))
        return np.asarray(reduced(source, _of_batch, _merged, model, diagonal, steps).finalize())
    total = GradientAccumulator(model, diagonal)  # all batches with the steps of the first
    for number, (rows, _, weight) in enumerate(source):
        if has_rows(rows):
            with in_batch(number):
                total.update(rows, weight)
    if total.sums is None:
        raise ValueError("the source yields no batches; pass a source with one or more")
    return total.finalize()


def _of_batch(batch: Batch, model: Any, diagonal: bool, steps: Any) -> GradientAccumulator:
    accumulator = GradientAccumulator(model, diagonal)
    accumulator._steps = steps
    return accumulator.update(batch.X, batch.sample_weight)


def _merged(parts: Sequence[GradientAccumulator]) -> GradientAccumulator:
    total = GradientAccumulator(parts[0].model, parts[0].diagonal)
    for part in parts:
        total.merge(part)
    return total


def exact_gradients(model: Any, X: Doubles) -> Doubles | None:
    """Return the gradients of a model's predictions, None unless they are sums of kernel values."""
    expansion = _expansion(model)
    slopes = None if expansion is None else gradients(expansion[0], X, *expansion[1:])
    if slopes is not None and hasattr(model, "trend_coef_"):
        slopes += model.trend_coef_.reshape(X.shape[1], -1).T
    if slopes is not None and isinstance(model, KernelPoissonRegressor):
        slopes *= model._predict(X, False)[0][:, :, None]  # exp' is exp
    return slopes


def _by_differences(model: Any) -> bool:
    """Say whether a model has no exact gradients."""
    expansion = _expansion(model)
    return expansion is None or gradients(expansion[0], expansion[1][:1], *expansion[1:]) is None


def _tiles(X: Any) -> list[slice]:
    return [slice(start, start + ROWS) for start in range(0, X.shape[0], ROWS)]


def _doubles(X: Any) -> Doubles:
    return np.asarray(dense(X), dtype=np.float64)


def _extremes(X: Any) -> Doubles:
    """Return the least and the largest value of each column; without rows, inf and -inf."""
    if not X.shape[0]:
        return np.repeat([[np.inf], [-np.inf]], X.shape[1], axis=1)
    return np.array([_doubles(ends).ravel() for ends in (X.min(axis=0), X.max(axis=0))])


def _extremes_of_batch(batch: Batch) -> Doubles:
    return _extremes(_used(batch.X, batch.sample_weight)[0])


def _used(X: Any, sample_weight: Any) -> tuple[Any, Doubles | None]:
    """Return the rows of positive weight, and their weights."""
    X = as_rows(X)
    X, weight, _ = without_zeros(X, check_weights(sample_weight, X))
    raise_not_finite(X)
    return X, weight


def _widest(parts: Sequence[Doubles]) -> Doubles:
    for part in parts[1:]:
        _check_columns(part, parts[0])
    low, high = zip(*parts, strict=True)
    return np.array([np.min(low, axis=0), np.max(high, axis=0)])


def _steps(extremes: Doubles | None) -> Doubles | None:
    """Return the step of each column, large enough to change every value; None without rows."""
    if extremes is None or not np.isfinite(extremes).all():
        return None
    low, high = extremes
    largest = np.abs(extremes).max(axis=0)
    size = np.where(high > low, STEP * high - STEP * low, STEP * largest)
    return np.asarray(np.maximum(np.where(size > 0, size, STEP), LEAST_STEP * np.spacing(largest)))


def _check_columns(new: Doubles, earlier: Doubles) -> None:
    """Raise unless both have one value for each of the same number of columns."""
    if new.shape != earlier.shape:
        raise ValueError(
            f"X has {counted(new.shape[-1], 'column')}, but earlier rows had {earlier.shape[-1]}; "
            "give rows with the same columns"
        )


def _expansion(model: Any) -> tuple[Any, Doubles, Doubles] | None:
    """Return kernel, points and coefficients of a model that is a sum of kernel values."""
    if isinstance(model, WholeKernel):
        check_is_fitted(model)
        points = _doubles(model.X_fit_)
        return model.kernel_, points, model.dual_coef_.reshape(len(points), -1)
    features = getattr(model, "features_", None)
    if isinstance(features, NystromFeatures) and hasattr(model, "coef_"):
        coef = np.atleast_2d(model.coef_)[:, : features.root_.shape[1]]
        points = np.asarray(features.landmarks_, dtype=np.float64)
        return features.kernel_, points, features.root_ @ coef.T
    return None


def _predictor(model: Any) -> Callable[[Doubles], Doubles]:
    """Return the model's predictions as a function of rows, of shape (n_rows, n_targets)."""
    names = ("decision_function", "predict")
    predict = next((getattr(model, name) for name in names if hasattr(model, name)), model)
    if not callable(predict):
        raise TypeError(f"model={model!r} has no predict; pass a fitted model, or a function")

    return lambda X: np.asarray(predict(X), dtype=np.float64).reshape(len(X), -1)
