"""The choice at the edge: the alpha and the slopes that it takes are those of the model returned."""

from dataclasses import replace

import numpy as np
import pytest
from points import gaussian

from gzkcore import Matern
from gzkcore.tabular import extrapolation
from gzkcore.tabular.extrapolation import Edge, choose_by_edge
from gzkcore.tabular.report import Candidate, Report
from gzkcore.tabular.trials import Trials

SPLITS = [(np.arange(60), np.arange(60, 90)), (np.arange(30, 90), np.arange(30))]
KERNEL = Matern(1.5, 1.0)
BEST = Candidate("Matern", KERNEL, 0.01, of_splits=[KERNEL] * 2)


@pytest.mark.parametrize(("alpha", "slopes"), [(0.01, None), (1.0, None), (0.01, [0, 1])])
def test_what_is_chosen_at_the_edge_is_returned(monkeypatch, alpha, slopes):
    slopes = None if slopes is None else np.array(slopes)
    X = gaussian(90, 2)
    trials = Trials(X, X[:, :1] + 0.1 * gaussian(90, 1, seed=1), None, SPLITS, Report(), 0)
    best = replace(trials.run(BEST, np.array([0.01])), error=1e9)
    models = [] if slopes is None else [replace(best, slopes=slopes)]
    monkeypatch.setattr(extrapolation, "_with_slopes", lambda *_: models)

    def ties(among, model, first, *, few):  # noqa: ARG001  of the same names
        """Return one alpha, with errors that only the model to be chosen has small."""
        size = 1.0 if model.slopes is slopes else 1e3
        return np.array([alpha]), np.full((60, 1), size)

    monkeypatch.setattr(extrapolation, "_ties", ties)
    chosen, error = choose_by_edge(trials, best, None, Edge(SPLITS[0], latest=False))
    assert chosen.alpha == alpha
    assert chosen.slopes is slopes
    assert (chosen is best) == (alpha == 0.01 and slopes is None)
    assert 0 < error < 1
