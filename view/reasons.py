"""Reasons of queries in words: what the strategy said, with the shares and intervals that it found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from quercus.client.guess import NEGLIGIBLE_SHARE, likely_shares
from quercus.specification.conditions import path_text
from quercus.specification.reasons import FactValue, Shares
from quercus.specification.shares import decimal_text, percent_text
from quercus.view.words import counted

if TYPE_CHECKING:  # its module imports numpy
    from quercus.client.results import Query, Reason, Rival

MOST_NAMED: Final = 3
"""Classes and rivals that a sentence names."""


def why_text(query: Query) -> str:
    """Return why a query asks about its row: a few sentences; empty if the reason is withheld."""
    reason = query.reason
    if not reason.node_count:
        return ""
    guesses = [fact.value for fact in reason.facts if isinstance(fact.value, Shares) and fact.value.who]
    said = [_rivals_text(reason.rivals)] if reason.attribute else []
    said += [_guess_text(guess, query) for guess in guesses]
    if reason.sentence:
        said.append(reason.sentence)
    elif any(max(likely_shares(guess.theta, query.contour)) > 1 - NEGLIGIBLE_SHARE for guess in guesses):
        said.append("Your answer checks that.")
    return " ".join(filter(None, said)) or f"Its label is worth most by the strategy {reason.strategy}."


def facts_text(query: Query) -> str:
    """Return what else the strategy found, in one line: numbers, counts, intervals, texts and other estimates."""
    told = ((fact.name, _value_text(fact.value, query.classes)) for fact in query.reason.facts)
    return " · ".join(
        f"{name} {value}" for name, value in told if value and f"{value} {name}" not in query.reason.sentence
    )


def _value_text(value: FactValue, classes: Sequence[str]) -> str:
    match value:
        case Shares(theta, who):
            return "" if who else shares_text(classes, theta)
        case (lower, upper):
            return f"{decimal_text(lower)} to {decimal_text(upper)}"
        case int(count):
            return f"{count:,}"
        case float(number):
            return decimal_text(number)
        case text:
            return str(text)


def place_text(reason: Reason, nominal: Collection[str] = frozenset()) -> str:
    """Return where the row, or the contested node, is in the tree."""
    if not reason.node_count:
        return ""
    rows = counted(reason.node_count, "row")
    path = path_text(reason.path, nominal)
    if reason.rivals or reason.attribute:
        where = f"where {path}" if path else "at the root"
        return f"The tree is undecided {where} ({rows})."
    return f"It ends where {path} (a leaf of {rows})." if path else f"The tree is a single leaf of {rows}."


def shares_text(classes: Sequence[str], theta: Sequence[float]) -> str:
    """Return the foremost classes of an estimate with their shares, the likeliest first.

    Examples
    --------
    >>> shares_text(("Barolo", "Grignolino", "Barbera"), (0.44, 0.552, 0.002))
    'Grignolino (55 %), then Barolo (44 %)'
    >>> shares_text(("edible", "poisonous"), (0.998, 0.002))
    'edible (over 99 %)'
    """
    foremost = sorted(zip(theta, classes, strict=True), key=lambda each: -each[0])[:MOST_NAMED]
    first, *others = [
        f"{name} ({percent_text(share)})" for share, name in foremost if share >= NEGLIGIBLE_SHARE
    ]
    return f"{first}, then {' and '.join(others)}" if others else first


def _guess_text(guess: Shares, query: Query) -> str:
    """Return what somebody thinks of the class. It never speaks of doubt, since a guess may be certain."""
    theta = likely_shares(guess.theta, query.contour)
    possible = [k for k in range(len(theta)) if not query.contour or query.contour[k] > 0]
    among = [theta[k] for k in possible]
    if len(possible) > 1 and max(among) - min(among) < NEGLIGIBLE_SHARE:
        which = (
            "the classes" if len(possible) == len(theta) else " and ".join(query.classes[k] for k in possible)
        )
        return f"{guess.who} cannot tell {which} apart here."
    return f"{guess.who} guesses {shares_text(query.classes, theta)}."


def _rivals_text(rivals: Sequence[Rival]) -> str:
    names = list(dict.fromkeys(rival.name for rival in rivals))
    if not names:
        return ""
    if len(names) == 1:
        return f"A test of {names[0]} may yet gain more than chance does."
    more = len(names) - MOST_NAMED
    listed = ", ".join(names[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
    return f"{len(names)} tests compete to split its node: {listed}."
