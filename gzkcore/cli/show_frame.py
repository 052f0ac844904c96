"""What people and programs see of a fit that has chosen everything."""

from typing import TYPE_CHECKING, Any

from gzkcore._util.wording import plain
from gzkcore.learn.table_encoder import NO_PLACES

from .maps import length_km
from .output import first_of, picture_note, print_lines, print_table
from .show_fit import next_step, some_of

if TYPE_CHECKING:
    from .fit_frame import FrameFit

MOST_COLUMNS = 8  # that are named
LEAST_RISE = 1.01  # of the error where a column is shuffled


def to_dict(found: "FrameFit") -> dict[str, Any]:
    """Return what a fit has found as plain numbers, texts, lists and dicts."""
    model, rows, verdict = found.model, found.rows, found.verdict
    on_map = found.places is not None and model.kernel_ is not None
    return {
        "columns": rows.recipe.columns,
        "kinds": rows.recipe.kinds,
        "on_globe": bool(model.encoder_.on_sphere_),
        "lengthscale_km": length_km(model) if on_map else None,
        "learner": type(model).__name__,
        "kernel": None if model.kernel_ is None else plain(repr(model.kernel_)),
        "alpha": model.alpha_,
        "classes": model.classes_.tolist() if hasattr(model, "classes_") else None,
        "train_rows": len(rows.y),
        "test_rows": len(rows.truth),
        "methods": verdict.methods if verdict else [],
        "sure": verdict.sure if verdict else {},
        "importances": found.importances,
        "error_of_some": verdict.error_of_some if verdict else None,
        "shuffled": verdict.shuffled if verdict else {},
        "report": model.report_.sentences,
    }


def print_frame(result: dict[str, Any]) -> None:
    """Print a fit for people."""
    labels = result["classes"] is not None
    title = (
        f"{result['target']} from {first_of(result['columns'])}: "
        f"{result['train_rows']:,} training rows, {result['test_rows']:,} held out"
    )
    if result["methods"]:
        columns = {"error_rate": "wrong", "log_loss": "log loss"} if labels else {
            "rmse": "error", "r2": "R²"}  # fmt: skip
        print_lines(title)
        print_table(
            "",
            ["", *columns.values(), "time"],
            [_row(method, list(columns)) for method in result["methods"]],
        )
        print_lines(*_what_columns_mean(labels))
    else:
        print_lines(title)
    unit = f" (errors in standard deviations of {result['target']})" if not labels else ""
    *told, _ = result["report"]  # the last is the time
    told = [
        f"{line} With --lat and --lon they can be drawn as a map."
        if line.startswith(NO_PLACES)
        else line
        for line in told
        if not (line.startswith(NO_PLACES) and result["lengthscale_km"])
    ]
    if result["lengthscale_km"]:
        told.append(f"Lengthscale: {result['lengthscale_km']:,.0f} km.")
    print_lines(*_about_best(result), "", f"What was chosen{unit}:", *told, "")
    print_lines(*_about_columns(result), *_about_sureness(result["sure"]))
    print_lines(
        *([f"Not used: {some_of(result['unused'])}"] if result["unused"] else []),
        *result["notes"],
        *picture_note(result["plot"]),
        next_step(result["model"], result["data"]),
        "      --probabilities adds the probability of each label"
        if labels
        else "      --std adds standard deviations",
    )


def _row(method: dict[str, Any], keys: list[str]) -> list[str]:
    if keys[0] == "error_rate":
        low, high = 100 * method["low"], 100 * method["high"]
        error = f"{_rate(method[keys[0]])} ({low:.1f} to {high:.1f})"
    else:
        error = f"{_number(method[keys[0]])} ± {_number(method['plus_minus'], 2)}"
    other = method[keys[1]]
    return [
        method["method"], error, "" if other is None else f"{other:.3f}",
        f"{method['seconds']:.1f} s",
    ]  # fmt: skip


def _what_columns_mean(labels: bool) -> list[str]:
    if labels:
        return [
            "wrong: error rate on held-out rows, with its 95 % interval; log loss: 0 is perfect"
        ]
    return [
        "error: root mean squared, on held-out rows, ± 95 % interval; R²: 1 is perfect, 0 the mean"
    ]


def _about_columns(result: dict[str, Any]) -> list[str]:
    """Say which columns matter."""
    error = result["error_of_some"]
    matter = {
        name: found for name, found in result["shuffled"].items() if found > LEAST_RISE * error
    }
    if not matter:
        return []
    number = _rate if result["classes"] is not None else _number
    shown = [f"{name} {number(found)}" for name, found in list(matter.items())[:MOST_COLUMNS]]
    more = f", and {len(matter) - len(shown)} more" if len(matter) > len(shown) else ""
    as_they_are = number(error)
    return [
        f"Columns that matter, with the error after shuffling each ({as_they_are} without):",
        f"{', '.join(shown)}{more}.",
    ]


def _about_best(result: dict[str, Any]) -> list[str]:
    """Say so where a baseline predicts better."""
    key = "error_rate" if result["classes"] is not None else "rmse"
    ours, *others = result["methods"] or [{key: 0.0, "plus_minus": 0.0}]
    better = [method for method in others if method[key] < ours[key]]
    if not better:
        return []
    best = min(better, key=lambda method: float(method[key]))
    if ours[key] - best[key] < ours["plus_minus"] / 2:
        return [f"{best['method']} predicted better, but within the uncertainty of the test."]
    return [f"{' and '.join(method['method'] for method in better)} predicted better here."]


def _about_sureness(sure: dict[str, float | None]) -> list[str]:
    """Say how far a prediction may be trusted."""
    if "mean_probability" in sure:
        lines = (
            "Uncertainty: the mean probability of the predicted class is "
            f"{_percent(sure['mean_probability'])}, and {_percent(sure['right'])} of the "
            "predictions were right"
        )
        if sure["right_where_sure"] is not None:
            lines += (
                f"; where the probability is 90 % or more ({_percent(sure['sure'])} of the rows), "
                f"{_percent(sure['right_where_sure'])}"
            )
        return [f"{lines}."]
    if not sure:
        return []
    line = f"Uncertainty: 95 % of the errors are at most {_number(sure['within'], 3)}"
    if "covered" in sure:
        line += (
            f"; {_percent(sure['covered'])} are within 1.96 of their standard deviations, whose "
            f"median is {_number(sure['std_median'], 3)}"
        )
    return [f"{line}."]


def _rate(share: float) -> str:
    return f"{100 * share:.1f} %"


def _number(value: float | None, digits: int = 4) -> str:
    """Return a number with so many digits, without an exponent where it is easy to read so."""
    rounded = float(f"{value or 0:.{digits}g}")
    return f"{rounded:,.15g}" if 1e-4 <= abs(rounded) < 1e9 else f"{rounded:g}"


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0):.3g} %"
