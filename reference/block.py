"""Block projections and block Fourier features: v = diag(C U), one random number per coordinate.

Numbers of equations are those of "A Simple and Efficient Method for Random Fourier Features",
unless stated otherwise. Several statements have errors in print (B1 to B25 in the errata);
`printed=True` gives the printed number, the default the correct one.

================  ==================  ==========================================================
in the paper      here                what it is
================  ==================  ==========================================================
u, D              u, dim              a point and its number of coordinates
k                 n_blocks            number of blocks, one number of v for each
U                 U                   u cut into blocks, one per column
C                 C                   random numbers, one row for each block
S                 S                   the k x D matrix with v = S u; column j has one number,
                                      weights[j], in row buckets[j]
Delta             delta               the difference of two points
Delta_i           -                   its block i; its energy is ||Delta_i||^2
N_multi           repetitions         how often everything is drawn anew
================  ==================  ==========================================================
"""

from math import cos, erf, exp, inf, pi, sin, sqrt

__all__ = [
    "block_energies",
    "block_fourier_features",
    "block_matrix",
    "block_projection",
    "block_sizes",
    "blocks",
    "chi_square",
    "correction_factor",
    "diagonal_of_product",
    "diagonal_sum",
    "energy_variance",
    "fast_fourier_features",
    "fast_random_projection",
    "kernel_moments",
    "laurent_massart",
    "lemma_4_6",
    "mean_normalise",
    "projection_moments",
    "projection_variance",
    "repeated_fourier_features",
]


# ---- Section 3: the matrix and the algorithms


def block_matrix(C):
    """Build S of Eq 5 from the rows r_1, ..., r_k of C: row i holds r_i at block i, and zeros.

    Parameters
    ----------
    C : k rows of D/k numbers

    Returns
    -------
    list of k rows of D numbers

    Examples
    --------
    >>> block_matrix([[1, 2], [3, 4]])
    [[1, 2, 0, 0], [0, 0, 3, 4]]
    """
    before = [sum(len(row) for row in C[:i]) for i in range(len(C))]
    dim = sum(len(row) for row in C)
    return [
        [0] * first + list(row) + [0] * (dim - first - len(row))
        for first, row in zip(before, C, strict=True)
    ]


def blocks(u, n_blocks):
    """Reshape u into U, (D/k) x k: column i is block i (Section 3.1).

    Examples
    --------
    >>> blocks([1, 2, 3, 4, 5, 6], 3)
    [[1, 3, 5], [2, 4, 6]]
    """
    size = len(u) // n_blocks
    return [[u[i * size + row] for i in range(n_blocks)] for row in range(size)]


def diagonal_of_product(A, B):
    """Return diag(AB) by the whole product, of which all but the diagonal is thrown away.

    Section 5.1. k^2 D/k operations.

    Examples
    --------
    >>> diagonal_of_product([[1, 2], [3, 4]], [[5, 6], [7, 8]])
    [19, 50]
    """
    columns = list(zip(*B, strict=True))
    product = [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in A
    ]
    return [product[i][i] for i in range(len(A))]


def diagonal_sum(A, B):
    """Return diag(AB) as sum(A .* B', 2): only what is kept is computed.

    Section 5.1. D operations.

    Examples
    --------
    >>> diagonal_sum([[1, 2], [3, 4]], [[5, 6], [7, 8]])
    [19, 50]
    """
    return [
        sum(a * b for a, b in zip(row, column, strict=True))
        for row, column in zip(A, zip(*B, strict=True), strict=True)
    ]


def fast_random_projection(u, C):
    """Project a point: v = diag(CU), in R^k. Algorithm 1, which prints v in R^D (B16).

    No factor is needed: E ||v||^2 = ||u||^2 (Lemma 4.5).

    Examples
    --------
    >>> fast_random_projection([1, 2, 3, 4], [[1, -1], [-1, -1]])
    [-1, -7]
    """
    return diagonal_sum(C, blocks(u, len(C)))


def fast_fourier_features(u, C, sigma=1.0):
    """Map a point to [cos; sin] of sqrt(k) diag(sigma C U), over sqrt(k): in R^(2k). Algorithm 2.

    Norm 1. With standard normal C for the kernel exp(-sigma^2 ||x-y||^2 / 2), with the bias of
    `block_energies`. The product of two rows is the mean of cos(sqrt(k) sigma c_i.Delta_i) over the
    blocks; Eq 7 is printed without sqrt(k) (B25).

    Examples
    --------
    >>> [round(value, 6) for value in fast_fourier_features([0.5, 0.5], [[1.0], [-1.0]])]
    [0.537574, 0.537574, 0.459363, -0.459363]
    """
    k = len(C)
    angles = [sqrt(k) * sigma * v for v in fast_random_projection(u, C)]
    return [f(angle) / sqrt(k) for f in (cos, sin) for angle in angles]


def repeated_fourier_features(u, orders, Cs, sigma=1.0):
    """Run Algorithm 2 N_multi times and concatenate, over sqrt(N_multi): in R^(2 k N_multi).

    Parameters
    ----------
    u : D numbers
    orders : N_multi permutations of 0..D-1
        The order of the coordinates, drawn anew each time (Section 3.2). With one order for all the
        part of the error that the order makes would never average out.
    Cs : N_multi matrices, k x (D/k)
    sigma : float

    Returns
    -------
    list of float

    Examples
    --------
    >>> len(repeated_fourier_features([1, 2], [[0, 1], [1, 0], [0, 1]], [[[1], [1]]] * 3))
    12
    """
    passes = [
        fast_fourier_features([u[j] for j in order], C, sigma)
        for order, C in zip(orders, Cs, strict=True)
    ]
    return [value / sqrt(len(passes)) for values in passes for value in values]


def mean_normalise(X):
    """Subtract each column's mean and divide by its range; a constant column becomes 0.

    Section 3.2, where the fraction bar is under the mean only (B15).

    Examples
    --------
    >>> mean_normalise([[1, 5], [2, 5], [6, 5]])
    [[-0.4, 0.0], [-0.2, 0.0], [0.6, 0.0]]
    """
    columns = list(zip(*X, strict=True))
    means = [sum(column) / len(column) for column in columns]
    ranges = [max(column) - min(column) for column in columns]
    return [
        [(x - m) / r if r else 0.0 for x, m, r in zip(row, means, ranges, strict=True)] for row in X
    ]


# ---- any number of blocks


def block_sizes(dim, n_blocks):
    """Cut D coordinates into k blocks whose sizes differ by one at most, larger ones first.

    Examples
    --------
    >>> block_sizes(11, 4)
    [3, 3, 3, 2]
    """
    return [dim // n_blocks + (i < dim % n_blocks) for i in range(n_blocks)]


def block_projection(X, buckets, weights, n_blocks):
    """Project rows: v_i = the sum of weights[r][j] u_j over all r and j with buckets[r][j] = i.

    The blocks need not be intervals, nor equally large: S has weights[r][j] in row buckets[r][j] of
    column j. Several repetitions r use blocks of their own.

    Parameters
    ----------
    X : rows of D numbers
    buckets : lists of D integers from 0 to n_blocks - 1, one list for each repetition
    weights : lists of D numbers
    n_blocks : int

    Returns
    -------
    list of rows of n_blocks numbers

    Examples
    --------
    >>> block_projection([[1.0, 2.0, 3.0, 4.0]], [[0, 1, 0, 1]], [[1, 1, -1, -1]], 2)
    [[-2.0, -2.0]]
    """
    result = []
    for u in X:
        v = [0.0] * n_blocks
        for bucket, weight in zip(buckets, weights, strict=True):
            for j, x in enumerate(u):
                v[bucket[j]] += weight[j] * float(x)
        result.append(v)
    return result


def block_fourier_features(X, buckets, weights, n_components, phase=0.0):
    """Map rows to sqrt(2/F) (cos v_1, ..., cos v_m, sin v_1, ..., sin v_m), F = 2m columns.

    v is `block_projection`; the scale of block i, sqrt(D/b_i) for b_i coordinates, is in the
    weights. An odd F = 2m + 1 ends with sqrt(2/F) cos(v_(m+1) + phase): with a uniform phase it
    counts for half a frequency.

    Examples
    --------
    >>> block_fourier_features([[0.0, 0.0]], [[0, 1]], [[1.0, 1.0]], 3)[0][1:]
    [0.0, 0.816496580927726]
    """
    m, odd = divmod(n_components, 2)
    scale = sqrt(2 / n_components)
    result = []
    for v in block_projection(X, buckets, weights, m + odd):
        last = [cos(v[m] + phase)] if odd else []
        values = [cos(angle) for angle in v[:m]] + [sin(angle) for angle in v[:m]] + last
        result.append([scale * value for value in values])
    return result


# ---- the energies of blocks: where bias and variance come from


def block_energies(delta, buckets, n_blocks):
    """Return the sums of squares over blocks, a_i = ||Delta_i||^2.

    Given the blocks, the estimate of a kernel K has the mean 1/k sum_i K(sqrt(k) Delta_i), which is
    K(Delta) only if all a_i are equal, and more by Jensen's inequality otherwise (B4).

    Examples
    --------
    >>> block_energies([1.0, 2.0, 3.0], [0, 1, 0], 2)
    [10.0, 4.0]
    """
    return [
        sum((x * x for x, bucket in zip(delta, buckets, strict=True) if bucket == i), 0.0)
        for i in range(n_blocks)
    ]


def energy_variance(delta, n_blocks, arrangement="stratified"):
    """Return Var a_i over the arrangements, for D = k b or k b + r coordinates.

    "permutation" assigns the coordinates to the blocks by one permutation. "stratified" cuts them
    into segments of k and assigns each segment to the k blocks, one each, independently: a_i has
    one square of each segment, so that variances add up.

    Parameters
    ----------
    delta : D numbers
    n_blocks : int
    arrangement : "stratified" or "permutation"

    Returns
    -------
    float
        Of a block chosen at random.

    Notes
    -----
    Two coordinates j != l meet in a block with probability p_jl; with x_j = Delta_j^2 and a mean
    of sum x / k, Var a_i = sum_j x_j^2 / k + sum_(j != l) x_j x_l p_jl / k - (sum x / k)^2. For
    "stratified" p_jl is 0 in a segment and 1/k across; for "permutation"
    sum_i b_i (b_i - 1) / (D (D - 1)), which is (b - 1) / (D - 1) if all b_i = b.

    Examples
    --------
    >>> energy_variance([1.0, 2.0, 1.0, 2.0], 2)  # blocks have 2, 5, 5 or 8
    4.5
    >>> energy_variance([1.0, 2.0, 1.0, 2.0], 2, "permutation")
    3.0
    """
    x = [d * d for d in delta]
    apart = meetings(x, n_blocks, arrangement)
    return (sum(a * a for a in x) + apart) / n_blocks - (sum(x) / n_blocks) ** 2


def meetings(x, n_blocks, arrangement):
    """Return the expectation of the sum of x_j x_l over all j != l that meet in a block."""
    total, squares = sum(x), sum(a * a for a in x)
    if arrangement == "permutation":
        dim = len(x)
        if dim == 1:
            return 0.0
        pairs = sum(b * (b - 1) for b in block_sizes(dim, n_blocks))
        return pairs / (dim * (dim - 1)) * (total**2 - squares)
    segments = [sum(x[j : j + n_blocks]) for j in range(0, len(x), n_blocks)]
    return (total**2 - sum(s * s for s in segments)) / n_blocks


def projection_variance(delta, n_blocks, values="rademacher", arrangement="stratified"):
    """Return Var ||v||^2 of a projection, over values and arrangements.

    2 sum_(j != l) p_jl x_j x_l for values +-1, with x_j = Delta_j^2 and p_jl the probability that j
    and l meet in a block; 2 sum_j x_j^2 more for normal values.

    Parameters
    ----------
    delta : D numbers
    n_blocks : int
    values : "rademacher" or "gaussian"
    arrangement : "stratified" or "permutation"

    Returns
    -------
    float

    Notes
    -----
    A dense normal matrix has 2 (sum x)^2 / k, CountSketch 2 ((sum x)^2 - sum x^2) / k: values +-1
    are never worse than CountSketch, since p_jl <= 1/k.

    Examples
    --------
    >>> projection_variance([1.0, 1.0, 1.0, 1.0], 2)  # 2 of 4 pairs across, twice each
    8.0
    >>> projection_variance([1.0, 1.0, 1.0, 1.0], 2, "gaussian")
    16.0
    """
    x = [d * d for d in delta]
    variance = 2 * meetings(x, n_blocks, arrangement)
    return variance + 2 * sum(a * a for a in x) if values == "gaussian" else variance


# ---- Section 4: the theorems


def kernel_moments(kernel, mean, std, n_frequencies, *, printed=False):
    """Return mean and variance of the estimate of a kernel. Theorem 4.1, Propositions 4.3 and 4.4.

    With E K = E K(Delta) and E K_2 = E K(2 Delta), the mean is E K (Eq 12, for the spherical kernel
    Eq 16) and the variance (1/2 + 1/2 E K_2 - (E K)^2) / N, for N frequencies with independent
    blocks. Printed is + (E K)^2 (Eq 13 and 19, B1), and N = k/2 where Algorithm 2 has k (B2).

    Parameters
    ----------
    kernel : "gaussian", "exponential" or "spherical"
        exp(-c ||Delta||^2), exp(-c ||Delta||), or 1 - 3/2 s + s^3/2 with s = ||Delta|| / theta.
    mean, std : float
        Of c ||Delta||^2 ("gaussian"), c ||Delta|| ("exponential") or s ("spherical"), which is
        normal.
    n_frequencies : int
        N.
    printed : bool
        As printed: with B1, E K_2 = exp(-2 mu + 2 sigma^2) for the Gaussian too (right is
        exp(-4 mu + 8 sigma^2), B6), and for the spherical kernel as if it went on beyond
        ||Delta|| = theta (B8).

    Returns
    -------
    mean, variance : float

    Examples
    --------
    >>> mean, variance = kernel_moments("gaussian", 1.0, 0.1, 1)
    >>> round(mean, 6), round(variance, 6)
    (0.369723, 0.373225)
    >>> mean, variance = kernel_moments("spherical", 0.4, 0.05, 1)
    >>> round(variance, 3), round(kernel_moments("spherical", 0.4, 0.05, 1, printed=True)[1], 3)
    (0.346, -0.278)
    """
    if kernel == "gaussian":
        once = exp(-mean + std**2 / 2)
        twice = exp(-2 * mean + 2 * std**2) if printed else exp(-4 * mean + 8 * std**2)
    elif kernel == "exponential":
        once, twice = exp(-mean + std**2 / 2), exp(-2 * mean + 2 * std**2)
    elif printed:
        third = mean**3 + 3 * mean * std**2
        once = 1 - 3 * mean / 2 + third / 2
        constant = 1 - 9 * mean / 2 + 9 * mean**2 / 4 + 3 * third - 3 * mean * third / 2
        return once, (constant + third**2 / 4) / n_frequencies
    else:
        once, twice = spherical_mean(mean, std), spherical_mean(2 * mean, 2 * std)
    sign = 1 if printed else -1
    return once, (0.5 + twice / 2 + sign * once**2) / n_frequencies


def spherical_mean(mean, std):
    """Return E[1 - 3/2 s + s^3/2; 0 < s < 1] for normal s, by its truncated moments."""

    def density(s):
        return exp(-(((s - mean) / std) ** 2) / 2) / (sqrt(2 * pi) * std)

    def below(s):
        return (1 + erf((s - mean) / (std * sqrt(2)))) / 2

    moments = [below(1) - below(0)]
    moments.append(mean * moments[0] - std**2 * (density(1) - density(0)))
    for n in (2, 3):
        moments.append(mean * moments[-1] + std**2 * ((n - 1) * moments[-2] - density(1)))
    # Below 0 is no distance: it counts as 0, where the kernel is 1.
    return below(0) + moments[0] - 1.5 * moments[1] + moments[3] / 2


def correction_factor(gamma, std):
    """Return exp(-(gamma std)^2 / 2), which would make the Gaussian estimate unbiased.

    Proposition 4.2, for gamma ||sqrt(k) Delta_i||^2 normal with standard deviation gamma std. It is
    near 1 if gamma std << 1 (printed: if mu / sigma >> 1, B5), and it depends on the pair of
    points, so that no features can contain it.

    Examples
    --------
    >>> round(correction_factor(0.5, 0.2), 6)
    0.995012
    """
    return exp(-((gamma * std) ** 2) / 2)


def projection_moments(mean, std, n_components, *, printed=False):
    """Return mean and variance of ||v||^2 for normal values. Theorem 4.7.

    mean and (2 mean^2 + 2 std^2) / k. Printed is (2 mean + std^2) / k (B10), which adds a squared
    length to its square.

    Parameters
    ----------
    mean, std : float
        Of ||sqrt(k) Delta_i||^2 over permutations; the mean is ||Delta||^2.
    n_components : int
        k.
    printed : bool

    Returns
    -------
    mean, variance : float

    Examples
    --------
    >>> projection_moments(3.0, 1.0, 10)
    (3.0, 2.0)
    >>> projection_moments(3.0, 1.0, 10, printed=True)
    (3.0, 0.7)
    """
    if printed:
        return mean, (2 * mean + std**2) / n_components
    return mean, (2 * mean**2 + 2 * std**2) / n_components


def chi_square(u, v):
    """Return k ||v||^2 / ||u||^2, which is chi-square with k degrees of freedom. Eq 2.

    For v = R u / sqrt(k) with a dense standard normal R. For blocks it is a sum of squares of
    normals of unequal variances k a_i / ||u||^2 (`block_energies`).

    Examples
    --------
    >>> chi_square([3.0, 4.0], [5.0, 0.0])
    2.0
    """
    return len(v) * sum(x * x for x in v) / sum(x * x for x in u)


def lemma_4_6(energies, epsilon, *, printed=False):
    """Return (lower, upper, probability) of Lemma 4.6: bounds of ||v||^2, and how often they hold.

    ||v||^2 is between (1 - eps) (m/M)^2 and (1 + eps) (M/m)^2 times ||Delta||^2 with probability at
    least 1 - 2 exp(-(eps^2 - eps^3) k / 4); m and M are the smallest and largest norm of a block.
    Printed is m/M without the square (B11).

    Parameters
    ----------
    energies : k numbers > 0
        a_i = ||Delta_i||^2, of the difference of two points (B13).
    epsilon : float
        Between 0 and 1.
    printed : bool

    Returns
    -------
    lower, upper, probability : float

    Examples
    --------
    >>> lower, upper, probability = lemma_4_6([1.0] * 400, 0.5)
    >>> lower, upper, round(probability, 6)
    (200.0, 600.0, 0.999993)
    """
    total, ratio = sum(energies), min(energies) / max(energies)
    if printed:
        ratio = sqrt(ratio)
    rare = 2 * exp(-(epsilon**2 - epsilon**3) * len(energies) / 4)
    upper = (1 + epsilon) * total / ratio if ratio else inf
    return (1 - epsilon) * ratio * total, upper, 1 - rare


def laurent_massart(energies, t):
    """Return (lower, upper): ||v||^2 is beyond either with probability exp(-t) at most.

    ||Delta||^2 - 2 ||a|| sqrt(t) and ||Delta||^2 + 2 ||a|| sqrt(t) + 2 max(a) t for normal values,
    whatever the blocks. The effective k is (sum a)^2 / sum a^2.

    Laurent, Massart, Adaptive estimation of a quadratic functional by model selection, 2000.

    Examples
    --------
    >>> lower, upper = laurent_massart([1.0] * 100, 4.0)
    >>> lower, upper
    (60.0, 148.0)
    """
    total, norm = sum(energies), sqrt(sum(a * a for a in energies))
    return total - 2 * norm * sqrt(t), total + 2 * norm * sqrt(t) + 2 * max(energies) * t
