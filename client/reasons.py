"""Reasons of queries in plain sentences, one for each kind of reason."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from quercus.client.conditions import condition_of, path_text
from quercus.specification.parameters import TO_THE_BUDGET, WHILE_CONTESTED
from quercus.specification.shares import percent_text
from quercus.specification.strategies import MEMORY_DISAGREEMENT

if TYPE_CHECKING:  # its module imports numpy
    from quercus.client.query_results import CommitteeReason, ForestReason, Query, Reason
    from quercus.client.results import Model

MOST_NAMED: Final = 3
"""Classes and rivals that a sentence names."""

NEGLIGIBLE_SHARE: Final = 0.005
"""A class with a smaller share is not named, and shares that differ by less are alike."""
NOTABLE_DISAGREEMENT: Final = 0.05
"""Memories that are nearer than this to their mean do not disagree: mean total variation, in [0, 1]."""

_CHILD_SENTENCES: Final = {
    "published": "This label tells most about the rows where {child}.",
    "shared": "For its size, this part of the tree has had the fewest answers.",
    "small-regret": "Here a wrong choice between them would cost most.",
    "split-change": "This label is expected to separate them most.",
}
_LEAF_SENTENCES: Final = {
    "leaf-width": "It ends in the leaf where least is known of most rows.",
    "prediction-change": "This label is expected to change the predictions of most rows.",
}


def why_it_stopped(model: Model) -> str:
    """Return why a model with budget left makes no queries, in words; empty if it does, or may do so again soon."""
    waits = model.lag or model.queries_open or model.queries_leased
    spent = model.queries_answered >= model.budget
    if waits or spent or not model.instance_count or model.specification.ask != WHILE_CONTESTED:
        return ""
    if model.settled is False:
        return "it asks nothing now: no row that it may ask about is left"
    settled = "no split is contested and every leaf has a label"
    why = settled if model.settled else f"{settled}, or no row is left"
    return f"it stopped asking: {why}; --ask {TO_THE_BUDGET} goes on"


def why_text(query: Query, nominal: Collection[str] = frozenset()) -> str:
    """Return why a query asks about its row: one or two sentences.

    Parameters
    ----------
    query
        With its reason.
    nominal
        Names of the nominal attributes of the model.
    """
    reason = query.reason
    if not reason.node_count:
        return "The reason is withheld."
    if reason.forest is not None:
        return _forest_text(reason.forest, query, reason.strategy)
    if reason.committee is not None:
        return _committee_text(reason.committee, query)
    if reason.attribute:
        return _rivals_text(reason, nominal)
    return _LEAF_SENTENCES.get(reason.strategy) or _by_strategy(reason.strategy)


def _by_strategy(name: str) -> str:
    """Return the sentence for a strategy that this client does not know: a newer server's."""
    return f"Its label is worth most by the strategy {name}."


def place_text(reason: Reason, nominal: Collection[str] = frozenset()) -> str:
    """Return where the row, or the contested node, is in the tree."""
    if not reason.node_count:
        return ""
    rows = f"{reason.node_count:,} row{'' if reason.node_count == 1 else 's'}"
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


def _likely_shares(theta: Sequence[float], contour: Sequence[float]) -> tuple[float, ...]:
    """Return an estimate given what is known of the row: in proportion to the plausibility of each class."""
    if not contour:  # withheld
        return tuple(theta)
    joint = [share * plausibility for share, plausibility in zip(theta, contour, strict=True)]
    total = sum(joint)
    return tuple(value / total for value in joint) if total > 0 else tuple(theta)


def _guess_text(who: str, query: Query, theta: Sequence[float]) -> str:
    """Return what somebody thinks of the class. It never speaks of doubt, since a guess may be certain."""
    possible = [k for k in range(len(theta)) if not query.contour or query.contour[k] > 0]
    among = [theta[k] for k in possible]
    if len(possible) > 1 and max(among) - min(among) < NEGLIGIBLE_SHARE:
        which = (
            "the classes" if len(possible) == len(theta) else " and ".join(query.classes[k] for k in possible)
        )
        return f"{who} cannot tell {which} apart here."
    return f"{who} guesses {shares_text(query.classes, theta)}."


def _committee_text(reason: CommitteeReason, query: Query) -> str:
    stands = _coverage_text(reason.stands_for)
    if not reason.theta:
        return stands or "No row is known yet, so the first ones are drawn by lot."
    if reason.by_cover:
        return f"It is unlike the rows that are known. {stands}".rstrip()
    theta = _likely_shares(reason.theta, query.contour)
    return f"{_guess_text('The committee of trees', query, theta)} {stands or _check_text(theta)}".rstrip()


def _forest_text(reason: ForestReason, query: Query, strategy: str) -> str:
    theta = _likely_shares(reason.theta, query.contour)
    disagrees = reason.disagreement >= NOTABLE_DISAGREEMENT and not _is_sure(theta)
    if strategy == MEMORY_DISAGREEMENT and disagrees:
        sentence = (
            "What was learned lately and what was learned before disagree about it: together they guess "
            f"{shares_text(query.classes, theta)}."
        )
    else:
        sentence = _guess_text("The model", query, theta)
    return f"{sentence} {_coverage_text(reason.stands_for) or _check_text(theta)}".rstrip()


def _is_sure(theta: Sequence[float]) -> bool:
    """Return whether one class has all but a negligible share."""
    return max(theta) > 1 - NEGLIGIBLE_SHARE


def _check_text(theta: Sequence[float]) -> str:
    """Return what an answer is good for where the class is clear and no similar row waits."""
    return "Your answer checks that." if _is_sure(theta) else ""


def _coverage_text(count: int) -> str:
    if count <= 0:
        return ""
    if count == 1:
        return "1 similar row waits; your answer helps with that too."
    return f"{count:,} similar rows wait; your answer helps with all."


def _rivals_text(reason: Reason, nominal: Collection[str]) -> str:
    child = condition_of(reason.attribute, reason.value, is_nominal=reason.attribute in nominal).text
    sentence = _CHILD_SENTENCES.get(reason.strategy) or _by_strategy(reason.strategy)
    names = list(dict.fromkeys(rival.name for rival in reason.rivals))
    if not names:
        return sentence.format(child=child)
    if len(names) == 1:
        return f"A test of {names[0]} may yet gain more than chance does. {sentence.format(child=child)}"
    more = len(names) - MOST_NAMED
    listed = ", ".join(names[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
    return f"{len(names)} tests compete to split its node: {listed}. {sentence.format(child=child)}"
