"""Pictures of a fit: predictions against values, and the columns that matter."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from gzkcore._util.typing import Doubles
from gzkcore._util.wording import as_plain, fitted_to, told_apart
from gzkcore.evaluate.draw import (
    COLORS,
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

from .inputs import place_names
from .maps import map_of
from .verdict import LEAST_RISE, MOST_ROWS, wilson

if TYPE_CHECKING:
    from .fit_frame import FrameFit
    from .verdict import Verdict

MOST_DOTS = 1000  # a picture of more rows shows their counts
MOST_BARS, MOST_CLASSES = 12, 15  # no more columns, or labels, are drawn
BINS = 10  # of probabilities
BLUE = "#08519c"  # a label has this colour if it is always predicted right
LEAST_BARS = 4  # there is room for so many bars, so that two are not broad
# Names of labels and columns, and labels of axes, are shortened to so many letters.
LONG_NAME, LONG_LABEL = 24, 44


@styled()
def draw_frame(fit: "FrameFit", path: Path, name: str) -> None:
    """Draw a surface over the globe, or predictions against values and which columns matter."""
    from matplotlib.figure import Figure

    if fit.surface is not None:
        target = fit.rows.target
        save_picture(map_of(fit.surface, f"{target}, fitted to {name}", target), path)
        return
    wide = fit.verdict is not None and has_bars(fit.verdict)
    figure = Figure(figsize=(11.5 if wide else 6.4, 6), layout="constrained")
    axes = figure.subplots(1, 1 + wide, width_ratios=[1.3, 1][: 1 + wide], squeeze=False)[0]
    draw_predictions(axes[0], fit, name)
    if wide and fit.verdict is not None:
        draw_bars(axes[1], fit, fit.verdict, "Which columns matter")
    save_picture(figure, path)


def has_bars(verdict: "Verdict") -> bool:
    """Say whether some column matters; else there are no bars, which chance would draw."""
    errors = [*verdict.shuffled.values()]
    return len(errors) > 1 and max(errors) > LEAST_RISE * verdict.error_of_some


def draw_predictions(axes: Any, fit: "FrameFit", name: str, inches: float = 5.2) -> None:
    """Draw predicted against actual values, or how often each label was predicted for each."""
    verdict, target = fit.verdict, fit.rows.target
    kind = "training" if verdict is None else "held-out"
    rows = f"{kind} rows of {name}"
    if fit.rows.folds is not None:
        rows = f"rows of {name}, each held out once"
    truth = fit.rows.y if verdict is None else fit.rows.truth
    predicted = fit.model.predict(fit.rows.train) if verdict is None else verdict.predicted
    if isinstance(fit.model, KernelClassifier):
        _draw_labels(axes, fit.model.classes_, truth, predicted, target)
        colors = f"colours: share of each actual {fitted_to(target, LONG_NAME)}"
        lines = [f"Actual and predicted {target}", f"{len(truth):,} {rows}", colors]
        if verdict is not None:
            lines.insert(2, f"{100 * np.mean(predicted != truth):.1f} % of predictions are wrong")
        longest = min(LONG_NAME, max(len(str(name)) for name in fit.model.classes_))
        titled(axes, *lines, inches=inches - longest / 18)
    else:
        errors = ""
        if verdict is not None:
            rmse, r2 = (verdict.methods[0][key] for key in ("rmse", "r2"))
            more = "" if r2 is None else f", R² {r2:z.3f}"
            errors = f"root mean squared error {as_plain(rmse, 3)}{more}"
        pairs = np.column_stack([truth, predicted])
        _draw_agreement(axes, pairs, rows, target, errors, inches)


def _draw_agreement(
    axes: Any, pairs: Doubles, rows: str, label: str, errors: str, inches: float = 5.2
) -> None:
    """Draw predicted against actual values: dots, or counts of many rows."""
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
        beside = axes.inset_axes((1.03, 0.1, 0.03, 0.8))
        bar = axes.figure.colorbar(bins, cax=beside, label="rows")
        plain_ticks(bar.ax.yaxis, whole=True)
    axes.axline((both[0], both[0]), slope=1, color=INK, linewidth=1)
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        plain_numbers(axis)
    short = as_written(fitted_to(label, min(LONG_LABEL, int(8.4 * inches))))
    axes.set(xlabel=f"actual {short}", ylabel=f"predicted {short}")
    more = f", {outside:,} of them outside the picture" if outside else ""
    lines = [f"{len(pairs):,} {rows}{more}; line: perfect"] + [errors] * bool(errors)
    titled(axes, f"Predicted against actual {label}", *lines, inches=inches)


def _draw_labels(axes: Any, classes: Values, truth: Values, predicted: Values, label: str) -> None:
    """Draw how often each label was predicted for each, of many labels for the most frequent."""
    from matplotlib.colors import LinearSegmentedColormap
    from sklearn.metrics import confusion_matrix

    counts = [np.count_nonzero(truth == name) for name in classes]
    shown = np.sort(np.argsort(counts)[::-1][:MOST_CLASSES])
    names = [*map(as_written, told_apart([str(classes[i]) for i in shown], LONG_NAME))]
    label = as_written(fitted_to(label, LONG_LABEL // 2))
    table = confusion_matrix(truth, predicted, labels=classes[shown])
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    clear = LinearSegmentedColormap.from_list("clear", [f"{BLUE}00", BLUE])  # on any paper
    image = axes.imshow(shares, cmap=clear, vmin=0, vmax=1, aspect="auto")
    # The title explains the colours: a label of the bar would look like one of the next axes.
    axes.figure.colorbar(image, ax=axes, shrink=0.8, format=lambda share, _: f"{100 * share:.0f} %")
    for (i, j), count in np.ndenumerate(table):
        color = "white" if shares[i, j] > 0.5 else INK if count else FAINT
        axes.text(j, i, f"{count:,}", ha="center", va="center", color=color)
    turned = 90 if max(map(len, names)) * len(names) > 60 else 0
    axes.set_xticks(range(len(names)), names, rotation=turned)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel=f"predicted {label}", ylabel=f"actual {label}")


def draw_calibration(axes: Any, fit: "FrameFit", verdict: "Verdict") -> None:
    """Draw how often intervals contain the value against how often they should.

    For labels, draw how often predictions are right against their probabilities.
    """
    known = ~np.isnan(verdict.spread)
    spread, errors, n = verdict.spread[known], verdict.errors[known], int(known.sum())
    axes.plot([0, 100], [0, 100], color=INK, linewidth=1)
    if fit.rows.classify:
        for part in np.array_split(np.argsort(spread), min(BINS, max(1, n // 10))):
            stated, right = 100 * spread[part].mean(), 1 - errors[part].mean()
            interval = np.multiply(wilson(right, len(part)), 100)
            axes.plot([stated, stated], interval, color=COLORS[0])
            axes.plot(stated, 100 * right, "o", color=COLORS[0], clip_on=False)
        title, note = "Right predictions against their probability", "with 95 % intervals"
        axes.set(xlabel="probability of the predicted label, %", ylabel="right, %")
    else:
        share = np.linspace(0, 1, 101)
        # The smallest share of a normal distribution whose interval holds the value.
        level = 2 * ndtr(np.abs(errors) / spread) - 1
        inside = np.searchsorted(np.sort(level), share, side="right") / n
        ends = share + 1.96 * np.sqrt(share * (1 - share) / n) * [[-1], [1]]
        axes.fill_between(100 * share, *(100 * ends), color=FAINT, alpha=0.3, linewidth=0)
        axes.plot(100 * share, 100 * inside, color=COLORS[0])
        title, note = "Values inside intervals", "grey: 95 % of chance"
        axes.set(xlabel="inside by the standard deviation, %", ylabel="inside, %")
    axes.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
    titled(axes, title, f"{n:,} held-out rows; line: perfect; {note}", inches=3.6)


def draw_errors(axes: Any, fit: "FrameFit", verdict: "Verdict") -> None:
    """Draw the errors of all methods with their 95 % intervals, one below the other."""
    percent, key = (100, "error_rate") if fit.rows.classify else (1, "rmse")
    for place, method in enumerate(verdict.methods):
        error, spread = method[key], method["plus_minus"]
        ends = method.get("low", error - spread), method.get("high", error + spread)
        axes.barh(place, percent * error, height=0.6, color=FAINT if place else COLORS[0])
        axes.plot(np.multiply(percent, ends), [place, place], color=INK)
    names = [method["method"] for method in verdict.methods]
    axes.set_yticks(range(len(names)), map(as_written, names))
    axes.invert_yaxis()
    plain_numbers(axes.xaxis)
    what = "wrong, %" if fit.rows.classify else "root mean squared error"
    axes.set_xlabel(f"{what}\nlines: 95 % intervals")


def draw_bars(axes: Any, fit: "FrameFit", verdict: "Verdict", *title: str) -> None:
    """Draw by how much the error, of labels the log loss, rises when a column is shuffled.

    If there are more than `MOST_BARS` columns, the title says how many are shown.
    """
    # Latitude and longitude are shuffled together, as one column.
    n_columns = sum(share > 0 for share in fit.importances.values())
    n_columns -= len(place_names(fit.model)) // 2
    bars, least = list(verdict.shuffled.items())[:MOST_BARS], verdict.error_of_some
    names = told_apart([name for name, _ in bars], LONG_NAME)
    rises = [error - least for _, error in bars]
    axes.barh(range(len(bars), 0, -1), rises, height=0.7)
    axes.axvline(0, color=INK, linewidth=1)
    axes.set_yticks(range(len(bars), 0, -1), map(as_written, names))
    axes.set_ylim(min(1, len(bars) - LEAST_BARS + 1) - 0.5, len(bars) + 0.5)
    measure = "log loss" if fit.rows.classify else "error"
    rows = f" of {MOST_ROWS:,} rows" if len(fit.rows.truth) > MOST_ROWS else ""
    plain_numbers(axes.xaxis)
    chance = ["below 0: by chance"] if min(rises) < 0 else []
    rise = f"rise of the {measure}, {as_plain(least, 3)}{rows},"
    axes.set_xlabel("\n".join([rise, "when the column is shuffled", *chance]))
    some = [f"the top {len(bars)} of {n_columns:,}"] if len(bars) < n_columns else []
    titled(axes, *title, *some, inches=3.0)
