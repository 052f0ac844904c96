"""The form of a model: what it is in words, and how long its fit is expected to take."""

import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from gzkcore import Gaussian, KernelRegressor, KernelRidge
from gzkcore.tabular import form
from gzkcore.tabular.form import FEWEST_CENTERS, WHOLE, Form, best_form
from gzkcore.tabular.trials import TOL

TRIALS = SimpleNamespace(
    seed=0, X=None, splits=[(range(10), range(2))],
    seconds_of=lambda _, n_rows, surely: n_rows / (100 if n_rows / 100 <= surely else 200),
)  # fmt: skip
BEST = SimpleNamespace(alpha=1e-2, seconds=7.0, least_alpha=False, kernel=None)


@pytest.mark.parametrize(
    ("of", "n_rows", "seconds"),
    [
        ({}, 5000, 50.0),  # for certain no more than a minute
        ({}, 10_000, 50.0),  # timed
        ({}, 100_000, 500.0),
        ({"centers": 5000}, 100_000, 100.0),
        ({"centers": 5000}, 10_000, 50.0),
        ({"near": 50}, 10**6, 7.0),
        ({"features": 1000}, 20_000, 50.0),
    ],
)
def test_the_expected_time_of_a_fit(monkeypatch, of, n_rows, seconds):
    monkeypatch.setattr(form, "seconds_of", lambda work: work().shape[0] * 256e-6)
    expected = Form(1e-2, 0, **of).seconds(TRIALS, BEST, n_rows)
    assert expected == pytest.approx(seconds)
    assert Form(1e-2, 0).seconds(TRIALS, BEST, 5000, surely=49.0) == 25.0


@pytest.mark.parametrize(
    ("of", "told"),
    [
        ({}, "the whole kernel on 60,000 rows"),
        ({"centers": 4096}, "4,096 centres"),
        ({"features": 1}, "1 feature"),
        ({"near": 50}, "50 near rows"),
    ],
)
def test_a_form_in_words(of, told):
    assert Form(1e-2, 0, **of).what(60_000) == told


@pytest.mark.parametrize(
    ("n_rows", "told"),
    [
        (5, "the whole kernel on 5 rows."),
        (5000, "the whole kernel on 5,000 rows; this last fit takes less than 50 s."),
        (60_000, "the whole kernel on 60,000 rows; this last fit takes about 5.0 min."),
        (4_567_660, "20,000 centres, since the whole kernel would take about 6.3 h."),
    ],
)
def test_the_reason_for_a_form_tells_three_digits(monkeypatch, n_rows, told):
    monkeypatch.setattr(form, "expects_linear_time", lambda *_: False)
    room = SimpleNamespace(n_rows=n_rows, whole=lambda: True, centers=lambda most, fewest: most)
    chosen, why = best_form(room, TRIALS, BEST, 600.0)
    assert why == told
    assert chosen.is_whole == (n_rows < 10**6)
    assert (chosen.centers or FEWEST_CENTERS) >= FEWEST_CENTERS


def test_a_fit_tells_of_its_form_before_it_is_calibrated():
    X = np.random.default_rng(0).standard_normal((120, 2))
    events = []
    model = KernelRegressor(form=WHOLE, kernel="gaussian", random_state=0)
    model._on_progress = lambda label, *_: events.append(label)
    model._before_fit = lambda *told: events.append(told)
    model.fit(X, np.sin(X[:, 0]))
    ((place, (chosen, *fit)),) = (
        (place, told) for place, told in enumerate(events) if isinstance(told, tuple)
    )
    assert chosen.is_whole
    assert fit[-1] == 120
    assert 0 < chosen.seconds(*fit) < 60
    assert not {"calibrating", "fitting"} & {*events[:place]}
    assert {"calibrating", "fitting"} <= {*events[place + 1 :]}


@pytest.mark.slow
def test_solves_for_standard_deviations_are_heard_of():
    """Shares only grow in a solve; the model predicts the same."""
    X = np.random.default_rng(0).standard_normal((400, 5))
    model = KernelRegressor(form=WHOLE, kernel=Gaussian(0.1), random_state=0)
    model.fit(X, np.sin(X[:, 0]) + X[:, 1])
    ridge = KernelRidge(Gaussian(0.1), 0.1, preconditioner=None, tol=TOL, random_state=0)
    model.model_ = ridge.fit(X, X[:, 0])
    model.model_.n_iter_ = 500
    silent, told = pickle.loads(pickle.dumps(model)), []
    model._hear_of_solves(lambda *report: told.append(report), "solving")
    mean, std = model.predict(X[:100], return_std=True)
    np.testing.assert_array_equal(silent.predict(X[:100], return_std=True), (mean, std))
    assert told
    assert {label for label, _, _ in told} == {"solving"}
    steps = [int(now.split()[1].rstrip(",")) for _, _, now in told]
    shares = [share for _, share, _ in told]
    assert 1 in steps
    for step, before, share in zip(steps[1:], shares, shares[1:], strict=False):
        assert step == 1 or share >= before
    most = [n / 500 for n in steps]
    assert all(share <= least for share, least in zip(shares, most, strict=True))
    assert all(0 <= share <= 1 and math.copysign(1, share) > 0 for share in shares)
