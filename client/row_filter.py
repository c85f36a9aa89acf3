"""Filters of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from quercus.client.results import Instance

RowOrder = Literal["pushed", "pushed desc", "said", "said desc", "doubt", "doubt desc"]
ORDERS: Final[Sequence[RowOrder]] = ("pushed", "pushed desc", "said desc", "doubt desc", "doubt", "said")


@dataclass(frozen=True)
class RowFilter:
    """A filter of rows; an empty field excludes nothing.

    Attributes
    ----------
    text
        Part of the id or of a name among the values, in any case; or a number among them.
    class_name
        A class that is most plausible by all labels of the row.
    labeller
        A labeller who has a valid label of the row.
    guess
        The class that the newest tree predicts.
    least_doubt
        Minimum doubt of the newest tree: 1 minus the probability of the class that it predicts.
    labelled
        Whether there is evidence about the class.
    disputed
        Whether the labels of two labellers have no most plausible class in common.
    unexpected
        Whether the label rules out the class that the newest tree predicts.
    """

    text: str = ""
    class_name: str = ""
    labeller: str = ""
    guess: str = ""
    least_doubt: float | None = None
    labelled: bool | None = None
    disputed: bool = False
    unexpected: bool = False

    def __str__(self) -> str:
        r"""Return the filter in the server's syntax.

        Examples
        --------
        >>> import numpy as np
        >>> str(RowFilter(class_name="red", least_doubt=np.float64(0.4), labelled=False))
        'class = "red" AND doubt >= 0.4 AND NOT labelled'
        >>> print(RowFilter(text='12" pipe'))
        text : "12\" pipe"
        """
        named = (
            ("text :", self.text),
            ("class =", self.class_name),
            ("labeller =", self.labeller),
            ("guess =", self.guess),
        )
        terms = [f"{field} {_quoted(value)}" for field, value in named if value]
        if self.least_doubt is not None:
            terms.append(f"doubt >= {float(self.least_doubt)!r}")
        if self.labelled is not None:
            terms.append("labelled" if self.labelled else "NOT labelled")
        terms += [flag for flag in ("disputed", "unexpected") if getattr(self, flag)]
        return " AND ".join(terms)


@dataclass(frozen=True)
class RowPage:
    """A page of rows.

    Attributes
    ----------
    rows
        The rows, in order.
    next_page
        Token of the next page; empty if this is the last one.
    total
        Number of rows on all pages.
    """

    rows: Sequence[Instance]
    next_page: str
    total: int


def _quoted(value: str) -> str:
    return '"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"'))
