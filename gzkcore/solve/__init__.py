"""Systems of the whole kernel, (K + alpha N) a = y, by conjugate gradients.

    kernel, rows -> Equations -> KernelSystem -> conjugate_gradients -> Solution -> Posterior
                                 system          solve                              posterior
                                   ^               ^
                                 products,       preconditioners: factored, near_landmarks,
                                 workers         neighbours, far_features
                    centers, wide: smaller systems, in passes over the rows
                    newton, losses: a sequence of systems, for other losses

- `system`: the equations, and the choice of a system that solves them
- `products`: products with K, in linear time or by tiles; `workers`: on a cluster
- `solve`: the solver, column by column, with checkpoints
- `preconditioner`: the protocol; `preconditioners`: the choice
- `factored`, `near_landmarks`, `neighbours`, `far_features`: kinds of preconditioners
- `centers`: the kernel at some rows, for more rows than the whole kernel takes
- `wide`: more features than rows, or than a Gram matrix may have
- `losses`, `newton`: other losses, each a sequence of weighted systems
- `trend`: what is not penalised: an intercept, slopes
- `posterior`, `near_variances`: variances, slopes and draws
- `near_rows`: regression from the nearest rows of each new one; `near_lengths`: lengths from these
- `training_rows`: the rows that a model keeps; `changed_rows`: some more, or fewer
- `cost`: the memory and the time that a system takes, before it is solved
"""
