"""Logistic regression with the whole kernel: classes with their probabilities."""

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from gzkcore._util.typing import Data, Doubles, Seed
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.general import KernelFunction
from gzkcore.passes.streams import map_rows
from gzkcore.rows.sources import is_source
from gzkcore.solve.losses import Logistic, Loss, Softmax

from .classification import Classifier
from .kernel_losses import KernelLoss

__all__ = ["KernelLogisticRegression"]


class KernelLogisticRegression(Classifier, KernelLoss):
    """Logistic regression with the whole kernel: classes with their probabilities.

    Minimises sum_i w_i log(1 + exp(-y_i f_i)) + alpha / 2 |f|^2 for two classes y = +-1, and sum_i
    w_i (log sum_c exp(f_ic) - f_iy) + alpha / 2 sum_c |f_c|^2 for more (softmax).

    Parameters
    ----------
    kernel, preconditioner, tol, max_iter, random_state
        As for `KernelPoissonRegressor`.
    alpha : float, default=1.0
        > 0, the weight of the penalty: 1 / C of scikit-learn.
    fit_intercept : bool, default=True
        Whether each f has an intercept, which is not penalised. With it, probabilities far from the
        data tend to typical values.
    class_weight : dict, "balanced" or None, default=None
        As for `KernelRidgeClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        One vector for two classes. With more classes the columns sum to 0.
    intercept_ : float or ndarray of shape (n_classes,)
    X_fit_, kernel_, n_iter_, residual_, converged_
        As for `KernelPoissonRegressor`.

    See Also
    --------
    KernelRidgeClassifier : One linear system instead of about six, without probabilities.
    KernelClassifier : Chooses everything, and calibrates a ridge regression.
    sklearn.linear_model.LogisticRegression : Linear f.

    Notes
    -----
    Newton's method for all classes together: the classes share the products with the kernel matrix,
    and each class has a preconditioner in each step.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import KernelLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (500, 1))
    >>> y = rng.random(500) < 0.5 + 0.4 * np.sin(4 * X[:, 0])
    >>> model = KernelLogisticRegression(alpha=0.1).fit(X, y)
    >>> bool(abs(model.predict_proba([[0.4]])[0, 1] - 0.9) < 0.05)
    True
    """

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "gaussian",
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        class_weight: Any = None,
        preconditioner: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: Seed = None,
    ) -> None:
        super().__init__(
            kernel=kernel, alpha=alpha, fit_intercept=fit_intercept, preconditioner=preconditioner,
            tol=tol, max_iter=max_iter, random_state=random_state,
        )  # fmt: skip
        self.class_weight = class_weight

    def _loss(self) -> Loss:
        return Logistic() if len(self.classes_) == 2 else Softmax()

    def _summands(self, X: Any, y: Doubles, sample_weight: Any) -> tuple[Any, Doubles, Any]:
        X, y, weight = super()._summands(X, y, sample_weight)
        if weight is not None:
            positive = y[weight > 0]
            there = (positive > 0).any(axis=0)
            if y.ndim == 1:
                there = np.array([(positive < 0).any(), there])
            if positive.size and not there.all():
                missing = self.classes_[~there].tolist()[0]
                raise ValueError(
                    f"class {missing!r} has no row of positive weight; leave out its rows, or give "
                    "them a weight"
                )
        return X, y, weight

    def predict_proba(self, X: Data) -> Any:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            For an iterable of batches, an iterator of these; for a Dask collection, a Dask array.
        """
        return self._of_decision(X, "predict_proba", expit, softmax)

    def predict_log_proba(self, X: Data) -> Any:
        """Predict the logarithm of the probability of each class, see `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
        """
        return self._of_decision(X, "predict_log_proba", log_expit, log_softmax)

    def _of_decision(self, X: Data, method: str, of_two: Any, of_more: Any) -> Any:
        self._check_fitted()
        if is_source(X):
            return map_rows(getattr(self._for_workers(), method), X, (len(self.classes_),))
        f = self.decision_function(X)
        return np.column_stack([of_two(-f), of_two(f)]) if f.ndim == 1 else of_more(f, axis=1)
