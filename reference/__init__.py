"""The formulas of the papers and of this package, in plain Python: complete, short and slow.

Every function is the definition, written so that it can be read beside the paper. The compiled
functions of gzkcore are tested against it. It uses the standard library (NumPy only for matrix
inverses and the like); points are sequences of numbers, matrices are lists of rows. Use it to
learn, to check a number by hand, or to test your own code; for everything else it is too slow.

The paper is Han, Zandieh, Avron, "Random Gegenbauer Features for Scalable Kernel Methods" (2022).
Its symbols have these names everywhere in gzkcore:

================  ==================  ==========================================================
in the paper      here                what it is
================  ==================  ==========================================================
d                 dim                 dimension of the points; the sphere is S^(d-1)
l, q              degree              degree of a polynomial; the last degree kept
s, i              order               number of radial functions per degree, i = 0..s-1
alpha_(l,d)       special.alpha       number of orthonormal harmonics of degree l
P_d^l             special.gegenbauer  Gegenbauer polynomial with P(1) = 1
mu_l^j            special.mu          coefficient of P_d^l in t^j
abs(S^(d-1))      sphere_area(dim)    surface area of the sphere
kappa             function, kernel    k(x, y) = kappa(<x, y>)
kappa^(j)(0)      derivatives         Taylor derivatives of kappa at 0
c_l               coefficients        Gegenbauer series of kappa
h_l(t)            radial              radial functions at the norm t; [h_l(t)]_i in R^s
w, m              W, n_directions     directions: unit vectors drawn from the sphere
phi_x(w)          feature             feature of the point x along the direction w
Phi, Phi^*        apply_operator,     v -> sum_j v_j phi_(x_j), and its adjoint
                  apply_adjoint
Z                 Z                   features, one row per point (the paper writes Z^T)
lambda            alpha (of ridge),   what is added to the diagonal of Z^T Z, or of K
                  lam
================  ==================  ==========================================================

Examples
--------
>>> from gzkcore import reference
>>> reference.special.alpha(3, 9)
156
"""

from . import (
    adaptive,
    block,
    cca,
    centers,
    cholesky,
    directions,
    fast_sums,
    fastfood,
    fourier,
    gegenbauer,
    gram,
    hadamard,
    harmonics,
    kernel_ridge,
    kernels,
    kmeans,
    learned,
    losses,
    maclaurin,
    metrics,
    near_rows,
    nystrom,
    pca,
    polysketch,
    preconditioners,
    product,
    products,
    projection,
    ridge,
    series,
    sketch,
    solve,
    special,
    table,
    theory,
)

__all__ = [
    "adaptive",
    "block",
    "cca",
    "centers",
    "cholesky",
    "directions",
    "fast_sums",
    "fastfood",
    "fourier",
    "gegenbauer",
    "gram",
    "hadamard",
    "harmonics",
    "kernel_ridge",
    "kernels",
    "kmeans",
    "learned",
    "losses",
    "maclaurin",
    "metrics",
    "near_rows",
    "nystrom",
    "pca",
    "polysketch",
    "preconditioners",
    "product",
    "products",
    "projection",
    "ridge",
    "series",
    "sketch",
    "solve",
    "special",
    "table",
    "theory",
]
