"""Figures 1 and 2 and Tables 1 to 4 of the block paper [B]."""

import functools
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import shapiro
from sklearn.random_projection import GaussianRandomProjection
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from gzkcore._util.typing import Doubles
from gzkcore.evaluate.results import Outcomes
from gzkcore.features.block import Arrangement, BlockFourierFeatures, BlockProjection
from gzkcore.features.block_report import block_report
from gzkcore.features.fastfood import FastfoodFeatures
from gzkcore.features.fourier import RandomFourierFeatures
from gzkcore.features.normalize import MeanNormalizer
from gzkcore.kernels.shift_invariant import Gaussian
from gzkcore.metrics import mean_distance_error, mean_kernel_error

from . import data
from .experiment import TOLERANCE, Cell, Experiment, Job, Picture, Setup, quietly, values
from .printed import (
    FEATURE_WIDTHS,
    FEATURES,
    FIGURES,
    MACHINE_SETS,
    MACHINE_WIDTHS,
    MACHINES,
    PROJECTION,
    PROJECTION_WIDTHS,
    SHAPIRO,
    SHAPIRO_SETS,
)

BLOCK = "block"
OURS = "ours"
LARGE = 0.05  # p of the Shapiro-Wilk test above which normality is not rejected


def _some(setup: Setup, name: str, most: int, seed: int) -> Doubles:
    """Return rows of a set, drawn at random."""
    X = data.images(setup.data.get(name))
    rng = np.random.default_rng(seed)
    return X[np.sort(rng.choice(len(X), min(most, len(X)), replace=False))]


# ---- Figure 1: correlations


class Figure1(Experiment):
    """Correlations of neighbours before and after shuffling."""

    name = "block fig1"
    title = "Absolute correlation of the first 50 coordinates"
    sets = SHAPIRO_SETS
    rows = 400

    def jobs(self, setup: Setup) -> Iterator[Job]:
        """Yield a job for each set and seed."""
        for name, seed in itertools.product(self.sets, range(setup.seeds)):
            if setup.data.get(name) is not None:
                job = functools.partial(self._correlations, setup, name, seed)
                yield Job(f"{name} / {seed}", job)

    def _correlations(self, setup: Setup, name: str, seed: int) -> dict[str, Any]:
        X = _some(setup, name, self.rows, seed)
        out: dict[str, Any] = {}
        arrangements: dict[str, Arrangement] = {"shuffled": "permutation", OURS: "stratified"}
        for label, arrangement in arrangements.items():
            report = functools.partial(
                block_report, arrangement=arrangement, n_pairs=2, n_draws=2, random_state=seed
            )
            estimate = quietly(report, X, Gaussian("scale"))
            for when, matrix in (
                ("before", estimate.correlation_before), (label, estimate.correlation_after),
            ):  # fmt: skip
                off = ~np.eye(len(matrix), dtype=bool)
                out[when] = float(np.nanmean(matrix[off]))
                if seed == 0 and when != OURS:
                    out[f"{when} matrix"] = np.nan_to_num(matrix).round(3).tolist()
        return out

    def cells(self, setup: Setup, outcomes: Outcomes) -> Iterator[Cell]:
        """Yield means off the diagonal."""
        for name in self.sets:
            before = values(outcomes, name, setup.seeds, "before")
            if not before:
                continue
            yield Cell(name, "before", "|correlation|", before)
            for label in ("shuffled", OURS):
                after = values(outcomes, name, setup.seeds, label)
                lighter = np.mean(after) < 0.9 * np.mean(before)
                light = "both light" if np.mean(before) < 0.3 else "no lighter"
                yield Cell(
                    name, label, "|correlation|", after,
                    FIGURES[self.name] if label == "shuffled" else None, True,
                    finding="lighter" if lighter else light,
                )  # fmt: skip

    def notes(self, setup: Setup) -> Iterator[str]:
        """Yield what is measured."""
        yield (
            "Correlations between columns, over rows of the set. The paper shows pictures of two "
            "examples and prints no numbers. Ours assigns neighbours to different blocks. Columns "
            "that stand together after shuffling are in a block together."
        )

    def pictures(self, setup: Setup, outcomes: Outcomes) -> Iterator[Picture]:
        """Yield the matrices."""
        for name in self.sets:
            one = outcomes.get(f"{name} / 0", {})
            for when in ("before", "shuffled"):
                if f"{when} matrix" in one:
                    yield Picture(f"{name}, {when}", {}, image=one[f"{when} matrix"])


# ---- Table 1: are the energies of blocks normal?


class Table1(Experiment):
    """Shapiro-Wilk tests of the energies of the blocks of differences."""

    name = "block table1"
    title = "Shapiro-Wilk test of the k numbers k |Delta_i|²"
    sets = SHAPIRO_SETS
    pairs = 30

    def jobs(self, setup: Setup) -> Iterator[Job]:
        """Yield a job for each set, case and seed."""
        for name in self.sets:
            if setup.data.get(name) is None:
                continue
            for (shuffled, normal), k, seed in itertools.product(
                SHAPIRO, (200, 1000), range(setup.seeds)
            ):
                job = functools.partial(self._test, setup, name, shuffled, normal, k, seed)
                yield Job(f"{name} / {self._case(shuffled, normal, k)} / {seed}", job)

    def _case(self, shuffled: bool, normal: bool, k: int) -> str:
        words = [word for word, on in (("shuffled", shuffled), ("normalised", normal)) if on]
        return f"{' and '.join(words) or 'as it is'}, k = {k:,}"

    def _test(
        self, setup: Setup, name: str, shuffled: bool, normal: bool, k: int, seed: int
    ) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        X = _some(setup, name, 200, seed)
        if normal:
            X = MeanNormalizer().fit_transform(X)
        tests = []
        for _ in range(5 if setup.quick else self.pairs):
            i, j = rng.choice(len(X), 2, replace=False)
            square = np.square(X[i] - X[j])
            if shuffled:
                square = rng.permutation(square)
            starts = np.arange(k) * len(square) // k
            sizes = np.diff([*starts, len(square)])
            tests.append(shapiro(np.add.reduceat(square, starts) * len(square) / sizes))
        return {
            "W": float(np.median([test.statistic for test in tests])),
            "p": float(np.median([test.pvalue for test in tests])),
            "share": float(np.mean([test.pvalue > LARGE for test in tests])),
            "size": X.shape[1] / k,
        }

    def cells(self, setup: Setup, outcomes: Outcomes) -> Iterator[Cell]:
        """Yield W and p, and whether both tables decide alike."""
        for i, name in enumerate(self.sets):
            known = setup.data.get(name)
            if known is None:
                continue
            for (shuffled, normal), printed in SHAPIRO.items():
                for k, numbers in printed.items():
                    case = self._case(shuffled, normal, k)
                    tested = {
                        key: values(outcomes, f"{name} / {case}", setup.seeds, key) for key in "Wp"
                    }
                    if not tested["p"]:
                        continue
                    ours, theirs = (
                        "normal" if p > LARGE else "not normal"
                        for p in (np.median(tested["p"]), numbers[i][1])
                    )
                    finding = f"{ours}, {'as printed' if ours == theirs else f'printed {theirs}'}"
                    for key, number in zip("Wp", numbers[i], strict=True):
                        yield Cell(
                            name, case, key, tested[key], number, note=known.note, finding=finding
                        )

    def notes(self, setup: Setup) -> Iterator[str]:
        """Yield what was tested."""
        yield (
            "The paper doesn't say what is tested, nor on how many pairs (B24). Here the k "
            "energies of a pair's difference are tested, and the numbers are medians over "
            f"{5 if setup.quick else self.pairs} pairs for each seed. Verdict: whether p is on the "
            "same side of 0.05. A sum of b squares is skew unless b is large, and a test of 1,000 "
            "numbers sees that. A test that doesn't reject says nothing of the bias: block_report "
            "measures it."
        )


# ---- Figure 2: errors


class Figure2(Experiment):
    """Errors of distances (Eq 8) and of the kernel (Eq 9) against dense matrices."""

    name = "block fig2"
    title = "Mean errors of distances (Eq 8) and of the kernel (Eq 9)"
    sets = SHAPIRO_SETS
    widths = (100, 200, 500, 1000)
    rows = 200

    def jobs(self, setup: Setup) -> Iterator[Job]:
        """Yield a job for each set, width and seed."""
        for name in self.sets:
            if setup.data.get(name) is None:
                continue
            widths = self.widths[:2] if setup.quick else self.widths
            for k, seed in itertools.product(widths, range(setup.seeds)):
                job = functools.partial(self._errors, setup, name, k, seed)
                yield Job(f"{name} / {k} / {seed}", job)

    def _errors(self, setup: Setup, name: str, k: int, seed: int) -> dict[str, Any]:
        X = MeanNormalizer().fit_transform(_some(setup, name, 40 if setup.quick else self.rows, 0))
        size = max(1, X.shape[1] // k)
        kernel = Gaussian("scale").resolve(X)
        projections = {
            "dense": GaussianRandomProjection(k, random_state=seed),
            BLOCK: BlockProjection(
                k, values="gaussian", arrangement="permutation", random_state=seed
            ),
            OURS: BlockProjection(k, random_state=seed),
        }
        features = {
            "dense": RandomFourierFeatures(kernel, 2 * k, random_state=seed),
            "FastFood": FastfoodFeatures(kernel, 2 * k, frequencies="normal", random_state=seed),
            BLOCK: BlockFourierFeatures(
                kernel, 2 * k, block_size=size, arrangement="permutation", random_state=seed
            ),
            OURS: BlockFourierFeatures(kernel, 2 * k, random_state=seed),
        }
        scale = float(mean_distance_error(X, np.zeros((len(X), 1))))  # mean squared distance
        K = kernel(X)
        out: dict[str, Any] = {}
        for label, projection in projections.items():
            V = quietly(projection.fit_transform, X)
            out[f"Eq 8 {label}"] = mean_distance_error(X, V) / scale
        for label, each in features.items():
            out[f"Eq 9 {label}"] = mean_kernel_error(K, quietly(each.fit_transform, X))
        return out

    def cells(self, setup: Setup, outcomes: Outcomes) -> Iterator[Cell]:
        """Yield errors, and how they stand to those of dense matrices."""
        for name, k in itertools.product(self.sets, self.widths):
            for equation, labels in (
                ("Eq 8", ("dense", BLOCK, OURS)), ("Eq 9", ("dense", "FastFood", BLOCK, OURS)),
            ):  # fmt: skip
                dense = values(outcomes, f"{name} / {k}", setup.seeds, f"{equation} dense")
                for label in labels if dense else ():
                    errors = values(outcomes, f"{name} / {k}", setup.seeds, f"{equation} {label}")
                    times = float(np.mean(errors) / np.mean(dense))
                    close = abs(times - 1) <= max(TOLERANCE, float(np.std(errors) / np.mean(dense)))
                    word = "on par" if close else "lower" if times < 1 else "higher"
                    yield Cell(
                        f"{name}, k = {k:,}", label, equation, errors,
                        FIGURES[self.name] if label == BLOCK else None,
                        finding="" if label == "dense" else f"{word}: {times:.2f} of dense",
                    )  # fmt: skip

    def notes(self, setup: Setup) -> Iterator[str]:
        """Yield the protocol."""
        yield (
            "Eq 8 in units of the mean squared distance. Columns mean-normalised (Section 3.2), "
            'gamma "scale", k frequencies, cos and sin. block: as published, blocks of D / k '
            "coordinates by one permutation, Gaussian numbers. ours: the defaults: signs for "
            "distances, blocks of 32 coordinates and more passes for the kernel. The figure prints "
            "no numbers."
        )

    def pictures(self, setup: Setup, outcomes: Outcomes) -> Iterator[Picture]:
        """Yield a panel for each set and equation."""
        for name, equation in itertools.product(self.sets, ("Eq 8", "Eq 9")):
            lines = {}
            for label in ("dense", "FastFood", BLOCK, OURS):
                errors_of = [
                    (k, values(outcomes, f"{name} / {k}", setup.seeds, f"{equation} {label}"))
                    for k in self.widths
                ]
                points = [(k, float(np.mean(errors))) for k, errors in errors_of if errors]
                if points:
                    lines[label] = ([p[0] for p in points], [p[1] for p in points])
            if lines:
                yield Picture(f"{name}, {equation}", lines, "k", "error", log_x=True, log_y=True)


# ---- Tables 2 and 3: times as ratios


def _in_turn(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the least seconds of each call, all of them in turn in each round.

    The least, since whatever else the machine does only adds to a time.
    """
    times = dict.fromkeys(calls, np.inf)
    for _ in range(rounds + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


class _Speeds(Experiment):
    """How many times faster than dense matrices, on rows of normal numbers."""

    seeds = (1, 1)
    rows = 64
    slice = 128
    rounds = 5
    dims: tuple[int, ...]
    widths: tuple[int, ...]
    quick_dims = (5_000, 17_500)

    def jobs(self, setup: Setup) -> Iterator[Job]:
        """Yield a job for each size."""
        dims = self.quick_dims if setup.quick else self.dims
        widths = self.widths[:3] if setup.quick else self.widths
        for dim, k in itertools.product(dims, widths):
            for seed in range(setup.seeds):
                job = functools.partial(self._measure, dim, k, seed)
                yield Job(f"D = {dim:,} / {k} / {seed}", job)

    def _measure(self, dim: int, k: int, seed: int) -> dict[str, Any]:
        raise NotImplementedError


class Table2(_Speeds):
    """Random projection."""

    name = "block table2"
    title = "Random projection: times faster than a dense matrix"
    dims = tuple(PROJECTION)
    widths = PROJECTION_WIDTHS

    def _measure(self, dim: int, k: int, seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((self.rows, dim), dtype=np.float32)
        columns = min(k, self.slice)
        R = rng.standard_normal((dim, columns), dtype=np.float32)
        product, out = np.empty((len(X), columns), np.float32), np.empty((len(X), k), np.float32)
        published = BlockProjection(
            k, values="gaussian", arrangement="permutation", random_state=seed
        ).fit(X[:2])
        ours = BlockProjection(k, random_state=seed).fit(X[:2])
        times = _in_turn(
            {
                "dense": lambda: np.matmul(X, R, out=product),
                "row by row": lambda: [np.matmul(row, R, out=product[0]) for row in X[:8]],
                BLOCK: lambda: published.transform(X, out=out),
                OURS: lambda: ours.transform(X, out=out),
            },
            self.rounds,
        )
        whole = k / columns
        dense = times["dense"] * whole
        rows = times["row by row"] * whole * len(X) / 8
        return {
            BLOCK: dense / times[BLOCK],
            OURS: dense / times[OURS],
            "block / row by row": rows / times[BLOCK],
        }

    def cells(self, setup: Setup, outcomes: Outcomes) -> Iterator[Cell]:
        """Yield ratios."""
        for dim, printed in PROJECTION.items():
            for k, number in zip(PROJECTION_WIDTHS, printed, strict=True):
                start = f"D = {dim:,} / {k}"
                for label in (BLOCK, "block / row by row", OURS):
                    times = values(outcomes, start, setup.seeds, label)
                    if times:
                        yield Cell(f"D = {dim:,}", f"k = {k:,}", label, times,
                                   number if label == BLOCK else None, False)  # fmt: skip

    def notes(self, setup: Setup) -> Iterator[str]:
        """Yield how it was measured."""
        yield (
            f"{self.rows} rows of float32, all in turn in one run, the least of "
            f"{self.rounds + 1} rounds. The dense product takes {self.slice} columns of the matrix "
            "and is scaled up to k. "
            "Row by row: the same one row at a time, bound by memory, to the time of the block "
            "projection. The ratio is one of two programs: the paper's dense product is not known, "
            "and the faster it is the smaller the ratio. At best it is 2 k operations at the rate "
            "of a product against 4 bytes read. D as in the paper; the numbers are random."
        )


class Table3(_Speeds):
    """Random features."""

    name = "block table3"
    title = "Random features: times faster than random kitchen sinks"
    dims = tuple(FEATURES)
    widths = FEATURE_WIDTHS
    rows = 32

    def _measure(self, dim: int, k: int, seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((self.rows, dim), dtype=np.float32)
        columns = min(k, self.slice)
        W = rng.standard_normal((dim, columns), dtype=np.float32)
        product, out = np.empty((len(X), columns), np.float32), np.empty((len(X), k), np.float32)
        kernel = Gaussian(0.5 / dim)
        maps = {
            BLOCK: BlockFourierFeatures(
                kernel, k, block_size=max(1, 2 * dim // k), arrangement="permutation",
                random_state=seed,
            ),
            OURS: BlockFourierFeatures(kernel, k, random_state=seed),
            "FastFood": FastfoodFeatures(
                kernel, k, frequencies="normal", random_state=seed
            ),
        }  # fmt: skip
        for each in maps.values():
            quietly(each.fit, X[:2])
        # Half as many frequencies as features, of each cos and sin.
        half = product[:, : max(1, columns // 2)]
        frequencies = np.ascontiguousarray(W[:, : half.shape[1]])
        angles = np.empty_like(half)

        def dense() -> None:
            np.matmul(X, frequencies, out=angles)
            np.cos(angles, out=half)
            np.sin(angles, out=half)

        calls: dict[str, Callable[[], Any]] = {"dense": dense}
        calls |= {
            name: functools.partial(each.transform, X, out=out) for name, each in maps.items()
        }
        times = _in_turn(calls, self.rounds)
        whole = times["dense"] * k / (2 * half.shape[1])
        return {name: whole / times[name] for name in maps}

    def cells(self, setup: Setup, outcomes: Outcomes) -> Iterator[Cell]:
        """Yield ratios."""
        for dim, (block, fastfood) in FEATURES.items():
            for i, k in enumerate(FEATURE_WIDTHS):
                for label, printed in ((BLOCK, block[i]), ("FastFood", fastfood[i]), (OURS, None)):
                    times = values(outcomes, f"D = {dim:,} / {k}", setup.seeds, label)
                    if times:
                        single = label == BLOCK and k >= 2 * dim
                        yield Cell(
                            f"D = {dim:,}", f"k = {k:,}", label, times, printed, False,
                            note="one coordinate a block (B21)" if single else "",
                        )  # fmt: skip

    def notes(self, setup: Setup) -> Iterator[str]:
        """Yield how it was measured."""
        yield (
            f"{self.rows} rows of float32, k features, all in turn in one run, the least of "
            f"{self.rounds + 1} rounds; kitchen sinks: {self.slice} features by one product of all "
            "rows, scaled up to k. block: as published, one pass while D suffices. ours: blocks of "
            "32 coordinates, in more passes. From k = 2 D on a published block holds one "
            "coordinate, and the features are of another kernel (B21): these ratios say nothing of "
            "accuracy."
        )


# ---- Table 4: support vector machines


class Table4(Experiment):
    """Linear machines on features against machines with the kernel."""

    name = "block table4"
    title = "Linear SVM on features against the SVM with the RBF kernel"
    sets = MACHINE_SETS
    seeds = (3, 1)

    def __init__(self, rows: int = 1_000_000, choosing: int = 3000) -> None:
        self.rows, self.choosing = rows, choosing

    def jobs(self, setup: Setup) -> Iterator[Job]:
        """Yield a job for each set, method, width and seed."""
        for name in self.sets:
            if setup.data.get(name) is None:
                continue
            job = functools.partial(self._exact, setup, name)
            yield Job(f"{name} / SVM with RBF / 0", job)
            widths = MACHINE_WIDTHS[:1] if setup.quick else MACHINE_WIDTHS
            for k, method, seed in itertools.product(
                widths, self._methods(Gaussian(1.0), 4, 64, 0), range(setup.seeds)
            ):
                job = functools.partial(self._linear, setup, name, method, k, seed)
                yield Job(f"{name} / {method} {k} / {seed}", job)

    def _methods(self, kernel: Any, width: int, dim: int, seed: int) -> dict[str, Any]:
        return {
            "block": BlockFourierFeatures(
                kernel, width, block_size=max(1, 2 * dim // width), arrangement="permutation",
                random_state=seed,
            ),
            "Fourier": RandomFourierFeatures(kernel, width, random_state=seed),
            "FastFood": FastfoodFeatures(
                kernel, width, frequencies="normal", random_state=seed
            ),
            OURS: BlockFourierFeatures(kernel, width, random_state=seed),
        }  # fmt: skip

    def _data(self, setup: Setup, name: str) -> tuple[Doubles, Any, Doubles, Any]:
        X, y, test, truth = data.labelled(setup.data.get(name), name, 0)
        most = min(self.rows, 3000 if setup.quick else 20_000 if name == "CIFAR-10" else self.rows)
        return X[:most], y[:most], test, truth

    @functools.cached_property
    def _choices(self) -> dict[str | None, tuple[float, float]]:
        return {}

    def _choose(self, setup: Setup, name: str, X: Doubles, y: Any) -> tuple[float, float]:
        """Choose gamma and C by the machine with the kernel, one half of some rows by the other."""
        rows = setup.data.digest(name)
        if rows not in self._choices:
            X, y = X[: self.choosing], y[: self.choosing]
            half = len(X) // 2
            spread = float(X.var(axis=0).sum())
            scores = {}
            for times, C in itertools.product((0.25, 1.0, 4.0), (1.0, 10.0)):
                gamma = times / spread
                machine = self._machine(name)(gamma=gamma, C=C)
                score = quietly(machine.fit, X[:half], y[:half]).score(X[half:], y[half:])
                scores[gamma, C] = score
            self._choices[rows] = max(scores, key=lambda key: scores[key])
        return self._choices[rows]

    def _machine(self, name: str) -> Any:
        return SVR if name == "CENSUS" else SVC

    def _score(self, name: str, predicted: Any, truth: Any) -> float:
        if name == "CENSUS":
            return 100 * float(np.sqrt(np.mean(np.square(predicted - truth))))
        return 100 * float(np.mean(predicted == truth))

    def _exact(self, setup: Setup, name: str) -> dict[str, Any]:
        X, y, test, truth = self._data(setup, name)
        gamma, C = self._choose(setup, name, X, y)
        machine = self._machine(name)(gamma=gamma, C=C, cache_size=1000)
        quietly(machine.fit, X, y)
        if name == "CENSUS":
            baseline: Any = np.full(len(truth), np.mean(y))
        else:
            names, counts = np.unique(y, return_counts=True)
            baseline = np.full(len(truth), names[counts.argmax()])
        return {
            "score": self._score(name, machine.predict(test), truth),
            "baseline": self._score(name, baseline, truth),
            "gamma": gamma,
            "C": C,
        }

    def _linear(self, setup: Setup, name: str, method: str, k: int, seed: int) -> dict[str, Any]:
        X, y, test, truth = self._data(setup, name)
        gamma, C = self._choose(setup, name, X, y)
        features = self._methods(Gaussian(gamma), k, X.shape[1], seed)[method]
        Z = quietly(features.fit_transform, X.astype(np.float32))
        if name == "CENSUS":
            machine: Any = LinearSVR(C=C, random_state=seed)
        else:
            machine = LinearSVC(C=C, dual=False, tol=1e-3, max_iter=200, random_state=seed)
        quietly(machine.fit, Z, y)
        return {"score": self._score(name, machine.predict(features.transform(test)), truth)}

    def cells(self, setup: Setup, outcomes: Outcomes) -> Iterator[Cell]:
        """Yield accuracies in per cent, of CENSUS the error of the standardised target."""
        for i, name in enumerate(self.sets):
            known = setup.data.get(name)
            if known is None:
                continue
            measure = "error" if name == "CENSUS" else "accuracy, %"
            judged, note = known.comparable, known.note
            exact = values(outcomes, f"{name} / SVM with RBF", 1, "score")
            less = name == "CENSUS"
            if exact:
                printed = MACHINES["SVM with RBF"][i][0]
                yield Cell(name, "SVM with RBF", measure, exact, printed, less, judged, note)
                base = values(outcomes, f"{name} / SVM with RBF", 1, "baseline")
                yield Cell(name, "constant", measure, base, note="the largest class, or the mean")
            for k_index, k in enumerate(MACHINE_WIDTHS):
                for method in ("block", "Fourier", "FastFood", OURS):
                    scores = values(outcomes, f"{name} / {method} {k}", setup.seeds, "score")
                    if scores:
                        of_table = MACHINES.get(method)
                        yield Cell(
                            name, f"{method}, {k:,}", measure, scores,
                            of_table[i][k_index] if of_table else None, less, judged,
                            note if of_table else "",
                        )  # fmt: skip

    def notes(self, setup: Setup) -> Iterator[str]:
        """Yield the protocol, and the columns that seem exchanged."""
        yield (
            "gamma and C chosen by the machine with the kernel, on halves of "
            f"{self.choosing:,} training rows, the same for all. ADULT: numbers of variance 1, "
            "categories as columns of 0 and 1. The paper prints 75 to 76 % for CIFAR-10 and 59 to "
            "65 % for ADULT: 76.4 % is the share of ADULT's largest class in the test set, so that "
            "these columns are exchanged or predict a constant (B22). Hence the row of a constant."
            + (" Quick: 3,000 training rows." if setup.quick else "")
        )
        yield (
            "block: as published; with more frequencies than columns its blocks hold one "
            "coordinate (B21). ours: blocks of the default size, in more passes."
        )


EXPERIMENTS: tuple[type[Experiment], ...] = (Figure1, Table1, Figure2, Table2, Table3, Table4)
