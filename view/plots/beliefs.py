"""Mass functions, and the belief and plausibility of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.belief.mass import MassFunction
from quercus.view.plots.style import cycle_colour, styled_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_FOCAL_SETS = 16
"""Maximum number of sets drawn: those of the largest masses."""


def mass_function(
    mass: MassFunction | Mapping[tuple[str, ...], float], classes: Sequence[str], *, ax: Axes | None = None
) -> Axes:
    """Draw the mass of each set of classes as a bar, the largest first.

    Parameters
    ----------
    mass
        A mass function, or masses by the names of the classes in a set, as in `TreeNode.mass`.
    classes
        The frame. The set of all of them is called *any*, the empty set *conflict*.
    ax
        Axes to draw on; None: in a new figure.

    Raises
    ------
    InvalidInput
        When `classes` do not fit the mass function.

    Examples
    --------
    >>> ax = mass_function({("red",): 0.7, ("red", "white"): 0.3}, ("red", "white"))
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['any', '{red}']
    """
    frame = Frame(tuple(classes))
    if not isinstance(mass, MassFunction):
        mass = MassFunction.of(frame.size, {frame.mask(names): value for names, value in mass.items()})
    if mass.size != frame.size:
        raise InvalidInput("classes", f"has {frame.size} names, the mass function {mass.size} classes")
    ranked = sorted(mass.focal, key=lambda pair: (pair[1], -pair[0]))
    shown = ranked[-MAX_FOCAL_SETS:]
    with styled_axes(ax, height=0.9 + 0.34 * len(shown)) as axes:
        axes.barh(range(len(shown)), [value for _, value in shown], color=cycle_colour(0), height=0.6)
        special = {0: "conflict", frame.full: "any"}
        names = [special.get(mask) or f"{{{', '.join(frame.names(mask))}}}" for mask, _ in shown]
        axes.set_yticks(range(len(shown)), names)
        axes.set_xlim(0, 1)
        axes.grid(False, axis="y")
        axes.set_xlabel("mass")
        if len(ranked) > MAX_FOCAL_SETS:
            axes.set_title(f"{len(ranked) - MAX_FOCAL_SETS} smaller masses are not shown")
    return axes


def belief_intervals(
    classes: Sequence[str], belief: ArrayLike, plausibility: ArrayLike, *, ax: Axes | None = None
) -> Axes:
    """Draw belief (filled) and plausibility (hollow) of each class.

    Parameters
    ----------
    classes
        Names.
    belief, plausibility
        (l,) of each, in [0, 1], as in a `Classification`.
    ax
        Axes to draw on; None: in a new figure.

    Raises
    ------
    InvalidInput
        When the lengths differ, or a belief exceeds its plausibility.

    Examples
    --------
    >>> ax = belief_intervals(("red", "white"), (0.6, 0.0), (1.0, 0.4))
    >>> len(ax.patches)
    4
    """
    low, high = np.asarray(belief, np.float64), np.asarray(plausibility, np.float64)
    if low.shape != (len(classes),) or high.shape != low.shape:
        raise InvalidInput("belief", f"and plausibility must have {len(classes)} values each")
    if not ((low >= 0) & (low <= high + 1e-9) & (high <= 1 + 1e-9)).all():
        raise InvalidInput("belief", "must lie in [0, plausibility], and plausibility in [0, 1]")
    rows = range(len(classes) - 1, -1, -1)
    with styled_axes(ax, height=0.9 + 0.34 * len(classes)) as axes:
        axes.barh(rows, high, color="none", edgecolor=cycle_colour(0), height=0.6, label="plausibility")
        axes.barh(rows, low, color=cycle_colour(0), height=0.6, label="belief")
        axes.set_yticks(rows, list(classes))
        axes.set_xlim(0, 1.02)
        axes.grid(False, axis="y")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return axes
