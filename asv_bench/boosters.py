"""Gradient boosting of other libraries for `tables.py prediction`, with their defaults.

Each needs its package: lightgbm, xgboost or catboost.
"""

import numpy as np


class Booster:
    """A library's model; categories are text, which each of them takes as categories."""

    def __init__(self, new_model, seed):
        self.new_model, self.seed = new_model, seed

    def fit(self, X, y):
        """Fit to a frame."""
        rows = _with_text(X)
        self.model = self.new_model(list(rows.select_dtypes("category")), self.seed).fit(rows, y)
        return self

    def predict(self, X):
        """Return numbers or labels."""
        return np.ravel(self.model.predict(_with_text(X)))


class Classifier(Booster):
    """The same for labels, as their numbers, which XGBoost asks for; with their probabilities."""

    def fit(self, X, y):
        """Fit to a frame."""
        self.classes_, places = np.unique(y, return_inverse=True)
        return super().fit(X, places)

    def predict(self, X):
        """Return labels."""
        return self.classes_[super().predict(X)]

    def predict_proba(self, X):
        """Return a column for each label."""
        return self.model.predict_proba(_with_text(X))


def lightgbm(kind, **settings):
    """Return what makes LightGBM's Regressor or Classifier."""

    def new(_, seed):
        import lightgbm

        return getattr(lightgbm, f"LGBM{kind}")(random_state=seed, verbose=-1, **settings)

    return new


def xgboost(kind):
    """Return what makes XGBoost's."""

    def new(_, seed):
        import xgboost

        return getattr(xgboost, f"XGB{kind}")(random_state=seed, enable_categorical=True)

    return new


def catboost(kind):
    """Return what makes CatBoost's, which wants the names of categories."""

    def new(categories, seed):
        import catboost

        return getattr(catboost, f"CatBoost{kind}")(
            random_seed=seed, cat_features=categories, verbose=False, allow_writing_files=False
        )

    return new


def _with_text(frame):
    """Return the frame with categories that are text."""
    text = {
        name: frame[name].cat.rename_categories(str) for name in frame.select_dtypes("category")
    }
    return frame.assign(**text)
