"""The fastest code for the same sums without compiling: batches of rows in NumPy and torch.

The sum is that of a random feature as published, out[i, j] = sum_l radial[i, l] P_d^l(<x_i, w_j>).
Rows are processed in batches whose temporaries are allocated once and stay in cache. With several
threads each thread takes its share of the batches, with one thread for BLAS and torch inside. The
speed depends on how often each rule passes over a batch:

    recurrence   P_(l+1) from P_l and P_(l-1), added up as they come: 5 passes a degree in NumPy,
                 2 in torch. Stable, the sum as it is printed.
    clenshaw     The same sum turned into a Chebyshev series, whose recurrence has no other
                 factors than 2t, from the highest degree down: 3 and 2 passes. Stable.
    stacked      Chebyshev polynomials side by side, then one product with the coefficients:
                 2 passes and a read. Stable. NumPy only, one row of coefficients.
    horner       On monomial coefficients: 2 passes. Loses digits on peaked sums.
    blocked      Horner's rule in t^4, the coefficients polynomials of degree 3 by a matrix product
                 (Paterson and Stockmeyer): fewer passes, the same loss of digits. NumPy only, one
                 row of coefficients.

`torch.compile` is a third library: from the rules `clenshaw` and `horner` it generates C++ in which
all passes are one loop. It needs a C++ compiler on the user's machine and a minute, so that its
times are listed separately.

Each thread has a worker with its own temporaries. Harmonics are computed by recursion on the
dimension, in whole blocks.

`PivotedNystroem` is the best data-dependent competitor at equal width: Nystroem's method with
landmarks by randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber).
"""

import importlib.util
import itertools
import math
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import eval_gegenbauer, gammaln
from sklearn.base import BaseEstimator, TransformerMixin

from gzkcore.features.gegenbauer_columns import IN_HALVES, Recurrence, in_strips
from gzkcore.kernels import Gaussian
from gzkcore.kernels.radial import radial_table
from gzkcore.kernels.truncation import angular_energy
from gzkcore.sphere.special import log_alpha

from .common import kernel_module, must_agree, sphere

HAS_TORCH = importlib.util.find_spec("torch") is not None
BATCHES = (16, 32, 64, 128, 256, 512, 1024)
COMPILED_BATCHES = (64, 512)  # each is compiled for itself
TRIED_ROWS = 4096
STABLE = ("recurrence", "clenshaw", "stacked")
MONOMIAL = ("horner", "blocked")


class FeatureSum:
    """One feature matrix to compute: unit rows, unit directions, radial values, and our call.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    W : ndarray of shape (m, d)
    radial : ndarray of shape (1 or n, q + 1)
        Of the Gaussian with gamma = 0.5, as published: sqrt(alpha(l, d)) h_l. On the sphere one row
        for all; else (`by_row`) each row has its own, at norms like those of N(0, I) data.
    """

    def __init__(self, n, dim, degree, dtype, m=1024, *, by_row=False):
        self.dim, self.degree, self.dtype = dim, degree, np.dtype(dtype)
        self.X, self.W = sphere(n, dim, dtype, 1), sphere(m, dim, dtype, 2)
        level = np.arange(degree + 1)
        if by_row:
            norms = np.sqrt(np.random.default_rng(3).chisquare(dim, n))
            h = radial_table(Gaussian(0.5), norms, dim, degree, 1)[:, :, 0]
        else:
            h = np.sqrt([[angular_energy(int(k), 1.0, 1.0, dim) for k in level]])
        self.radial = h * np.exp(0.5 * log_alpha(level, dim))
        self.rule = Recurrence(dim, degree)

    @property
    def shape(self):
        return self.X.shape[0], self.W.shape[0]

    def flops(self, way):
        """Operations of our kernel, two for each fused one."""
        steps = {"clenshaw": 2 * self.degree, "horner": self.degree, "halves": self.degree + 3}
        return 2.0 * self.shape[0] * self.shape[1] * (self.dim + steps[way])

    def ours(self, isa, out, threads, *, way, stream=True):
        """Return our kernel as a call without arguments that fills `out`."""
        kernel = kernel_module("gegenbauer", isa).gegenbauer_features
        if way == "horner":
            coefficients, beta, tau = self.radial @ self.rule.monomials(), self.rule.plain, 1.0
        elif way == "halves":
            coefficients, beta, tau = self.radial @ self.rule.halves(), IN_HALVES, 1.0
        else:
            coefficients, beta, tau = self.radial * self.rule.factor, self.rule.beta, self.rule.tau
        W = in_strips(self.W.astype(np.float64) * tau, self.dtype)
        coefficients = np.ascontiguousarray(coefficients, dtype=self.dtype)
        beta = beta.astype(self.dtype)
        return lambda: kernel(self.X, W, coefficients, beta, out, stream, threads)

    def exact(self, rows):
        """Return some rows in long double, from the recurrence as it is in the books."""
        t = self.X[rows].astype(np.longdouble) @ self.W.T.astype(np.longdouble)
        d, before, now = self.dim, np.ones_like(t), t
        total = np.zeros_like(t)
        radial = np.broadcast_to(self.radial, (self.shape[0], self.degree + 1))[rows]
        for level in range(self.degree + 1):
            total += radial[:, level : level + 1] * before
            after = ((2 * level + d) * t * now - (level + 1) * before) / (level + d - 1)
            before, now = now, after
        return total


def tolerance(dtype):
    """Return how far two ways to the same sum may be apart, relative to its largest value."""
    return {"f": 1e-4, "d": 1e-11}[np.dtype(dtype).char]


def _chebyshev(dim, degree):
    """Row l holds the Chebyshev coefficients of P_d^l, from SciPy's values."""
    nu = dim / 2 - 1
    rows = [
        np.polynomial.chebyshev.chebinterpolate(
            lambda t, level=level: eval_gegenbauer(level, nu, t) / eval_gegenbauer(level, nu, 1.0),
            degree,
        )
        for level in range(degree + 1)
    ]
    return np.array(rows)


def _monomials(dim, degree):
    """Row l holds the monomial coefficients of P_d^l."""
    rows = np.zeros((degree + 1, degree + 1))
    for row, chebyshev in zip(rows, _chebyshev(dim, degree), strict=True):
        found = np.polynomial.chebyshev.cheb2poly(chebyshev)
        row[: found.size] = found
    return rows


def _steps(dim, degree):
    """Return s_l and a_l such that r_l = P_d^l / s_l obeys r_(l+1) = a_l t r_l - r_(l-1)."""
    s, a = [1.0, 1.0], [0.0]
    for level in range(1, degree):
        s.append(s[level - 1] * level / (level + dim - 2))
        a.append((2 * level + dim - 2) / (level + dim - 2) * s[level] / s[level + 1])
    return np.array(s[: degree + 1]), np.array(a)


class Worker:
    """A rule on batches of rows of one problem: worker(rows) fills out[rows].

    `fill(rows, t, total)` has the cosines t of the batch and writes the sums to total; t is scratch
    too.
    """

    one_row_only = False

    def __init__(self, problem, out, batch):
        self.one_row = problem.radial.shape[0] == 1
        if problem.degree < 2 or (self.one_row_only and not self.one_row):
            raise NotImplementedError(type(self).__name__)
        self.problem, self.q, self.dtype = problem, problem.degree, problem.dtype
        self.size = batch * problem.shape[1]
        self.X, self.WT, self.out = problem.X, np.ascontiguousarray(problem.W.T), out
        self.t, self.a, self.b, self.tmp = (
            np.empty((batch, problem.shape[1]), self.dtype) for _ in range(4)
        )
        self.prepare()

    def coefficients(self, table):
        """Coefficients c(k, rows) after a change of basis: scalars, or columns of the batch."""
        c = np.ascontiguousarray((self.problem.radial @ table).T, dtype=self.dtype)
        if self.one_row:
            return lambda k, rows: c[k, 0]
        return lambda k, rows: c[k, rows, None]


class NumpyWorker(Worker):
    def __call__(self, rows):
        t = self.t[: rows.stop - rows.start]
        np.matmul(self.X[rows], self.WT, out=t)
        self.fill(rows, t, self.out[rows])


class NumpyRecurrence(NumpyWorker):
    def prepare(self):
        scale, step = _steps(self.problem.dim, self.q)
        self.step, self.c = step.astype(self.dtype), self.coefficients(np.diag(scale))

    def fill(self, rows, t, total):
        a, b, tmp = self.a[: len(t)], self.b[: len(t)], self.tmp[: len(t)]
        a.fill(1)
        np.copyto(b, t)
        np.multiply(b, self.c(1, rows), out=total)
        np.add(total, self.c(0, rows), out=total)
        for k in range(1, self.q):
            np.multiply(t, b, out=tmp)
            np.multiply(tmp, self.step[k], out=tmp)
            np.subtract(tmp, a, out=a)
            a, b = b, a
            np.multiply(b, self.c(k + 1, rows), out=tmp)
            np.add(total, tmp, out=total)


class NumpyClenshaw(NumpyWorker):
    def prepare(self):
        self.c = self.coefficients(_chebyshev(self.problem.dim, self.q))
        self.half = self.dtype.type(0.5)

    def fill(self, rows, t, total):
        a, b, twice, tmp = self.a[: len(t)], self.b[: len(t)], self.tmp[: len(t)], t
        np.add(t, t, out=twice)
        np.multiply(twice, self.c(self.q, rows), out=b)
        np.add(b, self.c(self.q - 1, rows), out=b)
        a[...] = self.c(self.q, rows)
        for k in range(self.q - 2, 0, -1):
            np.subtract(self.c(k, rows), a, out=a)
            np.multiply(twice, b, out=tmp)
            np.add(a, tmp, out=a)
            a, b = b, a
        np.subtract(self.c(0, rows), a, out=a)
        np.multiply(twice, b, out=tmp)
        np.multiply(tmp, self.half, out=tmp)  # the last step is by t, not 2t
        np.add(a, tmp, out=total)


class NumpyStacked(NumpyWorker):
    one_row_only = True

    def prepare(self):
        self.row = (self.problem.radial @ _chebyshev(self.problem.dim, self.q)).astype(self.dtype)
        self.stack = np.empty((self.q + 1) * self.size, self.dtype)

    def fill(self, rows, t, total):
        twice = np.add(t, t, out=self.tmp[: len(t)])
        T = self.stack[: (self.q + 1) * t.size].reshape(self.q + 1, *t.shape)
        T[0].fill(1)
        T[1] = t
        for k in range(1, self.q):
            np.multiply(twice, T[k], out=T[k + 1])
            np.subtract(T[k + 1], T[k - 1], out=T[k + 1])
        np.matmul(self.row, T.reshape(self.q + 1, -1), out=total.reshape(1, -1))


class NumpyHorner(NumpyWorker):
    def prepare(self):
        self.c = self.coefficients(_monomials(self.problem.dim, self.q))

    def fill(self, rows, t, total):
        np.multiply(t, self.c(self.q, rows), out=total)
        np.add(total, self.c(self.q - 1, rows), out=total)
        for k in range(self.q - 2, -1, -1):
            np.multiply(total, t, out=total)
            np.add(total, self.c(k, rows), out=total)


class NumpyBlocked(NumpyWorker):
    one_row_only = True

    def prepare(self):
        row = (self.problem.radial @ _monomials(self.problem.dim, self.q))[0]
        padded = np.zeros(-(-row.size // 4) * 4, self.dtype)
        padded[: row.size] = row
        self.blocks = padded.reshape(-1, 4)
        self.powers = np.empty(4 * self.size, self.dtype)
        self.parts = np.empty(len(self.blocks) * self.size, self.dtype)

    def fill(self, rows, t, total):
        fourth = self.tmp[: len(t)]
        powers = self.powers[: 4 * t.size].reshape(4, *t.shape)
        parts = self.parts[: len(self.blocks) * t.size].reshape(-1, *t.shape)
        powers[0].fill(1)
        powers[1] = t
        np.multiply(t, t, out=powers[2])
        np.multiply(powers[2], t, out=powers[3])
        np.multiply(powers[2], powers[2], out=fourth)
        np.matmul(self.blocks, powers.reshape(4, -1), out=parts.reshape(len(parts), -1))
        np.copyto(total, parts[-1])
        for part in parts[-2::-1]:
            np.multiply(total, fourth, out=total)
            np.add(total, part, out=total)


class TorchWorker(Worker):
    """torch on the same memory; one thread inside, since the workers are one a thread."""

    def __init__(self, problem, out, batch):
        super().__init__(problem, out, batch)
        import torch

        torch.set_num_threads(1)
        self.X, self.WT, self.out, self.t, self.a, self.b = (
            torch.from_numpy(array) for array in (self.X, self.WT, self.out, self.t, self.a, self.b)
        )
        self.mm, self.mul, self.addcmul = torch.mm, torch.mul, torch.addcmul

    def __call__(self, rows):
        t = self.t[: rows.stop - rows.start]
        self.mm(self.X[rows], self.WT, out=t)
        self.fill(rows, t, self.out[rows])

    def coefficients(self, table):
        import torch

        c = np.ascontiguousarray((self.problem.radial @ table).T, dtype=self.dtype)
        if self.one_row:
            return lambda k, rows: float(c[k, 0])
        c = torch.from_numpy(c)
        return lambda k, rows: c[k, rows, None]

    # Three terms in one pass: r_(l+1) = a_l t r_l - r_(l-1) is r_(l-1) += (+-a_l) t r_l for the
    # sigma_l r_l with sigma_(l+1) = -sigma_(l-1).
    def signs(self):
        return np.array([1.0, 1.0, -1.0, -1.0])[np.arange(self.q + 1) % 4]


class TorchRecurrence(TorchWorker):
    def prepare(self):
        scale, steps = _steps(self.problem.dim, self.q)
        sigma = self.signs()
        self.step = [float(s) for s in steps * sigma[:-1] * sigma[1:]]
        self.c = self.coefficients(np.diag(scale * sigma))

    def fill(self, rows, t, total):
        a, b = self.a[: len(t)], self.b[: len(t)]
        a.fill_(1)
        b.copy_(t)
        self.mul(t, self.c(1, rows), out=total).add_(self.c(0, rows))
        for k in range(1, self.q):
            a.addcmul_(t, b, value=self.step[k])
            a, b = b, a
            if self.one_row:
                total.add_(b, alpha=self.c(k + 1, rows))
            else:
                total.addcmul_(b, self.c(k + 1, rows))


class TorchClenshaw(TorchWorker):
    def prepare(self):
        sigma = self.signs()
        self.turn = (sigma[:-1] * sigma[1:]).tolist()
        self.c = self.coefficients(_chebyshev(self.problem.dim, self.q) * sigma)

    def fill(self, rows, t, total):
        q, a, b = self.q, self.a[: len(t)], self.b[: len(t)]
        a.fill_(1).mul_(self.c(q, rows))
        self.mul(t, a, out=b).mul_(2.0 * self.turn[q - 1]).add_(self.c(q - 1, rows))
        for k in range(q - 2, 0, -1):
            a.addcmul_(t, b, value=2.0 * self.turn[k]).add_(self.c(k, rows))
            a, b = b, a
        self.addcmul(a, t, b, value=self.turn[0], out=total).add_(self.c(0, rows))


class TorchHorner(TorchWorker):
    def prepare(self):
        self.c = self.coefficients(_monomials(self.problem.dim, self.q))

    def fill(self, rows, t, total):
        self.mul(t, self.c(self.q, rows), out=total).add_(self.c(self.q - 1, rows))
        for k in range(self.q - 2, -1, -1):
            total.mul_(t).add_(self.c(k, rows))


class CompiledWorker(TorchWorker):
    """A rule as one function from rows to features, handed to torch.compile."""

    def __call__(self, rows):
        self.fused(self.X[rows], self.WT, self.columns[:, rows], self.out[rows])

    def prepare(self):
        import torch

        c = np.ascontiguousarray((self.problem.radial @ self.table()).T, dtype=self.dtype)
        if self.one_row:
            c = np.repeat(c, self.problem.shape[0], axis=1)
        self.columns = torch.from_numpy(c)
        # One compilation for each shape and batch; beyond the limit torch would not compile at all.
        torch._dynamo.config.recompile_limit = 1000
        self.fused = torch.compile(self.rule, dynamic=False)

    @staticmethod
    def cosines(X, WT):
        return sum(X[:, a, None] * WT[a] for a in range(X.shape[1]))


class CompiledClenshaw(CompiledWorker):
    def table(self):
        return _chebyshev(self.problem.dim, self.q)

    @staticmethod
    def rule(X, WT, c, out):
        t = CompiledWorker.cosines(X, WT)
        a, b = 0.0, c[-1, :, None]
        for k in range(len(c) - 2, 0, -1):
            a, b = b, c[k, :, None] + 2 * t * b - a
        out.copy_(c[0, :, None] + t * b - a)


class CompiledHorner(CompiledWorker):
    def table(self):
        return _monomials(self.problem.dim, self.q)

    @staticmethod
    def rule(X, WT, c, out):
        t = CompiledWorker.cosines(X, WT)
        total = c[-1, :, None]
        for k in range(len(c) - 2, -1, -1):
            total = total * t + c[k, :, None]
        out.copy_(total)


RULES = {
    "numpy": {
        "recurrence": NumpyRecurrence,
        "clenshaw": NumpyClenshaw,
        "stacked": NumpyStacked,
        "horner": NumpyHorner,
        "blocked": NumpyBlocked,
    },
    "torch": {"recurrence": TorchRecurrence, "clenshaw": TorchClenshaw, "horner": TorchHorner},
    "torch.compile": {"clenshaw": CompiledClenshaw, "horner": CompiledHorner},
}
LIBRARIES = ("numpy", "torch") if HAS_TORCH else ("numpy",)


class Batched:
    """A competitor as a call without arguments: it fills `out`, batch by batch."""

    def __init__(self, library, rule, problem, out, batch, threads):
        if rule not in RULES[library]:
            raise NotImplementedError(f"{library} has no rule {rule}")
        self.name = f"{library} {rule}, {batch} rows"
        self.chosen = library, rule, batch
        self._workers = [RULES[library][rule](problem, out, batch) for _ in range(threads)]
        self._batches = [
            slice(start, min(start + batch, problem.shape[0]))
            for start in range(0, problem.shape[0], batch)
        ]
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def __call__(self, some=None):
        """Do all batches, or the first `some`."""
        batches = self._batches[:some]
        if self._pool is None:
            self._run(self._workers[0], batches)
            return
        size = -(-len(batches) // len(self._workers))
        parts = [batches[i * size : (i + 1) * size] for i in range(len(self._workers))]
        list(self._pool.map(self._run, self._workers, parts))

    @staticmethod
    def _run(worker, batches):
        for rows in batches:
            worker(rows)


def best_batched(rules, problem, out, threads, libraries=LIBRARIES, report=None):
    """Try every library, rule and batch size on a part of the rows; return the fastest, checked.

    Hold BLAS to one thread around this and around the call: the threads are ours.
    """
    found = []
    for library, rule, batch in itertools.product(libraries, rules, BATCHES):
        try:
            call = Batched(library, rule, problem, out, batch, threads)
        except NotImplementedError:
            continue
        if library == "torch.compile" and batch not in COMPILED_BATCHES:
            continue
        if report:
            report(f"trying {call.name}")
        some = max(2 * threads, TRIED_ROWS // batch)
        call(some)
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            call(some)
            seconds.append(time.perf_counter() - start)
        found.append((min(seconds) / min(some * batch, problem.shape[0]), call))
    call = min(found, key=lambda pair: pair[0])[1]
    check(call, problem, out)
    return call


def check(call, problem, out):
    """Raise unless a call fills `out` with the sum; return the largest relative error seen."""
    n = problem.shape[0]
    some = np.unique(np.r_[0 : min(n, 33), max(n - 33, 0) : n, n // 2])
    out[some] = np.nan
    call()
    name = getattr(call, "name", "gzkcore")
    return must_agree(name, out[some], problem.exact(some), tolerance(problem.dtype))


class NumpyHarmonics:
    """All harmonics of degree 0..q times one factor a column, by the recursion on dimension.

    In R^e, degree l is A rho^n C_n^lam(x_e / rho) Y for every harmonic Y of R^(e-1) of degree k,
    n = l - k, lam = k + (e - 2) / 2: one product per pair (l, k), for all these Y and all points of
    a batch at once.
    """

    name = "numpy recursion on dimension"

    def __init__(self, X, degree, radial, out, batch=256):
        self.X, self.degree, self.radial, self.out, self.batch = X, degree, radial, out, batch
        dim, dtype = X.shape[1], X.dtype
        self._levels = {}
        for e in range(2, dim + 1):
            counts = np.rint(np.exp(log_alpha(np.arange(degree + 1), e))).astype(int)
            flat = np.empty((counts.sum(), batch), dtype)
            self._levels[e] = np.split(flat, np.cumsum(counts)[:-1])
            self._flat = flat
        self._steps = {
            (e, k): self._normalised(e, k, degree - k)
            for e in range(3, dim + 1)
            for k in range(degree + 1)
        }
        self._factors = np.empty((degree + 1, batch), dtype)
        self._tmp = np.empty(batch, dtype)

    @staticmethod
    def _normalised(e, k, n_max):
        """Factors of G_n = up_n x G_(n-1) - down_n rho^2 G_(n-2), and G_0."""
        lam = k + (e - 2) / 2
        n = np.arange(n_max + 1)
        log_a = 0.5 * (
            gammaln((e - 1) / 2) - gammaln(e / 2) + 0.5 * math.log(math.pi) - math.log(math.pi)
            - (1 - 2 * lam) * math.log(2) - gammaln(n + 2 * lam) + gammaln(n + 1) + np.log(n + lam)
            + 2 * gammaln(lam)
        )  # fmt: skip
        up, down = np.zeros(n.size), np.zeros(n.size)
        up[1:] = 2 * (n[1:] + lam - 1) / n[1:] * np.exp(log_a[1:] - log_a[:-1])
        down[2:] = (n[2:] + 2 * lam - 2) / n[2:] * np.exp(log_a[2:] - log_a[:-2])
        return math.exp(log_a[0]), up.tolist(), down.tolist()

    def __call__(self):
        for start in range(0, self.X.shape[0], self.batch):
            rows = slice(start, start + self.batch)
            self._fill(self.X[rows], self.out[rows])

    def _fill(self, X, out):
        r, q = len(X), self.degree
        x = np.ascontiguousarray(X.T)
        rho2 = np.cumsum(x * x, axis=0, dtype=x.dtype)
        self._plane(x[0], x[1], r)
        tmp = self._tmp[:r]
        for e in range(3, X.shape[1] + 1):
            below, levels = self._levels[e - 1], self._levels[e]
            offset = [0] * (q + 1)
            for k in range(q + 1):
                first, up, down = self._steps[e, k]
                G = self._factors[: q - k + 1, :r]
                G[0] = first
                for n in range(1, q - k + 1):
                    np.multiply(x[e - 1], G[n - 1], out=G[n])
                    G[n] *= up[n]
                    if n > 1:
                        np.multiply(rho2[e - 1], G[n - 2], out=tmp)
                        tmp *= down[n]
                        G[n] -= tmp
                source = below[k][:, :r]
                for n in range(q - k + 1):
                    to, level = offset[k + n], levels[k + n]
                    np.multiply(source, G[n], out=level[to : to + len(source), :r])
                    offset[k + n] = to + len(source)
        columns = out.shape[1]
        np.multiply(self._flat[:columns, :r].T, self.radial, out=out)

    def _plane(self, x, y, r):
        re, im = np.ones_like(x), np.zeros_like(x)
        root = x.dtype.type(math.sqrt(2))
        self._levels[2][0][0, :r] = 1
        for level in self._levels[2][1:]:
            re, im = re * x - im * y, re * y + im * x
            np.multiply(re, root, out=level[0, :r])
            np.multiply(im, root, out=level[1, :r])


class ScipyHarmonics:
    """The same for d = 3 by scipy.special.sph_harm_y, whose harmonics are complex.

    Theirs of degree l and order m >= 0 is ours times sqrt(4 pi) and a sign, cosine as real part and
    sine as imaginary part; degree l has the orders in turn.
    """

    name = "scipy.special.sph_harm_y"

    def __init__(self, X, degree, radial, out, batch=1024):
        from scipy.special import sph_harm_y  # SciPy 1.15

        if X.shape[1] != 3:
            raise NotImplementedError("sph_harm_y is for three dimensions")
        self._function, self.batch = sph_harm_y, batch
        self.X, self.out, self.radial = X, out, radial
        pairs = [(level, order) for level in range(degree + 1) for order in range(level + 1)]
        self._level, self._order = np.array(pairs).T
        first = self._level**2  # column of order 0; orders m > 0 follow in pairs
        self._cosine = first + np.maximum(2 * self._order - 1, 0)
        self._sine = (first + 2 * self._order)[self._order > 0]
        size = np.where(self._order > 0, math.sqrt(2), 1.0) * math.sqrt(4 * math.pi)
        self._size = size * (-1.0) ** self._order

    def __call__(self):
        for start in range(0, self.X.shape[0], self.batch):
            X = self.X[start : start + self.batch].astype(np.float64)
            polar, azimuth = np.arccos(np.clip(X[:, 2], -1, 1)), np.arctan2(X[:, 1], X[:, 0])
            Y = self._function(self._level, self._order, polar[:, None], azimuth[:, None])
            Y *= self._size
            out = self.out[start : start + self.batch]
            out[:, self._cosine] = Y.real
            out[:, self._sine] = Y.imag[:, self._order > 0]
            out *= self.radial


class PivotedNystroem(TransformerMixin, BaseEstimator):
    """Nystroem features, landmarks by randomly pivoted Cholesky.

    A landmark is drawn in proportion to what the landmarks before leave of k(x, x). Blocks of
    proposals with rejection give the same law as one at a time.
    """

    block = 64

    def __init__(self, kernel, n_components=1024, random_state=0):
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X, y=None):
        kernel = self.kernel_ = self.kernel.resolve(X)
        rng = np.random.default_rng([self.random_state, 7])
        left = kernel.diag(X)
        factor = np.zeros((len(X), self.n_components))
        chosen = []
        while len(chosen) < self.n_components and left.max() > 1e-12:
            count = len(chosen)
            most = min(self.block, self.n_components - count)
            proposed = np.unique(rng.choice(len(X), most, p=left / left.sum()))
            columns = kernel(X, X[proposed]) - factor[:, :count] @ factor[proposed, :count].T
            accepted, rest = [], columns[proposed].copy()
            for i in rng.permutation(len(proposed)):
                if rest[i, i] > 1e-12 and rest[i, i] > rng.random() * left[proposed[i]]:
                    accepted.append(i)
                    rest -= np.outer(rest[:, i], rest[i]) / rest[i, i]
            if not accepted:
                continue
            square = columns[np.ix_(proposed[accepted], np.array(accepted))]
            root = np.linalg.cholesky(square + 1e-13 * np.eye(len(accepted)))
            new = solve_triangular(root, columns[:, accepted].T, lower=True).T
            factor[:, count : count + len(accepted)] = new
            left = np.maximum(left - np.square(new).sum(axis=1), 0.0)
            chosen += proposed[accepted].tolist()
        self.landmarks_ = X[chosen]
        values, axes = np.linalg.eigh(kernel(self.landmarks_))
        kept = values > 1e-13 * values[-1]
        self.root_ = axes[:, kept] / np.sqrt(values[kept])
        return self

    def transform(self, X):
        return self.kernel_(X, self.landmarks_) @ self.root_


# ---- Fastfood

OTHER = "scikit-learn-extra"
OTHER_PYTHON = "GZKCORE_SKLEARN_EXTRA"
OTHER_PROGRAM = """
import sys
import numpy as np
from sklearn_extra.kernel_approximation import Fastfood
n, dim, width = map(int, sys.argv[1:])
X = np.random.default_rng(0).standard_normal((n, dim), dtype=np.float32).astype(np.float64)
features = Fastfood(sigma=dim**0.5, n_components=max(1, width // 2), random_state=0).fit(X[:1])
print(flush=True)
for line in sys.stdin:
    features.transform(X)
    print(flush=True)
"""


class OtherFastfood:
    """scikit-learn-extra's Fastfood on the same rows, in an interpreter that can import it."""

    def __init__(self, python, n_rows, dim, width):
        command = [python, "-c", OTHER_PROGRAM, str(n_rows), str(dim), str(width)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._wait()

    def close(self):
        self.process.kill()
        self.process.communicate()

    def __call__(self):
        self.process.stdin.write("\n")
        self._wait()

    def _wait(self):
        if not self.process.stdout.readline():
            raise RuntimeError(
                f"${OTHER_PYTHON} can't run scikit-learn-extra; install it and numpy < 2 there"
            )
