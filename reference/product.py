"""Features of product kernels: outer products of the features of the parts.

k((x, s), (y, t)) = k1(x, y) k2(s, t). If k1(x, y) = sum_p a_p(x) a_p(y) and k2(s, t) = sum_q b_q(s)
b_q(t), the product is the sum over all pairs (p, q) of a_p(x) b_q(s) a_p(y) b_q(t), so that each
pair is a column. The columns with the largest mean squares are kept.
"""

from itertools import product
from math import prod

__all__ = ["product_columns", "product_features", "product_kernel"]


def product_kernel(values):
    """Multiply the values of the parts' kernels: k = k1 k2 ... kK.

    Parameters
    ----------
    values : K numbers
        k_i(x_i, y_i) of each part.

    Returns
    -------
    float

    Examples
    --------
    >>> product_kernel([0.5, 0.5, 4.0])
    1.0
    """
    return prod(values)


def product_columns(energies, n_components):
    """Choose the columns of a product: the largest products of the parts' energies.

    Parameters
    ----------
    energies : K lists of numbers >= 0
        energies[k][p] is the mean square of column p of part k. Mean squares multiply where the
        parts are independent.
    n_components : int
        How many columns to choose, at most.

    Returns
    -------
    list of tuples (p_1, ..., p_K)
        Largest product first, equal ones in the order of the tuples. Products that are 0 are left
        out, so that there may be fewer.

    Examples
    --------
    >>> product_columns([[4.0, 1.0], [3.0, 2.0]], 3)  # 12, 8, 3 and, not taken, 2
    [(0, 0), (0, 1), (1, 0)]
    """
    products = {
        columns: prod(energy[p] for energy, p in zip(energies, columns, strict=True))
        for columns in product(*[range(len(energy)) for energy in energies])
    }
    chosen = sorted(products, key=lambda columns: (-products[columns], columns))[:n_components]
    return [columns for columns in chosen if products[columns] > 0]


def product_features(parts, columns):
    """Multiply chosen columns of the parts, row by row: z_c(x) = prod_k parts[k][i][columns[c][k]].

    Parameters
    ----------
    parts : K matrices of n rows
    columns : tuples of K indices
        As `product_columns` chooses them.

    Returns
    -------
    list of n rows of len(columns) numbers

    Examples
    --------
    >>> product_features([[[1.0, 2.0]], [[3.0, 5.0]]], [(0, 0), (1, 1)])
    [[3.0, 10.0]]
    """
    return [
        [prod(row[p] for row, p in zip(rows, chosen, strict=True)) for chosen in columns]
        for rows in zip(*parts, strict=True)
    ]
