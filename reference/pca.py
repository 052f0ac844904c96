"""Principal components of features, by the eigenvectors of their covariance."""

import numpy as np

__all__ = ["principal_components"]


def principal_components(Z, n_components, weights=None):
    """Find the axes along which the rows vary most.

    Eigenvectors of C = sum_i w_i (z_i - mean)(z_i - mean)^T / (sum_i w_i - 1), the largest
    eigenvalues first. With <z(x), z(y)> = k(x, y) the products of rows with these axes are the
    components of kernel PCA.

    Parameters
    ----------
    Z : n rows of F numbers
    n_components : int
    weights : sequence of n numbers, optional
        1 for all by default; a row of weight 2 counts as two.

    Returns
    -------
    mean : list of F floats
    variances : list of n_components floats
    axes : list of n_components rows of F floats
        Of length 1, the largest entry positive.

    Examples
    --------
    Along (0.6, 0.8) at -5, 0 and 5: variance (25 + 25) / 2.

    >>> mean, variances, axes = principal_components([[-2, -3], [1, 1], [4, 5]], 1)
    >>> mean, [round(v, 12) for v in variances], [round(a, 12) for a in axes[0]]
    ([1.0, 1.0], [25.0], [0.6, 0.8])
    """
    Z = np.asarray(Z, dtype=float)
    w = np.ones(len(Z)) if weights is None else np.asarray(weights, dtype=float)
    mean = w @ Z / w.sum()
    covariance = ((Z - mean).T * w) @ (Z - mean) / (w.sum() - 1)
    values, vectors = np.linalg.eigh(covariance)
    axes = vectors.T[::-1][:n_components]
    axes = [axis * np.sign(axis[np.argmax(np.abs(axis))]) for axis in axes]
    return mean.tolist(), values[::-1][:n_components].tolist(), [axis.tolist() for axis in axes]
