"""Python threads that compute at once: each gets, bit by bit, what one thread alone gets.

Python without its global lock runs these threads truly at once; with it only the kernels do.
"""

import random
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import models
import numpy as np
import pytest

THREADS = 8
CASES = {name: (models.rows(unit), make, say) for name, unit, make, say in models.cases()}


def fitted_and_asked(name):
    X, make, say = CASES[name]
    return say(make(X), X)


def same(found, wanted):
    assert found.keys() == wanted.keys()
    for what, values in wanted.items():
        np.testing.assert_array_equal(found[what], values)


@pytest.mark.weekly
def test_fits_at_once():
    alone = {name: fitted_and_asked(name) for name in CASES}
    jobs = 3 * list(CASES)
    random.Random(0).shuffle(jobs)
    with ThreadPoolExecutor(THREADS) as pool:
        for name, found in zip(jobs, pool.map(fitted_and_asked, jobs), strict=True):
            same(found, alone[name])


@pytest.mark.parametrize("name", CASES)
def test_one_model_is_asked_by_all_threads(name):
    X, make, say = CASES[name]
    alone, model = say(make(X), X), make(X)  # asked by nobody yet: nothing is kept
    with ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(lambda _: say(model, X), range(THREADS)):
            same(found, alone)


@pytest.mark.parametrize("name", [name for name in CASES if hasattr(CASES[name][1], "again")])
def test_one_model_is_fitted_and_asked_by_all_threads(name):
    X, make, say = CASES[name]
    model = make(X)
    alone = say(model, X)
    with ThreadPoolExecutor(THREADS) as pool:
        fits = [pool.submit(make.again, model, X) for _ in range(3)]
        asked = [pool.submit(say, model, X) for _ in range(THREADS)]
        for fit in fits:
            fit.result()
        for found in asked:
            same(found.result(), alone)
    same(say(model, X), alone)


@pytest.mark.parametrize("name", CASES)
def test_filters_of_warnings_are_left_alone(name, monkeypatch):
    # They are the whole process's: of two threads that set them, one shows what the other ignores.
    enter = warnings.catch_warnings.__enter__

    def checked(self):
        caller = sys._getframe(1).f_globals["__name__"]
        assert not caller.startswith("gzkcore."), f"{caller} sets filters of warnings"
        return enter(self)

    X, make, say = CASES[name]
    monkeypatch.setattr(warnings.catch_warnings, "__enter__", checked)
    say(make(X), X)
