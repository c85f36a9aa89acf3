"""The guess in the reason of a query: the class that the model considers likeliest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quercus.specification.reasons import Shares

if TYPE_CHECKING:  # its module imports numpy
    from quercus.client.results import Model, Query

LEAST_GUESSED_SHARE: Final = 0.5
"""Minimum share of the likeliest class for it to be offered as a guess."""
LEAST_LEAD: Final = 0.1
"""Minimum lead over the second class for it to be offered: less is a coin toss."""
NEGLIGIBLE_SHARE: Final = 0.005
"""Shares that differ by less count as equal."""


def guess_of(query: Query, model: Model) -> tuple[int, float] | None:
    """Return the index of the guessed class in the frame, and its share in (0, 1].

    ``None``: the reason has no estimate, the presentation withholds it, or it is little better than a coin toss.
    """
    if withholds_guess(model):  # the query may have been leased before that was set
        return None
    for fact in query.reason.facts:
        if isinstance(fact.value, Shares):
            return foremost_class(likely_shares(fact.value.theta, query.contour))
    return None


def foremost_class(theta: Sequence[float]) -> tuple[int, float] | None:
    """Return the index and the share of the likeliest class; None if it is little better than a coin toss.

    Examples
    --------
    >>> foremost_class((0.2, 0.8)), foremost_class((0.54, 0.46)), foremost_class((0.4, 0.2, 0.2, 0.2))
    ((1, 0.8), None, None)
    """
    first, second = sorted(theta, reverse=True)[:2]
    is_clear = first >= LEAST_GUESSED_SHARE and first - second >= LEAST_LEAD
    return (theta.index(first), first) if is_clear else None


def withholds_guess(model: Model) -> bool:
    """Return whether labellers of a model must not see its guess."""
    presentation = model.specification.presentation
    return presentation is not None and not {"reason", "guess"}.isdisjoint(presentation.withheld)


def likely_shares(theta: Sequence[float], contour: Sequence[float]) -> tuple[float, ...]:
    """Return an estimate weighted by the plausibility of each class, that is, given what is known of the row.

    Parameters
    ----------
    theta
        (l,) share of each class.
    contour
        (l,) plausibility of each class; empty: withheld.
    """
    if not contour:
        return tuple(theta)
    joint = [share * plausibility for share, plausibility in zip(theta, contour, strict=True)]
    total = sum(joint)
    return tuple(value / total for value in joint) if total > 0 else tuple(theta)
