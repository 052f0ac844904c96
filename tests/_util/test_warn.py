"""The package's warnings: shown, or collected by the thread that asks for it, and by no other."""

import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from gzkcore import (
    Gaussian,
    GegenbauerFeatures,
    KernelRegressor,
    KernelRidge,
    NystromFeatures,
    RandomFeatureKMeans,
    RandomFeatureRidge,
    RandomFourierFeatures,
    TableEncoder,
)
from gzkcore._util.warn import Caught, collected_warnings, warn


class Doubt(UserWarning):
    pass


def doubtful():
    warn("perhaps", Doubt)


def test_it_is_shown_where_it_belongs():
    with pytest.warns(Doubt, match="^perhaps$") as shown:
        doubtful()
    assert shown[0].filename == __file__


ROWS = np.random.default_rng(0).standard_normal((60, 3))
DAYS = pd.DataFrame(
    {"x": ROWS[:, 0], "day": [f"{1 + i % 12}/{1 + i // 12}/2024" for i in range(60)]}
)
ZONED = pd.DataFrame({"at": ["2024-01-01T00:00+01:00", "2024-01-02T00:00+01:00"]})
MEANS = NystromFeatures(Gaussian(0.5), 20, random_state=0)
OF_USERS = {
    "a column left out": lambda: TableEncoder().fit(DAYS),
    "in a learner": lambda: KernelRegressor(cv=2, random_state=0).fit(DAYS, ROWS[:, 0]),
    "in a pipeline": lambda: make_pipeline(TableEncoder(), Ridge()).fit(DAYS, ROWS[:, 0]),
    "in folds": lambda: cross_val_score(make_pipeline(TableEncoder(), Ridge()), DAYS, ROWS[:, 0]),
    "times with a zone": lambda: TableEncoder().fit_transform(ZONED),
    "no names": lambda: TableEncoder().fit(DAYS[["x"]]).transform(ROWS[:, :1]),
    "one row": lambda: KernelRegressor().fit([[1.0]], [1.0]),
    "no convergence": lambda: KernelRidge(alpha=1e-9, preconditioner=None, max_iter=1).fit(
        ROWS, ROWS[:, 0]
    ),
    "alone": lambda: RandomFourierFeatures(Gaussian(1e9), 16).fit(ROWS),
    "few clusters": lambda: RandomFeatureKMeans(MEANS, 3, random_state=0).fit(
        ROWS[:1].repeat(9, 0)
    ),
    "a batch": lambda: GegenbauerFeatures(Gaussian(0.5), 16).partial_fit(ROWS),
    "far from 0": lambda: RandomFeatureRidge(FunctionTransformer()).fit(
        (1e4 + ROWS).astype(np.float32), ROWS[:, 0]
    ),
}


@pytest.mark.parametrize("case", OF_USERS)
def test_warnings_name_the_line_of_the_user(case):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        OF_USERS[case]()
    assert shown
    assert {each.filename for each in shown} == {__file__}


def test_it_is_collected():
    with collected_warnings() as outer:
        doubtful()
        with collected_warnings() as inner:
            doubtful()
            warn("rather")
        doubtful()
    assert inner == [Caught("perhaps", Doubt), Caught("rather", UserWarning)]
    assert outer == [Caught("perhaps", Doubt)] * 2
    with pytest.warns(Doubt):
        doubtful()


def test_it_is_shown_again_after_an_error():
    with pytest.raises(ZeroDivisionError), collected_warnings():
        _ = 1 / 0
    with pytest.warns(Doubt):
        doubtful()


def test_other_threads_show_theirs():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with collected_warnings() as collected:
            thread = threading.Thread(target=doubtful)
            thread.start()
            thread.join()
    assert not collected
    assert [each.category for each in shown] == [Doubt]
