"""Adjudication: somebody decides between the labellers of an instance.

An adjudication is a row of the log like any other, in the name of whoever decided. It overrules all labels of its
instance, earlier and later ones, and changes none of them: when it is taken back, they hold again. It spends no budget
and settles no query. The label that then counts is in a CORRECTION without a query after it (`combining.joint_event`),
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
    """A decision about an instance, or (no label) its taking back.

    Attributes
    ----------
    labeller : str
        Who decides.
    label : bytes or None
        By `belief.codec`; None: the decision that stands is taken back.
    comment : str
        Kept with it.
    permitted : bool
        Whatever the policy says.
    trusted : bool
        Unless the policy allows nobody to correct.
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
        The event of what holds.
    conflict : bool
        Whether that contradicts the pushed label.
    repeated : bool
        Whether the same was said before.
    """

    sequence: int
    conflict: bool = False
    repeated: bool = False


def may_adjudicate(policy: Policy, labeller: str, *, permitted: bool = False, trusted: bool = False) -> bool:
    """Return whether somebody may decide between labellers, by the policy of the model.

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
    """Decide between the labellers of an instance, or take that back.

    Parameters
    ----------
    given : the decision.
    of : what is known of the instance.

    Returns
    -------
    tuple
        The outcome, and the events for the log; none where the same was said before.

    Raises
    ------
    Refused
        If nobody has labelled the instance, there is nothing to take back, or the policy does not permit it.
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
