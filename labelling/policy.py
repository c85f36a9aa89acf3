"""The labelling policy of a model."""

from dataclasses import dataclass
from enum import IntEnum


class Corrections(IntEnum):
    """The labellers who may correct or take back an answer. The numbers are the wire's."""

    OWN = 1
    ANYONE = 2
    NOBODY = 3


class Reliability(IntEnum):
    """The source of the reliability of an answer that was sent without one. The numbers are the wire's."""

    DECLARED = 1
    """It is 1."""
    ESTIMATED = 2
    """It is estimated from the agreement of the labellers."""


class Combination(IntEnum):
    """The rule that combines the answers of several labellers. The numbers are the wire's."""

    DEMPSTER = 1
    """Dempster's rule: each labeller has looked alone."""
    CAUTIOUS = 2
    """The cautious rule: labellers may have conferred, so what several say counts once."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The labelling policy of a model.

    Attributes
    ----------
    answers_per_query : int
        Number of different labellers who answer before their answers are combined; 1 to 20.
    max_conflict : float
        Answers in more conflict than this ask for one more; in [0, 1].
    reliability : Reliability
    per_labeller, per_hour : int or None
        Most answers of one labeller, and of all within an hour; None: no bound but the budget.
    max_held : int
        Most queries that one labeller holds at once; 1 to 100.
    corrections : Corrections
    tags : tuple of str
        Tags by which labellers who answer for any model may choose.
    labellers : tuple of str
        Those who may label; none named: everybody.
    combination : Combination
    gold_share : float
        Share of the leased queries that are gold questions, while there are any for the labeller; in [0, 1].
    """

    answers_per_query: int = 1
    max_conflict: float = 0.5
    reliability: Reliability = Reliability.DECLARED
    per_labeller: int | None = None
    per_hour: int | None = None
    max_held: int = 20
    corrections: Corrections = Corrections.OWN
    tags: tuple[str, ...] = ()
    labellers: tuple[str, ...] = ()
    combination: Combination = Combination.DEMPSTER
    gold_share: float = 0.0

    def may_label(self, labeller: str) -> bool:
        """Return whether a labeller is asked, and may state labels.

        Examples
        --------
        >>> Policy().may_label("ann"), Policy(labellers=("bob",)).may_label("ann")
        (True, False)
        """
        return not self.labellers or labeller in self.labellers
