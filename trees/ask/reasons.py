"""The reason of a query, as its strategy gives it."""

from dataclasses import dataclass
from typing import Final

from quercus.specification.reasons import SIMILAR_ROWS, Fact

CHILD: Final = "{child}"
"""Placeholder in a sentence for the condition of the child for which the instance was chosen."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a strategy chose an instance.

    Parameters
    ----------
    sentence
        One or two sentences; empty if facts and rivals say all. It may contain `CHILD` if the query stands for a child.
    facts
        The strategy's findings, in display order.
    """

    sentence: str = ""
    facts: tuple[Fact, ...] = ()


UNEXPLAINED: Final = Reason()


def similar_rows(count: int) -> tuple[str, tuple[Fact, ...]]:
    """Return a sentence and a fact with the number of other unlabelled rows that this instance's label would cover.

    They are nearer to it than to any labelled row or earlier query. In a large log the number is an estimate.

    Parameters
    ----------
    count
        The number of unlabelled rows that an instance stands for, itself among them.

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
