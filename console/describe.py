"""A query in words and small pictures: what it is, what is known of its class, and why it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quercus.client.reasons import place_text, why_text
from quercus.client.results import Model, Query, Value
from quercus.client.words import is_vacuous, known_text
from quercus.console.draw.intervals import interval_bars
from quercus.console.web import number_text
from quercus.specification.attributes import Nominal

MAX_VALUES = 300
MAX_TEXT = 2_000
MOST_RIVALS = 8


@dataclass(frozen=True)
class Described:
    """What a page shows of a query.

    Attributes
    ----------
    values
        Name, text, and whether it is missing, in the order of the attributes.
    more
        How many attributes are left out.
    why, place
        Why it is asked, and where it ends in the tree.
    rivals
        Name, ends and picture of the gain-ratio intervals that compete.
    known
        What is known of the class, in a sentence.
    bars
        Name and plausibility of each class, where there is something to draw.
    """

    values: list[tuple[str, str, bool]]
    more: int
    why: str
    place: str
    rivals: list[tuple[str, float, float, str]]
    known: str
    bars: list[tuple[str, float]]


def describe(query: Query, model: Model) -> Described:
    """Return what a page shows of a query."""
    attributes = model.specification.attributes
    nominal = frozenset(each.name for each in attributes if isinstance(each, Nominal))
    shown = [(each.name, query.values.get(each.name)) for each in attributes[:MAX_VALUES]]
    known = known_text(query.classes, query.contour)
    return Described(
        [(name, value_text(value), value is None) for name, value in shown],
        len(attributes) - len(shown),
        why_text(query, nominal),
        place_text(query.reason, nominal),
        interval_bars([(each.name, each.lower, each.upper) for each in query.reason.rivals[:MOST_RIVALS]]),
        known[0].upper() + known[1:] + ("" if known.endswith(".") else "."),
        graded(query.classes, query.contour),
    )


def graded(classes: Sequence[str], contour: Sequence[float]) -> list[tuple[str, float]]:
    """Return classes with their plausibilities, if there is more to see than which are ruled out.

    Examples
    --------
    >>> graded(("a", "b"), (1.0, 0.25)), graded(("a", "b"), (1.0, 0.0)), graded(("a", "b"), (1.0, 1.0))
    ([('a', 1.0), ('b', 0.25)], [], [])
    """
    if is_vacuous(contour) or len({value for value in contour if value > 0}) <= 1:
        return []
    return list(zip(classes, contour, strict=True))


def value_text(value: Value) -> str:
    """Return a value as people read it.

    Examples
    --------
    >>> value_text(13.0), value_text("red"), value_text(None)
    ('13', 'red', 'missing')
    """
    if value is None:
        return "missing"
    return value[:MAX_TEXT] if isinstance(value, str) else number_text(float(value))
