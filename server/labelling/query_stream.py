"""A labeller's stream: credits and answers in, queries out; the server counts the outstanding queries."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from quercus.belief.errors import InvalidInput, shown
from quercus.server.core.catalogue import check_reached
from quercus.server.core.service_core import ServiceCore
from quercus.server.gate.access import labeller_of
from quercus.server.labelling import answering, leasing
from quercus.server.wire.errors import error_fields
from quercus.server.wire.limits import MIN_PAUSE_S
from quercus.server.wire.names import ANY, parse_query
from quercus.server.wire.request_checks import check_count, empty_stream
from quercus.storage import FailedPrecondition, Idle, NotFound, QueryState, StorageError, Store
from quercus.v1 import query_pb2 as pb

Request = pb.StreamQueriesRequest
Response = pb.StreamQueriesResponse
Place = tuple[str, int]  # model and number of a query


@dataclass(frozen=True)
class _HeldQuery:
    token: str
    ends: float  # monotonic


class QueryStream:
    """One ``StreamQueries`` call.

    A reader task takes requests, and a leaser task leases while there are credits. Both put responses into a bounded
    queue, so a client that stops reading stops only its own stream. Queries that are still leased when the stream ends
    are given back. An answer that is refused is reported, and the stream continues.
    """

    def __init__(self, core: ServiceCore) -> None:
        self._core = core
        self._key = 0  # key of the model that the stream was opened for
        self._credits = 0
        self._held: dict[Place, _HeldQuery] = {}
        self._out: asyncio.Queue[Response | Exception | None] = asyncio.Queue(2 * core.config.max_leases)
        self._opened: asyncio.Future[leasing.LeaseOptions] = asyncio.get_running_loop().create_future()
        self._wake = asyncio.Event()  # credits or held queries changed

    async def run_stream(self, requests: AsyncIterator[Request]) -> AsyncGenerator[Response]:
        """Yield responses until the client closes its side, the server stops, or an error occurs."""
        tasks = {
            asyncio.create_task(self._report_failure(self._read_requests(requests))),
            asyncio.create_task(self._report_failure(self._lease_forever())),
        }
        try:
            while (item := await self._out.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            for task in tasks:
                task.cancel()
            for (model, number), held in self._held.items():
                leasing.give_back(self._core, model, number, held.token)

    async def _report_failure(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception as error:
            await self._out.put(error)

    # Requests

    async def _read_requests(self, requests: AsyncIterator[Request]) -> None:
        core, most = self._core, self._core.config.max_leases
        options: leasing.LeaseOptions | None = None
        async for request in core.requests_until_stop(requests):
            if options is None:
                options = leasing.decode_lease_options(request)
                if options.model != ANY:
                    # Raise NotFound now rather than at the first credit; read it again, because another server may have
                    # replaced the model.
                    self._key = (await core.catalogue.reload_schema(options.model)).key
                    await core.read(check_reached, core.store, options.model, options.min_sequence)
            for field, given, first in (
                ("model", request.model, f"models/{options.model}"),
                ("labeller", request.labeller, options.labeller),
            ):
                if given and given != first:
                    raise InvalidInput(
                        field, f"is {shown(given)}, but the stream is of {shown(first)}: open another"
                    )
            check_count(request.credits, "credits", 0, most)
            if self._credits + request.credits > most:
                raise InvalidInput(
                    "credits", f"adds {request.credits} to {self._credits}, must not exceed {most} in all"
                )
            self._credits += request.credits
            await self._run_actions(request, options)
            if not self._opened.done():
                self._opened.set_result(options)
            self._wake.set()
        if options is None:
            raise empty_stream("a first message with model and labeller")
        await self._out.put(None)

    async def _run_actions(self, request: Request, options: leasing.LeaseOptions) -> None:
        """Run the actions of a request, one after another."""
        core = self._core

        def correct(core: ServiceCore, part: pb.CorrectAnswerRequest) -> Awaitable[Any]:
            return answering.correct_answer(core, part, labeller_of(part.labeller or options.labeller))

        def undo(core: ServiceCore, part: pb.UndoAnswerRequest) -> Awaitable[Any]:
            return answering.undo_answer(core, part, labeller_of(part.labeller or options.labeller))

        actions: tuple[tuple[str, str, Callable[[ServiceCore, Any], Awaitable[Any]]], ...] = (
            ("answer", "answered", answering.answer_query),
            ("refusal", "refused", answering.refuse_query),
            ("returned", "returned", leasing.take_back),
            ("correction", "corrected", correct),
            ("undo", "undone", undo),
        )
        for field, event, do in actions:
            if request.HasField(field):  # type: ignore[arg-type]  # the names are fields
                await self._run_action(event, getattr(request, field), do)
        if request.heartbeat:
            extended = await core.write(_extend_all, core.store, dict(self._held), options.lease_s)
            now = time.monotonic()
            # `_drop_expired` will check those that could not be extended
            for place, held in self._held.items():
                ends = now + options.lease_s if place in extended else min(held.ends, now)
                self._held[place] = _HeldQuery(held.token, ends)

    async def _run_action(
        self, event: str, part: Any, do: Callable[[ServiceCore, Any], Awaitable[Any]]
    ) -> None:
        """Do one action and report its outcome; a failed action does not end the stream."""
        try:
            done = await do(self._core, part)
        except Exception as error:
            is_refused = isinstance(error, FailedPrecondition | NotFound) or not isinstance(
                error, StorageError
            )
            fields = error_fields(error) if is_refused else None
            if fields is None:
                raise
            await self._out.put(Response(failed=pb.StreamError(name=part.name, **fields)))
            if isinstance(
                error, FailedPrecondition
            ):  # the lease may have ended, which `_drop_expired` will check
                place = parse_query(part.name)
                if place in self._held:
                    self._held[place] = _HeldQuery(self._held[place].token, time.monotonic())
            return
        self._held.pop(parse_query(part.name), None)
        await self._out.put(Response(**{event: done}))

    # Leases

    async def _lease_forever(self) -> None:
        options = await self._opened
        search = leasing.QuerySearch(self._core, options)
        tried: tuple[int, tuple[int, ...]] | None = None
        told: Idle | None = None
        found: leasing.LeasedQueries | None = None
        again_at = float("inf")
        fresh = True
        while True:
            seen = search.change_stamp
            self._wake.clear()
            await self._drop_expired(options)
            room = self._credits - len(self._held)
            state = await search.current_mark(fresh=fresh)
            fresh = False
            if options.model != ANY and state.mark[0] != self._key:
                raise FailedPrecondition(
                    f"model {options.model} was deleted, and another has its name: open another stream"
                )
            is_other = (room, state.mark) != tried or time.monotonic() >= again_at
            if room > 0 and is_other and state.may_offer(found):
                tried = (room, state.mark)
                found = await search.lease_queries(room)
                again_at = time.monotonic() + found.again_s
                now = time.monotonic()
                for record in found.leased.queries:
                    self._held[found.model, record.number] = _HeldQuery(
                        record.token, now + (record.left_s or 0.0)
                    )
                for query in found.queries:
                    await self._out.put(Response(query=query))
                if found.queries:
                    tried = told = None  # when they are given back, the state may look the same as now
                    continue  # there may be more, from another model, or after others had their turn
                if found.leased.idle is not told and not self._held:
                    told = found.leased.idle
                    await self._out.put(Response(idle=int(told)))  # type: ignore[arg-type]
            patience = min(state.patience_s, max(again_at - time.monotonic(), MIN_PAUSE_S))
            await self._wait_for_work(search, seen, patience)

    async def _drop_expired(self, options: leasing.LeaseOptions) -> None:
        """Stop counting queries whose lease has ended; those that were extended meanwhile stay."""
        now = time.monotonic()
        for place, held in list(self._held.items()):
            if held.ends > now:
                continue
            try:
                record = await self._core.read(self._core.store.get_query, *place)
            except (
                NotFound
            ):  # the query was withdrawn and removed, or the model was deleted, which is noticed next
                self._held.pop(place, None)
                continue
            mine = record.state is QueryState.LEASED and record.labeller == options.labeller
            if mine and record.left_s:
                self._held[place] = _HeldQuery(held.token, now + record.left_s)
            else:
                self._held.pop(place, None)

    async def _wait_for_work(self, search: leasing.QuerySearch, seen: int, patience: float) -> None:
        """Wait until the store changes, a lease may have ended, or the client granted credits or answered."""
        held = min((held.ends for held in self._held.values()), default=float("inf")) - time.monotonic()
        waits = {
            asyncio.ensure_future(self._wake.wait()),
            asyncio.ensure_future(search.wait_for_change(seen, max(min(patience, held), MIN_PAUSE_S))),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def _extend_all(store: Store, held: dict[Place, _HeldQuery], duration_s: float) -> set[Place]:
    """Extend the leases that are live; return their places."""
    extended = set()
    for (model, number), lease in held.items():
        try:
            store.extend(model, number, lease.token, duration_s)
            extended.add((model, number))
        except (FailedPrecondition, NotFound):
            continue  # the lease has ended; a late answer will get its own error
    return extended
