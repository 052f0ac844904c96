"""Kernels by name."""

import pytest

from gzkcore import kernels
from gzkcore.kernels import Gaussian, as_kernel
from gzkcore.kernels.aliases import ALIASES


@pytest.mark.parametrize("alias", ["gaussian", "rbf"])
def test_aliases(alias):
    assert isinstance(as_kernel(alias), Gaussian)


def test_every_alias_is_a_kernel():
    for alias, make in ALIASES.items():
        assert type(as_kernel(alias)) is make
    assert {make.__name__ for make in ALIASES.values()} == set(kernels.__all__) - {
        "DotProduct", "GeneralizedZonal", "Kernel", "Product", "ProductMatern", "SphereHeat",
        "SphereMatern", "Sum", "Transformed", "Zonal", "as_kernel"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: as_kernel("gauss"),
            ValueError,
            r"kernel='gauss' is unknown .did you mean 'gaussian'",
        ),
        (lambda: as_kernel(3), ValueError, r"kernel=3 is unknown"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
