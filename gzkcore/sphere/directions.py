"""Sets of directions: points spread over the unit sphere S^(d-1).

The features need sums over directions that are close to integrals over the sphere. With every
method here each direction is uniform on the sphere, so that features are unbiased. The methods
differ in how evenly the whole set is spread.
"""

import inspect
import math
from contextlib import nullcontext
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.special import ndtri, roots_gegenbauer
from scipy.stats import qmc

from gzkcore._compiled import directions as _directions
from gzkcore._util.random import generator
from gzkcore._util.threads import in_parts, limit_blas, n_threads
from gzkcore._util.typing import Doubles, Seed
from gzkcore._util.validation import check_choice, check_degree, check_dim, check_integer

__all__ = ["best_method", "sample_directions", "sphere_quadrature"]

# SciPy 1.15 renamed the argument.
_SOBOL_RNG = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"

# BLAS uses one thread for blocks of at most so many rows and columns.
_SMALL_BLOCKS = 32

PointSet: TypeAlias = Literal["iid", "orthogonal", "sobol", "fibonacci"]
POINT_SETS: tuple[PointSet, ...] = get_args(PointSet)


def sample_directions(
    n_directions: int, dim: int, method: PointSet = "iid", rng: Seed = None
) -> Doubles:
    """Draw directions on the unit sphere S^(d-1).

    Parameters
    ----------
    n_directions, dim : int
        m >= 1 and d >= 1.
    method : {"iid", "orthogonal", "sobol", "fibonacci"}, default="iid"
        "iid": independent; "orthogonal": blocks of d Haar-distributed orthonormal rows; "sobol": a
        scrambled Sobol sequence through the normal quantiles; "fibonacci": the Fibonacci lattice
        turned by a random rotation (d = 3 only).
    rng : None, int, RandomState, Generator or SeedSequence
        Seed or source of the draws.

    Returns
    -------
    ndarray of shape (n_directions, dim), float64
        Unit rows, each uniform on the sphere.

    Notes
    -----
    Means over directions are unbiased for every method. Evenly spread sets are far more accurate
    than independent ones in low dimensions and for low degrees, the lattice more than Sobol's
    sequence. For d >= 12 only orthogonality helps. `best_method` chooses. Cost: O(m d), orthogonal
    O(m d min(m, d)).

    References
    ----------
    Han, Zandieh, Avron, Definition 8 (iid). Yu et al., Orthogonal Random Features, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore.sphere.directions import sample_directions
    >>> W = sample_directions(100, 3, method="fibonacci", rng=0)
    >>> bool(np.allclose(np.sum(W**2, axis=1), 1.0))
    True
    """
    m = check_integer("n_directions", n_directions, 1)
    dim = check_dim(dim)
    check_choice("method", method, POINT_SETS)
    return drawn_directions(m, dim, method, rng)


def drawn_directions(m: int, dim: int, method: PointSet, rng: Seed = None) -> Doubles:
    """Return `sample_directions` of checked numbers."""
    if method == "fibonacci" and dim != 3:
        raise ValueError(f"method='fibonacci' exists for dim=3 only, not dim={dim}; use 'sobol'")
    draws = generator(rng)
    if method == "orthogonal":
        return _haar(draws.standard_normal((m, dim)))
    if method == "fibonacci":
        lattice = np.empty((m, 3))
        _directions.fibonacci_directions(lattice, n_threads(64 * m))
        return lattice @ _haar(draws.standard_normal((3, 3)))
    if method == "sobol":
        return _unit(ndtri(sobol_points(m, dim, draws)))
    return _unit(draws.standard_normal((m, dim)))


def sphere_quadrature(dim: int, degree: int) -> tuple[Doubles, Doubles]:
    """Nodes and weights on S^(d-1) that integrate polynomials up to a degree exactly.

    Gauss-Gegenbauer rules in every coordinate from the third on, evenly spaced angles in the plane.

    Parameters
    ----------
    dim, degree : int
        d >= 1, and the highest degree that is exact.

    Returns
    -------
    nodes : ndarray of shape (m, dim)
    weights : ndarray of shape (m,)
        Positive weights with sum 1, for means over the uniform distribution. m = (degree + 1)
        (degree // 2 + 1)^(d-2) for d >= 2, which is small in low dimensions only; more than 10^7
        nodes raise ValueError.

    Examples
    --------
    >>> from gzkcore.sphere.directions import sphere_quadrature
    >>> nodes, weights = sphere_quadrature(3, 4)
    >>> round(float(weights @ nodes[:, 2] ** 4), 12)  # 1 / 5
    0.2
    """
    dim = check_dim(dim)
    degree = check_degree(degree)
    n_nodes = math.log(degree + 1) + (dim - 2) * math.log(degree // 2 + 1)
    if dim > 1 and n_nodes > math.log(10**7):
        raise ValueError(
            f"a rule of degree={degree} in dim={dim} needs more than 10^7 nodes; use a lower "
            "degree, or sample_directions"
        )
    if dim == 1:
        return np.array([[1.0], [-1.0]]), np.array([0.5, 0.5])
    angle = 2 * math.pi * np.arange(degree + 1) / (degree + 1)
    nodes = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    weights = np.full(degree + 1, 1 / (degree + 1))
    for e in range(3, dim + 1):
        t, rule = roots_gegenbauer(degree // 2 + 1, (e - 2) / 2)
        inner = np.sqrt(1 - t * t)[:, None, None] * nodes
        last = np.broadcast_to(t[:, None, None], (t.size, nodes.shape[0], 1))
        nodes = np.concatenate([inner, last], axis=2).reshape(-1, e)
        weights = np.outer(rule / rule.sum(), weights).ravel()
    return nodes, weights


def best_method(dim: int) -> PointSet:
    """Return the method with the smallest error in this dimension ("auto").

    Examples
    --------
    >>> from gzkcore.sphere.directions import best_method
    >>> [best_method(dim) for dim in (2, 3, 12)]
    ['sobol', 'fibonacci', 'orthogonal']
    """
    if dim == 3:
        return "fibonacci"
    return "sobol" if 2 <= dim <= 11 else "orthogonal"


def _unit(points: Doubles) -> Doubles:
    unit = np.empty(points.shape)
    _directions.iid_directions(np.ascontiguousarray(points), unit, n_threads(points.size))
    return unit


def _haar(normals: Doubles) -> Doubles:
    """Orthonormalise rows of normals, in square blocks; the rows are overwritten."""
    dim = normals.shape[1]
    # For small blocks, to limit BLAS to one thread would take longer than the work.
    with nullcontext() if dim <= _SMALL_BLOCKS else limit_blas(1):
        failed = sum(
            _directions.orthogonal_directions(
                normals[dim * part.start : dim * part.stop], n_threads(normals.size * dim)
            )
            for part in in_parts(-(-len(normals) // dim), dim**3)
        )
    if failed:
        raise MemoryError(
            "there is not enough memory for the QR decompositions of orthogonal directions; use "
            "fewer"
        )
    return normals


def sobol_points(m: int, dim: int, rng: np.random.Generator) -> Doubles:
    """Return m points in (0, 1)^dim of a scrambled Sobol sequence."""
    sequence = qmc.Sobol(dim, scramble=True, **{_SOBOL_RNG: rng})
    # SciPy warns unless m is a power of two, but not if one point is drawn first.
    points = np.concatenate([sequence.random(1), sequence.random(m - 1)])
    # The normal quantiles of 0 and 1 are infinite.
    inside: Doubles = np.clip(points, 2.0**-54, 1 - 2.0**-53)
    return inside
