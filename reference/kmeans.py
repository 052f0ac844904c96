"""Kernel k-means ([G], sections 6.3 and A.2): its objective on features, and Lloyd's algorithm.

The objective with the kernel itself is `metrics.clustering_cost`; the bound of Lemma 14 for a
clustering found on features is `theory.clustering_bound`.
"""

__all__ = ["cluster_indicator", "lloyd", "nearest_centers", "objective"]


def objective(Z, labels, weights=None):
    """Sum the squared distances of features from the means of their clusters.

    sum_i sum_{x_j in C_i} w_j |phi_{x_j} - mu_i|^2 with mu_i the mean of phi_{x_j} over C_i.
    [G, section 6.3; printed mu_i = 1/|C_i| sum phi_{x_i}]

    Parameters
    ----------
    Z : n rows of F numbers
    labels : sequence of n labels
    weights : sequence of n numbers, optional
        1 for all by default.

    Returns
    -------
    float

    Examples
    --------
    >>> objective([[0], [2], [9]], ["a", "a", "b"])
    2.0
    """
    w = [1.0] * len(Z) if weights is None else weights
    total = 0.0
    for label in sorted(set(labels)):
        rows = [j for j in range(len(Z)) if labels[j] == label and w[j] > 0]
        if rows:
            mean = mean_of([Z[j] for j in rows], [w[j] for j in rows])
            total += sum(w[j] * squared_distance(Z[j], mean) for j in rows)
    return float(total)


def cluster_indicator(labels):
    """Write a clustering as a matrix with orthonormal columns, one for each cluster.

    C_(j,i) = 1/sqrt(|C_i|) if x_j is in C_i, else 0; then the objective is |Z - C C^T Z|_F^2.
    [G, A.2; printed 1/|C_i|, whose columns are not of length 1]

    Parameters
    ----------
    labels : sequence of n labels

    Returns
    -------
    list of n rows of floats

    Examples
    --------
    >>> cluster_indicator(["a", "b", "a", "a", "a"])
    [[0.5, 0.0], [0.0, 1.0], [0.5, 0.0], [0.5, 0.0], [0.5, 0.0]]
    """
    names = sorted(set(labels))
    size = {name: sum(label == name for label in labels) for name in names}
    return [
        [1.0 / size[name] ** 0.5 if label == name else 0.0 for name in names] for label in labels
    ]


def nearest_centers(Z, centers):
    """Number the nearest centre of each row, the first of equals.

    Parameters
    ----------
    Z : n rows of F numbers
    centers : k rows of F numbers

    Returns
    -------
    list of n ints

    Examples
    --------
    >>> nearest_centers([[0], [2], [9]], [[0], [10]])
    [0, 0, 1]
    """
    labels = []
    for z in Z:
        distances = [squared_distance(z, c) for c in centers]
        labels.append(distances.index(min(distances)))
    return labels


def lloyd(Z, centers, weights=None, n_iter=1):
    """Move each centre to the mean of the rows nearest to it, again and again.

    A centre that no row is nearest to stays where it is. No step makes the objective larger.

    Parameters
    ----------
    Z : n rows of F numbers
    centers : k rows of F numbers
    weights : sequence of n numbers, optional
        1 for all by default.
    n_iter : int

    Returns
    -------
    k rows of F floats

    Examples
    --------
    >>> lloyd([[0], [2], [9], [11]], [[0], [3]], n_iter=2)
    [[1.0], [10.0]]
    """
    w = [1.0] * len(Z) if weights is None else weights
    centers = [[float(x) for x in center] for center in centers]
    for _ in range(n_iter):
        labels = nearest_centers(Z, centers)
        for i in range(len(centers)):
            rows = [j for j in range(len(Z)) if labels[j] == i and w[j] > 0]
            if rows:
                centers[i] = mean_of([Z[j] for j in rows], [w[j] for j in rows])
    return centers


def mean_of(rows, weights):
    """Average rows by their weights."""
    total = sum(weights)
    return [
        sum(w * row[a] for row, w in zip(rows, weights, strict=True)) / total
        for a in range(len(rows[0]))
    ]


def squared_distance(x, y):
    """Return |x - y|^2."""
    return sum((a - b) ** 2 for a, b in zip(x, y, strict=True))
