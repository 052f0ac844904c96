"""The sums over rows from which regressions, components and clusters on features are computed."""

__all__ = ["centred_moments", "cluster_sums", "gram", "moments"]


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


def centred_moments(Z, weights=None):
    """Average the rows, and sum their weighted outer products about the mean.

    mean = sum_i w_i z_i / sum_i w_i,  scatter = sum_i w_i (z_i - mean)(z_i - mean)^T.

    Parameters
    ----------
    Z : n rows of F numbers
    weights : sequence of n numbers, optional
        1 for all by default.

    Returns
    -------
    mean : list of F floats
    scatter : list of F rows of F floats

    Examples
    --------
    >>> centred_moments([[1, 2], [3, 6]])
    ([2.0, 4.0], [[2.0, 4.0], [4.0, 8.0]])
    """
    total, first, _ = moments(Z, weights)
    mean = [value / total for value in first]
    centred = [[float(z[a]) - mean[a] for a in range(len(mean))] for z in Z]
    return mean, gram(centred, weights)


def cluster_sums(Z, centers, weights=None):
    """Sum the rows nearest to each centre, and their squared distances from it.

    Parameters
    ----------
    Z : n rows of F numbers
    centers : k rows of F numbers
        Of equally near ones the first counts.
    weights : sequence of n numbers, optional
        1 for all by default.

    Returns
    -------
    totals : list of k floats
        Sums of weights.
    sums : list of k rows of F floats
    inertia : float

    Examples
    --------
    >>> cluster_sums([[0], [2], [9]], [[0], [10]])
    ([2.0, 1.0], [[2.0], [9.0]], 5.0)
    """
    totals = [0.0] * len(centers)
    sums = [[0.0] * len(centers[0]) for _ in centers]
    inertia = 0.0
    for i, z in enumerate(Z):
        w = 1.0 if weights is None else float(weights[i])
        distances = [sum((a - b) ** 2 for a, b in zip(z, c, strict=True)) for c in centers]
        nearest = distances.index(min(distances))
        totals[nearest] += w
        inertia += w * distances[nearest]
        for a in range(len(z)):
            sums[nearest][a] += w * float(z[a])
    return totals, sums, inertia
