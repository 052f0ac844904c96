"""The front door: which features, how many of them, and what they will be worth.

`KernelFeatures` fits every family that suits the data to a sample, measures on other rows how far
its kernel matrix is from the exact one, and takes the cheapest of the best. `plan` does the same at
several widths and says what each costs. Measured, not bounded: the theorems are safe but off by
orders of magnitude (see `theory`), while an exact kernel matrix of some hundred rows costs nothing.
`compare` tries everything there is, in fresh processes, with its time and memory.
"""

import math
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ._compare import Comparison, compare
from ._maps import FeatureMap, plain_output
from ._random import as_seed_sequence, generator
from ._sources import fit_like
from ._trials import AS_GOOD, cheapest_of_the_best, check_widths, split_rows
from ._typing import Data, Doubles, Floats, Rows, Seed
from ._validation import check_integer, check_positive, dense
from ._wording import counted, shortened
from .block import BlockFourierFeatures, Mix
from .fastfood import FastfoodFeatures
from .fourier import Frequencies, RandomFourierFeatures
from .gegenbauer import Basis, GegenbauerFeatures
from .kernels import Kernel, Laplacian, Polynomial, as_kernel
from .metrics import relative_frobenius_error
from .nystrom import NystromFeatures
from .sketch import TensorSketchFeatures
from .theory import statistical_dimension

__all__ = ["Comparison", "KernelFeatures", "Plan", "compare", "plan"]

# Columns from which Fastfood, and blocks, may be the cheapest of the Fourier features, and a sketch
# that of a polynomial.
_WIDE, _WIDER = 256, 1024


@dataclass(frozen=True)
class _Candidate:
    """Features that may suit, with what they are called."""

    name: str
    features: Any


@dataclass(frozen=True)
class _Trial:
    """What a candidate was worth: relative Frobenius error, floating-point operations a row."""

    candidate: _Candidate
    n_components: int
    error: float
    flops: float
    fitted: Any


def _candidates(kernel: Kernel, n_components: int, rows: Rows, seed: Seed) -> list[_Candidate]:
    """List the families of the package for data like these rows, plainest first."""
    dim = rows.shape[1]
    families: list[tuple[Basis, str]] = [
        ("auto", "Gegenbauer"),
        ("random", "Gegenbauer, random directions"),
    ]
    if rows.shape[0] >= n_components:  # fewer can't tell what so many columns should adapt to
        families.append(("adapted", "Gegenbauer, adapted to the data"))
    reduce = "auto" if dim > 2 * n_components else None
    after = "reduced, then " if reduce else ""
    listed = [
        _Candidate(
            f"{after}{name}",
            GegenbauerFeatures(kernel, n_components, basis=basis, reduce=reduce, random_state=seed),
        )
        for basis, name in families
    ]
    # Orthogonal frequencies err less than independent ones; of few in many dimensions the same.
    spread: tuple[Frequencies, str] = ("orthogonal", "Fourier, orthogonal frequencies")
    if isinstance(kernel, Laplacian) or dim > n_components:
        spread = ("iid", "Fourier")
    features = RandomFourierFeatures(kernel, n_components, frequencies=spread[0], random_state=seed)
    listed.append(_Candidate(spread[1], features))
    if dim >= _WIDE and not isinstance(kernel, Laplacian):
        fastfood = FastfoodFeatures(kernel, n_components, random_state=seed)
        listed.append(_Candidate("Fastfood", fastfood))
    if dim >= _WIDER:
        # Sparse rows differ in few coordinates, and blocks are biased on these unless mixed.
        mix: Mix = None if isinstance(rows, np.ndarray) else "hadamard"
        blocks = BlockFourierFeatures(kernel, n_components, mix=mix, random_state=seed)
        listed.append(_Candidate("block Fourier", blocks))
    if dim >= _WIDE and isinstance(kernel, Polynomial):
        sketch = TensorSketchFeatures(kernel, n_components, random_state=seed)
        listed.append(_Candidate("TensorSketch", sketch))
    if rows.shape[0] >= n_components:
        nystrom = NystromFeatures(kernel, n_components, random_state=seed)
        listed.append(_Candidate("Nystrom", nystrom))
    return listed


def _judge(candidates: list[_Candidate], train: Rows, test: Rows, K: Doubles) -> list[_Trial]:
    """Fit candidates to some rows and compare their kernel with K, the exact one of others."""
    trials, reasons = [], []
    for candidate in candidates:
        features = plain_output(clone(candidate.features))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the sample; the final fit warns of all data
            try:
                Z = features.fit(train).transform(test)
            except ValueError as reason:
                reasons.append(reason)
                continue
        error = relative_frobenius_error(K, np.asarray(Z, dtype=np.float64))
        flops = features._flops(_density(train))
        trials.append(_Trial(candidate, Z.shape[1], error, flops, features))
    if not trials:
        raise reasons[0]
    return trials


def _density(X: Rows) -> float:
    """Share of the entries that aren't 0."""
    return 1.0 if isinstance(X, np.ndarray) else X.nnz / (X.shape[0] * X.shape[1])


def _best(trials: Sequence[_Trial]) -> _Trial:
    """Take the cheapest whose error is nearly the least."""
    return cheapest_of_the_best(trials, lambda trial: trial.error, lambda trial: trial.flops)


def _two_samples(X: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Rows to fit to and rows to judge by."""
    fitted, judged = split_rows(X.shape[0], rng)
    return X[fitted], X[judged]


class KernelFeatures(FeatureMap):
    """Features for a kernel, of the family that suits the data best: start here.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        An alias or an instance from `gzkcore.kernels`.
    n_components : int, default=1024
        Width of the output, exactly.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    chosen_ : transformer
        The fitted features, such as `GegenbauerFeatures`.
    why_ : str
        What was chosen and why, in a sentence or two.
    family_ : str
        Its name in `errors_`.
    errors_ : dict of str to float
        Relative Frobenius error of the kernel matrix of (at most) 512 rows that were not fitted to,
        by family.
    kernel_ : Kernel
        The kernel with every parameter a number.

    Notes
    -----
    `fit` tries each family on at most 2,048 rows, in seconds for some hundred components, then
    fits the chosen one to all: the cheapest of those whose error is at most 1.2 times the least.
    The same data and `random_state` give the same choice on every machine. Whether the result is
    unbiased, depends on the data, or takes another pass is said by the chosen class.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import KernelFeatures
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> features = KernelFeatures("gaussian", n_components=256, random_state=0).fit(X)
    >>> features.transform(X).shape
    (500, 256)
    >>> type(features.chosen_).__name__
    'GegenbauerFeatures'
    """

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        n_components: int = 1024,
        *,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Data, y: object = None) -> Self:
        """Choose the family on a sample of X, then fit it to X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        X = self._validate(X, reset=True)
        width = check_integer("n_components", self.n_components, 1)
        kernel = as_kernel(self.kernel).resolve(X)
        entropy = as_seed_sequence(self.random_state)
        seed = int(entropy.generate_state(1)[0])
        train, test = _two_samples(X, generator(entropy))
        K = kernel(dense(test))
        trials = _judge(_candidates(kernel, width, train, seed), train, test, K)
        best = _best(trials)
        self.errors_ = {trial.candidate.name: trial.error for trial in trials}
        self.family_ = best.candidate.name
        chosen = plain_output(clone(best.candidate.features))
        self.chosen_ = fit_like(self, chosen, X)
        self.kernel_ = kernel
        self.why_ = _reason(best, trials, test.shape[0], X.shape[0] > 1)
        self._n_features_out = width
        return self

    def partial_fit(self, X: Data, y: object = None) -> Self:
        """Fit on the first batch only; later batches are checked and change nothing."""
        if not hasattr(self, "_n_features_out"):
            return self.fit(X)
        self._validate(X, reset=False)
        return self

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        self.chosen_.transform(X, out=out)

    def shared_basis(self, kernels: Iterable[Kernel]) -> Any:
        """Return a map that serves all of these kernels, or None: see `GegenbauerFeatures`."""
        check_is_fitted(self, "chosen_")
        shared = getattr(self.chosen_, "shared_basis", None)
        return None if shared is None else shared(kernels)


def _reason(best: _Trial, trials: Sequence[_Trial], n_rows: int, unseen: bool) -> str:
    others = [trial for trial in trials if trial is not best]
    judged_by = f"{counted(n_rows, 'row')} that it had not seen" if unseen else "the only row"
    text = (
        f"{best.candidate.name} ({best.fitted._about()}): on {judged_by}, "
        f"its kernel is off by {best.error:.2g} in the relative Frobenius norm"
    )
    if others:
        text += "; " + ", ".join(f"{trial.candidate.name}: {trial.error:.2g}" for trial in others)
    text += "."
    cheaper_wins = best.error > min(trial.error for trial in trials)
    if cheaper_wins:
        text += f" It is the cheapest within {AS_GOOD} times the least error."
    if best.error > 0.5:
        text += (
            " No features of this width are close to this kernel on these data: use more, a larger "
            "lengthscale, or fewer columns."
        )
    return text


@dataclass(frozen=True)
class Plan:
    """What `plan` found.

    Attributes
    ----------
    kernel : Kernel
        Resolved.
    n_samples, n_features : int
    norms : tuple of float
        Smallest, median and largest distance from the mean, in the units of the data.
    effective_dimension : float
        Of the cloud of points: (sum of variances)^2 / sum of their squares along principal axes.
    lam : float
    statistical_dimension : float
        s_lambda = tr K (K + lam I)^-1 of all n_samples rows, estimated from the sample: how many
        features a ridge of lam can use.
    max_error : float
        Of the kernel, relative: what was to be reached.
    table : list of dict
        For each method and width: `error` (relative, Frobenius), `seconds` and `megabytes` to make
        the features of all rows (a learner in one pass needs no such memory).
    recommendation : str
    """

    kernel: Kernel
    n_samples: int
    n_features: int
    norms: tuple[float, float, float]
    effective_dimension: float
    lam: float
    statistical_dimension: float
    max_error: float
    table: list[dict[str, Any]]
    recommendation: str
    _estimator: Any = field(repr=False)

    def build(self) -> Any:
        """Return the recommended features, not yet fitted."""
        return clone(self._estimator)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw error against cost, one line a method, to a .png, .pdf or .svg file.

        Needs matplotlib, ``pip install gzkcore[cli]``.
        """
        from ._pictures import draw_plan

        title = f"{self._size(', ')}, {shortened(repr(self.kernel))}"
        draw_plan(Path(path), self.table, self.max_error, title)

    def _size(self, between: str) -> str:
        return between.join([counted(self.n_samples, "row"), counted(self.n_features, "column")])

    def __str__(self) -> str:
        low, middle, high = self.norms
        lines = [
            f"{self._size(' of ')}, {shortened(repr(self.kernel))}",
            f"distance from the mean: {low:.4g} to {high:.4g}, median {middle:.4g}",
            f"effective dimension: {self.effective_dimension:.3g}",
            f"statistical dimension at lam={self.lam:g}: {self.statistical_dimension:.3g}",
            "",
            f"{'method':<34} {'n_components':>12} {'error':>9} {'seconds':>9} {'MB':>9}",
        ]
        lines += [
            f"{row['method']:<34} {row['n_components']:>12,} {row['error']:>9.2g} "
            f"{row['seconds']:>9.3g} {row['megabytes']:>9,.0f}"
            for row in self.table
        ]
        return "\n".join([*lines, "", self.recommendation])


def plan(
    X: Data,
    kernel: str | Kernel = "gaussian",
    *,
    max_error: float = 0.1,
    lam: float = 1.0,
    n_components: int | Sequence[int] = (64, 256, 1024, 4096),
    n_samples: int | None = None,
    random_state: Seed = 0,
) -> Plan:
    """Say which method, and how many features, a kernel needs on these data.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        The data or a random sample of them.
    kernel : str or Kernel, default="gaussian"
    max_error : float, default=0.1
        Relative Frobenius error of the kernel matrix to be reached.
    lam : float, default=1.0
        Ridge for the statistical dimension, in units of the kernel matrix of all rows.
    n_components : int or sequence of int, default=(64, 256, 1024, 4096)
        Widths to try.
    n_samples : int, optional
        Number of rows in all, where X is a sample.
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    Plan
        Print it; `build()` gives the estimator, `plot(path)` the picture.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, or the kernel has no features for these data.

    Notes
    -----
    At most 2,048 rows are fitted to and 512 others judged by; seconds are measured on them and
    scaled to all rows. Some seconds for widths of hundreds, ten for thousands, whatever n is.
    Errors above 1e-3 are what other rows of the same kind show, within a factor of 1.5 nine times
    in ten. Smaller ones depend on the few rows that lie furthest out, and may come out far larger
    on more rows.

    Examples
    --------
    >>> import numpy as np
    >>> import gzkcore
    >>> X = np.random.default_rng(0).standard_normal((600, 3))
    >>> found = gzkcore.plan(X, max_error=1e-3, n_components=[64, 256])
    >>> found.build()
    GegenbauerFeatures(kernel=Gaussian(gamma=...), n_components=256, random_state=...)
    """
    from ._timing import seconds_per_row

    max_error, lam = check_positive("max_error", max_error), check_positive("lam", lam)
    widths = check_widths(n_components)
    holder = KernelFeatures()
    rows = holder._validate(X, reset=True)
    total = rows.shape[0] if n_samples is None else check_integer("n_samples", n_samples, 1)
    resolved = as_kernel(kernel).resolve(rows)
    entropy = as_seed_sequence(random_state)
    seed = int(entropy.generate_state(1)[0])
    train, test = _two_samples(rows, generator(entropy))
    K = resolved(dense(test))
    trials, table = [], []
    for width in widths:
        for trial in _judge(_candidates(resolved, width, train, seed), train, test, K):
            trials.append(trial)
            table.append(
                {
                    "method": trial.candidate.name,
                    "n_components": width,
                    "error": trial.error,
                    "seconds": total * seconds_per_row(trial.fitted, test),
                    "megabytes": total * width * rows.dtype.itemsize / 1e6,
                    "about": trial.fitted._about(),
                }
            )
    best, recommendation = _recommend(trials, max_error)
    cloud = np.asarray(dense(train), dtype=np.float64)
    cloud = cloud - cloud.mean(axis=0)
    norms = np.sqrt(np.einsum("ij,ij->i", cloud, cloud))
    return Plan(
        kernel=resolved,
        n_samples=total,
        n_features=rows.shape[1],
        norms=(float(norms.min()), float(np.median(norms)), float(norms.max())),
        effective_dimension=_effective_dimension(cloud),
        lam=lam,
        statistical_dimension=statistical_dimension(K, lam * K.shape[0] / total),
        max_error=max_error,
        table=table,
        recommendation=recommendation,
        _estimator=best.candidate.features,
    )


def _recommend(trials: Sequence[_Trial], max_error: float) -> tuple[_Trial, str]:
    """Take the narrowest, then cheapest, trial whose error is small enough, or the best of all.

    The narrowest, for a learner on n rows of p features takes n p^2 operations.
    """
    reached = [trial for trial in trials if trial.error <= max_error]
    best = (
        min(reached, key=lambda trial: (trial.n_components, trial.flops))
        if reached
        else _best(trials)
    )
    text = (
        f"Use {best.candidate.name} with n_components={best.n_components}: its relative error is "
        f"{best.error:.2g}"
    )
    if reached:
        return best, f"{text}, with the fewest features of all that reach {max_error:g}."
    more = _width_needed(trials, best, max_error)
    return best, (
        f"{text}; none reaches {max_error:g}"
        + (f", which would take about {more:,} components." if more else ".")
    )


def _width_needed(trials: Sequence[_Trial], best: _Trial, max_error: float) -> int | None:
    """Extrapolate a method's error as a power of its width, if it falls."""
    same = [t for t in trials if t.candidate.name == best.candidate.name and t.error > 0]
    same.sort(key=lambda trial: trial.n_components)
    if len(same) < 2:
        return None
    first, last = same[-2:]
    slope = math.log(last.error / first.error) / math.log(last.n_components / first.n_components)
    if slope > -0.1:
        return None
    width = last.n_components * (max_error / last.error) ** (1 / slope)
    return int(float(f"{width:.2g}")) if width < 1e7 else None


def _effective_dimension(cloud: Doubles) -> float:
    """(tr C)^2 / tr C^2 of the covariance C: by the smaller of the two products."""
    product = cloud @ cloud.T if cloud.shape[0] < cloud.shape[1] else cloud.T @ cloud
    squares = float(np.square(product).sum())
    return float(np.trace(product)) ** 2 / squares if squares > 0 else 0.0
