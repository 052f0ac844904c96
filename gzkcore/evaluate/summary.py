"""Summaries of runs: means over the seeds for each method, and their ranking."""

import math
import statistics
from typing import Any, TypeAlias

from scipy.special import stdtrit

from gzkcore.features.trials import AS_GOOD, cheapest_of_the_best

from .measure import ERRORS

CONFIDENCE = 0.95
# Predictions are as good if their error is at most this many times the least.
PREDICTS_AS_WELL = 1.02
NO_BETTER = "No method predicts better than the mean"

Row: TypeAlias = dict[str, Any]


def row_of(name: str, width: int | None, runs: list[Row], n_fitted: int) -> Row:
    """Return means over the runs with their intervals, times, and the peak of memory."""
    row: Row = {"method": name, "n_components": width}
    row |= {key: runs[0][key] for key in ("width", "features")}
    for key in ERRORS:
        values = [run[key] for run in runs if key in run]
        if len(values) == len(runs):
            row |= _interval(key, values)
    for key in ("fit_seconds", "row_seconds"):
        row[key] = statistics.median(run[key] for run in runs)
    row["seconds"] = row["fit_seconds"] + n_fitted * row["row_seconds"]
    row["megabytes"] = max(run.get("megabytes", 0.0) for run in runs)
    return row


def name_of(method: str, width: int | None) -> str:
    """Return a method with its width, where it has one."""
    return "whole kernel" if width is None else f"{method}, {width:,}"


def _interval(key: str, values: list[float]) -> Row:
    """Return mean, Student's interval of the mean, and standard deviation; None for one value."""
    mean = statistics.fmean(values)
    low = high = spread = None
    if len(values) > 1:
        spread = statistics.stdev(values)
        student = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2))
        half = student * spread / math.sqrt(len(values))
        low, high = mean - half, mean + half
    return {key: mean, f"{key}_low": low, f"{key}_high": high, f"{key}_spread": spread}


def ranked(rows: list[Row]) -> list[Row]:
    """Return rows by width and error, with ratios to the least of the width, and the front."""
    for width in {row["n_components"] for row in rows}:
        of_width = [row for row in rows if row["n_components"] == width]
        for value, ratio in (("error", "error_ratio"), ("seconds", "time_ratio")):
            least = min(row[value] for row in of_width)
            for row in of_width:
                row[ratio] = row[value] / least if least > 0 else 1.0
    for row in rows:
        row["front"] = not any(_beats(other, row) for other in rows)
    return sorted(rows, key=lambda row: (_place(row), row["error"]))


def _place(row: Row) -> float:
    """Return the width of features; the whole kernel, which has none, comes after all of them."""
    return math.inf if row["n_components"] is None else float(row["n_components"])


def _beats(one: Row, other: Row) -> bool:
    """Whether one row is as accurate and fast as another, and better in something."""
    mine, others = ((row["error"], row["seconds"]) for row in (one, other))
    return mine[0] <= others[0] and mine[1] <= others[1] and mine != others


def best_of(rows: list[Row], measure: str) -> Row | None:
    """Return the fastest with nearly the least error, of the largest width; None of no features."""
    features = [row for row in rows if row["n_components"] is not None]
    if not features:
        return None
    return cheapest_of_the_best(
        [row for row in features if row["n_components"] == features[-1]["n_components"]],
        lambda row: float(row[measure]),
        lambda row: float(row["seconds"]),
        AS_GOOD if measure == "error" else PREDICTS_AS_WELL,
    )


def about_chance(rows: list[Row], width: int | None) -> str:
    """Say so where no method predicts better than the mean, or than others of its width.

    What one seed tells has no interval: nobody knows there what is chance.
    """
    best = max(rows, key=lambda row: float(row["r2"]))
    low, high = best["r2_low"], best["r2_high"]
    if (best["r2"] if low is None else low) <= 0:
        half = "" if low is None else f" ± {(high - low) / 2:.2g}"
        surely = "" if best["r2"] <= 0 else " beyond chance"
        name = name_of(best["method"], best["n_components"])
        return (
            f"{NO_BETTER}{surely}: the largest R², of {name}, is {best['r2']:.2g}{half}. "
            "So none is recommended."
        )
    if low is None:
        return "One seed can't tell which of these differences are chance; with more it shows."
    of_width = [row for row in rows if row["n_components"] == width]
    least = min(of_width, key=lambda row: float(row["rmse"]))
    alike = all(row["rmse_low"] <= least["rmse_high"] for row in of_width)
    if len(of_width) < 2 or not alike:
        return ""
    return (
        "The errors of predictions differ by no more than chance: all their intervals overlap. "
        "What follows goes by time."
    )
