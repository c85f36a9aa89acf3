"""Gold questions: instances whose class is known, mixed among the queries to measure how often labellers are right.

An ADJUDICATION with the flag `gold` marks an instance as a gold question; its label counts until the mark is taken
back. A labeller answers a gold question like any other query. The rules of answers see only what that labeller may know
of the instance (`as_known_to`), so that nothing gives the question away. The events that they return are flagged as
gold too, and no tree learns from them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quercus.belief.codec import encode
from quercus.belief.label import ClassSet
from quercus.labelling.answers import Effects, LabelledInstance
from quercus.labelling.combining import has_unasked, joint_event
from quercus.labelling.disputes import named_classes
from quercus.labelling.errors import Refused
from quercus.labelling.event import Event, EventKind
from quercus.labelling.history import LabelEvent, LabelState, known_contour, label_events, overrules
from quercus.labelling.policy import Combination

MARKED = "it is a gold question"
UNMARKED = "it is no longer a gold question"


def gold_mark(history: Sequence[Event]) -> Event | None:
    """Return the mark that makes an instance a gold question, or None if it is not one."""
    marks = [event for event in history if event.gold and event.kind is EventKind.ADJUDICATION]
    return marks[-1] if marks and marks[-1].label is not None else None


@dataclass(frozen=True, slots=True)
class Mark:
    """A request to make an instance a gold question; without a label, to make it an ordinary instance again.

    Attributes
    ----------
    instance : str
        Id of the instance.
    label : bytes or None
        The right answer, encoded by `belief.codec`.
    comment : str
        Stored with the mark.
    """

    instance: str
    label: bytes | None
    comment: str = ""


def mark_events(given: Mark, author: str, of: LabelledInstance) -> Sequence[Event]:
    """Return the events that a mark adds to the log.

    Parameters
    ----------
    given : the mark.
    author : who marks the instance.
    of : the instance and its model.

    Returns
    -------
    sequence of Event
        The mark, and the CORRECTION with the label that counts; no events if the instance has this mark already.

    Raises
    ------
    Refused
        If the label is vacuous, or there is no mark to take back.
    """
    last, label = gold_mark(of.said), given.label
    if label is None and last is None:
        raise Refused(f"{given.instance} is not a gold question, so there is no mark to take back")
    if last is not None and last.label == label:
        return ()
    own = of.event(1, EventKind.ADJUDICATION, label, author, comment=given.comment, gold=True)
    if label is not None and not named_classes(own, of.size):
        raise Refused(f"the label of {given.instance} says nothing, a gold question needs a right answer")
    joint = joint_event([*of.said, own], of.size, of.crowd, of.policy.combination, of.committed + 2, of.wall)
    return own, joint


def as_known_to(
    labeller: str, history: Sequence[Event], size: int, rule: Combination, number: int = 0
) -> list[Event]:
    """Return the history of an instance as a labeller may see it, without any sign that it is a gold question.

    The history of an instance that never was a gold question is returned unchanged. Otherwise the marks are left out,
    and a pushed label that gives the class away becomes vacuous. A labeller who is or was asked the gold question sees
    the answers to it as if they counted, and their own other labels. Anybody else sees all labels except the answers
    to it.

    Parameters
    ----------
    labeller : "" for nobody.
    history : all events of the instance, oldest first.
    size : number of classes.
    rule : combines labels that were stated.
    number : number of the query that the labeller is asked now; 0 for none.
    """
    if not any(event.gold for event in history):
        return list(history)
    asked = {event.query for event in history if event.gold and event.query and event.author == labeller}
    asked |= {number} - {0}
    first = history[0]
    if np.count_nonzero(known_contour([first], size)) == 1:
        first = replace(first, label=encode(ClassSet((1 << size) - 1)))
    known = [first]
    for event in history[1:]:
        if event.gold:
            is_known = event.query in asked
        else:
            is_joint = event.kind is EventKind.CORRECTION and not event.query
            is_known = not is_joint and (not asked or event.author == labeller)
        if is_known:
            known.append(replace(event, gold=False))
    if has_unasked(known):
        known.append(joint_event(known, size, None, rule, history[-1].sequence, history[-1].created_at))
    return known


def most_alike(values: NDArray[np.float64], others: Sequence[NDArray[np.float64]]) -> int:
    """Return the index of the row of `others` that is most similar to `values`; all are float64 (K,).

    Every attribute has the same weight: it adds 1 if two values differ, and their difference as a share of the range of
    all values. Missing values equal each other.
    """
    rows = np.stack([values, *others])
    halves = np.where(np.isnan(rows), 0.0, rows) / 2  # a difference of halves is always a number
    span = np.ptp(halves, axis=0)
    apart = np.abs(halves[1:] - halves[0]) / np.where(span > 0, span, 1.0)
    differs = (halves[1:] != halves[0]) | (np.isnan(rows[1:]) != np.isnan(rows[0]))
    return int(np.argmin((apart + differs).sum(axis=1)))


def flagged(effects: Effects) -> Effects:
    """Return the effects of a call about a gold question, with all events flagged as gold."""
    return replace(effects, events=[replace(event, gold=True) for event in effects.events])


@dataclass(frozen=True, slots=True)
class GoldScore:
    """The gold questions that a labeller answered.

    Attributes
    ----------
    answered, right : int
        Answers that name a class and were not taken back, and those of them that are right: their most plausible
        classes are all among those of the mark.
    """

    answered: int = 0
    right: int = 0


def gold_answers(history: Sequence[Event]) -> Mapping[str, LabelEvent]:
    """Return each labeller's own answer to a gold question, by name, without those that were taken back."""
    standing = (each for each in label_events(history) if each.state is LabelState.GOLD)
    return {each.event.author: each for each in standing if not overrules(each)}


def score_of(history: Sequence[Event], size: int) -> Mapping[str, bool]:
    """Return whether each labeller's answer to a gold question is right, by name.

    Labellers who named no class are left out. The result is empty if the instance is not a gold question.
    """
    holds = gold_mark(history)
    if holds is None:
        return {}
    right = named_classes(holds, size)
    named = {name: named_classes(each.event, size) for name, each in gold_answers(history).items()}
    return {name: classes <= right for name, classes in named.items() if classes}


def gold_scores(histories: Collection[Sequence[Event]], size: int) -> dict[str, GoldScore]:
    """Return the score of each labeller who answered a gold question, by name.

    Parameters
    ----------
    histories : all events of each gold question's instance, oldest first.
    size : number of classes.
    """
    found: dict[str, GoldScore] = {}
    for history in histories:
        for name, is_right in score_of(history, size).items():
            before = found.get(name, GoldScore())
            found[name] = GoldScore(before.answered + 1, before.right + is_right)
    return found
