"""Tables: columns of every kind in, a learned kernel and calibrated predictions out.

    table -> TableEncoder -> TableRows -> Trials -> model -> Spread
             table_encoder   table_rows   kernel_search      kernel_regressor
                             table_passes
             KernelRegressor, KernelClassifier: all of it, by table_learner

- `kernel_regressor`, `kernel_classifier`: the estimators; `table_learner`: what they share
- `columns`: a class for each kind of column; `table_encoder`: columns side by side, as numbers
- `remarks`: what was done to columns, and what is doubtful in them
- `table_rows`, `table_passes`: the rows to choose by, and tables larger than memory
- `kernel_search`: the choice of kernel and alpha on held-out rows
- `edge`, `varying_noise`: what is learned of rows beyond the table, and of noise that varies
"""
