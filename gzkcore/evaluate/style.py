"""The style of all pictures of the package; matplotlib is imported only for drawing."""

import functools
import textwrap
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Drawn = TypeVar("Drawn")
Arguments = ParamSpec("Arguments")

INK, FAINT, PAPER = "#24303c", "#8b95a1", "#ffffff"
NOTHING, HATCH = "#eef1f5", "#b4bdc9"  # where nothing is known: no colours of a scale
# Of Okabe and Ito: distinct also for those who see fewer colours.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6a4c93", "#24303c")
MARKERS = "osD^vP*X"
LETTER, SMALL = 7.1, 5.9  # points that a letter of a title is wide, and of a label, or less

STYLE: dict[str, Any] = {
    "axes.edgecolor": FAINT,
    "axes.formatter.min_exponent": 4,  # 0.3 and 200 on axes of logarithms
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlepad": 9,
    "axes.titlesize": 12,
    "figure.facecolor": PAPER,
    "font.size": 10,
    "hatch.color": HATCH,
    "hatch.linewidth": 1.0,
    "image.cmap": "viridis",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "savefig.dpi": 150,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def as_written(text: str) -> str:
    """Return what Matplotlib draws as this text: between two dollars it would see a formula."""
    return text.replace("$", r"\$")


def wrapped(text: str, inches: float, letter: float = LETTER) -> str:
    """Return lines of a text, each in more lines where it is wider than so many inches."""
    length = int(inches * 72 / letter)
    return "\n".join("\n".join(textwrap.wrap(line, length)) for line in text.split("\n"))


def titled(axes: Any, *lines: str, inches: float) -> None:
    """Write lines above axes, none wider than so many inches."""
    axes.set_title(as_written(wrapped("\n".join(lines), inches)))


def styled(draw: Callable[Arguments, Drawn]) -> Callable[Arguments, Drawn]:
    """Return a function that draws in this style, and leaves the user's own alone."""

    @functools.wraps(draw)
    def in_style(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Drawn:
        from cycler import cycler
        from matplotlib import rc_context

        style: Any = {**STYLE, "axes.prop_cycle": cycler(color=COLORS)}
        with rc_context(style):
            return draw(*args, **kwargs)

    return in_style
