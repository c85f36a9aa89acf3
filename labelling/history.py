"""The meaning of an instance's events: the combined evidence, and the current label of each labeller.

The log keeps every label. The newest label of each labeller counts, whether it answers a query or is a statement.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quercus.belief.codec import decode
from quercus.belief.errors import InvalidInput
from quercus.belief.evidence import ReportedLabel, combined_contour, known_after
from quercus.belief.label import Label, contour
from quercus.labelling.errors import UnreadableLabel
from quercus.labelling.event import UNASKED, Event, EventKind
from quercus.labelling.row_values import Range, unpack_row


def stored_label(data: bytes, size: int) -> Label:
    """Return a label of the log, decoded; raise `UnreadableLabel` if that fails."""
    try:
        return decode(data, size)
    except (InvalidInput, TypeError, struct.error) as error:
        raise UnreadableLabel(f"a stored label cannot be read ({error})") from error


def stored_values(event: Event) -> NDArray[np.float64]:
    """Return the values of an INSTANCE event, float64 (K,); NaN where one is missing or uncertain."""
    return unpack_row(event.values or b"")[0]


def stored_cells(event: Event) -> tuple[NDArray[np.float64], dict[int, tuple[Range, ...]]]:
    """Return the values of an INSTANCE event, float64 (K,), and the ranges of uncertain ones, by attribute."""
    return unpack_row(event.values or b"")


KINDS_WITHOUT_EVIDENCE = UNASKED | {EventKind.OPINION}
"""Kinds of events whose label counts only through the combined label of the event that follows."""


def reported_label(event: Event, size: int) -> ReportedLabel[Label] | None:
    """Return the label that an event reports; None if it counts not at all, or only through a combined label.

    Parameters
    ----------
    event : event of an instance, of any kind.
    size : number of classes.
    """
    if event.gold or event.kind in KINDS_WITHOUT_EVIDENCE:
        return None
    label = None if event.label is None else stored_label(event.label, size)
    return ReportedLabel(label, event.reliability, replaces=event.kind is EventKind.CORRECTION)


def known_contour(history: Sequence[Event], size: int) -> NDArray[np.float64]:
    """Combine all labels of an instance into a contour, float64 (size,).

    Parameters
    ----------
    history : the instance's events, oldest first; the first is its INSTANCE event.
    size : number of classes.
    """
    label = history[0].label
    if label is None:
        raise ValueError("an instance without a label event")
    pushed = known = contour(stored_label(label, size), size)
    as_contour = partial(contour, size=size)
    for event in history[1:]:
        reported = reported_label(event, size)
        if reported is not None:
            known = known_after(pushed, known, reported.with_label(as_contour), combined_contour)
    return known


class LabelKind(IntEnum):
    """The action of a labeller. The numbers are those of the wire."""

    ANSWERED = 1
    REFUSED = 2
    CORRECTED = 3
    UNDONE = 4
    STATED = 5
    RETRACTED = 6
    ADJUDICATED = 7
    MARKED = 8
    """Marked as a gold question: the label is the right answer."""


class LabelState(IntEnum):
    """The current state of a label. The numbers are those of the wire."""

    COUNTS = 1
    PENDING = 2
    REPLACED = 3
    UNDONE = 4
    EMPTY = 5
    GOLD = 6
    """An answer to a gold question: not evidence of the class, but of its labeller's reliability."""


@dataclass(slots=True, eq=False)
class LabelEvent:
    """One label of a labeller.

    Attributes
    ----------
    event : event of the log.
    kind : action of the labeller.
    former : earlier label that this one replaced or took back.
    later : later label that replaced this one or took it back.
    state : current state of the label.
    """

    event: Event
    kind: LabelKind
    former: LabelEvent | None = None
    later: LabelEvent | None = None
    state: LabelState = LabelState.COUNTS


def label_events(history: Sequence[Event]) -> list[LabelEvent]:
    """Return all labels that labellers gave to an instance, oldest first, without combined labels.

    Parameters
    ----------
    history : all events of the instance, oldest first.
    """
    asked = {event.query: list[Event]() for event in history if event.gold and event.query}
    if not asked:
        return _HistoryReader(history).read()
    rest = list[Event]()
    for event in history:
        (asked[event.query] if event.gold and event.query else rest).append(event)
    said = _HistoryReader(rest).read()
    for events in asked.values():  # each gold query on its own, read like an ordinary one
        for each in _HistoryReader(events).read():
            if each.state in (LabelState.COUNTS, LabelState.PENDING):
                each.state = LabelState.GOLD
            said.append(each)
    return sorted(said, key=lambda each: each.event.sequence)


def own_labels(history: Sequence[Event]) -> list[LabelEvent]:
    """Return the newest label of each labeller, unless taken back by them; labels that were overruled are included.

    Decisions that overrule others (an adjudication, the mark of a gold question, a correction of another labeller's
    answer) are not labels of their author.
    """
    newest: dict[str, LabelEvent] = {}
    for each in label_events(history):
        if overrules(each) or (
            each.former is not None and each.kind is LabelKind.UNDONE and overrules(each.former)
        ):
            continue
        newest.pop(each.event.author, None)
        if each.event.label is not None:
            newest[each.event.author] = each
    return list(newest.values())


def overrules(words: LabelEvent) -> bool:
    """Return whether a label overrules others: an adjudication, a mark, or a correction of another's answer."""
    while words.kind is LabelKind.CORRECTED and words.former is not None:
        if words.former.event.author != words.event.author:
            return True
        words = words.former
    return words.kind in (LabelKind.ADJUDICATED, LabelKind.MARKED)


def standing_labels(history: Sequence[Event]) -> list[LabelEvent]:
    """Return the newest label of each labeller that nothing has replaced, even if its query wants more answers."""
    newest: dict[str, LabelEvent] = {}
    for each in label_events(history):
        if each.state in (LabelState.COUNTS, LabelState.PENDING):
            newest.pop(each.event.author, None)
            newest[each.event.author] = each
    return list(newest.values())


class LabellerLabel(NamedTuple):
    """The label of a labeller for an instance; `assumed` is true if no reliability was sent with it."""

    label: Label
    reliability: float
    assumed: bool


def decode_labeller_label(event: Event, label: bytes, size: int) -> LabellerLabel:
    """Return the label of an event with its reliability."""
    return LabellerLabel(stored_label(label, size), event.reliability, event.assumed)


def labels_by_labeller(history: Sequence[Event], size: int) -> dict[str, LabellerLabel]:
    """Return the labels of an instance that count, by name of the labeller."""
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


@dataclass(slots=True)
class _QueryAnswers:
    """The answers to one query: those that count, the partial ones, and whether it wants several."""

    counts: dict[str, LabelEvent] = field(default_factory=dict)
    opinions: dict[str, LabelEvent] = field(default_factory=dict)
    several: bool = False


class _HistoryReader:
    def __init__(self, history: Sequence[Event]) -> None:
        self.said: list[LabelEvent] = []
        self._queries: dict[int, _QueryAnswers] = {}
        self._stated: dict[str, LabelEvent] = {}
        self._adjudicated: LabelEvent | None = None
        self._marked: LabelEvent | None = None
        before: Event | None = None
        for event in history:
            self._read_event(event, before)
            before = event

    def read(self) -> list[LabelEvent]:
        """Return the labels. A mark or else an adjudication overrules all others, earlier and later."""
        holds = self._marked or self._adjudicated
        for each in self.said:
            if holds not in (None, each) and each.state in (LabelState.COUNTS, LabelState.PENDING):
                each.later, each.state = holds, LabelState.REPLACED
        return self.said

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
            case EventKind.ADJUDICATION:
                self._read_adjudication(event)

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
        if own:  # the label itself is in the OPINION before; this is the new combination
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

    def _read_adjudication(self, event: Event) -> None:
        former = self._marked if event.gold else self._adjudicated
        if event.label is None:
            self._add_label(event, LabelKind.UNDONE, former, LabelState.UNDONE)
            found = None
        else:
            kind = LabelKind.MARKED if event.gold else LabelKind.ADJUDICATED
            found = self._add_label(event, kind, former)
        if event.gold:
            self._marked = found
        else:
            self._adjudicated = found

    def _count_together(self, query: _QueryAnswers) -> None:
        """Let the opinions count from now on, and what overruled them no longer."""
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
