"""Kernel ridge regression on centres: as by the normal equations, for any kind of rows."""

import numpy as np
import pytest
from batched import Cut
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import LinAlgError
from sklearn.metrics import pairwise_distances
from tolerances import RIDGE

from gzkcore import Gaussian, Matern, NystromFeatures, reference
from gzkcore._util.threads import limit_threads
from gzkcore.kernels.general import FunctionKernel
from gzkcore.passes.kernel_passes import Passes
from gzkcore.solve import centers as module
from gzkcore.solve.centers import FactoredGram, root_of, solve_centers
from gzkcore.solve.solve import NotPositiveDefinite

KERNEL = Matern(nu=1.5, length_scale=1.5)


def data(n=700, n_targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.sin(X @ rng.standard_normal((3, n_targets))) + 2
    weight = rng.uniform(0, 2, n)
    weight[::9] = 0
    return X, y if n_targets > 1 else y[:, 0], weight


def solve(X, y, weight=None, centers=40, alphas=(0.1,), kernel=KERNEL, **options):
    options = {"tol": 1e-10, "random_state": 0} | options
    return solve_centers(kernel, Passes.of(X, y, weight), centers, np.array(alphas), **options)


def predicted(found, X, kernel=KERNEL):
    return kernel(X, found.centers) @ found.coef + found.intercept


# ---- as by definition


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "plain"])
def test_as_the_reference(weighted, fit_intercept):
    """reference.centers.center_ridge."""
    X, y, weight = data(n_targets=2)
    weight = weight if weighted else None
    alphas, y = [1e-2, 1.0, 1.0, 100.0], y[:, [0, 0, 1, 1]]
    found = solve(X, y, weight, alphas=alphas, fit_intercept=fit_intercept)
    assert found.converged.all()
    assert (found.residual <= 1e-10).all()
    cross, square = KERNEL(X, found.centers), KERNEL(found.centers)
    for k, alpha in enumerate(alphas):
        coef, intercept = reference.centers.center_ridge(
            cross, square, y[:, k], alpha, fit_intercept, weight
        )
        wanted = cross @ coef + intercept
        assert_allclose(predicted(found, X)[:, k], wanted, rtol=0, atol=RIDGE["solved twice"]())


def test_all_rows_as_centers_are_kernel_ridge_regression():
    X, y, _ = data(200)
    found = solve(X, y, centers=500, alphas=[0.3])
    assert len(found.centers) == 200
    wanted = KERNEL(X) @ np.linalg.solve(KERNEL(X) + 0.3 * np.eye(200), y)
    assert_allclose(predicted(found, X)[:, 0], wanted, rtol=0, atol=RIDGE["solved"]())


@pytest.mark.parametrize("kernel", [KERNEL, Gaussian(0.01)], ids=["rough", "smooth"])
def test_equal_centers_do_no_harm(kernel):
    X, y, _ = data()
    points = X[:30]
    once = solve(X, y, centers=points, kernel=kernel, tol=1e-8)
    twice = solve(X, y, centers=np.concatenate([points, points]), kernel=kernel, tol=1e-8)
    assert 0 < twice.jitter < 1e-10
    assert twice.converged.all()
    found, wanted = predicted(twice, X, kernel), predicted(once, X, kernel)
    assert_allclose(found, wanted, rtol=0, atol=1e-6)


def test_one_center_and_one_row():
    X, y, _ = data(1)
    found = solve(X, y, centers=1, alphas=[1.0])
    assert_allclose(predicted(found, X), [[y[0] / 2]])
    found = solve(X, y, centers=3, alphas=[1.0], fit_intercept=True)
    assert_allclose(predicted(found, X), [[y[0]]])


@pytest.mark.parametrize("alpha", [0.0, 1e-8, 1e4])
def test_any_alpha_converges_or_says_so(alpha):
    X, y, _ = data()
    found = solve(X, y, alphas=[alpha], tol=1e-6)
    coef, _ = reference.centers.center_ridge(
        KERNEL(X, found.centers), KERNEL(found.centers), y, alpha
    )
    wanted = KERNEL(X, found.centers) @ coef
    assert found.converged.all()
    assert_allclose(predicted(found, X)[:, 0], wanted, rtol=0, atol=1e-3)


# ---- the same whatever the rows come in


@pytest.mark.slow
def test_sources_are_as_arrays(tmp_path, monkeypatch):
    X, y, weight = data(1500)
    points = X[::40]
    wanted = predicted(solve(X, y, weight, points, tol=1e-12), X)
    np.save(tmp_path / "X.npy", X)
    held = (X, y, weight), (np.load(tmp_path / "X.npy", mmap_mode="r"), y, weight)
    for given in ((Cut(X, y, weight, rows=400),), (sparse.csr_matrix(X), y, weight), *held):
        with monkeypatch.context() as patch:
            patch.setattr(module, "IN_MEMORY_BYTES", 0)
            patch.setattr("gzkcore.passes.streams.ARRAY_ROWS", 333)
            found = solve_centers(
                KERNEL, Passes.of(*given), points, [0.1], tol=1e-12, random_state=0
            )
        assert_allclose(predicted(found, X), wanted, rtol=0, atol=RIDGE["everywhere"]())
    found = solve_centers(KERNEL, Passes.of(Cut(X, y, weight, rows=400)), 40, [0.1])
    assert found.converged.all()


def test_chunks_of_dask():
    da = pytest.importorskip("dask.array", reason="needs dask: pip install 'gzkcore[dask]'")
    X, y, _ = data(1500)
    points = X[::40]
    wanted = predicted(solve(X, y, None, points, tol=1e-12), X)
    given = da.from_array(X, chunks=(400, 3)), da.from_array(y, chunks=400)
    found = solve_centers(KERNEL, Passes.of(*given), points, [0.1], tol=1e-12, random_state=0)
    assert_allclose(predicted(found, X), wanted, rtol=0, atol=RIDGE["everywhere"]())


def test_the_same_bits_for_any_number_of_threads():
    X, y, weight = data(1500)
    found = []
    for number in (1, 2, 5):
        with limit_threads(number):
            found.append(solve(X, np.column_stack([y, y]), weight, 50, [0.1, 1.0]))
    for other in found[1:]:
        assert_array_equal(other.coef, found[0].coef)
        assert_array_equal(other.n_iter, found[0].n_iter)


@pytest.mark.parametrize("chosen", [60, "rpcholesky"], ids=["uniform", "rpcholesky"])
def test_chosen_and_given_centers(chosen):
    X, y, weight = data(2000)
    if isinstance(chosen, str):
        chosen = NystromFeatures(KERNEL, 60, landmarks=chosen, random_state=0).fit(X).landmarks_
    found = solve(X, y, weight, chosen, [1e-2], tol=1e-3)
    assert len(np.unique(found.centers, axis=0)) == 60
    assert found.converged.all()
    assert found.n_iter.max() < 40
    error = predicted(found, X)[:, 0] - y
    assert np.sqrt(np.mean(np.square(error))) < 0.5 * y.std()


# ---- parts


def test_preconditioner_is_the_system_of_a_sample():
    X, _, _ = data()
    points, rows, alphas = X[:20], X[100:150], np.array([0.1, 2.0])
    root, jitter = root_of(KERNEL(points))
    assert_allclose(root.T @ root, KERNEL(points) + jitter * np.eye(20))
    chosen = module._Chosen(points, rows, None)
    gram = module.sample_gram(KERNEL, chosen, root, np.zeros(20), 700.0)
    R = np.random.default_rng(0).standard_normal((20, 3))
    columns = np.array([1, 0, 1])
    found = FactoredGram(gram, alphas).solve(R, columns)
    for j, alpha in enumerate(alphas[columns]):
        P = reference.centers.sampled_system(KERNEL(rows, points), KERNEL(points), alpha, 700)
        wanted = root @ np.linalg.solve(P, root.T @ R[:, j])
        assert_allclose(found[:, j], wanted, atol=RIDGE["solved"]())


def test_a_sample_of_all_rows_needs_one_step(monkeypatch):
    X, y, weight = data(200)
    monkeypatch.setattr(module, "LEAST_SAMPLE", 100)
    found = solve(X, y, weight, X[:20], [0.1], tol=1e-6, fit_intercept=True)
    assert found.n_iter == 1


def test_kernels_that_are_not_positive_definite():
    with pytest.raises(LinAlgError, match="not positive definite there; use another kernel"):
        root_of(np.array([[1.0, 2.0], [2.0, 1.0]]))


@pytest.mark.parametrize(("centers", "error", "message"), [
    (0, ValueError, "centers=0 is too small"),
    (2.5, TypeError, "centers=2.5 is not an integer"),
    (np.full((3, 3), np.nan), ValueError, "Input centers contains NaN"),
    (np.ones((3, 2)), ValueError, "column"),
])  # fmt: skip
def test_bad_centers(centers, error, message):
    X, y, _ = data()
    with pytest.raises(error, match=message):
        solve(X, y, None, centers)


def test_sparse_centers():
    X, y, _ = data()
    found = solve(X, y, None, sparse.csr_array(X[:20]))
    assert_array_equal(found.coef, solve(X, y, None, X[:20]).coef)


def test_indefinite_kernels_are_told_by_name():
    X, y, _ = data()
    with pytest.raises(NotPositiveDefinite, match=r"kernel=FunctionKernel.*20 centers"):
        solve(X, y, None, 20, kernel=FunctionKernel(lambda X, Y: -pairwise_distances(X, Y) + 1))
    with pytest.raises(ValueError, match=r"kernel=FunctionKernel.*not finite"):
        solve(X, y, None, 20, kernel=FunctionKernel(lambda X, Y: np.nan * (X @ Y.T)))


def test_more_centers_than_the_sample_of_a_source(monkeypatch):
    X, y, weight = data()
    monkeypatch.setattr("gzkcore.rows.survey.SAMPLE_ROWS", 100)
    cut = Cut(X, y, weight, rows=200)
    with pytest.raises(ValueError, match=r"centers=200 is more than the sample.*, 100 rows"):
        solve_centers(KERNEL, Passes.of(cut), 200, [0.1], random_state=0)
    assert len(solve_centers(KERNEL, Passes.of(cut), 100, [0.1], random_state=0).centers) == 100


def test_rows_without_weight():
    X, y, weight = data()
    with pytest.raises(ValueError, match="weight"):
        solve(X, y, 0 * weight)
