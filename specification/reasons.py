"""Facts with which a strategy explains a query; a client shows them without knowing the strategy."""

from dataclasses import dataclass
from typing import Final

SIMILAR_ROWS: Final = "similar rows"
"""Name of the fact that says how many unlabelled rows are nearer to this row than to any labelled or queried one."""


@dataclass(frozen=True, slots=True)
class Shares:
    """An estimate of the class.

    Attributes
    ----------
    theta
        (l,) share of each class.
    who
        Whose guess it is, as a sentence begins: "The model". Empty if the estimate is not the reason.
    """

    theta: tuple[float, ...]
    who: str = ""


FactValue = Shares | tuple[float, float] | float | int | str
"""An estimate, an interval, a number, a count, or a text."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a strategy found. Its name says in words what it is, with the unit."""

    name: str
    value: FactValue
