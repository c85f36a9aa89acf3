"""QueryService: leasing and answering queries, disputes, gold questions, labellers, and the labelling policy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from quercus.belief.errors import InvalidInput
from quercus.labelling.crowds.labellers import Crowd
from quercus.labelling.disputes import Agreement
from quercus.labelling.gold import GoldScore
from quercus.server.core.service_core import OnCore
from quercus.server.gate.access import current_caller, labeller_of, only_labels
from quercus.server.labelling import answer_pages, answering, disputes, gold, leasing, neighbours
from quercus.server.labelling.policy_messages import (
    encode_labeller,
    encode_policy,
    encode_step,
    policy_rule,
)
from quercus.server.labelling.query_stream import QueryStream
from quercus.server.labelling.reliability import crowd_of_model
from quercus.server.wire.limits import MIN_PAUSE_S
from quercus.server.wire.models import to_timestamp
from quercus.server.wire.names import (
    ANY,
    make_page_token,
    page_size,
    parse_model,
    parse_query,
    read_number_token,
)
from quercus.server.wire.request_checks import check_count, check_labeller, lease_s, wait_s
from quercus.storage import Eviction, Idle, LabellerCounts, QueryState, Store
from quercus.v1 import query_pb2 as pb
from quercus.v1 import query_pb2_grpc

_FINAL = (Idle.BUDGET_SPENT, Idle.SHARE_SPENT)


class QueryService(OnCore, query_pb2_grpc.QueryServiceServicer):
    """Converts requests, calls `quercus.server.labelling` or the store, and converts their results."""

    async def LeaseQueries(self, request: pb.LeaseQueriesRequest, context: Any) -> pb.LeaseQueriesResponse:
        """Lease queries; if there are none, wait for some."""
        options = leasing.decode_lease_options(request)
        limit = check_count(request.max_queries, "max_queries", 0, self._core.config.max_leases) or 1
        found = await self._wait_for_queries(options, limit, wait_s(request.wait))
        return pb.LeaseQueriesResponse(
            queries=found.queries,
            idle=int(found.leased.idle) or None,  # type: ignore[arg-type]  # the store's numbers are the wire's
            budget_left=found.leased.budget_left,
        )

    async def _wait_for_queries(
        self, options: leasing.LeaseOptions, limit: int, wait: float
    ) -> leasing.LeasedQueries:
        core, loop = self._core, asyncio.get_running_loop()
        deadline = loop.time() + wait
        search = leasing.QuerySearch(core, options)
        found: leasing.LeasedQueries | None = None
        if options.model != ANY:  # most callers get a query at once, and need not find out what to wait for
            found = await search.lease_queries(limit)
            if found.queries or found.leased.idle in _FINAL or wait <= 0:
                return found
        tried: tuple[int, ...] | None = None
        again_at = loop.time() + (0.0 if found is None else found.again_s)
        while True:
            seen = search.change_stamp
            state = await search.current_mark(fresh=tried is None)
            if found is None or (state.may_offer(found) and (state.mark != tried or loop.time() >= again_at)):
                found = await search.lease_queries(limit)
                again_at = loop.time() + found.again_s
            tried = state.mark
            left = deadline - loop.time()
            if found.queries or found.leased.idle in _FINAL or left <= 0 or core.stopping.is_set():
                return found
            patience = min(left, state.patience_s, max(again_at - loop.time(), MIN_PAUSE_S))
            await core.wait_or_stop(search.wait_for_change(seen, patience))

    async def StreamQueries(
        self, request_iterator: Any, context: Any
    ) -> AsyncIterator[pb.StreamQueriesResponse]:
        """Send queries as credits allow, and take answers and refusals."""
        async with aclosing(QueryStream(self._core).run_stream(request_iterator)) as responses:
            async for response in responses:
                yield response

    async def AnswerQuery(self, request: pb.AnswerQueryRequest, context: Any) -> pb.AnswerQueryResponse:
        """Store an answer."""
        return await answering.answer_query(self._core, request)

    async def RefuseQuery(self, request: pb.RefuseQueryRequest, context: Any) -> pb.RefuseQueryResponse:
        """Store a refusal."""
        return await answering.refuse_query(self._core, request)

    async def ExtendLease(self, request: pb.ExtendLeaseRequest, context: Any) -> pb.ExtendLeaseResponse:
        """Extend a live lease."""
        model, number = parse_query(request.name)
        leasing.check_lease_token(request.lease_token)
        seconds = lease_s(request.lease_duration, request.HasField("lease_duration"))
        expires_at = await self._core.write(
            self._core.store.extend, model, number, request.lease_token, seconds
        )
        return pb.ExtendLeaseResponse(lease_expire_time=to_timestamp(expires_at))

    async def ReturnQuery(self, request: pb.ReturnQueryRequest, context: Any) -> pb.ReturnQueryResponse:
        """Give a query back."""
        return await leasing.take_back(self._core, request)

    async def ReleaseLease(self, request: pb.ReleaseLeaseRequest, context: Any) -> pb.ReleaseLeaseResponse:
        """End the lease of any labeller; the history records who ended it, and why."""
        model, number = parse_query(request.name)
        if request.labeller:
            check_labeller(request.labeller)
        operator = current_caller()
        by = f"by {operator.name}" if operator is not None else "by an operator"
        why = f"{by}: {request.comment}" if request.comment else by
        await self._core.write(self._core.store.evict, model, number, Eviction(why, request.labeller))
        return pb.ReleaseLeaseResponse(name=request.name)

    async def CorrectAnswer(self, request: pb.CorrectAnswerRequest, context: Any) -> pb.CorrectAnswerResponse:
        """Replace an answer."""
        return await answering.correct_answer(self._core, request, labeller_of(request.labeller))

    async def UndoAnswer(self, request: pb.UndoAnswerRequest, context: Any) -> pb.UndoAnswerResponse:
        """Take an answer or a refusal back."""
        return await answering.undo_answer(self._core, request, labeller_of(request.labeller))

    async def ListNeighbours(
        self, request: pb.ListNeighboursRequest, context: Any
    ) -> pb.ListNeighboursResponse:
        """Return rows of known class that are similar to the row of a query."""
        return await neighbours.list_neighbours(self._core, request)

    async def ListQueries(self, request: pb.ListQueriesRequest, context: Any) -> pb.ListQueriesResponse:
        """Return a page of queries, in order of number."""
        model = parse_model(request.model, "model")
        size = page_size(request.page_size)
        after = read_number_token("queries", request.page_token)
        for i, state in enumerate(request.states):
            if not 1 <= state <= max(QueryState):
                raise InvalidInput(
                    f"states[{i}]", f"is {state}, must be a state of a query, 1 to {max(QueryState)}"
                )
        states = [QueryState(state) for state in request.states]
        return await self._core.read(_query_page, self._core.store, model, states, after, size, only_labels())

    async def ListQueryHistory(
        self, request: pb.ListQueryHistoryRequest, context: Any
    ) -> pb.ListQueryHistoryResponse:
        """Return a page of steps, in the order they were taken."""
        number = None
        if request.name.count("/") > 1:
            model, number = parse_query(request.name)
        else:
            model = parse_model(request.name)
        size = page_size(request.page_size)
        after = read_number_token("steps", request.page_token)
        return await self._core.read(_history_page, self._core.store, model, number, after, size)

    async def StreamAnswers(self, request: pb.StreamAnswersRequest, context: Any) -> AsyncIterator[pb.Answer]:
        """Send the events of labellers."""
        async for answer in answer_pages.stream_answers(self._core, request, only_labels()):
            yield answer

    async def ListDisputes(self, request: pb.ListDisputesRequest, context: Any) -> pb.ListDisputesResponse:
        """Return a page of disputes."""
        return await disputes.list_disputes(self._core, request)

    async def GetDispute(self, request: pb.GetDisputeRequest, context: Any) -> pb.Dispute:
        """Return the labels of one instance."""
        return await disputes.get_dispute(self._core, request)

    async def Adjudicate(self, request: pb.AdjudicateRequest, context: Any) -> pb.AdjudicateResponse:
        """Decide between the labellers of an instance."""
        return await disputes.adjudicate(self._core, request, labeller_of(request.labeller))

    async def MarkGold(self, request: pb.MarkGoldRequest, context: Any) -> pb.MarkGoldResponse:
        """Mark rows as gold questions, or take marks back."""
        return await gold.mark_gold(self._core, request, labeller_of(request.labeller))

    async def ListGold(self, request: pb.ListGoldRequest, context: Any) -> pb.ListGoldResponse:
        """Return the gold questions of a model."""
        return await gold.list_gold(self._core, request)

    async def GetAgreement(self, request: pb.GetAgreementRequest, context: Any) -> pb.Agreement:
        """Return the agreement of the labellers."""
        return await disputes.get_agreement(self._core, request)

    async def ListLabellers(self, request: pb.ListLabellersRequest, context: Any) -> pb.ListLabellersResponse:
        """Return the statistics of each labeller."""
        model = parse_model(request.model, "model")
        schema = await self._core.catalogue.reload_schema(model)
        crowd = await crowd_of_model(self._core, schema)
        scores = await gold.scores_of_model(self._core, schema)
        found, _ = await disputes.agreement_of_model(self._core, schema)
        return await self._core.read(_labeller_page, self._core.store, model, crowd, found, scores)

    async def GetLabellingPolicy(
        self, request: pb.GetLabellingPolicyRequest, context: Any
    ) -> pb.LabellingPolicy:
        """Return the labelling policy of a model."""
        model = parse_model(request.model, "model")
        return encode_policy(model, await self._core.read(self._core.store.policy, model))

    async def UpdateLabellingPolicy(
        self, request: pb.UpdateLabellingPolicyRequest, context: Any
    ) -> pb.LabellingPolicy:
        """Change the fields of the mask, or replace the policy."""
        model = parse_model(request.model, "model")
        policy = await self._core.write(self._core.store.set_policy, model, policy_rule(request))
        return encode_policy(model, policy)


def _query_page(
    store: Store, model: str, states: list[QueryState], after: int, size: int, only: str | None
) -> pb.ListQueriesResponse:
    records = store.list_queries(model, states, after, size + 1)
    page = records[:size]
    shown = page
    if only is not None:
        has_gold = store.policy(model).gold_share > 0
        shown = [
            record
            for record in page
            if record.labeller == only or not (record.labeller or has_gold or record.is_gold)
        ]
    return pb.ListQueriesResponse(
        queries=leasing.with_instances(store, model, shown),
        next_page_token=make_page_token("queries", page[-1].number) if len(records) > size else "",
    )


def _history_page(
    store: Store, model: str, number: int | None, after: int, size: int
) -> pb.ListQueryHistoryResponse:
    if number is not None:
        store.get_query(model, number)  # raises for an unknown query
    rows = store.query_history(model, number, after, size + 1)
    page = rows[:size]
    return pb.ListQueryHistoryResponse(
        steps=[encode_step(model, row) for row in page],
        next_page_token=make_page_token("steps", page[-1].id) if len(rows) > size else "",
    )


def _labeller_page(
    store: Store, model: str, crowd: Crowd, found: Agreement, scores: Mapping[str, GoldScore]
) -> pb.ListLabellersResponse:
    stated = store.stated(model)
    asked = {counts.labeller: counts for counts in store.labellers(model)}
    return pb.ListLabellersResponse(
        labellers=[
            encode_labeller(
                asked.get(name) or LabellerCounts(name),
                crowd.reliabilities.get(name),
                found.labellers.get(name),
                stated.get(name, 0),
                scores.get(name, GoldScore()),
            )
            for name in sorted({*asked, *stated, *found.labellers, *scores})
        ]
    )
