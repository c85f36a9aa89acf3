"""The reason of a query, as its strategy gives it."""

from dataclasses import dataclass
from typing import Final

from quercus.specification.reasons import SIMILAR_ROWS, Fact

CHILD: Final = "{child}"
"""Placeholder in a sentence: the display replaces it by the condition of the child that the query stands for."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a strategy chose an instance.

    Parameters
    ----------
    sentence
        One or two sentences; empty if facts and rivals say everything. It may contain `CHILD` if the query stands for a
        child.
    facts
        The strategy's findings, in the order of display.
    """

    sentence: str = ""
    facts: tuple[Fact, ...] = ()


UNEXPLAINED: Final = Reason()


def similar_rows(count: int) -> tuple[str, tuple[Fact, ...]]:
    """Return a sentence and a fact with the number of other unlabelled rows that this instance's label would cover.

    These rows are nearer to the instance than to any labelled row or earlier query. In a large log their number is an
    estimate.

    Parameters
    ----------
    count
        The number of unlabelled rows that the instance stands for, itself included; 0 if it is not known.

    Examples
    --------
    >>> similar_rows(0), similar_rows(1)[0], similar_rows(2)[0]
    (('', ()), '', 'Your answer also tells it about 1 similar row.')
    >>> similar_rows(14)[0]
    'Your answer also tells it about 13 similar rows.'
    """
    if count <= 0:
        return "", ()
    others = count - 1
    rows = "1 similar row" if others == 1 else f"{others:,} similar rows"
    return f"Your answer also tells it about {rows}." if others else "", (Fact(SIMILAR_ROWS, others),)
