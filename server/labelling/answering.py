"""Answers, refusals and corrections of labellers; several answers to a query are combined."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from quercus.belief.errors import InvalidInput
from quercus.belief.label import Label, vacuous
from quercus.server.core.service_core import ServiceCore
from quercus.server.gate.access import corrects_all
from quercus.server.labelling.answer_rules import (
    Amendment,
    CrowdWanted,
    LabellerReply,
    ModelReplaced,
    NewAnswer,
    pending_rule,
)
from quercus.server.labelling.combined_labels import label_combiner
from quercus.server.labelling.leasing import check_lease_token
from quercus.server.labelling.reliability import Crowd, crowd_of_model, crowd_where_estimated
from quercus.server.wire.errors import Unavailable
from quercus.server.wire.labels import decode_label
from quercus.server.wire.names import parse_query
from quercus.server.wire.request_checks import check_labeller, took_s
from quercus.server.wire.schema import ModelSchema
from quercus.storage import AnswerOutcome, LeaseClaim, PendingRule, Store
from quercus.v1 import instance_pb2, query_pb2

T = TypeVar(
    "T",
    query_pb2.AnswerQueryResponse,
    query_pb2.RefuseQueryResponse,
    query_pb2.CorrectAnswerResponse,
    query_pb2.UndoAnswerResponse,
    instance_pb2.StateEvidenceResponse,
)


async def answer_query(
    core: ServiceCore, request: query_pb2.AnswerQueryRequest
) -> query_pb2.AnswerQueryResponse:
    """Store an answer, combined with the evidence of the instance."""
    model, number = parse_query(request.name)
    check_lease_token(request.lease_token)
    took = took_s(request.took) if request.HasField("took") else None

    async def attempt_call(schema: ModelSchema) -> query_pb2.AnswerQueryResponse | None:
        label = await _decode_label(core, request, model, number, schema)
        declared = request.reliability if request.HasField("reliability") else None
        said = NewAnswer(label, declared, request.comment, took, request.shown)
        settled = await _settle_query(core, schema, LeaseClaim(model, number, request.lease_token), said)
        if settled is None:
            return None
        done, reply = settled
        response = query_pb2.AnswerQueryResponse(
            name=request.name,
            committed_sequence=done.sequence,
            conflict=done.conflict,
            wants_more=reply.together is not None and not done.settled,
            reliability=reply.reliability,
        )
        if reply.together is not None:
            response.degree_of_conflict = reply.together.conflict
            response.ignorance = reply.together.ignorance
        return response

    return await with_schema(core, model, attempt_call)


async def refuse_query(
    core: ServiceCore, request: query_pb2.RefuseQueryRequest
) -> query_pb2.RefuseQueryResponse:
    """Store a refusal. If the query already has an answer, the refusal is stored as a vacuous answer."""
    model, number = parse_query(request.name)
    check_lease_token(request.lease_token)
    took = took_s(request.took) if request.HasField("took") else None

    async def attempt_call(schema: ModelSchema) -> query_pb2.RefuseQueryResponse | None:
        said = NewAnswer(vacuous(schema.frame), 1.0, request.comment, took, request.shown, is_refusal=True)
        settled = await _settle_query(core, schema, LeaseClaim(model, number, request.lease_token), said)
        if settled is None:
            return None
        return query_pb2.RefuseQueryResponse(name=request.name, committed_sequence=settled[0].sequence)

    return await with_schema(core, model, attempt_call)


async def _settle_query(
    core: ServiceCore, schema: ModelSchema, claim: LeaseClaim, said: NewAnswer
) -> tuple[AnswerOutcome, LabellerReply] | None:
    """Look and store while the store holds the model, so that nothing comes between; None: it is another model."""
    try:
        try:
            return await _settle_in_store(core, schema, claim, said, None)
        except CrowdWanted:  # to read them may take a second, and others wait while the store holds the model
            crowd = await crowd_of_model(core, schema)
        return await _settle_in_store(core, schema, claim, said, crowd)
    except ModelReplaced:
        return None


async def _settle_in_store(
    core: ServiceCore, schema: ModelSchema, claim: LeaseClaim, said: NewAnswer, crowd: Crowd | None
) -> tuple[AnswerOutcome, LabellerReply]:
    reply = LabellerReply(schema, said, crowd)
    join = label_combiner(schema.frame.size, crowd)
    return await core.run_grouped(core.store.answer_work(claim, reply, join)), reply


async def pending_rule_of(core: ServiceCore, schema: ModelSchema) -> PendingRule:
    """Return what settles queries with the answers that they have, when the budget of a model is lowered."""
    return pending_rule(schema, await crowd_where_estimated(core, schema))


async def _decode_label(
    core: ServiceCore,
    request: query_pb2.AnswerQueryRequest | query_pb2.CorrectAnswerRequest,
    model: str,
    number: int,
    schema: ModelSchema,
) -> Label:
    """Read a label; `NotFound` rather than `InvalidInput` where the model has no such query."""
    try:
        return await core.convert_message(request, decode_label, request.label, schema.frame)
    except InvalidInput:
        await core.read(core.store.get_query, model, number)
        raise


async def correct_answer(
    core: ServiceCore, request: query_pb2.CorrectAnswerRequest, labeller: str
) -> query_pb2.CorrectAnswerResponse:
    """Put another answer into the place of the labeller's own."""
    model, number = parse_query(request.name)
    check_labeller(labeller)

    async def attempt_call(schema: ModelSchema) -> query_pb2.CorrectAnswerResponse | None:
        crowd = await crowd_where_estimated(core, schema)
        label = await _decode_label(core, request, model, number, schema)
        declared = request.reliability if request.HasField("reliability") else None
        change = Amendment(schema, labeller, label, declared, request.comment, corrects_all(), crowd)
        done = await core.write(_amend_answer, core.store, number, change)
        return (
            None
            if done is None
            else query_pb2.CorrectAnswerResponse(
                name=request.name, committed_sequence=done.sequence, conflict=done.conflict
            )
        )

    return await with_schema(core, model, attempt_call)


async def undo_answer(
    core: ServiceCore, request: query_pb2.UndoAnswerRequest, labeller: str
) -> query_pb2.UndoAnswerResponse:
    """Take an answer or a refusal back."""
    model, number = parse_query(request.name)
    check_labeller(labeller)

    async def attempt_call(schema: ModelSchema) -> query_pb2.UndoAnswerResponse | None:
        crowd = await crowd_where_estimated(core, schema)
        change = Amendment(schema, labeller, None, 1.0, request.comment, corrects_all(), crowd)
        done = await core.write(_amend_answer, core.store, number, change)
        return (
            None
            if done is None
            else query_pb2.UndoAnswerResponse(name=request.name, committed_sequence=done.sequence)
        )

    return await with_schema(core, model, attempt_call)


async def with_schema(
    core: ServiceCore, model: str, attempt: Callable[[ModelSchema], Awaitable[T | None]]
) -> T:
    """Try with the schema that is known, and once more when it was of a former model of this name."""
    schema = await core.catalogue.schema(model)
    done: T | None
    try:
        done = await _attempt_twice(attempt, schema)
    except InvalidInput:
        if (await core.catalogue.reload_schema(model)).key == schema.key:
            raise
        done = None
    if done is None:
        done = await _attempt_twice(attempt, await core.catalogue.reload_schema(model))
    if done is None:
        raise Unavailable(f"model {model} was just replaced by another of its name: send it again")
    return done


async def _attempt_twice(
    attempt: Callable[[ModelSchema], Awaitable[T | None]], schema: ModelSchema
) -> T | None:
    done = await attempt(schema)
    if done is not None:
        done.model_uid = schema.uid
    return done


def _amend_answer(store: Store, number: int, rule: Amendment) -> AnswerOutcome | None:
    """Make a correction while the store holds the model, so that nothing comes between; None: it is another model."""
    model, size = rule.schema.model, rule.schema.frame.size
    try:
        return store.amend(model, number, rule, label_combiner(size, rule.crowd))
    except ModelReplaced:
        return None
