"""The combination of the labels of an instance, by the rule of the policy, or by the confusion matrices of a crowd.

Where labellers may have conferred, the cautious rule takes the place of Dempster's (theory §1.6), and of the product of
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
"""Decimals of the combined plausibilities: a class less plausible than 1 in 2,000 is excluded."""


def contradicts(history: Sequence[Event], label: Label, reliability: float, size: int) -> bool:
    """Return whether a label contradicts what is known of an instance by these events."""
    return evidence.update(known_contour(history, size), contour(label, size), reliability).conflict


def has_unasked(history: Sequence[Event]) -> bool:
    """Return whether the label of the instance was ever stated or adjudicated."""
    return any(event.kind in UNASKED for event in history)


def joint_event(
    history: Sequence[Event], size: int, crowd: Crowd | None, rule: Combination, sequence: int, at: float
) -> Event:
    """Return the event with the combined label of all labellers of an instance, some of whom stated theirs.

    A single label counts unchanged. Several are combined by `rule`, those of a crowd by `crowd_label`. If no
    label is left, the instance may be asked about again, unless somebody refused it.

    Parameters
    ----------
    history : everything said about the instance, oldest first.
    size : number of classes.
    crowd : None where reliability is not estimated.
    rule : of the policy.
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
    """Return the names of labellers as the author of what they say together."""
    return " + ".join(labellers)[:MAX_AUTHOR_CHARACTERS]


def crowd_label(
    labels: Mapping[str, LabellerLabel], size: int, crowd: Crowd | None, rule: Combination
) -> Label | None:
    """Return the combination of an instance's labels by the confusion matrices of a crowd.

    A label that was sent without a reliability counts by its labeller's matrix (theory §13.4); the contours of all
    labels are multiplied, or combined by the cautious rule. None if no label has a matrix.

    Parameters
    ----------
    labels : by labeller, one or more.
    size : number of classes.
    crowd : None where reliability is not estimated.
    rule : of the policy.
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
    """Combine contours, and discount those that have no matrix; round the result, so that few contours differ."""
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
    """Combine several answers by a rule; plausibilities count as their consonant mass function."""
    weighed = [(_mass_of(each.label, size), each.reliability) for each in answers]
    return agreement.combine(weighed, distinct=rule is Combination.DEMPSTER)


def _mass_of(label: Label, size: int) -> MassFunction:
    return label.mass if isinstance(label, Masses) else consonant_mass(contour(label, size))
