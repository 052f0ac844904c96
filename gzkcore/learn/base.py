"""The base of all learners: their features, their state, their files."""

import copy
import os
import pickle
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import UNUSED

from gzkcore._util.callbacks import CallbackSupportMixin
from gzkcore._util.model_io import save
from gzkcore._util.state import check_mapped, forget, has, holds, nothing, stored
from gzkcore._util.typing import Doubles
from gzkcore._util.validation import check_same_class, check_sparse, validate_data
from gzkcore.features.auto import KernelFeatures
from gzkcore.features.base import plain_output
from gzkcore.rows.sources import is_source

# Sizes of rows, at one of which features differ in any units.
UNITS = 10.0 ** np.array([0, *(sign * power for power in range(3, 31, 3) for sign in (1, -1))])


class Solved:
    """A fitted attribute that is computed at first access, which keeps `partial_fit` cheap."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else model._solved()[self.name]


def new_features(
    features: Any, random_state: Any, name: str = "features", **parameters: Any
) -> Any:
    """Return an unfitted copy of features, with parameters (of the kernel, too) set.

    None stands for `KernelFeatures()`. All parts without a random state get this one.
    """
    if features is None:
        features = plain_output(KernelFeatures())
    elif hasattr(features, "transform") and not isinstance(features, type):
        features = plain_output(clone(features))
    else:
        raise TypeError(
            f"{name}={features!r} is not a transformer; pass an instance such as "
            "GegenbauerFeatures() or sklearn.kernel_approximation.RBFSampler()"
        )
    if random_state is not None:
        states = {
            name: random_state
            for name, value in features.get_params().items()
            if name.split("__")[-1] == "random_state" and value is None
        }
        parameters = states | parameters
    if parameters:
        features.set_params(**parameters)
    return features


def check_same_features(ours: Any, theirs: Any, n_columns: int) -> None:
    """Raise unless fitted features are the same: sums of different features don't add up.

    They are compared at some points that both take, so far apart that features differ there, or
    else as pickles.
    """
    if ours is theirs:
        return
    # Anywhere, then on the unit sphere, without a negative entry.
    anywhere = np.random.default_rng(0).standard_normal((3, n_columns))
    on_sphere = np.abs(anywhere) / np.linalg.norm(anywhere, axis=1, keepdims=True)
    for points in (*(size * anywhere for size in UNITS), on_sphere):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                both = [features.transform(points) for features in (ours, theirs)]
        except ValueError:  # other points are needed
            continue
        a, b = (Z.toarray() if sparse.issparse(Z) else np.asarray(Z) for Z in both)
        largest = np.abs(a[np.isfinite(a)]).max(initial=0.0)
        same = a.shape == b.shape and np.allclose(a, b, atol=1e-8 * largest, equal_nan=True)
        if not same or np.abs(a[1:] - a[0]).max(initial=0.0) > 1e-3 * largest:
            break
    else:
        same = pickle.dumps(ours) == pickle.dumps(theirs)
    if not same:
        raise ValueError(
            "the models have different features, fitted to different rows; fit features once and "
            "pass them to every model, in a sklearn.frozen.FrozenEstimator"
        )


class Learner(CallbackSupportMixin, BaseEstimator):
    """Base of all learners.

    `_state` declares the fitted attributes, see `model_io`: files and checkpoints keep them, and
    the next fit forgets them.
    """

    random_state: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _forget(self) -> None:
        """Go back to before the first fit."""
        self._outdate()
        forget(self)

    def _outdate(self) -> None:
        """Drop results that were computed from fitted attributes, before these change."""

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with "
                "appropriate arguments before using this estimator."
            )
        check_mapped(self)

    def __sklearn_is_fitted__(self) -> bool:
        raise NotImplementedError

    def _rows(self, X: Any, y: Any, sample_weight: Any, reset: bool = False) -> Any:
        """Check rows, of the first batch with `reset`: return X, y and their weights."""
        raise NotImplementedError

    def _columns(self, X: Any, reset: bool = False) -> Any:
        """Check the form of X; values are checked when they are read."""
        check_sparse(X)
        return validate_data(self, X, reset=reset, accept_sparse="csr", ensure_all_finite=False)

    def _summands(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return the summands of an accumulator for checked rows."""
        return X, y, sample_weight

    def _for_workers(self) -> Self:
        """Return a copy for workers, which can only predict or transform."""
        self._check_fitted()
        return copy.copy(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, see `gzkcore.load`; its features must be gzkcore's.

        Parameters
        ----------
        path : str or path
            An existing file is replaced.
        """
        save(self, path)


class PassLearner(Learner):
    """Base of learners that sum over rows in a pass, and solve at first access."""

    moments_: Any
    y_offset_: Any
    _solve: Callable[..., dict[str, Any]]  # computes fitted attributes from the sums
    _solution: dict[str, Any]

    def _continues(self, X: Any) -> bool:
        """Return whether `partial_fit` continues a fit; raise if X is a source."""
        if is_source(X):
            raise TypeError(
                f"partial_fit takes the rows of one batch, but X is a {type(X).__name__}, a source "
                "of batches; pass it to fit, or its batches one by one to partial_fit"
            )
        return self.__sklearn_is_fitted__()

    def _outdate(self) -> None:
        self.__dict__.pop("_solution", None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "moments_")

    def _solved(self) -> dict[str, Any]:
        self._check_fitted()
        if not hasattr(self, "_solution"):
            self._solution = self._solve()
        return self._solution

    def _offset_of(self, other: Any) -> Doubles:
        """Return the difference of the offsets of y, or raise if models can't be merged."""
        check_same_class(self, other)
        for model in (self, other):
            if not model.__sklearn_is_fitted__():
                raise NotFittedError(
                    f"a {type(model).__name__} to be merged is not fitted; call fit or partial_fit "
                    "first"
                )
        ours, theirs = (np.asarray(model.y_offset_) for model in (self, other))
        if theirs.shape != ours.shape:
            raise ValueError(
                f"the other model has targets of shape {theirs.shape}, this one {ours.shape}; "
                "merge models with the same targets"
            )
        return np.asarray((theirs - ours).reshape(-1))


class FeatureLearner(PassLearner):
    """Base of learners on features."""

    _state = stored(
        features=(has("transform") | nothing()).if_there(),
        features_=has("transform").if_there(),
        _solution=holds(dict).if_there(),
    )

    features: Any
    features_: Any

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `features__...` on None first replaces it by its default instance."""
        for name in ("features", "features_y"):
            features = params.get(name, getattr(self, name, name))
            if features is None and any(key.startswith(f"{name}__") for key in params):
                params[name] = KernelFeatures()
        super().set_params(**params)
        return self

    def _for_workers(self) -> Self:
        self._solved()
        model = super()._for_workers()
        model.moments_ = type(self.moments_)(None)
        return model


class Resumable:
    """A learner whose `fit` has a `checkpoint`, which is not routed by pipelines."""

    __metadata_request__fit: ClassVar[dict[str, str]] = {"checkpoint": UNUSED}


def signs_of(vectors: Doubles) -> Any:
    """Return the sign of the largest entry of each row, which makes axes comparable."""
    largest = abs(vectors).argmax(axis=1)
    signs = vectors[range(len(vectors)), largest]
    return (signs >= 0) * 2.0 - 1.0
