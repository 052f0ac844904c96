"""Real data sets by name, and the globe."""

from gzkcore._util import lazy as _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__, __file__)
