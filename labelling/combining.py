"""The combination of an instance's labels, by the policy's rule or by the labellers' estimated confusion matrices.

Where labellers may have conferred, the cautious rule replaces Dempster's rule (theory §1.6) and the product of
contours.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from quercus.belief import agreement, evidence
from quercus.belief.agreement import Consensus
from quercus.belief.cautious import cautious
from quercus.belief.codec import encode
from quercus.belief.label import ClassSet, Label, Masses, Plausibilities, contour
from quercus.belief.mass import MassFunction, consonant_mass
from quercus.labelling.crowds.labellers import Crowd
from quercus.labelling.event import UNASKED, Event, EventKind
from quercus.labelling.history import (
    LabelKind,
    LabellerLabel,
    known_contour,
    label_events,
    labels_by_labeller,
)
from quercus.labelling.policy import Combination
from quercus.specification.bounds import MAX_AUTHOR_CHARACTERS

DIGITS = 3
"""Decimals of the combined plausibilities. A plausibility below 0.0005 becomes 0, which excludes the class."""


def contradicts(history: Sequence[Event], label: Label, reliability: float, size: int) -> bool:
    """Return whether a label contradicts the evidence of an instance's events."""
    return evidence.update(known_contour(history, size), contour(label, size), reliability).conflict


def has_unasked(history: Sequence[Event]) -> bool:
    """Return whether the label of the instance was ever stated or adjudicated."""
    return any(event.kind in UNASKED for event in history)


def joint_event(
    history: Sequence[Event], size: int, crowd: Crowd | None, rule: Combination, sequence: int, at: float
) -> Event:
    """Return the CORRECTION with the combined label of an instance, some of whose labels were stated or adjudicated.

    A single label counts unchanged. Several are combined by `crowd_label` where it applies, else by `rule`. If no
    label is left, the event has none, and the instance may be asked about again; if somebody refused it, the label is
    vacuous.

    Parameters
    ----------
    history : all events of the instance, oldest first.
    size : number of classes.
    crowd : None where reliability is not estimated.
    rule : the policy's rule.
    sequence, at : number and time of the event.
    """
    found = labels_by_labeller(history, size)
    if not found:
        refused = any(
            each.kind is LabelKind.REFUSED and each.later is None and not each.event.gold
            for each in label_events(history)
        )
        nothing = encode(ClassSet((1 << size) - 1)) if refused else None
        author, reliability, conflict, said = history[-1].author, 1.0, False, nothing
    else:
        label, reliability, _ = next(iter(found.values()))
        if (of_crowd := crowd_label(found, size, crowd, rule)) is not None:
            label, reliability = of_crowd, 1.0
        elif len(found) > 1:
            label, reliability = Masses(combine_answers(list(found.values()), size, rule).mass), 1.0
        conflict = contradicts(history[:1], label, reliability, size)
        author, said = joined_names(found), encode(label)
    return Event(
        sequence, EventKind.CORRECTION, history[0].instance, history[0].id, None, said, author, reliability,
        None, conflict, None, at,
    )  # fmt: skip


def joined_names(labellers: Mapping[str, object]) -> str:
    """Return the names of labellers as the author of their combined label."""
    return " + ".join(labellers)[:MAX_AUTHOR_CHARACTERS]


def crowd_label(
    labels: Mapping[str, LabellerLabel], size: int, crowd: Crowd | None, rule: Combination
) -> Label | None:
    """Return the combination of an instance's labels by their labellers' confusion matrices.

    A label that was sent without a reliability is weighed by its labeller's matrix (theory §13.4); the contours of all
    labels are multiplied, or combined by the cautious rule. Return None if no matrix applies.

    Parameters
    ----------
    labels : by labeller, one or more.
    size : number of classes.
    crowd : None where reliability is not estimated.
    rule : the policy's rule.
    """
    if crowd is None:
        return None
    contours = {
        name: crowd.answer_evidence(name, contour(each.label, size))
        for name, each in labels.items()
        if each.assumed
    }
    evidence_of = {name: found for name, found in contours.items() if found is not None}
    return _together(labels, evidence_of, size, rule) if evidence_of else None


def _together(
    labels: Mapping[str, LabellerLabel],
    evidence_of: Mapping[str, NDArray[np.float64]],
    size: int,
    rule: Combination,
) -> Plausibilities:
    """Combine contours, discounting labels without a matrix. Rounding keeps the number of distinct contours small."""
    contours = []
    for name, each in labels.items():
        d = min(each.reliability, agreement.MOST_RELIABLE)
        contours.append(evidence_of.get(name, d * contour(each.label, size) + (1.0 - d)))
    if rule is Combination.CAUTIOUS:
        product = cautious(map(consonant_mass, contours)).contour()
        product /= product.max()
    else:
        logs = np.log(contours).sum(axis=0)
        product = np.exp(logs - logs.max())
    return Plausibilities(tuple(product.round(DIGITS).tolist()))


def combine_answers(answers: Sequence[LabellerLabel], size: int, rule: Combination) -> Consensus:
    """Combine several answers by a rule; a label that is not a mass function counts as the consonant one."""
    weighed = [(_mass_of(each.label, size), each.reliability) for each in answers]
    return agreement.combine(weighed, distinct=rule is Combination.DEMPSTER)


def _mass_of(label: Label, size: int) -> MassFunction:
    return label.mass if isinstance(label, Masses) else consonant_mass(contour(label, size))
