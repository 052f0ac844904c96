"""Feature maps: transformers of rows to columns whose inner products approximate a kernel.

- `auto`: `KernelFeatures`, which chooses; `trials`: how it tries
- `gegenbauer`, with `gegenbauer_base`, `gegenbauer_columns`, `gegenbauer_layout`, `polar`
- `product`: products of kernels, such as sphere x time; `principal_axes`: many columns to few
- `fourier`, `fastfood`: shift-invariant kernels; `maclaurin`, `sketch`, `polysketch`: powers
- `nystrom`, `adaptive`: features that depend on the data
- `block`, with `block_kernels`, `block_moments`, `block_passes`, `block_report`; `normalize`
- `projection`, `hadamard`: random projections, and the transform
- `base`, `casts`, `fit_rows`, `dask`: what all share
"""
