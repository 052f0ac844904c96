"""How long work tells of itself: its progress, and what to know of it."""

from collections.abc import Callable
from typing import TypeAlias

Report: TypeAlias = Callable[..., None]  # the name of the work, the share that is done, how it goes
Say: TypeAlias = Callable[[str], None]
