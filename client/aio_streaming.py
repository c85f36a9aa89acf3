"""One stream on which queries come and answers go, for asyncio; see :mod:`quercus.client.streaming`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
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
    from quercus.client.aio import Client

CLOSE_S = 1.0


class AsyncQueryStream:
    """As :class:`quercus.client.streaming.QueryStream`; made by `Client.stream_queries`."""

    def __init__(self, client: Client, terms: Terms, idle_s: float | None) -> None:
        self._client, self._terms = client, terms
        self._patience = Patience(idle_s)
        self._trial = client._outage.trial()
        self._idle = ""
        self._hand: Query | None = None
        self._line: _Line | None = None

    async def _open(self) -> _Line:
        first = stream_parts.first(self._terms, self._client._sequences.newest(self._terms.model))
        self._line = _Line(self._client, first, self._terms.lease_s / 3)
        return self._line

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the stream; what it still holds goes back to whoever asks next."""
        if self._line is not None:
            await self._line.close()

    def __aiter__(self) -> AsyncIterator[Query]:
        return self

    async def __anext__(self) -> Query:
        line = self._line or await self._open()
        if self._hand is not None:
            await line.leave(self._hand)
            self._hand = None
        self._patience.renew()
        while True:
            event = await line.next(self._patience.wait_s if self._idle else LONGEST_POLL_S)
            if isinstance(event, QuercusError):
                line = await self._resume(event)
                continue
            self._trial.succeeded()
            if isinstance(event, Query):
                self._idle, self._hand = "", event
                return event
            self._idle = event or self._idle or "nothing_to_ask"
            spent = self._idle == "budget_spent" and self._terms.is_one_model
            now = await self._client.get_model(self._terms.model) if spent else None
            if self._patience.ended(Lease((), self._idle, 0), now):
                raise StopAsyncIteration

    async def _resume(self, error: QuercusError) -> _Line:
        pause_s = stream_parts.resume_s(error, self._trial, self._client._sequences, self._terms.model)
        if pause_s is None:
            raise error
        await self.close()
        await asyncio.sleep(pause_s)
        self._patience.renew()
        return await self._open()

    # What a labeller says

    async def answer(
        self,
        query: Query,
        label: LabelLike,
        reliability: float | None = None,
        *,
        comment: str = "",
        took_s: float | None = None,
    ) -> AnswerReport:
        """Answer a query, as `Client.answer`."""
        return await self._say(query, query_calls.answer(query, label, reliability, comment, took_s))

    async def refuse(self, query: Query, *, comment: str = "") -> AnswerReport:
        """Say that nobody can tell: the instance is not asked again."""
        return await self._say(query, query_calls.refuse(query, comment))

    async def skip(self, query: Query, *, comment: str = "") -> None:
        """Say that it is not for you: others are asked, you are not asked about the instance again."""
        await self._do(query, query_calls.give_back(query, query_calls.How.HOW_SKIP, comment=comment))

    async def postpone(self, query: Query, delay_s: float = 600.0, *, comment: str = "") -> None:
        """Give a query back for later: nobody gets it before ``delay_s`` (1 to 86,400) have passed."""
        await self._do(query, query_calls.give_back(query, query_calls.How.HOW_POSTPONE, delay_s, comment))

    async def release(self, query: Query) -> None:
        """Give a query back to whoever asks next."""
        await self._do(query, query_calls.give_back(query))

    async def _say(self, query: Query, ask: Ask[AnswerReport]) -> AnswerReport:
        report: AnswerReport = await self._do(query, ask)
        self._client._sequences.saw(query.model, report.model_uid, report.committed_sequence)
        return report

    async def _do(self, query: Query, ask: Ask[Any]) -> Any:
        line = self._line or await self._open()
        try:
            done = await asyncio.wait_for(await line.ask(ask), self._client.timeout_s)
        except (Unavailable, TimeoutError):  # whether it counted is not known: said again it counts once
            done = await self._client._ask(ask)
        if self._hand is not None and self._hand.name == query.name:
            self._hand = None
        return done


class _Line:
    """One call of StreamQueries: a task reads it, another sends heartbeats."""

    def __init__(self, client: Client, first: Any, beat_s: float) -> None:
        self._incoming: asyncio.Queue[Query | str | QuercusError] = asyncio.Queue()
        self._address = client.address
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._writing = asyncio.Lock()
        self._ended: QuercusError | None = None
        self._call = client._stubs.queries.StreamQueries()
        self._tasks = [
            asyncio.create_task(self._read(first), name="quercus-queries"),
            asyncio.create_task(self._beat(beat_s), name="quercus-queries-heartbeat"),
        ]

    async def next(self, wait_s: float) -> Query | str | QuercusError:
        """Return the next query, why there is none ("": nothing was heard within ``wait_s``), or how the call ended."""
        with contextlib.suppress(asyncio.QueueEmpty):
            return self._incoming.get_nowait()
        getting = asyncio.ensure_future(self._incoming.get())
        try:
            await asyncio.wait({getting}, timeout=wait_s)
            return getting.result() if getting.done() else ""
        finally:
            getting.cancel()

    async def _read(self, first: Any) -> None:
        try:
            await self._write(first)
            while (response := await self._call.read()) is not grpc.aio.EOF:
                event = stream_parts.take(response, self._waiting)
                if event is not None:
                    self._incoming.put_nowait(event)
            await self._call.code()  # raises nothing, but what follows may
            error: QuercusError = Unavailable(f"{self._address} ended the stream of queries")
        except grpc.RpcError as broken:
            error = from_rpc(broken, self._address)
        except asyncio.CancelledError:
            error = Unavailable("the stream of queries was closed")
        self._ended = error
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(error)
        self._incoming.put_nowait(error)

    async def _beat(self, beat_s: float) -> None:
        while True:
            await asyncio.sleep(beat_s)
            await self._write(stream_parts.heartbeat())

    async def _write(self, request: Any) -> None:
        """Write; when the call is broken, whoever reads it finds out."""
        async with self._writing:
            with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
                await self._call.write(request)

    async def ask(self, ask: Ask[Any]) -> asyncio.Future[Any]:
        """Send what a labeller says; the future has what comes of it."""
        if self._ended is not None:
            raise self._ended
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[ask.request.name] = future
        await self._write(stream_parts.part(ask))
        return future

    async def leave(self, query: Query) -> None:
        """Give a query back, and do not wait for it."""
        if self._ended is None:
            await self._write(stream_parts.part(query_calls.give_back(query)))

    async def close(self) -> None:
        """End the call: the server gives back what it still holds."""
        reading, beating = self._tasks
        beating.cancel()
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
            await self._call.done_writing()
        await asyncio.wait({reading}, timeout=CLOSE_S)
        self._call.cancel()
        reading.cancel()
        await asyncio.gather(reading, beating, return_exceptions=True)
