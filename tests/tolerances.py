"""How far two ways of computing the same number may differ, and why. There is no other place for it.

A tolerance is c eps(dtype) sqrt(length): rounding errors add up like a random walk over `length`
operations. If errors grow differently, the reason says how, and the test passes a suitable
`length`.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tolerance:
    """c eps(dtype) sqrt(length)."""

    c: float
    reason: str

    def __call__(self, dtype=np.float64, length=1):
        return self.c * float(np.finfo(dtype).eps) * float(length) ** 0.5


EXACT = Tolerance(0, "integers, or the same operations in the same order")

FACTOR = Tolerance(
    32, "Cholesky, its solves and its inverse, for condition numbers of about 5: length is n"
)

# Twins: the reference (exact fractions, or sums in double) against the compiled package.
TWINS = {
    "cholesky.cholesky": FACTOR,
    "cholesky.inverse_of": FACTOR,
    "cholesky.solve_factored": FACTOR,
    "cholesky.solve_triangle": FACTOR,
    "special.alpha": EXACT,
    "special.gegenbauer": Tolerance(8, "the recurrence loses up to l eps at t = +-1 in low dimension: length is (l+1)^2"),
    "special.gegenbauer_coefficients": Tolerance(4, "relative; one product for each step"),
    "special.mu": Tolerance(512, "relative; four log Gammas of size 100, exponentiated"),
    "special.rodrigues": Tolerance(64, "Leibniz' terms alternate: digits are lost as 10^(l/4), so length is 10^(l/2)"),
    "special.sphere_area": Tolerance(16, "relative; log Gamma exponentiated"),
    "series.angular_energy": Tolerance(
        5,
        "the formula exponentiates sums of logarithms: length is their absolute sum^2 times the "
        "value^2 (energy_length in tests/test_twins.py)",
    ),
    "series.gegenbauer_series": Tolerance(
        64, "Eq 8 multiplies a mean of size alpha^(-1/2) by alpha: length is alpha max|kappa|^2"
    ),
    "series.radial_table": Tolerance(512, "logarithms of size 300, exponentiated; values are <= 1"),
    "series.truncate": Tolerance(1024, "relative; a tail of terms exponentiated from logarithms"),
    "series.zonal_sum": Tolerance(8, "as special.gegenbauer, times the sum of |c_l|"),
    "series.growth_constants": EXACT,
    "metrics.clustering_cost": Tolerance(64, "sums of n^2 numbers of size 1, in another order"),
    "metrics.mean_distance_error": Tolerance(64, "distances by products, of rows of size n"),
    "metrics.mean_kernel_error": Tolerance(64, "dot products of rows of size 1"),
    "metrics.projection_cost_error": Tolerance(256, "a root by Newton and by halving; its slope is a cost of at least 1/4"),
    "metrics.relative_frobenius_error": Tolerance(64, "dot products of rows of size 1"),
    "metrics.spectral_error": Tolerance(64, "relative eigenvalues mu to |K|/lam, and 1/mu: length is ((1 + value)^2 n/lam)^2"),
    "metrics.whitened_error": Tolerance(64, "relative eigenvalues to |K|/lam"),
    "theory.clustering_bound": EXACT,
    "theory.condition_bound": EXACT,
    "theory.dot_product_directions": EXACT,
    "theory.gaussian_directions": EXACT,
    "theory.iterations_bound": EXACT,
    "theory.johnson_lindenstrauss": EXACT,
    "theory.leverage_bound": Tolerance(16, "relative; a sum of positive numbers"),
    "theory.matrix_bernstein": Tolerance(1024, "an exponential of at most 1 times its exponent; exponents above 1000 give 0"),
    "theory.projection_directions": EXACT,
    "theory.required_directions": EXACT,
    "theory.ridge_leverage": Tolerance(64, "relative; Cholesky or inverse, to |K|/lam"),
    "theory.ridge_risk": Tolerance(64, "inverses, to |K|/lam"),
    "theory.risk_bound": Tolerance(64, "inverses, to |K|/lam"),
    "theory.statistical_dimension": Tolerance(64, "n eigenvalues, or an inverse"),
    "theory.table_1": Tolerance(2048, "relative; logarithms of size 700, exponentiated"),
    "fastfood.fastfood_frequencies": Tolerance(
        16, "sums of n products, each of a row whose length is given: length is n lengths^2"
    ),
    "fourier.fourier_features": Tolerance(8, "an angle's rounding, of itself and of the sum that makes it: length is its square"),
    "fourier.fourier_variance": Tolerance(4, "three numbers of size 1, fused where the processor does"),
    "fourier.modified_weight": Tolerance(16, "relative; logarithms instead of products"),
    "hadamard.hadamard_transform": Tolerance(8, "up to 6 additions, in another order: length is the square of the sum of |x|"),
    "projection.hadamard_projection": Tolerance(8, "as hadamard.hadamard_transform, up to 16 additions"),
    "projection.fast_jl_projection": Tolerance(16, "two sums of up to 16: length is the square of the product of their sums"),
    "projection.hadamard_projection_variance": Tolerance(
        64, "sums of rows: length is the product of their squared norms, squared"
    ),
    "projection.fast_jl_variance": Tolerance(64, "the same, times the inverse of the density: length is also over its square"),
    "sketch.count_sketch": Tolerance(8, "sums of up to 16 numbers: length is the square of their sum"),
    "sketch.tensor_sketch": Tolerance(16, "transforms and their products: length is the sum of |x| to the power 2p"),
    "sketch.tensor_sketch_variance": Tolerance(64, "powers of sums of rows: length is its square"),
    "polysketch.tensor_srht": Tolerance(16, "two sums of up to 16: length is their product squared"),
    "polysketch.poly_sketch": Tolerance(64, "sums and products of a tree: length is the sum of |x|, or 1, to 2p, times 16^(2q)"),
    "polysketch.poly_sketch_variance": Tolerance(64, "powers of sums: length is its square"),
    "harmonics.n_harmonics": EXACT,
    "harmonics.spherical_harmonics": Tolerance(
        8, "O(1) steps for each degree; |Y| <= alpha^(1/2) |x|^l, so length is (l+1)^2 alpha |x|^2l"
    ),
    "gegenbauer.gegenbauer_features": Tolerance(
        8, "Clenshaw's sums, and a cosine rounded in the type of the data before P_l, whose slope is "
        "l(l+d-2)/(d-1): length is the square of the sum of (1 + slope) |radial|"
    ),
    "gegenbauer.features_in_halves": Tolerance(
        8, "Horner's rule, each of whose steps rounds by eps of terms that may cancel, and the cosine "
        "as above: length is the square of the sum of (terms + slope) |radial|"
    ),
    "gegenbauer.feature_matrix": Tolerance(
        1024, "Horner's rule is allowed to lose 1e4 eps of the size of a feature; piecewise "
        "interpolation of the radial functions 2e-13"
    ),
    "block.block_projection": Tolerance(32, "fused sums of D products with normal weights, up to 5: length is D max(x)^2"),
    "block.block_fourier_features": Tolerance(
        128, "the angle as block.block_projection, with weights rounded to float32, in half turns"
    ),
    "block.energy_variance": Tolerance(16, "differences of squares of the sum x^2 of D terms"),
    "block.projection_variance": Tolerance(16, "differences of squares of the sum of D terms"),
    "block.kernel_moments": Tolerance(256, "truncated moments of orders 0 to 3, from a difference of normal integrals"),
    "block.projection_moments": Tolerance(4, "relative; two squares, fused where it is done"),
    "adaptive.monomial_features": Tolerance(8, "a rounding for each of up to 6 factors: length is their largest product squared"),
    "losses.huber_scale": Tolerance(64, "relative; sums of squares in another order, and a root"),
    "ridge.gram_product": Tolerance(
        64, "sums of rows, of which the mean is taken before or after: length is the square of the "
        "sum of absolute values"
    ),
    "maclaurin.maclaurin_features": Tolerance(
        16, "products of up to 4 sums, each off by eps of its sum of |x|: length is their product's "
        "square"
    ),
    "maclaurin.maclaurin_variance": Tolerance(256, "differences of sums of (a number up to 27)^3 / 0.1: length is 27^2"),
    "product.product_kernel": EXACT,
    "product.product_columns": EXACT,
    "product.product_features": Tolerance(8, "relative; a rounding for each of up to 6 factors"),
    "kernels.gaussian": Tolerance(16, "distances by products lose digits to |x|^2: length is |x|^4"),
    "kernels.zonal": Tolerance(8, "a dot product; |kappa'| <= e for the exponential"),
    "kernels.values": Tolerance(
        256, "dot products of size 10 in a power, and a Bessel function: length is the largest "
        "value squared; arccos near 1 has slope 1e3 for random points"
    ),
    "series.radial_series": Tolerance(
        64, "as series.gegenbauer_series; the reference's plain rule loses digits at a close to b: "
        "length is alpha"
    ),
    "directions": Tolerance(16, "Gram and Schmidt lose the condition of a square of normals, about d: length is d^3"),
}  # fmt: skip

# Closed forms and identities, in double.
IDENTITY = {
    "orthonormality": Tolerance(64, "sums over some hundred quadrature nodes of |Y|^2 <= alpha"),
    "addition": Tolerance(64, "alpha harmonics of size alpha^(1/2), l steps each: length is (alpha (l+1))^2"),
    "exact basis": Tolerance(2**14, "tol='auto' stops at 1e-12 of the kernel, which is 4500 eps; rounding adds to it"),
    "exact kernel": Tolerance(16, "distances by products of centred rows: length is the largest |x|^4"),
    "inverse root": Tolerance(2**16, "eigenvectors over the roots of eigenvalues down to 1e-3 of the largest, squared"),
    "preconditioners": Tolerance(2**18, "relative to the largest entry; rounding times a condition number of at most 1e5"),
    "closed form": Tolerance(64, "coefficients of size 1 from quadrature or logarithms"),
    "unit": Tolerance(4, "a norm and a division"),
    "same kernel": Tolerance(4096, "one kernel in two bases; each may be off by its Horner loss"),
    "rescaled": Tolerance(64, "one product more or less for each entry"),
}  # fmt: skip

# Products of kernel matrices with vectors, in tiles; relative to the largest sum of |k| |v|.
PRODUCTS = {
    "product": Tolerance(16, "rounding of distances or dot products of rows: length is the largest |x|^4"),
    "angle": Tolerance(256, "tables to 1e-7 or 2e-14; kernels of 6 layers; an entry of opposite rows, see below"),
    "opposite": Tolerance(2, "absolute; a root of 4 - |x - y|^2, which is off by eps: length is 1 / eps"),
    "entry": Tolerance(8, "absolute; 2 units of 2^t, and distances of size 10 in a tile"),
}  # fmt: skip

# The likelihood of learned kernels, for noise of 0.3, so that M is conditioned like 40.
LEARNED = {
    "value": Tolerance(256, "logarithms of size 10, summed over rows; solves with M"),
    "gradient": Tolerance(2048, "entries of M^-1 of size 3, and squares, summed over all pairs"),
    "differences": Tolerance(2**24, "values off by eps over a step of 1e-5, and the step squared"),
}

# Regressions on some hundred rows and up to a hundred features, by two ways; all relative.
RIDGE = {
    "summed": Tolerance(2**15, "the same products added in another order, and a solution with them"),
    "predicted": Tolerance(2**19, "coefficients with errors of eps times a condition of 1e4, summed"),
    "solved": Tolerance(2**22, "eps times the condition of G + alpha I, up to 1e6"),
    "solved twice": Tolerance(2**28, "normal equations against a decomposition of Z: its condition squared"),
    "cancelled": Tolerance(2**32, "targets far from 0, or a small difference of variances: six digits go"),
    "everywhere": Tolerance(
        2**25, "1e-8 is what is promised for the same rows read in another way: eps times the "
        "condition"
    ),
    "everywhere, single": Tolerance(64, "1e-5 is promised; float32 tiles cut at other rows"),
    "single": Tolerance(128, "float32 tiles: sums of 1,024 products, times the condition"),
    "single, squared": Tolerance(512, "the same, in a squared error"),
}  # fmt: skip

# Learners on some hundred rows and some ten features, by two ways; relative to the largest value.
LEARNERS = {
    "summed": Tolerance(2**12, "the same sums in another order: some thousand terms"),
    "solved": Tolerance(2**20, "axes turn by errors of eps over the gaps of eigenvalues, down to 1e-3 of the largest"),
    "offset": Tolerance(2**25, "features 1e5 from 0 are rounded to 1e5 eps, and then solved for"),
    "single, split": Tolerance(2**6, "float32 tiles of the same rows, cut elsewhere: below 1e-5"),
    "single": Tolerance(2**10, "float32 features with their own eps, then the gaps"),
}  # fmt: skip

# Linear systems; all relative.
SOLVE = {
    "residual": Tolerance(64, "two sums of n products of |A| and |x|: times the norm of |A| |x|, over that of b"),
    "solved": Tolerance(64, "two ways to the same iterate: length is the condition squared"),
}  # fmt: skip

# Regressions with the whole kernel, relative to the largest value.
WHOLE = {
    "dense": Tolerance(2**20, "two dense solves of matrices of condition up to 1e5"),
    "tight": Tolerance(2**30, "residuals of 1e-10 times a condition of some hundreds: 1e-7"),
    "solved": Tolerance(2**40, "residuals of 1e-6 times a condition of some hundreds: 1e-4"),
    "single": Tolerance(2**13, "rows of float32, with their own eps, then the condition"),
}

# Regressions with other losses, relative to the largest value.
LOSSES = {
    "row": Tolerance(64, "differences of numbers up to the size of y, of f and of their losses"),
    "slope": Tolerance(2**30, "central differences with steps of 1e-5, squared: 1e-8 and noise"),
    "dense": Tolerance(2**25, "Newton's last step leaves the square of 1e-9, dense solves the rest"),
    "iterated": Tolerance(2**30, "systems solved to 1e-10, times a condition of some hundreds"),
    "others": Tolerance(2**36, "1e-5, the tolerance of other packages' solvers"),
}  # fmt: skip

# Cosines and sines of angles that are exact.
TRIG = Tolerance(1.75, "1.2 eps in float, 1.6 in double; 1.5 and 1.7 without fused multiply-add")

# float32 features against float64 ones, relative to a row of norm 1: eps32 enters through x, the
# cosines (times the slope of P_l) and Horner's rule (allowed to lose a factor 32).
SINGLE = Tolerance(256, "Horner's rule may lose 32, the cosine 10; degrees to 30")

# One instruction set against another.
ISA = Tolerance(
    2**14, "other FMAs and vector lengths; Horner may lose 1e4 (float32: 32, and more room)"
)
