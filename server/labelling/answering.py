"""Answers, refusals and corrections of labellers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from quercus.belief.codec import encode
from quercus.belief.errors import InvalidInput
from quercus.belief.label import Label
from quercus.server.core.service_core import ServiceCore
from quercus.server.gate.access import corrects_all, is_trusted
from quercus.server.labelling.leasing import check_lease_token
from quercus.server.labelling.reliability import known_model
from quercus.server.wire.errors import Unavailable
from quercus.server.wire.labels import decode_label
from quercus.server.wire.names import parse_query
from quercus.server.wire.request_checks import check_labeller, took_s
from quercus.server.wire.schema import ModelSchema
from quercus.storage import Amendment, AnswerOutcome, AnswerRequest, LeaseClaim, ModelReplaced, Words
from quercus.v1 import instance_pb2
from quercus.v1 import query_pb2 as pb

T = TypeVar(
    "T",
    pb.AnswerQueryResponse,
    pb.RefuseQueryResponse,
    pb.CorrectAnswerResponse,
    pb.UndoAnswerResponse,
    pb.AdjudicateResponse,
    pb.MarkGoldResponse,
    instance_pb2.StateEvidenceResponse,
)


async def answer_query(core: ServiceCore, request: pb.AnswerQueryRequest) -> pb.AnswerQueryResponse:
    """Store an answer, combined with the evidence of the instance."""
    model, number = parse_query(request.name)
    check_lease_token(request.lease_token)
    took = took_s(request.took) if request.HasField("took") else None

    async def attempt(schema: ModelSchema) -> pb.AnswerQueryResponse:
        label = await _decode_label(core, request, model, number, schema)
        declared = request.reliability if request.HasField("reliability") else None
        words = Words(encode(label), declared, request.comment, took, request.shown)
        done = await _settle_query(core, schema, LeaseClaim(model, number, request.lease_token), words)
        response = pb.AnswerQueryResponse(
            name=request.name,
            committed_sequence=done.sequence,
            conflict=done.conflict,
            wants_more=done.together is not None and not done.settled,
            reliability=done.reliability,
        )
        if done.together is not None:
            response.degree_of_conflict = done.together.conflict
            response.ignorance = done.together.ignorance
        return response

    return await with_schema(core, model, attempt)


async def refuse_query(core: ServiceCore, request: pb.RefuseQueryRequest) -> pb.RefuseQueryResponse:
    """Store a refusal. If the query already has an answer, the refusal is stored as a vacuous answer."""
    model, number = parse_query(request.name)
    check_lease_token(request.lease_token)
    took = took_s(request.took) if request.HasField("took") else None

    async def attempt(schema: ModelSchema) -> pb.RefuseQueryResponse:
        words = Words(None, None, request.comment, took, request.shown)
        done = await _settle_query(core, schema, LeaseClaim(model, number, request.lease_token), words)
        return pb.RefuseQueryResponse(name=request.name, committed_sequence=done.sequence)

    return await with_schema(core, model, attempt)


async def correct_answer(
    core: ServiceCore, request: pb.CorrectAnswerRequest, labeller: str
) -> pb.CorrectAnswerResponse:
    """Replace an answer."""
    model, number = parse_query(request.name)
    check_labeller(labeller)

    async def attempt(schema: ModelSchema) -> pb.CorrectAnswerResponse:
        label = await _decode_label(core, request, model, number, schema)
        declared = request.reliability if request.HasField("reliability") else None
        change = Amendment(labeller, encode(label), declared, request.comment, corrects_all(), is_trusted())
        done = await _amend_answer(core, schema, number, change)
        return pb.CorrectAnswerResponse(
            name=request.name, committed_sequence=done.sequence, conflict=done.conflict
        )

    return await with_schema(core, model, attempt)


async def undo_answer(
    core: ServiceCore, request: pb.UndoAnswerRequest, labeller: str
) -> pb.UndoAnswerResponse:
    """Take an answer or a refusal back."""
    model, number = parse_query(request.name)
    check_labeller(labeller)

    async def attempt(schema: ModelSchema) -> pb.UndoAnswerResponse:
        change = Amendment(labeller, None, None, request.comment, corrects_all(), is_trusted())
        done = await _amend_answer(core, schema, number, change)
        return pb.UndoAnswerResponse(name=request.name, committed_sequence=done.sequence)

    return await with_schema(core, model, attempt)


async def with_schema(core: ServiceCore, model: str, attempt: Callable[[ModelSchema], Awaitable[T]]) -> T:
    """Make an attempt with the cached schema, and another with a fresh one if the cached one was outdated."""
    schema = await core.catalogue.schema(model)
    try:
        done = await attempt(schema)
    except (InvalidInput, ModelReplaced) as error:
        former, schema = schema, await core.catalogue.reload_schema(model)
        if isinstance(error, InvalidInput) and schema.identity == former.identity:
            raise
        try:
            done = await attempt(schema)
        except ModelReplaced:
            raise Unavailable(
                f"model {model} was just extended, or replaced by another of its name: send it again"
            ) from None
    done.model_uid = schema.uid
    return done


async def _decode_label(
    core: ServiceCore,
    request: pb.AnswerQueryRequest | pb.CorrectAnswerRequest,
    model: str,
    number: int,
    schema: ModelSchema,
) -> Label:
    """Read a label; raise `NotFound` rather than `InvalidInput` if the model has no such query."""
    try:
        return await core.convert_message(
            request, decode_label, request.label, schema.frame, "label", schema.shapes
        )
    except InvalidInput:
        await core.read(core.store.get_query, model, number)
        raise


async def _settle_query(
    core: ServiceCore, schema: ModelSchema, claim: LeaseClaim, words: Words
) -> AnswerOutcome:
    done: AnswerOutcome = await core.run_grouped(AnswerRequest(claim, words, await known_model(core, schema)))
    core.estimates.note_wanted(schema.key, done.estimated)
    return done


async def _amend_answer(
    core: ServiceCore, schema: ModelSchema, number: int, change: Amendment
) -> AnswerOutcome:
    known = await known_model(core, schema)
    done = await core.write(core.store.amend, schema.model, number, change, known)
    core.estimates.note_wanted(schema.key, done.estimated)
    return done
