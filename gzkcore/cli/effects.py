"""What each column does to predictions, and the errors of held-out rows along it."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.wording import fitted_to, told_apart
from gzkcore.evaluate.draw import COLORS, INK, as_written, plain_numbers, titled
from gzkcore.rows.frames import Frame, kind_of
from gzkcore.rows.text import DATE, TEXT
from gzkcore.rows.values import Values, missing_of

from .parts_of_dates import Part, parts_of
from .pictures import LONG_LABEL, LONG_NAME

if TYPE_CHECKING:
    from .fit_frame import FrameFit

RANKS = np.linspace(0.02, 0.98, 25)  # effects are shown at these quantiles; the ends are too rare
MOST_LEVELS, MOST_LABELS = 12, 3  # of a category, and of the target
ROWS = 100  # effects are averaged over so many rows
BAND = (0.1, 0.9)  # the band is between these quantiles of the rows
MOST_DOTS, BINS = 1000, 8  # errors are drawn as so many dots, and their means in so many bins


class Effect(NamedTuple):
    """The mean prediction with a column set to each of some values (partial dependence).

    The band has 80 % of the rows, each moved to the same mean: it is wide where other columns
    change the effect. Of a part of dates, which alone is set, values are places.
    """

    values: Values
    curves: dict[str, Doubles]  # by label: low end of the band, mean and high end, (3, n)
    part: Part | None = None

    def heading(self, name: str) -> str:
        """Return what it is the effect of."""
        return name if self.part is None else f"{name}, {self.part.about}"

    def places(self, column: Values) -> Doubles:
        """Return the positions of values along an axis, NaN for other levels and missing values."""
        if self.part is not None:
            return self.part.places(column)
        if kind_of(column) == TEXT:
            numbers = {level: number for number, level in enumerate(self.values)}
            return np.array([numbers.get(value, np.nan) for value in column])
        if kind_of(column) == DATE:  # Matplotlib counts days
            column = (column - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        return column.astype(np.float64)


def effects_of(fit: "FrameFit", name: str) -> list[Effect]:
    """Return the effect of a column, or of the parts of dates that the model uses."""
    column = fit.rows.train[name]
    there = np.flatnonzero(~missing_of(column))
    known = column[there]
    if kind_of(column) == TEXT:
        levels, counts = np.unique(known.astype(str), return_counts=True)
        values = levels[np.argsort(-counts, kind="stable")[:MOST_LEVELS]].astype(object)
    else:
        known = np.sort(known)
        values = np.unique(known[np.round(RANKS * (len(known) - 1)).astype(int)])
    [used] = [each for each in fit.model.encoder_.columns_ if name in each.names]
    rng = np.random.default_rng(0)
    if not (parts := parts_of(getattr(used, "periods", []), values)):
        rows = rng.permutation(len(column))[:ROWS]
        return [Effect(values, _curves(fit, rows, name, np.repeat(values, len(rows))))]
    effects = []
    for part in parts:
        near, rows = part.near(known), rng.permutation(there[part.inner(column[there])])[:ROWS]
        moved = [part.moved(column[rows], place) for place in part.around[near]]
        curves = _curves(fit, rows, name, np.concatenate(moved))
        number = np.cumsum(near) - 1  # of each place among those that are near dates
        curves = {
            label: np.where(near, curve[:, number], np.nan) for label, curve in curves.items()
        }
        effects.append(Effect(part.around, curves, part))
    return effects


def _curves(fit: "FrameFit", rows: Integers, name: str, values: Values) -> dict[str, Doubles]:
    """Return curves, see `Effect`, of all rows with each value of a column."""
    model, n_values = fit.model, len(values) // len(rows)
    many = fit.rows.train.take(np.tile(rows, n_values))
    many = Frame(many.values | {name: values})
    if not fit.rows.classify:
        return {"": _curve(model.predict(many), n_values)}
    counts = np.array([np.count_nonzero(fit.rows.y == label) for label in model.classes_])
    shown = np.argsort(-counts)[:MOST_LABELS]
    if fit.rows.rarer is not None:
        shown = np.flatnonzero(model.classes_ == fit.rows.rarer)
    shares = model.predict_proba(many).T
    names = told_apart([str(label) for label in model.classes_[shown]], LONG_NAME)
    curves = [_curve(shares[i], n_values).clip(0, 1) for i in shown]
    return dict(zip(names, curves, strict=True))


def _curve(predicted: Doubles, n_values: int) -> Doubles:
    """Return the means and bands of predictions for all rows with each value, (3, n_values)."""
    predicted = predicted.reshape(n_values, -1)
    mean = predicted.mean(axis=1)
    low, high = np.quantile(predicted - predicted.mean(axis=0) + mean.mean(), BAND, axis=1)
    return np.stack([np.minimum(low, mean), mean, np.maximum(high, mean)])


def draw_column(
    fit: "FrameFit", name: str, effect: Effect, limits: tuple[float, float], *axes: Any
) -> None:
    """Draw the effect of a column between these limits, and on a second axes errors along it."""
    part, kind = effect.part, kind_of(fit.rows.train[name])
    where = effect.values if part else effect.places(effect.values)
    as_dots = kind == TEXT or (part is not None and part.is_whole)
    for (low, mean, high), color in zip(effect.curves.values(), COLORS, strict=False):
        if as_dots:
            ends = mean - low, high - mean
            axes[0].errorbar(where, mean, ends, fmt="o", color=color)
        else:
            axes[0].plot(where, mean, color=color)
            axes[0].fill_between(where, low, high, color=color, alpha=0.2, linewidth=0)
    target = as_written(fitted_to(fit.rows.target, LONG_NAME))
    if fit.rows.rarer is not None:
        titled(axes[0], f"{target} = {''.join(effect.curves)}", inches=3)
    axes[0].set_ylabel("probability" if fit.rows.classify else f"predicted {target}")
    margin = 0.05 * (limits[1] - limits[0]) or 1.0
    axes[0].set_ylim(limits[0] - margin, limits[1] + margin)
    if fit.verdict is not None:
        where = effect.places(fit.rows.test[name])
        _draw_errors(axes[1], fit.verdict.losses, fit.rows.classify, where, as_dots)
    for panel in axes:
        plain_numbers(panel.yaxis)
    axes[-1].set_xlabel(as_written(fitted_to(effect.heading(name), LONG_LABEL)))
    if part is not None and part.ticks:
        axes[-1].set_xticks([*part.ticks], [*part.ticks.values()])
    elif kind == TEXT:
        names = [*map(as_written, told_apart([*map(str, effect.values)], LONG_NAME))]
        turned = 90 if max(map(len, names)) * len(names) > 40 else 0
        axes[-1].set_xticks(range(len(names)), names, rotation=turned)
    elif kind == DATE:
        axes[-1].xaxis_date()
        dates = axes[-1].xaxis.get_major_locator()
        dates.minticks, dates.maxticks = 2, dict.fromkeys(dates.maxticks, 5)  # so few stand apart
    else:
        plain_numbers(axes[-1].xaxis)


def _draw_errors(axes: Any, errors: Doubles, labels: bool, where: Doubles, as_dots: bool) -> None:
    """Draw errors of held-out rows at these places, and their mean with its 95 % interval."""
    where, errors = where[~np.isnan(where)], errors[~np.isnan(where)]
    if not len(where):
        return
    if not labels:
        some = np.random.default_rng(0).permutation(len(errors))[:MOST_DOTS]
        axes.plot(where[some], errors[some], "o", color=COLORS[0], alpha=0.3, markersize=3)
    ends = np.unique(np.quantile(where, np.linspace(0, 1, BINS + 1)[1:-1]))
    bins = where if as_dots else np.searchsorted(ends, where, side="right")
    for number in np.unique(bins):
        of_bin, place = errors[bins == number], where[bins == number].mean()
        mean, doubt = of_bin.mean(), 1.96 * of_bin.std() / len(of_bin) ** 0.5
        low = max(mean - doubt, 0.0) if labels else mean - doubt  # no log loss is below 0
        axes.plot([place, place], [low, mean + doubt], color=INK)
        axes.plot(place, mean, "D", markersize=4, color=INK)
    axes.axhline(errors.mean() if labels else 0, color=INK, linewidth=1, linestyle=":")
    axes.set_ylabel("log loss" if labels else "actual − predicted")
