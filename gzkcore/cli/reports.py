"""The types of the functions that report progress and notes."""

from collections.abc import Callable
from typing import TypeAlias

Report: TypeAlias = Callable[..., None]  # the name of the work, the share that is done, how it goes
Say: TypeAlias = Callable[[str], None]
