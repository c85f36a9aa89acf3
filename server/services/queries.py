"""QueryService: who is asked what, and what was answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from quercus.belief.errors import InvalidInput
from quercus.proto.v1 import query_pb2, query_pb2_grpc
from quercus.server import leasing
from quercus.server.access import OPERATOR, READER, caller
from quercus.server.checks import check_count, check_labeller, check_sequence, lease_s, wait_s
from quercus.server.convert_models import timestamp
from quercus.server.core import Core
from quercus.server.limits import MAX_CREDITS
from quercus.server.names import make_token, page_size, parse_model, parse_query, read_number_token
from quercus.server.query_stream import QueryStream
from quercus.storage.query_records import Idle, Leased, QueryState
from quercus.storage.store import Store


class QueryService(query_pb2_grpc.QueryServiceServicer):
    """Thin: convert, call, convert.

    Parameters
    ----------
    core : what all services share.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    async def LeaseQueries(  # noqa: N802
        self, request: query_pb2.LeaseQueriesRequest, context: Any
    ) -> query_pb2.LeaseQueriesResponse:
        """Lease queries, waiting for some when there are none."""
        core = self._core
        terms = leasing.Terms(
            parse_model(request.model, "model"),
            check_labeller(request.labeller),
            lease_s(request.lease_duration, request.HasField("lease_duration")),
            check_sequence(request.min_sequence),
        )
        limit = check_count(request.max_queries, "max_queries", 0, MAX_CREDITS) or 1
        leased = await self._wait_for_queries(terms, limit, wait_s(request.wait))
        try:
            queries = await core.read(leasing.with_instances, core.store, terms.model, leased.queries)
        except BaseException:
            for query in leased.queries:
                leasing.give_back(core, terms.model, query.number, query.token)
            raise
        return query_pb2.LeaseQueriesResponse(
            queries=[
                _with_token(query, record.token)
                for query, record in zip(queries, leased.queries, strict=True)
            ],
            idle=int(leased.idle),  # type: ignore[arg-type]  # the store's numbers are the wire's
            budget_left=leased.budget_left,
        )

    async def _wait_for_queries(self, terms: leasing.Terms, limit: int, wait: float) -> Leased:
        core = self._core
        deadline = asyncio.get_running_loop().time() + wait
        tried: leasing.Mark | None = None
        while True:
            seen = core.changes.count
            outlook = await core.outlooks.of(terms.model, fresh=tried is None)
            mark = leasing.mark(outlook.record)
            if mark != tried:
                leased = await leasing.lease(core, terms, limit)
                tried = mark
            left = deadline - asyncio.get_running_loop().time()
            if leased.queries or leased.idle is Idle.BUDGET_SPENT or left <= 0 or core.stopping.is_set():
                return leased
            await core.pause(seen, min(left, outlook.patience_s))

    async def StreamQueries(  # noqa: N802
        self, request_iterator: Any, context: Any
    ) -> AsyncIterator[query_pb2.StreamQueriesResponse]:
        """Send queries as credits allow; take answers and refusals."""
        async for response in QueryStream(self._core).run(request_iterator):
            yield response

    async def AnswerQuery(  # noqa: N802
        self, request: query_pb2.AnswerQueryRequest, context: Any
    ) -> query_pb2.AnswerQueryResponse:
        """Store an answer."""
        return await leasing.answer(self._core, request)

    async def RefuseQuery(  # noqa: N802
        self, request: query_pb2.RefuseQueryRequest, context: Any
    ) -> query_pb2.RefuseQueryResponse:
        """Store a refusal."""
        return await leasing.refuse(self._core, request)

    async def ExtendLease(  # noqa: N802
        self, request: query_pb2.ExtendLeaseRequest, context: Any
    ) -> query_pb2.ExtendLeaseResponse:
        """Let a live lease end later."""
        model, number = parse_query(request.name)
        leasing.check_token(request.lease_token)
        seconds = lease_s(request.lease_duration, request.HasField("lease_duration"))
        expires_at = await self._core.write(
            self._core.store.extend, model, number, request.lease_token, seconds
        )
        return query_pb2.ExtendLeaseResponse(lease_expire_time=timestamp(expires_at))

    async def ListQueries(  # noqa: N802
        self, request: query_pb2.ListQueriesRequest, context: Any
    ) -> query_pb2.ListQueriesResponse:
        """Return a page of queries, in order of number."""
        model = parse_model(request.model, "model")
        size = page_size(request.page_size)
        after = read_number_token("queries", request.page_token)
        states = [_state(state, f"states[{i}]") for i, state in enumerate(request.states)]
        return await self._core.read(_list, self._core.store, model, states, after, size, _only())


def _only() -> str | None:
    """Return the labeller who may see no other's queries, None for a caller who may see all."""
    principal = caller()
    if principal is None or principal.roles & {OPERATOR, READER}:
        return None
    return principal.name


def _state(state: int, field: str) -> QueryState:
    if state not in set(QueryState):
        raise InvalidInput(field, f"is {state}, must be a state of a query, 1 to {max(QueryState)}")
    return QueryState(state)


def _with_token(query: query_pb2.Query, token: str) -> query_pb2.Query:
    query.lease_token = token
    return query


def _list(  # noqa: PLR0917 - runs in a thread
    store: Store, model: str, states: list[QueryState], after: int, size: int, only: str | None
) -> query_pb2.ListQueriesResponse:
    records = store.list_queries(model, states, after, size + 1)
    page = records[:size]
    shown = [record for record in page if only is None or record.labeller in ("", only)]
    return query_pb2.ListQueriesResponse(
        queries=leasing.with_instances(store, model, shown),
        next_page_token=make_token("queries", page[-1].number) if len(records) > size else "",
    )
