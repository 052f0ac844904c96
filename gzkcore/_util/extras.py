"""Packages that extras install: each is imported where it is needed."""

from importlib.util import find_spec


def needs(module: str, what: str, extra: str) -> None:
    """Raise ImportError, naming the extra that has it, unless a package is there."""
    if find_spec(module) is None:
        raise ImportError(
            f"{what} needs {module}: pip install 'gzkcore[{extra}]' (or pip install {module})"
        )
