"""Errors about arguments name the class, and the parameters that it has."""

import inspect

import numpy as np
import pytest

from gzkcore import (
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    RandomFourierFeatures,
    Spherical,
)
from gzkcore._util.arguments import with_remedies

X, Y = np.eye(3), [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: KernelRegressor(alpha=1), "KernelRegressor has no parameter 'alpha'; it has budget, "),
        (lambda: KernelClassifier(X, Y), "KernelClassifier: too many positional arguments; its param"),
        (lambda: KernelRegressor().fit(X, Y, cat_features=[0]), "KernelRegressor.fit has no parameter"),
        (lambda: KernelRegressor().fit(), r"KernelRegressor.fit: missing a required argument: .X"),
        (
            lambda: KernelRegressor().predict(X, return_cov=True),
            r"KernelRegressor.predict has no parameter 'return_cov' .did you mean 'return_std'",
        ),
        (lambda: KernelRidge().predict(X, return_cov=True), "KernelRidge.predict has no parameter"),
        (lambda: KernelRidge().fit(X, Y, verbose=1), "KernelRidge.fit has no parameter 'verbose'"),
        (lambda: KernelRidgeClassifier().predict(X, probabilities=True), "KernelRidgeClassifier.pr"),
        (
            lambda: KernelRidge("rbf", gamma=0.1),
            r"KernelRidge has no parameter 'gamma'.* Pass it to the kernel: kernel=Gaussian.gamma=0.1",
        ),
        (lambda: KernelRidge(nu=2.5), r"Pass it to the kernel: kernel=Matern\(nu=2.5\)$"),
        (lambda: RandomFourierFeatures(n_component=8), r"did you mean 'n_components'\?\); it has ker"),
        (lambda: Gaussian(sigma=2.0), r"no parameter 'sigma'; it has gamma. With lengthscale 2.0 it is"),
        (lambda: Spherical(sigma=2.0), r"Spherical has no parameter 'sigma'; it has theta$"),
    ],
)  # fmt: skip
def test_wrong_arguments_name_the_ones_there_are(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_errors_from_inside_stay_as_they_are():
    class Thing:
        @with_remedies
        def work(self, value):
            return len(value)

    with pytest.raises(TypeError, match="object of type 'int' has no len"):
        Thing().work(3)
    assert [*inspect.signature(Thing.work).parameters] == ["self", "value"]
