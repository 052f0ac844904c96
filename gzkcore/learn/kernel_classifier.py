"""Classification on a table with a learned kernel: `fit` chooses every setting."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from gzkcore._util.state import doubles, labels, stored
from gzkcore._util.typing import Data, Doubles

from .classification import distinct, places_of
from .kernel_search import Candidate, Trials
from .table_learner import Form, TableLearner

__all__ = ["KernelClassifier"]

TINY = np.finfo(np.float64).tiny


class KernelClassifier(ClassifierMixin, TableLearner):
    """Classification on a table with a learned kernel: `fit` chooses every setting.

    As `KernelRegressor`, of targets +1 and -1 for each class; the probabilities are a logistic
    regression on the predictions of rows held out.

    Parameters
    ----------
    budget, missing, cv, random_state
        As for `KernelRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    report_, kernel_, alpha_, model_, encoder_, feature_importances_, n_features_in_
        As for `KernelRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gzkcore import KernelClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelClassifier(random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    _state = stored(
        classes_=labels("c"),
        slopes=doubles("t", "t").kept_as("_slopes"),
        offsets=doubles("t").kept_as("_offsets"),
    )

    def fit(
        self,
        X: Data,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the classification.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels, numbers or text.
        sample_weight, groups
            As for `KernelRegressor.fit`.

        Returns
        -------
        self
        """
        self._forget()
        if y is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: KernelClassifier needs labels"
            )
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        self.classes_, places = distinct(labels)
        check_classification_targets(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class, {self.classes_.tolist()}, and a classifier needs two or more; "
                "pass rows of other classes too"
            )
        targets = 2.0 * (places[:, None] == np.arange(len(self.classes_))) - 1.0
        if len(self.classes_) == 2:
            targets = targets[:, 1:]
        # Until rows held out say better: log odds of a target +-1 that is its mean.
        self._slopes, self._offsets = 2.0 * np.eye(targets.shape[1]), np.zeros(targets.shape[1])
        self._fit_table(X, targets, places, sample_weight, groups)
        if self.model_ is None:
            shares = (self._means + 1) / 2  # of the classes, by weight
            odds = shares if shares.size > 1 else shares / np.maximum(1 - shares, TINY)
            self._slopes, self._offsets = 0 * self._slopes, np.log(np.maximum(odds, TINY))
        return self

    def _calibrate(self, trials: Trials, best: Candidate, form: Form) -> None:
        """Fit a logistic regression to the predictions of the rows held out."""
        values, places, weights = [], [], []
        for mean, _, held_out in trials.predictions(best, form.trial, return_std=False):
            values.append(mean * self._scales + self._means)
            places.append(places_of(trials.Y[held_out] * self._scales + self._means))
            weights.append(
                np.ones(len(held_out)) if trials.weight is None else trials.weight[held_out]
            )
        found, truth = np.concatenate(values), np.concatenate(places)
        wrong = 100 * np.mean(places_of(found) != truth)
        trials.report.say(f"The error rate on held-out rows is {wrong:.1f} %.")
        if len(np.unique(truth)) == len(self.classes_):
            logistic = LogisticRegression(C=100.0, max_iter=1000)
            logistic.fit(found, truth, np.concatenate(weights))
            self._slopes, self._offsets = logistic.coef_, logistic.intercept_

    def decision_function(self, X: Data) -> Doubles:
        """Return the logarithms of the classes' probabilities, but for a constant.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of two classes, positive for the second.
        """
        found = self._mean(self._encoded(X)) @ self._slopes.T + self._offsets
        return found[:, 0] if found.shape[1] == 1 else found

    def predict(self, X: Data) -> NDArray[Any]:
        """Predict the class of each row: the most probable.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        return self.classes_[places_of(scores)]

    def predict_proba(self, X: Data) -> Doubles:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        return np.asarray(softmax(scores, axis=1))
