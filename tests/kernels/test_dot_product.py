"""Kernels of the dot product."""

import numpy as np
import pytest
from naming import named

from gzkcore.kernels import DotProduct, Polynomial


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (Polynomial(degree=0), ValueError, r"degree=0 is too small"),
        (Polynomial(degree=2.5), TypeError, r"degree=2.5 is not an integer"),
        (
            Polynomial(coef0=-1.0),
            ValueError,
            r"coef0=-1 makes the coefficient of degree 2 .* -3 < 0.*use coef0 >= 0",
        ),
        (Polynomial(coef0="1"), TypeError, r"coef0='1' is not a number"),
        (
            DotProduct([1, -1, 1]),
            ValueError,
            r"derivatives\[1\]=-1 is negative.*coefficient of degree 1 is -1 < 0",
        ),
        (DotProduct([]), ValueError, r"derivatives=\[\] must be a list of finite numbers"),
        (DotProduct([0, 0]), ValueError, r"derivatives are all 0"),
    ],
    ids=named,
)
def test_bad_parameters(kernel, error, message):
    with pytest.raises(error, match=message):
        kernel.resolve(np.ones((5, 3)))
