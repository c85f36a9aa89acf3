"""The style of the pictures, and axes in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quercus.specification.distribution import install_command

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE: Final = str(Path(__file__).with_name("quercus.mplstyle"))
MUTED: Final = "#999999"
"""Colour of parts that are ruled out or in the background."""
INK: Final = "#333333"


def pyplot() -> Any:
    """Return Matplotlib's pyplot: it is imported when something is drawn, not before.

    Raises
    ------
    ModuleNotFoundError
        Naming the extra to install.
    """
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"pictures need {error.name}: {install_command('plots')}", name=error.name
        ) from None
    return plt


@contextmanager
def styled_axes(ax: Axes | None, height: float | None = None) -> Iterator[Axes]:
    """Yield axes to draw into, in the style of Quercus.

    Parameters
    ----------
    ax : the axes; None: those of a new figure.
    height : height of a new figure, in inches; None: the height of the style.
    """
    plt = pyplot()
    with plt.rc_context(fname=STYLE):
        if ax is None:
            width, usual = plt.rcParams["figure.figsize"]
            _, ax = plt.subplots(figsize=(width, height or usual))
        else:
            for side in ("top", "right"):
                ax.spines[side].set_visible(False)
            ax.grid(True)
            ax.set_axisbelow(True)
        yield ax


def cycle_colour(number: int) -> str:
    """Return a colour of the style's cycle."""
    plt = pyplot()
    with plt.rc_context(fname=STYLE):
        cycle = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    return f"#{cycle[number % len(cycle)].lstrip('#')}"
