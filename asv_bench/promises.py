"""The tables of `tables.py promises` and `intervals`: claims of `KernelRegressor`, on new rows.

There are two claims: 95 % of new rows are within 1.96 standard deviations of their predictions, and
the chosen candidate is about the best of all that were tried. `intervals` has the first alone, with
how wide the intervals are, beside those of boosting.
"""

import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from prediction import for_others
from prediction_data import NUMBERS, table
from printing import asked_parts, mean_and_spread, report, show
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

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
    for name, results in _of_tables(_measured, options):
        inside, chosen, best = results.T
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


def intervals(options):
    """Print coverage and scores of intervals, beside quantile boosting made conformal."""
    rows = []
    for name, results in _of_tables(_interval_scores, options):
        inside, ours, boosting = results.mean(axis=0)
        rows.append({
            "table": name,
            "within, %": 100 * inside,
            "interval score": ours,
            "conformal quantile boosting": boosting,
        })  # fmt: skip
    notes = (
        f"Intervals of 95 %, fits to {options.rows:,} rows, means over the splits. The score is "
        "the width plus 40 times what is missed; a fifth of boosting's rows make it conformal."
    )
    show("Intervals of KernelRegressor", rows, notes, options)


def _of_tables(measured, options):
    """Yield the name of each table, and what a function returns for each of its splits."""
    for name in asked_parts(options.command, options, NUMBERS, "table"):
        results = []
        for split in range(1 if options.quick else options.splits):
            report(f"{name}, split {split}")
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                size = 300 if options.quick else options.rows
                results.append(pool.submit(measured, name, split, size).result())
            report(", ".join(f"{value:.4g}" for value in results[-1]))
        yield name, np.array(results)


def _interval_scores(name, split, rows):
    """Return the share of rows inside, the score of these intervals, and that of boosting's."""
    warnings.simplefilter("ignore")
    X, y, points, truth = table(name, split, rows)
    mean, std = KernelRegressor(random_state=split).fit(X, y).predict(points, return_std=True)
    low, high = mean - NORMAL_95 * std, mean + NORMAL_95 * std
    theirs = _conformal(for_others(X), y, for_others(points), split)
    inside = np.mean((low <= truth) & (truth <= high))
    return float(inside), _score(low, high, truth), _score(*theirs, truth)


def _score(low, high, truth):
    missed = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return float(np.mean(high - low + 40 * missed))


def _conformal(X, y, points, seed):
    """Return ends of intervals by quantile boosting, as much wider as held-out rows ask for."""
    fitted, held = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed)
    models = [
        HistGradientBoostingRegressor(
            loss="quantile", quantile=share, categorical_features="from_dtype", random_state=seed
        ).fit(X.iloc[fitted], y[fitted])
        for share in (0.025, 0.975)
    ]
    low, high = (model.predict(X.iloc[held]) for model in models)
    beyond = np.maximum(low - y[held], y[held] - high)
    wider = np.quantile(beyond, min(0.95 * (1 + 1 / len(held)), 1), method="higher")
    low, high = (model.predict(points) for model in models)
    return low - wider, high + wider


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
