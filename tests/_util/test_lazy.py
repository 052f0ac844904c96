"""Public names that are imported when they are first asked for."""

import subprocess
import sys

import pytest

import gzkcore


@pytest.mark.parametrize(
    ("package", "name", "near"),
    [
        (gzkcore, "KernelRegresor", "KernelRegressor"),
        (gzkcore, "kernelridge", "KernelRidge"),
        (gzkcore.kernels, "Guassian", "Gaussian"),
        (gzkcore.datasets, "laod", "load"),
    ],
)
def test_an_unknown_name_suggests_the_near_one(package, name, near):
    with pytest.raises(AttributeError, match=rf"'{name}' \(did you mean '{near}'\?\)$"):
        getattr(package, name)


def test_a_name_that_is_like_none_suggests_none():
    with pytest.raises(AttributeError, match=r"^module 'gzkcore' has no attribute 'zzz'$"):
        gzkcore.__getattr__("zzz")


def test_a_traceback_suggests_the_near_name_once():
    code = "import gzkcore; gzkcore.KernelRegresor"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stderr.casefold().count("did you mean") == 1
