"""Shared texts: numbers with nouns, the evidence about a class, the terms on a labeller's screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

TERMS: Final = {
    "query": (
        "A row whose label would help the model. It is yours alone until you answer it, give it back or leave."
    ),
    "plausibility": (
        "How compatible a class is with the evidence, from 0 to 1. It is not a probability: if nothing is known, "
        "every class has plausibility 1."
    ),
    "ruled out": "A class with plausibility 0. Earlier labels of this row say that it is another class.",
    "rival": (
        "An attribute that may be the best test for the rows of a node. The labels so far leave open which rival "
        "is best."
    ),
    "gain ratio": (
        "How well a test separates the classes; larger is better. If labels are missing, it is known only as an "
        "interval."
    ),
    "undecided": (
        "A node of the tree with several rivals, or a leaf with a test that may still gain more than by chance. "
        "More labels decide."
    ),
    "leaf": "The end of a path through the tree. All rows in it get the same prediction.",
    "committee": (
        "Fifty trees, each grown from a random part of the known rows. Where they are in doubt, a label helps most."
    ),
    "doubt": (
        "How evenly an estimate is spread over the classes, from 0 to 1. 0: one class has everything; 1: all are equal."
    ),
    "stands for": (
        "The number of unlabelled rows that are more like this row than like any known one. A label here is "
        "evidence about them too."
    ),
    "budget": "The maximum number of answers. Refused and skipped rows cost nothing.",
}
"""The terms on a labeller's screen, each explained in at most two sentences."""


MOST_NAMED = 4
"""Maximum number of less likely or ruled-out classes that are named; if there are more, they are 'the others'."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "row"), counted(1234, "row")
    ('1 row', '1,234 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def is_vacuous(contour: Sequence[float]) -> bool:
    """Return whether a contour is vacuous: every class is fully plausible."""
    return bool(contour) and all(value >= 1.0 for value in contour)


def known_text(classes: Sequence[str], contour: Sequence[float]) -> str:
    """Return the evidence of a row's class in a sentence; empty if it is withheld.

    Parameters
    ----------
    classes
        Classes of the model.
    contour
        Plausibility of each class.

    Examples
    --------
    >>> known_text(("Barolo", "Grignolino", "Barbera"), (1.0, 1.0, 1.0))
    'No label of this row yet.'
    >>> known_text(("Barolo", "Grignolino", "Barbera"), (1.0, 0.4, 0.0))
    'By the labels so far it is most likely Barolo; less likely: Grignolino; ruled out: Barbera.'
    >>> known_text(tuple("ABCDEFG"), (0.1, 1.0, 0.1, 0.1, 0.1, 1.0, 0.1))
    'By the labels so far it is most likely B or F; less likely: the 5 others.'
    >>> known_text(("Barolo", "Grignolino", "Barbera"), (1.0, 1.0, 0.0))
    'By the labels so far it is Barolo or Grignolino; ruled out: Barbera.'
    >>> known_text(("Barolo", "Grignolino", "Barbera"), (0.0, 1.0, 0.0))
    'It is known to be Grignolino.'
    """
    if not contour:
        return ""
    if is_vacuous(contour):
        return "No label of this row yet."
    top = max(contour)
    groups: dict[str, list[str]] = {"open": [], "less likely": [], "ruled out": []}
    for name, value in zip(classes, contour, strict=True):
        groups["ruled out" if value <= 0.0 else "open" if value >= top else "less likely"].append(name)
    possible = groups.pop("open")
    if len(possible) == 1 and not groups["less likely"]:
        return f"It is known to be {possible[0]}."
    fewer, more = sorted(groups.items(), key=lambda each: len(each[1]))
    if len(more[1]) > MOST_NAMED:
        more = more[0], [f"the {len(more[1])} others"]
    likeliest = ("most likely " if groups["less likely"] else "") + " or ".join(possible)
    rest = [f"; {kind}: {', '.join(names)}" for kind, names in (fewer, more) if names]
    return f"By the labels so far it is {likeliest}{''.join(rest)}."
