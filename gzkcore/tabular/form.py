"""The form of a model: the whole kernel, the kernel on centres, features, or near rows.

The error decides between the whole kernel and features, its cost on all rows and the memory between
these and centres.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Integers
from gzkcore._util.wording import LONG, counted, seconds_told
from gzkcore.features.nystrom import NystromFeatures
from gzkcore.kernels.base import Kernel
from gzkcore.learn.held_out import TrainTest
from gzkcore.learn.kernel_ridge import KernelRidge
from gzkcore.learn.near_kernel_ridge import NearKernelRidge
from gzkcore.learn.ridge_cv import RandomFeatureRidgeCV
from gzkcore.solve.cost import Room, seconds_of
from gzkcore.solve.posterior import NEAR_FROM
from gzkcore.solve.products import expects_linear_time

from .extrapolation import Edge
from .report import Candidate
from .table_encoder import Groups
from .trials import TOL, Trials

FORMS = AUTO, WHOLE, CENTERS, FEATURES, NEAR = "auto", "whole", "centers", "features", "near"
MOST_FEATURES, FEWEST_FEATURES = 4096, 256  # Features are tried up to the first, down to the other.
LEAST_FEATURES = 32  # Where there is room for no other form, features are tried down to so many.
FEATURES_WIN = 0.99  # Features are taken if their error is below this share of the whole kernel's.
FEWEST_CENTERS, MOST_CENTERS = 4096, 20_000  # Numbers of centres are between these.
# A fit of D features takes so many times the product of (rows + ROWS D) rows of D numbers with
# themselves. With 1,024 and 2,048 features of 8,000 and 32,000 rows it took .9 to 1.3 times that.
PRODUCTS, ROWS, TIMED_ROWS = 2, 5, 256

# With twice the rows errors are expected to fall by this power of how they fell before. From 6,400
# rows to all of protein and kin40k .62 fell to .514 and .142 to .074; this expects .522 and .075.
FALLING = 0.75


@dataclass
class Form:
    """A form of the model: features, centres, near rows, or the whole kernel."""

    alpha: float
    seed: int
    features: int | None = None
    centers: int | None = None
    near: int | None = None  # the number of near rows
    slopes: Integers | None = None  # of a linear trend beside the whole kernel or near rows
    smooth: Any = None  # a regressor, of which near rows predict what it leaves
    expected: float | None = None  # about how many seconds the fit takes, if that is known

    @property
    def is_whole(self) -> bool:
        """Whether the model is the whole kernel."""
        return self.features is None and self.centers is None and self.near is None

    def what(self, n_rows: int) -> str:
        """Return what the form is, fitted to so many rows."""
        sizes = (self.near, "near row"), (self.features, "feature"), (self.centers, "centre")
        parts = [counted(size, noun) for size, noun in sizes if size is not None]
        return parts[0] if parts else f"the whole kernel on {counted(n_rows, 'row')}"

    def seconds(self, trials: Trials, best: Candidate, n_rows: int, surely: float = LONG) -> float:
        """Return about how long the fit takes, see `Trials.seconds_of`."""
        if self.expected is not None:
            return self.expected
        if self.near is not None:
            return best.seconds  # with all rows, and more to learn
        if self.features is not None:
            rows = np.ones((TIMED_ROWS, self.features))
            of_row = seconds_of(lambda: rows.T @ rows) / TIMED_ROWS
            return PRODUCTS * of_row * (n_rows + ROWS * self.features)
        share = 1.0 if self.centers is None else min(1.0, 4 * self.centers / n_rows)
        return share * trials.seconds_of(best, n_rows, surely)

    def model(self, kernel: Kernel, n_rows: int, *, rough: bool = False) -> Any:
        """Return an unfitted model of so many rows."""
        if self.near is not None:
            return self._near_rows(kernel, self.alpha)
        if self.features is not None:
            width = min(max(1, self.features // 2) if rough else self.features, n_rows)
            features = NystromFeatures(kernel, width, random_state=self.seed)
            return RandomFeatureRidgeCV(features, fit_intercept=False, cv=2)
        centers = None if self.centers is None or self.centers >= n_rows else self.centers
        # No more exactly than while alpha was chosen: on kin40k with a small alpha the error was
        # .0732 in a third of the time, and with tol=3e-3 .0726.
        ridge = KernelRidge(
            kernel, self.alpha, trend=self.slopes, centers=centers, tol=TOL,
            random_state=self.seed,
        )  # fmt: skip
        if rough:  # its variances are of the kind that those of all rows are, of which it has 4/5
            ridge._near_from = 4 * NEAR_FROM // 5
        return ridge

    def learner(self, kernel: Kernel, groups: Groups | None) -> NearKernelRidge:
        """Return a model of near rows that learns alpha, and lengths by groups of columns."""
        model = self._near_rows(kernel, None)
        model._groups = None if groups is None else groups.of_columns
        return model

    def _near_rows(self, kernel: Kernel, alpha: float | None) -> NearKernelRidge:
        return NearKernelRidge(
            kernel, alpha, n_neighbors=self.near or 1, trend=self.slopes, smooth=self.smooth,
            random_state=self.seed,
        )  # fmt: skip

    def trial(self, kernel: Kernel, n_rows: int) -> Any:
        """Return an unfitted model of some rows: of half the features."""
        return self.model(kernel, n_rows, rough=True)


class Choice(NamedTuple):
    """What held-out rows chose, and the rows by which a model is calibrated."""

    trials: Trials
    best: Candidate
    form: Form
    edge: Edge | None
    gaps: list[list[TrainTest]]  # ways to hold out blocks of rows
    incomplete: NDArray[np.bool_]  # which rows have a missing number


def asked_form(
    name: str, size: int | None, room: Room, trials: Trials, best: Candidate
) -> tuple[Form, str]:
    """Return the form that a user names, and what it is; ValueError if it is too large."""
    n, alpha, seed = room.n_rows, best.alpha, trials.seed
    asked = "as asked for."
    if (size or 0) > n:
        asked = f"since there are no more rows than {n:,}; {size:,} were asked for."
    form = Form(alpha, seed)
    if name == WHOLE:
        fits: float = room.whole()
    elif name == CENTERS:
        most = size or max(FEWEST_CENTERS, min(MOST_CENTERS, n // 4))
        fits = form.centers = room.centers(min(n, most), min(n, size or 1))
    else:
        fits = form.features = room.features(min(n, size or MOST_FEATURES), size or 1)
    if not fits:
        raise room.too_little()
    return form, f"{form.what(n)}, {asked}"


def best_form(room: Room, trials: Trials, best: Candidate, seconds: float) -> tuple[Form, str]:
    """Return a form and why; ValueError where no form is within the memory.

    The whole kernel is taken if its fit takes no more seconds than that, and there is room for it.
    """
    n, seed = room.n_rows, trials.seed
    whole = Form(best.alpha, seed)
    if features := _better_features(room, trials, best):
        return features
    surely = min(seconds, LONG)
    whole.expected = expected = whole.seconds(trials, best, n, surely)
    about = "about" if expected > surely else "less than"
    fits = room.whole()
    takes = f"; this last fit takes {about} {seconds_told(expected)}" if expected >= 0.1 else ""
    how = ", in linear time" if expects_linear_time(best.kernel, trials.X, n) else ""
    what = f"{whole.what(n)}{how}{takes}."
    if fits and expected <= seconds:
        return whole, what
    why = f"since the whole kernel would take about {seconds_told(expected)}."
    if not fits:
        why = "since there is no room for the whole kernel."
    share = 1.0 if expected <= seconds else seconds / expected
    if count := room.centers(min(MOST_CENTERS, int(n * share / 4)), FEWEST_CENTERS):
        return Form(best.alpha, seed, centers=count), f"{count:,} centres, {why}"
    if count := room.features(min(MOST_FEATURES, n), FEWEST_FEATURES):
        return Form(best.alpha, seed, features=count), f"{count:,} features, {why}"
    if fits:
        return whole, what
    if count := room.features(min(FEWEST_FEATURES, n), LEAST_FEATURES):
        few = f"{count:,} features, since there is no room for more."
        return Form(best.alpha, seed, features=count), few
    raise room.too_little()


def error_of_half(trials: Trials, best: Candidate) -> float:
    """Return the error of a candidate that is fitted to half of the rows; infinite if unsolved."""
    halves = trials.on(trials.halved().splits)
    half = halves.run(best, np.array([best.alpha]))
    return math.inf if half is None else half.error


def expected_error(best: Candidate, of_half: float, n_rows: int) -> float:
    """Return what the error of so many rows, or centres, may be, as twice the rows lower it.

    Errors fall less and less, see FALLING.
    """
    if not best.error < of_half < math.inf:
        return best.error
    doublings = FALLING * max(0.0, math.log2(n_rows / best.n_rows))
    return float(best.error * (best.error / of_half) ** doublings)


def _better_features(room: Room, trials: Trials, best: Candidate) -> tuple[Form, str] | None:
    """Return features and why if they predict held-out rows better than the whole kernel.

    Features are solved for exactly, with alphas too small for conjugate gradients. Where the best
    alpha isn't the smallest that these can do, or hardly better than the next, features have
    nothing to offer: on four tables and eight made ones its error was 3 % larger or more where
    features won, and less than .01 % larger where they lost.
    """
    count = min(MOST_FEATURES, room.n_rows)
    enough = min(len(train) for train, _ in trials.splits) > MOST_FEATURES // 2
    if not (best.least_alpha and enough and room.features(count, count)):
        return None
    form = Form(best.alpha, trials.seed, features=count)
    tried = trials.run_model(best, f"{best.name}, {count // 2:,} features", form.trial)
    if not tried.error < FEATURES_WIN * best.error:
        return None
    tried.chosen = True
    percent = 100 * (1 - tried.error / best.error)
    return form, (
        f"features. Their error is {percent:.0f} % smaller than that of the whole kernel, whose "
        "solver needs a larger alpha."
    )
