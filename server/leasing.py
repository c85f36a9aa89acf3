"""Leases as the query services use them: taken, given back, answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from quercus.belief import evidence
from quercus.belief.codec import encode
from quercus.belief.errors import InvalidInput
from quercus.belief.label import Label, contour
from quercus.proto.v1 import query_pb2
from quercus.server.convert_instances import known_contour
from quercus.server.convert_labels import decode_label
from quercus.server.convert_queries import encode_queries
from quercus.server.core import Core
from quercus.server.errors import Unavailable
from quercus.server.names import parse_query
from quercus.server.schema import Schema
from quercus.storage.query_records import Leased, QueryRecord
from quercus.storage.records import ModelRecord
from quercus.storage.store import Store

Mark = tuple[int, ...]


@dataclass(frozen=True)
class Terms:
    """What a labeller asks for: model, name, length of the lease in seconds, tree it must come from."""

    model: str
    labeller: str
    lease_s: float
    min_sequence: int


async def lease(core: Core, terms: Terms, limit: int) -> Leased:
    """Lease up to `limit` queries; when the caller is gone before it has them they are given back."""
    taken = core.writer.submit(
        partial(
            core.store.lease,
            terms.model,
            terms.labeller,
            limit,
            terms.lease_s,
            min_sequence=terms.min_sequence,
        )
    )
    try:
        return await asyncio.shield(taken)
    except asyncio.CancelledError:
        taken.add_done_callback(partial(_give_back_all, core, terms.model))
        raise


def give_back(core: Core, model: str, number: int, token: str) -> None:
    """Release a lease without waiting; one that is settled or gone meanwhile is no error."""
    done = core.writer.submit(partial(core.store.release, model, number, token))
    done.add_done_callback(lambda future: future.cancelled() or future.exception())


def _give_back_all(core: Core, model: str, taken: asyncio.Future[Leased]) -> None:
    if taken.cancelled() or taken.exception() is not None:
        return
    for query in taken.result().queries:
        give_back(core, model, query.number, query.token)


def mark(record: ModelRecord) -> Mark:
    """Return what decides whether trying to lease again can have another outcome."""
    return (
        record.key,
        record.tree_version,
        record.sequence_grown,
        record.budget,
        record.queries_open,
        record.queries_leased,
        record.queries_answered,
    )


def with_instances(store: Store, model: str, records: Sequence[QueryRecord]) -> list[query_pb2.Query]:
    """Convert queries to the wire, reading their instances."""
    schema = Schema.of(store.get_model(model), store.vocabulary(model))
    histories = store.history(model, sorted({record.instance for record in records})) if records else {}
    return encode_queries(records, histories, schema)


async def answer(core: Core, request: query_pb2.AnswerQueryRequest) -> query_pb2.AnswerQueryResponse:
    """Store an answer, combined with what is known of the instance."""
    model, number = parse_query(request.name)
    check_token(request.lease_token)
    schema = await core.catalogue.schema(model)
    try:
        done = await _answer_with(core, schema, number, request)
    except InvalidInput:
        if (await core.catalogue.reload_schema(model)).key == schema.key:
            raise
        done = None
    if done is None:  # the schema was of a former model of this name
        done = await _answer_with(core, await core.catalogue.reload_schema(model), number, request)
    if done is None:
        raise Unavailable(f"model {model} was just replaced by another of its name: send it again")
    return done


async def _answer_with(
    core: Core, schema: Schema, number: int, request: query_pb2.AnswerQueryRequest
) -> query_pb2.AnswerQueryResponse | None:
    await core.read(core.store.get_query, schema.model, number)  # an unknown query before a bad label
    label = await core.convert(request, decode_label, request.label, schema.frame)
    return await core.write(_answer, core.store, schema, number, label, request)


def _answer(
    store: Store, schema: Schema, number: int, label: Label, request: query_pb2.AnswerQueryRequest
) -> query_pb2.AnswerQueryResponse | None:
    """Look and store in the writer thread, so that nothing comes between; None: the schema is of another model."""
    model, size = schema.model, schema.frame.size
    if store.get_model(model).key != schema.key:
        return None
    query = store.get_query(model, number)
    reliability = request.reliability if request.HasField("reliability") else 1.0
    if not 0.0 < reliability <= 1.0:
        raise InvalidInput("reliability", f"is {reliability!r}, must lie in (0, 1]")
    known = known_contour(store.history(model, [query.instance])[query.instance], size)
    conflict = evidence.update(known, contour(label, size), reliability).conflict
    done = store.answer(model, number, request.lease_token, encode(label), reliability, conflict)
    return query_pb2.AnswerQueryResponse(
        name=request.name, committed_sequence=done.sequence, conflict=done.conflict
    )


async def refuse(core: Core, request: query_pb2.RefuseQueryRequest) -> query_pb2.RefuseQueryResponse:
    """Store that the labeller cannot tell."""
    model, number = parse_query(request.name)
    check_token(request.lease_token)
    done = await core.write(core.store.refuse, model, number, request.lease_token)
    return query_pb2.RefuseQueryResponse(name=request.name, committed_sequence=done.sequence)


def check_token(token: str) -> None:
    """Raise ``InvalidInput`` when there is no lease token."""
    if not token:
        raise InvalidInput("lease_token", "is missing: send the one that came with the query")
