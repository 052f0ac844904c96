"""Ridge regression on features that chooses alpha and the kernel's parameters from moments."""

import functools
import itertools
import numbers
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.model_selection import ParameterGrid

from gzkcore._compiled import gram as _gram
from gzkcore._util.state import (
    anything,
    doubles,
    entries,
    has,
    holds,
    nothing,
    number,
    sequence,
    stored,
)
from gzkcore._util.threads import limit_blas, n_threads
from gzkcore._util.typing import Data, Doubles, Floats, Seed
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.passes.gram import GramAccumulator
from gzkcore.passes.normal_equations import (
    centred,
    inverses_of,
    penalties_of,
    scaled,
    solve_candidates,
)
from gzkcore.passes.streams import Reader, Step
from gzkcore.passes.tiles import for_each_tile

from .base import Solved
from .regression import check_alphas
from .ridge import LEAST_FREE, FeatureRegressor, Results

__all__ = ["RandomFeatureRidgeCV"]

# The candidates for alpha.
ALPHAS = tuple(np.logspace(-8, 2, 21).tolist())

ONE_BASIS = (
    "partial_fit sees each row once, but these features need a pass for each entry of kernel_grid; "
    "use fit, or kernel_grid=None, or features with an exact basis on a sphere"
)

GridEntry: TypeAlias = dict[str, Any]  # an entry of kernel_grid with its kernel, if known


class RandomFeatureRidgeCV(FeatureRegressor):
    """Ridge regression on the features of any transformer: `fit` chooses alpha and kernel.

    Parameters
    ----------
    features, fit_intercept, random_state
        As for `RandomFeatureRidge`.
    alphas : array-like of shape (n_alphas,), default=logspace(-8, 2, 21)
        Candidates for the ridge.
    kernel_grid : dict of str to list, default=None
        Candidates for the kernel's parameters, such as ``{"gamma": [0.5, 1, 2]}``, tried in all
        combinations. A name that is not a parameter of the kernel is a parameter of `features`.
    cv : None, int or "loo", default=None
        None: generalised cross-validation. An int k: k folds, row i in fold i mod k. Both need one
        pass over the rows. "loo": exact leave-one-out errors, which take a second pass.

    Attributes
    ----------
    alpha_ : float
        The alpha chosen.
    kernel_ : kernel or None
        The kernel chosen; None for features without a kernel.
    best_params_ : dict
        `alpha` and the names in `kernel_grid`.
    best_score_ : float
        Minus the expected mean squared error of the choice.
    cv_results_ : dict of str to array
        All candidates, in the format of `GridSearchCV`: `params`, `param_alpha` ...,
        `mean_test_score` (minus the mean squared error, each row and so each fold with its weight),
        `rank_test_score` and, for k folds, `split0_test_score` ...
    features_, coef_, intercept_, moments_, y_offset_, noise_variance_, degrees_of_freedom_
        As for `RandomFeatureRidge`. With `kernel_grid`, `moments_` may belong to a basis common to
        all candidates.
    candidates_ : list of dict
        The entries of `kernel_grid` (`params`) that share `moments_`, with their `kernel`.

    Notes
    -----
    Features with a common basis for all kernels of the grid (`GegenbauerFeatures` with an exact
    basis on a sphere) need one pass; others take one pass for each kernel. Then a candidate costs a
    Cholesky factorisation per fold, for any number of rows, and less if the ridge makes some of the
    columns negligible.

    float32 rows make float32 features, whose sums are known to about 1e-7 of the largest. So the
    scores from sums alone, of cv=None and of folds, don't tell errors below about 1e-3 standard
    deviations of y apart. For a y with less noise use cv="loo", or pass float64 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(200)
    >>> model = RandomFeatureRidgeCV(
    ...     RBFSampler(), kernel_grid={"gamma": [0.1, 1.0, 10.0]}, cv=5, random_state=0
    ... ).fit(X, y)
    >>> sorted(model.best_params_)
    ['alpha', 'gamma']
    """

    _state = stored(
        kernel_grid=anything().if_there(),
        candidates_=sequence(entries(params=anything(), kernel=holds(Kernel) | nothing())),
        _solution=entries(
            features_=has("transform"),
            kernel_=holds(Kernel) | nothing(),
            scale=doubles("p") | nothing(),
            alpha_=number(0),
            coef_=doubles("p") | doubles("t", "p"),
            intercept_=number() | doubles("t"),
            best_params_=anything(),
            best_score_=number(finite=False),
            cv_results_=anything(),
        ).if_there(),
    )

    alpha_ = Solved()
    kernel_ = Solved()
    features_ = Solved()
    best_params_ = Solved()
    best_score_ = Solved()
    cv_results_ = Solved()
    candidates_: list[GridEntry]

    def __init__(
        self,
        features: Any = None,
        alphas: ArrayLike = ALPHAS,
        kernel_grid: dict[str, Sequence[Any]] | None = None,
        cv: Any = None,
        fit_intercept: bool = True,
        random_state: Seed = None,
    ):
        self.features = features
        self.alphas = alphas
        self.kernel_grid = kernel_grid
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def _start(self, reader: Reader, step: Step | None = None) -> Any:
        """Sum the first rows, or all; return candidates and errors, unless more rows may come."""
        alphas = check_alphas(self.alphas, "alphas")
        n_folds = self._check_cv(reader.one_pass)
        tried: list[GridEntry] = []
        errors, least = [], np.inf
        for moments, candidates in self._empty_sums(reader, n_folds):
            reader.accumulate(self, moments, step)
            if reader.one_pass:  # there may be more rows to come
                self.candidates_, self.moments_ = candidates, moments
                return None
            self._check_enough(moments.n_rows)
            if self.cv == "loo":
                new = self._leave_one_out(moments, candidates, alphas, reader.summands(self))
            else:
                new = self._errors(moments, candidates, alphas)
            lowest = np.fmin.reduce(_pooled(new, moments), axis=None)  # NaN left out
            if lowest < least or not tried:
                least = np.fmin(least, lowest)
                self.candidates_, self.moments_ = candidates, moments
            tried += candidates
            errors.append(new)
        return tried, np.concatenate(errors)

    def _empty_sums(
        self, reader: Reader, n_folds: int
    ) -> Iterator[tuple[GramAccumulator, list[GridEntry]]]:
        """Yield the empty sums of each pass, with the candidates that they serve."""
        if reader.resume(self):
            yield self.moments_, self.candidates_
            return
        for basis, candidates in self._bases(reader):
            self.y_offset_ = self._offset(reader.typical())
            moments = GramAccumulator(basis, n_folds)
            if reader.checkpoint is not None:
                self._check_one_basis(
                    candidates,
                    "checkpoint= saves the sums of one pass, but these features need a pass for "
                    "each entry of kernel_grid; choose the kernel on part of the rows, then fit "
                    "with it",
                )
                self.candidates_, self.moments_ = candidates, moments  # kept by a checkpoint
            yield moments, candidates

    def _check_one_basis(self, candidates: list[GridEntry], trouble: str) -> None:
        if len(candidates) < len(grid_of(self.kernel_grid or {})):
            raise ValueError(trouble)

    def _continue(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self._check_cv(one_pass=True)
        self._check_one_basis(self.candidates_, ONE_BASIS)
        super()._continue(X, y, sample_weight)

    def _check_cv(self, one_pass: bool) -> int:
        """Return the number of folds whose sums are kept apart."""
        if self.cv == "loo" and one_pass:
            raise ValueError('cv="loo" reads the rows twice; use fit, or cv=None with partial_fit')
        if self.cv is None or self.cv == "loo":
            return 1
        if isinstance(self.cv, bool) or not isinstance(self.cv, numbers.Integral) or self.cv < 2:
            raise ValueError(f'cv={self.cv!r} must be None, "loo" or a whole number of folds >= 2')
        return int(self.cv)

    def _check_enough(self, n_samples: int) -> None:
        least = 2 if self.cv in (None, "loo") else int(self.cv)
        if n_samples < least:
            raise ValueError(
                f"cv={self.cv!r} needs {least} rows or more, but n_samples={n_samples}"
            )

    def _bases(self, reader: Reader) -> Iterator[tuple[Any, list[GridEntry]]]:
        """Yield fitted features with the candidates they serve, until all of the grid are."""
        if not self.kernel_grid:
            features = reader.fit(self._new_features(), reader.targets)
            yield features, [{"params": {}, "kernel": None}]
            return
        grid, own = grid_of(self.kernel_grid), self._new_features().get_params()
        full = {k: k if k in own or "__" in k else f"kernel__{k}" for k in self.kernel_grid}
        maps = self._maps(grid, full, own)
        first = reader.fit(maps[0], reader.targets)
        if hasattr(first, "shared_basis") and all(n.startswith("kernel") for n in full.values()):
            kernels = [reader.resolve(as_kernel(features.kernel)) for features in maps]
            basis = first.shared_basis(kernels)
            if basis is not None:
                pairs = zip(grid, kernels, strict=True)
                yield basis, [{"params": params, "kernel": kernel} for params, kernel in pairs]
                return
        if reader.one_pass:
            raise ValueError(ONE_BASIS)
        yield first, [{"params": grid[0], "kernel": None}]
        for params, features in zip(grid[1:], maps[1:], strict=True):
            yield reader.fit(features, reader.targets), [{"params": params, "kernel": None}]

    def _maps(self, grid: list[dict[str, Any]], full: dict[str, str], own: Any) -> list[Any]:
        """Return unfitted features for each entry of a grid, given the full names of its names."""
        try:
            return [self._new_features(**{full[k]: params[k] for k in params}) for params in grid]
        except (AttributeError, ValueError) as error:
            known = [name for name in own if name.startswith("kernel")]
            raise ValueError(
                f"kernel_grid has the names {sorted(full)}, which must be parameters of the kernel "
                f"({', '.join(known)}) or of features: {error}"
            ) from None

    def _errors(
        self, moments: GramAccumulator, candidates: list[GridEntry], alphas: Doubles
    ) -> Doubles:
        """Mean squared errors, (n_candidates, n_alphas, n_folds), from the moments alone."""
        scales = [_scale(moments, candidate) for candidate in candidates]
        return _candidate_errors(moments, scales, alphas, self.fit_intercept, self.cv is None)

    def _leave_one_out(
        self, moments: GramAccumulator, candidates: list[GridEntry], alphas: Doubles, batches: Any
    ) -> Doubles:
        """Mean squared leave-one-out errors, (n_candidates, n_alphas, 1), by a second pass.

        With G = V diag(l) V^T and q = V^T (z - z_mean), a row's leverage is
        w (1 / sum of w + sum of q^2 / (l + alpha)), and predicting it from all others errs by its
        residual / (1 - leverage).
        """
        sums, mean = centred(moments.sums[0], self.fit_intercept)
        p = sums.shape[1] - 2
        of_intercept = 1.0 / sums[p, p] if self.fit_intercept else 0.0
        rotations, inverses = [], []
        for candidate in candidates:
            scale = _scale(moments, candidate)
            vectors, inverse = inverses_of(scaled(sums, scale)[:p, :p], alphas, moments.dtype)
            rotations.append(vectors if scale is None else scale[:, None] * vectors)
            inverses.append(inverse)
        shape = (len(candidates), len(alphas))
        errors = [np.zeros(shape) for _ in range(n_threads())]

        def use(thread: int, rows: slice, Z: Floats, y: Doubles, weight: Doubles | None) -> None:
            Z = Z - mean[:p]
            w = np.ones(len(Z)) if weight is None else weight[rows]
            for i, (rotation, inverse) in enumerate(zip(rotations, inverses, strict=True)):
                q = Z @ rotation
                free = 1.0 - w[:, None] * (of_intercept + np.square(q) @ inverse)
                for t in range(y.shape[1]):
                    coef = (rotation.T @ sums[p + 1 + t, :p])[:, None] * inverse
                    residual = (y[rows, t] - mean[p + 1 + t])[:, None] - q @ coef
                    with np.errstate(divide="ignore", invalid="ignore"):  # a row of leverage 1
                        errors[thread][i] += w @ np.square(residual / free) / y.shape[1]

        for X, y, weight in batches:
            of_batch = functools.partial(use, y=y.reshape(len(y), -1), weight=weight)
            for_each_tile(moments.features, X, of_batch)
        return np.asarray(np.sum(errors, axis=0) / sums[p, p])[:, :, None]

    def _solve(self, compared: Any = None) -> Results:
        alphas = check_alphas(self.alphas, "alphas")
        if compared is None:
            self._check_enough(self.moments_.n_rows)
            compared = self.candidates_, self._errors(self.moments_, self.candidates_, alphas)
        candidates, errors = compared
        pooled = _pooled(errors, self.moments_)
        if not np.isfinite(pooled).any():
            raise ValueError(
                "no candidate has a finite score: too few rows have a positive weight for "
                f"cv={self.cv!r}, or y is too large; use more rows, or scale y"
            )
        i, a = np.unravel_index(np.nanargmin(pooled), pooled.shape)
        chosen, alpha = candidates[i], float(alphas[a])
        features = self.moments_.features
        if chosen["kernel"] is not None:
            features = features.rescaled(chosen["kernel"])
        results = {
            "scale": _scale(self.moments_, chosen),
            "alpha_": alpha,
            "kernel_": getattr(features, "kernel_", None),
            "features_": features,
            "best_params_": {"alpha": alpha, **chosen["params"]},
            "best_score_": -float(pooled[i, a]),
            "cv_results_": results_of([c["params"] for c in candidates], alphas, errors, pooled),
        }
        return results | self._coefficients(*self._system(results))

    def _system(self, results: Results) -> tuple[Doubles, Doubles]:
        total = self.moments_.sums.sum(axis=0)
        alphas = np.full(self.y_offset_.size, results["alpha_"])
        return scaled(total, results["scale"]), alphas


def _scale(moments: GramAccumulator, candidate: GridEntry) -> Doubles | None:
    """Return the factors of the basis' columns for a candidate's kernel, or None."""
    kernel = candidate["kernel"]
    return None if kernel is None else moments.features.column_scales(kernel)


def _candidate_errors(
    moments: GramAccumulator, scales: Any, alphas: Doubles, fit_intercept: bool, generalised: bool
) -> Doubles:
    """Mean squared errors (n_scales, n_alphas, n_folds) by k folds or generalised cross-validation.

    The errors of c on some rows are y^T y - 2 c^T b + c^T G c with their moments, and those on a
    fold are the errors on all rows less those on the rows that c was fitted to.
    """
    sums, _ = centred(moments.sums, fit_intercept)
    total = sums.sum(axis=0)
    n_folds, p = len(sums), total.shape[1] - 2
    weights = sums[:, p, p].copy()
    if not generalised and np.count_nonzero(weights) < 2:
        raise ValueError("all sample weights are zero in all folds but one; use fewer folds")
    if not generalised:
        np.subtract(total, sums, out=sums)  # now of all rows outside the fold
    m, n = p + fit_intercept, total[p, p + 1]  # [Z 1] has m columns in use
    for part in (total, *sums):
        _gram.mirror(part, m)
    penalties = penalties_of(total, scales, alphas, m)

    def error(unit: tuple[int, slice]) -> Any:
        fold, chosen = unit
        train = sums[fold]
        coef, freedom = solve_candidates(train, penalties[chosen], moments.dtype, generalised)
        if generalised:
            free = np.where(n - freedom < LEAST_FREE, 0.0, n - freedom)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(free > 0, _squares(total, coef) * n / np.square(free), np.inf)
        if weights[fold] == 0:
            return 0.0
        return (_squares(total, coef) - _squares(train, coef)) / weights[fold]

    # Factorisations are dealt out in small parts, conjugate gradients in large ones.
    n_parts = 4 * n_threads() if generalised else -(-n_threads() // n_folds)
    parts = [slice(part, None, n_parts) for part in range(min(n_parts, len(penalties)))]
    errors = np.empty((len(penalties), n_folds))
    with limit_blas(1), ThreadPoolExecutor(n_threads()) as pool:
        units = list(itertools.product(range(n_folds), parts))
        for (fold, chosen), values in zip(units, pool.map(error, units), strict=True):
            errors[chosen, fold] = values
    return errors.reshape(len(scales), len(alphas), n_folds)


def _squares(sums: Doubles, coef: Doubles) -> Any:
    """Sum the squared errors of each candidate's coefficients over the rows of these moments."""
    n_targets, m = coef.shape[1:]
    p = sums.shape[1] - 2
    flat = coef.reshape(-1, m)
    form = np.einsum("ij,ij->i", flat @ sums[:m, :m], flat).reshape(-1, n_targets)
    return (
        sums[p + 1 :, p + 1] - 2.0 * np.einsum("ntm,tm->nt", coef, sums[p + 1 :, :m]) + form
    ).mean(axis=1)


def _pooled(errors: Doubles, moments: GramAccumulator) -> Any:
    """Average mean squared errors over the folds by their weights."""
    weights = moments.sums[:, moments.sums.shape[2] - 2, -2]  # sum of w, see GramAccumulator
    return errors @ (weights / weights.sum())


def grid_of(kernel_grid: Any) -> list[dict[str, Any]]:
    """Return the combinations of a grid's values."""
    try:
        return list(ParameterGrid(kernel_grid))
    except (TypeError, ValueError) as error:
        raise type(error)(
            f'kernel_grid={kernel_grid!r} must be like {{"gamma": [0.5, 1, 2]}}, a name with a '
            f"list of values: {error}"
        ) from None


def results_of(
    params: list[dict[str, Any]], alphas: Doubles, errors: Doubles, pooled: Doubles
) -> dict[str, Any]:
    """Return the results of all candidates in the format of GridSearchCV."""
    rows = [{"alpha": alpha, **some} for some in params for alpha in alphas.tolist()]
    results: dict[str, Any] = {"params": rows}
    for name in rows[0]:
        results[f"param_{name}"] = _as_array([row[name] for row in rows])
    splits = -errors.reshape(len(rows), -1)
    if splits.shape[1] > 1:
        results |= {f"split{f}_test_score": splits[:, f].copy() for f in range(splits.shape[1])}
        results["std_test_score"] = splits.std(axis=1)
    results["mean_test_score"] = -pooled.ravel()
    ranked = np.where(np.isnan(pooled), np.inf, pooled).ravel()
    results["rank_test_score"] = rankdata(ranked, method="min").astype(int)
    return results


def _as_array(values: list[Any]) -> NDArray[Any]:
    """Return an array of numbers or of texts, or else of objects."""
    if any(all(isinstance(value, kind) for value in values) for kind in (numbers.Real, str)):
        return np.array(values)
    return np.fromiter(values, dtype=object, count=len(values))
