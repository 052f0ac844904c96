"""Features of Dask collections: fitted in passes over the chunks, and computed lazily."""

import functools
from typing import Any

import numpy as np
from sklearn.base import clone

from gzkcore.rows.dask import DaskSource, map_rows
from gzkcore.rows.sources import type_of
from gzkcore.rows.survey import survey_of

from .fit_rows import fit_features

__all__ = ["fit", "transform"]


def fit(features: Any, X: Any, y: Any = None) -> Any:
    """Fit a feature map to a Dask collection.

    Parameters
    ----------
    features : transformer
        A copy is fitted.
    X : Dask array or data frame of shape (n_samples, n_features)
    y : Dask array, series or data frame, optional
        Targets, for a kernel with a parameter "learn".

    Returns
    -------
    transformer
        The fitted copy. Norms and variance, if the parameters need them, are those of all rows.
        Landmarks and adapted axes, which need the rows themselves, come from a random sample of up
        to 16,384.

    Notes
    -----
    One pass over X computes means and squares, and one or two more the norms. A few kilobytes are
    sent for each chunk, and the sample.

    Examples
    --------
    >>> import dask.array as da
    >>> import gzkcore.features.dask
    >>> X = da.random.default_rng(0).standard_normal((1000, 3), chunks=(100, 3))
    >>> features = gzkcore.features.dask.fit(gzkcore.GegenbauerFeatures(n_components=64), X)
    >>> gzkcore.features.dask.transform(features, X).chunks[1]
    (64,)
    """
    source = DaskSource(X, y)
    return fit_features(clone(features), source, survey_of(source))


def transform(features: Any, X: Any) -> Any:
    """Return the features of a Dask collection as a Dask array, not computed yet.

    Parameters
    ----------
    features : fitted transformer
        Any; for the feature maps of gzkcore the method `transform` does the same.
    X : Dask array or data frame of shape (n_samples, n_features)

    Returns
    -------
    dask.array.Array of shape (n_samples, n_components)
        It has the chunks of X. Learners do not need it: they never hold the features of a whole
        chunk.
    """
    width = getattr(features, "_n_features_out", None)
    if width is None:
        width = len(features.get_feature_names_out())
    return map_rows(functools.partial(_transform, features), X, (width,), type_of(X))


def _transform(features: Any, X: Any) -> Any:
    """Transform a chunk, of a data frame without its names where the features know none."""
    named = hasattr(features, "feature_names_in_") or not hasattr(X, "columns")
    return features.transform(X if named else np.asarray(X))
