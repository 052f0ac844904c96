"""The tables and figures of the papers, reproduced beside the printed numbers."""

from gzkcore._util import lazy as _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__, __file__)
