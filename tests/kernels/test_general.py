"""Generalized zonal kernels: what is refused."""

import numpy as np
import pytest
from naming import named
from points import gaussian

from gzkcore.kernels import GeneralizedZonal

X3 = gaussian(5, 3)


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (GeneralizedZonal(3), TypeError, r"radial=3 is not callable"),
        (GeneralizedZonal(lambda t: t), ValueError, r"shape \(1, q \+ 1, s\); got shape \(1,\)"),
        (
            GeneralizedZonal(lambda t: np.ones((t.size, 3, 1))),
            ValueError,
            r"h_1\(0\) = 1: for l >= 1 it must be 0",
        ),
        (GeneralizedZonal(lambda t: np.full((t.size, 1), np.nan)), ValueError, r"not finite"),
    ],
    ids=named,
)
def test_bad_parameters(kernel, error, message):
    with pytest.raises(error, match=message):
        kernel.resolve(X3)
