"""Systems of the whole kernel, (K + alpha N) a = y, by conjugate gradients.

    kernel, rows -> KernelSystem -> conjugate_gradients -> Solution -> posterior
                    kernel_system   solve
                                      ^
                                    preconditioners: near_landmarks, neighbours, far_features
                    centers, wide: smaller systems, in passes over the rows
                    newton, losses: a sequence of systems, for other losses

- `kernel_system`: the matrix K + alpha N, held, or as a product here or on a cluster
- `solve`: the solver, column by column, with checkpoints
- `preconditioner`: the interface; `preconditioners`: the choice
- `near_landmarks`, `neighbours`, `far_features`: what it takes
- `centers`: the kernel at some rows, for more rows than the whole kernel takes
- `wide`: more features than rows, or than a Gram matrix may have
- `losses`, `newton`: other losses, each a sequence of weighted systems
- `trend`: what is not penalised: an intercept, slopes
- `posterior`, `near_variances`: variances and draws
- `training_rows`: the rows that a model keeps; `changed_rows`: some more, or fewer
- `cost`: the memory and the time that a system takes, before it is solved
"""
