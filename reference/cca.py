"""Canonical correlations of two views, by whitening both and a singular value decomposition."""

import numpy as np

__all__ = ["canonical_correlations"]


def canonical_correlations(Z, U, n_components, alpha=0.0, weights=None):
    """Find pairs of directions along which two views of the same rows are correlated most.

    Maximise a^T C_zu b where a^T (C_zz + alpha I) a = b^T (C_uu + alpha I) b = 1, each pair
    uncorrelated with those before: the singular vectors of
    (C_zz + alpha I)^(-1/2) C_zu (C_uu + alpha I)^(-1/2), with the centred sums
    C_zu = sum_i w_i (z_i - mean)(u_i - mean)^T. [Bach, Jordan 2002, section 3.2]

    Parameters
    ----------
    Z : n rows of F numbers
    U : n rows of G numbers
    n_components : int
    alpha : float
        >= 0, added to the diagonals.
    weights : sequence of n numbers, optional
        1 for all by default.

    Returns
    -------
    correlations : list of n_components floats
        Of the pairs of scores (z - mean) a and (u - mean) b.
    a : list of n_components rows of F floats
        Scores have variance 1; the largest entry of a is positive.
    b : list of n_components rows of G floats

    Examples
    --------
    The second view is -2 times the first.

    >>> correlations, a, b = canonical_correlations([[0], [1], [2]], [[0], [-2], [-4]], 1)
    >>> [round(x, 12) for x in (correlations[0], a[0][0], b[0][0])]
    [1.0, 1.0, -0.5]
    """
    Z, U = np.asarray(Z, dtype=float), np.asarray(U, dtype=float)
    w = np.ones(len(Z)) if weights is None else np.asarray(weights, dtype=float)
    Z, U = Z - w @ Z / w.sum(), U - w @ U / w.sum()
    zz, uu, zu = (Z.T * w) @ Z, (U.T * w) @ U, (Z.T * w) @ U
    z_root = inverse_root(zz + alpha * np.eye(len(zz)))
    u_root = inverse_root(uu + alpha * np.eye(len(uu)))
    left, _, right = np.linalg.svd(z_root @ zu @ u_root)
    correlations, all_a, all_b = [], [], []
    for i in range(n_components):
        a, b = z_root @ left[:, i], u_root @ right[i]
        sign = np.sign(a[np.argmax(np.abs(a))])
        a *= sign / np.sqrt(a @ zz @ a / (w.sum() - 1))
        b *= sign / np.sqrt(b @ uu @ b / (w.sum() - 1))
        correlations.append(float(a @ zu @ b / (w.sum() - 1)))
        all_a.append(a.tolist())
        all_b.append(b.tolist())
    return correlations, all_a, all_b


def inverse_root(A):
    """Return A^(-1/2) of a positive definite matrix."""
    values, vectors = np.linalg.eigh(A)
    return vectors / np.sqrt(values) @ vectors.T
