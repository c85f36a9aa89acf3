"""Adjudication: somebody decides between the labellers of an instance.

An adjudication is an event of the log, with whoever decided as its author. It overrules all labels of its instance,
earlier and later ones, but changes none of them: once it is taken back, they count again. It spends no budget and
settles no query. The label that counts is in the CORRECTION without a query that follows it (`combining.joint_event`),
as after statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quercus.labelling.answers import LabelledInstance
from quercus.labelling.combining import joint_event
from quercus.labelling.errors import Refused
from quercus.labelling.event import Event, EventKind
from quercus.labelling.history import LabelKind, label_events
from quercus.labelling.policy import Corrections, Policy

WHY_ADJUDICATED = "its label was adjudicated"


@dataclass(frozen=True, slots=True)
class Adjudication:
    """A decision about an instance; without a label, it takes the standing decision back.

    Attributes
    ----------
    labeller : str
        Who decides.
    label : bytes or None
        Encoded by `belief.codec`; None takes back the decision that stands.
    comment : str
        Stored with the decision.
    permitted : bool
        True allows it whatever the policy says.
    trusted : bool
        True allows it unless the policy lets nobody correct.
    """

    labeller: str
    label: bytes | None
    comment: str = ""
    permitted: bool = False
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class AdjudicationOutcome:
    """The outcome of an adjudication.

    Attributes
    ----------
    sequence : int
        Number of the event with the label that now counts.
    conflict : bool
        Whether that label contradicts the pushed one.
    repeated : bool
        Whether the same decision was already stored.
    """

    sequence: int
    conflict: bool = False
    repeated: bool = False


def may_adjudicate(policy: Policy, labeller: str, *, permitted: bool = False, trusted: bool = False) -> bool:
    """Return whether the policy lets somebody decide between labellers.

    Examples
    --------
    >>> own, anyone, nobody = (Policy(corrections=each) for each in Corrections)
    >>> [may_adjudicate(each, "ann") for each in (own, anyone, nobody)]
    [False, True, False]
    >>> [may_adjudicate(each, "ann", trusted=True) for each in (own, anyone, nobody)]
    [True, True, False]
    """
    match policy.corrections:
        case Corrections.ANYONE:
            return permitted or trusted or policy.may_label(labeller)
        case Corrections.OWN:
            return permitted or trusted
    return permitted


def adjudicate(given: Adjudication, of: LabelledInstance) -> tuple[AdjudicationOutcome, Sequence[Event]]:
    """Decide between the labellers of an instance, or take the decision back.

    Parameters
    ----------
    given : the decision.
    of : the instance and its model.

    Returns
    -------
    tuple
        The outcome, and the events to append to the log; no events if the same decision was already stored.

    Raises
    ------
    Refused
        If nobody has labelled the instance, there is nothing to take back, or the policy forbids it.
    """
    said = label_events(of.said)
    marks = [each for each in said if LabelKind.MARKED in (each.kind, each.former and each.former.kind)]
    mine = [each for each in said if LabelKind.ADJUDICATED in (each.kind, each.former and each.former.kind)]
    last = mine[-1] if mine else None
    stands = last is not None and last.event.label is not None
    if last is not None and (last.event.author, last.event.label) == (given.labeller, given.label):
        joint = next(event for event in of.said if event.sequence > last.event.sequence)
        return AdjudicationOutcome(joint.sequence, joint.conflict, repeated=True), ()
    if not may_adjudicate(of.policy, given.labeller, permitted=given.permitted, trusted=given.trusted):
        raise Refused(
            f"{given.labeller} may not decide between labellers: that needs the role corrector, or a labelling "
            "policy that lets this labeller label, and anyone correct"
        )
    if given.label is None and not stands:
        raise Refused("nobody has adjudicated it, so there is nothing to take back")
    if not any(each.event.label is not None for each in said if each not in mine and each not in marks):
        raise Refused("nobody has labelled it yet: answer its query, or state its label")
    own = of.event(1, EventKind.ADJUDICATION, given.label, given.labeller, comment=given.comment)
    joint = joint_event([*of.said, own], of.size, of.crowd, of.policy.combination, of.committed + 2, of.wall)
    return AdjudicationOutcome(joint.sequence, joint.conflict), (own, joint)
