"""Facts that explain a query. Clients show them without knowledge of the strategy."""

from dataclasses import dataclass
from typing import Final

SIMILAR_ROWS: Final = "similar rows"
"""Name of the number of unlabelled rows that are nearer to this row than to any labelled or queried one."""


@dataclass(frozen=True, slots=True)
class Shares:
    """An estimate of the class.

    Attributes
    ----------
    theta
        (l,) share of each class.
    who
        Source of the guess, as the beginning of a sentence: "The model". Empty if the estimate is not the reason.
    """

    theta: tuple[float, ...]
    who: str = ""


FactValue = Shares | tuple[float, float] | float | int | str
"""An estimate, an interval, a number, a count, or a text."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that a strategy found; its name describes it in words, with the unit."""

    name: str
    value: FactValue
