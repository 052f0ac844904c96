"""The learners: estimators on features, and on the whole kernel.

    X, y -> Reader -> sums -> solution -> predict       on features
            (passes)          (passes)
    X, y -> TrainingRows -> KernelSystem -> predict     on the whole kernel
            (solve)         (solve)

On features, in passes over the rows:

- `ridge`, `ridge_cv`, `ridge_classifier`, `pca`, `cca`, `kmeans`: the estimators
- `series_ridge`: ridge regression on the series of a kernel of places
- `base`, `regression`, `classification`, `components`: what they share

On the whole kernel, by conjugate gradients:

- `kernel_ridge`, `kernel_ridge_cv`, `kernel_ridge_classifier`: squared error
- `kernel_losses`, `kernel_quantile`, `kernel_logistic`: other losses
- `whole_kernel`: what they share
- `near_kernel_ridge`: squared error, from the nearest rows of each new one
- `agop`: which columns matter
- `held_out`: which rows are held out, and the errors of alphas on them
"""
