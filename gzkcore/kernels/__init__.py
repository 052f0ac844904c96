"""The exact kernels, with what their approximations need: series, frequencies, tables."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
