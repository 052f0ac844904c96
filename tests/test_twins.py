"""Twins: every formula of the reference has its mirror in gzkcore, and they agree.

The table in tests/formulas.py says what stands for each formula. This file checks the table and the
signatures, and compares functions on shared inputs: a formula needs an entry in `VALUES`, or a row
in the table.
"""

import ast
import inspect
import re
from math import ceil, lgamma, log
from pathlib import Path
from types import SimpleNamespace

import formulas
import numpy as np
import pytest
from formulas import Formula, mirrors_of, table
from hypothesis import given
from hypothesis import strategies as st
from tolerances import TWINS

from gzkcore import Gaussian, reference

TESTS = Path(__file__).parent
BENCHMARKS = TESTS.parent / "asv_bench" / "benchmarks"

DIMS = st.sampled_from([1, 2, 3, 5, 9, 16])
ROWS = st.sampled_from([0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33])
TYPES = st.sampled_from([np.float32, np.float64])

# ---- signatures


def pairs():
    """Yield (idea, formulas, mirrors) for every idea of the reference."""
    for idea in reference.__all__:
        yield idea, getattr(reference, idea), mirrors_of(idea)


def check_table(pairs, rows):
    """Yield what is wrong between formulas and mirrors, one line each."""
    known = set()
    for idea, ours, mirrors in pairs:
        for name in ours.__all__:
            known.add(where := f"{idea}.{name}")
            if where not in rows:
                yield f"{where}: not in the table"
                continue
            mirror = rows[where].mirror
            if mirror != name and name in mirrors.__all__:
                yield f"{where}: listed under another name, but it has a mirror of its own"
            elif mirror is None:
                yield from [] if rows[where].reason else [f"{where}: no mirror, and no reason"]
            elif not hasattr(mirrors, mirror):
                yield f"{where}: no mirror {mirror}"
            elif mirror == name and inspect.isfunction(getattr(ours, name)):
                yield from drift(where, getattr(ours, name), getattr(mirrors, name))
    yield from (f"{where}: listed, but no such formula" for where in rows.keys() - known)


def drift(where, formula, mirror):
    """Yield how the mirror's leading arguments differ from the formula's: name, kind, default."""
    ours = list(inspect.signature(formula).parameters.values())
    theirs = list(inspect.signature(mirror).parameters.values())
    for mine, other in zip(ours, theirs[: len(ours)] + [None] * len(ours), strict=False):
        if other is None or (mine.name, mine.kind, mine.default) != (
            other.name, other.kind, other.default
        ):  # fmt: skip
            yield f"{where}: the formula has {mine}, the mirror {other}"
    for extra in theirs[len(ours) :]:
        if extra.default is extra.empty:
            yield f"{where}: the mirror asks for {extra} too"


def defined(folder, pattern):
    """Return {file: (names of the functions and classes in it, its text)}."""
    found = {}
    for path in sorted(folder.glob(pattern)):
        text = path.read_text(encoding="utf-8")
        names = {node.name for node in ast.parse(text).body if hasattr(node, "name")}
        found.setdefault(path.stem, []).append((names, text))
    return found


def check_tests(rows, files):
    """Yield formulas whose test is not there, or stands in a file that never names them."""
    for where, row in rows.items():
        name = re.compile(rf"\b{where.partition('.')[2]}\b")
        if row.test == "test_values":
            if where not in VALUES:
                yield f"{where}: no values to compare in test_twins.VALUES"
        elif not any(
            row.test in names and name.search(text)
            for same_name in files.values()
            for names, text in same_name
        ):
            yield f"{where}: no file has {row.test} and names the formula"


def check_benchmarks(rows, files):
    """Yield formulas that no benchmark times, without a reason."""
    for where, row in rows.items():
        if row.benchmark is None:
            yield from [] if row.reason else [f"{where}: no benchmark, and no reason"]
            continue
        module, _, name = row.benchmark.rpartition(".")
        there = files.get(module or where.partition(".")[0], [])
        if not any(name in names for names, _ in there):
            yield f"{where}: no benchmark {row.benchmark}"
        elif module and not any(f'"{where}"' in text for _, text in there):
            yield f"{where}: {row.benchmark} has no such case"


def test_every_formula_has_its_mirror():
    assert list(check_table(pairs(), table())) == []


def test_every_mirror_is_compared():
    rows = table()
    assert list(check_tests(rows, defined(TESTS, "**/test_*.py"))) == []
    assert VALUES.keys() <= {where for where, row in rows.items() if row.test == "test_values"}


@pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the tests run away from a checkout")
def test_every_formula_is_timed():
    assert list(check_benchmarks(table(), defined(BENCHMARKS, "*.py"))) == []


def test_nothing_is_listed_that_is_not_there():
    rows = table()
    untimed = [where for names in formulas.NOT_TIMED.values() for where in names]
    assert len(untimed) == len({*untimed})
    listed = {*formulas.OTHER_NAMES, *formulas.WITHOUT_MIRROR, *untimed, *formulas.BENCHMARKS}
    assert listed <= {*rows, *reference.__all__}
    assert {*formulas.MODULES} == {*reference.__all__}


def module(**functions):
    return SimpleNamespace(__all__=list(functions), **functions)


RIGHT = module(f=lambda degree, t, *, tol=1.0: None)
ROW = {"idea.f": Formula("f", "test_values", "Time")}


@pytest.mark.parametrize(("mirrors", "rows", "fault"), [
    (module(f=lambda degree, t, *, tol=1.0, out=None: None), ROW, None),
    (module(g=RIGHT.f), ROW, "no mirror f"),
    (module(g=RIGHT.f), {"idea.f": Formula("g", "test_f", None)}, None),
    (module(g=RIGHT.f), {"idea.f": Formula(None, "test_f", None, "an identity")}, None),
    (module(g=RIGHT.f), {"idea.f": Formula(None, "test_f", None)}, "no mirror, and no reason"),
    (module(f=lambda t, degree, *, tol=1.0: None), ROW, "the formula has degree, the mirror t"),
    (module(f=lambda degree, x, *, tol=1.0: None), ROW, "the formula has t, the mirror x"),
    (module(f=lambda degree, t, *, tol=2.0: None), ROW, "the mirror tol=2.0"),
    (module(f=lambda degree, t, tol=1.0: None), ROW, "the mirror tol=1.0"),
    (module(f=lambda degree, t: None), ROW, "the mirror None"),
    (module(f=lambda degree, t, *, tol=1.0, more: None), ROW, "asks for more"),
    (RIGHT, {}, "not in the table"),
    (RIGHT, {"idea.f": Formula("g", "test_f", None)}, "a mirror of its own"),
    (RIGHT, ROW | {"idea.gone": ROW["idea.f"]}, "no such formula"),
])  # fmt: skip
def test_the_checker_can_fail(mirrors, rows, fault):
    found = list(check_table([("idea", RIGHT, mirrors)], rows))
    assert bool(found) == (fault is not None), found
    assert fault is None or any(fault in line for line in found), found


@pytest.mark.parametrize(("check", "row", "files", "fault"), [
    (check_tests, Formula("C", "test_f", None), {"test_x": [({"test_f"}, "f(1)")]}, None),
    (check_tests, Formula("C", "test_f", None), {"test_x": [({"test_f"}, "ff(1)")]}, "no file"),
    (check_tests, Formula("C", "test_f", None), {"test_x": [({"test_g"}, "f(1)")]}, "no file"),
    (check_tests, Formula("f", "test_values", None), {}, "no values"),
    (check_benchmarks, Formula("f", "", "Time"), {"idea": [({"Time"}, "")]}, None),
    (check_benchmarks, Formula("f", "", "Time"), {"other": [({"Time"}, "")]}, "no benchmark"),
    (check_benchmarks, Formula("f", "", None), {}, "no benchmark, and no reason"),
    (check_benchmarks, Formula("f", "", "m.T"), {"m": [({"T"}, '"idea.f": 1')]}, None),
    (check_benchmarks, Formula("f", "", "m.T"), {"m": [({"T"}, "")]}, "no such case"),
])  # fmt: skip
def test_the_other_checkers_can_fail(check, row, files, fault):
    found = list(check({"idea.f": row}, files))
    assert bool(found) == (fault is not None), found
    assert fault is None or fault in found[0], found


# ---- values


def unit(rows):
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)


@st.composite
def points(draw, rows=ROWS, dims=DIMS, on_sphere=False):
    """Return a cloud of points of either type, sometimes with a row of zeros."""
    n, dim = draw(rows), draw(dims)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.standard_normal((n, dim))
    if n > 1 and draw(st.booleans()):
        X[-1] = 0
    return (unit(X) if on_sphere else X).astype(draw(TYPES))


@st.composite
def cosines(draw):
    """Return numbers in [-1, 1] of either type, the ends among them."""
    values = draw(st.lists(st.floats(-1, 1, width=32), max_size=17))
    return np.array([*values, -1, 1], dtype=draw(TYPES))


@st.composite
def angles_and_weights(draw):
    """Return unit rows, unit directions and radial values, one row of these or one for each."""
    X = draw(points(on_sphere=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    W = unit(rng.standard_normal((draw(ROWS), X.shape[1])))
    q = draw(st.integers(0, 9))
    radial = rng.standard_normal((len(X) if draw(st.booleans()) else 1, q + 1))
    return X, W.astype(X.dtype).astype(np.float64), radial


@st.composite
def approximations(draw, *more):
    """Return a kernel matrix, features that are somewhat off, and what else is asked for."""
    n = draw(st.integers(2, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    A = np.hstack([rng.standard_normal((n, n)) / n**0.5, np.eye(n) / 2])
    return A @ A.T, A + 0.1 * rng.standard_normal(A.shape), *map(draw, more)


@st.composite
def leverages(draw):
    """Return a feature operator that is the same along every direction, and its kernel matrix."""
    K, Z, lam = draw(approximations(ridges))
    return lambda w: Z[:, :3] * w[0], K, lam, [1.0]


@st.composite
def signals(draw, *more):
    """Return a kernel matrix, a ridge, values at its points, and what else is asked for."""
    K, Z, lam = draw(approximations(ridges))
    return K, lam, Z[:, 0], *map(draw, more)


def slope(degree, dim):
    """Return the derivative of P_d^l at 1 (in one dimension that of t^l)."""
    return degree * (degree + dim - 2) / max(dim - 1, 1) if dim > 1 else degree


def size_in_halves(degree, dim):
    """Return the slope of P_d^l and the sum of the sizes of its terms in t and 2 t^2 - 1."""
    return slope(degree, dim) + float(sum(map(abs, reference.gegenbauer.halves(degree, dim))))


@st.composite
def parts_and_columns(draw):
    """Return matrices of equally many rows, and tuples of columns of them."""
    n, dtype = draw(ROWS), draw(TYPES)
    widths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    parts = [rng.standard_normal((n, width)).astype(dtype) for width in widths]
    count = draw(ROWS)
    return parts, [tuple(int(rng.integers(width)) for width in widths) for _ in range(count)]


@st.composite
def monomials(draw):
    """Return points, which columns of them are multiplied, and a weight for each product."""
    X = draw(points())
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    shape = draw(st.sampled_from([0, 1, 9, 40])), draw(st.integers(1, 5))
    return X, rng.integers(-1, X.shape[1], shape), rng.uniform(0.1, 2, shape[0])


@st.composite
def blocks(draw):
    """Return what makes a block of Fastfood's frequencies."""
    n = draw(st.sampled_from([1, 2, 4, 16, 32]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    signs, order = rng.choice([-1.0, 1.0], n).tolist(), rng.permutation(n).tolist()
    return signs, order, rng.standard_normal(n).tolist(), rng.uniform(0, 5, n).tolist()


@st.composite
def degrees_and_signs(draw):
    """Points, random signs for columns of given degrees, and weights."""
    X = draw(points(dims=DIMS))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    degrees = rng.integers(0, 5, draw(st.sampled_from([0, 1, 15, 17, 40])))
    signs = rng.choice([-1.0, 1.0], (degrees.sum(), X.shape[1]))
    return X, signs, degrees, rng.uniform(0, 2, degrees.size)


@st.composite
def frequencies_and_width(draw):
    """Return points, frequencies, how many columns these are for, and a phase."""
    X = draw(points())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_components = draw(st.sampled_from([1, 2, 3, 8, 33, 70]))
    W = rng.standard_normal((-(-n_components // 2), X.shape[1]))
    return X, W, n_components, draw(st.floats(0, 6))


@st.composite
def sketches(draw, log_widths):
    """Return points, places and signs of a few sketches of one width, and the width."""
    X, width = draw(points()), 2 ** draw(log_widths)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (draw(st.integers(1, 4)), X.shape[1])
    return X, rng.integers(0, width, shape), rng.choice([-1, 1], shape), width


@st.composite
def pairs_of_points(draw):
    """Return two points."""
    X = draw(points(rows=st.just(2)))
    return X[0].tolist(), X[1].tolist()


@st.composite
def kept_rows(draw):
    """Return points, signs, and some of the rows of the Hadamard matrices after these."""
    X, passes = draw(points()), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    signs = rng.choice([-1, 1], (passes, X.shape[1]))
    n = 1 << (X.shape[1] - 1).bit_length()
    return X, signs, rng.integers(0, passes * n, draw(st.integers(1, 40)))


@st.composite
def sparse_normals(draw):
    """Return points, signs, and a sparse matrix for what the Hadamard matrix makes of them."""
    X = draw(points())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.integers(1, 20)), 1 << (X.shape[1] - 1).bit_length()
    P = rng.standard_normal(shape) * (rng.random(shape) < draw(shares))
    return X, rng.choice([-1, 1], X.shape[1]), P


@st.composite
def positive_matrices(draw):
    """Return a matrix with eigenvalues from 1 to about 5."""
    n = draw(st.integers(1, 20))
    A = np.random.default_rng(draw(st.integers(0, 2**32))).standard_normal((n, n))
    return (A @ A.T / n + np.eye(n),)


@st.composite
def triangular_systems(draw):
    """Return the factor of such a matrix, and right-hand sides."""
    L = np.linalg.cholesky(draw(positive_matrices())[0])
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return L, rng.standard_normal((len(L), draw(st.integers(1, 5))))


@st.composite
def trees(draw):
    """Return points, a degree and the draws of a tree, and its width."""
    X, degree, width = draw(points(rows=st.sampled_from([1, 3]))), draw(st.integers(1, 5)), 16
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    q = 1 << (degree - 1).bit_length()
    leaves, nodes = (q, draw(st.integers(1, 2)), X.shape[1]), (q, 2, width)
    return (
        X,
        degree,
        rng.integers(0, width, leaves),
        rng.choice([-1, 1], leaves),
        rng.choice([-1, 1], nodes),
        rng.integers(0, width, nodes),
        draw(st.integers(1, width)) if q > 1 else width,
    )


@st.composite
def pairs_of_vectors(draw):
    """Return two vectors, and the draws of a sketch of their outer product."""
    m, width = 2 ** draw(st.integers(0, 4)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    u, v = rng.standard_normal((2, m)).tolist()
    return u, v, rng.choice([-1, 1], (2, m)), rng.integers(0, m, (2, width)), width


degrees = st.integers(0, 30)
dims_of_rodrigues = st.sampled_from([2, 3, 5, 9, 16])


@st.composite
def assigned(draw, waves=False):
    """Return rows, where their coordinates go and by what numbers, a width, and a phase."""
    X = draw(points(dims=st.sampled_from([1, 2, 7, 16, 33])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    passes, n_blocks = draw(st.integers(1, 3)), draw(st.integers(1, 40))
    buckets = rng.integers(0, n_blocks, (passes, X.shape[1]))
    weights = rng.standard_normal(buckets.shape)
    width = 2 * n_blocks - draw(st.integers(0, 1)) if waves else n_blocks
    return X, buckets, weights, width, draw(st.floats(0, 6))


deltas = st.lists(st.floats(-2, 2), min_size=1, max_size=20)
arrangements = st.sampled_from(["stratified", "permutation"])
radii = st.floats(0.1, 6.0)
ridges = st.floats(0.05, 5.0)
shares = st.floats(0.01, 0.95)
counts = st.integers(1, 10**6)
sizes = st.floats(1.0, 1e4)
reference_gaussian, fast_gaussian = reference.kernels.Gaussian(), Gaussian(0.5)


def bump(r):
    """Return a function of distances that formula and mirror can evaluate."""
    return 1 / (1 + r * r)


def alpha(degree, dim):
    return reference.special.alpha(degree, dim)


@st.composite
def features_about_a_mean(draw):
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    n, width, count = draw(ROWS), draw(DIMS), draw(st.integers(1, 3))
    V, weights = rng.standard_normal((width, count)), rng.uniform(0, 2, n)
    return rng.standard_normal((n, width)), V, weights, rng.standard_normal(width)


# name -> strategy of arguments, and the length for its tolerance, from these arguments and the value.
# Where an argument is a kernel, each gets its own.
KERNEL = object()


def energy_length(degree, a, b, dim, value):
    """Return (s A)^2 for a sum A of exp(E_i), where s is the size of the numbers that E_i adds.

    E_i has six parts p_j. Each is off by at most 2 eps |p_j|, but for log_power, n log x with n = l + 2i,
    which is off by n eps more, as x is rounded. The five partial sums of E_i are at most s_i = sum |p_j| + n, and
    off by eps / 2 of it each. So exp(E_i) is off by at most 2 s_i + 5 s_i / 2 < 5 s_i eps of itself. All terms are
    positive: their sum is off by at most 5 s eps of itself, s the mean of s_i weighted by them.
    From i = ab on each is at most a quarter of the one before, so that s_i at i = ab + 1 stands for s.
    """
    if a * b == 0 or value == 0:
        return value**2
    i = ceil(a * b) + 1
    n = degree + 2 * i
    parts = [
        (a * a + b * b) / 2, log(alpha(degree, dim)), lgamma(dim / 2), n * abs(log(a * b / 2)) + n,
        lgamma(i + 1), lgamma(i + degree + dim / 2),
    ]  # fmt: skip
    return max(sum(map(abs, parts)) * value, 1e-150) ** 2  # a smaller square underflows


VALUES = {
    "special.alpha": (st.tuples(st.integers(0, 60), st.integers(1, 40)), lambda *_: 1),
    "special.gegenbauer": (st.tuples(degrees, DIMS, cosines()), lambda degree, *_: (degree + 1) ** 2),
    "special.gegenbauer_coefficients": (
        st.tuples(degrees, DIMS),
        lambda degree, dim, c: (degree + 1) * np.square(np.array(c, dtype=float)),
    ),
    "special.mu": (st.tuples(st.integers(0, 20), st.integers(0, 40), DIMS), lambda degree, power, dim, value: float(value) ** 2),
    "special.rodrigues": (st.tuples(st.integers(0, 16), dims_of_rodrigues, cosines()), lambda degree, *_: 10 ** (degree / 2)),
    "special.sphere_area": (st.tuples(st.integers(1, 60)), lambda dim, area: area**2),
    "cholesky.cholesky": (positive_matrices(), lambda A, L: len(A)),
    "cholesky.inverse_of": (triangular_systems().map(lambda pair: pair[:1]), lambda L, X: len(L)),
    "cholesky.solve_factored": (triangular_systems(), lambda L, B, X: len(L)),
    "cholesky.solve_triangle": (
        st.tuples(triangular_systems(), st.booleans()).map(lambda each: (*each[0], each[1])),
        lambda L, B, transposed, X: len(L),
    ),
    "series.gegenbauer_series": (
        st.tuples(st.just(np.exp), DIMS, st.integers(0, 6)),
        lambda function, dim, degree, c: [9 * alpha(ell, dim) for ell in range(degree + 1)],
    ),
    "series.zonal_sum": (
        st.tuples(st.lists(st.floats(-2, 2), min_size=1, max_size=20), DIMS, cosines()),
        lambda c, dim, t, _: (len(c) * sum(map(abs, c))) ** 2,
    ),
    "series.radial_series": (
        st.tuples(
            st.just(bump),
            st.floats(0, 3),
            st.sampled_from([0.0, 0.5, 2.0]),
            DIMS,
            st.integers(0, 6),
        ),
        lambda function, a, b, dim, degree, c: [alpha(ell, dim) for ell in range(degree + 1)],
    ),
    "series.radial_table": (
        st.tuples(
            st.just(KERNEL), st.lists(st.floats(0, 9), max_size=5), DIMS, degrees, st.integers(1, 9)
        ),
        lambda *_: 1,
    ),
    "series.truncate": (
        st.tuples(st.just(KERNEL), DIMS, radii, st.sampled_from([1e-2, 1e-5, 1e-9])),
        lambda kernel, dim, radius, tol, value: [0, 0, value[2] ** 2],
    ),
    "series.angular_energy": (st.tuples(degrees, st.floats(0, 8), st.floats(0, 8), DIMS), energy_length),
    "series.growth_constants": (st.tuples(st.just(KERNEL), st.integers(16, 60)), lambda *_: 1),
    "metrics.spectral_error": (approximations(ridges), lambda K, Z, lam, value: ((1 + value) ** 2 * len(K) / lam) ** 2),
    "metrics.whitened_error": (approximations(ridges), lambda K, Z, lam, value: ((1 + value) * len(K) / lam) ** 2),
    "metrics.relative_frobenius_error": (approximations(), lambda K, *_: len(K) ** 2),
    "metrics.mean_kernel_error": (approximations(), lambda K, *_: len(K) ** 2),
    "metrics.mean_distance_error": (approximations(), lambda K, *_: len(K) ** 3),
    "metrics.projection_cost_error": (
        approximations(st.sampled_from([0, 1])),
        lambda K, Z, rank, value: (len(K) * (1 + value)) ** 2,
    ),
    "metrics.clustering_cost": (
        approximations().map(lambda pair: (pair[0], np.arange(len(pair[0])) % 3)),
        lambda K, *_: len(K) ** 3,
    ),
    "theory.statistical_dimension": (signals().map(lambda args: args[:2]), lambda K, *_: len(K) ** 2),
    "theory.ridge_leverage": (leverages(), lambda rows, K, lam, w, value: (len(K) * value / lam) ** 2),
    "theory.leverage_bound": (
        st.tuples(
            st.integers(0, 9).map(lambda seed: np.random.default_rng(seed).random((5, 4, 3))),
            DIMS,
            ridges,
        ),
        lambda radial, dim, lam, value: value**2,
    ),
    "theory.matrix_bernstein": (
        signals(shares, counts, sizes).map(
            lambda args: (args[3], args[4], args[5], args[0], np.eye(len(args[0])))
        ),
        lambda *_: 1,
    ),
    "theory.required_directions": (st.tuples(shares, shares, sizes, sizes), lambda *_: 1),
    "theory.projection_directions": (st.tuples(shares, shares, sizes, sizes, st.integers(1, 40)), lambda *_: 1),
    "theory.dot_product_directions": (
        st.tuples(counts, st.integers(3, 9), radii, ridges, shares, shares, sizes, sizes, st.floats(1, 3)),
        lambda *_: 1,
    ),
    "theory.gaussian_directions": (
        st.tuples(st.integers(6, 10**6), st.integers(3, 9), radii, ridges, shares, shares, sizes),
        lambda *_: 1,
    ),
    "theory.ridge_risk": (signals(shares), lambda K, lam, *_: (len(K) / lam) ** 2),
    "theory.risk_bound": (signals(shares, shares, st.integers(0, 9)), lambda K, lam, *_: (len(K) / lam) ** 2),
    "theory.clustering_bound": (st.tuples(sizes, shares, shares), lambda *_: 1),
    "theory.condition_bound": (st.tuples(shares, ridges, ridges), lambda *_: 1),
    "theory.iterations_bound": (st.tuples(st.floats(1, 1e12), shares), lambda *_: 1),
    "theory.table_1": (
        st.tuples(st.integers(6, 10**6), ridges, DIMS, radii, sizes, counts),
        lambda *args: np.square(list(args[-1].values())),
    ),
    "theory.johnson_lindenstrauss": (st.tuples(st.integers(2, 10**6), shares, st.floats(0, 3)), lambda *_: 1),
    "fastfood.fastfood_frequencies": (
        blocks(),
        lambda signs, permutation, normals, lengths, _: len(signs) * np.square(lengths)[:, None],
    ),
    "fourier.fourier_features": (
        frequencies_and_width(),
        lambda X, W, n_components, phase, _: (
            (
                1
                + np.abs(phase)
                + np.abs(X).astype(float).sum(axis=1, keepdims=True) * np.abs(W).max()
            )
            ** 2
        ),
    ),
    "fourier.fourier_variance": (st.tuples(shares, shares, st.integers(1, 99)), lambda *_: 1),
    "fourier.modified_weight": (
        st.tuples(st.lists(st.floats(-3, 3), min_size=1, max_size=3), st.floats(1, 5), shares),
        lambda w, radius, outside, value: value**2,
    ),
    "adaptive.monomial_features": (
        monomials(),
        lambda X, columns, weights, _: np.square(
            weights
            * np.maximum(np.abs(X).max(axis=1, initial=1.0), 1.0)[:, None] ** columns.shape[1]
        ),
    ),
    "losses.huber_scale": (
        st.tuples(
            st.lists(st.floats(-10, 10, width=16), min_size=1, max_size=20),
            st.floats(1, 5),
            st.floats(0.1, 10),
        ),
        lambda *args: args[-1] ** 2,
    ),
    "ridge.gram_product": (
        features_about_a_mean(),
        lambda Z, V, w, mean, _: np.square(
            ((np.abs(Z) + np.abs(mean)).T * w) @ (np.abs(Z) + np.abs(mean)) @ np.abs(V)
        ),
    ),
    "maclaurin.maclaurin_features": (
        degrees_and_signs(),
        lambda X, signs, degrees, weights, _: np.square(
            weights * np.abs(X).sum(axis=1, dtype=float, keepdims=True) ** degrees
        ),
    ),
    "maclaurin.maclaurin_variance": (
        st.tuples(
            *2 * [st.lists(st.floats(-1, 1), min_size=3, max_size=3)],
            *2 * [st.lists(st.floats(0.1, 1), min_size=4, max_size=4)],
            st.integers(1, 9),
        ),
        lambda *_: 27**2,
    ),
    "hadamard.hadamard_transform": (
        points(dims=st.sampled_from([1, 2, 4, 8, 16, 32, 64])).map(lambda X: (X,)),
        lambda X, _: np.square(np.abs(X).sum(axis=1, dtype=float, keepdims=True)),
    ),
    "projection.hadamard_projection": (kept_rows(), lambda X, *_: np.square(np.abs(X).sum(axis=1, dtype=float, keepdims=True))),
    "projection.fast_jl_projection": (
        sparse_normals(),
        lambda X, signs, P, _: np.square(
            np.abs(X).sum(axis=1, dtype=float, keepdims=True) * np.abs(P).sum(axis=1)
        ),
    ),
    "projection.hadamard_projection_variance": (
        st.tuples(pairs_of_points(), st.integers(1, 99)).map(lambda args: (*args[0], args[1])),
        lambda x, y, *_: (np.square(x).sum() * np.square(y).sum()) ** 2,
    ),
    "projection.fast_jl_variance": (
        st.tuples(pairs_of_points(), st.integers(1, 99), shares).map(
            lambda args: (*args[0], *args[1:])
        ),
        lambda x, y, k, q, _: (np.square(x).sum() * np.square(y).sum() / q) ** 2,
    ),
    "sketch.count_sketch": (
        sketches(st.integers(0, 6)),
        lambda X, *_: np.square(np.abs(X).sum(axis=1, dtype=float, keepdims=True)),
    ),
    "sketch.tensor_sketch": (
        sketches(st.integers(0, 6)),
        lambda X, hashes, *_: (
            np.abs(X).sum(axis=1, dtype=float, keepdims=True) ** (2 * len(hashes))
        ),
    ),
    "sketch.tensor_sketch_variance": (
        st.tuples(pairs_of_points(), st.integers(1, 5), st.integers(1, 99)).map(
            lambda args: (*args[0], *args[1:])
        ),
        lambda x, y, p, m, value: (3 * np.square(x).sum() * np.square(y).sum()) ** (2 * p),
    ),
    "polysketch.tensor_srht": (pairs_of_vectors(), lambda u, v, *_: (np.abs(u).sum() * np.abs(v).sum()) ** 2),
    "polysketch.poly_sketch": (
        trees(),
        lambda X, degree, hashes, *_: (
            np.maximum(np.abs(X).sum(axis=1, dtype=float, keepdims=True), 1) ** (2 * degree)
            * 16.0 ** (2 * len(hashes))
        ),
    ),
    "polysketch.poly_sketch_variance": (
        st.tuples(
            pairs_of_points(), st.integers(1, 5), st.integers(1, 99), st.sampled_from([16, 64])
        ).map(lambda args: (*args[0], *args[1:])),
        lambda x, y, p, *_: (9 * (1 + np.square(x).sum() * np.square(y).sum())) ** (2 * p),
    ),
    "harmonics.n_harmonics": (st.tuples(st.integers(0, 40), DIMS), lambda *_: 1),
    "harmonics.spherical_harmonics": (
        st.one_of(
            st.tuples(points(dims=st.sampled_from([1, 2, 3])), st.integers(0, 9)),
            st.tuples(points(rows=st.sampled_from([0, 1, 3]), dims=DIMS), st.integers(0, 3)),
        ),
        lambda X, degree, _: [
            [
                (ell + 1) ** 2 * alpha(ell, X.shape[1]) * float(x @ x) ** ell
                for ell in range(degree + 1)
                for _ in range(alpha(ell, X.shape[1]))
            ]
            for x in X
        ],
    ),
    "block.block_projection": (
        assigned().map(lambda args: args[:4]),
        lambda X, buckets, weights, n_blocks, _: len(X[0]) * np.square(X).max() if len(X) else 0,
    ),
    "block.block_fourier_features": (
        assigned(waves=True),
        lambda X, buckets, weights, *_: len(X[0]) * (1 + np.square(X).max()) if len(X) else 0,
    ),
    "block.energy_variance": (st.tuples(deltas, counts, arrangements), lambda delta, *_: (1 + np.square(delta).sum()) ** 4),
    "block.projection_variance": (
        st.tuples(deltas, counts, st.sampled_from(["rademacher", "gaussian"]), arrangements),
        lambda delta, *_: (1 + np.square(delta).sum()) ** 4,
    ),
    "block.kernel_moments": (
        st.tuples(
            st.sampled_from(["gaussian", "exponential", "spherical"]),
            st.floats(0.05, 1),
            st.floats(0.01, 0.2),
            counts,
        ),
        lambda *_: 1,
    ),
    "block.projection_moments": (
        st.tuples(st.floats(0, 9), st.floats(0, 9), counts),
        lambda mean, std, count, value: np.square(value),
    ),
    "product.product_kernel": (st.tuples(st.lists(st.floats(-2, 2), max_size=5)), lambda values, value: value**2),
    "product.product_columns": (
        st.tuples(
            st.lists(st.lists(st.floats(1e-3, 10), min_size=1, max_size=5), min_size=1, max_size=4),
            st.integers(1, 60),
        ),
        lambda *_: 1,
    ),
    "product.product_features": (parts_and_columns(), lambda parts, columns, value: np.square(np.array(value, dtype=float))),
    "gegenbauer.gegenbauer_features": (
        angles_and_weights(),
        lambda X, W, radial, _: np.square(
            np.abs(radial) @ [1 + slope(ell, X.shape[1]) for ell in range(radial.shape[1])]
        )[:, None],
    ),
    "gegenbauer.features_in_halves": (
        angles_and_weights(),
        lambda X, W, radial, _: np.square(
            np.abs(radial) @ [size_in_halves(ell, X.shape[1]) for ell in range(radial.shape[1])]
        )[:, None],
    ),
}  # fmt: skip


def both(where):
    idea, name = where.split(".")
    return getattr(getattr(reference, idea), name), getattr(mirrors_of(idea), name)


def type_of(args):
    """Return float32 if one of the arguments, or of the arrays in one, has it, else float64."""
    arrays = [a for arg in args for a in (arg if isinstance(arg, list) else [arg])]
    return next((a.dtype for a in arrays if getattr(a, "dtype", None) == np.float32), np.float64)


def call(function, args, kernel):
    return function(*(kernel if arg is KERNEL else arg for arg in args))


def compare(where, args, givens=None):
    """Assert that formula and mirror agree; return the error as a share of what is allowed.

    `givens` are what the mirror gets instead, one after the other: the same numbers in other arrays.
    """
    formula, mirror = both(where)
    expected = call(formula, args, reference_gaussian)
    dtype = type_of(args)
    lengths = np.asarray(VALUES[where][1](*args, expected), dtype=np.float64)
    allowed = TWINS[where](dtype) * np.sqrt(lengths) + np.finfo(dtype).tiny
    shares = [0.0]
    for each in [args] if givens is None else givens:
        value = call(mirror, each, fast_gaussian)
        if isinstance(value, dict):
            value = [value[name] for name in expected]
        if np.size(expected) == np.size(value) == 0:  # a list of no rows has no width
            expected = np.reshape(expected, np.shape(value))
        if TWINS[where].c == 0:
            assert np.array_equal(value, expected)
            continue
        wanted = list(expected.values()) if isinstance(expected, dict) else expected
        value, wanted = np.asarray(value, float), np.asarray(wanted, float)
        assert value.shape == wanted.shape
        off = np.abs(value - wanted)
        if off.size:
            assert np.all(off <= allowed), f"off by {off.max()}, allowed {np.max(allowed)}"
            shares.append(float((off / allowed).max()))
    return max(shares)


@pytest.mark.parametrize("where", VALUES)
@given(data=st.data())
def test_values(where, data):
    compare(where, data.draw(VALUES[where][0]))


# Cases that failed once.
FAILED = [("series.angular_energy", (14, 6.98e-9, 0.02264, 16))]


@pytest.mark.parametrize(("where", "args"), FAILED)
def test_values_that_were_off(where, args):
    compare(where, args)


@pytest.mark.parametrize("dim", [1, 2, 3, 9])
def test_series_from_derivatives(dim):
    formula, mirror = both("series.gegenbauer_series")
    derivatives = [2.0**j for j in range(30)]
    expected = formula(None, dim, 8, derivatives=derivatives)
    tolerance = TWINS["special.mu"](length=8)
    assert mirror(None, dim, 8, derivatives=derivatives) == pytest.approx(
        [float(c) for c in expected], rel=tolerance
    )


# ---- exceptions

BAD = [
    ("special.alpha", (-1, 3), ValueError),
    ("special.alpha", (2.5, 3), TypeError),
    ("special.gegenbauer", (2.5, 3, 0.1), TypeError),
    ("special.gegenbauer_coefficients", (2.5, 3), TypeError),
    ("special.rodrigues", (2, 1, 0.5), ValueError),
    ("special.sphere_area", (0,), ValueError),
    ("series.gegenbauer_series", (None, 3, 2), TypeError),
    ("series.truncate", (KERNEL, 3, 1.0, 0.0), ValueError),
    ("series.truncate", (KERNEL, 3, 1.0, -1e-3), ValueError),
    ("series.growth_constants", (KERNEL, 5), ValueError),
    ("hadamard.hadamard_transform", ([[1.0, 2.0, 3.0]],), ValueError),
    ("fourier.fourier_features", ([[1.0]], [[1.0, 2.0]], 2), ValueError),
    ("sketch.count_sketch", ([[1.0]], [[0], [1]], [[1]], 2), ValueError),
    ("projection.fast_jl_projection", ([[1.0, 2.0]], [1, 1], [[1.0]]), ValueError),
    ("harmonics.spherical_harmonics", ([[1.0, 0.0]], 1.5), TypeError),
    ("gegenbauer.gegenbauer_features", ([[1.0, 0.0]], [[1.0]], [[1.0]]), ValueError),
    ("gegenbauer.features_in_halves", ([[1.0, 0.0]], [[1.0]], [[1.0]]), ValueError),
    ("product.product_features", ([[[1.0]], [[1.0], [2.0]]], [(0, 0)]), ValueError),
]


@pytest.mark.parametrize(("where", "args", "error"), BAD)
def test_exceptions(where, args, error):
    formula, mirror = both(where)
    with pytest.raises(error):
        call(formula, args, reference_gaussian)
    with pytest.raises(error):
        call(mirror, args, fast_gaussian)


@pytest.mark.parametrize(("where", "args", "message"), [
    ("fourier.fourier_variance", (0.5, 0.5, 0), "n_components=0"),
    ("ridge.gram_product", (np.zeros(3), np.zeros((1, 1))), r"Z has shape \(3,\)"),
    ("polysketch.tensor_srht", ([1.0], [1.0], [[1], [1]], [[100], [0]], 1), "from 0 to 100"),
    ("polysketch.tensor_srht", ([1.0], [1.0], [[1], [1]], [0, 0], 1), "two rows of 1 places"),
    ("polysketch.poly_sketch_variance", ([1.0], [1.0], 1, 0, 16), "n_components=0"),
    ("polysketch.poly_sketch_variance", ([1.0], [1.0], 1, 1, 0), "width=0"),
])  # fmt: skip
def test_mirrors_refuse_what_formulas_stumble_over(where, args, message):
    with pytest.raises(ValueError, match=message):
        both(where)[1](*args)
