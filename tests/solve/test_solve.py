"""Conjugate gradients: known spectra, hard systems against dense solves, failures told, checkpoints."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from batched import StoppedError
from numpy.testing import assert_allclose, assert_array_equal
from points import normal, symmetric
from scipy.sparse.linalg import aslinearoperator
from tolerances import SOLVE

from gzkcore import Checkpoint, Gaussian, reference, save
from gzkcore._util.threads import limit_threads
from gzkcore.kernels.products import KernelOperator
from gzkcore.solve.solve import NotPositiveDefinite, Solution, conjugate_gradients
from gzkcore.theory import iterations_bound

EVERY = 1e-9  # seconds: after each step


class Counted:
    """A matrix as a product that notes how many columns it was asked for; `stop` ends it."""

    def __init__(self, matrix, dtype=np.float64, stop=None):
        self.matrix, self.dtype, self.stop = matrix.astype(dtype), dtype, stop
        self.widths = []

    def __call__(self, V):
        if len(self.widths) == self.stop:
            raise StoppedError
        self.widths.append(V.shape[1])
        return (self.matrix @ V.astype(self.dtype)).astype(np.float64)


class Inverse:
    """The best preconditioner there is, times 1 + `error` in every entry of the result."""

    def __init__(self, K, shifts, noise=1.0, error=0.0):
        eye = np.eye(len(K))
        self.inverses = [np.linalg.inv(K + shift * noise * eye) for shift in shifts]
        self.rng, self.error, self.asked = np.random.default_rng(0), error, []

    def solve(self, R, columns):
        self.asked.append(columns.tolist())
        found = np.empty_like(R)
        for j, column in enumerate(columns):
            found[:, j] = self.inverses[column] @ R[:, j]
        return found * (1 + self.error * self.rng.standard_normal(R.shape))


class Scaled:
    """A preconditioner that multiplies by a number."""

    def __init__(self, factor):
        self.factor = factor

    def solve(self, R, columns):
        return self.factor * R


def kernel_matrix(n=80, dim=2, gamma=0.5, seed=0):
    return Gaussian(gamma)(np.random.default_rng(seed).standard_normal((n, dim)))


def residuals(K, B, shifts, found, noise=1.0):
    """Return |b - (K + alpha N) x| / |b| of each column, and what rounding may change of it."""
    true, slack = np.zeros(len(shifts)), np.zeros(len(shifts))
    for k, alpha in enumerate(shifts):
        A, x, size = K + alpha * noise * np.eye(len(K)), found.coef[:, k], np.linalg.norm(B[:, k])
        size = size if size > 0 else 1.0
        true[k] = np.linalg.norm(B[:, k] - A @ x) / size
        slack[k] = SOLVE["residual"](length=len(K)) * np.linalg.norm(np.abs(A) @ np.abs(x)) / size
    return true, slack


# ---- theory


@pytest.mark.parametrize(
    "distinct", [[2.0], [1.0, 9.0], [0.1, 1.0, 10.0], [1.0, 2.0, 5.0, 7.0, 8.0]]
)
def test_as_many_steps_as_distinct_eigenvalues(distinct):
    A = symmetric(np.repeat(distinct, 7))
    found = conjugate_gradients(A, normal(len(A), 2), [0.0, 0.5], tol=1e-9)
    assert found.n_iter.tolist() == [len(distinct)] * 2


@pytest.mark.parametrize("condition", [1.0, 4.0, 100.0, 1e4])
@pytest.mark.parametrize("spectrum", ["even", "geometric", "chebyshev"])
def test_steps_are_bounded_by_the_condition_number(condition, spectrum):
    n = 150
    values = {
        "even": np.linspace(1, condition, n),
        "geometric": np.geomspace(1, condition, n),
        "chebyshev": (1 + condition + (condition - 1) * np.cos(np.pi * np.arange(n) / (n - 1))) / 2,
    }[spectrum]
    A, b = symmetric(values), normal(n, 1)
    x = np.linalg.solve(A, b)
    for tol in (1e-1, 1e-3, 1e-6):
        steps = iterations_bound(condition, tol)
        found = conjugate_gradients(A, b, [0.0], tol=1e-13, max_iter=steps)
        error = found.coef - x
        assert float((error.T @ A @ error / (x.T @ A @ x))[0, 0]) ** 0.5 <= tol


def test_one_column_is_the_textbook():
    K, b = kernel_matrix(30), normal(30)
    A = K + 5.0 * np.eye(30)
    exact = SOLVE["solved"](length=np.linalg.cond(A) ** 2)
    x, n_iter = reference.solve.conjugate_gradient(A.tolist(), b.tolist(), 1e-6)
    found = conjugate_gradients(K, b[:, None], [5.0], tol=1e-6)
    assert found.n_iter == [n_iter]
    assert_allclose(found.coef[:, 0], x, atol=exact * np.abs(x).max())

    pre = np.diag(1 / (1 + np.arange(30) / 10))
    x, n_iter = reference.solve.preconditioned_conjugate_gradient(
        A.tolist(), b.tolist(), lambda r: (pre @ r).tolist(), 1e-6
    )
    found = conjugate_gradients(
        K, b[:, None], [5.0], preconditioner=Inverse(np.linalg.inv(pre), [0.0]), tol=1e-6
    )
    assert found.n_iter == [n_iter]
    assert_allclose(found.coef[:, 0], x, atol=exact * np.abs(x).max())


def test_the_inverse_as_preconditioner_takes_one_step():
    K, shifts = kernel_matrix(), [1e-3, 1.0, 1e-1]
    best = Inverse(K, shifts)
    found = conjugate_gradients(K, normal(80, 3), shifts, preconditioner=best, tol=1e-6)
    assert found.n_iter.tolist() == [1, 1, 1]
    assert best.asked == [[0, 1, 2]]


def test_a_preconditioner_may_be_another_one_in_each_step():
    K, shifts = kernel_matrix(), [0.1, 1.0, 10.0]
    rough = Inverse(K, shifts, error=0.01)
    found = conjugate_gradients(K, normal(80, 3), shifts, preconditioner=rough, tol=1e-6)
    assert found.converged.all()
    assert found.n_iter.max() <= 12


# ---- many columns


def test_columns_leave_the_block_when_they_are_done():
    K, B, shifts = kernel_matrix(), normal(80, 4), [10.0, 0.01, 1.0, 0.1]
    B[:, 2] = 0.0
    product = Counted(K)
    found = conjugate_gradients(product, B, shifts, tol=1e-6)
    assert found.converged.all()
    assert found.n_iter[2] == 0
    assert not found.coef[:, 2].any()
    assert found.n_iter[0] < found.n_iter[3] < found.n_iter[1]
    assert product.widths[0] == 3
    assert product.widths[: found.n_iter[0]] == [3] * found.n_iter[0]
    assert 1 in product.widths
    assert len(product.widths) <= found.n_iter.max() + 2 + found.n_iter.max() // 32
    for k in (0, 1, 3):
        assert np.isfinite(found.history[:, k]).sum() == found.n_iter[k]
    assert (residuals(K, B, shifts, found)[0] <= 1.001e-6).all()


def test_noise_of_each_row():
    K, noise, B = kernel_matrix(), np.random.default_rng(0).uniform(0.5, 2, 80), normal(80, 2)
    found = conjugate_gradients(K, B, [0.1, 1.0], noise=noise, tol=1e-10)
    for k, alpha in enumerate([0.1, 1.0]):
        x = np.linalg.solve(K + alpha * np.diag(noise), B[:, k])
        assert_allclose(found.coef[:, k], x, rtol=0, atol=1e-7)


def test_a_start_saves_steps():
    K, B, shifts = kernel_matrix(), normal(80, 2), [0.1, 0.1]
    first = conjugate_gradients(K, B, shifts, tol=1e-3)
    again = conjugate_gradients(K, B, shifts, tol=1e-3, start=first.coef)
    assert again.n_iter.tolist() == [0, 0]
    assert_array_equal(again.coef, first.coef)
    further = conjugate_gradients(K, B, shifts, tol=1e-6, start=first.coef)
    whole = conjugate_gradients(K, B, shifts, tol=1e-6)
    assert further.converged.all()
    assert (further.n_iter < whole.n_iter).all()


@pytest.mark.parametrize("power", [-900, -60, 60, 900])
def test_targets_of_any_size(power):
    K, B, shifts = kernel_matrix(), normal(80, 2), [0.1, 1.0]
    found = conjugate_gradients(K, B, shifts)
    other = conjugate_gradients(K, np.ldexp(B, [power, 0]), shifts)
    assert_array_equal(other.coef, np.ldexp(found.coef, [power, 0]))


def test_solutions_beside_each_other():
    K, B, shifts = kernel_matrix(), normal(80, 4), np.array([0.1, 1.0, 1e-9, 10.0])
    parts = [
        conjugate_gradients(K, B[:, part], shifts[part], max_iter=30)
        for part in (slice(0, 1), slice(1, 4))
    ]
    found = Solution.beside(parts)
    assert found.coef.shape == (80, 4)
    assert found.history.shape == (30, 4)
    assert found.converged.tolist() == [True, True, False, True]
    assert "1 column of 4 did not reach tol=0.001: column 2 (alpha=1e-09" in found.trouble


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_for_any_number_of_threads(dtype):
    X = normal(600, 3, seed=0)
    product = KernelOperator(Gaussian(0.5), X, dtype=dtype)
    found = []
    for threads in (1, 2):
        with limit_threads(threads):
            found.append(conjugate_gradients(product, normal(600, 3), [0.1, 1.0, 10.0]).coef)
    assert_array_equal(found[0], found[1])


# ---- precision


def test_single_precision_and_a_residual_in_double():
    K, B, shifts = kernel_matrix(300, gamma=2.0), normal(300, 3), np.array([1.0, 0.1, 0.01])
    single, double = Counted(K, np.float32), Counted(K)
    found = conjugate_gradients((single, double), B, shifts, tol=1e-3)
    assert found.converged.all()
    assert len(double.widths) <= 2 + found.n_iter.max() // 32
    true, slack = residuals(K, B, shifts, found)
    assert (np.abs(true - found.residual) <= slack).all()


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1e-4, 1e-6])
def test_more_digits_than_single_precision_has(alpha):
    K, B = kernel_matrix(60, gamma=4.0), normal(60, 2)
    single, double = Counted(K, np.float32), Counted(K)
    found = conjugate_gradients((single, double), B, [alpha] * 2, tol=1e-9, max_iter=3000)
    assert found.converged.all(), found.trouble
    assert (residuals(K, B, [alpha] * 2, found)[0] < 2e-9).all()
    alone = conjugate_gradients(single, B, [alpha] * 2, tol=1e-9, max_iter=3000)
    assert residuals(K, B, [alpha] * 2, alone)[0].min() > 1e-8  # its own residual is another one


@pytest.mark.parametrize("factor", [1.001, 3.0, -1.0, np.nan, np.inf, 0.0])
def test_a_product_that_is_wrong_leads_to_exact_ones(factor):
    K, B = kernel_matrix(), normal(80, 2)
    wrong, double = Counted(factor * K), Counted(K)
    found = conjugate_gradients((wrong, double), B, [0.1, 1.0], tol=1e-8)
    assert found.converged.all()
    assert (residuals(K, B, [0.1, 1.0], found)[0] < 1.01e-8).all()


def hard_problem(seed):
    """Return a kernel matrix, perhaps with duplicates or outliers, targets, shifts, noise, tol."""
    rng = np.random.default_rng(seed)
    n, dim, k = rng.integers([1, 1, 1], [61, 6, 5])
    X = rng.standard_normal((n, dim))
    if rng.random() < 0.3:
        X[rng.integers(n, size=n // 2)] = X[0]
    if rng.random() < 0.3:
        X[rng.integers(n, size=max(1, n // 10))] *= 10.0 ** rng.integers(1, 6)
    r = np.sqrt(np.square(X[:, None] - X).sum(axis=2)) * 10.0 ** rng.uniform(-1, 1)
    K = np.exp(-(r**2) / 2) if rng.random() < 0.5 else (1 + r) * np.exp(-r)
    shifts = 10.0 ** rng.uniform(-8, 4, k)
    if rng.random() < 0.1:
        shifts[0] = 0.0
    B = rng.standard_normal((n, k)) * 10.0 ** rng.uniform(-9, 9, k)
    if rng.random() < 0.1:
        B[:, 0] = 0.0
    noise = rng.uniform(0.1, 10, n) if rng.random() < 0.5 else None
    return K, B, shifts, noise, 10.0 ** rng.uniform(-8, -1), rng.random() < 0.8


HUNDREDS = [
    pytest.param(each, marks=pytest.mark.slow if each < 1 else pytest.mark.weekly)
    for each in range(10)
]


@pytest.mark.parametrize("hundred", HUNDREDS)
def test_a_thousand_hard_systems_against_their_matrices(hundred):
    """Whatever is said to have converged has; the rest is told, and no worse than nothing."""
    told = []
    for seed in range(100 * hundred, 100 * hundred + 100):
        K, B, shifts, noise, tol, single = hard_problem(seed)
        product = (Counted(K, np.float32), Counted(K)) if single else Counted(K)
        found = conjugate_gradients(product, B, shifts, noise=noise, tol=tol, max_iter=400)
        noise = 1.0 if noise is None else noise
        true, slack = residuals(K, B, shifts, found, noise)
        assert (np.abs(true - found.residual) <= slack).all(), seed
        assert (true[found.converged] <= (tol + slack)[found.converged]).all(), seed
        assert (true <= 1 + slack).all(), seed
        assert bool(found.trouble) == (not found.converged.all())
        for k in np.flatnonzero(~found.converged):
            condition = np.linalg.cond(K + shifts[k] * noise * np.eye(len(K)))
            assert condition > 1e5, (seed, k, found.trouble)
            told.append(found.status[k])
    assert len(told) < 30
    assert {*told} <= {"out of steps", "stagnated", "singular"}


# ---- failures


def test_an_indefinite_kernel_is_told():
    values = np.linspace(-1, 3, 40)
    with pytest.raises(NotPositiveDefinite, match=r"K \+ 0\.1 N is not .*column 1"):
        conjugate_gradients(symmetric(values), normal(40, 2), [2.0, 0.1])
    with pytest.raises(NotPositiveDefinite, match="larger alpha"):
        conjugate_gradients(-np.eye(5), np.ones((5, 1)), [0.5])
    with pytest.raises(np.linalg.LinAlgError):
        conjugate_gradients(-np.eye(5), np.ones((5, 1)), [0.5])
    found = conjugate_gradients(symmetric(values), normal(40, 1), [1.5])
    assert found.converged.all()


def test_a_singular_system_is_told():
    X = np.repeat(normal(20, 2), 3, axis=0)
    K, same, other = Gaussian(0.5)(X), np.repeat(normal(20, 1), 3, axis=0), normal(60, 1)
    found = conjugate_gradients(K, np.hstack([K @ same, other]), [0.0, 0.0], tol=1e-3)
    assert found.converged.tolist() == [True, False]
    assert found.status[1] in {"out of steps", "singular", "stagnated"}
    assert found.residual[1] <= 1
    assert "column 1 (alpha=0, residual" in found.trouble
    nothing = conjugate_gradients(np.zeros((5, 5)), np.ones((5, 1)), [0.0])
    assert nothing.status == ["singular"]
    assert "use a larger alpha" in nothing.trouble
    assert nothing.residual == [1.0]


def test_stagnation_is_told():
    A, b = symmetric(np.geomspace(1, 1e7, 8)), normal(8, 1)
    found = conjugate_gradients(A, b, [0.0], tol=1e-15)
    assert found.status == ["stagnated"]
    assert "rounding errors are as large as its residual" in found.trouble


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_products_that_are_not_finite_are_told(bad):
    K = kernel_matrix(20)
    K[3, 4] = bad
    with pytest.raises(ValueError, match=r"^product gives numbers that are not finite; NaN or"):
        conjugate_gradients(K, normal(20, 2), [0.1, 1.0])
    with pytest.raises(ValueError, match=r"^exact product gives numbers that are not finite"):
        conjugate_gradients((kernel_matrix(20), K.__matmul__), normal(20, 2), [0.1, 1.0])


def test_preconditioners_that_are_no_good_are_told():
    K, B = kernel_matrix(20), normal(20, 2)
    with pytest.raises(NotPositiveDefinite, match=r"the preconditioner .* is not positive"):
        conjugate_gradients(K, B, [0.1, 1.0], preconditioner=Scaled(-1.0))
    with pytest.raises(ValueError, match=r"preconditioner .* numbers that are not finite"):
        conjugate_gradients(K, B, [0.1, 1.0], preconditioner=Scaled(np.nan))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"targets": np.ones(5)}, ValueError, r"targets has shape \(5,\)"),
        ({"targets": np.full((5, 2), np.nan)}, ValueError, "targets contains NaN"),
        ({"targets": [["a"]]}, TypeError, "targets is not numeric"),
        ({"shifts": [0.1]}, ValueError, r"shifts have shape \(1,\), but targets have 2 columns"),
        ({"shifts": [0.1, -1.0]}, ValueError, "must be finite and >= 0"),
        ({"shifts": ["a", "b"]}, TypeError, "not numeric"),
        ({"noise": [1, 1, 1, 1, 0.0]}, ValueError, "noise"),
        ({"noise": [1.0, 1.0]}, ValueError, "noise has shape"),
        ({"start": np.ones((5, 1))}, ValueError, r"start has shape \(5, 1\)"),
        ({"tol": 0.0}, ValueError, "tol=0.0"),
        ({"max_iter": 2.5}, TypeError, "max_iter=2.5"),
        ({"product": np.eye(4)}, ValueError, r"product has shape \(4, 4\), but targets have 5 rows"),
        ({"product": lambda V: V[:, :1]}, ValueError, "as many columns as it gets"),
        ({"product": (np.eye(5), aslinearoperator(np.eye(4)))}, ValueError, "exact product has shape"),
        ({"checkpoint": 3}, TypeError, "checkpoint=3 is not a path"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_match(change, error, message):
    given = {"product": np.eye(5), "targets": normal(5, 2), "shifts": [0.1, 1.0]}
    with pytest.raises(error, match=message):
        conjugate_gradients(**given | change)


def test_no_steps_and_no_columns_left():
    K, B = kernel_matrix(20), normal(20, 1)
    found = conjugate_gradients(K, B, [0.1], max_iter=0)
    assert found.status == ["out of steps"]
    assert found.residual == [1.0]
    found = conjugate_gradients(K, 0 * B, [0.1], max_iter=0)
    assert found.status == ["converged"]
    assert found.residual == [0.0]


# ---- progress


def test_progress_is_told_and_may_stop():
    K, B, seen = kernel_matrix(), normal(80, 2), []
    whole = conjugate_gradients(K, B, [0.01, 1.0], tol=1e-8, progress=seen.append)
    assert [each.n_steps for each in seen] == list(range(1, len(whole.history) + 1))
    assert seen[0].n_left == 2
    assert seen[-1].residual <= 1e-8
    assert np.isfinite([each.seconds_left for each in seen[-10:]]).all()
    assert seen[-1].seconds_left == 0
    assert all(each.seconds >= 0 for each in seen)

    stopped = conjugate_gradients(
        K, B, [0.01, 1.0], tol=1e-8, progress=lambda now: now.n_steps == 5
    )
    assert stopped.status == ["stopped", "stopped"]
    assert stopped.n_iter.tolist() == [5, 5]
    true, slack = residuals(K, B, [0.01, 1.0], stopped)
    assert (np.abs(stopped.residual - true) <= slack).all()
    assert "was stopped" in stopped.trouble


def test_numpys_true_stops_too():
    stopped = conjugate_gradients(
        kernel_matrix(), normal(80, 1), [0.01], tol=1e-8, progress=lambda now: np.True_
    )
    assert stopped.status == ["stopped"]


def test_what_is_left_is_roughly_right():
    A, b, seen = symmetric(50.5 + 49.5 * np.cos(np.linspace(0, np.pi, 400))), normal(400, 1), []
    whole = conjugate_gradients(A, b, [0.0], tol=1e-9, progress=seen.append)
    half = seen[len(seen) // 2]
    steps = half.seconds_left / half.seconds * half.n_steps
    assert 0.5 < steps / (whole.n_iter[0] - half.n_steps) < 2


def test_nothing_of_the_caller_is_written_to():
    given = {
        "targets": normal(80, 2), "shifts": np.array([0.1, 1e-6]), "noise": np.ones(80),
        "start": normal(80, 2, seed=3),
    }  # fmt: skip
    for array in given.values():
        array.flags.writeable = False
    K = kernel_matrix()
    conjugate_gradients(K, **given, max_iter=100)
    identity = conjugate_gradients(lambda V: V, **given)  # a product that returns what it gets
    assert identity.converged.all()
    with pytest.raises(StoppedError):
        conjugate_gradients(Counted(K, stop=5), **given)


# ---- checkpoints


def hard_solve(stop=None, **options):
    """Solve by single precision, exact products and a preconditioner in one solution."""
    K, shifts = kernel_matrix(gamma=3.0), np.array([1e-6, 0.1, 1e-5])
    given = {
        "preconditioner": Scaled(0.5), "tol": 1e-7,
        "targets": normal(80, 3), "start": normal(80, 3, seed=4),
    }  # fmt: skip
    given |= options
    products = Counted(K, np.float32, stop), Counted(K)
    return conjugate_gradients(products, shifts=shifts, **given)


@pytest.mark.slow
def test_a_stopped_solution_goes_on_to_the_same_bits(tmp_path):
    path = tmp_path / "run.gzk"
    whole = hard_solve()
    assert whole.converged.all(), whole.trouble
    assert whole.n_iter.max() > 150
    for stop in (2, 10, 40, 130):
        with pytest.raises(StoppedError):
            hard_solve(stop, checkpoint=Checkpoint(path, EVERY))
        assert path.exists()
    resumed = hard_solve(checkpoint=path)
    assert not path.exists()
    for name in ("coef", "residual", "n_iter", "history"):
        assert_array_equal(getattr(resumed, name), getattr(whole, name))


def test_more_steps_go_on_from_a_checkpoint(tmp_path):
    path = tmp_path / "run.gzk"
    few = hard_solve(checkpoint=path, max_iter=40)
    assert "out of steps" in few.status
    again = hard_solve(checkpoint=path, max_iter=40)
    assert_array_equal(again.coef, few.coef)
    assert path.exists()
    stopped = hard_solve(checkpoint=path, progress=lambda now: now.n_steps == 45)
    assert stopped.n_iter.max() == 45
    more = hard_solve(checkpoint=path)
    assert more.converged.all()
    assert more.n_iter.max() > 45
    assert not path.exists()


def test_checkpoints_of_other_systems_are_refused(tmp_path):
    path = tmp_path / "run.gzk"
    with pytest.raises(StoppedError):
        hard_solve(20, checkpoint=Checkpoint(path, EVERY))
    other = normal(80, 3)
    other[7, 1] += 1e-13
    for change in (
        {"targets": other}, {"tol": 1e-6}, {"start": None}, {"noise": np.ones(80)},
        {"preconditioner": None},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"cannot resume from '.*run.gzk': it is of other"):
            hard_solve(**change, checkpoint=path)
    changed = kernel_matrix(gamma=3.0).astype(np.float32)
    changed[0, 5] = changed[5, 0] = changed[0, 5] + 1e-3
    with pytest.raises(ValueError, match="delete the file to start afresh"):
        conjugate_gradients(
            Counted(changed, np.float32), normal(80, 3), np.array([1e-6, 0.1, 1e-5]), tol=1e-7,
            preconditioner=Scaled(0.5), start=normal(80, 3, seed=4), checkpoint=path,
        )  # fmt: skip
    assert hard_solve(checkpoint=path).converged.all()
    save(Gaussian(0.5), path)
    with pytest.raises(ValueError, match="it holds a Gaussian, no solution under way"):
        hard_solve(checkpoint=path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        hard_solve(checkpoint=tmp_path / "nowhere" / "run.gzk")


def test_checkpoints_are_written_as_often_as_asked(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr("gzkcore._util.model_io.save", lambda *_: written.append(1))
    found = hard_solve(checkpoint=Checkpoint(tmp_path / "run.gzk", EVERY))
    assert len(written) == len(found.history)
    written.clear()
    hard_solve(checkpoint=Checkpoint(tmp_path / "run.gzk", 60))
    assert written == []


SOLVE_AND_WAIT = """
    import os, pathlib, time
    import numpy as np
    from gzkcore import Checkpoint, Gaussian
    from gzkcore.kernels.products import KernelOperator
    from gzkcore.solve.solve import conjugate_gradients

    def wait(now):
        if now.n_steps == 40 and os.environ.get("WAIT"):
            pathlib.Path("now").touch()
            time.sleep(60)

    rng = np.random.default_rng(0)
    X, B = rng.standard_normal((300, 3)), rng.standard_normal((300, 3))
    single, double = (
        KernelOperator(Gaussian(2.0), X, dtype=dtype) for dtype in (np.float32, np.float64)
    )
    found = conjugate_gradients(
        (single, double), B, [1e-2, 0.1, 1.0], tol=1e-8, progress=wait,
        checkpoint=Checkpoint("run.gzk", 1e-9),
    )
    np.savez("result.npz", coef=found.coef, history=found.history)
"""


@pytest.mark.weekly
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_killed_process_goes_on_to_the_same_bits(tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    (tmp_path / "solve.py").write_text(textwrap.dedent(SOLVE_AND_WAIT))
    command = [sys.executable, "solve.py"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    whole = dict(np.load(tmp_path / "result.npz"))
    (tmp_path / "result.npz").unlink()
    assert not (tmp_path / "run.gzk").exists()

    process = subprocess.Popen(command, cwd=tmp_path, env=environment | {"WAIT": "1"})
    end = time.monotonic() + 60
    while not (tmp_path / "now").exists() and time.monotonic() < end and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert (tmp_path / "run.gzk").exists()
    assert not (tmp_path / "result.npz").exists()

    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    resumed = np.load(tmp_path / "result.npz")
    assert len(whole["history"]) > 60
    assert_array_equal(resumed["coef"], whole["coef"])
    assert_array_equal(resumed["history"], whole["history"])
