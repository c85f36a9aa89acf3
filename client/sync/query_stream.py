# Generated from client/aio/query_stream.py by `make client`; edit that file.
"""One stream for queries and answers: a few queries arrive in advance."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import grpc

from quercus.client import query_calls, stream_parts
from quercus.client.concurrency import (
    BidirectionalCall,
    Future,
    Inbox,
    Repeating,
    result,
    sleep,
)
from quercus.client.errors import QuercusError, Unavailable, from_rpc
from quercus.client.labels import LabelLike
from quercus.client.query_calls import CallSpec
from quercus.client.requests import LONGEST_POLL_S, WaitPolicy
from quercus.client.results import AnswerReport, Lease, Query
from quercus.client.retrying import is_transient
from quercus.client.stream_parts import StreamOptions

if TYPE_CHECKING:
    from quercus.client.sync.queries import LeasingCalls

CLOSE_S = 1.0


class QueryStream:
    """A stream of queries, and of a labeller's answers to them; `Client.stream_queries` makes it.

    The stream extends leases while you think. A query without an answer is given back when you request the next one.
    If the connection breaks, the stream is opened again; an answer under way is sent again, by a separate call, and
    counts once.
    """

    def __init__(self, client: LeasingCalls, terms: StreamOptions, idle_s: float | None) -> None:
        self._client, self._terms = client, terms
        self._patience = WaitPolicy(idle_s)
        self._trial = client._outage.start_attempts()
        self._idle = ""
        self._current: Query | None = None
        self._line: QueryLine | None = None

    def _open_line(self) -> QueryLine:
        first = stream_parts.opening_message(
            self._terms, self._client._sequences.newest_sequence(self._terms.model)
        )
        self._line = QueryLine(self._client, self._terms.lease_s / 3)
        self._line.open_call(first)
        return self._line

    def __enter__(self) -> Self:
        self._open_line()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the stream; held queries go back."""
        if self._line is not None:
            self._line.close()

    def __iter__(self) -> Iterator[Query]:
        return self

    def __next__(self) -> Query:
        try:
            return self._next_query()
        except Exception:
            # At the end, too: without ``with`` nothing else closes it, and leases would be extended.
            self.close()
            self._line = None
            raise

    def _next_query(self) -> Query:
        line = self._line or self._open_line()
        if self._current is not None:
            line.give_back(self._current)
            self._current = None
        self._patience.restart_wait()
        while True:
            event = line.next_event(self._patience.wait_s if self._idle else LONGEST_POLL_S)
            if isinstance(event, QuercusError):
                line = self._reopen_line(event)
                continue
            self._trial.note_success()
            if isinstance(event, Query):
                self._idle, self._current = "", event
                return event
            self._idle = event or self._idle or "nothing_to_ask"
            spent = self._idle == "budget_spent" and self._terms.is_one_model
            now = self._client.get_model(self._terms.model) if spent else None
            if self._patience.is_over(Lease((), self._idle, 0), now):
                raise StopIteration

    def _reopen_line(self, error: QuercusError) -> QueryLine:
        pause_s = stream_parts.resume_s(error, self._trial, self._client._sequences, self._terms.model)
        if pause_s is None:
            raise error
        self.close()
        sleep(pause_s)
        self._patience.restart_wait()
        return self._open_line()

    # Answers of the labeller

    def answer(
        self,
        query: Query,
        label: LabelLike,
        reliability: float | None = None,
        *,
        comment: str = "",
        took_s: float | None = None,
        shown: str = "",
    ) -> AnswerReport:
        """Answer a query, as `Client.answer`."""
        return self._send_reply(query, query_calls.answer(query, label, reliability, comment, took_s, shown))

    def refuse(self, query: Query, *, comment: str = "", shown: str = "") -> AnswerReport:
        """Refuse a query because the class cannot be known: the instance is not queried again."""
        return self._send_reply(query, query_calls.refuse(query, comment, shown))

    def skip(self, query: Query, *, comment: str = "") -> None:
        """Skip a query: other labellers get it, you are not asked about the instance again."""
        self._settle_query(query, query_calls.give_back(query, query_calls.How.HOW_SKIP, comment=comment))

    def postpone(self, query: Query, delay_s: float = 600.0, *, comment: str = "") -> None:
        """Return a query for later: no labeller gets it within ``delay_s`` seconds (1 to 86,400)."""
        self._settle_query(
            query, query_calls.give_back(query, query_calls.How.HOW_POSTPONE, delay_s, comment)
        )

    def release(self, query: Query) -> None:
        """Return a query to the next labeller who asks."""
        self._settle_query(query, query_calls.give_back(query))

    def _send_reply(self, query: Query, ask: CallSpec[AnswerReport]) -> AnswerReport:
        report: AnswerReport = self._settle_query(query, ask)
        self._client._sequences.record_sequence(query.model, report.model_uid, report.committed_sequence)
        return report

    def _settle_query(self, query: Query, ask: CallSpec[Any]) -> Any:
        if self._line is None:  # not open yet, or at its end
            return self._client._send_call(ask)
        try:
            reply = result(self._line.send_call(ask), self._client.timeout_s)
        except (QuercusError, TimeoutError) as error:
            if isinstance(error, QuercusError) and not is_transient(error):
                raise
            reply = self._client._send_call(
                ask
            )  # the server may have counted it already; repeating it is safe
        if self._current is not None and self._current.name == query.name:
            self._current = None
        return reply


class QueryLine:
    """One call of StreamQueries, with heartbeats that extend its leases every ``beat_s``."""

    def __init__(self, client: LeasingCalls, beat_s: float) -> None:
        self._stub, self._address = client._stubs.queries, client.address
        self._incoming: Inbox[Query | str | QuercusError] = Inbox()
        self._waiting: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()  # of the synchronous client, whose events come in a thread
        self._ended: QuercusError | None = None
        self._heart = Repeating(self._send_heartbeat, beat_s, "quercus-queries-heartbeat")

    def open_call(self, first: Any) -> None:
        """Open the stream with the message ``first``."""
        self._call = BidirectionalCall(self._stub.StreamQueries, self._take_response, "quercus-queries")
        self._call.write(first)
        self._heart.start()

    def _send_heartbeat(self) -> bool:
        if self._ended is not None:
            return False
        self._call.write(stream_parts.heartbeat_message())
        return True

    def _take_response(self, event: Any) -> None:
        """Take a response, or the end of the call."""
        if event is None:
            self._end_call(Unavailable(f"{self._address} ended the stream of queries"))
        elif isinstance(event, grpc.RpcError):
            self._end_call(from_rpc(event, self._address))
        elif isinstance(event, QuercusError):
            self._end_call(event)
        elif (read := stream_parts.read_event(event, self._waiting)) is not None:
            self._incoming.put(read)

    def _end_call(self, error: QuercusError) -> None:
        with self._lock:
            self._ended = error
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(error)
        self._incoming.put(error)

    def next_event(self, wait_s: float) -> Query | str | QuercusError:
        """Return the next query, the reason why there is none ("": none within ``wait_s``), or the end of the call."""
        try:
            return self._incoming.get(wait_s)
        except TimeoutError:
            return ""

    def send_call(self, ask: CallSpec[Any]) -> Future[Any]:
        """Send an answer, a refusal or a return; the future has the server's reply."""
        future: Future[Any] = Future()
        with self._lock:
            if self._ended is not None:
                raise self._ended
            self._waiting[ask.request.name] = future
        self._call.write(stream_parts.message_of(ask))
        return future

    def give_back(self, query: Query) -> None:
        """Give a query back without waiting for the reply."""
        if self._ended is None:
            self._call.write(stream_parts.message_of(query_calls.give_back(query)))

    def close(self) -> None:
        """End the call: the server gives back held queries."""
        self._heart.stop()
        self._call.finish(CLOSE_S)
        self._call.cancel()
