"""One stream for queries and answers: a few queries arrive in advance."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Self

import grpc

from quercus.client import query_calls, stream_parts
from quercus.client.concurrency import (
    AsyncBidirectionalCall,
    AsyncFuture,
    AsyncInbox,
    AsyncRepeating,
    async_result,
    async_sleep,
)
from quercus.client.errors import QuercusError, Unavailable, from_rpc
from quercus.client.labels import LabelLike
from quercus.client.query_calls import CallSpec
from quercus.client.requests import LONGEST_POLL_S, WaitPolicy
from quercus.client.results import AnswerReport, Lease, Query
from quercus.client.retrying import is_transient
from quercus.client.stream_parts import StreamOptions

if TYPE_CHECKING:
    from quercus.client.aio.queries import LeasingCalls

CLOSE_S = 1.0


class AsyncQueryStream:
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
        self._line: AsyncQueryLine | None = None

    async def _open_line(self) -> AsyncQueryLine:
        first = stream_parts.opening_message(
            self._terms, self._client._sequences.newest_sequence(self._terms.model)
        )
        self._line = AsyncQueryLine(self._client, self._terms.lease_s / 3)
        await self._line.open_call(first)
        return self._line

    async def __aenter__(self) -> Self:
        await self._open_line()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the stream; held queries go back."""
        if self._line is not None:
            await self._line.close()

    def __aiter__(self) -> AsyncIterator[Query]:
        return self

    async def __anext__(self) -> Query:
        try:
            return await self._next_query()
        except Exception:
            # At the end, too: without ``with`` nothing else closes it, and leases would be extended.
            await self.close()
            self._line = None
            raise

    async def _next_query(self) -> Query:
        line = self._line or await self._open_line()
        if self._current is not None:
            await line.give_back(self._current)
            self._current = None
        self._patience.restart_wait()
        while True:
            event = await line.next_event(self._patience.wait_s if self._idle else LONGEST_POLL_S)
            if isinstance(event, QuercusError):
                line = await self._reopen_line(event)
                continue
            self._trial.note_success()
            if isinstance(event, Query):
                self._idle, self._current = "", event
                return event
            self._idle = event or self._idle or "nothing_to_ask"
            spent = self._idle == "budget_spent" and self._terms.is_one_model
            now = await self._client.get_model(self._terms.model) if spent else None
            if self._patience.is_over(Lease((), self._idle, 0), now):
                raise StopAsyncIteration

    async def _reopen_line(self, error: QuercusError) -> AsyncQueryLine:
        pause_s = stream_parts.resume_s(error, self._trial, self._client._sequences, self._terms.model)
        if pause_s is None:
            raise error
        await self.close()
        await async_sleep(pause_s)
        self._patience.restart_wait()
        return await self._open_line()

    # Answers of the labeller

    async def answer(
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
        return await self._send_reply(
            query, query_calls.answer(query, label, reliability, comment, took_s, shown)
        )

    async def refuse(self, query: Query, *, comment: str = "", shown: str = "") -> AnswerReport:
        """Refuse a query because the class cannot be known: the instance is not queried again."""
        return await self._send_reply(query, query_calls.refuse(query, comment, shown))

    async def skip(self, query: Query, *, comment: str = "") -> None:
        """Skip a query: other labellers get it, you are not asked about the instance again."""
        await self._settle_query(
            query, query_calls.give_back(query, query_calls.How.HOW_SKIP, comment=comment)
        )

    async def postpone(self, query: Query, delay_s: float = 600.0, *, comment: str = "") -> None:
        """Return a query for later: no labeller gets it within ``delay_s`` seconds (1 to 86,400)."""
        await self._settle_query(
            query, query_calls.give_back(query, query_calls.How.HOW_POSTPONE, delay_s, comment)
        )

    async def release(self, query: Query) -> None:
        """Return a query to the next labeller who asks."""
        await self._settle_query(query, query_calls.give_back(query))

    async def _send_reply(self, query: Query, ask: CallSpec[AnswerReport]) -> AnswerReport:
        report: AnswerReport = await self._settle_query(query, ask)
        self._client._sequences.record_sequence(query.model, report.model_uid, report.committed_sequence)
        return report

    async def _settle_query(self, query: Query, ask: CallSpec[Any]) -> Any:
        if self._line is None:  # not open yet, or at its end
            return await self._client._send_call(ask)
        try:
            reply = await async_result(await self._line.send_call(ask), self._client.timeout_s)
        except (QuercusError, TimeoutError) as error:
            if isinstance(error, QuercusError) and not is_transient(error):
                raise
            reply = await self._client._send_call(
                ask
            )  # the server may have counted it already; repeating it is safe
        if self._current is not None and self._current.name == query.name:
            self._current = None
        return reply


class AsyncQueryLine:
    """One call of StreamQueries, with heartbeats that extend its leases every ``beat_s``."""

    def __init__(self, client: LeasingCalls, beat_s: float) -> None:
        self._stub, self._address = client._stubs.queries, client.address
        self._incoming: AsyncInbox[Query | str | QuercusError] = AsyncInbox()
        self._waiting: dict[str, AsyncFuture[Any]] = {}
        self._lock = threading.Lock()  # of the synchronous client, whose events come in a thread
        self._ended: QuercusError | None = None
        self._heart = AsyncRepeating(self._send_heartbeat, beat_s, "quercus-queries-heartbeat")

    async def open_call(self, first: Any) -> None:
        """Open the stream with the message ``first``."""
        self._call = AsyncBidirectionalCall(self._stub.StreamQueries, self._take_response, "quercus-queries")
        await self._call.write(first)
        await self._heart.start()

    async def _send_heartbeat(self) -> bool:
        if self._ended is not None:
            return False
        await self._call.write(stream_parts.heartbeat_message())
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

    async def next_event(self, wait_s: float) -> Query | str | QuercusError:
        """Return the next query, the reason why there is none ("": none within ``wait_s``), or the end of the call."""
        try:
            return await self._incoming.get(wait_s)
        except TimeoutError:
            return ""

    async def send_call(self, ask: CallSpec[Any]) -> AsyncFuture[Any]:
        """Send an answer, a refusal or a return; the future has the server's reply."""
        future: AsyncFuture[Any] = AsyncFuture()
        with self._lock:
            if self._ended is not None:
                raise self._ended
            self._waiting[ask.request.name] = future
        await self._call.write(stream_parts.message_of(ask))
        return future

    async def give_back(self, query: Query) -> None:
        """Give a query back without waiting for the reply."""
        if self._ended is None:
            await self._call.write(stream_parts.message_of(query_calls.give_back(query)))

    async def close(self) -> None:
        """End the call: the server gives back held queries."""
        await self._heart.stop()
        await self._call.finish(CLOSE_S)
        await self._call.cancel()
