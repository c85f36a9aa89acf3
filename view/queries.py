"""A query in words: its row, the evidence about its class, its reason. Parts that could bias a labeller are empty."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quercus.client.guess import NEGLIGIBLE_SHARE, foremost_class, likely_shares, withholds_guess
from quercus.client.plugins import asks_with_forest
from quercus.client.results import Model, Query, Reason, Rival
from quercus.specification.conditions import path_text
from quercus.specification.reasons import Shares
from quercus.specification.shares import decimal_text, percent_text
from quercus.view.models import nominal_names
from quercus.view.rows import MAX_VALUES, ShownItem, ShownValue, shown_curves, shown_items, shown_values
from quercus.view.words import counted, is_vacuous, known_text

MOST_RIVALS: Final = 8
MOST_OPEN: Final = 24
"""Number of values shown unfolded, if there are more."""
MOST_ASKED: Final = 3
"""Maximum number of classes that a question names."""
MOST_NAMED: Final = 3
"""Maximum number of classes or rivals that a sentence names."""
IDLE: Final = {
    "nothing_to_ask": "There are no queries now. New rows may change that.",
    "all_leased": "Other labellers hold all open queries.",
    "budget_spent": (
        "The budget leaves no answers. Whoever leads the model can raise it: on the page Lead of the console, or by "
        "quercus models update {model} --budget N."
    ),
    "growing": "The tree is learning from your last answer.",
    "not_for_you": "You have answered or skipped every open query, or it is postponed.",
    "share_spent": "You have given the maximum number of answers of one labeller.",
    "hour_spent": "The maximum number of answers of this hour is reached.",
    "not_assigned": "Others label this model. Whoever leads it can assign it to you.",
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
        Number of attributes that are not shown.
    curves
        Values that are shown as curves.
    beside
        Parts shown beside the values.
    why, place
        The reason of the query, and the leaf that its row reaches; empty if withheld.
    facts
        Further findings of the strategy, in one line.
    of_forest
        Whether a forest made the query; the tree beside it only explains it.
    rivals
        Name and gain-ratio interval of each competing test.
    more_rivals
        Number of competing tests that are not shown.
    known
        The evidence of the class, in a sentence; empty if it is withheld.
    graded
        Name and plausibility of each class; empty if every class is either fully plausible or ruled out.
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
    """Return the parts of a query that a person sees, with at most `most_values` values."""
    presentation = model.specification.presentation
    withheld = presentation.withheld if presentation is not None else ()
    groups, more = shown_values(query.values, model, most_values)
    if withholds_guess(model):  # the query may have been leased before that was set
        told = tuple(fact for fact in query.reason.facts if not isinstance(fact.value, Shares))
        query = replace(query, reason=replace(query.reason, facts=told))
    has_reason = "reason" not in withheld and query.reason.node_count > 0
    has_belief = "belief" not in withheld and bool(query.contour)
    rivals = query.reason.rivals
    return QueryDescription(
        groups,
        more,
        shown_curves(query.values, model),
        shown_items(query.instance, query.values, query.display, model),
        why_text(query) if has_reason else "",
        place_text(query.reason, nominal_names(model)) if has_reason else "",
        facts_text(query) if has_reason else "",
        asks_with_forest(model.specification.learner),
        [(each.name, each.lower, each.upper) for each in rivals[:MOST_RIVALS]] if has_reason else [],
        max(0, len(rivals) - MOST_RIVALS),
        known_text(query.classes, query.contour) if has_belief else "",
        graded_classes(query.classes, query.contour) if has_belief else [],
    )


def graded_classes(classes: Sequence[str], contour: Sequence[float]) -> list[tuple[str, float]]:
    """Return classes with their plausibilities; empty if every class is either fully plausible or ruled out.

    Examples
    --------
    >>> [graded_classes(("a", "b"), (1.0, low)) for low in (0.25, 0.0, 1.0)]
    [[('a', 1.0), ('b', 0.25)], [], []]
    """
    if is_vacuous(contour) or len({value for value in contour if value > 0}) <= 1:
        return []
    return list(zip(classes, contour, strict=True))


def question_text(classes: Sequence[str]) -> str:
    """Return the question for a labeller.

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

    If all fit, they keep their places from row to row. Otherwise the values that the tree tests on the row's path come
    first, as far as the reason gives the path.

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


def why_text(query: Query) -> str:
    """Return the reason of a query in a few sentences; empty if it is withheld."""
    reason = query.reason
    if not reason.node_count:
        return ""
    guesses = [fact.value for fact in reason.facts if isinstance(fact.value, Shares) and fact.value.who]
    said = [_rivals_text(reason.rivals)] if reason.attribute else []
    said += [_guess_text(guess, query) for guess in guesses]
    if reason.sentence:
        said.append(reason.sentence)
    return " ".join(filter(None, said)) or f"Its label is worth most by the strategy {reason.strategy}."


def facts_text(query: Query) -> str:
    """Return the strategy's further findings in one line: numbers, counts, intervals, texts and other estimates."""
    told = []
    for fact in query.reason.facts:
        match fact.value:
            case Shares(theta, who):
                text = "" if who else shares_text(query.classes, theta)
            case (lower, upper):
                text = f"{decimal_text(lower)} to {decimal_text(upper)}"
            case int(count):
                text = f"{count:,}"
            case float(number):
                text = decimal_text(number)
            case other:
                text = str(other)
        if (
            text
            and f"{text} {fact.name.removesuffix('s') if text == '1' else fact.name}"
            not in query.reason.sentence
        ):
            told.append(f"{fact.name} {text}")
    return " · ".join(told)


def place_text(reason: Reason, nominal: Collection[str] = frozenset()) -> str:
    """Return the place of the row, or of the contested node, in the tree, in a sentence."""
    if not reason.node_count:
        return ""
    rows = counted(reason.node_count, "row")
    path = path_text(reason.path, nominal)
    if reason.rivals or reason.attribute:
        where = f"where {path}" if path else "at the root"
        return f"The tree is undecided {where} ({rows})."
    return f"It ends where {path} (a leaf of {rows})." if path else f"The tree is a single leaf of {rows}."


def shares_text(classes: Sequence[str], theta: Sequence[float]) -> str:
    """Return the most probable classes of an estimate with their shares, the likeliest first.

    Examples
    --------
    >>> shares_text(("Barolo", "Grignolino", "Barbera"), (0.44, 0.552, 0.002))
    'Grignolino (55 %), or Barolo (44 %)'
    >>> shares_text(("edible", "poisonous"), (0.998, 0.002))
    'edible (over 99 %)'
    """
    first, *others = _foremost(classes, theta)
    return f"{first}, or {' or '.join(others)}" if others else first


def _foremost(classes: Sequence[str], theta: Sequence[float]) -> list[str]:
    ranked = sorted(zip(theta, classes, strict=True), key=lambda each: -each[0])[:MOST_NAMED]
    return [f"{name} ({percent_text(share)})" for share, name in ranked if share >= NEGLIGIBLE_SHARE]


def _guess_text(guess: Shares, query: Query) -> str:
    """Return an estimate of the class in a sentence. It does not mention doubt, since a guess may be certain."""
    theta = likely_shares(guess.theta, query.contour)
    possible = [k for k in range(len(theta)) if not query.contour or query.contour[k] > 0]
    among = [theta[k] for k in possible]
    if len(possible) > 1 and max(among) - min(among) < NEGLIGIBLE_SHARE:
        which = (
            "the classes" if len(possible) == len(theta) else " and ".join(query.classes[k] for k in possible)
        )
        return f"{guess.who} cannot tell {which} apart here."
    first, *others = _foremost(query.classes, theta)
    rest = f", but it may be {' or '.join(others)}" if others else ""
    guessed = foremost_class(theta)
    if guessed is not None:
        check = "; your answer checks that" if guessed[1] > 1 - NEGLIGIBLE_SHARE else rest
        return f"{guess.who} guesses {first}{check}."
    level = sum(share >= max(theta) / 2 for share in sorted(theta)[-MOST_NAMED:])
    if level == 1:
        return f"{guess.who} leans towards {first}{rest}."
    return f"{guess.who} wavers between {', '.join([first, *others][: level - 1])} and {others[level - 2]}."


def _rivals_text(rivals: Sequence[Rival]) -> str:
    names = list(dict.fromkeys(rival.name for rival in rivals))
    if not names:
        return ""
    if len(names) == 1:
        return f"A test of {names[0]} may still gain more than by chance."
    more = len(names) - MOST_NAMED
    listed = ", ".join(names[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
    return f"{len(names)} tests compete to split its node: {listed}."


def gain_text(lower: float, upper: float, places: int = 3) -> str:
    """Return the gain ratio of a test in words; a value below 0, that is below chance, is not detailed.

    Examples
    --------
    >>> gain_text(0.1, 0.25), gain_text(-1.0, 0.25), gain_text(-1.0, -0.5)
    ('0.100 to 0.250', 'at most 0.250', 'below 0')
    """
    if lower >= 0:
        return f"{lower:.{places}f} to {upper:.{places}f}"
    return f"at most {upper:.{places}f}" if upper >= 0 else "below 0"


def idle_text(reason: str, model: str) -> str:
    """Return the reason why there is no query now, in a sentence; empty if the server gave none.

    Examples
    --------
    >>> idle_text("all_leased", "wine")
    'Other labellers hold all open queries.'
    """
    return IDLE.get(reason, reason).format(model=model)
