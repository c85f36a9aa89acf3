"""The style of the pictures, and axes in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

STYLE: Final = str(Path(__file__).with_name("quercus.mplstyle"))
MUTED: Final = "#999999"
"""Colour of parts that are ruled out or serve as background."""
INK: Final = "#333333"


@contextmanager
def styled_axes(ax: Axes | None, height: float | None = None) -> Iterator[Axes]:
    """Give axes to draw into, in the style of the house.

    Parameters
    ----------
    ax : those that are given; None: of a new figure.
    height : height of a new figure, in inches; None: the height of the style.
    """
    with mpl.rc_context(fname=STYLE):
        if ax is None:
            width, usual = mpl.rcParams["figure.figsize"]
            _, ax = plt.subplots(figsize=(width, height or usual))
        else:
            for side in ("top", "right"):
                ax.spines[side].set_visible(False)
            ax.grid(True)
            ax.set_axisbelow(True)
        yield ax


def cycle_colour(number: int) -> str:
    """Return a colour of the style's cycle."""
    with mpl.rc_context(fname=STYLE):
        cycle = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    return f"#{cycle[number % len(cycle)].lstrip('#')}"
