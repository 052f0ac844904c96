"""Draw the pictures of the examples in the style of the package."""

import matplotlib as mpl
from cycler import cycler

from gzkcore.evaluate.draw import COLORS, STYLE


def use(_gallery_conf, _name):
    """Set the style, before and after each example: sphinx-gallery calls this."""
    mpl.rcParams.update({**STYLE, "axes.prop_cycle": cycler(color=COLORS)})
