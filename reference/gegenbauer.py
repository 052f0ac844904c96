"""Random Gegenbauer features, the operator behind them, and the kernel they approximate.

All equation numbers are those of Han, Zandieh, Avron. A kernel is given by its radial functions up
to a degree q and an order s, as `series.radial_table` has them.
"""

from fractions import Fraction
from math import hypot, sqrt

from .kernels import dot
from .series import radial_table
from .special import alpha, gegenbauer, gegenbauer_coefficients

__all__ = [
    "apply_adjoint",
    "apply_operator",
    "feature",
    "feature_matrix",
    "features_in_halves",
    "gegenbauer_features",
    "gzk_kernel",
    "operator_rows",
    "zonal_feature",
]


def cosine(x, y):
    """Return <x, y> / (||x|| ||y||), within [-1, 1], and 0 if a point is 0.

    At x = 0 the angle does not matter: only l = 0 is left of Eq 11 if h_l(0) = 0 for l >= 1, as it
    is for every kernel here (otherwise the kernel would not be continuous at 0).
    """
    norms = hypot(*x) * hypot(*y)
    return max(-1.0, min(1.0, dot(x, y) / norms)) if norms > 0 else 0.0


def gegenbauer_features(X, W, radial):
    """Sum Gegenbauer polynomials of the angles between points and directions.

    out[i, j] = sum_l radial[i, l] P_d^l(<x_i, w_j>).
    This is Eq 9 and one component of Eq 13 (Han, Zandieh, Avron), whatever the weights of the
    degrees: sqrt(alpha_(l,d)), signs and 1/sqrt(m) all go into `radial`.

    Parameters
    ----------
    X : n unit rows of d numbers
        A row of zeros is legal: it is at right angles to all.
    W : m unit rows of d numbers
        Directions.
    radial : n rows, or one for all points, of q+1 numbers

    Returns
    -------
    list of n rows of m floats

    Examples
    --------
    1 + 2 t + 3 (3 t^2 - 1)/2 at t = 0.5:

    >>> gegenbauer_features([[1, 0, 0]], [[0.5, 0.5, 0.5**0.5]], [[1, 2, 3]])
    [[1.625]]
    """
    rows = []
    for i, x in enumerate(X):
        weights = radial[i] if len(radial) > 1 else radial[0]
        rows.append([])
        for w in W:
            t = max(-1.0, min(1.0, dot(x, w)))
            rows[-1].append(
                sum(float(h) * gegenbauer(ell, len(w), t) for ell, h in enumerate(weights))
            )
    return rows


def halves(degree, dim):
    """Return the coefficients b_k of P_d^l(t) = sum_k b_k t^(k mod 2) u^(k div 2), u = 2 t^2 - 1.

    Eq 2 holds powers of t^2 and 1 - t^2 only, times t for an odd l, and these are (1 + u)/2 and
    (1 - u)/2: P_d^l = t^(l mod 2) sum_j c_j ((1 + u)/2)^(l//2 - j) ((1 - u)/2)^j.

    Examples
    --------
    P_3^2(t) = (3 t^2 - 1)/2 = 1/4 + 3/4 u:

    >>> halves(2, 3)
    [Fraction(1, 4), Fraction(0, 1), Fraction(3, 4)]
    """
    top = degree // 2
    of_u = [Fraction(0)] * (top + 1)
    for j, c_j in enumerate(gegenbauer_coefficients(degree, dim)):
        powers = [c_j]  # the coefficients of one term, times one of its factors after the other
        for sign in [1] * (top - j) + [-1] * j:
            shifted = zip([*powers, 0], [0, *powers], strict=True)
            powers = [(same + sign * below) / 2 for same, below in shifted]
        of_u = [a + b for a, b in zip(of_u, powers, strict=True)]
    b = [Fraction(0)] * (degree + 1)
    b[degree % 2 :: 2] = of_u
    return b


def features_in_halves(X, W, radial):
    """Sum Gegenbauer polynomials of the angles by the powers of a polynomial of degree two.

    out[i, j] = sum_k a_(i,k) t^(k mod 2) u^(k div 2) at t = <x_i, w_j> and u = 2 t^2 - 1, where
    a_(i,k) = sum_l radial[i, l] b_(l,k) with b_(l,k) from `halves`. It is the sum of
    `gegenbauer_features` in other powers: even and odd ones apart, with half the degree.

    Parameters
    ----------
    X : n unit rows of d numbers
        A row of zeros is legal: it is at right angles to all.
    W : m unit rows of d numbers
        Directions.
    radial : n rows, or one for all points, of q+1 numbers

    Returns
    -------
    list of n rows of m floats

    Examples
    --------
    1 + 2 t + 3 (1/4 + 3/4 u) at t = 0.5, where u = -0.5:

    >>> features_in_halves([[1, 0, 0]], [[0.5, 0.5, 0.5**0.5]], [[1, 2, 3]])
    [[1.625]]
    """
    rows = []
    for i, x in enumerate(X):
        a = [Fraction(0)] * len(radial[0])
        for ell, h in enumerate(radial[i] if len(radial) > 1 else radial[0]):
            for k, b in enumerate(halves(ell, len(x))):
                a[k] += Fraction(float(h)) * b
        rows.append([])
        for w in W:
            t = Fraction(max(-1.0, min(1.0, dot(x, w))))
            u = 2 * t * t - 1
            terms = [a_k * t ** (k % 2) * u ** (k // 2) for k, a_k in enumerate(a)]
            rows[-1].append(float(sum(terms)))
    return rows


def zonal_feature(x, w, coefficients):
    """Evaluate the feature of a zonal kernel at a point and a direction of the sphere.

    phi_x(w) = sum_l sqrt(c_l alpha_(l,d)) P_d^l(<x, w>), with E_w phi_x(w) phi_y(w) = k(x, y).
    Han, Zandieh, Avron, Eq 9 and 10. Lemma 2 must also ask for c_l >= 0.

    Parameters
    ----------
    x, w : sequence of d numbers
        Of norm 1.
    coefficients : sequence of q+1 numbers
        c_0, ..., c_q of `series.gegenbauer_series`.

    Returns
    -------
    float

    Examples
    --------
    kappa(t) = 1 + 3 t, so c = (1, 3) and phi = 1 + 3 t:

    >>> round(zonal_feature([1, 0, 0], [0.5, 0.5, 0.5**0.5], [1, 3]), 12)
    2.5
    """
    for ell, c in enumerate(coefficients):
        if c < 0:
            raise ValueError(
                f"coefficients[{ell}]={c} is negative: the kernel is not positive definite on the "
                f"sphere in {len(w)} dimensions; set it to 0 if it is rounding"
            )
    t = cosine(x, w)
    return sum(
        sqrt(c * alpha(ell, len(w))) * gegenbauer(ell, len(w), t)
        for ell, c in enumerate(coefficients)
    )


def feature(x, w, kernel, degree, order):
    """Evaluate the feature of a generalized zonal kernel at a point and a direction.

    phi_x(w) = sum_(l<=q) sqrt(alpha_(l,d)) h_l(||x||) P_d^l(<x, w>/||x||), a vector of R^s, with
    E_w <phi_x(w), phi_y(w)> = k(x, y).
    Han, Zandieh, Avron, Eq 13, Lemma 5.

    Parameters
    ----------
    x : sequence of d numbers
    w : sequence of d numbers
        Of norm 1.
    kernel : kernels.Gaussian or kernels.ExponentialDot
    degree, order : int
        q and s.

    Returns
    -------
    list of s floats

    Examples
    --------
    At 0 only h_0 is left, and the Gaussian is k(0, 0) = 1:

    >>> from .kernels import Gaussian
    >>> feature([0, 0, 0], [0, 0, 1], Gaussian(), 5, 3)
    [1.0, 0.0, 0.0]
    """
    h = radial_table(kernel, [hypot(*x)], len(w), degree, order)[0]
    t = cosine(x, w)
    P = [gegenbauer(ell, len(w), t) for ell in range(degree + 1)]
    return [
        sum(sqrt(alpha(ell, len(w))) * h[ell][i] * P[ell] for ell in range(degree + 1))
        for i in range(order)
    ]


def operator_rows(X, w, kernel, degree, order):
    """Stack the features of all points along one direction.

    Phi_w = [phi_(x_1)(w), ..., phi_(x_n)(w)]^T, a matrix of n rows and s columns.
    Han, Zandieh, Avron, Eq 16.

    Parameters
    ----------
    X : n rows of d numbers
    w : sequence of d numbers
        Of norm 1.
    kernel : kernels.Gaussian or kernels.ExponentialDot
    degree, order : int
        q and s.

    Returns
    -------
    list of n rows of s floats

    Examples
    --------
    >>> from .kernels import Gaussian
    >>> operator_rows([[0, 0, 0], [0, 0, 0]], [0, 0, 1], Gaussian(), 5, 1)
    [[1.0], [1.0]]
    """
    return [feature(x, w, kernel, degree, order) for x in X]


def feature_matrix(X, W, kernel, degree, order):
    """Evaluate the random features as published.

    Z = [Phi_(w_1), ..., Phi_(w_m)] / sqrt(m), so that E Z Z^T = K; column j s + i is the radial
    component i along the direction j.
    Han, Zandieh, Avron, Definition 8 and Eq 19 (where Z is the transpose of this one): independent
    directions, every degree with a plus sign, monomial radial functions.

    Parameters
    ----------
    X : n rows of d numbers
    W : m unit rows of d numbers
        Directions, as from `directions.iid_directions`.
    kernel : kernels.Gaussian or kernels.ExponentialDot
    degree, order : int
        q and s.

    Returns
    -------
    list of n rows of m*s floats

    Examples
    --------
    >>> from .kernels import Gaussian
    >>> feature_matrix([[0, 0, 0]], [[0, 0, 1]] * 4, Gaussian(), 5, 1)
    [[0.5, 0.5, 0.5, 0.5]]
    """
    blocks = [operator_rows(X, w, kernel, degree, order) for w in W]
    factor = sqrt(1 / len(W))
    return [[factor * value for block in blocks for value in block[j]] for j in range(len(X))]


def gzk_kernel(x, y, kernel, degree, order):
    """Evaluate a generalized zonal kernel by its series.

    k(x, y) = sum_(l<=q) <h_l(||x||), h_l(||y||)> P_d^l(<x, y> / (||x|| ||y||)).
    Han, Zandieh, Avron, Definition 3 and Eq 11; Eq 30 for exp(<x, y>), Eq 32 for the Gaussian.

    Parameters
    ----------
    x, y : sequence of d numbers
    kernel : kernels.Gaussian or kernels.ExponentialDot
    degree, order : int
        q and s.

    Returns
    -------
    float

    Examples
    --------
    exp(-||x-y||^2/2) at norms 1 and cosine 0.4 is exp(-0.6):

    >>> from .kernels import Gaussian
    >>> round(gzk_kernel([1, 0, 0], [0.4, 0.84**0.5, 0], Gaussian(), 15, 8), 10)
    0.5488116361
    """
    h_x, h_y = radial_table(kernel, [hypot(*x), hypot(*y)], len(x), degree, order)
    t = cosine(x, y)
    return sum(dot(h_x[ell], h_y[ell]) * gegenbauer(ell, len(x), t) for ell in range(degree + 1))


def apply_operator(X, v, kernel, degree, order):
    """Apply the feature operator to a vector.

    Phi v = sum_j v_j phi_(x_j), a function on the sphere with values in R^s.
    Han, Zandieh, Avron, Eq 14.

    Parameters
    ----------
    X : n rows of d numbers
    v : sequence of n numbers
    kernel : kernels.Gaussian or kernels.ExponentialDot
    degree, order : int
        q and s.

    Returns
    -------
    callable
        w -> list of s floats.

    Examples
    --------
    >>> from .kernels import Gaussian
    >>> f = apply_operator([[0, 0, 0], [0, 0, 0]], [2, 3], Gaussian(), 5, 1)
    >>> f([0, 0, 1])
    [5.0]
    """

    def f(w):
        rows = operator_rows(X, w, kernel, degree, order)
        return [dot(v, column) for column in zip(*rows, strict=True)]

    return f


def apply_adjoint(X, f, nodes, weights, kernel, degree, order):
    """Apply the adjoint of the feature operator to a function on the sphere.

    [Phi^* f]_j = <phi_(x_j), f> = E_w <phi_(x_j)(w), f(w)>, so that Phi^* Phi = K.
    Han, Zandieh, Avron, Eq 15 with Eq 6. The expectation is a sum over given nodes: it is exact for
    a quadrature of degree 2q, and random features for random nodes.

    Parameters
    ----------
    X : n rows of d numbers
    f : callable
        w -> sequence of s numbers.
    nodes : unit rows of d numbers
    weights : sequence of numbers
        One per node; they add up to 1.
    kernel : kernels.Gaussian or kernels.ExponentialDot
    degree, order : int
        q and s.

    Returns
    -------
    list of n floats

    Examples
    --------
    >>> from .kernels import Gaussian
    >>> apply_adjoint([[0, 0, 0]], lambda w: [7.0], [[0, 0, 1]], [1.0], Gaussian(), 5, 1)
    [7.0]
    """
    return [
        sum(
            float(weight) * dot(feature(x, w, kernel, degree, order), f(w))
            for w, weight in zip(nodes, weights, strict=True)
        )
        for x in X
    ]
