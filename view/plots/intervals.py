"""Gain-ratio intervals of a node: the winning attribute, or those that still compete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quercus.belief.errors import InvalidInput
from quercus.view.plots.style import MUTED, cycle_colour, styled_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ATTRIBUTES = 20
"""Maximum number of attributes drawn: those whose gain ratio may be largest."""


def gain_ratio_intervals(
    node: Mapping[str, tuple[float, float]] | Any, *, chosen: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the gain-ratio interval of each attribute of a node.

    Blue intervals belong to attributes that may still be the best. Grey ones lie below the dashed line, which is the
    largest lower end: these attributes are dominated.

    Parameters
    ----------
    node
        A node of `quercus.client.Client.tree`, or the intervals by name of the attribute.
    chosen
        The attribute that the node splits on; it is printed bold. None: the node's own.
    ax
        Axes to draw on; None: in a new figure.

    Raises
    ------
    InvalidInput
        When there is no interval.

    Examples
    --------
    >>> ax = gain_ratio_intervals({"proline": (0.31, 0.52), "ash": (0.02, 0.17)}, chosen="proline")
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['ash', 'proline']
    """
    intervals = node if isinstance(node, Mapping) else node.intervals
    if not intervals:
        raise InvalidInput("node", "has no intervals: it is a leaf, or its learner has none")
    chosen = chosen if chosen is not None else getattr(node, "attribute", None)
    ranked = sorted(intervals.items(), key=lambda each: (each[1][1], each[1][0]))
    shown = ranked[-MAX_ATTRIBUTES:]
    best = max(low for _, (low, _) in ranked)
    with styled_axes(ax, height=0.9 + 0.32 * len(shown)) as axes:
        for row, (_, (low, high)) in enumerate(shown):
            ink = cycle_colour(0) if high >= best else MUTED
            axes.plot([low, high], [row, row], color=ink, linewidth=7, solid_capstyle="butt")
            axes.plot(
                [low, high], [row, row], "|", color=ink, markersize=13
            )  # visible even if the length is 0
        axes.axvline(best, linestyle="--", linewidth=1, color=MUTED)
        axes.set_yticks(range(len(shown)), [name for name, _ in shown])
        for tick, (name, _) in zip(axes.get_yticklabels(), shown, strict=True):
            tick.set_fontweight("bold" if name == chosen else "normal")
        axes.set_ylim(-0.6, len(shown) - 0.4)
        axes.grid(False, axis="y")
        axes.set_xlabel("gain ratio")
        rivals = sum(high >= best for _, (_, high) in ranked)
        more = f"; {len(ranked) - MAX_ATTRIBUTES} more are not shown" if len(ranked) > MAX_ATTRIBUTES else ""
        axes.set_title(f"{'settled' if rivals == 1 else f'{rivals} attributes compete'}{more}")
    return axes
