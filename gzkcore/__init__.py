from . import _isa
