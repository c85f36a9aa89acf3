"""The current label of each labeller of an instance, and their combination.

The log keeps every label. The newest label of each labeller counts, whether it answers a query or is a statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quercus.belief import agreement, evidence
from quercus.belief.agreement import Consensus
from quercus.belief.codec import encode
from quercus.belief.label import ClassSet, Label, Masses, Plausibilities, contour
from quercus.belief.mass import MassFunction, consonant_mass
from quercus.server.labelling.reliability import Crowd
from quercus.server.wire.evidence import known_contour
from quercus.server.wire.labels import decode_stored
from quercus.specification.bounds import MAX_AUTHOR_CHARACTERS
from quercus.storage import CombinedStatement, Event, EventKind, Join

DIGITS = 3
"""Decimals of the combined plausibilities: a class less plausible than 1 in 2,000 is excluded."""


class LabelKind(IntEnum):
    """The action of a labeller. The numbers are the wire's."""

    ANSWERED = 1
    REFUSED = 2
    CORRECTED = 3
    UNDONE = 4
    STATED = 5
    RETRACTED = 6


class LabelState(IntEnum):
    """The current state of a label. The numbers are the wire's."""

    COUNTS = 1
    PENDING = 2
    REPLACED = 3
    UNDONE = 4
    EMPTY = 5


@dataclass(slots=True, eq=False)
class LabelEvent:
    """One label of a labeller.

    Attributes
    ----------
    event : event of the log.
    kind : action of the labeller.
    former : earlier label that this one replaced or took back.
    later : label that replaced this one or took it back.
    state : current state of the label.
    """

    event: Event
    kind: LabelKind
    former: LabelEvent | None = None
    later: LabelEvent | None = None
    state: LabelState = LabelState.COUNTS


def label_events(history: Sequence[Event]) -> list[LabelEvent]:
    """Return the labels that labellers gave to an instance, one by one, oldest first.

    Parameters
    ----------
    history : all events of the instance, oldest first. The combination of several answers is not a separate label.
    """
    return _HistoryReader(history).said


class LabellerLabel(NamedTuple):
    """The label of a labeller for an instance; `assumed`: the reliability was not sent with it."""

    label: Label
    reliability: float
    assumed: bool


def decode_labeller_label(event: Event, label: bytes, size: int) -> LabellerLabel:
    """Return the label of an event with its reliability."""
    return LabellerLabel(decode_stored(label, size), event.reliability, event.assumed)


def labels_by_labeller(history: Sequence[Event], size: int) -> dict[str, LabellerLabel]:
    """Return the labels of an instance that count, by the name of the labeller."""
    newest: dict[str, Event] = {}
    for each in label_events(history):
        if each.state is LabelState.COUNTS:
            newest.pop(each.event.author, None)
            newest[each.event.author] = each.event
    return {
        author: decode_labeller_label(event, event.label, size)
        for author, event in newest.items()
        if event.label is not None
    }


def label_combiner(size: int, crowd: Crowd | None = None) -> Join:
    """Return the function that combines the labels of all labellers of an instance.

    A single label counts unchanged. Several are combined by Dempster's rule, those of a crowd by `crowd_label`. If no
    label is left, the instance may be asked about again, unless somebody refused it.
    """

    def join_history(history: Sequence[Event]) -> CombinedStatement:
        found = labels_by_labeller(history, size)
        if not found:
            refused = any(
                each.kind is LabelKind.REFUSED and each.later is None for each in label_events(history)
            )
            nothing = encode(ClassSet((1 << size) - 1))
            return CombinedStatement(nothing if refused else None, history[-1].author)
        label, reliability, _ = next(iter(found.values()))
        if (of_crowd := crowd_label(found, size, crowd)) is not None:
            label, reliability = of_crowd, 1.0
        elif len(found) > 1:
            label, reliability = Masses(combine_answers(list(found.values()), size).mass), 1.0
        pushed = known_contour(history[:1], size)
        conflict = evidence.update(pushed, contour(label, size), reliability).conflict
        return CombinedStatement(
            encode(label), " + ".join(found)[:MAX_AUTHOR_CHARACTERS], reliability, conflict
        )

    return join_history


def crowd_label(labels: Mapping[str, LabellerLabel], size: int, crowd: Crowd | None) -> Label | None:
    """Return the combination of an instance's labels by the confusion matrices of a crowd.

    A label that was sent without a reliability counts by its labeller's matrix (theory §13.4); the contours of all
    labels are multiplied. None if no label has a matrix.

    Parameters
    ----------
    labels : by labeller, one or more.
    size : number of classes.
    crowd : None where reliability is not estimated.
    """
    if crowd is None:
        return None
    contours = {
        name: crowd.answer_evidence(name, contour(each.label, size))
        for name, each in labels.items()
        if each.assumed
    }
    evidence_of = {name: found for name, found in contours.items() if found is not None}
    return _product_of(labels, evidence_of, size) if evidence_of else None


def _product_of(
    labels: Mapping[str, LabellerLabel], evidence_of: Mapping[str, NDArray[np.float64]], size: int
) -> Plausibilities:
    """Multiply contours, and discount those that have no matrix; round the product, so that few contours differ."""
    logs = np.zeros(size)
    for name, each in labels.items():
        d = min(each.reliability, agreement.MOST_RELIABLE)
        discounted = d * contour(each.label, size) + (1.0 - d)
        logs += np.log(evidence_of.get(name, discounted))
    return Plausibilities(tuple(np.exp(logs - logs.max()).round(DIGITS).tolist()))


def combine_answers(answers: Sequence[LabellerLabel], size: int) -> Consensus:
    """Combine several answers; plausibilities count as their consonant mass function."""
    return agreement.combine([(_mass_of(each.label, size), each.reliability) for each in answers])


def _mass_of(label: Label, size: int) -> MassFunction:
    return label.mass if isinstance(label, Masses) else consonant_mass(contour(label, size))


@dataclass(slots=True)
class _QueryAnswers:
    """The answers to one query: each labeller's current one, the partial ones, and whether they are combined."""

    counts: dict[str, LabelEvent] = field(default_factory=dict)
    opinions: dict[str, LabelEvent] = field(default_factory=dict)
    several: bool = False


class _HistoryReader:
    """Reads a history, event by event."""

    def __init__(self, history: Sequence[Event]) -> None:
        self.said: list[LabelEvent] = []
        self._queries: dict[int, _QueryAnswers] = {}
        self._stated: dict[str, LabelEvent] = {}
        before: Event | None = None
        for event in history:
            self._read_event(event, before)
            before = event

    def _read_event(self, event: Event, before: Event | None) -> None:
        match event.kind:
            case EventKind.ANSWER | EventKind.REFUSAL:
                self._read_answer(event)
            case EventKind.OPINION:
                self._read_opinion(event)
            case EventKind.CORRECTION if event.query:
                self._read_correction(event, before)
            case EventKind.STATEMENT:
                self._read_statement(event)

    def _read_answer(self, event: Event) -> None:
        query = self._queries.setdefault(event.query, _QueryAnswers())
        if query.several and event.kind is EventKind.ANSWER:
            self._count_together(query)
        else:
            kind = LabelKind.REFUSED if event.label is None else LabelKind.ANSWERED
            query.counts = {event.author: self._add_label(event, kind)}

    def _read_opinion(self, event: Event) -> None:
        query = self._queries.setdefault(event.query, _QueryAnswers())
        query.several = True
        former = query.opinions.pop(event.author, None)
        if event.label is None:
            self._add_label(event, LabelKind.UNDONE, former, LabelState.UNDONE)
            return
        words = self._add_label(event, LabelKind.ANSWERED if former is None else LabelKind.CORRECTED, former)
        words.state = LabelState.PENDING
        query.opinions[event.author] = words

    def _read_correction(self, event: Event, before: Event | None) -> None:
        query = self._queries.setdefault(event.query, _QueryAnswers())
        own = (before is not None and before.kind is EventKind.OPINION) and (
            (before.query, before.author, before.sequence) == (event.query, event.author, event.sequence - 1)
        )
        if own:  # the words are the opinion's; this is what all answers come to
            self._count_together(query)
            return
        formers, query.counts = query.counts, {}
        mine = formers.get(event.author) or next(iter(formers.values()), None)
        undone = event.label is None
        words = self._add_label(event, LabelKind.UNDONE if undone else LabelKind.CORRECTED, mine)
        for former in formers.values():
            former.later, former.state = words, LabelState.UNDONE if undone else LabelState.REPLACED
        if undone:
            query.opinions = {}
        else:
            query.counts = {event.author: words}

    def _read_statement(self, event: Event) -> None:
        former = self._stated.pop(event.author, None)
        if event.label is None:
            self._add_label(event, LabelKind.RETRACTED, former, LabelState.UNDONE)
        else:
            self._stated[event.author] = self._add_label(event, LabelKind.STATED, former)

    def _count_together(self, query: _QueryAnswers) -> None:
        """The answers of several labellers count from now on, and what overruled them does not."""
        for author, former in query.counts.items():
            if former is not query.opinions.get(author) and former.state is LabelState.COUNTS:
                former.later, former.state = self.said[-1], LabelState.REPLACED
        for words in query.opinions.values():
            words.later, words.state = None, LabelState.COUNTS
        query.counts = dict(query.opinions)

    def _add_label(
        self,
        event: Event,
        kind: LabelKind,
        former: LabelEvent | None = None,
        become: LabelState = LabelState.REPLACED,
    ) -> LabelEvent:
        words = LabelEvent(event, kind, former)
        if event.label is None:
            words.state = LabelState.EMPTY
        if former is not None:
            former.later, former.state = words, become
        self.said.append(words)
        return words
