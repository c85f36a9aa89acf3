"""Accuracy: against the number of answers, and over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput
from quercus.view.plots.style import styled_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def learning_curve(
    answers: ArrayLike,
    scores: ArrayLike,
    *,
    label: str | None = None,
    band: Literal["error", "range"] = "error",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the number of answers, with a band over several runs. Call it again for another curve.

    Parameters
    ----------
    answers
        (p,) numbers of answers, increasing.
    scores
        (p,) of one run, or (runs, p).
    label
        Name of the curve, for the legend.
    band
        Around the mean of several runs: two standard errors (``error``), or from the worst to the best (``range``).
    ax
        Axes to draw on; None: in a new figure.

    Raises
    ------
    InvalidInput
        When the lengths differ, or `band` is none of these.

    Examples
    --------
    >>> ax = learning_curve([0, 10, 20], [[0.3, 0.7, 0.8], [0.4, 0.6, 0.9]], label="asked")
    >>> [line.get_label() for line in ax.get_lines()]
    ['asked']
    """
    x, y = np.asarray(answers, np.float64), np.atleast_2d(np.asarray(scores, np.float64))
    if x.ndim != 1 or y.ndim != 2 or y.shape[1] != x.size:
        raise InvalidInput("scores", f"have the shape {y.shape}, must have (runs, {x.size}) or ({x.size},)")
    if band not in {"error", "range"}:
        raise InvalidInput("band", f"is {band!r}, must be error or range")
    mean = y.mean(axis=0)
    if band == "range":
        low, high = y.min(axis=0), y.max(axis=0)
    else:
        error = y.std(axis=0, ddof=1 if len(y) > 1 else 0) / np.sqrt(len(y))
        low, high = mean - 2 * error, mean + 2 * error
    with styled_axes(ax) as axes:
        (line,) = axes.plot(x, mean, label=label)
        if len(y) > 1:
            axes.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        axes.set_xlabel("answers")
        axes.set_ylabel("accuracy")
        if label is not None:
            axes.legend(loc="lower right")
    return axes


def accuracy_over_time(
    right: ArrayLike, *, memories: Sequence[int] = (100, 1000), ax: Axes | None = None
) -> Axes:
    """Draw the accuracy of predictions made before their label was known, averaged over memories of different length.

    A memory of `m` rows gives the last row weight 1, the row before it 1 - 1/m, the next (1 - 1/m)², and so on.

    Parameters
    ----------
    right
        (n,) in order, true for a right prediction, or its expected accuracy in [0, 1].
    memories
        Rows that each curve remembers, at least 1.
    ax
        Axes to draw on; None: in a new figure.

    Raises
    ------
    InvalidInput
        When a value or a memory is out of bounds.

    Examples
    --------
    >>> ax = accuracy_over_time([True, True, False, True], memories=(2,))
    >>> ax.get_lines()[0].get_ydata().round(2).tolist()
    [1.0, 1.0, 0.43, 0.73]
    """
    values = np.asarray(right, np.float64)
    if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
        raise InvalidInput("right", "must be at least one number in [0, 1], or true and false")
    if not memories or min(memories) < 1:
        raise InvalidInput("memories", f"are {list(memories)}, must be numbers of rows, at least 1 each")
    with styled_axes(ax) as axes:
        for memory in memories:
            axes.plot(
                np.arange(1, values.size + 1), faded_mean(values, memory), label=f"memory of {memory:,} rows"
            )
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("rows")
        axes.set_ylabel("accuracy")
        axes.legend(loc="lower right")
    return axes


def faded_mean(values: Floats, memory: int) -> Floats:
    """Return the mean at each moment, weighing older values less: (n,)."""
    keep = 1 - 1 / memory
    total = weight = 0.0
    means = np.empty(values.size)
    for at, value in enumerate(values):
        total, weight = keep * total + value, keep * weight + 1
        means[at] = total / weight
    return means
