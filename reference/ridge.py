"""Ridge regression on features, by the normal equations, and its errors by their definitions."""

import numpy as np

__all__ = [
    "gcv_score",
    "gram_product",
    "k_fold_error",
    "loo_errors",
    "nystrom_sketch",
    "ridge",
    "ridge_classifier",
]


def ridge(Z, y, alpha, fit_intercept=True, weights=None):
    """Solve a ridge regression.

    Minimise sum_i w_i (y_i - <z_i, coef> - intercept)^2 + alpha ||coef||^2: with z and y centred
    at their weighted means, coef = (Z^T W Z + alpha I)^(-1) Z^T W y. The intercept is free.

    Parameters
    ----------
    Z : n rows of F numbers
    y : n numbers, or n rows of k targets
    alpha : float
        Added to the diagonal of Z^T W Z.
    fit_intercept : bool
        Without it nothing is centred and the intercept is 0.
    weights : sequence of n numbers, optional
        1 for all by default.

    Returns
    -------
    coef : list of F floats, or k rows of them
    intercept : float, or list of k floats

    Examples
    --------
    Centred, z = (-1, 0, 1) and y = (-2, 0, 2): 4 / (2 + alpha).

    >>> ridge([[0], [1], [2]], [1, 3, 5], alpha=2.0)
    ([1.0], 2.0)
    """
    Z, y = np.asarray(Z, dtype=float), np.asarray(y, dtype=float)
    w = np.ones(len(Z)) if weights is None else np.asarray(weights, dtype=float)
    z_mean, y_mean = np.zeros(Z.shape[1]), np.zeros(y.shape[1:])
    if fit_intercept:
        z_mean, y_mean = w @ Z / w.sum(), w @ y / w.sum()
    WZ = (Z - z_mean) * w[:, None]
    coef = np.linalg.solve(WZ.T @ (Z - z_mean) + alpha * np.eye(Z.shape[1]), WZ.T @ (y - y_mean))
    return coef.T.tolist(), (y_mean - z_mean @ coef).tolist()


def predict(Z, coef, intercept):
    """Return the fitted values, one per row of Z (and target)."""
    return np.asarray(Z, dtype=float) @ np.asarray(coef).T + intercept


def gcv_score(Z, y, alpha, fit_intercept=True, weights=None):
    """Estimate the squared error of a ridge regression by generalised cross-validation.

    (1/n) sum_i w_i r_i^2 / (1 - df/n)^2, residuals r = y - H y, df = Tr H; averaged over targets.
    The hat matrix H is what the regression does to the columns of the identity. The intercept
    counts for one degree of freedom. [Golub, Heath, Wahba, Technometrics 1979]

    Parameters
    ----------
    Z, y, alpha, fit_intercept, weights
        As for `ridge`.

    Returns
    -------
    float

    Examples
    --------
    Residuals (-1, 0, 1), so 2/3, and df = 1 + 2/(2 + alpha) = 3/2:

    >>> round(gcv_score([[0], [1], [2]], [1, 3, 5], alpha=2.0), 12)
    2.666666666667
    """
    y = np.asarray(y, dtype=float)
    n = len(y)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    hat = predict(Z, *ridge(Z, np.eye(n), alpha, fit_intercept, weights))
    residuals = y - hat @ y
    return float(np.mean(w @ residuals**2) / n / (1 - np.trace(hat) / n) ** 2)


def loo_errors(Z, y, alpha, fit_intercept=True, weights=None):
    """Predict each row by the regression on all others, and return the errors.

    e_i = y_i - prediction of the regression without row i. (It equals r_i / (1 - H_ii).)

    Parameters
    ----------
    Z, y, alpha, fit_intercept, weights
        As for `ridge`.

    Returns
    -------
    list of n floats, or n rows of k

    Examples
    --------
    >>> loo_errors([[0], [1], [2]], [1, 3, 5], alpha=0.5)
    [-1.5, 0.0, 1.5]
    """
    return held_out_errors(Z, y, alpha, len(Z), fit_intercept, weights).tolist()


def k_fold_error(Z, y, alpha, n_folds, fit_intercept=True, weights=None):
    """Average the squared error of predicting each fold by the regression on the other folds.

    sum_i w_i e_i^2 / sum_i w_i, averaged over targets; row i belongs to fold i mod n_folds.

    Parameters
    ----------
    Z, y, alpha, fit_intercept, weights
        As for `ridge`.
    n_folds : int
        From 2 to n; n is leave-one-out.

    Returns
    -------
    float

    Examples
    --------
    >>> k_fold_error([[0], [1], [2]], [1, 3, 5], alpha=0.5, n_folds=3)
    1.5
    """
    errors = held_out_errors(Z, y, alpha, n_folds, fit_intercept, weights)
    mean_over_targets = (errors**2).reshape(len(errors), -1).mean(axis=1)
    return float(np.average(mean_over_targets, weights=weights))


def held_out_errors(Z, y, alpha, n_folds, fit_intercept, weights):
    """Return the error of each row, predicted by the regression on the folds it is not in."""
    Z, y = np.asarray(Z, dtype=float), np.asarray(y, dtype=float)
    w = np.ones(len(Z)) if weights is None else np.asarray(weights, dtype=float)
    errors = np.empty_like(y)
    for fold in range(n_folds):
        out = np.arange(len(Z)) % n_folds == fold
        fit = ridge(Z[~out], y[~out], alpha, fit_intercept, w[~out])
        errors[out] = y[out] - predict(Z[out], *fit)
    return errors


def ridge_classifier(Z, labels, alpha, fit_intercept=True, weights=None):
    """Regress each class as +1 against -1 for all others.

    The class of a row is that of the largest value. Of two classes the values are each other's
    negatives.

    Parameters
    ----------
    Z : n rows of F numbers
    labels : sequence of n labels
    alpha, fit_intercept, weights
        As for `ridge`.

    Returns
    -------
    classes : list of labels, sorted
    coef : list of rows of F floats, one for each class
    intercept : list of floats

    Examples
    --------
    >>> classes, coef, intercept = ridge_classifier([[0], [1], [2], [3]], "aabb", alpha=0.0)
    >>> classes, [[round(x, 12) for x in row] for row in coef]
    (['a', 'b'], [[-0.8], [0.8]])
    """
    classes = sorted(set(labels))
    targets = [[1.0 if label == name else -1.0 for name in classes] for label in labels]
    coef, intercept = ridge(Z, targets, alpha, fit_intercept, weights)
    return classes, coef, intercept


def gram_product(Z, V, weights=None, mean=None):
    """Multiply the Gram matrix of features about a mean by vectors.

    sum_i w_i (z_i - mean) (z_i - mean)^T V.

    Parameters
    ----------
    Z : n rows of F numbers
    V : F rows of k numbers
    weights : sequence of n numbers, optional
        1 for all by default.
    mean : F numbers, optional
        0 by default.

    Returns
    -------
    ndarray of shape (F, k)

    Examples
    --------
    (-1/2, 1/2) and (1/2, -1/2) are left of the rows:

    >>> gram_product([[0, 1], [1, 0]], [[1], [3]], mean=[0.5, 0.5])
    array([[-1.],
           [ 1.]])
    """
    Z, V = np.asarray(Z, dtype=float), np.asarray(V, dtype=float)
    w = np.ones(len(Z)) if weights is None else np.asarray(weights, dtype=float)
    total = np.zeros_like(V)
    for z, weight in zip(Z if mean is None else Z - mean, w, strict=True):
        total += weight * np.outer(z, z @ V)
    return total


def nystrom_sketch(product, test):
    """Find the eigenvalues and eigenvectors of what some test vectors T let one see of a matrix G.

    Those of G T (T^T G T)^+ (G T)^T that aren't 0, which is never more than G. [Frangella, Tropp,
    Udell, SIAM J. Matrix Anal. 2023, Eq 1.3]

    Parameters
    ----------
    product : matrix of n rows of n numbers
        G, symmetric and positive semidefinite.
    test : n rows of r numbers
        T.

    Returns
    -------
    values : ndarray of shape (rank,), largest first
    vectors : ndarray of shape (n, rank)

    Examples
    --------
    >>> values, vectors = nystrom_sketch([[4, 0], [0, 1]], [[1], [0]])
    >>> values
    array([4.])
    """
    G, T = np.asarray(product, dtype=float), np.asarray(test, dtype=float)
    seen = G @ T @ np.linalg.pinv(T.T @ G @ T, rcond=1e-12, hermitian=True) @ (G @ T).T
    values, vectors = np.linalg.eigh((seen + seen.T) / 2)
    positive = values > 1e-12 * values[-1]
    return values[positive][::-1], vectors[:, positive][:, ::-1]
