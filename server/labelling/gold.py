"""Gold questions: marking and listing them, and the scores of labellers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from quercus.belief.codec import encode
from quercus.belief.errors import InvalidInput, field_prefix
from quercus.labelling.gold import GoldScore, gold_mark, gold_scores, score_of
from quercus.labelling.history import stored_label
from quercus.server.core.service_core import ServiceCore
from quercus.server.labelling.answering import with_schema
from quercus.server.labelling.reliability import known_model
from quercus.server.wire.labels import decode_label, label_text
from quercus.server.wire.models import to_timestamp
from quercus.server.wire.names import instance_name, parse_model
from quercus.server.wire.request_checks import check_labeller
from quercus.server.wire.schema import ModelSchema
from quercus.specification.bounds import MAX_GOLD
from quercus.specification.names import check_id
from quercus.storage import Mark, Store, check_comment
from quercus.v1 import query_pb2 as pb


async def mark_gold(core: ServiceCore, request: pb.MarkGoldRequest, labeller: str) -> pb.MarkGoldResponse:
    """Mark rows as gold questions, or take marks back."""
    model = parse_model(request.model, "model")
    check_labeller(labeller)
    count = len(request.labels)
    if not 1 <= count <= MAX_GOLD:
        raise InvalidInput("labels", f"are {count:,}, must be 1 to {MAX_GOLD:,}")

    async def attempt(schema: ModelSchema) -> pb.MarkGoldResponse:
        marks = await core.convert_message(request, _decode_marks, request, schema)
        known = await known_model(core, schema)
        done = await core.write(core.store.mark_gold, model, labeller, marks, known)
        return pb.MarkGoldResponse(
            committed_sequence=done.committed_sequence, stored=done.stored, known=done.known
        )

    return await with_schema(core, model, attempt)


def _decode_marks(request: pb.MarkGoldRequest, schema: ModelSchema) -> list[Mark]:
    found = []
    for i, given in enumerate(request.labels):
        field = f"labels[{i}]"
        if given.retract and given.HasField("label"):
            raise InvalidInput(f"{field}.label", "is given, but retract takes the mark back: leave out one")
        label = None
        if not given.retract:
            label = encode(decode_label(given.label, schema.frame, f"{field}.label", schema.shapes))
        with field_prefix(field):
            check_comment(given.comment)
        found.append(Mark(check_id(given.instance_id, f"{field}.instance_id"), label, given.comment))
    return found


async def list_gold(core: ServiceCore, request: pb.ListGoldRequest) -> pb.ListGoldResponse:
    """Return the gold questions of a model."""
    model = parse_model(request.model, "model")
    schema = await core.catalogue.reload_schema(model)
    return await core.read(_read_questions, core.store, schema)


def _read_questions(store: Store, schema: ModelSchema) -> pb.ListGoldResponse:
    response = pb.ListGoldResponse()
    for history in store.gold_histories(schema.model).values():
        mark = gold_mark(history)
        if mark is None:  # the mark was just taken back
            continue
        answers = score_of(history, schema.frame.size)
        response.questions.add(
            instance=instance_name(schema.model, mark.id),
            text=label_text(stored_label(mark.label or b"", schema.frame.size), schema.frame),
            labeller=mark.author,
            create_time=to_timestamp(mark.created_at),
            comment=mark.comment,
            answered=len(answers),
            right=sum(answers.values()),
        )
    return response


async def scores_of_model(core: ServiceCore, schema: ModelSchema) -> Mapping[str, GoldScore]:
    """Return the score of each labeller, computed once for all calls at the same state of the log."""
    newest = await core.read(core.store.newest_gold, schema.model)
    make = partial(_make_scores, core.store, schema)
    found: Mapping[str, GoldScore] = await core.gold_scores.get_estimate(schema.key, newest, make)
    return found


def _make_scores(store: Store, schema: ModelSchema) -> tuple[int, Mapping[str, GoldScore]]:
    newest = store.newest_gold(
        schema.model
    )  # read first, so that later events are included or count as newer
    histories = store.gold_histories(schema.model)
    if not schema.fits(store.get_model(schema.model)):  # the labels may be of another model or frame
        return 0, {}
    return newest, gold_scores(histories.values(), schema.frame.size)
