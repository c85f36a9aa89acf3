"""The labelling policy of a model."""

from dataclasses import dataclass
from enum import IntEnum


class Corrections(IntEnum):
    """The labellers who may correct or take back an answer. The numbers are those of the wire."""

    OWN = 1
    ANYONE = 2
    NOBODY = 3


class Reliability(IntEnum):
    """The reliability of an answer that was sent without one. The numbers are those of the wire."""

    DECLARED = 1
    """The reliability is 1."""
    ESTIMATED = 2
    """The reliability is estimated from the agreement of the labellers."""


class Combination(IntEnum):
    """The rule that combines the answers of several labellers. The numbers are those of the wire."""

    DEMPSTER = 1
    """Dempster's rule: labellers answered independently."""
    CAUTIOUS = 2
    """The cautious rule: labellers may have conferred, so evidence that they share counts once."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The labelling policy of a model.

    Attributes
    ----------
    answers_per_query : int
        Number of different labellers who answer a query; their answers are then combined; 1 to 20.
    max_conflict : float
        Greatest conflict of the combined answers; beyond it, one more labeller is asked; in [0, 1].
    reliability : Reliability
    per_labeller, per_hour : int or None
        Most answers of one labeller, and of all labellers within an hour; None leaves only the model's budget.
    max_held : int
        Most queries that one labeller holds at once; 1 to 100.
    corrections : Corrections
    tags : tuple of str
        Tags by which labellers who answer for any model can select models.
    labellers : tuple of str
        Labellers who may label; empty for everybody.
    combination : Combination
    gold_share : float
        Share of gold questions among leased queries, as long as there are any for the labeller; in [0, 1].
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
        """Return whether a labeller may be asked, and may state labels.

        Examples
        --------
        >>> Policy().may_label("ann"), Policy(labellers=("bob",)).may_label("ann")
        (True, False)
        """
        return not self.labellers or labeller in self.labellers
