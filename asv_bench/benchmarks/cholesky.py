"""Cholesky factors, systems and inverses by tiles, beside LAPACK on one thread."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri, dtrtri

from gzkcore._util.linalg import cholesky, inverse_factors, inverse_of, solve_factored
from gzkcore._util.threads import limit_blas

from .common import data_generator, interleave, ratio

N_SIDES = 500


class _BesideLapack:
    params = ([500, 1000, 3000],)
    param_names = ("rows",)

    def setup(self, rows):
        A = data_generator(0).standard_normal((rows, rows))
        self.matrix = A @ A.T / rows + np.eye(rows)
        self.B = data_generator(1).standard_normal((rows, N_SIDES))
        self.L = cholesky(self.matrix.copy())
        with limit_blas(1):
            self.factor = cho_factor(self.matrix)
        self.calls = {"gzkcore": self.ours, "lapack": self.theirs}

    def time_gzkcore(self, rows):
        self.ours()

    def time_lapack(self, rows):
        with limit_blas(1):
            self.theirs()

    def track_times_faster(self, rows):
        with limit_blas(1):
            return ratio(interleave(self.calls), "lapack", "gzkcore")[0]

    track_times_faster.unit = "times"


class Factor(_BesideLapack):
    def ours(self):
        return cholesky(self.matrix.copy())

    def theirs(self):
        return cho_factor(self.matrix, check_finite=False)


class Solve(_BesideLapack):
    def ours(self):
        return solve_factored(self.L, self.B)

    def theirs(self):
        return cho_solve(self.factor, self.B, check_finite=False)


class Inverse(_BesideLapack):
    def ours(self):
        return inverse_of(self.L)

    def theirs(self):
        return dpotri(*self.factor)


class InverseFactors(_BesideLapack):
    """The inverse factors of 300 small matrices, which LAPACK takes one after the other."""

    params = ([60],)

    def setup(self, rows):
        super().setup(rows)
        self.blocks = np.tile(self.matrix, (300, 1, 1))

    def ours(self):
        return inverse_factors(self.blocks.copy())

    def theirs(self):
        return [dtrtri(factor.T) for factor in np.linalg.cholesky(self.blocks)]
