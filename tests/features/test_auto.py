"""The front door: it takes the best family, says why, and its predictions come true."""

import functools
import json
import pickle
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from naming import named
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import gzkcore
from gzkcore import (
    BlockFourierFeatures,
    BlockProjection,
    FastfoodFeatures,
    Gaussian,
    GegenbauerFeatures,
    KernelFeatures,
    Laplacian,
    NystromFeatures,
    Polynomial,
    RandomFeatureRidge,
    RandomFourierFeatures,
    Spherical,
    Zonal,
)
from gzkcore._util.wording import shortened
from gzkcore.evaluate import compare as _compare
from gzkcore.evaluate.methods import METHODS, on_sphere
from gzkcore.features.auto import _candidates
from gzkcore.metrics import mean_kernel_error, relative_frobenius_error


def rows(n, dim, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, dim)).astype(dtype)


@parametrize_with_checks([KernelFeatures(n_components=4, random_state=0)])
def test_sklearn(estimator, check):
    check(estimator)


def test_the_choice_is_one_of_the_best():
    X = rows(900, 4)
    features = KernelFeatures(n_components=128, random_state=0).fit(X)
    K = features.kernel_(X[:300])
    ours = relative_frobenius_error(K, features.transform(X[:300]))
    for basis in ("auto", "random", "harmonic"):
        other = GegenbauerFeatures(features.kernel_, 128, basis=basis, random_state=1).fit(X)
        assert ours <= 1.3 * relative_frobenius_error(K, other.transform(X[:300]))


def test_it_says_what_and_why():
    features = KernelFeatures(n_components=64, random_state=0).fit(rows(400, 3))
    assert isinstance(features.chosen_, GegenbauerFeatures)
    least = min(features.errors_.values())
    assert re.search(r"off by [\d.e-]+ in the relative Frobenius norm", features.why_)
    assert features.why_.startswith("Gegenbauer")
    assert least <= 1.3 * features.errors_[features.why_.split(" (")[0]] * 1.2


def test_hopeless_kernels_are_called_so():
    features = KernelFeatures(Gaussian(1.0), n_components=16, random_state=0).fit(rows(300, 9))
    assert "No features of this width are close" in features.why_


def test_same_seed_same_choice_and_features():
    X = rows(500, 9)
    a, b = (KernelFeatures(n_components=64, random_state=7).fit(X) for _ in range(2))
    assert a.why_ == b.why_
    np.testing.assert_array_equal(a.transform(X), b.transform(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transformer_manners(dtype, tmp_path):
    X = rows(300, 3, dtype=dtype)
    features = KernelFeatures(n_components=50, random_state=0).fit(X)
    Z = features.transform(X)
    assert Z.dtype == dtype
    assert Z.shape == (300, 50)
    out = np.empty_like(Z)
    assert features.transform(X, out=out) is out
    np.testing.assert_array_equal(out, Z)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(features)).transform(X), Z)
    features.save(tmp_path / "f.gzk")
    np.testing.assert_array_equal(gzkcore.load(tmp_path / "f.gzk").transform(X), Z)
    assert list(features.get_feature_names_out()[:1]) == ["kernelfeatures0"]
    searched = clone(KernelFeatures()).set_params(kernel__gamma=0.25)
    assert searched.kernel.gamma == 0.25


def test_many_sparse_columns_are_reduced():
    X = sp.random_array((400, 3000), density=0.01, rng=np.random.default_rng(0), format="csr")
    features = KernelFeatures(n_components=64, random_state=0).fit(X)
    assert features.chosen_.dim_ == 64
    assert "3000 columns reduced to 64" in features.why_
    Z = features.transform(X)
    error = relative_frobenius_error(features.kernel_(X), Z)
    assert error <= 1.5 * min(features.errors_.values())


def test_polynomials_of_many_columns_may_be_sketched():
    X = sp.random_array((300, 300), density=0.05, rng=np.random.default_rng(0), format="csr")
    features = KernelFeatures(Polynomial(2), n_components=16, random_state=0).fit(X)
    assert "TensorSketch" in features.errors_
    narrow = KernelFeatures(Polynomial(2), n_components=16, random_state=0).fit(X[:, :20])
    assert "TensorSketch" not in narrow.errors_


def test_one_row_and_few_rows():
    for n in (1, 2, 5):
        assert KernelFeatures(n_components=8, random_state=0).fit_transform(rows(n, 2)).shape == (
            n,
            8,
        )


def test_other_kernels():
    S = rows(300, 3)
    S /= np.linalg.norm(S, axis=1, keepdims=True)
    features = KernelFeatures(Zonal(np.exp), n_components=64, random_state=0).fit(S)
    np.testing.assert_allclose(
        features.transform(S) @ features.transform(S).T, np.exp(S @ S.T), atol=1e-5
    )
    features = KernelFeatures(Laplacian(0.5), n_components=512, random_state=0).fit(S)
    assert isinstance(features.chosen_, RandomFourierFeatures)
    features = KernelFeatures(Spherical(1.0), n_components=8, random_state=0).fit(S)
    assert isinstance(features.chosen_, NystromFeatures)
    with pytest.raises(ValueError, match="Spherical"):  # fewer rows than columns
        KernelFeatures(Spherical(1.0), n_components=512).fit(S)


def test_it_is_the_default_of_learners():
    X = rows(400, 3)
    model = make_pipeline(RandomFeatureRidge(alpha=1e-3, random_state=0)).fit(X, np.sin(X[:, 0]))
    assert isinstance(model[0].features_, KernelFeatures)
    assert model.score(X, np.sin(X[:, 0])) > 0.99


def test_plan_holds_on_other_rows():
    """Within a factor of 1.5 for nine in ten of its predictions above 1e-3."""
    ratios = []
    for dim in (2, 3, 5, 9, 16):
        X, other = rows(1500, dim), rows(500, dim, seed=1)
        found = gzkcore.plan(X, Gaussian(0.5 / dim), n_components=[32, 128])
        for row in found.table:
            if row["error"] < 1e-3:
                continue
            candidates = _candidates(found.kernel, row["n_components"], X, 5)
            [features] = [c.features.fit(X) for c in candidates if c.name == row["method"]]
            error = relative_frobenius_error(found.kernel(other), features.transform(other))
            ratios.append(max(error / row["error"], row["error"] / error))
    assert len(ratios) >= 20
    assert np.quantile(ratios, 0.9) <= 1.5


def test_plan_recommends_the_cheapest_that_reaches_the_error():
    found = gzkcore.plan(rows(800, 3), max_error=1e-3, n_components=[16, 256, 512])
    assert "n_components=256" in found.recommendation
    features = found.build()
    assert features.n_components == 256
    assert not hasattr(features, "kernel_")
    text = str(found)
    assert "800 rows of 3 columns" in text
    assert text.endswith(found.recommendation)


def test_plan_prefers_few_features_to_quick_ones():
    """A learner takes the square of the width: 64 landmarks beat 256 quick features."""
    x = np.linspace(-1, 1, 400)[:, None]
    found = gzkcore.plan(x, Gaussian(3.0), max_error=1e-3, n_components=[32, 256])
    reached = [row for row in found.table if row["error"] <= 1e-3]
    assert {row["n_components"] for row in reached} == {32, 256}
    assert found.build().n_components == 32


def test_plan_says_when_nothing_reaches_the_error():
    found = gzkcore.plan(rows(600, 9), Gaussian(0.5), max_error=1e-6, n_components=[32, 128])
    assert "none reaches 1e-06" in found.recommendation


def test_plan_counts_all_rows():
    X = rows(300, 3)
    small, large = (gzkcore.plan(X, n_components=[32], n_samples=n) for n in (300, 30_000))
    assert large.table[0]["megabytes"] == 100 * small.table[0]["megabytes"]
    assert large.statistical_dimension > small.statistical_dimension
    assert 1 <= small.effective_dimension <= 3


def test_plan_draws(tmp_path):
    pytest.importorskip("matplotlib")
    gzkcore.plan(rows(300, 3), n_components=[16, 64]).plot(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"max_error": 0.0}, ValueError, "max_error=0.0 is not usable"),
        ({"lam": -1.0}, ValueError, "lam=-1.0 is not usable"),
        ({"n_components": []}, ValueError, "names no width"),
        ({"n_components": [0]}, ValueError, "n_components=0 is too small"),
        ({"n_samples": 0}, ValueError, "n_samples=0 is too small"),
        ({"kernel": "cauchy"}, ValueError, "kernel='cauchy' is unknown"),
    ],
)
def test_bad_plans(arguments, error, message):
    with pytest.raises(error, match=message):
        gzkcore.plan(rows(50, 3), **arguments)


def test_frames_asked_for_are_made_of_the_result_alone():
    """Inside, everything goes on with arrays."""
    X = rows(200, 3)
    wide = rows(100, 300)
    with config_context(transform_output="pandas"):
        features = KernelFeatures(n_components=16, random_state=0).fit(X)
        assert list(features.transform(X).columns) == list(features.get_feature_names_out())
        RandomFeatureRidge(features, alpha=1e-3).fit(X, X[:, 0]).predict(X)
        KernelFeatures(n_components=8, random_state=0).fit(wide)
        gzkcore.plan(X, n_components=np.int64(16))


def test_malformed_sparse_rows_are_refused():
    X = sp.random_array((50, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    maps = [
        BlockFourierFeatures(n_components=4),
        BlockProjection(4),
        FastfoodFeatures(n_components=4),
        GegenbauerFeatures(n_components=4),
        RandomFourierFeatures(n_components=4),
    ]
    fitted = [features.fit(X) for features in maps]
    far, long = X.copy(), X.copy()
    far.indices[3] = 200_000_000
    long.indptr[2] = 10**6
    for features in fitted:
        for bad in (far, long):
            with pytest.raises(ValueError, match="ind"):
                features.transform(bad)


# ---- compare


def in_a_script(X, Y):
    return X @ Y.T


in_a_script.__module__ = "__main__"
QUICK = ["gegenbauer", "fourier-iid", "sklearn-RBFSampler"]


@pytest.fixture
def one_thread(monkeypatch):
    """Workers of one thread: small work is done sooner so."""
    monkeypatch.setenv("GZKCORE_NUM_THREADS", "1")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")


@pytest.fixture
def in_process(monkeypatch):
    """No workers at all, which saves the time to start them; return what is measured."""
    measured = []

    def measure(self, method, width, seeds, limit):
        assert limit > 0
        measured.append((method, width, seeds))
        runs = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _compare._measure(pickle.loads(self._task), method, width, seeds, runs.append)
        yield from json.loads(json.dumps(runs))

    monkeypatch.setattr(_compare._Worker, "measure", measure)
    return measured


def compared(X, y=None, **options):
    given = {"methods": QUICK, "n_components": 32, "n_seeds": 2, "random_state": 0}
    return gzkcore.compare(X, y, **given | options)


@pytest.mark.usefixtures("in_process")
def test_every_method_takes_part_or_says_why(tmp_path):
    X = rows(150, 3)
    found = compared(X, X[:, 0], methods="all", n_components=16, n_seeds=1, max_samples=80)
    done, refused = ({row["method"] for row in part} for part in (found.rows, found.refused))
    assert done | refused == set(METHODS)
    assert not done & refused
    assert refused == {
        "tensorsketch",
        "sklearn-PolynomialCountSketch",
        "sklearn-AdditiveChi2Sampler",
        "sklearn-SkewedChi2Sampler",
    }
    assert all("\n" not in row["reason"] for row in found.refused)
    assert all(row["megabytes"] >= 0 < row["seconds"] for row in found.rows)
    assert [row["error"] for row in found.rows] == sorted(row["error"] for row in found.rows)
    assert (found.n_fitted, found.n_judged) == (80, 50)
    assert json.loads(found.to_json())["rows"] == found.rows
    text = str(found)
    assert all(name in text for name in METHODS)
    assert shortened(found.best["features"]) in text
    pytest.importorskip("matplotlib")
    found.plot(tmp_path / "compare.png")
    assert (tmp_path / "compare.png").stat().st_size > 50_000


@pytest.mark.usefixtures("in_process")
def test_compare_measures_what_it_says():
    """Errors, intervals and ratios are those of the features that it names, on rows it held out."""
    X = rows(300, 3)
    found = compared(
        X, np.sin(X[:, 0]), kernel=Gaussian(0.5), methods=["fourier-iid", "gegenbauer"]
    )
    assert [row["method"] for row in found.rows] == ["gegenbauer", "fourier-iid"]
    assert found.kernel == "Gaussian(gamma=0.5)"
    fourier = found.rows[1]
    K = Gaussian(0.5)(X)
    Z = RandomFourierFeatures(Gaussian(0.5), 32, random_state=5).fit_transform(X)
    for key, metric in (("error", relative_frobenius_error), ("mean_error", mean_kernel_error)):
        assert 0.5 < fourier[key] / metric(K, Z) < 2
        assert fourier[f"{key}_low"] < fourier[key] < fourier[f"{key}_high"]
        assert fourier[f"{key}_spread"] > 0
    assert fourier["error_ratio"] == fourier["error"] / found.rows[0]["error"]
    assert min(row["time_ratio"] for row in found.rows) == 1
    assert found.rows[0]["r2"] > 0.9
    assert found.rows[0]["width"] == 32
    again = compared(X, np.sin(X[:, 0]), kernel=Gaussian(0.5), methods=["fourier-iid"])
    assert again.rows[0]["error"] == fourier["error"]
    assert again.rows[0]["rmse"] == fourier["rmse"]
    assert again.best["method"] == "fourier-iid"
    assert compared(X, n_seeds=1, methods="gegenbauer").rows[0]["error_low"] is None


@pytest.mark.usefixtures("one_thread")
def test_peak_memory_is_that_of_the_features():
    """1,024 columns of 8,000 rows are 66 MB; scikit-learn's RBFSampler holds little else."""
    X = rows(8512, 3)
    found = compared(X, methods=["sklearn-RBFSampler"], n_components=1024, n_seeds=1)
    assert 60 < found.rows[0]["megabytes"] < 150


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("make", "kernel", "method"),
    [
        (sp.csr_array, "gaussian", "fastfood"),
        (lambda X: pytest.importorskip("pandas").DataFrame(X), "gaussian", "gegenbauer"),
        (lambda X: X.astype(np.float32), "laplacian", "product"),
        (np.abs, "additive_chi2", "sklearn-AdditiveChi2Sampler"),
        (np.abs, "skewed_chi2", "sklearn-SkewedChi2Sampler"),
        (lambda X: X, "polynomial", "sklearn-PolynomialCountSketch"),
        (lambda X: X, "polynomial", "sklearn-Nystroem"),
        (lambda X: X, np.dot, "gegenbauer"),
    ],
    ids=named,
)
def test_compare_takes_other_data_and_kernels(make, kernel, method):
    X = make(rows(60, 3))
    if kernel is np.dot:
        from sklearn.metrics.pairwise import cosine_similarity

        found = compared(X, kernel=cosine_similarity, methods=["nystrom-uniform", method])
        assert found.kernel == "sklearn.metrics.pairwise.cosine_similarity"
        assert found.refused[0]["reason"] == "needs a kernel of gzkcore.kernels, not a function"
        return
    [row] = compared(X, kernel=kernel, methods=[method], n_components=64, n_seeds=1).rows
    assert row["error"] < 1.2


@pytest.mark.parametrize(
    ("X", "y", "options", "error", "message"),
    [
        (rows(50, 3), None, {"methods": ["gegenbaur"]}, ValueError, "did you mean 'gegenbauer'"),
        (rows(50, 3), None, {"methods": ["zzz"]}, ValueError, "use 'all' or some of auto, gegenb"),
        (rows(50, 3), None, {"methods": None}, TypeError, "methods=None are no names; use 'all'"),
        (rows(50, 3), None, {"methods": [["a"]]}, TypeError, "are no names"),
        (rows(50, 3), None, {"n_components": [[1], [1, 2]]}, TypeError, "holds no integers; give"),
        (rows(50, 3), None, {"n_samples": 5}, ValueError, "n_samples=5 is too small; .* >= 50"),
        (rows(50, 3), np.ones(50) * 1j, {}, TypeError, "y is complex"),
        (rows(50, 3)[0], None, {}, ValueError, "Expected 2D array"),
        (np.empty((50, 0)), None, {}, ValueError, "required by compare"),
        (sp.csr_array([[0.0, 0.0]] * 30 + [[1.0, np.inf]]), None, {}, ValueError, "in row 30"),
        (rows(50, 3), None, {"methods": []}, ValueError, "names no method"),
        (rows(50, 3), None, {"n_components": [64, 0]}, ValueError, "n_components=0 is too small"),
        (rows(50, 3), None, {"n_components": []}, ValueError, "names no width"),
        (rows(50, 3), None, {"n_seeds": 0}, ValueError, "n_seeds=0 is too small"),
        (rows(50, 3), None, {"max_seconds": 0.0}, ValueError, "max_seconds=0.0 is not usable"),
        (rows(50, 3), None, {"kernel": "cauchy"}, ValueError, "kernel='cauchy' is unknown"),
        (rows(50, 3), None, {"kernel": "precomputed"}, ValueError, "pass a function"),
        (rows(50, 3), None, {"kernel": "skewed_chi2"}, ValueError, "takes values >= 0"),
        (rows(50, 3), None, {"kernel": lambda X, Y: X @ Y.T}, ValueError, "in a module"),
        (rows(50, 3), None, {"kernel": in_a_script}, ValueError, "a script or .* in a module"),
        (rows(50, 3), None, {"output": "x.csv"}, ValueError, "x.csv should end with .json"),
        (rows(1, 3), None, {}, ValueError, "X has 1 row; a comparison takes 20"),
        (np.full((50, 3), np.nan), None, {}, ValueError, "X has NaN or infinity in row 0"),
        (rows(50, 3), np.arange(49), {}, ValueError, r"y has shape \(49,\), but X has 50 rows"),
        (rows(50, 3), [*range(49), np.nan], {}, ValueError, "no finite number in row 49"),
        (rows(50, 3), ["a"] * 50, {}, ValueError, "y is not numeric"),
        (rows(50, 3), np.ones(50), {}, ValueError, "nothing to predict"),
    ],
)
def test_bad_comparisons(X, y, options, error, message):
    with pytest.raises(error, match=message):
        compared(X, y, **options)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("n_seeds", [1, 2])
def test_errors_that_are_not_finite_are_refused(tmp_path, n_seeds):
    path = tmp_path / "results.json"
    options = {"kernel": Polynomial(3), "methods": ["maclaurin"], "n_components": 16}
    for _ in range(2):
        found = compared(rows(60, 3) * 1e50, n_seeds=n_seeds, output=path, **options)
        assert (found.rows, found.best) == ([], None)
        assert found.refused[0]["reason"] == "its error is not finite; scale the columns"
        with pytest.raises(ValueError, match="nothing was measured"):
            found.plot(tmp_path / "compare.png")
    path.write_text(path.read_text().replace('"lam": 1.0', '"lam": NaN'))
    with pytest.raises(ValueError, match=r"is no result of compare .*NaN is no number"):
        compared(rows(60, 3) * 1e50, n_seeds=n_seeds, output=path, **options)


@pytest.mark.usefixtures("in_process")
def test_kernels_of_functions_have_no_addresses(tmp_path):
    X, path = rows(60, 3), tmp_path / "results.json"
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernel = Zonal(functools.partial(on_sphere, 0.5))
    found = compared(X, kernel=kernel, methods=["fourier-iid"], output=path)
    assert "<function on_sphere>" in found.kernel
    assert " at 0x" not in path.read_text().split("cells")[0]


def test_places_that_cannot_be_written_are_found_first(tmp_path, monkeypatch, in_process):
    def refuse(**options):
        raise PermissionError(13, "Permission denied", f"{options['dir']}/.hidden")

    path = tmp_path / "results.json"
    monkeypatch.setattr(_compare.tempfile, "TemporaryFile", refuse)
    with pytest.raises(PermissionError) as caught:
        compared(rows(60, 3), output=path)
    assert caught.value.filename == str(path)
    assert in_process == []
    path.mkdir()
    with pytest.raises(ValueError, match="is a folder; name a file"):
        compared(rows(60, 3), output=path)


def test_results_are_kept_and_gone_on_from(tmp_path, in_process):
    X, path = rows(80, 3), tmp_path / "results.json"
    first = compared(X, methods=QUICK[:2], n_seeds=1, output=path)
    in_process.clear()
    assert compared(X, methods=QUICK[:2], n_seeds=1, output=path).rows == first.rows
    assert in_process == []
    more = compared(X, methods=QUICK[1:], n_components=[16, 32], output=path, random_state=None)
    assert in_process == [
        ("fourier-iid", 16, [0, 1]),
        ("sklearn-RBFSampler", 16, [0, 1]),
        ("fourier-iid", 32, [1]),
        ("sklearn-RBFSampler", 32, [0, 1]),
    ]
    assert {row["n_components"] for row in more.rows} == {16, 32}
    assert [file.name for file in tmp_path.iterdir()] == ["results.json"]
    for options in (
        {"random_state": 1},
        {"kernel": "laplacian"},
        {"max_samples": 30},
        {"lam": 2.0},
    ):
        with pytest.raises(ValueError, match="give another output, or delete it"):
            compared(X, **{"output": path} | options)
    with pytest.raises(ValueError, match="data was other values, and is these now"):
        compared(X + 1, output=path)
    with pytest.raises(ValueError, match="targets was other values"):
        compared(X, X[:, 0], output=path)
    path.write_text("{}")
    with pytest.raises(ValueError, match="is no result of compare"):
        compared(X, output=path)
    with pytest.raises(ValueError, match="there is no folder"):
        compared(X, output=tmp_path / "no" / "results.json")


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"lam": 1.0,', "", "KeyError: 'lam'"),
        ('"fit_seconds"', '"seconds"', "KeyError: 'fit_seconds'"),
        ('"error": ', '"error": "bad", "e": ', "TypeError: error is 'bad'"),
        ('"rmse"', '"mse"', "KeyError: 'rmse'"),
        ('"seed": ', '"seed": "a", "s": ', "TypeError: seed is 'a'"),
        ('"reason": null', '"reason": 1', "TypeError: reason is 1"),
    ],
)
def test_results_that_lack_something_are_refused(tmp_path, before, after, said):
    X, path = rows(60, 3), tmp_path / "results.json"
    options = {"methods": ["fourier-iid"], "n_seeds": 1, "output": path}
    compared(X, X[:, 0], **options)
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after, 1))
    with pytest.raises(ValueError, match=re.escape(f"is no result of compare ({said})")):
        compared(X, X[:, 0], **options)


@pytest.mark.usefixtures("in_process")
def test_two_comparisons_with_one_file_keep_what_both_have_done(tmp_path):
    X, path = rows(60, 3), tmp_path / "results.json"

    def meanwhile(_, share, now):
        if now == "fourier-iid, 32" and share == 0:
            compared(X, methods=["fourier-iid", "gegenbauer"], n_seeds=3, output=path)

    compared(X, methods=["fourier-iid"], output=path, report=meanwhile)
    cells = json.loads(path.read_text())["cells"]
    assert {cell["method"]: len(cell["runs"]) for cell in cells} == {
        "fourier-iid": 3,
        "gegenbauer": 3,
    }

    def other(_, share, __):
        if share == 0:
            compared(X + 1, output=path)

    path.unlink()
    with pytest.raises(ValueError, match="data was other values"):
        compared(X, output=path, report=other)
    assert len(json.loads(path.read_text())["cells"]) == 3


COMPARE = """
import sys, numpy as np, gzkcore
X = np.random.default_rng(0).standard_normal((5000, 3))
gzkcore.compare(X, methods=["fourier-iid", "nystrom-rpcholesky"], n_components=[8, 2048],
                n_seeds=50, random_state=0, output=sys.argv[1])
"""


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=str)
def test_a_killed_comparison_leaves_what_it_has_done(tmp_path, how):
    path = tmp_path / "results.json"
    process = subprocess.Popen(
        [sys.executable, "-c", COMPARE, path], stderr=subprocess.PIPE, cwd=tmp_path
    )
    deadline = time.monotonic() + 60
    while not path.exists() or len(json.loads(path.read_text())["cells"][0]["runs"]) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(how)
    _, said = process.communicate(timeout=30)
    assert process.returncode in (-how, 130, 1), said
    kept = json.loads(path.read_text())
    runs = kept["cells"][0]["runs"]
    X = rows(5000, 3)
    found = gzkcore.compare(
        X, methods=["fourier-iid"], n_components=8, n_seeds=2, random_state=0, output=path
    )
    assert found.rows[0]["error"] == np.mean([run["error"] for run in runs[:2]])
    assert json.loads(path.read_text()) == kept  # nothing was done again


ORPHAN = """
import os, sys, time, numpy as np, gzkcore
from gzkcore.evaluate import compare as _compare
popen = _compare.subprocess.Popen
def noted(*args, **options):
    process = popen(*args, **options)
    print(process.pid, flush=True)
    return process
_compare.subprocess.Popen = noted
_compare._START = '''
import os, time
from gzkcore.evaluate import compare as _compare
def run(*_):
    print(os.getpid(), file=open("child", "w"), flush=True)
    time.sleep(60)
_compare._run = run
_compare.serve()
'''
gzkcore.compare(np.random.default_rng(0).standard_normal((50, 3)), methods="fourier-iid")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it takes a second")
@pytest.mark.usefixtures("one_thread")
def test_nothing_is_measured_for_a_process_that_was_killed(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, cwd=tmp_path, text=True
    )
    pids = [int(process.stdout.readline())]
    deadline = time.monotonic() + 30
    child = tmp_path / "child"
    while not (child.exists() and child.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    pids.append(int(child.read_text()))
    process.kill()
    process.communicate(timeout=30)
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.usefixtures("one_thread")
def test_methods_that_fail_are_listed(monkeypatch):
    """Too slow, killed, or broken: the others are measured all the same."""
    X = rows(80, 3)
    slow = compared(X, methods=["gegenbauer", "fourier-iid"], n_components=16, max_seconds=1e-4)
    assert slow.rows == []
    assert slow.best is None
    assert not slow.predicts
    assert "a seed took more than 0.0001 s" in slow.refused[0]["reason"]
    assert str(slow)
    monkeypatch.setattr(_compare, "_START", KILLED)
    found = compared(X, methods=["gegenbauer", "fourier-iid"])
    assert [row["method"] for row in found.rows] == ["fourier-iid"]
    assert found.refused[0]["reason"] == "its process was ended by signal 9 (out of memory?)"
    monkeypatch.setattr(_compare, "_START", "raise SystemExit('no such luck')")
    with pytest.raises(OSError, match="could not start: no such luck"):
        compared(X)
    told = "import os; raise SystemExit(os.environ['GZKCORE_NUM_THREADS'])"
    for asked, started in (("3", told), ("2", told.replace("GZKCORE", "OMP"))):
        monkeypatch.setenv("GZKCORE_NUM_THREADS", asked)
        monkeypatch.setattr(_compare, "_START", started)
        with pytest.raises(OSError, match=f"could not start: {asked}"):
            compared(X)


KILLED = """
import os
from gzkcore.evaluate import compare as _compare
run = _compare._run
def killed(task, method, *rest):
    if method == "gegenbauer":
        os.kill(os.getpid(), 9)
    return run(task, method, *rest)
_compare._run = killed
_compare.serve()
"""


@pytest.mark.usefixtures("one_thread")
def test_where_forks_are_not_safe(monkeypatch):
    """Each method has a new worker: the same numbers."""
    X = rows(80, 3)
    expected = compared(X, methods=QUICK[1:])
    spawned = "from gzkcore.evaluate import compare as _compare; _compare._FORKS = False; _compare.serve()"
    monkeypatch.setattr(_compare, "_START", spawned)
    found = compared(X, methods=QUICK[1:], max_seconds=1e12)
    assert [row["error"] for row in found.rows] == [row["error"] for row in expected.rows]
