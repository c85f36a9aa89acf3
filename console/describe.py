"""A query in words and small pictures: its row, the evidence about its class, and its reason."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from quercus.client.algorithms import name_of
from quercus.client.reasons import facts_text, place_text, why_text
from quercus.client.results import Model, Query
from quercus.client.words import is_vacuous, known_text
from quercus.console.display import ShownItem, ShownValue, shown_items, shown_values
from quercus.console.draw.intervals import interval_bars
from quercus.specification.algorithms import ACTIVE_FOREST
from quercus.specification.attributes import Nominal

MOST_RIVALS = 8


@dataclass(frozen=True)
class QueryDescription:
    """The parts of a query that a page shows.

    Attributes
    ----------
    groups
        Values by the title of their group.
    more
        Number of attributes that are left out.
    beside
        Parts shown beside the values.
    why, place
        The reason of the query, and the leaf that its row reaches; empty if they are withheld.
    facts
        What the strategy found, in one line.
    of_forest
        Whether a forest made the query; the tree beside it only explains.
    rivals
        Name, ends and picture of the gain-ratio intervals that compete.
    known
        The evidence of the class, in a sentence; empty if it is withheld.
    bars
        Name and plausibility of each class, where there is something to draw.
    """

    groups: list[tuple[str, list[ShownValue]]]
    more: int
    beside: list[ShownItem]
    why: str
    place: str
    facts: str
    of_forest: bool
    rivals: list[tuple[str, float, float, str]]
    known: str
    bars: list[tuple[str, float]]


def describe_query(query: Query, model: Model, origins: Collection[str], data_url: str) -> QueryDescription:
    """Return the parts of a query that a page shows; ``origins`` and ``data_url`` as in `shown_items`."""
    nominal = frozenset(each.name for each in model.specification.attributes if isinstance(each, Nominal))
    presentation = model.specification.presentation
    withheld = presentation.withheld if presentation is not None else ()
    groups, more = shown_values(query.values, model)
    known = "" if "belief" in withheld else known_text(query.classes, query.contour)
    has_reason = "reason" not in withheld
    return QueryDescription(
        groups,
        more,
        shown_items(query, model, origins, data_url),
        why_text(query) if has_reason else "",
        place_text(query.reason, nominal) if has_reason else "",
        facts_text(query) if has_reason else "",
        name_of(model.specification.algorithm) == ACTIVE_FOREST,
        interval_bars([(each.name, each.lower, each.upper) for each in query.reason.rivals[:MOST_RIVALS]]),
        known[:1].upper() + known[1:] + ("" if not known or known.endswith(".") else "."),
        graded_classes(query.classes, query.contour) if query.contour else [],
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
