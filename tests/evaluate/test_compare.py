"""Comparisons: every method takes part or says why, and what is said was measured."""

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp
from comparisons import compared
from naming import named
from points import gaussian
from sklearn.metrics.pairwise import cosine_similarity

from gzkcore import Gaussian, Polynomial, RandomFourierFeatures
from gzkcore._util.wording import shortened
from gzkcore.evaluate import measure
from gzkcore.evaluate.compare import about_chance
from gzkcore.evaluate.methods import NAMES
from gzkcore.features.base import plain_output
from gzkcore.metrics import mean_kernel_error, relative_frobenius_error
from gzkcore.tabular.table_encoder import TableEncoder


def in_a_script(X, Y):
    return X @ Y.T


in_a_script.__module__ = "__main__"


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_every_method_takes_part_or_says_why(tmp_path):
    X = gaussian(150, 3)
    found = compared(X, X[:, 0], methods="all", n_components=16, n_seeds=1, max_samples=80)
    done, refused = ({row["method"] for row in part} for part in (found.rows, found.refused))
    assert done | refused == set(NAMES)
    assert not done & refused
    assert refused == {
        "tensorsketch",
        "sklearn-PolynomialCountSketch",
        "sklearn-AdditiveChi2Sampler",
        "sklearn-SkewedChi2Sampler",
    }
    assert all("\n" not in row["reason"] for row in found.refused)
    assert all(row["megabytes"] >= 0 < row["seconds"] for row in found.rows)
    *features, whole = found.rows  # by error, and at last the kernel itself
    assert [row["error"] for row in features] == sorted(row["error"] for row in features)
    assert (whole["method"], whole["n_components"], whole["error"]) == ("whole", None, 0)
    assert (found.n_fitted, found.n_judged) == (80, 50)
    assert json.loads(found.to_json())["rows"] == found.rows
    text = str(found)
    assert all(name in text for name in NAMES)
    assert shortened(found.best["features"]) in text
    pytest.importorskip("matplotlib")
    found.plot(tmp_path / "compare.png")
    assert (tmp_path / "compare.png").stat().st_size > 50_000


@pytest.mark.usefixtures("in_process")
def test_compare_encodes_tables():
    """Text and gaps are what `KernelRegressor` makes of them, and rows of numbers are untouched."""
    numbers, words = gaussian(100, 2), np.where(np.arange(100) % 3, "a", "b")
    table = np.column_stack([numbers.astype(object), words])
    table[5, 0] = None
    options = {"methods": ["fourier-iid"], "n_components": 16, "n_seeds": 1}
    found = compared(table, numbers[:, 1], **options)
    same = compared(plain_output(TableEncoder()).fit_transform(table), numbers[:, 1], **options)
    assert found.rows[0]["rmse"] == same.rows[0]["rmse"]
    assert found.n_features == same.n_features > 3


@pytest.mark.usefixtures("in_process")
def test_compare_measures_what_it_says():
    """Errors, intervals and ratios are those of the features that it names, on rows it held out."""
    X = gaussian(300, 3)
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


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("make", "kernel", "method"), [
    (sp.csr_array, "gaussian", "fastfood"),
    (lambda X: pytest.importorskip("pandas").DataFrame(X), "gaussian", "gegenbauer"),
    (lambda X: X.astype(np.float32), "laplacian", "product"),
    (np.abs, "additive_chi2", "sklearn-AdditiveChi2Sampler"),
    (np.abs, "skewed_chi2", "sklearn-SkewedChi2Sampler"),
    (lambda X: X, "polynomial", "sklearn-PolynomialCountSketch"),
    (lambda X: X, "polynomial", "sklearn-Nystroem"),
], ids=named)  # fmt: skip
def test_compare_takes_other_data_and_kernels(make, kernel, method):
    X = make(gaussian(60, 3))
    [row] = compared(X, kernel=kernel, methods=[method], n_components=64, n_seeds=1).rows
    assert row["error"] < 1.2


@pytest.mark.usefixtures("in_process")
def test_a_function_is_compared_by_landmarks_alone():
    methods = ["nystrom-uniform", "gegenbauer"]
    found = compared(gaussian(60, 3), kernel=cosine_similarity, methods=methods)
    assert [row["method"] for row in found.rows] == ["nystrom-uniform"]
    assert found.kernel == "sklearn.metrics.pairwise.cosine_similarity"
    assert found.refused[0]["reason"] == "needs a kernel of gzkcore.kernels, not a function"


ROWS = gaussian(50, 3)


@pytest.mark.parametrize(("X", "y", "options", "error", "message"), [
    (ROWS, None, {"methods": ["gegenbaur"]}, ValueError, "did you mean 'gegenbauer'"),
    (ROWS, None, {"methods": ["zzz"]}, ValueError, "use 'all' or some of auto, gegenb"),
    (ROWS, None, {"methods": None}, TypeError, "methods=None must be names; use 'all'"),
    (ROWS, None, {"methods": [["a"]]}, TypeError, "must be names"),
    (ROWS, None, {"n_components": [[1], [1, 2]]}, TypeError, "must be one or more integers"),
    (ROWS, None, {"n_samples": 5}, ValueError, "n_samples=5 is too small; .* >= 50"),
    (ROWS, np.ones(50) * 1j, {}, ValueError, "y must be one number.*Complex data"),
    (ROWS[0], None, {}, ValueError, "X has one dimension"),
    (np.empty((50, 0)), None, {}, ValueError, "X has no columns; pass one or more"),
    (sp.csr_array([[0.0, 0.0]] * 30 + [[1.0, np.inf]]), None, {}, ValueError, "in row 30"),
    (ROWS, None, {"methods": []}, ValueError, "is empty"),
    (ROWS, None, {"n_components": [64, 0]}, ValueError, "n_components=0 is too small"),
    (ROWS, None, {"n_components": []}, ValueError, "is empty"),
    (ROWS, None, {"n_seeds": 0}, ValueError, "n_seeds=0 is too small"),
    (ROWS, None, {"max_seconds": 0.0}, ValueError, "max_seconds=0.0 is not usable"),
    (ROWS, None, {"kernel": "cauchy"}, ValueError, "kernel='cauchy' is unknown"),
    (ROWS, None, {"kernel": "precomputed"}, ValueError, "pass a function"),
    (ROWS, None, {"kernel": "skewed_chi2"}, ValueError, "takes values >= 0"),
    (ROWS, None, {"kernel": lambda X, Y: X @ Y.T}, ValueError, "in a module"),
    (ROWS, None, {"kernel": in_a_script}, ValueError, "a script or .* in a module"),
    (ROWS, None, {"output": "x.csv"}, ValueError, "x.csv must end with .json"),
    (ROWS[:1], None, {}, ValueError, "X has 1 row, but a comparison needs 20"),
    (np.full((50, 3), np.nan), None, {}, ValueError, "Input X contains NaN.*row 0, column 0"),
    (ROWS, np.arange(49), {}, ValueError, "X has 50 rows, but y has 49"),
    (ROWS, [*range(49), np.nan], {}, ValueError, "Input y contains NaN.*row 49.*X.y.notna"),
    (ROWS, ["a"] * 50, {}, ValueError, "y must be one number"),
    (ROWS, np.ones(50), {}, ValueError, "nothing to predict"),
])  # fmt: skip
def test_bad_comparisons(X, y, options, error, message):
    with pytest.raises(error, match=message):
        compared(X, y, **options)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("n_seeds", [1, 2])
def test_errors_that_are_not_finite_are_refused(tmp_path, n_seeds, monkeypatch):
    monkeypatch.setattr(measure, "relative_frobenius_error", lambda *_: math.inf)
    path = tmp_path / "results.json"
    options = {"kernel": Polynomial(3), "methods": ["maclaurin"], "n_components": 16}
    for _ in range(2):
        found = compared(gaussian(60, 3), n_seeds=n_seeds, output=path, **options)
        assert (found.rows, found.best) == ([], None)
        assert found.refused[0]["reason"] == "its error is not finite; scale the columns"
        with pytest.raises(ValueError, match="no features were measured"):
            found.plot(tmp_path / "compare.png")


@pytest.mark.usefixtures("in_process")
def test_no_method_is_named_where_none_predicts_better_than_the_mean():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 3)), rng.standard_normal(100)
    methods = ["fourier-iid", "gegenbauer"]
    found = compared(X, y, methods=methods, n_components=16, n_seeds=3)
    notes = "\n".join(found.notes())
    assert "No method predicts better than the mean" in notes
    assert "The fastest of" not in notes
    assert "mean over 3 seeds, ± half its 95 % interval" in notes
    found = compared(X, X[:, 0], methods=methods, n_components=16, n_seeds=1)
    told = "\n".join(found.notes())
    assert "one seed, which has no interval" in told
    assert "No method predicts better" not in told
    assert "The fastest of 16 components within 1.02 times" in told


def test_errors_that_differ_by_chance_are_told():
    """Where intervals overlap the least mean is no winner; where one ends below another, it may be."""
    row = {"n_components": 16, "r2": 0.5, "r2_low": 0.4, "r2_high": 0.6}
    rows = [
        row | {"method": name, "rmse": rmse, "rmse_low": rmse - 0.1, "rmse_high": rmse + 0.1}
        for name, rmse in (("a", 1.0), ("b", 1.15))
    ]
    assert "differ by no more than chance" in about_chance(rows, 16)
    rows[1] |= {"rmse_low": 1.11}
    assert about_chance(rows, 16) == ""
    one_seed = [each | {"r2_low": None, "rmse_low": None} for each in rows]
    assert about_chance(one_seed, 16).startswith("One seed can't tell")
