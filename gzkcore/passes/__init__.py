"""Rows to sums, in one pass through any source.

    source -> Reader -> feature map -> accumulator -> normal equations
              streams   tiles          gram           normal_equations
                                       moments
                                       clusters, exponential_sums

- `streams`: a `Reader` takes rows from a source, here or on a cluster, and keeps checkpoints
- `tiles`: features tile by tile, in bounded memory, for sums and for predictions
- `gram`, `moments`, `clusters`, `exponential_sums`: the accumulators, which add and merge sums
- `normal_equations`: ridge regression from such sums
- `kernel_passes`: products with a kernel matrix by passes over the rows
"""
