"""`KernelFeatures`: features of the family that suits the data.

The kernel matrix of every suitable family on rows held out is compared with the exact one. If there
are targets, only families whose ridge regression predicts these rows best are compared, since a
small kernel error need not mean a small prediction error. The errors are measured, not bounded: the
theorems are safe but off by orders of magnitude (see `theory`), while an exact kernel matrix of a
few hundred rows takes little time.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.linalg import eigh
from gzkcore._util.random import as_seed_sequence, generator
from gzkcore._util.state import holds, mapping, number, stored, text
from gzkcore._util.threads import limit_blas, look, n_threads, on_threads
from gzkcore._util.typing import Data, Doubles, Floats, Integers, Rows, Seed
from gzkcore._util.validation import check_weights, dense
from gzkcore._util.warn import collected_warnings
from gzkcore._util.wording import counted
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.dot_product import Polynomial
from gzkcore.kernels.learned import checked_targets, standard_targets
from gzkcore.metrics import relative_frobenius_error

from .base import KernelMap, RowMap, density_of, plain_output
from .block import BlockFourierFeatures, Mix
from .fastfood import FastfoodFeatures
from .fit_rows import FitRows
from .fourier import FrequencyRule, RandomFourierFeatures
from .gegenbauer import GegenbauerFeatures
from .gegenbauer_layout import Basis
from .nystrom import NystromFeatures
from .sketch import TensorSketchFeatures
from .trials import AS_GOOD, FITTED, JUDGED, cheapest_of_the_best, split_rows

__all__ = ["KernelFeatures"]

# Fastfood, and a sketch of a polynomial, are tried for at least this many columns.
_WIDE = 256
# Block Fourier features are tried for at least this many columns.
_WIDER = 1024
# The largest number of values of rows that are sorted.
_FEW_VALUES = 1 << 22
# The ridges that are tried, in units of the mean of k(x, x).
_RIDGES = np.logspace(-4, 2, 13)
# Errors of predictions up to this many times the least are alike.
_AS_PREDICTIVE = 1.02


@dataclass(frozen=True)
class Family:
    """Features of a family, with its name."""

    name: str
    features: Any


@dataclass(frozen=True)
class Trial:
    """A fitted candidate with its relative Frobenius error, and the operations of a row.

    `held_out` is the root mean squared error of its ridge regression, in standard deviations of
    the targets; 0 without targets.
    """

    candidate: Family
    n_components: int
    error: float
    flops: float
    fitted: Any
    held_out: float = 0.0


Targets: TypeAlias = tuple[Doubles, Doubles]  # targets of the fitted and of the held-out rows


def candidates(kernel: Kernel, n_components: int, rows: Rows, seed: Seed) -> list[Family]:
    """List the families of the package for data like these rows, plainest first."""
    dim = rows.shape[1]
    bases: dict[Basis, str] = {"auto": "Gegenbauer", "random": "Gegenbauer, random directions"}
    if rows.shape[0] >= n_components:  # fewer rows don't determine the columns
        bases["adapted"] = "Gegenbauer, adapted to the data"
    reduce = "auto" if dim > 2 * n_components else None
    after = "reduced, then " if reduce else ""
    named: dict[str, Any] = {
        f"{after}{name}": GegenbauerFeatures(
            kernel, n_components, basis=basis, reduce=reduce, random_state=seed
        )
        for basis, name in bases.items()
    }
    # Orthogonal frequencies have smaller errors than independent ones, unless dim > n_components.
    spread: tuple[str, FrequencyRule] = ("Fourier, orthogonal frequencies", "orthogonal")
    if not kernel.rotation_invariant or dim > n_components:
        spread = ("Fourier", "iid")
    named[spread[0]] = RandomFourierFeatures(
        kernel, n_components, frequencies=spread[1], random_state=seed
    )
    if dim >= _WIDE and kernel.rotation_invariant:
        named["Fastfood"] = FastfoodFeatures(kernel, n_components, random_state=seed)
    if dim >= _WIDER:
        # Sparse rows differ in few coordinates, for which blocks are biased unless mixed.
        mix: Mix = None if isinstance(rows, np.ndarray) else "hadamard"
        named["block Fourier"] = BlockFourierFeatures(
            kernel, n_components, mix=mix, random_state=seed
        )
    if dim >= _WIDE and isinstance(kernel, Polynomial):
        named["TensorSketch"] = TensorSketchFeatures(kernel, n_components, random_state=seed)
    if rows.shape[0] >= n_components:
        named["Nystrom"] = NystromFeatures(kernel, n_components, random_state=seed)
    return [Family(name, features) for name, features in named.items()]


def judge(
    candidates: list[Family],
    train: Rows,
    test: Rows,
    K: Doubles,
    targets: Targets | None = None,
) -> tuple[list[Trial], dict[str, str]]:
    """Fit candidates to `train`, and compare their kernel on `test` with the exact K.

    With targets, also measure the error of a ridge regression. Return the trials, and by name the
    reasons why others failed; raise if all failed. Each has one thread, since LAPACK, which takes
    half of the time, is not faster with more.
    """
    trials: dict[str, Trial] = {}
    refusals: dict[str, ValueError] = {}
    waiting: SimpleQueue[Family | None] = SimpleQueue()
    threads = min(2, n_threads(), len(candidates))
    slowest_first = sorted(candidates, key=lambda candidate: "adapted" not in candidate.name)
    for candidate in [*slowest_first, *[None] * threads]:
        waiting.put(candidate)

    def run(_: int, _stopped: Any) -> None:
        for candidate in iter(waiting.get, None):
            look()
            features = plain_output(clone(candidate.features))
            with collected_warnings():  # the final fit warns of all data
                try:
                    Z = features.fit(train).transform(test)
                except ValueError as reason:
                    refusals[candidate.name] = reason
                    continue
            new = np.asarray(Z, dtype=np.float64)
            flops, held_out = features._flops(density_of(train)), 0.0
            if targets is not None:
                known = np.asarray(features.transform(train), dtype=np.float64)
                held_out = _held_out_error(known, new, *targets)
            error = relative_frobenius_error(K, new)
            trials[candidate.name] = Trial(candidate, Z.shape[1], error, flops, features, held_out)

    on_threads(run, threads)
    names = [candidate.name for candidate in candidates]
    if not trials:
        raise refusals[names[0]]
    reasons = {name: str(refusals[name]) for name in names if name in refusals}
    return [trials[name] for name in names if name in trials], reasons


def _held_out_error(known: Doubles, new: Doubles, y: Doubles, truth: Doubles) -> float:
    """Return the least error of a ridge regression, over all ridges."""
    with limit_blas(1):  # the bits of BLAS depend on its threads
        values, vectors = eigh(known.T @ known)
        inner = vectors.T @ (known.T @ y)
        turned = new @ vectors
        size = float(np.square(known).sum(axis=1).mean()) or 1.0  # features may all be 0
        ridges = _RIDGES * size
        squares = [
            np.square(turned @ (inner / (np.maximum(values, 0.0) + ridge)[:, None]) - truth).mean()
            for ridge in ridges
        ]
    return math.sqrt(min(squares))


def _predicting_best(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that predict nearly best, or all without targets."""
    least = min(trial.held_out for trial in trials)
    return [trial for trial in trials if trial.held_out <= _AS_PREDICTIVE * least]


def best_trial(trials: Sequence[Trial]) -> Trial:
    """Return the cheapest trial of nearly the least error among those that predict nearly best."""
    good = _predicting_best(trials)
    return cheapest_of_the_best(good, lambda trial: trial.error, lambda trial: trial.flops)


def two_parts(X: Rows, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Return the indices of rows to fit to and of held-out rows.

    Few rows are sorted by their values, without repeats: then results depend neither on their order
    nor on copies, and no copy of a fitted row is held out.
    """
    if X.shape[0] > FITTED + JUDGED or X.shape[0] * X.shape[1] > _FEW_VALUES:
        return split_rows(X.shape[0], rng)
    distinct = np.unique(dense(X), axis=0, return_index=True)[1]
    fitted, judged = split_rows(distinct.size, rng)
    return distinct[fitted], distinct[judged]


class KernelFeatures(KernelMap):
    """Features for a kernel, from the family that suits the data best: start here.

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
        The relative Frobenius error of each family's kernel matrix of up to 512 held-out rows.
    held_out_ : dict of str to float
        The root mean squared error of each family's ridge regression on these rows, in standard
        deviations of y. Empty without y.
    not_tried_ : dict of str to str
        Why other families could not be fitted.
    kernel_ : Kernel
        The kernel with all parameters as numbers.

    Notes
    -----
    `fit` tries each family on at most 2,048 rows, which takes seconds for a few hundred components.
    Then it fits the chosen family to all rows: the cheapest of those whose error is at most 1.2
    times the smallest. With y, which every learner passes, only families whose ridge regression has
    an error of at most 1.02 times the smallest are considered; labels are regressed as +1 and -1.
    The same data and `random_state` give the same choice on every machine. The documentation of the
    chosen class says whether the features are unbiased, depend on the data, or take another pass.

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

    _in_tiles = True

    _state = stored(
        chosen_=holds(RowMap),
        family_=text(),
        errors_=mapping(text(), number(finite=False)),
        held_out_=mapping(text(), number(0)).if_there(),
        not_tried_=mapping(text(), text()).if_there(),
        why_=text(),
    )

    def _fit(self, rows: FitRows) -> None:
        X, width = rows.X, self._n_features_out
        kernel = rows.resolve(as_kernel(self.kernel))
        entropy = as_seed_sequence(self.random_state)
        seed = int(entropy.generate_state(1)[0])
        parts = two_parts(X, generator(entropy))
        train, test = (X[part] for part in parts)
        K, targets = kernel(dense(test)), _targets(rows, *parts)
        trials, refused = judge(candidates(kernel, width, train, seed), train, test, K, targets)
        best = best_trial(trials)
        self.errors_ = {trial.candidate.name: trial.error for trial in trials}
        tested = trials if targets is not None else []
        self.held_out_ = {trial.candidate.name: trial.held_out for trial in tested}
        self.family_ = best.candidate.name
        chosen = plain_output(clone(best.candidate.features))
        self.chosen_ = chosen.fit_valid(rows)
        self.kernel_ = kernel
        self.not_tried_ = refused
        self.why_ = _reason(best, trials, refused, test.shape[0], X.shape[0] > 1)

    def partial_fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on the first batch only; later batches are checked and change nothing."""
        if not hasattr(self, "_n_features_out"):
            return self.fit(X, y, sample_weight)
        check_weights(sample_weight, self._validate(X, reset=False))
        return self

    def _check_state(self) -> None:
        for name in ("n_features_in_", "_n_features_out"):
            if getattr(self.chosen_, name, None) != getattr(self, name):
                raise ValueError(f"has chosen_ with another {name} than its own")

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        self.chosen_.write(X, out)

    def shared_basis(self, kernels: Iterable[Kernel]) -> Any:
        """Return a map that serves all of these kernels, or None: see `GegenbauerFeatures`."""
        check_is_fitted(self, "chosen_")
        shared = getattr(self.chosen_, "shared_basis", None)
        return None if shared is None else shared(kernels)


def _targets(rows: FitRows, fitted: Integers, judged: Integers) -> Targets | None:
    """Return standardised targets of two parts of rows, None without any that vary."""
    if rows.y is None or np.array_equal(fitted, judged):
        return None
    both = np.append(fitted, judged)
    try:
        targets = standard_targets(checked_targets(rows.y), rows.numbers(both))
    except (TypeError, ValueError):  # constant, or no numbers for a ridge
        return None
    return targets[: fitted.size], targets[fitted.size :]


def _reason(
    best: Trial, trials: Sequence[Trial], refused: Iterable[str], n_rows: int, unseen: bool
) -> str:
    others = [trial for trial in trials if trial is not best]
    judged_by = f"{counted(n_rows, 'row')} held out" if unseen else "the only row"
    text = (
        f"{best.candidate.name} ({best.fitted._about()}): on {judged_by}, "
        f"its relative Frobenius error of the kernel is {best.error:.2g}"
    )
    if others:
        text += "; " + ", ".join(f"{trial.candidate.name}: {trial.error:.2g}" for trial in others)
    text += "."
    good = _predicting_best(trials)
    if best.held_out:
        text += f" A ridge regression on it has an error of {best.held_out:.2g}"
        text += " of y's standard deviation"
        text += "".join(f"; {trial.candidate.name}: {trial.held_out:.2g}" for trial in others)
        text += "."
    if best.error > min(trial.error for trial in good):
        text += f" It is the cheapest within {AS_GOOD} times the smallest error"
        text += " of those that predict best." if len(good) < len(trials) else "."
    if best.error > 0.5:
        text += (
            " No features of this width approximate this kernel well on these data: use more "
            "features, a larger lengthscale, or fewer columns."
        )
    if names := ", ".join(refused):
        text += f" Not tried, for the reasons in not_tried_: {names}."
    return text
