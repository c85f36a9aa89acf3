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
    """Return a sentence and a fact that say how many unlabelled rows wait for this instance's label.

    They are nearer to it than to any labelled row or earlier query. In a large log their number is estimated.
    """
    if count <= 0:
        return "", ()
    if count == 1:
        sentence = "1 similar row waits; your answer helps with that too."
    else:
        sentence = f"{count:,} similar rows wait; your answer helps with all."
    return sentence, (Fact(SIMILAR_ROWS, count),)
