"""The exact kernels; each knows what its approximations need.

    Kernel -> resolve -> tile form -> products with tiles of rows
    base                 tile_form    products, slopes
           -> radial functions -> truncation: what features are made of
              families, radial    truncation
           -> learned parts -> marginal likelihood -> learned: what y says of its lengths

- `shift_invariant`, `dot_product`, `zonal`: the families; `base`: what all share
- `general`: kernels from outside, by radial functions, a function of rows, or their values
- `product`, `sum`, `transformed`: kernels made of kernels
- `aliases`: kernels by name
- `families`, `radial`, `truncation`: radial functions, and where their series may stop
- `learned`, `learned_parts`, `marginal_likelihood`: what is learned from y
- `products`, `slopes`: K(X, Y) V and its slopes, without storing K
- `fast_sums`, `split`: the same in linear time, for places
- `tile_form`, `tile_rows`, `tile_table`, `piecewise`: how products see kernels and rows
- `tile_matrix`: the matrix of a kernel by tiles; `points`: checked rows
- `coded_form`: how a kernel sees rows whose categories are codes
"""

from gzkcore._util.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
