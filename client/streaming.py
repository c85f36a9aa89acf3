"""One stream on which queries come and answers go: a few queries are there before they are asked for."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import grpc

from quercus.client import query_calls, stream_parts
from quercus.client.errors import QuercusError, Unavailable, from_rpc
from quercus.client.labels import LabelLike
from quercus.client.query_calls import Ask
from quercus.client.requests import LONGEST_POLL_S, Patience
from quercus.client.results import AnswerReport, Lease, Query
from quercus.client.stream_parts import Terms

if TYPE_CHECKING:
    from quercus.client.client import Client

CLOSE_S = 1.0


class QueryStream:
    """Queries to iterate over, and what a labeller says about them, on one stream; made by `Client.stream_queries`.

    Leases are extended while you think. A query that you leave without a word goes back when you ask for the next. When
    the connection breaks, the stream is opened anew; what was being said then is said again, by a call of its own, and
    counts once.
    """

    def __init__(self, client: Client, terms: Terms, idle_s: float | None) -> None:
        self._client, self._terms = client, terms
        self._patience = Patience(idle_s)
        self._trial = client._outage.trial()
        self._idle = ""
        self._hand: Query | None = None
        self._line = self._open()

    def _open(self) -> _Line:
        first = stream_parts.first(self._terms, self._client._sequences.newest(self._terms.model))
        return _Line(self._client, first, self._terms.lease_s / 3)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the stream; what it still holds goes back to whoever asks next."""
        self._line.close()

    def __iter__(self) -> Iterator[Query]:
        return self

    def __next__(self) -> Query:
        if self._hand is not None:
            self._line.leave(self._hand)
            self._hand = None
        self._patience.renew()
        while True:
            try:
                event = self._line.incoming.get(
                    timeout=self._patience.wait_s if self._idle else LONGEST_POLL_S
                )
            except queue.Empty:
                event = self._idle or "nothing_to_ask"
            if isinstance(event, QuercusError):
                self._resume(event)
                continue
            self._trial.succeeded()
            if isinstance(event, Query):
                self._idle, self._hand = "", event
                return event
            self._idle = event
            spent = event == "budget_spent" and self._terms.is_one_model
            now = self._client.get_model(self._terms.model) if spent else None
            if self._patience.ended(Lease((), event, 0), now):
                raise StopIteration

    def _resume(self, error: QuercusError) -> None:
        pause_s = stream_parts.resume_s(error, self._trial, self._client._sequences, self._terms.model)
        if pause_s is None:
            raise error
        self._line.close()
        time.sleep(pause_s)
        self._line = self._open()
        self._patience.renew()

    # What a labeller says

    def answer(
        self,
        query: Query,
        label: LabelLike,
        reliability: float | None = None,
        *,
        comment: str = "",
        took_s: float | None = None,
    ) -> AnswerReport:
        """Answer a query, as `Client.answer`."""
        return self._say(query, query_calls.answer(query, label, reliability, comment, took_s))

    def refuse(self, query: Query, *, comment: str = "") -> AnswerReport:
        """Say that nobody can tell: the instance is not asked again."""
        return self._say(query, query_calls.refuse(query, comment))

    def skip(self, query: Query, *, comment: str = "") -> None:
        """Say that it is not for you: others are asked, you are not asked about the instance again."""
        self._do(query, query_calls.give_back(query, query_calls.How.HOW_SKIP, comment=comment))

    def postpone(self, query: Query, delay_s: float = 600.0, *, comment: str = "") -> None:
        """Give a query back for later: nobody gets it before ``delay_s`` (1 to 86,400) have passed."""
        self._do(query, query_calls.give_back(query, query_calls.How.HOW_POSTPONE, delay_s, comment))

    def release(self, query: Query) -> None:
        """Give a query back to whoever asks next."""
        self._do(query, query_calls.give_back(query))

    def _say(self, query: Query, ask: Ask[AnswerReport]) -> AnswerReport:
        report: AnswerReport = self._do(query, ask)
        self._client._sequences.saw(query.model, report.model_uid, report.committed_sequence)
        return report

    def _do(self, query: Query, ask: Ask[Any]) -> Any:
        try:
            done = self._line.ask(ask).result(self._client.timeout_s)
        except (Unavailable, TimeoutError):  # whether it counted is not known: said again it counts once
            done = self._client._ask(ask)
        if self._hand is not None and self._hand.name == query.name:
            self._hand = None
        return done


class _Line:
    """One call of StreamQueries: a thread reads it, requests and heartbeats are written as they come."""

    def __init__(self, client: Client, first: Any, beat_s: float) -> None:
        self.incoming: queue.SimpleQueue[Query | str | QuercusError] = queue.SimpleQueue()
        self._address = client.address
        self._outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._waiting: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()
        self._ended: QuercusError | None = None
        self._call = client._stubs.queries.StreamQueries(self._requests(first, beat_s))
        self._thread = threading.Thread(target=self._read, name="quercus-queries", daemon=True)
        self._thread.start()

    def _requests(self, first: Any, beat_s: float) -> Iterator[Any]:
        yield first
        beat_at = time.monotonic() + beat_s
        while True:
            try:
                request = self._outgoing.get(timeout=max(0.0, beat_at - time.monotonic()))
            except queue.Empty:
                request = stream_parts.heartbeat()
                beat_at = time.monotonic() + beat_s
            if request is None:
                return
            yield request

    def _read(self) -> None:
        try:
            for response in self._call:
                event = stream_parts.take(response, self._waiting)
                if event is not None:
                    self.incoming.put(event)
            error: QuercusError = Unavailable(f"{self._address} ended the stream of queries")
        except grpc.RpcError as broken:
            error = from_rpc(broken, self._address)
        with self._lock:
            self._ended = error
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.set_exception(error)
        self.incoming.put(error)
        self._outgoing.put(None)

    def ask(self, ask: Ask[Any]) -> Future[Any]:
        """Send what a labeller says; the future has what comes of it."""
        future: Future[Any] = Future()
        with self._lock:
            if self._ended is not None:
                raise self._ended
            self._waiting[ask.request.name] = future
            self._outgoing.put(stream_parts.part(ask))
        return future

    def leave(self, query: Query) -> None:
        """Give a query back, and do not wait for it."""
        with self._lock:
            if self._ended is None:
                self._outgoing.put(stream_parts.part(query_calls.give_back(query)))

    def close(self) -> None:
        """End the call: the server gives back what it still holds."""
        self._outgoing.put(None)
        self._thread.join(CLOSE_S)
        self._call.cancel()
