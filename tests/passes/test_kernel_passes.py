"""Passes over the rows: the same sums for any kind of rows, to the same bits for any threads."""

import numpy as np
import pytest
from batched import Cut
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import FunctionTransformer
from tolerances import RIDGE

from gzkcore import RandomFourierFeatures
from gzkcore._util.threads import limit_threads
from gzkcore.passes import kernel_passes, tiles
from gzkcore.passes.kernel_passes import Passes, add_up, sum_tiles

AS_THEY_ARE = FunctionTransformer()


def data(n=1000, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)).astype(dtype)
    X[X < -0.5] = 0
    return X, X @ [1.0, 2.0, 0.0, -1.0], rng.uniform(0, 2, n)


def squares(features, X):
    """Return Z^T Z and the sum of the rows of Z."""

    def use(_rows, Z, sums):
        sums[0][:] += Z.T @ Z
        sums[1][:] += Z.sum(axis=0)

    width = features.transform(X[:1]).shape[1]
    return sum_tiles(features, X, use, [(width, width), (width,)])


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 1000, 5000])
def test_sums_are_those_of_all_rows(n):
    X, _, _ = data(n)
    features = AS_THEY_ARE.fit(X)
    found = squares(features, X)
    for value, wanted in zip(found, (X.T @ X, X.sum(axis=0)), strict=True):
        assert_allclose(value, wanted, rtol=0, atol=RIDGE["summed"]() * n)
    for value, wanted in zip(squares(features, sparse.csr_array(X)), found, strict=True):
        assert_array_equal(value, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "features",
    [RandomFourierFeatures(n_components=300, random_state=0), RBFSampler(n_components=300)],
    ids=["ours", "foreign"],
)
def test_the_same_bits_for_any_number_of_threads(features, dtype):
    X, _, _ = data(3000, dtype=dtype)
    features.fit(X)
    with limit_threads(1):
        wanted = squares(features, X)
    for number in (2, 3, 7):
        with limit_threads(number):
            for value, one in zip(squares(features, X), wanted, strict=True):
                assert_array_equal(value, one)


def test_wide_features_get_few_rows_and_few_runs(monkeypatch):
    X, _, _ = data(200)
    features = RandomFourierFeatures(n_components=64, random_state=0).fit(X)
    wanted = squares(features, X)
    heights = []
    monkeypatch.setattr(kernel_passes, "FEATURES_BYTES", 8 * 64)
    monkeypatch.setattr(kernel_passes, "ALL_SUMS_BYTES", 3 * 8 * 64 * 65)
    original = tiles.Tiles.__call__
    monkeypatch.setattr(
        tiles.Tiles,
        "__call__",
        lambda self, rows: heights.append(rows.stop - rows.start) or original(self, rows),
    )
    found = squares(features, X)
    assert max(heights) == kernel_passes.LEAST_ROWS
    assert_allclose(found[0], wanted[0], rtol=0, atol=RIDGE["summed"]() * 200)


def test_a_failure_ends_all_threads():
    X, _, _ = data(3000)
    X[1234, 2] = np.nan
    with limit_threads(3), pytest.raises(ValueError, match="row 1234, column 2"):
        squares(AS_THEY_ARE.fit(X), X)


def test_adding_up_changes_no_part():
    parts = [(np.ones(2), np.ones(1)), (np.full(2, 2.0), np.zeros(1))]
    total = add_up(parts)
    assert_array_equal(total[0], [3.0, 3.0])
    assert_array_equal(parts[0][0], [1.0, 1.0])


# ---- whole fits


def weighted_sums(rows, scale):
    X, y, weight = rows
    X = X.toarray() if sparse.issparse(X) else X
    w = np.ones(len(y)) if weight is None else weight
    return (scale * (X.T * w) @ y, np.array([w.sum()]))


def kinds(X, y, weight, folder):
    np.save(folder / "X.npy", X)
    yield "array", (X, y, weight)
    yield "memory map", (np.load(folder / "X.npy", mmap_mode="r"), y, weight)
    yield "csr", (sparse.csr_matrix(X), y, weight)
    yield "batches", (Cut(X, y, weight, rows=70),)
    yield "csr batches", (Cut(sparse.csr_array(X), y, weight, rows=300),)


def test_every_kind_of_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("gzkcore.passes.streams.ARRAY_ROWS", 300)
    X, y, weight = data()
    wanted = weighted_sums((X, y, weight), 2.0)
    for kind, given in kinds(X, y, weight, tmp_path):
        reading = Passes.of(*given)
        for _ in range(2):
            found = reading.total(weighted_sums, 2.0)
            for value, one in zip(found, wanted, strict=True):
                assert_allclose(value, one, rtol=RIDGE["summed"](), err_msg=kind)


def test_chunks_of_dask():
    da = pytest.importorskip("dask.array", reason="needs dask: pip install 'gzkcore[dask]'")
    X, y, weight = data()
    given = (da.from_array(part, chunks=(300, *part.shape[1:])) for part in (X, y, weight))
    found = Passes.of(*given).total(weighted_sums, 2.0)
    for value, one in zip(found, weighted_sums((X, y, weight), 2.0), strict=True):
        assert_allclose(value, one, rtol=RIDGE["summed"]())


def test_rows_that_come_once_are_refused():
    X, y, _ = data()
    with pytest.raises(ValueError, match=r"whose iter\(\) starts again"):
        Passes.of(iter([(X, y)]))


def test_each_pass_is_a_step():
    X, y, weight = data()
    reading, told = Passes.of(X, y, weight), []
    reading.step = lambda work: told.append(1) or work()
    reading.total(weighted_sums, 1.0)
    reading.total(weighted_sums, 1.0)
    assert len(told) == 2
