"""A query in words: its row, the evidence about its class, and its reason; what must not bias a labeller is empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from quercus.client.algorithms import name_of
from quercus.client.guess import withholds_guess
from quercus.client.results import Model, Query, Reason
from quercus.specification.algorithms import ACTIVE_FOREST
from quercus.specification.reasons import Shares
from quercus.view.models import nominal_names
from quercus.view.reasons import facts_text, place_text, why_text
from quercus.view.rows import MAX_VALUES, ShownItem, ShownValue, shown_curves, shown_items, shown_values
from quercus.view.words import is_vacuous, known_text

MOST_RIVALS: Final = 8
MOST_OPEN: Final = 24
"""Values that are shown at once, where there are more."""
MOST_ASKED: Final = 3
"""Classes that a question names."""
IDLE: Final = {
    "nothing_to_ask": "There are no queries now. New rows may change that.",
    "all_leased": "Other labellers hold all open queries.",
    "budget_spent": "The budget is spent. To raise it: quercus models update {model} --budget N",
    "growing": "The tree is learning from your last answer.",
    "not_for_you": "You have answered or skipped every open query, or it is postponed.",
    "share_spent": "You have given the maximum number of answers of one labeller.",
    "hour_spent": "The maximum number of answers of this hour is reached.",
    "hands_full": "You hold the maximum number of queries. Is another page open?",
}
"""Reasons why a labeller gets no query now."""


@dataclass(frozen=True)
class QueryDescription:
    """The parts of a query that a person sees.

    Attributes
    ----------
    groups
        Values by the title of their group.
    more
        Number of attributes that are left out.
    curves
        Values that are shown as curves.
    beside
        Parts shown beside the values.
    why, place
        The reason of the query, and the leaf that its row reaches; empty if they are withheld.
    facts
        What the strategy found, in one line.
    of_forest
        Whether a forest made the query; the tree beside it only explains.
    rivals
        Name and ends of the gain-ratio intervals that compete.
    more_rivals
        Number of those that are left out.
    known
        The evidence of the class, in a sentence; empty if it is withheld.
    graded
        Name and plausibility of each class, if there is more to see than which are ruled out.
    """

    groups: list[tuple[str, list[ShownValue]]]
    more: int
    curves: list[ShownItem]
    beside: list[ShownItem]
    why: str
    place: str
    facts: str
    of_forest: bool
    rivals: list[tuple[str, float, float]]
    more_rivals: int
    known: str
    graded: list[tuple[str, float]]


def describe_query(query: Query, model: Model, most_values: int = MAX_VALUES) -> QueryDescription:
    """Return the parts of a query that a person sees, with at most so many values."""
    presentation = model.specification.presentation
    withheld = presentation.withheld if presentation is not None else ()
    groups, more = shown_values(query.values, model, most_values)
    if withholds_guess(model):  # of a query that was leased before
        told = tuple(fact for fact in query.reason.facts if not isinstance(fact.value, Shares))
        query = replace(query, reason=replace(query.reason, facts=told))
    has_reason = "reason" not in withheld and query.reason.node_count > 0
    has_belief = "belief" not in withheld and bool(query.contour)
    rivals = query.reason.rivals
    return QueryDescription(
        groups,
        more,
        shown_curves(query.values, model),
        shown_items(query, model),
        why_text(query) if has_reason else "",
        place_text(query.reason, nominal_names(model)) if has_reason else "",
        facts_text(query) if has_reason else "",
        name_of(model.specification.algorithm) == ACTIVE_FOREST,
        [(each.name, each.lower, each.upper) for each in rivals[:MOST_RIVALS]] if has_reason else [],
        max(0, len(rivals) - MOST_RIVALS),
        known_text(query.classes, query.contour) if has_belief else "",
        graded_classes(query.classes, query.contour) if has_belief else [],
    )


def graded_classes(classes: Sequence[str], contour: Sequence[float]) -> list[tuple[str, float]]:
    """Return classes with their plausibilities, if there is more to see than which are ruled out.

    Examples
    --------
    >>> [graded_classes(("a", "b"), (1.0, low)) for low in (0.25, 0.0, 1.0)]
    [[('a', 1.0), ('b', 0.25)], [], []]
    """
    if is_vacuous(contour) or len({value for value in contour if value > 0}) <= 1:
        return []
    return list(zip(classes, contour, strict=True))


def question_text(classes: Sequence[str]) -> str:
    """Return what a labeller is asked.

    Examples
    --------
    >>> question_text(("edible", "poisonous")), question_text(("a", "b", "c", "d"))
    ('Is it edible or poisonous?', 'What is it?')
    """
    if len(classes) > MOST_ASKED:
        return "What is it?"
    return f"Is it {', '.join(classes[:-1])} or {classes[-1]}?"


Groups = list[tuple[str, list[ShownValue]]]


def fold_values(groups: Groups, reason: Reason, most: int = MOST_OPEN) -> tuple[Groups, Groups]:
    """Return the values to show at once, and the folded ones; each stays in its group, in declared order.

    Where all find room they keep their places from row to row. Else those come first that the tree tests on the way of
    the row, as far as the reason says.

    Examples
    --------
    >>> values = [ShownValue(name, "1", False, "", name) for name in "abcd"]
    >>> first, rest = fold_values([("", values)], Reason((("d", "< 2"), ("b", ">= 1"))), most=2)
    >>> [value.title for value in first[0][1]], [value.title for value in rest[0][1]]
    (['d', 'b'], ['a', 'c'])
    """
    if sum(len(values) for _, values in groups) <= most:
        return groups, []
    named = [
        *(name for name, _ in reason.path),
        *(rival.attribute for rival in reason.rivals),
        reason.attribute,
    ]
    tested = {name: place for place, name in reversed(list(enumerate(named)))}
    by_name = {value.attribute: (group, value) for group, values in groups for value in values}
    foremost = sorted(by_name, key=lambda name: tested.get(name, len(named)))[:most]  # a stable sort
    left = [name for name in by_name if name not in set(foremost)]
    return _by_group([by_name[name] for name in foremost]), _by_group([by_name[name] for name in left])


def _by_group(values: Sequence[tuple[str, ShownValue]]) -> Groups:
    grouped: dict[str, list[ShownValue]] = {}
    for group, value in values:
        grouped.setdefault(group, []).append(value)
    return list(grouped.items())


def gain_text(lower: float, upper: float) -> str:
    """Return the gain ratio of a test; how far it lies below 0, that is below chance, tells a labeller nothing.

    Examples
    --------
    >>> gain_text(0.1, 0.25), gain_text(-1.0, 0.25), gain_text(-1.0, -0.5)
    ('0.100 to 0.250', 'at most 0.250', 'below 0')
    """
    if lower >= 0:
        return f"{lower:.3f} to {upper:.3f}"
    return f"at most {upper:.3f}" if upper >= 0 else "below 0"


def idle_text(reason: str, model: str) -> str:
    """Return why there is no query now, in a sentence; empty if the server gave no reason.

    Examples
    --------
    >>> idle_text("all_leased", "wine")
    'Other labellers hold all open queries.'
    """
    return IDLE.get(reason, reason).format(model=model)
