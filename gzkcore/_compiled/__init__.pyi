# What type checkers see of the kernels: names whose calls have no types. Cython checks each call.
from typing import Any

def __getattr__(name: str) -> Any: ...
