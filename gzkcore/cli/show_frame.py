"""The output of `gzkcore fit`, as text and as JSON."""

import math
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gzkcore._util.wording import as_plain, counted, in_list, seconds_told, some_of
from gzkcore.learn.held_out import FEW_TO_TEST, FOLDS
from gzkcore.rows.files import ending
from gzkcore.tabular.columns.place import DEGREES_AS_NUMBERS
from gzkcore.tabular.deviations import GAPS
from gzkcore.tabular.report import DETAIL

from .arguments import words_of
from .baselines import CONSTANTS
from .maps import length_km, told_km
from .output import MOST_NAMED, first_of, picture_note, print_lines, print_table
from .verdict import LEAST_RISE, MOST_ROWS

if TYPE_CHECKING:
    from .fit_frame import FrameFit

MOST_COLUMNS = 8  # that are named
MOST_DIGITS = 7  # of an error
# Of the options how a file is read; a model knows the others.
OF_PREDICT = ("decimal_comma", "encoding", "thousands", "skip_lines")
OF_RARER = {"recall": "recall", "precision": "precision", "roc_auc": "area under the ROC curve"}
LESS = 0.9  # A log loss that is so many times that of a constant, or less, is clearly better.
REMEDIES = {  # of remarks, by options
    DEGREES_AS_NUMBERS: " With --lat and --lon they can be drawn as a map.",
    GAPS: " --test-gaps tests predictions there.",
}
FEW_TEST_ROWS = 30  # with fewer an error is known to no better than some quarter of it


def to_dict(found: "FrameFit") -> dict[str, Any]:
    """Return what a fit has found as plain numbers, texts, lists and dicts."""
    model, rows, verdict = found.model, found.rows, found.verdict
    places = None if model.kernel_ is None else found.places
    return {
        "columns": rows.inputs.columns,
        "kinds": [*rows.inputs.kinds.values()],
        "on_globe": bool(model.encoder_.on_sphere_),
        "places_alone": rows.inputs.west is not None,
        "lengthscale_km": None if places is None else length_km(model, places),
        "learner": type(model).__name__,
        "kernel": None if model.kernel_ is None else _in_full(model.kernel_),
        "lengthscales": {  # JSON has no infinity: a column without influence has None
            name: length if math.isfinite(length) else None
            for name, length in model.lengthscales_.items()
        },
        "chosen": next((each.what() for each in model.report_.candidates if each.chosen), None),
        "alpha": model.alpha_,
        "classes": model.classes_.tolist() if hasattr(model, "classes_") else None,
        "train_rows": len(rows.y) if rows.source is None else rows.source.n_rows,
        "test_rows": len(rows.truth),
        "test_by": None if rows.by.at_random else rows.by._asdict(),
        "folds": None if rows.folds is None else FOLDS,
        "methods": verdict.methods if verdict else [],
        "sure": verdict.sure if verdict else {},
        "importances": found.importances,
        "rarer_label": rows.rarer,
        "error_of_some": verdict.error_of_some if verdict else None,
        "rows_of_some": min(len(rows.truth), MOST_ROWS) if verdict else 0,
        "shuffled": verdict.shuffled if verdict else {},
        "report": model.report_.sentences,
        "remarks": [remark.as_dict() for remark in model.report_.remarks],
        "doubts": [d.as_dict() for column in model.encoder_.columns_ for d in column.doubts],
    }


def _in_full(kernel: Any) -> str:
    """Return a kernel as it is written in Python, with every number of long lists."""
    parts = getattr(kernel, "parts", None)
    if isinstance(parts, list):
        each = ", ".join(f"({columns}, {_in_full(part)})" for columns, part in parts)
        return f"{type(kernel).__name__}([{each}])"
    parameters = kernel.get_params(deep=False).items()
    told = ", ".join(f"{name}={np.asarray(value).tolist()!r}" for name, value in parameters)
    return f"{type(kernel).__name__}({told})"


def told_lengths(lengths: dict[str, float | None]) -> str:
    """Return lengthscales in words, the shortest first: each once, with its columns; "" of none."""
    columns: dict[str, list[str]] = {}
    for name, length in sorted(lengths.items(), key=lambda each: each[1] or math.inf):
        columns.setdefault("no influence" if length is None else _number(length), []).append(name)
    if not columns:
        return ""
    if len(columns) == 1:
        return f"{next(iter(columns))}, of all columns"
    told = [f"{each}: {some_of([*map(in_list, columns[each])], MOST_NAMED)}" for each in columns]
    more = [f"and {len(told) - MOST_NAMED} more, up to {told[-1]}"] * (len(told) > MOST_NAMED)
    return "; ".join([*told[:MOST_NAMED], *more])


class FrameText(NamedTuple):
    """What people are told of a fit; parts that say nothing are empty."""

    title: str
    header: list[str]  # of the methods
    methods: list[list[str]]
    errors: list[str]
    best: list[str]
    chosen: list[str]  # the first is the heading
    columns: list[str]
    sureness: list[str]
    notes: list[str]


def text_of(result: dict[str, Any], *, brief: bool = False) -> FrameText:
    """Return what people are told of a fit; if brief without details, where errors are known."""
    brief = brief and bool(result["methods"])
    labels = result["classes"] is not None
    written = _rate if labels else _alike(result["methods"])
    error, other = ("error_rate", "log_loss") if labels else ("rmse", "r2")
    heads = ["wrong", "log loss"] if labels else ["error", "R²"]
    errors = []
    if result["methods"]:
        spreads = {method["method"]: method["of_folds"] for method in result["methods"]}
        errors = [_what_columns_mean(result), *_about_rarer(result)]
        errors += (
            _about_folds(spreads, written)
            if result["folds"]
            else _about_few(result["train_rows"], result["test_rows"])
        )
    unit = f" (errors in standard deviations of {result['target']})" * (not labels and not brief)
    unit += "; --report PAGE.html tells more" * (brief and not result["page"])
    more = "; without --lat and --lon they are used too, but no map can be drawn"
    more *= result["places_alone"]
    unused = [*map(in_list, result["unused"])]
    return FrameText(
        f"{result['target']} from {first_of(result['columns'])}: {_rows_of(result)}",
        ["", heads[0], "95 % interval", heads[1], "time"],
        [_row(method, [error, "interval", other], written) for method in result["methods"]],
        errors,
        _about_best(result),
        [f"What was chosen{unit}:", *_about_choice(result, brief=brief)],
        _about_columns(result, "{:#.3g}".format if labels else written),
        _about_sureness(result["sure"], result["test_rows"]),
        ([f"Left out: {some_of(unused, MOST_NAMED)}{more}"] if unused else []) + result["notes"],
    )


def _about_choice(result: dict[str, Any], *, brief: bool = False) -> list[str]:
    """Return what the report says of the choice that is not said elsewhere, if brief not all."""
    km, kinds = result["lengthscale_km"], {remark["kind"] for remark in result["remarks"]}
    elsewhere = ["time", "groups", *["error rate of the choice"] * bool(result["methods"])]
    elsewhere += [DEGREES_AS_NUMBERS] * bool(km) + [DETAIL] * brief
    lines = [] if result["chosen"] is None else [f"Kernel: {result['chosen']}."]
    lines += [
        remark["sentence"] + REMEDIES.get(remark["kind"], "")
        for remark in result["remarks"]
        if remark["kind"] not in elsewhere
    ]
    if km:
        shorter = " in the direction in which it is shorter" * (DEGREES_AS_NUMBERS in kinds)
        lines.append(f"Lengthscale{shorter}: {told_km(km)}.")
    return lines


def print_frame(result: dict[str, Any]) -> None:
    """Print a fit for people."""
    text = text_of(result, brief=True)
    print_lines(text.title)
    if text.methods:
        print_table("", text.header, text.methods)
    print_lines(*text.errors, *text.best, "", *text.chosen, "", *text.columns, *text.sureness)
    print_lines(
        *text.notes,
        *picture_note(result["plot"]),
        *([f"Report: {result['page']}"] if result["page"] else []),
        f"Saved: {result['model']}, {as_plain(result['model_mb'], 2)} MB",
        f"Next: {result['next']}",
        "      --std adds standard deviations"
        if result["classes"] is None
        else "      --probabilities adds the probability of each label",
    )


def _about_folds(of_folds: dict[str, list[float]], written: Callable[[float], str]) -> list[str]:
    """Say what the errors of a cross-validation are, and from what to what those of folds go."""
    spreads = "; ".join(
        f"{name} {written(min(errors))} to {written(max(errors))}"
        for name, errors in of_folds.items()
    )
    n_folds = len(next(iter(of_folds.values())))
    return [
        (
            f"Each fit chose all settings again from {n_folds - 1} of {n_folds} folds and "
            "predicted the other fold. The saved model is a fit to all rows."
        ),
        f"Errors of single folds: {spreads}.",
    ]


def _about_few(n_train: int, n_test: int) -> list[str]:
    """Say so where few rows were held out, and how to test by more."""
    if not 0 < n_test < FEW_TEST_ROWS:
        return []
    few = f"{counted(n_test, 'held-out row')} {'says' if n_test == 1 else 'say'} little"
    if n_train + n_test < FEW_TO_TEST:
        return [f"{few}; without --test-fraction all rows are tested, by cross-validation."]
    return [f"{few}; --test-fraction 0.3 holds out more."]


def next_step(options: dict[str, Any]) -> str:
    """Return the command that predicts for a file written as that of a fit with these options."""
    end = ending(Path(options["data"])) or ".csv"  # of standard input, or a folder
    output = f"PREDICTED{ {'.npz': '.npy', '.nc': '.csv'}.get(end, end) }"
    reading = words_of({name: options[name] for name in OF_PREDICT})
    words = ["predict", str(options["model"]), f"NEW{end}", *reading, "--output", output]
    return f"gzkcore {shlex.join(words)}"


def _row(method: dict[str, Any], keys: list[str], written: Callable[[float], str]) -> list[str]:
    """Return the cells of a method: its error, how sure that is, another measure, its time."""
    error, _, other = keys
    interval = f"± {written(method['plus_minus'])}"
    if error == "error_rate":
        interval = f"{100 * method['low']:.1f} to {100 * method['high']:4.1f} %"
    return [
        method["method"], written(method[error]), interval,
        "" if method[other] is None else f"{method[other]:z.3f}",
        seconds_told(method["seconds"]),
    ]  # fmt: skip


def _alike(methods: list[dict[str, Any]]) -> Callable[[float], str]:
    """Return what writes errors with as many decimals as two digits of the least of them need.

    Where no such number serves all of them, each has four digits of its own.
    """
    errors = [method["rmse"] for method in methods]
    widths = [method["plus_minus"] for method in methods if method["plus_minus"] > 0]
    if not widths or not all(1e-4 <= error < 1e9 for error in errors):
        return _number
    decimals = 1 - math.floor(math.log10(min(*errors, *widths)))
    if decimals + math.log10(max(errors)) > MOST_DIGITS:
        return _number
    return lambda error: f"{round(error, decimals):,.{max(decimals, 0)}f}"


def _rows_of(result: dict[str, Any]) -> str:
    if result["folds"]:
        return f"{counted(result['train_rows'], 'row')}, {result['folds']}-fold cross-validation"
    return f"{result['train_rows']:,} training rows, {result['test_rows']:,} held out"


def _what_columns_mean(result: dict[str, Any]) -> str:
    rows = "of all rows, held out in turn" if result["folds"] else "on held-out rows"
    if result["classes"] is not None:
        return f"wrong: error rate {rows}, and its own 95 % interval; log loss: 0 is perfect"
    error = f"error: root mean squared, {rows}, and its own 95 % interval"
    return f"{error}; R²: 1 is perfect, 0 is as good as their mean"


def _about_rarer(result: dict[str, Any]) -> list[str]:
    """Say how well rows of the rarer of two labels are found."""
    ours = result["methods"][0]
    found = [
        f"{word} {ours[key]:.3f}" for key, word in OF_RARER.items() if ours.get(key) is not None
    ]
    return [f"rarer label, {result['rarer_label']}: {', '.join(found)}"] if found else []


def _about_columns(result: dict[str, Any], written: Callable[[float], str]) -> list[str]:
    """Say which columns matter, of labels by the log loss, and on how many rows that was found."""
    error, n_rows = result["error_of_some"], result["rows_of_some"]
    measure = "error" if result["classes"] is None else "log loss"
    matter = {
        name: found for name, found in result["shuffled"].items() if found > LEAST_RISE * error
    }
    if not matter:
        none = f"No column matters by itself: the {measure} does not rise if one is shuffled."
        return [none] if result["shuffled"] else []
    shown = [f"{name} {written(found)}" for name, found in list(matter.items())[:MOST_COLUMNS]]
    more = f"; and {len(matter) - len(shown)} more" if len(matter) > len(shown) else ""
    some = f" of {n_rows:,} rows" if n_rows < result["test_rows"] else ""
    of_none = f"({written(error)}{some} if none is)"
    return [
        f"Columns that matter, and the {measure} if each is shuffled {of_none}:",
        f"{'; '.join(shown)}{more}.",
    ]


def _about_best(result: dict[str, Any]) -> list[str]:
    """Say so where a baseline predicts better, or nothing better than a constant."""
    if not result["methods"]:
        return []
    key = "error_rate" if result["classes"] is not None else "rmse"
    ours, *others = result["methods"]
    best = min(result["methods"], key=lambda method: float(method[key]))
    # Of a rare label much may be known, though it never is the likeliest one.
    least = min(method.get("log_loss", math.inf) for method in result["methods"])
    for constant in others:
        alike = constant[key] - best[key] < best["plus_minus"] / 2
        alike = alike and least >= LESS * constant.get("log_loss", 0.0)
        if constant["method"] in CONSTANTS and alike:
            so = "" if result["test_by"] is None else " in rows held out as these are"
            nothing = f"the other columns may tell nothing about {result['target']}{so}."
            return [f"No method is clearly better than {constant['method']}: {nothing}"]
    better = [method for method in others if method[key] < ours[key]]
    if not better:
        return []
    if ours[key] - best[key] < ours["plus_minus"] / 2:
        chance = "the difference may be chance: the test has too few rows to tell."
        return [f"{best['method']} has a smaller error here, but {chance}"]
    names = " and ".join(method["method"] for method in better)
    return [f"{names} {'has' if len(better) == 1 else 'have'} a smaller error here."]


def _about_sureness(sure: dict[str, Any], n_test: int) -> list[str]:
    if "mean_probability" in sure:
        lines = (
            "Uncertainty: the mean probability of the predicted class is "
            f"{_percent(sure['mean_probability'])}; {_percent(sure['right'])} of the "
            "predictions are right"
        )
        if sure["right_where_sure"] is not None:
            lines += (
                f". For {_percent(sure['sure'])} of the rows the probability is 90 % or more; "
                f"{_percent(sure['right_where_sure'])} of these predictions are right"
            )
        return [f"{lines}."]
    if not sure:
        return []
    within = _number(sure["within"], 3)
    some = "these rows" if sure["std_rows"] >= n_test else f"{sure['std_rows']:,} of these rows"
    line = (
        f"Uncertainty, on the held-out rows: 95 % of the errors are at most {within}. "
        f"{_percent(sure['covered'])} of {some} are within 1.96 standard deviations of their "
        "predictions; 95 % should be. The median standard deviation is "
        f"{_number(sure['std_median'], 3)}."
    )
    return [line]


def _rate(share: float) -> str:
    return f"{100 * share:.1f} %"


def _number(value: float | None, digits: int = 4) -> str:
    return as_plain(value or 0.0, digits)


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0):.3g} %"
