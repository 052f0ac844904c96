"""Pictures of a fit that the command line draws: of predictions, and of columns."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gzkcore._util.typing import Doubles
from gzkcore.evaluate.draw import plain_ticks, save_picture
from gzkcore.learn.kernel_classifier import KernelClassifier
from gzkcore.rows.frames import Frame, Values

from .maps import draw_map, length_km
from .recipes import PLACE

if TYPE_CHECKING:
    from .fit_frame import FrameFit
    from .verdict import Verdict

MOST_DOTS = 1000  # of a picture that shows each row
MOST_BARS, MOST_CLASSES = 12, 15


def draw_frame(found: "FrameFit", path: Path, name: str) -> None:
    """Draw a surface over the globe, or predictions against values and which columns matter."""
    from matplotlib.figure import Figure

    recipe, verdict = found.rows.recipe, found.verdict
    target = recipe.target
    if found.places is not None and not found.rows.classify:
        names = PLACE if recipe.places else _in_order(found)

        def predict(places: Doubles) -> Doubles:
            longitude = places[:, 1]
            if recipe.places:
                longitude = (longitude - recipe.west) % 360 + recipe.west
            columns = dict(zip(names, (places[:, 0], longitude), strict=True))
            return np.asarray(found.model.predict(Frame(columns)))

        title = f"{target}, fitted to {name}"
        draw_map(path, predict, found.places, title, target, length_km(found.model))
        return
    wide = verdict is not None and len(verdict.shuffled) > 1
    figure = Figure(figsize=(11.5 if wide else 6.4, 6), layout="constrained")
    axes = figure.subplots(1, 1 + wide, width_ratios=[1.3, 1][: 1 + wide], squeeze=False)[0]
    truth = found.rows.y if verdict is None else found.rows.truth
    predicted = found.model.predict(found.rows.train) if verdict is None else verdict.predicted
    if isinstance(found.model, KernelClassifier):
        _draw_labels(axes[0], found.model.classes_, truth, predicted, target)
    else:
        _draw_agreement(axes[0], np.column_stack([truth, predicted]), target)
    rows = "training rows" if verdict is None else "rows held out"
    axes[0].set_title(f"{target}, {rows} of {name}", loc="left")
    if verdict is not None and wide:
        _draw_bars(axes[1], verdict, found.rows.classify)
    save_picture(figure, path)


def _in_order(found: "FrameFit") -> list[str]:
    """Return the names of the columns of latitude and longitude."""
    kinds = {column["kind"]: str(column["name"]) for column in found.model.encoder_.columns_}
    return [kinds["latitude"], kinds["longitude"]]


def draw_agreement(path: Path, pairs: Doubles, title: str, label: str) -> None:
    """Draw (n, 2) actual and predicted values, many as counts, and the line where they agree."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 6), layout="constrained")
    axes = figure.add_subplot()
    _draw_agreement(axes, pairs, label)
    axes.set_title(title, loc="left")
    save_picture(figure, path)


def _draw_agreement(axes: Any, pairs: Doubles, label: str) -> None:
    both = np.quantile(pairs, [0.001, 0.999])
    margin = 0.03 * (both[1] - both[0])
    limits = both[0] - margin, both[1] + margin
    if len(pairs) <= MOST_DOTS:
        axes.plot(*pairs.T, "o", markersize=3.5, alpha=0.5, markeredgewidth=0)
    else:
        bins = axes.hexbin(
            *pairs.T, gridsize=60, extent=(*limits, *limits), mincnt=1, bins="log", cmap="viridis"
        )
        bar = axes.figure.colorbar(bins, ax=axes, shrink=0.8, label="rows")
        plain_ticks(bar.ax.yaxis, whole=True)
    axes.axline((both[0], both[0]), slope=1, color="black", linewidth=1)
    axes.set(xlim=limits, ylim=limits, aspect="equal", xlabel=label, ylabel=f"predicted {label}")


def _draw_labels(axes: Any, classes: Values, truth: Values, predicted: Values, label: str) -> None:
    """Draw how often each label was predicted for each: of many, for the most frequent."""
    counts = [np.count_nonzero(truth == each) for each in classes]
    shown = np.sort(np.argsort(counts)[::-1][:MOST_CLASSES])
    names = [str(classes[i]) for i in shown]
    table = np.array(
        [[np.count_nonzero((truth == a) & (predicted == b)) for b in classes[shown]]
         for a in classes[shown]]
    )  # fmt: skip
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (i, j), count in np.ndenumerate(table):
        if count:
            color = "white" if shares[i, j] > 0.5 else "black"
            axes.text(j, i, f"{count:,}", ha="center", va="center", color=color, size=9)
    turned = 90 if max(map(len, names)) * len(names) > 60 else 0
    axes.set_xticks(range(len(names)), names, rotation=turned)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel=f"predicted {label}", ylabel=label)


def _draw_bars(axes: Any, verdict: "Verdict", classify: bool) -> None:
    """Draw the errors with a column shuffled, the largest at the top."""
    bars, percent = list(verdict.shuffled.items())[:MOST_BARS], 100 if classify else 1
    least = percent * verdict.error_of_some
    names = [name if len(name) <= 30 else f"{name[:29]}…" for name, _ in bars]
    errors = [percent * error - least for _, error in bars]
    axes.barh(range(len(bars), 0, -1), errors, left=least, height=0.7)
    axes.axvline(least, color="black", linewidth=1)
    axes.set_yticks(range(len(bars), 0, -1), names)
    axes.set_xlabel("wrong, %" if classify else "root mean squared error")
    axes.set_title("error when the column is shuffled", loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
