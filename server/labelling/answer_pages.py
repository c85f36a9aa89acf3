"""The events of labellers, read page by page: in the order of the log, or the newest first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from quercus.belief.errors import InvalidInput
from quercus.labelling.history import label_events
from quercus.server.core.service_core import STOPPING, ServiceCore
from quercus.server.labelling.answer_messages import AnswerSelection, encode_answer, read_filter
from quercus.server.wire.errors import PermissionDenied, Unavailable
from quercus.server.wire.limits import ANSWER_PAGE
from quercus.server.wire.names import parse_model
from quercus.server.wire.schema import ModelSchema
from quercus.storage import EventSelection, NotFound, Store
from quercus.v1 import query_pb2


async def stream_answers(
    core: ServiceCore, request: query_pb2.StreamAnswersRequest, only: str | None
) -> AsyncIterator[query_pb2.Answer]:
    """Yield the answers that are asked for, holding one page of them at a time.

    Parameters
    ----------
    core : common part of all services.
    request : the filter of the answers and the position to start from.
    only : the one labeller whose answers the caller may see; None: all.
    """
    model = parse_model(request.model, "model")
    for field in ("after_sequence", "limit"):
        if getattr(request, field) < 0:
            raise InvalidInput(field, f"is {getattr(request, field)}, must not be negative")
    schema = await core.catalogue.reload_schema(model)
    wanted = _of_whom(read_filter(request, schema.frame), only)
    look = await core.read(_read_selection, core.store, schema, wanted, request)
    left = request.limit or float("inf")
    while True:
        page, last = await core.read(_read_page, core.store, schema, wanted, look, request.include_values)
        for answer in page:
            yield answer
            left -= 1
            if left <= 0:
                return
        if last is None:
            return
        if core.stopping.is_set():
            raise Unavailable(STOPPING)
        look = replace(look, after=last)


def _of_whom(wanted: AnswerSelection, only: str | None) -> AnswerSelection:
    if only is None:
        return wanted
    if others := [name for name in wanted.labellers if name != only]:
        raise PermissionDenied(f"labellers: has {others[0][:60]!r}, but the token speaks for {only!r}")
    return replace(wanted, labellers=(only,))


def _read_selection(
    store: Store, schema: ModelSchema, wanted: AnswerSelection, request: query_pb2.StreamAnswersRequest
) -> EventSelection:
    instances = None
    if wanted.instances:
        places = store.places(schema.model, wanted.instances)
        if missing := [each for each in wanted.instances if each not in places]:
            raise NotFound("instance", f"{schema.model}/{missing[0]}")
        instances = tuple(places.values())
    return EventSelection(
        request.after_sequence, ANSWER_PAGE, request.newest_first, wanted.labellers, wanted.since,
        wanted.until, instances,
    )  # fmt: skip


def _read_page(
    store: Store, schema: ModelSchema, wanted: AnswerSelection, look: EventSelection, with_values: bool
) -> tuple[list[query_pb2.Answer], int | None]:
    """Return a page, and the event behind which the next one begins, None when it was the last.

    A model that was replaced by another of its name has no more of these answers.
    """
    events, details = store.said_details(schema.model, look)
    if details.model.key != schema.key:
        raise NotFound("model", schema.model, "any more: another has its name")
    said = {
        each.event.sequence: (each, history)
        for history in details.histories.values()
        for each in label_events(history)
    }
    fresh = ModelSchema.of(details.model, details.vocabulary) if with_values else schema
    page = [
        encode_answer(*said[event.sequence], fresh, with_values=with_values)
        for event in events
        if event.sequence in said and wanted.is_selected(said[event.sequence][0], schema.frame)
    ]
    return page, events[-1].sequence if len(events) == look.limit else None
