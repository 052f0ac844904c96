"""`gzkcore fit`: it learns from rows, saves the model, and compares it with baselines."""

import functools
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gzkcore._util.typing import Doubles, Integers, OnProgress
from gzkcore._util.wording import LONG, seconds_told
from gzkcore.learn.held_out import FOLDS
from gzkcore.tabular.fitted_table import FittedTable
from gzkcore.tabular.form import AUTO, FEWEST_CENTERS, Form
from gzkcore.tabular.kernel_classifier import KernelClassifier
from gzkcore.tabular.kernel_regressor import KernelRegressor

from .frame_rows import FrameRows
from .inputs import inputs_of, place_alone, place_names
from .maps import Surface, surface_of, window_of
from .output import if_interrupted, tell
from .verdict import Tested, Verdict, judge_model


@dataclass(frozen=True)
class FrameFit:
    """What `fit_frame` returns."""

    model: KernelRegressor | KernelClassifier
    rows: FrameRows
    importances: dict[str, float]  # the shares of columns by the learned lengths
    places: Doubles | None  # latitude and longitude of the rows of the fit, if that is all
    surface: Surface | None  # what a map shows, if it predicts numbers from places alone
    verdict: Verdict | None  # None without a test


def fit_frame(
    rows: FrameRows, path: Path, options: dict[str, Any], report: OnProgress, hatched: bool = True
) -> FrameFit:
    """Learn from the rows of the fit, and test by those held out, or by each fifth in turn.

    The model is saved before it is tested: whatever happens then, the fit is not lost.
    """
    started = time.perf_counter()
    model = _learned(rows, slice(None), options, report)
    took = time.perf_counter() - started
    shares = zip(rows.inputs.columns, model.feature_importances_.tolist(), strict=True)
    importances = dict(sorted(shares, key=lambda each: -each[1]))
    place, places, surface, verdict = place_alone(model), None, None, None
    model.table_ = FittedTable(rows.target, rows.missing, rows.inputs.west)
    if place is not None:
        places = np.column_stack([rows.train[name] for name in place.names])
        model.table_.window = [*window_of(places)]
        if not rows.classify:
            take = inputs_of(model).at
            surface = surface_of(model, take, places, rows.y, hatched=hatched)
    model.save(path)
    if len(rows.truth):
        with if_interrupted(path, f"{path} has the model, which was not tested"):
            used = [name for name, share in importances.items() if share > 0]
            tried = _tried(used, place_names(model)) if place is None else {}
            tested = Tested([model], [slice(None)], np.zeros(len(rows.truth), dtype=np.intp))
            if rows.folds is not None:
                tested = _learned_in_turn(rows, options, report)
            verdict = judge_model(tested, rows, took, tried, options["random_state"], report)
    return FrameFit(model, rows, importances, places, surface, verdict)


def _tried(columns: list[str], places: tuple[str, ...]) -> dict[str, list[str]]:
    """Return what is shuffled, by what it is called: columns, or two together that are a place."""
    tried = {", ".join(places): [*places]} if places else {}
    tried |= {name: [name] for name in columns if name not in places}
    order = {name: place for place, name in enumerate(columns)}
    return dict(sorted(tried.items(), key=lambda each: min(order[name] for name in each[1])))


def _learned(
    rows: FrameRows, used: Integers | slice, options: dict[str, Any], report: OnProgress
) -> Any:
    """Learn from some of the rows of the fit; groups are held out whole for the choice too."""
    learner = KernelClassifier if rows.classify else KernelRegressor
    model = learner(**options, columns=rows.chosen or None)
    model._on_progress = report
    model._before_fit = functools.partial(_announced, options["form"])
    if rows.source is not None:
        return model.fit(rows.source)
    groups = None if rows.groups is None else rows.groups[used]
    if groups is not None and len(np.unique(groups)) == 1:
        groups = None
    weight = None if rows.weight is None else rows.weight[used]
    return model.fit(rows.train.take(used), rows.y[used], weight, groups=groups)


def _announced(asked: str, form: Form, trials: Any, best: Any, n_rows: int) -> None:
    """Tell how long a long fit takes, and which options make it shorter."""
    seconds = form.seconds(trials, best, n_rows)
    shorter = f"--centers {form.centers // 2 if form.centers else FEWEST_CENTERS}"
    if form.features:
        shorter = f"--features {form.features // 2}"
    elif asked == AUTO:
        shorter += " or --time 60"
    shorter = "" if form.near else f"; shorter: --near 50 or {shorter}"
    if seconds > LONG:
        tell(f"fitting {form.what(n_rows)} takes about {seconds_told(seconds)}{shorter}")


def _learned_in_turn(rows: FrameRows, options: dict[str, Any], report: OnProgress) -> Tested:
    """Learn from all rows but a fold, for each fold: all is chosen anew."""
    models, fitted = [], [np.flatnonzero(rows.folds != fold) for fold in range(FOLDS)]
    for done, used in enumerate(fitted):

        def watch(stage: str, *_: object, fold: int = done) -> None:
            report("testing", fold / FOLDS, f"fit {fold + 1} of {FOLDS}: {stage}")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters is said of the fit to all rows
            models.append(_learned(rows, used, options, watch))
    report("testing", 1)
    return Tested(models, fitted, np.asarray(rows.folds))
