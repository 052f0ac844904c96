"""Feature maps: transformers of rows to columns whose inner products approximate a kernel.

    rows, kernel -> FitRows  -> radial functions x directions -> tiles of columns -> Z
                    fit_rows    gegenbauer_columns               gegenbauer_layout
                             -> frequencies                   -> cos and sin
                                fourier, fastfood, block
                             -> landmarks                     -> a factor of their kernel matrix
                                nystrom

- `auto`: `KernelFeatures`, which chooses; `trials`: how it tries
- `gegenbauer`, with `gegenbauer_base`, `gegenbauer_columns`, `gegenbauer_layout`, `polar`
- `product`: products of kernels, such as sphere x time; `principal_axes`: many columns to few
- `fourier`, `fastfood`: shift-invariant kernels; `maclaurin`, `sketch`, `polysketch`: powers
- `nystrom`, `adaptive`: features that depend on the data
- `block`, with `block_moments`, `block_report`; `normalize`: wide rows
- `projection`, `hadamard`: random projections, and the transform
- `base`, `fit_rows`, `dask`: what all share
"""
