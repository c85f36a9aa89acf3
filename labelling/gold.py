"""Gold questions: instances whose class the lead knows, mixed among the queries to see which labellers answer right.

A mark is an ADJUDICATION of the log that is flagged as gold: its label is what the instance has, until the mark is
taken back. Asked about it, a labeller answers a query like any other. The rules of answers run on what that labeller
may know of the instance (`as_known_to`), so that nothing tells the question from others; the events that they return
are flagged, and no tree learns from them.
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
    """Return the mark that makes an instance a gold question; None: it is none."""
    marks = [event for event in history if event.gold and event.kind is EventKind.ADJUDICATION]
    return marks[-1] if marks and marks[-1].label is not None else None


@dataclass(frozen=True, slots=True)
class Mark:
    """An instance (its id) is made a gold question, or (no label) is none any more.

    Attributes
    ----------
    instance : str
    label : bytes or None
        The right answer, by `belief.codec`.
    comment : str
        Kept with it.
    """

    instance: str
    label: bytes | None
    comment: str = ""


def mark_events(given: Mark, author: str, of: LabelledInstance) -> Sequence[Event]:
    """Return what follows from a mark.

    Parameters
    ----------
    given : the mark.
    author : who marks.
    of : what is known of the instance.

    Returns
    -------
    sequence of Event
        For the log: the mark, and what holds then; none if the instance is marked so.

    Raises
    ------
    Refused
        If the label says nothing, or the instance is not a gold question and the mark is to be taken back.
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
    """Return the history of an instance as a labeller may know it who must not know of gold questions.

    Of one that is none, and never was, it is the history. A gold question is a row whose class is not known, without
    the mark. Whoever is or was asked about it finds there the answers to that question, as if they counted, and own
    statements; whoever was not asked, what others said but for answers to it.

    Parameters
    ----------
    labeller : "" for nobody.
    history : all events of the instance, oldest first.
    size : number of classes.
    rule : combines what labellers stated of it.
    number : of the query by which the labeller is asked; 0: none.
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
    """Return which of other rows is most like a row, by its values, float64 (K,), and theirs, each (K,).

    Each attribute counts as much: whether two values differ, and by how much of the range of all. Missing values are
    like each other.
    """
    rows = np.stack([values, *others])
    halves = np.where(np.isnan(rows), 0.0, rows) / 2  # a difference of halves is always a number
    span = np.ptp(halves, axis=0)
    apart = np.abs(halves[1:] - halves[0]) / np.where(span > 0, span, 1.0)
    differs = (halves[1:] != halves[0]) | (np.isnan(rows[1:]) != np.isnan(rows[0]))
    return int(np.argmin((apart + differs).sum(axis=1)))


def flagged(effects: Effects) -> Effects:
    """Return the effects of a call about a gold question: its events count for the reliability of labellers only."""
    return replace(effects, events=[replace(event, gold=True) for event in effects.events])


@dataclass(frozen=True, slots=True)
class GoldScore:
    """The share of gold questions that were answered right.

    Attributes
    ----------
    answered, right : int
        Answers that stand and name a class, and those whose most plausible classes are all among those of the mark.
    """

    answered: int = 0
    right: int = 0


def gold_answers(history: Sequence[Event]) -> Mapping[str, LabelEvent]:
    """Return the labellers' own answers to the gold question of an instance, without those that were taken back."""
    standing = (each for each in label_events(history) if each.state is LabelState.GOLD)
    return {each.event.author: each for each in standing if not overrules(each)}


def score_of(history: Sequence[Event], size: int) -> Mapping[str, bool]:
    """Return whether each labeller who named a class in answer to a gold question was right; nobody if it is none."""
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
    histories : all events of each instance that is a gold question, oldest first.
    size : number of classes.
    """
    found: dict[str, GoldScore] = {}
    for history in histories:
        for name, is_right in score_of(history, size).items():
            before = found.get(name, GoldScore())
            found[name] = GoldScore(before.answered + 1, before.right + is_right)
    return found
