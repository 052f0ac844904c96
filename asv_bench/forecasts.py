"""The table of `tables.py forecasts`: predictions of `plan` over results of fits to all rows."""

import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
from prediction_data import CLASSES, MADE, NUMBERS, table
from printing import asked_parts, report, show

from gzkcore.evaluate import forecast

# Tables that the extrapolation was made with, and all others. Of the first there are labels too: y
# cut at its quantiles.
CUT = ", cut"
TUNED = ["kin40k", "pol", "elevators", "bike", f"kin40k{CUT}", f"elevators{CUT}", "digits"]
PARTS = 3
FEWER = ["diabetes", "breast cancer"]  # than a thousand rows
UNSEEN = [name for name in [*NUMBERS, *CLASSES, *MADE] if name not in {*TUNED, *FEWER}]
TESTED = 6000
FEW = 1e-3  # an error rate below that is right if it is predicted to be below that
WITHIN = {"error": 1.2, "seconds": 2.0, "megabytes": 2.0}


def options_of_forecasts(parser):
    """Add the options of the table."""
    parser.add_argument("--rows", type=int, default=8000, help="to fit to; 8,000")
    parser.add_argument("--sample", type=int, default=2000, help="of them, that plan sees; 2,000")
    parser.add_argument("--widths", default="64,256,1024", help="of features and centres")
    parser.add_argument("--split", type=int, default=0)
    parser.add_argument("parts", nargs="*", help="names of tables; by default all")


def forecasts(options):
    """Errors, seconds and memory that plan predicts of a sample, over those of all rows."""
    asked = asked_parts("forecasts", options, [*TUNED, *UNSEEN], "table")
    widths = [int(width) for width in options.widths.split(",")]
    for group, names in (("Tables it was made with", TUNED), ("Tables not looked at", UNSEEN)):
        cases = []
        for name in names:
            if name not in asked:
                continue
            report(name)
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                sizes = (300, 600) if options.quick else (options.sample, options.rows)
                cases += pool.submit(_compared, name, options.split, *sizes, widths).result()
        if cases:
            show(group, cases, _shares(cases), options)


def _shares(cases):
    """Say how many ratios are near 1."""
    results = []
    for what, most in WITHIN.items():
        near = sum(1 / most <= case[f"{what} ratio"] <= most for case in cases)
        results.append(f"{what} within a factor of {most:g} in {near} of {len(cases)}")
    return f"Ratios are predicted / measured: {', '.join(results)}."


def _compared(name, split, n_sample, n_rows, widths):
    """Return a case for each form: what was predicted, and the ratios."""
    warnings.simplefilter("ignore")
    X, y, points, truth, classify = _table(name, split, n_rows)
    n_sample = min(n_sample, len(y) // 2)
    sample = X.iloc[:n_sample], y[:n_sample], classify
    started = time.perf_counter()
    predicted = forecast.forecasts(*sample, len(y), widths, 0)
    planned = time.perf_counter() - started
    measured = _measured(forecast.learned(*sample, 0), X, y, points, truth, widths)
    cases = []
    for candidate in predicted:
        error, seconds, megabytes = measured[candidate.form, candidate.size]
        ratio = 1.0 if max(error, candidate.error) < FEW * classify else candidate.error / error
        cases.append({
            "table": name, "form": candidate.form, "size": candidate.size or "",
            "rows": f"{n_sample:,} of {len(y):,}",
            "error": candidate.error, "error ratio": ratio,
            "seconds": candidate.seconds, "seconds ratio": candidate.seconds / seconds,
            "megabytes": candidate.megabytes, "megabytes ratio": candidate.megabytes / megabytes,
            "plan, seconds": planned,
        })  # fmt: skip
    return cases


def _table(name, split, rows):
    """Return frames and targets to fit to and to be tested by, and whether these are labels."""
    whole = name.removesuffix(CUT)
    X, y, points, truth = table(whole, split, rows)
    points, truth = points.iloc[:TESTED], truth[:TESTED]
    if whole == name:
        return X, y, points, truth, name in CLASSES
    cut = partial(np.searchsorted, np.quantile(y, np.arange(1, PARTS) / PARTS))
    return X, cut(y), points, cut(truth), True


def _measured(sample, X, y, points, truth, widths):
    """Return error, seconds and megabytes of each form on all rows, with the sample's kernel."""
    if sample is None:
        return {}
    fits, rows, results = forecast.Fits(sample.learner, X, y), np.arange(len(y)), {}
    for form, size in forecast.forms(widths):
        seconds, megabytes = fits.measured(form, size, rows)
        fitted, _ = fits.timed(form, size, rows)
        results[form, size] = fits.error_of(fitted, points, truth), seconds, megabytes
    return results
