"""The average gradient outer product of a fitted model: which columns matter, and together.

M = mean over rows of sum_q grad f_q grad f_q^T. Its diagonal says how quickly the model changes
with each column, its eigenvectors along which directions (recursive feature machines take it for a
metric, see `learn_kernel`). Sums over rows are all there is: rows come in any batches.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Data, Doubles
from gzkcore._util.validation import check_weights, dense, raise_not_finite
from gzkcore.features.nystrom import NystromFeatures
from gzkcore.kernels.gradients import gradients
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import Batch, is_source
from gzkcore.rows.survey import without_zeros

from .kernel_ridge import WholeKernel
from .tiles import as_rows

__all__ = ["GradientAccumulator", "average_gradient_outer_product"]

ROWS = 4096  # whose gradients are held at a time
# Differences are over so much of a column's standard deviation, about the cube root of eps: what
# they miss grows with its square, and what rounding adds with its inverse.
STEP = 1e-5

Predict = Callable[[Doubles], Doubles]  # rows to values of shape (n_rows, n_targets)


class GradientAccumulator:
    """Sum gradient outer products of a model over rows that come in any batches.

    Parameters
    ----------
    model : fitted regressor or classifier, or callable
        As for `average_gradient_outer_product`.
    diagonal : bool, default=False
        Sum squares of derivatives alone.

    Attributes
    ----------
    sums : ndarray of shape (n_features, n_features) or (n_features,), or None
        Weighted sums over rows; None before the first.
    total : float
        Sum of the weights.

    Examples
    --------
    >>> from gzkcore.learn.gradients import GradientAccumulator
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
        """Add the rows of a batch.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        X = as_rows(X)
        X, weight, _ = without_zeros(X, check_weights(sample_weight, X))
        raise_not_finite(X)
        sums = np.zeros(X.shape[1] if self.diagonal else (X.shape[1], X.shape[1]))
        if self.sums is not None and self.sums.shape != sums.shape:
            raise ValueError(
                f"X has {X.shape[1]} columns, and the rows before {self.sums.shape[0]}; give rows "
                "of the same columns"
            )
        for start in range(0, X.shape[0], ROWS):
            rows = slice(start, start + ROWS)
            part = np.asarray(dense(X[rows]), dtype=np.float64)
            each = self._gradients(part)
            if weight is not None:
                each *= np.sqrt(weight[rows])[:, None, None]
            each = each.reshape(-1, X.shape[1])
            with limit_blas(1):  # whose bits depend on its threads
                sums += np.square(each).sum(axis=0) if self.diagonal else each.T @ each
        self.sums = sums if self.sums is None else self.sums + sums
        self.total += float(X.shape[0] if weight is None else weight.sum())
        return self

    def merge(self, other: "GradientAccumulator") -> "GradientAccumulator":
        """Add the rows of another accumulator of the same model.

        Returns
        -------
        self
        """
        if other.sums is not None:
            self.sums = other.sums.copy() if self.sums is None else self.sums + other.sums
            self.total += other.total
        return self

    def finalize(self) -> Doubles:
        """Return the average over the rows."""
        if self.sums is None or not self.total:
            raise ValueError("there are no rows of positive weight yet; call update(X) first")
        return self.sums / self.total

    def _gradients(self, X: Doubles) -> Doubles:
        """Return the gradients at rows, of shape (n_rows, n_targets, n_features)."""
        expansion = _expansion(self.model)
        found = None if expansion is None else gradients(expansion[0], X, *expansion[1:])
        return self._differences(X) if found is None else found

    def _differences(self, X: Doubles) -> Doubles:
        if self._steps is None:  # of the first rows
            spread = X.std(axis=0)
            self._steps = STEP * np.where(spread > 0, spread, np.maximum(np.abs(X[:1]), 1.0)[0])
        predict, columns = _predictor(self.model), []
        for column, step in enumerate(self._steps.tolist()):
            low, high = X.copy(), X.copy()
            low[:, column] -= step
            high[:, column] += step
            apart = high[:, column] - low[:, column]  # as it is in floating point
            columns.append((predict(high) - predict(low)) / apart[:, None])
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
        The rows to average over. Of a source (batches, Dask) they are read once.
    sample_weight : array-like of shape (n_samples,), optional
        Not negative; those of a source come with its batches.
    diagonal : bool, default=False
        Return the diagonal alone: the mean square of the derivative by each column.

    Returns
    -------
    ndarray of shape (n_features, n_features) or (n_features,)
        In units of the target squared over those of the columns: multiply by their standard
        deviations to compare columns.

    Notes
    -----
    Whole kernels (`KernelRidge` and its kin) and models on `NystromFeatures` of a kernel with
    lengthscales, or of dot products, are differentiated exactly: n m values of the kernel and
    n m d multiply-adds for n rows, m rows or landmarks of the model and d columns; where rows are
    equal a kernel with a kink has the slope 0. Other models are, by central differences of 1e-5
    standard deviations, in 2 d predictions of all rows; they need to be smooth and to compute in
    double. At most 4,096 rows are held.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit, Belkin, Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models, Science 383 (2024).

    Examples
    --------
    Of a sine in the sum of two columns one direction is all that matters:

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
    found = source.reduce(functools.partial(_of_batch, model, diagonal), _merged)
    if found is None:
        raise ValueError("the source yields no batches; give it one or more")
    average: Doubles = found.finalize()
    return average


def _of_batch(model: Any, diagonal: bool, batch: Batch) -> GradientAccumulator:
    return GradientAccumulator(model, diagonal).update(batch.X, batch.sample_weight)


def _merged(parts: Sequence[GradientAccumulator]) -> GradientAccumulator:
    total = GradientAccumulator(parts[0].model, parts[0].diagonal)
    for part in parts:
        total.merge(part)
    return total


def _expansion(model: Any) -> tuple[Any, Doubles, Doubles] | None:
    """Return kernel, points and coefficients, where a model is a sum of kernel values."""
    if isinstance(model, WholeKernel):
        check_is_fitted(model)
        points = np.asarray(dense(model.X_fit_), dtype=np.float64)
        return model.kernel_, points, model.dual_coef_.reshape(len(points), -1)
    features = getattr(model, "features_", None)
    if isinstance(features, NystromFeatures) and hasattr(model, "coef_"):
        coef = np.atleast_2d(model.coef_)[:, : features.root_.shape[1]]
        points = np.asarray(features.landmarks_, dtype=np.float64)
        return features.kernel_, points, features.root_ @ coef.T
    return None


def _predictor(model: Any) -> Predict:
    names = ("decision_function", "predict")
    predict = next((getattr(model, name) for name in names if hasattr(model, name)), model)
    if not callable(predict):
        raise TypeError(f"model={model!r} has no predict; pass a fitted model, or a function")

    def values(X: Doubles) -> Doubles:
        found = np.asarray(predict(X), dtype=np.float64)
        return found.reshape(len(X), -1)

    return values
