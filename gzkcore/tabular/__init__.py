"""Tables: columns of every kind in, a learned kernel and calibrated predictions out.

    table -> TableEncoder -> TableRows -> Trials -> Candidate -> Form -> model -> Deviations, Link
             table_encoder   table_rows   kernel_search         form             deviations
                             table_passes trials                                 probabilities
             KernelRegressor, KernelClassifier: all of it, by table_learner

- `kernel_regressor`, `kernel_classifier`: the estimators; `table_learner`: what they share
- `columns`: a class for each kind of column; `table_encoder`: columns side by side, as numbers
- `fitted_table`: what a model knows of the file that it was fitted to
- `remarks`: what was done to columns, and what is doubtful in them; `targets`: in targets
- `copies`: columns that tell the target, or each other, exactly
- `table_rows`, `table_passes`: the rows to choose by, and tables larger than memory
- `kernel_search`: the choice of kernel and alpha by `trials` on held-out rows, kept in a `report`
- `form`: the whole kernel, centres, features or near rows; `near_form`: the choice among the last
- `extrapolation`: the choice by rows at the edge
- `deviations`, `varying_noise`, `probabilities`: how sure predictions are, by held-out rows
"""
