"""The sums over rows that learning on features needs."""

__all__ = ["gram", "moments"]


def gram(Z, weights=None):
    """Sum the weighted outer products of the rows.

    Z^T W Z = sum_i w_i z_i z_i^T.

    Parameters
    ----------
    Z : n rows of F numbers
    weights : sequence of n numbers, optional
        1 for all by default.

    Returns
    -------
    list of F rows of F floats

    Examples
    --------
    >>> gram([[1, 2], [3, 4]])
    [[10.0, 14.0], [14.0, 20.0]]
    """
    return moments(Z, weights)[2]


def moments(Z, weights=None):
    """Sum the weights, the weighted rows, and their weighted outer products.

    sum_i w_i,  sum_i w_i z_i,  sum_i w_i z_i z_i^T.
    The moments of two batches add up to those of both. Append the targets to each row, and
    they hold everything a ridge regression with an intercept needs.

    Parameters
    ----------
    Z : n rows of F numbers
    weights : sequence of n numbers, optional
        1 for all by default.

    Returns
    -------
    total : float
    first : list of F floats
    second : list of F rows of F floats

    Examples
    --------
    >>> moments([[1, 2], [3, 4]], [1, 0.5])
    (1.5, [2.5, 4.0], [[5.5, 8.0], [8.0, 12.0]])
    """
    n_components = len(Z[0])
    total = 0.0
    first = [0.0] * n_components
    second = [[0.0] * n_components for _ in range(n_components)]
    for i, z in enumerate(Z):
        w = 1.0 if weights is None else float(weights[i])
        total += w
        for a in range(n_components):
            first[a] += w * float(z[a])
            for b in range(n_components):
                second[a][b] += w * float(z[a]) * float(z[b])
    return total, first, second
