"""Public names that are imported when they are first asked for."""

from collections.abc import Callable

import lazy_loader


def attach(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, whose `.pyi` lists the names."""
    find, listed, public = lazy_loader.attach_stub(package, file)

    def find_known(name: str) -> object:
        if name in public:
            return find(name)
        from .wording import meant  # takes time, which only errors need

        # Without its object, Python doesn't suggest the name once more.
        text = f"module {package!r} has no attribute {name!r}{meant(name, public)}"
        raise AttributeError(text, name=name, obj=None)

    return find_known, listed, public
