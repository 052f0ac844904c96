"""Small comparisons that several tests make."""

import gzkcore

QUICK = ["gegenbauer", "fourier-iid", "sklearn-RBFSampler"]


def compared(X, y=None, **options):
    given = {"methods": QUICK, "n_components": 32, "n_seeds": 2, "random_state": 0}
    return gzkcore.compare(X, y, **given | options)
