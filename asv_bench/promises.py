"""The table of `tables.py promises`: claims of `KernelRegressor`, tested on new rows.

There are two claims: 95 % of new rows are within 1.96 standard deviations of their predictions, and
the chosen candidate is about the best of all that were tried.
"""

import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from prediction_data import NUMBERS, table
from printing import asked_parts, mean_and_spread, report, show

from gzkcore import KernelRegressor, KernelRidge

NORMAL_95 = 1.959964


def options_of_promises(parser):
    """Add the options of the table."""
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2000, help="to fit to at most; 2,000")
    parser.add_argument("parts", nargs="*", help="names of tables; by default all with numbers")


def promises(options):
    """Print coverage of intervals, and the error over that of the best candidate."""
    rows = []
    for name in asked_parts("promises", options, NUMBERS, "table"):
        results = []
        for split in range(1 if options.quick else options.splits):
            report(f"{name}, split {split}")
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                size = 300 if options.quick else options.rows
                results.append(pool.submit(_measured, name, split, size).result())
            report(", ".join(f"{value:.4g}" for value in results[-1]))
        inside, chosen, best = np.array(results).T
        rows.append({
            "table": name,
            "within 1.96 std, %": mean_and_spread(100 * inside),
            "error": mean_and_spread(chosen),
            "of the best candidate": mean_and_spread(best),
            "ratio of means": chosen.mean() / best.mean(),
        })  # fmt: skip
    notes = (
        f"Fits to {options.rows:,} rows, tested on the tenth held out; mean and standard deviation "
        "over the splits. Candidates are fitted to all these rows with the whole kernel, at the "
        "alpha that each was tried with. The best of a split has the least error on its test "
        "rows, so that no choice could be sure to find it."
    )
    show("What KernelRegressor says of itself", rows, notes, options)


def _measured(name, split, rows):
    """Return the share of rows inside, the error, and that of the best candidate."""
    warnings.simplefilter("ignore")
    X, y, points, truth = table(name, split, rows)
    model = KernelRegressor(random_state=split).fit(X, y)
    mean, std = model.predict(points, return_std=True)
    missed = np.abs(mean - truth)
    rows, new = model.encoder_.transform(X), model.encoder_.transform(points)
    middle = y.mean()
    errors = [_rmse(missed)]
    for candidate in model.report_.candidates:
        ridge = KernelRidge(candidate.kernel, candidate.alpha, tol=1e-2, random_state=split)
        errors.append(_rmse(ridge.fit(rows, y - middle).predict(new) + middle - truth))
    return float(np.mean(missed <= NORMAL_95 * std)), errors[0], min(errors)


def _rmse(missed):
    return float(np.sqrt(np.mean(np.square(missed))))
