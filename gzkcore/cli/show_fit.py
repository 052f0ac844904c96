"""The output of a fit with --features or --whole, as text and as JSON."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gzkcore._util.wording import counted, shortened

from .output import (
    MOST_NAMED,
    about_gamma,
    first_of,
    picture_note,
    print_lines,
    print_table,
)

FEW_TEST_ROWS = 30  # with fewer an error is known to no better than some quarter of it


@dataclass
class FitResult:
    """What `gzkcore fit --json` prints."""

    data: str
    target: str
    columns: list[str]
    unused: list[str]  # other columns of the table
    sphere: bool
    whole: bool
    centers: int | None
    kernel: str
    n_components: int | None
    gamma: float
    gamma_from: str
    lengthscale_km: float | None
    alpha: float
    n_iter: int | None
    residual: float | None
    preconditioner: str | None
    train: dict[str, float | None]
    test: dict[str, float | None]
    baselines: dict[str, dict[str, float | None]]  # of the same held-out rows
    folds: int | None  # each held out in turn, None if some rows are once
    of_folds: dict[str, list[float]]  # root mean squared errors of each fold, of all methods
    seconds: float
    peak_memory_mb: float
    model: str
    plot: str | None
    notes: list[str]


def print_fit(result: FitResult) -> None:
    """Print a fit for people."""
    from .maps import told_km

    chosen = ["held-out rows of a sample"] if result.whole else []
    where = "whole" if result.centers is None else f"at {counted(result.centers, 'centre')}"
    used = f"{len(result.columns)}, standardised"
    if result.sphere:
        used = "latitude {} and longitude {}, as points on the globe".format(*result.columns)
    held = ""
    if result.whole:
        kept = float(result.train["rows"] or 0) if result.centers is None else result.centers
        megabytes = 8e-6 * kept * (len(result.columns) + result.sphere)
        held = f"; of these {megabytes:.2g} MB are rows kept in the model"
    fitted, tested = (int(errors["rows"] or 0) for errors in (result.train, result.test))
    split = f"{fitted:,} for training, {tested:,} held out"
    error = "error on held-out rows"
    if result.folds:
        split = f"{fitted:,}, {result.folds}-fold cross-validation"
        error = "cross-validated error"
    rows = {
        "rows": split,
        "columns": used,
        "left out": some_of(result.unused),
        "kernel": shortened(result.kernel) + (f", {where}" if result.whole else ""),
        "gamma": about_gamma(result.gamma, result.gamma_from, *chosen),
        "lengthscale": told_km(result.lengthscale_km) if result.lengthscale_km else "",
        "alpha": f"{result.alpha:.4g}, chosen by {(*chosen, '2-fold cross-validation')[0]}",
        "solution": _about_solution(result),
        "error on training rows": _about_errors(result.train),
        error: _about_errors(result.test),
        **{f"  of {name}": _about_errors(errors) for name, errors in result.baselines.items()},
        "time": f"{result.seconds:.1f} s",
        "memory": f"at its peak {result.peak_memory_mb:.0f} MB more than at the start" + held,
    }
    print_table(
        f"{result.target} from {first_of(result.columns)}",
        ["", ""],
        [[key, text] for key, text in rows.items() if text],
    )
    print_lines(
        "R² is 1 for perfect predictions and 0 for predicting the mean."
        + " Boosting and the linear model learn from up to 16,384 rows." * bool(result.baselines),
        *(about_folds(result.of_folds, "{:.4g}".format) if result.folds else []),
        *([] if result.folds else about_few(fitted, tested)),
        *result.notes,
        *picture_note(result.plot),
        next_step(result.model, result.data),
    )


def some_of(names: list[str]) -> str:
    """Name some columns, and say how many more there are."""
    more = f", and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def about_folds(of_folds: dict[str, list[float]], written: Callable[[float], str]) -> list[str]:
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


def about_few(n_train: int, n_test: int) -> list[str]:
    """Say so where few rows were held out, and how to test by more."""
    from .held_out import FEW_ROWS

    if not 0 < n_test < FEW_TEST_ROWS:
        return []
    few = f"{counted(n_test, 'held-out row')} {'says' if n_test == 1 else 'say'} little"
    if n_train + n_test < FEW_ROWS:
        return [f"{few}; without --test-fraction all rows are tested, by cross-validation."]
    return [f"{few}; --test-fraction 0.3 holds out more."]


def next_step(model: str, data: str) -> str:
    """Say how to predict with a model."""
    from gzkcore.rows.files import ending

    end = ending(Path(data))
    return f"Next: gzkcore predict {shlex.quote(model)} NEW{end} --output PREDICTED" + (
        {".npz": ".npy"}.get(end, end)
    )


def _about_solution(result: FitResult) -> str:
    """Say how the system of the whole kernel was solved."""
    if result.n_iter is None:
        return ""
    steps = f"{counted(result.n_iter, 'step')} to a relative residual of {result.residual:.1g}"
    return steps + (f", preconditioned by {result.preconditioner}" if result.preconditioner else "")


def _about_errors(summary: dict[str, float | None]) -> str:
    if summary["rmse"] is None:
        return "no rows were held out"
    r2 = "" if summary["r2"] is None else f", R² {summary['r2']:z.3f}"
    return f"{summary['rmse']:.4g} root mean squared{r2}"
