"""Pictures of a fit: predictions against values, and the columns that matter."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gzkcore._util.typing import Doubles
from gzkcore._util.wording import as_plain, fitted_to, told_apart
from gzkcore.evaluate.draw import (
    FAINT,
    INK,
    as_written,
    plain_numbers,
    plain_ticks,
    save_picture,
    styled,
    titled,
)
from gzkcore.rows.values import Values
from gzkcore.tabular.kernel_classifier import KernelClassifier

from .maps import draw_map, length_km, surface_of
from .recipes import places_among, rows_at
from .verdict import LEAST_RISE

if TYPE_CHECKING:
    from .fit_frame import FrameFit
    from .verdict import Verdict

MOST_DOTS = 1000  # of a picture that shows each row
MOST_BARS, MOST_CLASSES = 12, 15
LEAST_BARS = 4  # places for bars: two are no broad ones
LONG_NAME, LONG_LABEL = 24, 44  # letters of a class or column, and of what is beside an axis


@styled
def draw_frame(found: "FrameFit", path: Path, name: str) -> None:
    """Draw a surface over the globe, or predictions against values and which columns matter."""
    from matplotlib.figure import Figure

    recipe, verdict = found.rows.recipe, found.verdict
    target = recipe.target
    take = rows_at(found.model, recipe)
    if found.places is not None and take is not None and not found.rows.classify:
        km = length_km(found.model, found.places)
        surface = surface_of(found.model, take, found.places, km, found.rows.y)
        draw_map(path, surface, f"{target}, fitted to {name}", target)
        return
    # Bars of errors that change by chance would look like importances.
    errors = [] if verdict is None else [*verdict.shuffled.values()]
    wide = (
        verdict is not None and len(errors) > 1 and max(errors) > LEAST_RISE * verdict.error_of_some
    )
    figure = Figure(figsize=(11.5 if wide else 6.4, 6), layout="constrained")
    axes = figure.subplots(1, 1 + wide, width_ratios=[1.3, 1][: 1 + wide], squeeze=False)[0]
    kind = "training" if verdict is None else "held-out"
    rows = f"{kind} rows of {name}"
    if found.rows.folds is not None:
        rows = f"rows of {name}, each held out once"
    truth = found.rows.y if verdict is None else found.rows.truth
    predicted = found.model.predict(found.rows.train) if verdict is None else verdict.predicted
    if isinstance(found.model, KernelClassifier):
        _draw_labels(axes[0], found.model.classes_, truth, predicted, target)
        colors = f"colours: share of each actual {fitted_to(target, LONG_NAME)}"
        lines = [f"Actual and predicted {target}", f"{len(truth):,} {rows}", colors]
        if verdict is not None:
            lines.insert(2, f"{100 * np.mean(predicted != truth):.1f} % of predictions are wrong")
        titled(axes[0], *lines, inches=4.2)
    else:
        errors_told = "" if verdict is None else about_errors(verdict.methods[0])
        _draw_agreement(axes[0], np.column_stack([truth, predicted]), rows, target, errors_told)
    if verdict is not None and wide:
        n_columns = len(recipe.columns) - len(places_among(found.model)) // 2  # one bar of two
        _draw_bars(axes[1], verdict, found.rows.classify, n_columns)
    save_picture(figure, path)


def about_errors(summary: dict[str, Any]) -> str:
    """Say what the error of a test is, for a title; "" without a test."""
    if summary["rmse"] is None:
        return ""
    r2 = "" if summary["r2"] is None else f", R² {summary['r2']:z.3f}"
    return f"root mean squared error {as_plain(summary['rmse'], 3)}{r2}"


def _draw_agreement(axes: Any, pairs: Doubles, rows: str, label: str, errors: str) -> None:
    """Draw predicted against actual values: dots, or if they are many their counts."""
    few = len(pairs) <= MOST_DOTS
    size = min(7.0, max(3.5, 60 / len(pairs) ** 0.5))  # points
    both = np.quantile(pairs, [0, 1] if few else [0.001, 0.999])
    margin = 0.03 * (both[1] - both[0])
    limits = both[0] - margin, both[1] + margin
    outside = int(np.any((pairs < limits[0]) | (pairs > limits[1]), axis=1).sum())
    if few:
        axes.plot(*pairs.T, "o", markersize=size, alpha=0.5, markeredgewidth=0)
    else:
        bins = axes.hexbin(
            *pairs.T, gridsize=60, extent=(*limits, *limits), mincnt=1, bins="log", cmap="viridis"
        )
        beside = axes.inset_axes((1.03, 0.1, 0.03, 0.8))  # as high as what it is beside
        bar = axes.figure.colorbar(bins, cax=beside, label="rows")
        plain_ticks(bar.ax.yaxis, whole=True)
    axes.axline((both[0], both[0]), slope=1, color=INK, linewidth=1)
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        plain_numbers(axis)
    short = as_written(fitted_to(label, LONG_LABEL))
    axes.set(xlabel=f"actual {short}", ylabel=f"predicted {short}")
    more = f", {outside:,} of them outside the picture" if outside else ""
    told = [f"{len(pairs):,} {rows}{more}; line: perfect"] + [errors] * bool(errors)
    titled(axes, f"Predicted against actual {label}", *told, inches=5.2)


def _draw_labels(axes: Any, classes: Values, truth: Values, predicted: Values, label: str) -> None:
    """Draw how often each label was predicted for each: of many, for the most frequent."""
    counts = [np.count_nonzero(truth == each) for each in classes]
    shown = np.sort(np.argsort(counts)[::-1][:MOST_CLASSES])
    names = [*map(as_written, told_apart([str(classes[i]) for i in shown], LONG_NAME))]
    label = as_written(fitted_to(label, LONG_LABEL // 2))
    table = np.array(
        [[np.count_nonzero((truth == a) & (predicted == b)) for b in classes[shown]]
         for a in classes[shown]]
    )  # fmt: skip
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    # The title says what colours are: a label of the bar would read as one of the axes beside it.
    axes.figure.colorbar(image, ax=axes, shrink=0.8, format=lambda share, _: f"{100 * share:.0f} %")
    for (i, j), count in np.ndenumerate(table):
        color = "white" if shares[i, j] > 0.5 else INK if count else FAINT
        axes.text(j, i, f"{count:,}", ha="center", va="center", color=color, size=9)
    turned = 90 if max(map(len, names)) * len(names) > 60 else 0
    axes.set_xticks(range(len(names)), names, rotation=turned)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel=f"predicted {label}", ylabel=f"actual {label}")


def _draw_bars(axes: Any, verdict: "Verdict", classify: bool, n_columns: int) -> None:
    """Draw by how much the error rises where a column is shuffled, the largest at the top.

    Of more than `MOST_BARS` columns, the title says how many are shown of how many there are.
    """
    bars, percent = list(verdict.shuffled.items())[:MOST_BARS], 100 if classify else 1
    least = percent * verdict.error_of_some
    names = told_apart([name for name, _ in bars], LONG_NAME)
    rises = [percent * error - least for _, error in bars]
    axes.barh(range(len(bars), 0, -1), rises, height=0.7)
    axes.axvline(0, color=INK, linewidth=1)
    axes.set_yticks(range(len(bars), 0, -1), map(as_written, names))
    axes.set_ylim(min(1, len(bars) - LEAST_BARS + 1) - 0.5, len(bars) + 0.5)
    error = f"error rate of {least:.3g} %" if classify else f"error of {as_plain(least, 3)}"
    plain_numbers(axes.xaxis)
    chance = ["below 0: by chance"] if min(rises) < 0 else []
    notes = ["in percentage points"] * classify + chance
    axes.set_xlabel("\n".join([f"rise of the {error}", "when the column is shuffled", *notes]))
    some = [f"the top {len(bars)} of {n_columns:,}"] if len(bars) < n_columns else []
    titled(axes, "Which columns matter", *some, inches=3.0)
