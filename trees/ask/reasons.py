"""The reason of a query, as its strategy gives it."""

from dataclasses import dataclass
from typing import Final

from quercus.specification.reasons import SIMILAR_ROWS, Fact

CHILD: Final = "{child}"
"""Stands in a sentence for the condition of the child for which the instance was chosen."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a strategy chose an instance.

    Parameters
    ----------
    sentence
        One or two sentences; empty if facts and rivals say all. `CHILD` may stand in it, if the query is of a child.
    facts
        What the strategy found, in the order in which it is shown.
    """

    sentence: str = ""
    facts: tuple[Fact, ...] = ()


UNEXPLAINED: Final = Reason()


def similar_rows(count: int) -> tuple[str, tuple[Fact, ...]]:
    """Return a sentence and a fact that say how many other unlabelled rows wait for this instance's label.

    They are nearer to it than to any labelled row or earlier query. In a large log their number is estimated.

    Parameters
    ----------
    count
        The number of unlabelled rows that an instance stands for, itself among them.

    Examples
    --------
    >>> similar_rows(0), similar_rows(1)[0], similar_rows(2)[0]
    (('', ()), '', '1 similar row waits; your answer helps with that too.')
    >>> similar_rows(14)[0]
    '13 similar rows wait; your answer helps with all.'
    """
    if count <= 0:
        return "", ()
    others = count - 1
    sentence = f"{others:,} similar rows wait; your answer helps with all." if others else ""
    if others == 1:
        sentence = "1 similar row waits; your answer helps with that too."
    return sentence, (Fact(SIMILAR_ROWS, others),)
