"""Every feature map gives the same numbers whatever the threads, chunks, layout, type or processor.

`MAPS` is the one list of maps. Started as a program, this file writes what they give to a file, which
is how one instruction set is compared with another.
"""

import functools
import operator
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from points import ball, gaussian, sphere
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from tolerances import ISA, SINGLE

import gzkcore as gzk
from gzkcore._util import memory
from gzkcore._util.model_io import load, save
from gzkcore._util.threads import limit_threads

N = 203  # rows: neither a multiple of a tile nor of a vector
GAMMA = gzk.Gaussian(0.5)


@dataclass(frozen=True)
class Map:
    """A feature map, the data for it, and whether it makes products by BLAS."""

    features: Any
    X: np.ndarray
    blas: bool = False

    def __post_init__(self):
        if "random_state" in self.features.get_params():
            self.features.set_params(random_state=0)

    def fit(self):
        return clone(self.features).fit(self.X)


def ours(kernel, n_components, basis, **options):
    return gzk.GegenbauerFeatures(kernel, n_components, basis=basis, **options)


MAPS = {
    "harmonic-sphere": Map(ours(GAMMA, 100, "harmonic"), sphere(N, 3)),
    "harmonic-ball": Map(ours(GAMMA, 77, "harmonic"), ball(N, 5, 2.0)),
    "harmonic-line": Map(ours(GAMMA, 9, "harmonic"), gaussian(N, 1)),
    "harmonic-plane": Map(ours(GAMMA, 41, "harmonic"), gaussian(N, 2)),
    "random-sphere": Map(ours(GAMMA, 65, "random"), sphere(N, 3)),
    "random-ball": Map(ours(GAMMA, 129, "random"), ball(N, 9, 2.0)),
    "random-wide": Map(ours("gaussian", 33, "random"), gaussian(N, 64)),
    "random-iid": Map(ours(GAMMA, 1, "random", directions="iid"), gaussian(N, 2)),
    "hybrid": Map(ours(GAMMA, 150, "hybrid", tol=1e-6), ball(N, 5, 1.5)),
    "adapted": Map(ours(GAMMA, 30, "adapted"), gaussian(N, 3), blas=True),
    "per-column": Map(ours(gzk.Gaussian([0.1, 0.5, 2.0]), 64, "auto"), gaussian(N, 3)),
    "zonal-function": Map(ours(gzk.Zonal(np.exp), 50, "harmonic"), sphere(N, 4)),
    "zonal-coefficients": Map(ours(gzk.Zonal(coefficients=[0.3, 0, 0.7]), 50, "random"), sphere(N, 9)),
    "product": Map(gzk.ProductFeatures([([0, 2], GAMMA), ([1, 3, 4], GAMMA)], 150), gaussian(N, 5)),
    "product-columns": Map(gzk.ProductFeatures("gaussian", 90), gaussian(N, 5)),
    "product-adapted": Map(gzk.ProductFeatures([(0, GAMMA), ([1, 2], GAMMA)], 30, basis="adapted"), gaussian(N, 3), blas=True),
    "block": Map(gzk.BlockFourierFeatures("gaussian", 333), gaussian(N, 150)),
    "block-permutation": Map(gzk.BlockFourierFeatures("matern", 64, arrangement="permutation"), gaussian(N, 17) / 4),
    "block-laplacian": Map(gzk.BlockFourierFeatures(gzk.Laplacian(0.1), 30), gaussian(N, 9)),
    "block-mix": Map(gzk.BlockFourierFeatures("gaussian", 65, mix="hadamard"), gaussian(N, 100)),
    "published": Map(gzk.PublishedGegenbauerFeatures(GAMMA, 60, degree=8, order=3), gaussian(N, 3)),
    "published-zonal": Map(gzk.PublishedGegenbauerFeatures(gzk.Zonal(np.exp), 31, degree=9, order=1), sphere(N, 3)),
    "fourier": Map(gzk.RandomFourierFeatures("matern", 130), gaussian(N, 9)),
    "fourier-qmc": Map(gzk.RandomFourierFeatures(gzk.Laplacian(0.3), 65, frequencies="qmc"), gaussian(N, 3)),
    "fourier-wide": Map(gzk.RandomFourierFeatures("gaussian", 1111, frequencies="orthogonal"), gaussian(N, 64), blas=True),
    "fastfood": Map(gzk.FastfoodFeatures("matern", 130), gaussian(N, 9)),
    "fastfood-wide": Map(gzk.FastfoodFeatures("gaussian", 1111), gaussian(N, 64)),
    "maclaurin": Map(gzk.MaclaurinFeatures(GAMMA, 130), ball(N, 5)),
    "maclaurin-wide": Map(gzk.MaclaurinFeatures(gzk.Polynomial(3), 1111), sphere(N, 64), blas=True),
    "nystrom": Map(gzk.NystromFeatures("matern", 20), gaussian(N, 3), blas=True),
    "nystrom-sphere": Map(gzk.NystromFeatures(gzk.Zonal(np.exp), 9, landmarks="rls"), sphere(N, 3), blas=True),
    "adaptive-sketch": Map(gzk.AdaptiveSketchFeatures(GAMMA, 90), ball(N, 5, 2.0), blas=True),
    "adaptive-sketch-polynomial": Map(gzk.AdaptiveSketchFeatures(gzk.Polynomial(3), 101, n_rows=60), sphere(N, 17), blas=True),
    "count-sketch": Map(gzk.CountSketch(30), gaussian(N, 64)),
    "osnap": Map(gzk.CountSketch(31, n_nonzeros=4), gaussian(N, 64)),
    "hadamard-projection": Map(gzk.HadamardProjection(30), gaussian(N, 300)),
    "hadamard-projection-more": Map(gzk.HadamardProjection(39), gaussian(N, 9)),
    "fast-jl": Map(gzk.FastJLProjection(31), gaussian(N, 300)),
    "tensor-sketch": Map(gzk.TensorSketchFeatures(gzk.Polynomial(3, gamma=0.1), 128), gaussian(N, 9)),
    "tensor-sketch-odd": Map(gzk.TensorSketchFeatures(gzk.Polynomial(2, coef0=0.0), 101), sphere(N, 17)),
    "poly-sketch": Map(gzk.PolySketchFeatures(gzk.Polynomial(3, gamma=0.1), 101), gaussian(N, 9)),
    "poly-sketch-gaussian": Map(gzk.PolySketchFeatures(gzk.Gaussian(0.5), 90, n_nonzeros=2), sphere(N, 9)),
    "fourier-modified": Map(gzk.ModifiedFourierFeatures(GAMMA, 33), gaussian(N, 2)),
}  # fmt: skip
every_map = pytest.mark.parametrize("name", MAPS)
every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@functools.cache
def fitted(name):
    return MAPS[name].fit()


def given(name, dtype=np.float64):
    return fitted(name), MAPS[name].X.astype(dtype)


@functools.cache
def fit_transformed(name, dtype):
    features, X = given(name, dtype)
    return clone(features).fit_transform(X)


def same(name, value, expected):
    """Equal to the bit; products by BLAS to rounding."""
    if MAPS[name].blas:
        tolerance = SINGLE(value.dtype)
        np.testing.assert_allclose(value, expected, rtol=0, atol=tolerance)
    elif not np.array_equal(value, expected):  # this takes a tenth of the time
        np.testing.assert_array_equal(value, expected)


# ---- threads and chunks


@every_map
@every_type
def test_threads(name, dtype):
    features, X = given(name, dtype)
    X = np.tile(X, (min(40, 1 + 8000 // features.n_components), 1))  # work for three threads
    with limit_threads(1):
        expected = features.transform(X)
    for n in (2, 3):
        with limit_threads(n):
            same(name, features.transform(X), expected)
    same(name, expected[:N], features.transform(X[:N]))


@every_map
def test_threads_do_not_change_the_fit(name):
    with limit_threads(1):
        expected = MAPS[name].fit().transform(MAPS[name].X)
    with limit_threads(3):
        value = MAPS[name].fit().transform(MAPS[name].X)
    if MAPS[name].blas:  # principal axes may turn: their kernel does not
        value, expected = value @ value.T, expected @ expected.T
        np.testing.assert_allclose(value, expected, rtol=0, atol=ISA(np.float64))
    else:
        np.testing.assert_array_equal(value, expected)


@every_map
@every_type
@pytest.mark.parametrize("rows", [1, 7, 64])
@pytest.mark.filterwarnings("ignore:points at distance:gzkcore.TruncationWarning")
def test_chunks(name, dtype, rows):
    features, X = given(name, dtype)
    if rows == 1:
        X = X[:30]
    if not features.kernel_.unit_sphere:
        X = np.concatenate([X, 1.5 * X[:20]])  # beyond the radius too
    expected = features.transform(X)
    chunks = [features.transform(X[start : start + rows]) for start in range(0, len(X), rows)]
    same(name, np.concatenate(chunks), expected)


@pytest.mark.parametrize(
    "name",
    ["harmonic-sphere", "random-ball", "hybrid", "published", "fourier", "fourier-qmc", "fastfood"],
)
@every_type
def test_large_outputs_are_the_same(name, dtype):
    """Several tiles, and stores past the cache."""
    features, X = given(name, dtype)
    repeats = 40_000_000 // (X.itemsize * N * features.n_components)
    expected = np.tile(features.transform(X), (repeats, 1))
    np.testing.assert_array_equal(features.transform(np.tile(X, (repeats, 1))), expected)


# ---- layout and type


def strided(X):
    return np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]


def reversed_twice(X):
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": strided,
    "reversed": reversed_twice,
    "read-only": read_only,
    "unaligned": lambda X: np.frombuffer(b"." + X.tobytes(), X.dtype, offset=1).reshape(X.shape),
    "other order of bytes": lambda X: X.astype(X.dtype.newbyteorder()),
}


@every_map
@every_type
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layout(name, dtype, layout):
    features, X = given(name, dtype)
    other = layout(X)
    Z, expected = features.transform(other), features.transform(X)
    assert Z.dtype == dtype
    np.testing.assert_array_equal(Z, expected)
    if dtype == np.float64 and not MAPS[name].blas:
        refit = clone(features).fit(other).transform(X)
        np.testing.assert_allclose(refit, expected, rtol=0, atol=1e-9)


@every_map
@every_type
def test_memmap(name, dtype, tmp_path):
    """A fit and a transform of mapped rows give the bits of those in memory, and the file stays."""
    features, X = given(name, dtype)
    np.save(tmp_path / "X.npy", X)
    before = (tmp_path / "X.npy").read_bytes()
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r+")
    same(name, clone(features).fit(mapped).transform(mapped), fit_transformed(name, dtype))
    mapped.flush()
    assert (tmp_path / "X.npy").read_bytes() == before


@every_map
def test_lists_and_integers(name):
    features, X = given(name)
    Z = features.transform(X[:5].tolist())
    np.testing.assert_array_equal(Z, features.transform(X[:5]))
    assert Z.dtype == np.float64
    whole = np.eye(X.shape[1], dtype=np.int32)
    np.testing.assert_array_equal(features.transform(whole), features.transform(whole * 1.0))


@every_map
@every_type
def test_data_frames(name, dtype):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    features, X = given(name, dtype)
    frame = pandas.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
    fitted = clone(features).fit(frame)
    again = frame.copy(deep=True)
    np.testing.assert_array_equal(fitted.transform(frame), fitted.transform(again))
    # Its columns have another order.
    tolerance = SINGLE(dtype) if dtype == np.float32 else ISA(dtype)
    ours, theirs = fitted.transform(frame), fit_transformed(name, dtype)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, rtol=0, atol=10 * tolerance)
    assert fitted.feature_names_in_.tolist() == list(frame.columns)


@every_map
@every_type
@pytest.mark.parametrize(
    ("kind", "index"), [(sparse.csr_array, np.int64), (sparse.csr_matrix, np.int32)]
)
def test_sparse_rows(name, dtype, index, kind):
    features, X = given(name, dtype)
    S = kind(X)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    Z = features.transform(S)
    same(name, Z, features.transform(X))
    assert S.indices.dtype == index
    if dtype == np.float64 and not MAPS[name].blas:
        # Sums over columns of a sparse matrix have another order: the centre moves by rounding.
        refit = clone(features).fit(S).transform(S)
        np.testing.assert_allclose(refit, Z, rtol=0, atol=1e-9)


@every_map
@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_sparse_rows_with_a_strided_array(name, part):
    features, X = given(name)
    S = sparse.csr_array(X)
    expected = features.transform(S)
    setattr(S, part, np.repeat(getattr(S, part), 2)[::2])
    np.testing.assert_array_equal(features.transform(S), expected)


@every_map
def test_other_sparse_formats(name):
    features, X = given(name)
    for kind in (sparse.csc_array, sparse.coo_array):
        same(name, features.transform(kind(X)), features.transform(X))


@every_map
@every_type
def test_type_and_layout_of_the_output(name, dtype):
    features, X = given(name, dtype)
    Z = features.transform(X)
    assert Z.dtype == dtype
    assert Z.shape == (N, features.n_components) == (N, features.n_features_out_)
    assert Z.flags.c_contiguous
    assert clone(features).fit(X).transform(X).dtype == dtype


@every_map
def test_single_precision(name):
    features, X = given(name)
    expected = features.transform(X)
    X32 = X.astype(np.float32)
    size = np.sqrt(np.abs(expected).max())
    tolerance = SINGLE(np.float32) * max(size, 1)
    np.testing.assert_allclose(features.transform(X32), expected, rtol=0, atol=tolerance)


# ---- out=


@every_map
@every_type
def test_out_is_filled_and_returned(name, dtype):
    features, X = given(name, dtype)
    out = np.full((N, features.n_components), np.nan, dtype=dtype)
    assert features.transform(X, out=out) is out
    np.testing.assert_array_equal(out, features.transform(X))
    part = np.full((N + 9, features.n_components), np.nan, dtype=dtype)
    features.transform(X, out=part[4 : N + 4])  # rows of a larger array will do
    np.testing.assert_array_equal(part[4 : N + 4], out)
    assert np.isnan(part[:4]).all()
    assert np.isnan(part[N + 4 :]).all()


def frozen(shape):
    out = np.empty(shape)
    out.flags.writeable = False
    return out


WRONG = {
    "dtype": (lambda s: np.empty(s, np.float32), ValueError, "float32, but .* float64"),
    "shape": (lambda s: np.empty((s[0] + 1, s[1])), ValueError, "out has shape .* result has"),
    "order": (lambda s: np.empty(s[::-1]).T, ValueError, "out is not C-contiguous; pass an array"),
    "strided": (lambda s: np.empty((s[0], 2 * s[1]))[:, ::2], ValueError, "out is not C-contig"),
    "read-only": (frozen, ValueError, "out is read-only; pass a writable array"),
    "list": (lambda s: [[0.0] * s[1]] * s[0], TypeError, "out is a list; pass a numpy array"),
}


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (name, what)
        for name in MAPS
        for what in WRONG
        if (name, what) != ("random-iid", "order")  # one column is contiguous in either order
    ],
)
def test_wrong_out(name, what):
    features, X = given(name)
    make, error, message = WRONG[what]
    with pytest.raises(error, match=message):
        features.transform(X, out=make((N, features.n_components)))


@every_map
def test_out_may_not_overlap(name):
    features, X = given(name)
    width = max(X.shape[1], features.n_components)
    memory = np.zeros(2 * N * width)
    inside = memory[: X.size].reshape(X.shape)
    inside[:] = X
    out = memory[X.size - 1 :][: N * features.n_components].reshape(N, -1)
    with pytest.raises(ValueError, match="out overlaps X in memory; pass another array"):
        features.transform(inside, out=out)
    np.testing.assert_array_equal(inside, X)


# ---- nothing of the caller's is written to, and random states


@every_map
def test_nothing_is_written_to(name):
    features, X = clone(MAPS[name].features), MAPS[name].X.copy()
    before = {key: repr(value) for key, value in features.get_params().items()}
    features.fit(X)
    features.transform(X)
    np.testing.assert_array_equal(X, MAPS[name].X)
    assert {key: repr(value) for key, value in features.get_params().items()} == before


@every_map
def test_nothing_sparse_is_written_to(name):
    features, X = clone(MAPS[name].features), MAPS[name].X
    S = sparse.csr_array(X)
    for part in (S.data, S.indices, S.indptr):
        part.flags.writeable = False
    writable = sparse.csr_array(X)
    expected = clone(features).fit(writable).transform(writable)
    same(name, features.fit(S).transform(S), expected)
    np.testing.assert_array_equal(S.toarray(), X)


DRAWN = [
    "random-sphere", "random-ball", "random-wide", "hybrid", "published", "fourier", "fourier-qmc", "fastfood",
    "fourier-wide", "fourier-modified", "nystrom", "maclaurin", "adaptive-sketch", "count-sketch",
    "hadamard-projection", "fast-jl", "tensor-sketch", "poly-sketch",
]  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_random_states(name):
    X = MAPS[name].X

    def draw(state):
        return clone(MAPS[name].features).set_params(random_state=state).fit_transform(X)

    first = draw(3)
    np.testing.assert_array_equal(first, draw(3))
    np.testing.assert_array_equal(first, draw(np.int64(3)))
    for source in (np.random.RandomState, np.random.default_rng):
        # set_params does not copy: the second fit draws on.
        np.testing.assert_array_equal(draw(source(3)), draw(source(3)))
        state = source(3)
        assert not np.array_equal(draw(state), draw(state))
    assert not np.array_equal(first, draw(4))
    assert not np.array_equal(draw(None), draw(None))


@every_map
def test_the_global_seed_plays_no_part(name):
    np.random.seed(0)  # noqa: NPY002
    state = np.random.get_state()  # noqa: NPY002
    MAPS[name].fit()
    np.testing.assert_array_equal(state[1], np.random.get_state()[1])  # noqa: NPY002


# ---- instruction sets


def write(path):
    """Write what every map gives, in both types."""
    results = {}
    for name in MAPS:
        for dtype in (np.float32, np.float64):
            features, X = given(name, dtype)
            results[f"{name} {np.dtype(dtype)}"] = features.transform(X)
    np.savez(path, isa=gzk.show_config()["isa"], **results)


@pytest.mark.slow
@pytest.mark.parametrize(
    "level",
    [each for each in gzk.show_config()["supported_isa"] if each != gzk.show_config()["isa"]],
)
def test_instruction_sets_agree(level, tmp_path):
    if gzk.show_config()["isa"] == "plain":
        pytest.skip("this processor has one plain build")
    command = [sys.executable, __file__, str(tmp_path / "Z.npz")]
    environment = os.environ | {"GZKCORE_ISA": level}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    with np.load(tmp_path / "Z.npz") as there:
        assert there["isa"] == level
        for name, case in MAPS.items():
            for dtype in (np.float32, np.float64):
                features, X = given(name, dtype)
                tolerance = SINGLE(dtype) if dtype == np.float32 else ISA(dtype)
                Z, other = features.transform(X), there[f"{name} {np.dtype(dtype)}"]
                if case.blas:  # principal axes may turn: their kernel does not
                    Z, other = Z @ Z.T, other @ other.T
                np.testing.assert_allclose(other, Z, rtol=0, atol=tolerance, err_msg=name)


def test_warnings_do_not_depend_on_chunks():
    """One TruncationWarning for each call that has points too far out."""
    features = ours(GAMMA, 60, "harmonic").fit(ball(N, 3, 1.0))
    far = ball(50, 3, 6.0)
    with pytest.warns(gzk.TruncationWarning) as record:
        features.transform(np.tile(far, (400, 1)))
    assert len(record) == 1


# ---- files


def test_a_function_in_every_row_is_not_kept(tmp_path):
    with pytest.raises(TypeError, match="is a function, and a file of data cannot hold"):
        save(fitted("nystrom-sphere"), tmp_path / "m.gzk")


@every_map
def test_clones_pickles_and_files(name, tmp_path):
    features, X = given(name)
    copies = [pickle.loads(pickle.dumps(features))]
    if name != "nystrom-sphere":
        save(features, tmp_path / "m.gzk")
        copies.append(load(tmp_path / "m.gzk"))
    for dtype in (np.float32, np.float64):
        for copy in copies:
            expected = features.transform(X.astype(dtype))
            np.testing.assert_array_equal(copy.transform(X.astype(dtype)), expected)
    same(name, clone(features).fit(X).transform(X), features.transform(X))


# ---- weights


@every_map
def test_rows_of_weight_0_are_not_there(name):
    features, X = MAPS[name].features, MAPS[name].X
    used = np.arange(N) % 3 > 0
    expected = clone(features).fit(X[used]).transform(X[used])
    value = clone(features).fit(X, sample_weight=2.5 * used).transform(X[used])
    np.testing.assert_array_equal(value, expected)


WEIGHTED = {
    "center_": ["harmonic-ball", "random-wide", "maclaurin", "adaptive-sketch"],
    "gamma": ["random-wide", "block", "fourier-wide", "fastfood-wide"],
    "probabilities_": ["maclaurin"],
}


@pytest.mark.parametrize(("name", "what"), [(n, what) for what in WEIGHTED for n in WEIGHTED[what]])
def test_means_and_the_variance_are_weighted(name, what):
    """As those of rows that come as often as they weigh."""
    features, X = MAPS[name].features, MAPS[name].X
    count = np.arange(N) % 4
    of = operator.attrgetter("kernel_.gamma" if what == "gamma" else what)
    expected = of(clone(features).fit(np.repeat(X, count, axis=0)))
    value = of(clone(features).fit(X, sample_weight=count))
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12)
    sparsely = of(clone(features).fit(sparse.csr_array(X), sample_weight=count))
    np.testing.assert_allclose(sparsely, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("weight", "message"), [
    (np.zeros(N), "sample_weight is zero for every row; give some a weight > 0"),
    (np.ones(N - 1), "sample_weight has shape"),
    (-np.ones(N), r"sample_weight\[0\] = -1.0 is not a finite number >= 0"),
], ids=["zero", "short", "negative"])  # fmt: skip
def test_wrong_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        clone(MAPS["fourier"].features).fit(MAPS["fourier"].X, sample_weight=weight)


# ---- a fit that fails


@every_map
def test_a_failed_fit_changes_nothing(name):
    features, X = clone(MAPS[name].features), MAPS[name].X
    wanted = features.fit_transform(X)
    given = features.get_params(deep=False)
    features.set_params(**{key: "wrong" for key in ("random_state", "basis") if key in given})
    with pytest.raises((TypeError, ValueError)):
        features.fit(X)
    difference = features.transform(X) - wanted
    assert not np.any(difference.toarray() if sparse.issparse(difference) else difference)


if __name__ == "__main__":
    write(sys.argv[1])


# ---- sizes


@every_map
def test_a_width_that_memory_cannot_hold_is_refused_at_once(name, monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 1 << 32)
    features = clone(MAPS[name].features).set_params(n_components=10**9)
    with pytest.raises(MemoryError, match=r"n_components=1000000000 .* 4,294,967,296 bytes"):
        features.fit(MAPS[name].X)
    with pytest.raises(NotFittedError):
        check_is_fitted(features)


@every_map
def test_a_width_beyond_the_tables_is_refused(name):
    features = clone(MAPS[name].features).set_params(n_components=3 * 2**30)
    with pytest.raises(ValueError, match=r"n_components=3221225472 .* use at most 2147483647"):
        features.fit(MAPS[name].X)


def test_more_columns_than_the_tables_count_are_refused():
    X = sparse.csr_array(([1.0], [2**31], [0, 1]), shape=(1, 2**31 + 1))
    for features in (
        gzk.HadamardProjection(4),
        gzk.FastJLProjection(4),
        gzk.FastfoodFeatures(gzk.Gaussian(1.0)),
    ):
        with pytest.raises(ValueError, match=r"X has 2147483649 .* at most 1073741824; reduce"):
            features.fit(X)


SLOW = [pytest.param(name, marks=pytest.mark.weekly) for name in ("tensor-sketch", "poly-sketch")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["count-sketch", "hadamard-projection", "block", *SLOW])
def test_more_numbers_than_an_int32_counts(name):
    features, X = given(name, np.float32)
    columns, n = X.shape[1], 2**31 // X.shape[1] + 5
    features = clone(features).set_params(n_components=2).fit(X)
    few = sparse.csr_array(X[:3])
    many = sparse.csr_array(
        (few.data, few.indices, np.concatenate([np.zeros(n - 3, np.int32), few.indptr])),
        shape=(n, columns),
    )  # all rows but the last three are empty
    assert many.shape[0] * many.shape[1] > 2**31
    Z = features.transform(many)
    np.testing.assert_array_equal(Z[-3:], features.transform(few))
    np.testing.assert_array_equal(Z[[0, n // 2, n - 4]], features.transform(few[:1] * 0)[[0, 0, 0]])


@pytest.mark.weekly  # it reads the 8 GB of a file of holes
def test_more_mapped_numbers_than_an_int32_counts(tmp_path):
    shape = (2**20 + 3, 2049)
    with open(tmp_path / "X", "wb") as file:  # noqa: PTH123  a sparse file: it has no blocks
        file.truncate(4 * shape[0] * shape[1])
    X = np.memmap(tmp_path / "X", np.float32, "r+", shape=shape)
    X[-1] = np.arange(shape[1])
    features = gzk.CountSketch(4, random_state=0).fit(X[-3:])
    Z = features.transform(X)
    np.testing.assert_array_equal(Z[-3:], features.transform(X[-3:]))
    assert not Z[:-1].any()


# ---- far and near rows


@every_map
@every_type
@pytest.mark.parametrize("exponent", [-36, -10, 20, 36])
@pytest.mark.filterwarnings("ignore")
def test_finite_rows_have_finite_features_or_an_error(name, dtype, exponent):
    features, X = given(name, dtype)
    with np.errstate(all="ignore"):
        X = X[:60] * dtype(10.0**exponent)
        assert np.isfinite(X).all()
        # Far out on a line a fit takes thousands of powers, and seconds or minutes.
        long = name in ("product-adapted", "harmonic-line") and exponent > 0
        fits = (False,) if long else (False, True)
        for fitting in fits:
            try:
                made = clone(features).fit(X) if fitting else features
                Z = made.transform(X)
            except (ValueError, MemoryError):  # a series too long for memory, too
                continue
            assert np.isfinite(Z).all(), f"fitted to them: {fitting}"


def test_rows_so_far_that_no_column_is_left_are_refused():
    with pytest.raises(ValueError, match=r"basis='adapted' .* X lies too far"):
        clone(MAPS["adapted"].features).fit(1e10 * MAPS["adapted"].X)


@pytest.mark.parametrize("name", ["tensor-sketch", "poly-sketch"])
def test_rows_too_large_for_their_features_are_named(name):
    features, X = given(name, np.float32)
    X = X.copy()
    X[7] *= np.float32(1e15)
    for rows in (X, -np.abs(X)):
        with pytest.raises(ValueError, match=r"X is too large: row 7 .* float32; scale the"):
            features.transform(rows)
