"""The session of a labeller: queries are leased one after another, and answers sent, also over an outage."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeVar

from rich.console import Console

from quercus.cli.common import err
from quercus.cli.label_person import Answer, CannotTell, EditEarlier, Postpone, Quit, Skip, TerminalLabeller
from quercus.client.client import Client
from quercus.client.errors import FailedPrecondition, QuercusError, Unavailable
from quercus.client.labelling_results import ANY, Filter
from quercus.client.labels import LabelLike
from quercus.client.reasons import why_it_stopped
from quercus.client.results import AnswerReport, Query

Answerer = Callable[[Query], "Answer | Quit"]
T = TypeVar("T")

TELL_AFTER_S = 1.0
"""A wait that is longer is explained."""


@dataclass
class Tally:
    """How many queries were answered, refused, skipped and so on."""

    answered: int = 0
    refused: int = 0
    skipped: int = 0
    postponed: int = 0
    corrected: int = 0
    undone: int = 0
    late: int = 0
    conflicts: int = 0
    labeller: str = ""

    def text(self) -> str:
        """Return the counts in words, without those that are 0."""
        parts = [f"{self.answered} answered"]
        parts += [
            f"{count} {name}"
            for name, count in asdict(self).items()
            if count and name not in ("answered", "labeller")
        ]
        return ", ".join(parts)


@dataclass(frozen=True)
class Session:
    """Who answers the queries of which model, and how; ``person`` is None for answers from a file."""

    client: Client
    model: str
    labeller: str
    reliability: float | None
    limit: int | None
    idle_s: float | None
    lease_s: float
    person: TerminalLabeller | None
    console: Console
    only: Filter
    comment: str

    @property
    def is_person(self) -> bool:
        """Somebody sits at a terminal."""
        return self.person is not None

    def words(self) -> str:
        """The comment of the next answer."""
        return (self.person.comment() if self.person is not None else "") or self.comment

    def tell_outage(self, left_s: float) -> None:
        """Tell a person why nothing happens, and that nothing is lost."""
        self.say(
            f"the server at {self.client.address} does not answer; your answer is kept and sent when it does. "
            f"Waiting for {left_s:.0f} s, then asking again (Ctrl-C stops)",
            "yellow",
        )

    def say(self, text: str, style: str = "dim") -> None:
        """Tell the labeller something."""
        self.console.print(text, style=style, markup=False, soft_wrap=True)


def _patiently(session: Session, call: Callable[[], T]) -> T:
    """Make a call; when no server answers, a person's answer waits for one rather than being lost."""
    while True:
        try:
            return call()
        except Unavailable as error:
            _await_server(session, error)


def _await_server(session: Session, error: Unavailable) -> None:
    """Wait for a server on behalf of a person; for a file, ``error`` stands."""
    if not session.is_person:
        raise error
    session.say(f"{error}; waiting until one does (Ctrl-C stops)", "yellow")
    while True:
        with contextlib.suppress(Unavailable):
            session.client.wait_ready()
            return


def _waiting_text(session: Session) -> str:
    """Return for what a person waits."""
    text = f"waiting for a query of {session.model} ... (Ctrl-C stops)"
    if session.model == ANY:
        return text
    with contextlib.suppress(QuercusError):
        text = "; ".join(filter(None, [text, why_it_stopped(session.client.get_model(session.model))]))
    return text


@contextmanager
def _telling_if_long(session: Session) -> Iterator[None]:
    """A person who waits is told for what."""
    timer = threading.Timer(TELL_AFTER_S, lambda: session.say(_waiting_text(session)))
    timer.daemon = True
    if session.is_person:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _queries(session: Session) -> Generator[Query, None, None]:
    """Queries one after another, also over the restart of a server."""

    def once() -> Generator[Query, None, None]:
        return session.client.queries(
            session.model, session.labeller, lease_s=session.lease_s, idle_s=session.idle_s, only=session.only
        )

    queries = once()
    try:
        while True:
            try:
                with _telling_if_long(session):
                    query = next(queries, None)
            except Unavailable as error:
                _await_server(session, error)
                queries = once()
                continue
            if query is None:
                return
            yield query
    finally:
        queries.close()  # gives the query in hand back, however this ends


def answer_queries(session: Session, answerer: Answerer, tally: Tally) -> None:
    """Answer queries until none is left, the limit is reached, or the person quits."""
    with closing(_queries(session)) as queries:
        for query in queries:
            tally.labeller = query.labeller
            answer = _patiently(session, partial(answerer, query))
            while isinstance(answer, EditEarlier):
                _take(session, partial(_amend, session, answer, tally), tally)
                answer = _patiently(session, partial(answerer, query))
            if isinstance(answer, Quit):
                return
            _take(session, partial(_send, session, query, answer, tally), tally)
            if session.limit is not None and tally.answered >= session.limit:
                return
    if session.model == ANY:
        session.console.print("nothing more to ask")
        return
    model = _patiently(session, partial(session.client.get_model, session.model))
    if model.queries_answered >= model.budget:
        hint = f"more: quercus models update {model.name} --budget {model.budget + 20}"
        session.console.print(f"the budget of {model.budget:,} answers is spent; {hint}", soft_wrap=True)
    else:
        session.console.print(why_it_stopped(model) or "nothing more to ask", soft_wrap=True)


def _take(session: Session, call: Callable[[], None], tally: Tally) -> None:
    """Make a call; what the server does not take is told, and the session goes on."""
    try:
        _patiently(session, call)
    except FailedPrecondition as error:
        tally.late += 1
        err.print(f"not taken: {error}", style="yellow", markup=False)


def _send(
    session: Session, query: Query, answer: LabelLike | CannotTell | Skip | Postpone, tally: Tally
) -> None:
    client, words = session.client, session.words()
    if isinstance(answer, Skip):
        client.skip(query, comment=words)
        tally.skipped += 1
    elif isinstance(answer, Postpone):
        client.postpone(query, comment=words)
        tally.postponed += 1
    elif isinstance(answer, CannotTell):
        client.refuse(query, comment=words)
        tally.refused += 1
    else:
        report = client.answer(query, answer, session.reliability, comment=words)
        tally.answered += 1
        _tell(session, query, report, tally)


def _amend(session: Session, back: EditEarlier, tally: Tally) -> None:
    client, words, earlier = session.client, session.words(), back.earlier
    if isinstance(back.answer, CannotTell):
        if isinstance(earlier, Query):
            client.undo(earlier, comment=words)
        else:
            client.undo_answer(back.model, earlier, comment=words)
        tally.undone += 1
        session.say("taken back; it may be asked again")
        return
    if isinstance(earlier, Query):
        client.correct(earlier, back.answer, session.reliability, comment=words)
    else:
        client.correct_answer(back.model, earlier, back.answer, session.reliability, comment=words)
    tally.corrected += 1
    session.say("corrected")


def _tell(session: Session, query: Query, report: AnswerReport, tally: Tally) -> None:
    """Say what a person would not expect of an answer."""
    if report.conflict:
        tally.conflicts += 1
        err.print(
            f"instance {query.instance}: your answer contradicts the earlier evidence, and replaces it",
            style="yellow",
        )
    if report.wants_more and session.is_person:
        session.say("others are asked about this row too; your labels are combined")
