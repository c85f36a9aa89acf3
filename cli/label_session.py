"""The session of a labeller, a person at a terminal or a file: it sends and counts answers."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial

from rich.console import Console

from quercus.cli.label_person import (
    SENT_POLL_S,
    Answer,
    CannotTell,
    EditEarlier,
    Postpone,
    Quit,
    Skip,
    TakenBack,
    TerminalLabeller,
)
from quercus.cli.label_queue import TerminalQueue, UnsentAnswer
from quercus.client.client import Client
from quercus.client.errors import FailedPrecondition, QuercusError
from quercus.client.filters import ANY, Filter
from quercus.client.results import Query
from quercus.client.shown import shown_text
from quercus.view.models import state_text, why_it_stopped
from quercus.view.queries import idle_text

Answerer = Callable[[Query], Answer]

TELL_AFTER_S = 1.0
"""Seconds of waiting after which the reason is shown."""
SEND_REST_S = 5.0
"""Seconds in which earlier answers can reach the server after a failure."""


@dataclass
class Tally:
    """Numbers of queries that were answered, refused, skipped and so on."""

    answered: int = 0
    refused: int = 0
    skipped: int = 0
    postponed: int = 0
    corrected: int = 0
    undone: int = 0
    late: int = 0
    conflicts: int = 0
    labeller: str = ""

    def has_any(self) -> bool:
        """Return whether any number is positive."""
        return any(count for name, count in asdict(self).items() if name != "labeller")

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
class LabellingSession:
    """A session of one labeller: model, labeller and options; ``print_note`` shows a text in a style of rich."""

    client: Client
    model: str
    labeller: str
    reliability: float | None
    limit: int | None
    idle_s: float | None
    lease_s: float
    console: Console
    only: Filter
    comment: str
    tally: Tally
    print_note: Callable[[str, str], None]

    @property
    def reached_limit(self) -> bool:
        """True if the labeller has given as many answers as the session's limit."""
        return self.limit is not None and self.tally.answered >= self.limit


def answer_from_file(session: LabellingSession, answerer: Answerer) -> None:
    """Answer queries one after another, each after the tree has taken in the previous answer."""
    queries = session.client.queries(
        session.model, session.labeller, lease_s=session.lease_s, idle_s=session.idle_s, only=session.only
    )
    with closing(queries):
        for query in queries:
            session.tally.labeller = query.labeller
            _send_and_report(session, partial(_send_answer, session, query, answerer(query), session.comment))
            if session.reached_limit:
                return
    _tell_end(session)


def label_by_hand(session: LabellingSession, queue: TerminalQueue, person: TerminalLabeller) -> None:
    """Run a session: the next query is leased in advance, and answers are sent in the background."""
    with _interrupted_by_signals(queue):
        queue.open()
        try:
            with person:
                is_left = _label_queries(session, queue, person)
                person.send_all()
        except KeyboardInterrupt:
            _send_rest(session, queue, person)
            raise
        except Exception:
            queue.is_sent(SEND_REST_S)
            _tell_unsent(session, queue)
            raise
        finally:
            queue.close()
    if not is_left:
        _tell_end(session)


def _label_queries(session: LabellingSession, queue: TerminalQueue, person: TerminalLabeller) -> bool:
    """Ask until there is nothing to ask; return whether the person left before."""
    while (query := _next_query(session, queue, person)) is not None:
        session.tally.labeller = query.labeller
        answer = person.ask_query(query)
        if isinstance(answer, Quit):
            return True
        if isinstance(answer, TakenBack):
            continue
        comment = person.take_comment() or session.comment
        if isinstance(answer, EditEarlier):
            queue.submit_answer(
                UnsentAnswer(
                    person.answer_text,
                    partial(_send_and_report, session, partial(_amend_answer, session, answer, comment)),
                )
            )
            continue
        shown = shown_text(query, queue.counted_model(query.model))
        send = partial(_send_answer, session, query, answer, comment, took_s=person.took_s, shown=shown)
        spends = "" if isinstance(answer, Skip | Postpone | CannotTell) else query.model
        unsent = UnsentAnswer(
            f"{person.answer_text}, instance {query.instance}",
            partial(_send_and_report, session, send),
            query,
            spends,
            comment,
        )
        queue.submit_answer(unsent)
        if session.limit is not None and session.tally.answered + len(queue.unsent_answers) >= session.limit:
            person.send_all()
            if session.reached_limit:
                return True
    return False


def _next_query(session: LabellingSession, queue: TerminalQueue, person: TerminalLabeller) -> Query | None:
    """Return the next query, and show a waiting person the reason; ``None``: no more will come."""
    since, is_shown = time.monotonic(), False
    while (query := person.wait_for_query(SENT_POLL_S)) is None and not queue.is_over:
        if not is_shown and time.monotonic() - since > TELL_AFTER_S:
            is_shown = True
            session.print_note(_waiting_text(session, queue.idle_reason), "dim")
    return query


def _waiting_text(session: LabellingSession, idle_reason: str) -> str:
    """Return the text for a waiting person: a line, and below it the reason, if there is one."""
    text = f"waiting for a query of {session.model} ... (Ctrl-C stops)"
    if session.model == ANY:
        return text
    why = idle_text(idle_reason, session.model)
    with contextlib.suppress(QuercusError):
        model = session.client.get_model(session.model)
        why = state_text(model) if why_it_stopped(model) else why
    return f"{text}\n{why}" if why else text


def _send_rest(session: LabellingSession, queue: TerminalQueue, person: TerminalLabeller) -> None:
    """Send the answers given before Ctrl-C; another Ctrl-C gives them up."""
    if queue.is_sent(1.0):
        return
    session.console.print(
        f"{len(queue.unsent_answers)} answers wait for the server; Ctrl-C gives them up", style="yellow"
    )
    try:
        person.send_all()
    except KeyboardInterrupt:
        _tell_unsent(session, queue)


def _tell_unsent(session: LabellingSession, queue: TerminalQueue) -> None:
    for answer in queue.unsent_answers:
        session.console.print(f"not sent: {answer.text}", style="yellow", markup=False)


@contextmanager
def _interrupted_by_signals(queue: TerminalQueue) -> Iterator[None]:
    """End on Ctrl-C, when the terminal is closed, or on SIGTERM; answers are sent first."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: queue.interrupt()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell_end(session: LabellingSession) -> None:
    if session.model == ANY:
        session.console.print("nothing more to ask")
        return
    model = session.client.get_model(session.model)
    if model.queries_answered >= model.budget:
        hint = f"more: quercus models update {model.name} --budget {model.budget + 20}"
        session.console.print(f"the budget of {model.budget:,} answers is spent; {hint}", soft_wrap=True)
    else:
        session.console.print(why_it_stopped(model) or "nothing more to ask", soft_wrap=True)


def _send_and_report(session: LabellingSession, call: Callable[[], None]) -> None:
    """Make a call; if the server refuses it, show the reason, and continue the session."""
    try:
        call()
    except FailedPrecondition as error:
        session.tally.late += 1
        session.print_note(f"not taken: {error}", "yellow")


def _send_answer(
    session: LabellingSession,
    query: Query,
    answer: Answer,
    comment: str,
    *,
    took_s: float | None = None,
    shown: str = "",
) -> None:
    client, tally = session.client, session.tally
    if isinstance(answer, Skip):
        client.skip(query, comment=comment)
        tally.skipped += 1
    elif isinstance(answer, Postpone):
        client.postpone(query, comment=comment)
        tally.postponed += 1
    elif isinstance(answer, CannotTell):
        client.refuse(query, comment=comment, shown=shown)
        tally.refused += 1
    else:
        report = client.answer(
            query, answer, session.reliability, comment=comment, took_s=took_s, shown=shown
        )
        tally.answered += 1
        if report.conflict:
            tally.conflicts += 1
            session.print_note(
                f"instance {query.instance}: your answer contradicts the earlier evidence, and replaces it",
                "yellow",
            )
        if report.wants_more and took_s is not None:
            session.print_note("others are asked about this row too; your labels are combined", "dim")


def _amend_answer(session: LabellingSession, back: EditEarlier, comment: str) -> None:
    client, tally, earlier = session.client, session.tally, back.earlier
    if isinstance(back.answer, CannotTell):
        if isinstance(earlier, Query):
            client.undo(earlier, comment=comment)
        else:
            client.undo_answer(back.model, earlier, comment=comment)
        tally.undone += 1
        session.print_note("taken back; it may be asked again", "dim")
        return
    if isinstance(earlier, Query):
        client.correct(earlier, back.answer, session.reliability, comment=comment)
    else:
        client.correct_answer(back.model, earlier, back.answer, session.reliability, comment=comment)
    tally.corrected += 1
    session.print_note("corrected", "dim")
