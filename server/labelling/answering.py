"""Answers, refusals and corrections of labellers; several answers to a query are combined."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from quercus.belief import evidence
from quercus.belief.codec import encode
from quercus.belief.errors import InvalidInput
from quercus.belief.label import Label, Masses, contour, vacuous
from quercus.proto.v1 import instance_pb2, query_pb2
from quercus.server.core.service_core import ServiceCore
from quercus.server.gate.access import corrects_all
from quercus.server.labelling.combined_labels import (
    MAX_AUTHOR,
    Voice,
    combine_answers,
    label_combiner,
    voice_of,
    weighed_label,
)
from quercus.server.labelling.leasing import check_lease_token
from quercus.server.labelling.reliability import Crowd, crowd_of_model
from quercus.server.wire.errors import Unavailable
from quercus.server.wire.evidence import known_contour
from quercus.server.wire.labels import decode_label
from quercus.server.wire.names import parse_query
from quercus.server.wire.request_checks import check_labeller, took_s
from quercus.server.wire.schema import ModelSchema
from quercus.storage import (
    AnswerChange,
    Answered,
    CombinedAnswer,
    Event,
    EventKind,
    Policy,
    QueryState,
    Reliability,
    Store,
)

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
    """Store an answer, combined with what is known of the instance."""
    model, number = parse_query(request.name)
    check_lease_token(request.lease_token)
    took = took_s(request.took) if request.HasField("took") else None

    async def attempt(schema: ModelSchema) -> query_pb2.AnswerQueryResponse | None:
        crowd = await core.read(_crowd_of, core.store, schema, number)  # an unknown query before a bad label
        label = await core.convert(request, decode_label, request.label, schema.frame)
        declared = request.reliability if request.HasField("reliability") else None
        said = _NewAnswer(number, request.lease_token, label, declared, request.comment, took, request.shown)
        return await core.write(_answer_in_store, core.store, schema, said, request.name, crowd)

    return await with_schema(core, model, attempt)


async def refuse_query(
    core: ServiceCore, request: query_pb2.RefuseQueryRequest
) -> query_pb2.RefuseQueryResponse:
    """Store that the labeller cannot tell. Once somebody has answered it, that is an answer that says nothing."""
    model, number = parse_query(request.name)
    check_lease_token(request.lease_token)
    took = took_s(request.took) if request.HasField("took") else None

    async def attempt(schema: ModelSchema) -> query_pb2.RefuseQueryResponse | None:
        said = _NewAnswer(
            number, request.lease_token, vacuous(schema.frame), 1.0, request.comment, took, request.shown
        )
        crowd = await core.read(_crowd_of, core.store, schema, number)
        return await core.write(_refuse_in_store, core.store, schema, said, request.name, crowd)

    return await with_schema(core, model, attempt)


async def correct_answer(
    core: ServiceCore, request: query_pb2.CorrectAnswerRequest, labeller: str
) -> query_pb2.CorrectAnswerResponse:
    """Put another answer into the place of the labeller's own."""
    model, number = parse_query(request.name)
    check_labeller(labeller)

    async def attempt(schema: ModelSchema) -> query_pb2.CorrectAnswerResponse | None:
        crowd = await core.read(_crowd_of, core.store, schema, number)
        label = await core.convert(request, decode_label, request.label, schema.frame)
        declared = request.reliability if request.HasField("reliability") else None
        change = _AnswerEdit(number, labeller, label, declared, request.comment, corrects_all())
        done = await core.write(_amend_answer, core.store, schema, change, crowd)
        return (
            None
            if done is None
            else query_pb2.CorrectAnswerResponse(
                name=request.name, committed_sequence=done.sequence, conflict=done.conflict
            )
        )

    return await with_schema(core, model, attempt)


async def undo_answer(
    core: ServiceCore, request: query_pb2.UndoAnswerRequest, labeller: str
) -> query_pb2.UndoAnswerResponse:
    """Take an answer or a refusal back."""
    model, number = parse_query(request.name)
    check_labeller(labeller)

    async def attempt(schema: ModelSchema) -> query_pb2.UndoAnswerResponse | None:
        change = _AnswerEdit(number, labeller, None, 1.0, request.comment, corrects_all())
        crowd = await core.read(_crowd_of, core.store, schema, number)
        done = await core.write(_amend_answer, core.store, schema, change, crowd)
        return (
            None
            if done is None
            else query_pb2.UndoAnswerResponse(name=request.name, committed_sequence=done.sequence)
        )

    return await with_schema(core, model, attempt)


@dataclass(frozen=True)
class _NewAnswer:
    number: int
    token: str
    label: Label
    declared: float | None  # reliability
    comment: str
    took_s: float | None
    shown: str


@dataclass(frozen=True)
class _AnswerEdit:
    number: int
    labeller: str
    label: Label | None  # None: taken back
    declared: float | None
    comment: str
    permitted: bool  # whatever the policy says


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


def _answer_in_store(
    store: Store, schema: ModelSchema, said: _NewAnswer, name: str, crowd: Crowd | None
) -> query_pb2.AnswerQueryResponse | None:
    """Look and store in the writer thread, so that nothing comes between; None: the schema is of another model."""
    model = schema.model
    if store.get_model(model).key != schema.key:
        return None
    query, policy = store.get_query(model, said.number), store.policy(model)
    history = store.history(model, [query.instance])[query.instance]
    if policy.answers_per_query == 1 and not labellers_with_partial_answers(history, said.number):
        return _answer_alone(store, schema, said, name, crowd=crowd, history=history)
    return _answer_among(store, schema, said, name, crowd=crowd, history=history)


def _answer_alone(
    store: Store,
    schema: ModelSchema,
    said: _NewAnswer,
    name: str,
    *,
    crowd: Crowd | None,
    history: Sequence[Event],
) -> query_pb2.AnswerQueryResponse:
    size = schema.frame.size
    labeller = store.holder(schema.model, said.number, said.token)
    reliability = _reliability_of(crowd, said.declared, labeller)
    known = known_contour(history, size)
    conflict = evidence.update(known, contour(said.label, size), reliability).conflict
    done = store.answer(
        schema.model, said.number, said.token, encode(said.label), reliability, conflict,
        comment=said.comment, took_s=said.took_s, declared=said.declared is not None,
        join=label_combiner(size, crowd), shown=said.shown,
    )  # fmt: skip
    return query_pb2.AnswerQueryResponse(
        name=name, committed_sequence=done.sequence, conflict=done.conflict, reliability=reliability
    )


def _answer_among(
    store: Store,
    schema: ModelSchema,
    said: _NewAnswer,
    name: str,
    *,
    crowd: Crowd | None,
    history: Sequence[Event],
) -> query_pb2.AnswerQueryResponse:
    """One of several answers: the last of them settles the query with what all say together."""
    model, size = schema.model, schema.frame.size
    record, policy = store.get_model(model), store.policy(model)
    labeller = store.holder(model, said.number, said.token)
    reliability = _reliability_of(crowd, said.declared, labeller)
    others = {
        author: words
        for author, words in partial_answers(history, said.number, size).items()
        if author != labeller
    }
    voices = others | {labeller: Voice(said.label, reliability, said.declared is None)}
    together = combine_answers(list(voices.values()), size)
    last = record.queries_answered + 1 >= record.budget  # nobody else will be asked
    settles = last or _is_enough(policy, len(others) + 1, together.conflict)
    combined, conflict = None, False
    if settles:
        label = weighed_label(voices, size, crowd) or Masses(together.mass)
        conflict = evidence.update(known_contour(history, size), contour(label, size), 1.0).conflict
        combined = CombinedAnswer(encode(label), " + ".join(voices)[:MAX_AUTHOR])
    done = store.answer(
        model, said.number, said.token, encode(said.label), reliability, conflict, comment=said.comment,
        took_s=said.took_s, settles=settles, combined=combined, declared=said.declared is not None,
        join=label_combiner(size, crowd), shown=said.shown,
    )  # fmt: skip
    return query_pb2.AnswerQueryResponse(
        name=name,
        committed_sequence=done.sequence,
        conflict=done.conflict,
        wants_more=not done.settled,
        degree_of_conflict=together.conflict,
        ignorance=together.ignorance,
        reliability=reliability,
    )


def _is_enough(policy: Policy, count: int, conflict: float) -> bool:
    """Whether so many answers, in so much conflict, settle a query."""
    wanted = policy.answers_per_query
    return count >= wanted and (conflict <= policy.max_conflict or count >= 2 * wanted)


def _refuse_in_store(
    store: Store, schema: ModelSchema, said: _NewAnswer, name: str, crowd: Crowd | None
) -> query_pb2.RefuseQueryResponse | None:
    model = schema.model
    if store.get_model(model).key != schema.key:
        return None
    query = store.get_query(model, said.number)
    history = store.history(model, [query.instance])[query.instance]
    if partial_answers(history, said.number, schema.frame.size):
        done = _answer_in_store(store, schema, said, name, crowd)
        return done and query_pb2.RefuseQueryResponse(name=name, committed_sequence=done.committed_sequence)
    refused = store.refuse(
        model, said.number, said.token, comment=said.comment, took_s=said.took_s, shown=said.shown
    )
    return query_pb2.RefuseQueryResponse(name=name, committed_sequence=refused.sequence)


def _amend_answer(
    store: Store, schema: ModelSchema, change: _AnswerEdit, crowd: Crowd | None
) -> Answered | None:
    model, size, number = schema.model, schema.frame.size, change.number
    if store.get_model(model).key != schema.key:
        return None
    query = store.get_query(model, number)
    history = store.history(model, [query.instance])[query.instance]
    said = None if change.label is None else encode(change.label)
    join = label_combiner(size, crowd)
    reliability = 1.0 if change.label is None else _reliability_of(crowd, change.declared, change.labeller)
    make = partial(
        AnswerChange, change.labeller, said, reliability=reliability, comment=change.comment,
        permitted=change.permitted, declared=change.label is None or change.declared is not None,
    )  # fmt: skip
    if change.labeller not in labellers_with_partial_answers(
        history, number
    ):  # the one answer, or (who may) what overrules all
        conflict = change.label is not None and (
            evidence.update(
                known_contour(history[:1], size), contour(change.label, size), reliability
            ).conflict
        )
        return store.amend(model, number, make(label=said, conflict=conflict), join)
    given = partial_answers(history, number, size)
    given.pop(change.labeller, None)
    if change.label is not None:
        given[change.labeller] = Voice(change.label, reliability, change.declared is None)
    make = partial(make, among=True)
    if query.state not in (QueryState.ANSWERED, QueryState.REFUSED):
        return store.amend(model, number, make(label=None, pending=True))
    if not given:
        return store.amend(model, number, make(label=None), join)
    label = weighed_label(given, size, crowd) or Masses(combine_answers(list(given.values()), size).mass)
    conflict = evidence.update(known_contour(history[:1], size), contour(label, size), 1.0).conflict
    return store.amend(model, number, make(label=encode(label), conflict=conflict), join)


def labellers_with_partial_answers(history: Sequence[Event], number: int) -> set[str]:
    """Who gave one of several answers to a query, taken back or not."""
    return {event.author for event in history if event.kind is EventKind.OPINION and event.query == number}


def partial_answers(history: Sequence[Event], number: int, size: int) -> dict[str, Voice]:
    """Return the current answer of each labeller to a query that wants several, by name."""
    said: dict[str, Voice] = {}
    for event in history:
        if event.kind is not EventKind.OPINION or event.query != number:
            continue
        said.pop(event.author, None)
        if event.label is not None:
            said[event.author] = voice_of(event, event.label, size)
    return said


def check_declared(reliability: float | None) -> None:
    """Raise ``InvalidInput`` for a reliability that was sent and is none."""
    if reliability is not None and not 0.0 < reliability <= 1.0:
        raise InvalidInput("reliability", f"is {reliability!r}, must lie in (0, 1]")


def _crowd_of(store: Store, schema: ModelSchema, number: int) -> Crowd | None:
    """Return the labellers of a model, None where reliability is not estimated.

    It may take a second, so it is no part of the transaction that stores an answer, for which all others wait.

    Raises
    ------
    NotFound
        The model has no query of this number.
    """
    store.get_query(schema.model, number)
    if store.policy(schema.model).reliability is Reliability.DECLARED:
        return None
    return crowd_of_model(store, schema.model, schema.frame.size)


def _reliability_of(crowd: Crowd | None, declared: float | None, labeller: str) -> float:
    check_declared(declared)
    if declared is not None:
        return declared
    return 1.0 if crowd is None else crowd.reliability(labeller)
