"""Real data sets by name."""

from gzkcore._util.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
