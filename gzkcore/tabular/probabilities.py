"""How sure predicted classes are: a link from predictions to probabilities, by held-out rows.

Least squares predict a number f for each class, +1 for its rows and -1 for others. A logistic
regression on these makes them probabilities; or, for three classes or more, powers of the shares
p = (1 + f) / 2 do, if that has the smaller log loss in folds. No probability is surer than the
held-out rows allow, see `least_probability`.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, logit, logsumexp
from sklearn.linear_model import LogisticRegression

from gzkcore._util.state import doubles, number, stored
from gzkcore._util.typing import Doubles, Integers
from gzkcore.learn.classification import places_of
from gzkcore.learn.held_out import FOLDS, folds

from .form import Choice

# Penalties of logistic regressions, as scikit-learn's C: with ten classes, each of which has
# slopes, C = 100 often overfits.
WEAK, STRONGER = 100.0, 10.0
FLOORS = 0.003, 0.03  # The search for the floor of shares starts from these.
TINY = np.finfo(np.float64).tiny


@dataclass
class Link:
    """What makes log probabilities, up to a constant, of predictions f: slopes g + offsets.

    g is f, or with a floor > 0 log max((1 + f) / 2, floor). Smaller probabilities than `least` are
    raised to it.
    """

    _state = stored(
        slopes=doubles("t", "t"),
        offsets=doubles("t"),
        floor=number(0),
        least=number(0, 0.5).if_there(),
    )

    slopes: Doubles
    offsets: Doubles
    floor: float = 0.0
    least: float = 0.0

    @classmethod
    def of_means(cls, n_targets: int) -> "Link":
        """Return the link that held-out rows improve: log odds of a target +-1 that is its mean."""
        return cls(2.0 * np.eye(n_targets), np.zeros(n_targets))

    @classmethod
    def of_shares(cls, shares: Doubles) -> "Link":
        """Return the link that predicts the shares of the classes, whatever the predictions."""
        odds = shares if shares.size > 2 else shares[1:] / np.maximum(shares[:1], TINY)
        return cls(np.zeros((odds.size, odds.size)), np.log(np.maximum(odds, TINY)))

    def scores(self, predictions: Doubles) -> Doubles:
        """Return log probabilities up to a constant."""
        g = _log_shares(predictions, self.floor) if self.floor else predictions
        scores = np.asarray(g @ self.slopes.T + self.offsets)
        if not self.least:
            return scores
        if scores.shape[1] == 1:  # the log odds of the second of two classes
            return np.asarray(np.clip(scores, logit(self.least), -logit(self.least)))
        lowest = logsumexp(scores, axis=1, keepdims=True) + math.log(self.least)
        return np.asarray(np.maximum(scores, lowest))


def calibrated_link(
    choice: Choice,
    in_units: Callable[[Doubles], Doubles],
    classes: NDArray[Any],
    shares: Doubles,
) -> Link:
    """Return the link by predictions of held-out rows, given the classes and their shares.

    `in_units` turns standardised targets into those of +1 and -1.
    """
    trials = choice.trials
    predicted = trials.predictions(choice.best, choice.form.trial, return_std=False)
    held_out = [
        (in_units(mean), places_of(in_units(trials.Y[test])), trials.weights(test), test)
        for _, mean, _, test in predicted
    ]
    predictions, truth, weight, rows = map(np.concatenate, zip(*held_out, strict=True))
    wrong = 100 * np.average(places_of(predictions) != truth, weights=weight)
    rate = f"The error rate on the rows held out for the choice is {wrong:.1f} %."
    trials.report.say(rate, "error rate of the choice")
    absent = np.setdiff1d(np.arange(len(classes)), truth)
    if absent.size:  # each counts as one row of its share, of which nothing is known
        middle = np.average(predictions, axis=0, weights=weight)
        predictions = np.vstack([predictions, np.tile(middle, (absent.size, 1))])
        truth = np.append(truth, absent)
        weight = np.append(weight, weight.sum() * shares[absent])
        names = ", ".join(map(str, classes[absent]))
        trials.report.say(f"No row of these classes was held out: {names}.")
    link = _best_link(predictions, truth, weight, len(classes))
    link.least = least_probability(trials.weights(np.unique(rows)), len(classes))
    if link.floor:
        trials.report.say("Probabilities are powers of what is predicted for each class.")
    return link


def least_probability(weight: Doubles, n_classes: int) -> float:
    """Return the least probability of a class that held-out rows of these weights allow.

    If none of n rows is mistaken, the chance of a mistake is not known to be 0: the estimate of
    Krichevsky and Trofimov, the best for log loss in the worst case, is 1 / (2 (n + 1)). Any of the
    other classes may be the right one. Rows of unequal weights count as fewer.
    """
    n = weight.sum() ** 2 / np.square(weight).sum()
    return float(0.5 / (n + 1) / (n_classes - 1))


def _best_link(predictions: Doubles, truth: Integers, weight: Doubles, n_classes: int) -> Link:
    """Return the link with the least log loss in folds; two classes have a logistic regression."""
    if n_classes == 2:
        return _logistic(predictions, truth, weight, WEAK)
    links: list[Callable[..., Link]] = [_powers]
    links += (functools.partial(_logistic, penalty=C) for C in (WEAK, STRONGER))
    losses = np.zeros(len(links))
    for train, test in folds(len(truth), FOLDS, truth):
        if np.unique(truth[train]).size < n_classes:
            return _logistic(predictions, truth, weight, STRONGER)  # too few rows to compare
        for place, link in enumerate(links):
            fitted = link(predictions[train], truth[train], weight[train])
            losses[place] += _loss(fitted.scores(predictions[test]), truth[test], weight[test])
    return links[int(np.argmin(losses))](predictions, truth, weight)


def _logistic(predictions: Doubles, truth: Integers, weight: Doubles, penalty: float) -> Link:
    """Return the link of a logistic regression on predictions; C of scikit-learn is `penalty`."""
    fitted = LogisticRegression(C=penalty, max_iter=1000).fit(predictions, truth, weight)
    return Link(fitted.coef_, fitted.intercept_)


def _powers(predictions: Doubles, truth: Integers, weight: Doubles) -> Link:
    """Return the power and the floor of shares with the least log loss.

    What happened in none of n rows is not known to be rarer than one in n: the floor is 1 / n or
    more.
    """
    least = 1.0 / len(truth)
    one, none = np.eye(predictions.shape[1]), np.zeros(predictions.shape[1])

    def link(logs: Doubles) -> Link:
        power, floor = np.exp(logs)
        return Link(power * one, none, max(float(floor), least))

    def loss(logs: Doubles) -> float:
        return _loss(link(logs).scores(predictions), truth, weight)

    optima = [minimize(loss, [0.0, math.log(floor)], method="Nelder-Mead") for floor in FLOORS]
    return link(min(optima, key=lambda optimum: float(optimum.fun)).x)


def _log_shares(predictions: Doubles, floor: float) -> Doubles:
    """Return log max(p, floor) of p = (1 + f) / 2, which least squares estimate for targets +-1."""
    return np.asarray(np.log(np.maximum((1.0 + predictions) / 2.0, floor)))


def _loss(scores: Doubles, truth: Integers, weight: Doubles) -> float:
    """Return the log loss of scores, which are log probabilities up to a constant."""
    logs = log_softmax(scores, axis=1)[np.arange(len(truth)), truth]
    return float(-np.average(logs, weights=weight))


def signs(places: Integers, n_classes: int) -> Doubles:
    """Return targets of +1 and -1: one of two classes, for the second, else one for each."""
    targets = np.asarray(2.0 * (places[:, None] == np.arange(n_classes)) - 1.0)
    return targets[:, 1:] if n_classes == 2 else targets
