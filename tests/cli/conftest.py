"""What the tests of the command share: an empty folder, and two tables."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def globe():
    """Places on the globe and a smooth function of them."""
    rng = np.random.default_rng(0)
    lat, lon = np.degrees(np.arcsin(rng.uniform(-1, 1, 400))), rng.uniform(-180, 180, 400)
    return {"lat": lat, "lon": lon, "y": np.sin(np.radians(lat)) + 0.01 * rng.standard_normal(400)}


@pytest.fixture
def plain():
    """Three columns of different size and a smooth function of two of them."""
    rng = np.random.default_rng(1)
    a, b, c = rng.standard_normal((3, 500)) * [[1], [100], [1e-3]]
    return {"a": a, "b": b + 7, "c": c, "y": np.sin(a) + b / 100}
