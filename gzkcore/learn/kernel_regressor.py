"""Regression on a table with a learned kernel: `fit` chooses every setting."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin

from gzkcore._util.state import doubles, flag, stored
from gzkcore._util.typing import Data, Doubles
from gzkcore._util.validation import check_targets

from .kernel_search import Candidate, Trials
from .table_learner import NORMAL_95, Form, TableLearner

__all__ = ["KernelRegressor"]

LEAST_WIDENING, MOST_WIDENING = 0.2, 5.0  # a choice


class KernelRegressor(MultiOutputMixin, RegressorMixin, TableLearner):
    """Regression on a table with a learned kernel: `fit` chooses every setting.

    Columns are encoded (numbers standardised, categories as zeros and ones, missing values imputed,
    latitude and longitude as points of the globe); a Matern kernel with one length per column is
    learned; its smoothness, its lengths, alpha, and whether the whole kernel, centres or features
    are used, are chosen by rows held out and by what they cost.

    Parameters
    ----------
    budget : float, optional
        > 0, about how many seconds the final fit may take; None: 600. The choice before it takes 5
        to 60 s more, whatever the number of rows.
    missing : {"impute", "raise"}, default="impute"
        What to do with missing values, see `TableEncoder`.
    cv : int, splitter or iterable, optional
        How rows are held out for the choice: a number of folds, a splitter of scikit-learn
        (`TimeSeriesSplit`, `GroupKFold` ...), or an iterable of (rows to fit to, rows held out).
        None: a fifth of the rows once, of fewer than 1,000 rows five folds; groups are kept
        together where `fit` is told of them. Splitters see all rows in the order given, with y and
        groups; of long splits the choice takes some rows at random.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    report_ : Report
        What was tried and chosen, and why; print it.
    kernel_ : Kernel or None
        The kernel, of the encoded columns; None if the mean is predicted.
    alpha_ : float or None
    model_ : KernelRidge, RandomFeatureRidgeCV or None
        The fitted model, of encoded columns and standardised targets.
    encoder_ : TableEncoder
    feature_importances_ : ndarray of shape (n_features_in_,)
        The share of each column in the sum of variance / length^2: how quickly the function changes
        with it, in units of its spread. The encoded columns of a category are summed; latitude and
        longitude share theirs.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X has names of columns.

    See Also
    --------
    KernelClassifier : The same for labels.
    KernelRidge, RandomFeatureRidgeCV, learn_kernel, TableEncoder : The parts, one by one.

    Notes
    -----
    Nothing but the encoding, the final fit and predictions depends on the number of rows. Time of
    the final fit: that of `KernelRidge`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gzkcore import KernelRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = KernelRegressor(random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:3], return_std=True)
    >>> mean.shape, std.shape
    ((3,), (3,))
    """

    _state = stored(
        widening=doubles("t", least=0).kept_as("_widening"),
        constant_std=doubles("t", least=0).kept_as("_constant_std"),
        flat=flag().kept_as("_flat"),
    )

    def fit(
        self,
        X: Data,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the regression.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Not negative; a row of weight 2 counts as two rows.
        groups : array-like of shape (n_samples,), optional
            Rows of a group are held out together, or fitted to together.

        Returns
        -------
        self
        """
        self._forget()
        if y is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: KernelRegressor needs targets"
            )
        targets = np.asarray(check_targets(y, X))
        self._flat = targets.ndim == 1
        targets = targets.reshape(len(targets), -1)
        self._widening = self._constant_std = np.ones(targets.shape[1])
        self._fit_table(X, targets, None, sample_weight, groups)
        return self

    def _calibrate(self, trials: Trials, best: Candidate, form: Form) -> None:
        """Let 95 % of the rows held out be within 1.96 standard deviations of their predictions."""
        errors, deviations = [], []
        for mean, std, held_out in trials.predictions(best, form.trial, return_std=True):
            errors.append(mean - trials.Y[held_out])
            deviations.append(np.ones_like(mean) if std is None else std)
        found = widening(np.concatenate(errors), np.concatenate(deviations))
        self._widening = np.clip(found, LEAST_WIDENING, MOST_WIDENING)
        trials.report.say(
            f"Standard deviations are those of the model times {listed(self._widening)}, so that "
            "95 % of the held-out rows are within 1.96 of them."
        )

    def predict(self, X: Data, return_std: bool = False) -> Any:
        """Predict the targets.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        return_std : bool, default=False
            Also return the standard deviation of a new observation: 95 % of the rows held out were
            within 1.96 of them of their predictions. Where the mean is predicted it is the same
            everywhere.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape
            Only if `return_std` is True.
        """
        rows = self._encoded(X)
        mean = self._mean(rows)
        shape = mean.shape[:1] if self._flat else mean.shape
        if not return_std:
            return mean.reshape(shape)
        # Models on centres knew none in the first versions, of which there may be files.
        if self.model_ is None or getattr(self.model_, "_scale", self) is None:
            std = np.tile(self._constant_std * self._scales, (len(mean), 1))
        else:
            _, std = self.model_.predict(rows, return_std=True)
            std = std.reshape(mean.shape) * self._widening * self._scales
        return mean.reshape(shape), std.reshape(shape)


def widening(errors: Doubles, deviations: Doubles) -> Doubles:
    """Return by what standard deviations are multiplied, so that 95 % of errors are within 1.96.

    Of each of several columns. A target that is constant has neither.
    """
    units = np.divide(np.abs(errors), deviations, out=np.zeros_like(errors), where=deviations > 0)
    found: Doubles = np.quantile(units, 0.95, axis=0) / NORMAL_95
    return found


def listed(values: Doubles) -> str:
    """Return numbers for a sentence."""
    return ", ".join(f"{value:.2f}" for value in values)
