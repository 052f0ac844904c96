"""Learners: on features, on the whole kernel, and those of tables, which choose everything.

On features, in passes over the rows:

- `ridge`, `ridge_cv`, `ridge_classifier`, `pca`, `cca`, `kmeans`: the estimators
- `base`, `regression`, `classification`, `components`: what they share
- `streams`, `tiles`: how sources and features reach the sums
- `gram`, `moments`, `clusters`: the sums
- `normal_equations`, `wide`, `passes`, `kept_features`: ridge regression from sums, or by passes

On the whole kernel, by conjugate gradients:

- `kernel_ridge`, `kernel_ridge_cv`, `kernel_ridge_classifier`: squared error
- `kernel_losses`, `kernel_quantile`, `kernel_logistic`: other losses, by `losses` and `newton`
- `kernel_system`, `solve`, `solve_columns`, `solve_state`: the linear systems, and their solver
- `preconditioner`, `preconditioners`, `near_landmarks`, `neighbours`: what makes it converge
- `centers`: the kernel at some rows, for more rows than the whole kernel takes
- `shared_products`, `training_rows`: products on a cluster, and the rows that are kept
- `posterior`, `lanczos`, `gradients`: deviations and draws, determinants, which columns matter

Of tables:

- `kernel_regressor`, `kernel_classifier`: the estimators, and `table_learner`, what they share
- `table_encoder`, `categories`, `dates`: text, categories, dates and gaps as numbers
- `table_rows`, `table_passes`, `held_out`: rows to choose by, and tables larger than memory
- `kernel_search`, `fit_memory`: the choice of kernel, alpha and form, within the memory
- `deviations`: calibrated standard deviations
"""
