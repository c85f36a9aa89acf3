"""The evidence of instances, computed slowly: all labels, whether queried or stated, and their combination.

It shares no code with the service. Labels are sets of classes. A single voice counts unchanged. Several are combined by
Dempster's rule, each discounted by its reliability, at most .99, by enumerating all cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

import numpy as np

from quercus.belief.codec import decode
from quercus.belief.label import ClassSet
from quercus.storage import Event, EventKind

MOST: Final = 0.99
"""Greatest reliability of one of several voices."""


@dataclass(frozen=True)
class LabellerVoice:
    """The label of a labeller: a set of classes, with a reliability; `at` orders the labels of one labeller."""

    at: int
    names: frozenset[int]
    reliability: float


@dataclass
class Query:
    """The replies to one query.

    Attributes
    ----------
    several : it had answers that did not settle it, or were one of several.
    settled : its answers count.
    refused : the labellers who replied that the class cannot be known.
    answers : the answers that count, by labeller.
    ever : the labellers who ever gave one of several answers.
    overruled : the label that replaced all answers, and its labeller.
    """

    several: bool = False
    settled: bool = False
    refused: str = ""
    answers: dict[str, LabellerVoice] = field(default_factory=dict)
    ever: set[str] = field(default_factory=set)
    overruled: tuple[str, LabellerVoice] | None = None


class Ledger:
    """The evidence of one instance."""

    def __init__(self) -> None:
        self.queries: dict[int, Query] = {}
        self.stated: dict[str, LabellerVoice] = {}

    @property
    def is_settled(self) -> bool:
        """True if a query about the instance is answered or refused, or its label was stated: no query is needed."""
        return bool(self.stated) or any(
            query.settled or bool(query.refused) for query in self.queries.values()
        )

    def query(self, number: int) -> Query:
        """Return a query about the instance; a new one has no answers."""
        return self.queries.setdefault(number, Query())

    def answer(self, number: int, author: str, voice: LabellerVoice, *, several: bool, settles: bool) -> None:
        """Take an answer."""
        query = self.query(number)
        query.several |= several
        if several:
            query.ever.add(author)
        query.answers[author] = voice
        query.settled |= settles

    def refuse(self, number: int, author: str) -> None:
        """A labeller replies that the class cannot be known."""
        self.query(number).refused = author

    def correct(self, number: int, author: str, voice: LabellerVoice) -> None:
        """Replace the author's own answer; if there is none, all answers."""
        query = self.query(number)
        if author in query.ever:
            query.answers[author] = voice
            query.overruled = None
        elif query.several:
            query.overruled = author, voice
        else:
            query.answers = {author: voice}

    def undo(self, number: int, author: str) -> None:
        """Take the author's own answer back; if there is none, all answers."""
        query = self.query(number)
        query.overruled = None
        if author in query.ever:
            query.answers.pop(author, None)
        else:
            query.answers = {}
        if not query.answers:
            query.settled, query.refused = False, ""

    def voices(self) -> dict[str, LabellerVoice]:
        """Return the valid labels by labeller: the newest of each."""
        found = list(self.stated.items())
        for query in self.queries.values():
            if query.settled:
                found += list(query.answers.items()) if query.overruled is None else [query.overruled]
        return dict(sorted(found, key=lambda each: each[1].at))

    def contour(self, pushed: Sequence[float]) -> list[float]:
        """Return the present contour, given the pushed one."""
        voices = list(self.voices().values())
        known = np.array(pushed) / max(pushed)
        if not voices:
            return [float(value) for value in known]
        said = _together(voices, len(known))
        is_certain = len(voices) == 1 and len(voices[0].names) == 1 and voices[0].reliability == 1.0
        both = known * said
        if is_certain or not both.any():  # it replaces the pushed contour
            both = said
        return [float(value) for value in both / both.max()]


def conflict(voices: Sequence[LabellerVoice], size: int) -> float:
    """Return the probability that no class remains: the mass of the empty set."""
    return sum(weight for weight, left in _cases(voices, size) if not left)


def _together(voices: Sequence[LabellerVoice], size: int) -> np.ndarray:
    """Plausibility of each class, up to a constant."""
    found = np.zeros(size)
    for weight, left in _cases(voices, size):
        found += weight * np.array([k in left for k in range(size)])
    return found


def _cases(voices: Sequence[LabellerVoice], size: int) -> Iterator[tuple[float, frozenset[int]]]:
    """Each voice is right or uninformative: the probability of each case, and the remaining classes."""
    most = MOST if len(voices) > 1 else 1.0
    for counted in product((True, False), repeat=len(voices)):
        weight, left = 1.0, frozenset(range(size))
        for voice, counts in zip(voices, counted, strict=True):
            reliability = min(voice.reliability, most)
            weight *= reliability if counts else 1.0 - reliability
            left = left & voice.names if counts else left
        yield weight, left


class Ledgers:
    """Ledgers of the instances of a log, by their sequence.

    Parameters
    ----------
    size : number of classes.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._before: Event | None = None
        self.of: dict[int, Ledger] = {}

    def read(self, events: Iterable[Event]) -> None:
        """Take the next events of the log."""
        for event in events:
            if event.kind is EventKind.INSTANCE:
                self.of[event.instance] = Ledger()
            elif event.kind is not EventKind.SPECIFICATION:
                self._take(self.of[event.instance], event)
            self._before = event

    def _take(self, ledger: Ledger, event: Event) -> None:
        query, author = event.query or 0, event.author
        match event.kind:
            case EventKind.STATEMENT:
                ledger.stated.pop(author, None)
                if event.label is not None:
                    ledger.stated[author] = self._voice(event)
            case EventKind.OPINION if event.label is None:
                ledger.undo(query, author)
            case EventKind.OPINION if author in ledger.query(query).ever and ledger.query(query).settled:
                ledger.correct(query, author, self._voice(event))
            case EventKind.OPINION:
                ledger.answer(query, author, self._voice(event), several=True, settles=False)
            case EventKind.ANSWER if ledger.query(query).several:  # the combination of all answers
                ledger.query(query).settled = True
            case EventKind.ANSWER:
                ledger.answer(query, author, self._voice(event), several=False, settles=True)
            case EventKind.REFUSAL:
                ledger.refuse(query, author)
            case EventKind.CORRECTION if query and not self._follows_opinion(event):
                if event.label is None:
                    ledger.undo(query, author)
                else:
                    ledger.correct(query, author, self._voice(event))

    def _follows_opinion(self, event: Event) -> bool:
        """Return whether the event combines all answers after one of them was corrected or taken back."""
        before = self._before
        return before is not None and (before.kind, before.query, before.author) == (
            EventKind.OPINION, event.query, event.author,
        )  # fmt: skip

    def _voice(self, event: Event) -> LabellerVoice:
        label = decode(event.label or b"", self._size)
        assert isinstance(label, ClassSet), label
        names = frozenset(k for k in range(self._size) if label.mask >> k & 1)
        return LabellerVoice(event.sequence, names, event.reliability)
