"""The α-cut: the class probabilities that the labels leave plausible, drawn on the triangle of three classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput
from quercus.view.plots.style import INK, MUTED, cycle_colour, styled_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = 160
"""Points on a side of the triangle."""
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])


def alpha_cut(
    contours: ArrayLike,
    counts: ArrayLike | None = None,
    *,
    alpha: float = 0.8,
    classes: Sequence[str] = ("A", "B", "C"),
    ax: Axes | None = None,
) -> Axes:
    """Draw the plausibility of each distribution over three classes, given labels, and shade the α-cut.

    A corner of the triangle is certainty of its class. The relative likelihood of a point is the likelihood of the
    labels there, divided by the maximum (theory §2.2). It is at least α in the shaded region; the dot is the maximum.

    Parameters
    ----------
    contours
        (n, 3) plausibility of each class, for each label; in [0, 1], none all zero.
    counts
        (n,) number of occurrences of each; None: 1.
    alpha
        Level of the cut, in (0, 1].
    classes
        Names of the three classes.
    ax
        Axes to draw on; None: in a new figure.

    Raises
    ------
    InvalidInput
        If an argument is not as described.

    Examples
    --------
    >>> ax = alpha_cut([[1, 0, 0], [0, 1, 1]], classes=("red", "white", "rosé"))
    >>> [text.get_text() for text in ax.texts if text.get_text().isalpha()]
    ['red', 'white', 'rosé']
    """
    labels = np.atleast_2d(np.asarray(contours, np.float64))
    if labels.ndim != 2 or labels.shape[1] != 3:
        raise InvalidInput("contours", f"have the shape {labels.shape}, must have (n, 3)")
    wrong = ~((labels >= 0) & (labels <= 1)).all(axis=1) | (labels.max(axis=1) == 0)
    if wrong.any():
        at = int(wrong.argmax())
        raise InvalidInput(
            f"contours[{at}]", f"is {labels[at].tolist()}, must lie in [0, 1] and not be all zero"
        )
    weights = np.ones(len(labels)) if counts is None else np.asarray(counts, np.float64)
    if weights.shape != (len(labels),) or not (weights >= 0).all():
        raise InvalidInput("counts", f"must be {len(labels)} numbers that are not negative")
    if not 0 < alpha <= 1:
        raise InvalidInput("alpha", f"is {alpha!r}, must lie in (0, 1]")
    if len(classes) != 3:
        raise InvalidInput(
            "classes", f"has {len(classes)} names, must have 3: a triangle has no room for more"
        )
    i, j = np.meshgrid(np.arange(STEPS + 1), np.arange(STEPS + 1))
    inside = i + j <= STEPS
    first, second = i[inside] / STEPS, j[inside] / STEPS
    points = np.stack([first, second, 1 - first - second], axis=1)
    theta = np.clip(points, 1e-12, 1.0)  # slightly off the sides, where a likelihood may be zero
    relative = relative_likelihood(theta, labels, weights)
    x, y = (theta @ CORNERS).T
    with styled_axes(ax, height=4.2) as axes:
        from matplotlib.tri import Triangulation  # noqa: PLC0415

        triangles = Triangulation(x, y)
        axes.tricontourf(triangles, relative, levels=[alpha, 1.0001], colors=[cycle_colour(0)], alpha=0.35)
        lines = sorted({0.1, 0.5, alpha} - {1.0})
        drawn = axes.tricontour(triangles, relative, levels=lines, colors=[MUTED], linewidths=1)
        axes.clabel(drawn, fmt="%.2g", fontsize=8)
        axes.plot(*np.vstack([CORNERS, CORNERS[:1]]).T, color=INK, linewidth=1)
        axes.plot(*theta[relative.argmax()] @ CORNERS, "o", color=INK, markersize=5)
        for corner, name, side, up in zip(
            CORNERS, classes, ("right", "left", "center"), (-1, -1, 1), strict=True
        ):
            axes.annotate(name, corner, (0, 8 * up), textcoords="offset points", ha=side, va="center")
        axes.set_aspect("equal")
        axes.set_xlim(-0.12, 1.12)
        axes.set_axis_off()
        axes.set_title(f"plausible at level {alpha:g}")
    return axes


def relative_likelihood(theta: Floats, labels: Floats, weights: Floats) -> Floats:
    """Return the likelihood of labels at each point, divided by the largest of all points: (m,)."""
    with np.errstate(divide="ignore"):
        log = np.log(theta @ labels.T) @ weights
    best = log.max()
    return np.exp(log - best) if np.isfinite(best) else np.zeros(len(theta))
