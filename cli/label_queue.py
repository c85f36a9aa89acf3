"""The queue of a labeller at a terminal: background threads fetch the next query and send answers."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from quercus.client.client import Client
from quercus.client.concurrency import Repeating
from quercus.client.errors import FailedPrecondition, QuercusError
from quercus.client.filters import ANY
from quercus.client.query_calls import WaitPolicy
from quercus.client.results import Model, Query
from quercus.client.retrying import backoff_s, is_transient
from quercus.client.sync.held_queries import HeldQueries
from quercus.specification.console import SEND_DELAY_S

T = TypeVar("T")

TAKE_S = 1.0
"""Seconds that a call for the next query may wait; leaving takes no longer."""
GROWN_S = 5.0
JOIN_S = 2.0


@dataclass(eq=False)
class UnsentAnswer:
    """An action of a person that has not reached the server yet.

    Attributes
    ----------
    text
        The action in words.
    send
        Function that sends the action to the server.
    query
        The query that the action ends; ``None``: it corrects an earlier answer.
    model
        The model whose budget the action spends; empty: none.
    comment
        Comment of the labeller.
    due
        Time at which it is sent.
    """

    text: str
    send: Callable[[], None]
    query: Query | None = None
    model: str = ""
    comment: str = ""
    due: float = 0.0
    is_tried: bool = False


class TerminalQueue:
    """The queries of one labeller, and the answers that have not reached the server yet.

    Two background threads: one sends the answers, in order, and retries while the server is unreachable; the other
    leases the next query and, until it is shown, exchanges it for the one that the newest tree asks. If no key is
    pressed for longer than a lease, the next query is given back, and leased again after the next key.

    Parameters
    ----------
    client
        The client, which the threads share.
    queries
        The queries that the labeller holds; none at first.
    idle_s
        End after this time without a query; ``None``: when the budget is spent.
    delay_s
        Seconds before an answer is sent, unless another one follows earlier.
    """

    def __init__(
        self,
        client: Client,
        queries: HeldQueries,
        idle_s: float | None,
        delay_s: float = SEND_DELAY_S.default,
    ) -> None:
        self._client, self._queries, self._delay_s = client, queries, delay_s
        self._patience = WaitPolicy(idle_s)
        self._changed = threading.Condition()
        self._notices: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._unsent_answers: list[UnsentAnswer] = []
        self._shown: Query | None = None
        self._exchanged = ""  # the name of the query that is being given back
        self._models: dict[str, Model] = {}
        self._failure: Exception | None = None
        self._failed: set[str] = set()  # threads
        self._pressed_at = time.monotonic()
        self._has_news = self._ended = self._closing = self._is_away = self._is_interrupted = False
        self._heart = Repeating(self._extend_leases, queries.lease_s / 3, "quercus-labelling-leases")
        self._threads = [
            threading.Thread(
                target=self._run_thread, args=(name, work), name=f"quercus-labelling-{name}", daemon=True
            )
            for name, work in (("answers", self._send_all), ("queries", self._fetch_all))
        ]

    def open(self) -> None:
        """Start to lease queries."""
        self._client.on_outage(self._report_outage)
        self._heart.start()
        for thread in self._threads:
            thread.start()

    # For the labeller's thread

    def print_note(self, text: str, style: str = "dim") -> None:
        """Queue a notice, which is shown when the terminal is free."""
        self._notices.put((text, style))

    def interrupt(self) -> None:
        """End when the labeller next waits, so that an answer given now is kept; a second call ends at once."""
        if self._is_interrupted:
            raise KeyboardInterrupt
        self._is_interrupted = True

    def raise_interrupt(self) -> None:
        """Raise ``KeyboardInterrupt`` if `interrupt` was called."""
        if self._is_interrupted:
            self._is_interrupted = False
            raise KeyboardInterrupt

    def take_notices(self) -> list[tuple[str, str]]:
        """Return the notices since the last call, each with its style; raise the error that ended a thread."""
        self.raise_interrupt()
        notices = []
        with suppress(queue.Empty):
            while True:
                notices.append(self._notices.get_nowait())
        if self._failure is not None and not notices:
            raise self._failure
        return notices

    @property
    def unsent_answers(self) -> list[UnsentAnswer]:
        """The actions that have not reached the server yet, in order."""
        with self._changed:
            return list(self._unsent_answers)

    def counted_model(self, name: str) -> Model:
        """Return a model, with the unsent answers included in its count of answers."""
        if name not in self._models:
            self._models[name] = self._client.get_model(name)
        with self._changed:
            known = self._models[name]
            waiting = sum(answer.model == name for answer in self._unsent_answers)
        return replace(known, queries_answered=known.queries_answered + waiting)

    def next_query(self, wait_s: float) -> Query | None:
        """Return the query to show; ``None``: none came within ``wait_s`` seconds, or `is_over`."""
        with self._changed:
            if self._shown is None:
                self._changed.wait_for(lambda: self._unseen_query() or self._ended or self._failure, wait_s)
                self._shown = self._unseen_query()
                self._changed.notify_all()
            return self._shown

    @property
    def is_over(self) -> bool:
        """True if no more queries will come."""
        with self._changed:
            return self._ended

    @property
    def idle_reason(self) -> str:
        """The server's reason why there is no query; empty if it gave none."""
        return self._queries.idle

    def note_key_press(self, pressed_at: float) -> None:
        """Record the time (monotonic) of the person's last key press."""
        with self._changed:
            was_away, self._pressed_at = self._is_abandoned, max(self._pressed_at, pressed_at)
            if was_away and not self._is_abandoned:
                self._changed.notify_all()

    @property
    def _is_abandoned(self) -> bool:
        """True if a query is shown and no key was pressed for longer than a lease."""
        return self._shown is not None and time.monotonic() - self._pressed_at > self._queries.lease_s

    def submit_answer(self, answer: UnsentAnswer) -> None:
        """Queue an action of the labeller, to be sent after the delay; earlier ones are sent at once."""
        with self._changed:
            self._make_all_due()
            self._pressed_at = time.monotonic()
            if answer.query is not None:
                answer.due = time.monotonic() + self._delay_s
                self._shown = None
            self._unsent_answers.append(answer)
            self._patience.restart_wait()
            self._changed.notify_all()

    def take_back(self) -> UnsentAnswer | None:
        """Take back the last action, and show its query again; ``None``: it may have been sent already."""
        with self._changed:
            last = self._unsent_answers[-1] if self._unsent_answers else None
            if last is None or last.is_tried or last.query is None:
                return None
            self._unsent_answers.pop()
            self._shown = last.query
            return last

    def is_sent(self, wait_s: float) -> bool:
        """Send everything now; return whether the server has it within ``wait_s`` seconds."""
        with self._changed:
            self._make_all_due()
            self._changed.wait_for(lambda: not self._unsent_answers or "answers" in self._failed, wait_s)
            return not self._unsent_answers

    def close(self) -> None:
        """Close the queue and give back held queries; unsent answers are lost."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._heart.stop()
        for thread in self._threads:
            thread.join(JOIN_S)
        self._queries.close()

    # Background threads

    def _run_thread(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            with self._changed:
                if not self._closing:
                    self._failure = self._failure or error
                    self._failed.add(name)
                self._changed.notify_all()

    def _make_all_due(self) -> None:
        for answer in self._unsent_answers:
            answer.due = 0.0
        self._changed.notify_all()

    def _unseen_query(self) -> Query | None:
        """Return the query to show next; None if it is not leased yet."""
        aside = {answer.query.name for answer in self._unsent_answers if answer.query is not None}
        shown = "" if self._shown is None else self._shown.name
        return self._queries.first_except({*aside, shown, self._exchanged})

    def _send_all(self) -> None:
        while (answer := self._wait_until_due()) is not None:
            self._with_retries(answer.send)
            with self._changed:
                self._unsent_answers.remove(answer)
                if answer.query is not None:
                    self._queries.forget(answer.query.name)
                if answer.model:  # so that a query shown before the model is read again counts it
                    known = self._models[answer.model]
                    counted = known.queries_answered + 1
                    self._models[answer.model] = replace(known, queries_answered=counted)
                self._has_news = True
                self._changed.notify_all()
            if answer.model:
                self._models[answer.model] = self._with_retries(partial(self._client.get_model, answer.model))

    def _wait_until_due(self) -> UnsentAnswer | None:
        """Wait until an answer is due, and return it; ``None``: the queue is closing."""
        with self._changed:
            while not self._closing:
                left_s = self._unsent_answers[0].due - time.monotonic() if self._unsent_answers else None
                if left_s is not None and left_s <= 0:
                    self._unsent_answers[0].is_tried = True
                    return self._unsent_answers[0]
                self._changed.wait(left_s)
        return None

    def _fetch_all(self) -> None:
        while not self._closing:
            with self._changed:
                work = self._next_work()
                if work is None:
                    self._changed.wait()
                    continue
                if work != self._give_back:
                    self._has_news = (
                        False  # a query leased now comes from a tree that contains the sent answers
                    )
            self._with_retries(work)

    def _next_work(self) -> Callable[[], None] | None:
        """Return the next task of the fetching thread; the heartbeat wakes the thread when there is none."""
        is_there = self._unseen_query() is not None
        if self._is_abandoned:
            return self._give_back if is_there else None
        if not is_there:
            return self._lease_next
        return self._exchange_unseen if self._has_news else None

    def _lease_next(self) -> None:
        asked = time.monotonic()
        query = self._queries.take(TAKE_S)
        if query is not None and query.model not in self._models:
            self._models[query.model] = self._client.get_model(query.model)
        is_spent = query is None and self._queries.idle == "budget_spent" and self._queries.model != ANY
        now = self._client.get_model(self._queries.model) if is_spent else None
        with self._changed:
            if query is None and self._shown is None:
                if self._unsent_answers:
                    self._make_all_due()  # the next query may depend on unsent answers
                else:
                    self._ended = self._patience.is_over(self._queries.idle, now)
            self._changed.notify_all()
            if query is None and time.monotonic() - asked < TAKE_S:
                self._changed.wait(TAKE_S)  # the server did not wait, since there is nothing to wait for

    def _exchange_unseen(self) -> None:
        if self._queries.has_newer_tree(GROWN_S):
            self._without_unseen(self._queries.exchange)

    def _give_back(self) -> None:
        self._without_unseen(self._queries.give_back)

    def _without_unseen(self, call: Callable[[Query], object]) -> None:
        """Make a call with the unseen query, which cannot be shown until the call ends."""
        with self._changed:
            unseen = self._unseen_query()
            self._exchanged = "" if unseen is None else unseen.name
        try:
            if unseen is not None:
                with suppress(FailedPrecondition):  # it was closed meanwhile: take the next one
                    call(unseen)
        finally:
            with self._changed:
                self._exchanged = ""
                self._changed.notify_all()

    def _extend_leases(self) -> bool:
        lost: list[str] = []
        with suppress(ValueError):  # the channel was closed meanwhile
            lost = self._queries.extend()
        with self._changed:
            shown = self._shown
            self._changed.notify_all()
        if shown is not None and shown.name in lost:
            self.print_note(
                f"instance {shown.instance} is no longer yours: another labeller has it, or the query was withdrawn"
            )
        return True

    # Outages

    def _with_retries(self, call: Callable[[], T]) -> T:
        """Make a call, and retry it after transient errors, such as an unreachable server."""
        attempt = 0
        while True:
            try:
                result = call()
            except QuercusError as error:
                if not is_transient(error):
                    raise
                attempt += 1
                with self._changed:
                    is_first, self._is_away = not self._is_away, True
                    if is_first:
                        self.print_note(f"{error}; retrying (Ctrl-C stops)", "yellow")
                    if self._changed.wait_for(lambda: self._closing, backoff_s(attempt, error)):
                        raise QuercusError("stopped while the server was unreachable") from error
            else:
                self._is_away = False
                return result

    def _report_outage(self, left_s: float) -> None:
        self.print_note(
            f"the server at {self._client.address} does not answer; your answers are kept and sent when it does, and "
            f"you may continue. Waiting for it for {left_s:.0f} s, then retrying (Ctrl-C stops)",
            "yellow",
        )
