"""One labeller's stream: credits and answers in, queries out, the outstanding ones counted by the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass

from quercus.belief.errors import InvalidInput, shown
from quercus.proto.v1 import query_pb2
from quercus.server import leasing
from quercus.server.checks import check_count, check_labeller, check_sequence, empty_stream, lease_s
from quercus.server.core import Core
from quercus.server.limits import MAX_CREDITS
from quercus.server.names import parse_model, parse_query
from quercus.storage.errors import FailedPrecondition, NotFound
from quercus.storage.query_records import Idle, Leased, QueryState

Response = query_pb2.StreamQueriesResponse


@dataclass(frozen=True)
class _Held:
    token: str
    expires_at: float


class QueryStream:
    """The life of one ``StreamQueries`` call.

    A reader task takes requests, a leaser task leases while there are credits; both put responses into one
    bounded queue, so a client that stops reading stops its own stream and nothing else. What is still leased
    when the stream ends is given back.

    Parameters
    ----------
    core : what all services share.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._terms: leasing.Terms | None = None
        self._key = 0  # of the model the stream was opened for
        self._credits = 0
        self._held: dict[int, _Held] = {}
        self._out: asyncio.Queue[Response | Exception | None] = asyncio.Queue(2 * MAX_CREDITS)
        self._opened: asyncio.Future[leasing.Terms] = asyncio.get_running_loop().create_future()
        self._wake = asyncio.Event()  # credits or held queries changed

    async def run(self, requests: AsyncIterator[query_pb2.StreamQueriesRequest]) -> AsyncIterator[Response]:
        """Yield responses until the client closes its side, the server stops, or something is wrong."""
        tasks = {
            asyncio.create_task(self._guard(self._read(requests))),
            asyncio.create_task(self._guard(self._lease_forever())),
        }
        try:
            while (item := await self._out.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            for task in tasks:
                task.cancel()
            for number, held in self._held.items():
                leasing.give_back(self._core, self._model, number, held.token)

    async def _guard(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception as error:
            await self._out.put(error)

    @property
    def _model(self) -> str:
        return self._terms.model if self._terms is not None else ""

    # Requests

    async def _read(self, requests: AsyncIterator[query_pb2.StreamQueriesRequest]) -> None:
        async for request in self._core.requests(requests):
            if self._terms is None:
                self._terms = await self._open(request)
            else:
                self._check_same(request, self._terms)
            self._grant(request.credits)
            if request.HasField("answer"):
                await self._settle(
                    request.answer.name, Response(answered=await leasing.answer(self._core, request.answer))
                )
            if request.HasField("refusal"):
                await self._settle(
                    request.refusal.name, Response(refused=await leasing.refuse(self._core, request.refusal))
                )
            if not self._opened.done():
                self._opened.set_result(self._terms)
            self._wake.set()
        if self._terms is None:
            raise empty_stream("a first message with model and labeller")
        await self._out.put(None)

    async def _open(self, request: query_pb2.StreamQueriesRequest) -> leasing.Terms:
        terms = leasing.Terms(
            parse_model(request.model, "model"),
            check_labeller(request.labeller),
            lease_s(request.lease_duration, request.HasField("lease_duration")),
            check_sequence(request.min_sequence),
        )
        # NotFound now rather than at the first credit; read anew, because another server may have replaced it
        self._key = (await self._core.catalogue.reload_schema(terms.model)).key
        return terms

    def _check_same(self, request: query_pb2.StreamQueriesRequest, terms: leasing.Terms) -> None:
        for field, given, first in (
            ("model", request.model, f"models/{terms.model}"),
            ("labeller", request.labeller, terms.labeller),
        ):
            if given and given != first:
                raise InvalidInput(
                    field, f"is {shown(given)}, but the stream is of {shown(first)}: open another"
                )

    def _grant(self, credits_: int) -> None:
        check_count(credits_, "credits", 0, MAX_CREDITS)
        if self._credits + credits_ > MAX_CREDITS:
            raise InvalidInput(
                "credits", f"adds {credits_} to {self._credits}, must not exceed {MAX_CREDITS} in all"
            )
        self._credits += credits_

    async def _settle(self, name: str, response: Response) -> None:
        model, number = parse_query(name)
        if model == self._model:
            self._held.pop(number, None)
        await self._out.put(response)

    # Leases

    async def _lease_forever(self) -> None:
        terms, core = await self._opened, self._core
        tried: tuple[int, leasing.Mark] | None = None
        told: Idle | None = None
        fresh = True
        while True:
            seen = core.changes.count
            self._wake.clear()
            await self._drop_expired(terms)
            room = self._credits - len(self._held)
            outlook = await core.outlooks.of(terms.model, fresh=fresh)
            fresh = False
            mark = leasing.mark(outlook.record)
            if mark[0] != self._key:
                raise FailedPrecondition(
                    f"model {terms.model} was deleted, and another has its name: open another stream"
                )
            if room > 0 and (room, mark) != tried:
                tried = (room, mark)
                leased = await leasing.lease(core, terms, room)
                await self._send(terms, leased)
                if leased.queries:
                    tried = told = None  # when they come back all may look as it does now
                elif leased.idle is not told and not self._held:
                    told = leased.idle
                    await self._out.put(Response(idle=int(told)))  # type: ignore[arg-type]
            await self._pause(seen, outlook.patience_s)

    async def _send(self, terms: leasing.Terms, leased: Leased) -> None:
        for record in leased.queries:
            self._held[record.number] = _Held(record.token, record.expires_at or 0.0)
        queries = await self._core.read(leasing.with_instances, self._core.store, terms.model, leased.queries)
        for query, record in zip(queries, leased.queries, strict=True):
            query.lease_token = record.token
            await self._out.put(Response(query=query))

    async def _drop_expired(self, terms: leasing.Terms) -> None:
        """Stop counting the queries whose lease ended; one that was extended meanwhile stays."""
        now = time.time()
        for number, held in list(self._held.items()):
            if held.expires_at > now:
                continue
            try:
                record = await self._core.read(self._core.store.get_query, terms.model, number)
            except NotFound:  # withdrawn long ago and removed; or the model is gone, which is seen next
                self._held.pop(number, None)
                continue
            mine = record.state is QueryState.LEASED and record.labeller == terms.labeller
            if mine and record.expires_at is not None and record.expires_at > now:
                self._held[number] = _Held(held.token, record.expires_at)
            else:
                self._held.pop(number, None)

    async def _pause(self, seen: int, patience: float) -> None:
        """Wait until the store changes, a lease may have ended, or the client granted credits or answered."""
        waits = {
            asyncio.ensure_future(self._wake.wait()),
            asyncio.ensure_future(self._core.changes.wait(seen, patience)),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
