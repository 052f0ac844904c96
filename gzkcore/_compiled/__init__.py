"""The compiled kernels, each in the best build for this processor (see `dispatch`)."""

from . import dispatch as dispatch  # first: it finds the kernels by their plain names
