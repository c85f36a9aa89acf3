"""Texts for labellers: the evidence about a class in words, and explanations of the terms on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quercus.client.results import AverageConfidence
from quercus.specification.attributes import Nominal
from quercus.specification.shares import percent_text

ASKED_ARE_HARDEST: Final = (
    "rows that were asked about are the hardest: on all rows the accuracy is usually higher"
)
TERMS: Final = {
    "query": "A row whose label the model wants. It is yours until you answer it, give it back, or the lease ends.",
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
        "A node of the tree with several rivals, or a leaf with a test that may yet gain more than chance does. "
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
    "lease": (
        "The time for which nobody else gets the row. It is extended while you think, and ends when you leave."
    ),
    "budget": "The maximum number of answers. Refused and skipped rows cost nothing.",
}
"""The terms on a labeller's screen, each explained in at most two sentences."""


def is_vacuous(contour: Sequence[float]) -> bool:
    """Return whether a contour is vacuous: every class is fully plausible."""
    return bool(contour) and all(value >= 1.0 for value in contour)


def known_text(classes: Sequence[str], contour: Sequence[float]) -> str:
    """Return the evidence of a row's class, in one line.

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
    'ruled out: Barbera; less plausible: Grignolino; open: Barolo'
    >>> known_text(("Barolo", "Grignolino", "Barbera"), (0.0, 1.0, 0.0))
    'It is known to be Grignolino.'
    """
    if not contour:
        return "What is known is withheld."
    if is_vacuous(contour):
        return "No label of this row yet."
    top = max(contour, default=0.0)
    groups: dict[str, list[str]] = {"ruled out": [], "less plausible": [], "open": []}
    for name, value in zip(classes, contour, strict=True):
        groups["ruled out" if value <= 0.0 else "open" if value >= top else "less plausible"].append(name)
    if len(groups["open"]) == 1 and not groups["less plausible"]:
        return f"It is known to be {groups['open'][0]}."
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in groups.items() if names)


def confidence_text(own: AverageConfidence) -> str:
    """Return how right a model takes itself to be, in words.

    Examples
    --------
    >>> confidence_text(AverageConfidence(178, 0.85214))
    '85.2 % right by its own estimate, the mean over 178 rows'
    """
    return f"{percent_text(own.mean, 1)} right by its own estimate, the mean over {own.rows:,} rows"


def bound_text(attribute: Nominal, others: int) -> str:
    """Return the bound of an attribute's names in words, if it matters, and how many rows are beyond it.

    Examples
    --------
    >>> bound_text(Nominal("X", "ab", max_values=2), 1)
    '2 names, the most it may have; others count as (other names), so far in 1 row'
    """
    so_far = f", so far in {others:,} row{'' if others == 1 else 's'}" if others else ""
    return f"{attribute.bound_text}{so_far}"
