"""Fit features to rows that are never in memory together: a sample, and sums over all."""

from dataclasses import dataclass, replace
from typing import Any

from sklearn.frozen import FrozenEstimator

from gzkcore.rows.survey import Survey


def asks_no_rows(features: Any) -> bool:
    """Say whether features come out the same whatever rows they are fitted to."""
    known = getattr(features, "_asks_no_rows", None)
    return isinstance(features, FrozenEstimator) or (known is not None and bool(known()))


def fit_features(features: Any, source: Any, survey: Survey) -> Any:
    """Fit features to a source that can be read again, given the survey of its rows.

    Up to SAMPLE_ROWS rows are put together, and the fit is the ordinary one. Of more rows a random
    sample takes their place, and what is known of all goes with it: the variance, for
    gamma="scale", and further passes, `source.reduce`, as `features._whole`.
    """
    if survey.complete:
        return features.fit(survey.rows)
    given = {
        name: value
        for name, value in features.get_params(deep=False).items()
        if name in ("kernel", "gamma")
        and not isinstance(getattr(type(features), name, None), property)
    }
    try:
        for name, value in given.items():
            setattr(features, name, settled(name, value, survey))
        features._whole = Whole(source, survey)
        return features.fit(survey.rows)
    finally:
        vars(features).pop("_whole", None)
        for name, value in given.items():
            setattr(features, name, value)


def fit_like(outer: Any, inner: Any, X: Any, columns: Any = None) -> Any:
    """Fit a part of features to the rows, or to columns, that the features are being fitted to."""
    whole = vars(outer).get("_whole")
    if whole is None:
        return inner.fit(X)
    try:
        inner._whole = whole if columns is None else whole.of(columns)
        return inner.fit(X)
    finally:
        del inner._whole


@dataclass
class Whole:
    """All rows, or some columns of them, for features that are fitted to a sample."""

    source: Any
    survey: Survey
    columns: Any = None

    def of(self, columns: Any) -> "Whole":
        """Return some columns of the rows, where there were all."""
        part = self.survey
        survey = replace(
            part,
            mean=part.mean[columns],
            squares=part.squares[columns],
            rows=part.rows[:, columns],
        )
        return Whole(self.source, survey, columns)

    def resolve(self, kernel: Any, X: Any) -> Any:
        """Resolve a kernel on all rows, X being the sample."""
        return settled("kernel", kernel, self.survey).resolve(X)


def settled(name: str, value: Any, survey: Survey) -> Any:
    """Return a kernel, or a gamma of scikit-learn's, with "scale" worked out from all rows."""
    if name == "gamma":
        variance = survey.variance * survey.mean.size
        return (1.0 / variance if variance else 1.0) if value == "scale" else value
    if isinstance(value, str) or hasattr(value, "resolve"):
        from gzkcore.kernels.aliases import as_kernel

        kernel = as_kernel(value)
        if isinstance(gamma := getattr(kernel, "gamma", None), str) and gamma == "scale":
            number = kernel._from_spread(survey.mean.size, survey.variance)
            return type(kernel)(**kernel.get_params(deep=False) | {"gamma": number})
        return kernel
    return value
