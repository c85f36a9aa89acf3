"""The events of a log, sent in order behind a number and as they are written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from quercus.belief.errors import InvalidInput
from quercus.labelling.history import stored_values
from quercus.server.core.model_status import STATUS_POLL_S
from quercus.server.core.service_core import STOPPING, ServiceCore
from quercus.server.wire.errors import Unavailable
from quercus.server.wire.instances import encode_evidence
from quercus.server.wire.names import parse_model
from quercus.server.wire.rows import encode_row
from quercus.server.wire.schema import ModelSchema
from quercus.storage import BeyondLog, Event, EventKind, FailedPrecondition, Store
from quercus.v1 import instance_pb2

PAGE_EVENTS: Final = 500
PAGE_VALUES: Final = 50_000
"""Values of rows that one message has at most, where they are asked for: by name they take some 30 bytes each."""


@dataclass(frozen=True)
class _WatchOptions:
    model: str
    key: int
    kinds: frozenset[EventKind]
    with_values: bool
    page_events: int


async def watch_events(
    core: ServiceCore, request: instance_pb2.WatchEventsRequest
) -> AsyncIterator[instance_pb2.WatchEventsResponse]:
    """Send the log behind a number, page by page, then wait for more.

    Raises
    ------
    InvalidInput, FailedPrecondition
        The number is none of the model's log, or another model has its name.
    Unavailable
        When the server stops.
    """
    model, after = parse_model(request.model, "model"), request.after_sequence
    if after < 0:
        raise InvalidInput("after_sequence", f"is {after}, must not be negative")
    known = {int(kind): kind for kind in EventKind}
    for i, given in enumerate(request.kinds):
        if given not in known:
            raise InvalidInput(f"kinds[{i}]", f"is {given}, must be a kind of event, 1 to {max(known)}")
    kinds = frozenset(known[given] for given in request.kinds) or frozenset(EventKind)
    record = (await core.model_statuses.get_status(model, fresh=True)).record
    if request.model_uid not in {"", record.uid}:
        raise _replaced_error(model)
    if after > record.sequence_committed:
        raise BeyondLog("after_sequence", after, model, record.sequence_committed)
    columns = (await core.catalogue.schema(model)).columns if request.include_values else ()
    page_events = max(1, min(PAGE_EVENTS, PAGE_VALUES // max(1, len(columns))))
    wanted = _WatchOptions(model, record.key, kinds, request.include_values, page_events)
    while not core.stopping.is_set():
        seen = core.changes.change_stamp(model)
        record = (await core.model_statuses.get_status(model)).record
        if record.key != wanted.key:
            raise _replaced_error(model)
        if record.sequence_committed > after:
            page = await core.read(_read_page, core.store, wanted, after)
            after = page.sequence
            yield page
        else:
            await core.wait_or_stop(core.changes.wait_for_change(model, seen, STATUS_POLL_S))
    raise Unavailable(STOPPING)


def _replaced_error(model: str) -> FailedPrecondition:
    return FailedPrecondition(f"model {model} was deleted, and another has its name: start again")


def _read_page(store: Store, wanted: _WatchOptions, after: int) -> instance_pb2.WatchEventsResponse:
    events = store.read_events(wanted.model, after, wanted.page_events)
    schema = ModelSchema.read(store, wanted.model)  # after the events: it names all their values
    if schema.key != wanted.key:  # the events may belong to another model
        raise _replaced_error(wanted.model)
    return instance_pb2.WatchEventsResponse(
        events=[_encode_event(event, schema, wanted) for event in events if event.kind in wanted.kinds],
        sequence=events[-1].sequence if events else after,
        model_uid=schema.uid,
    )


def _encode_event(event: Event, schema: ModelSchema, wanted: _WatchOptions) -> instance_pb2.LogEvent:
    is_row = event.kind is EventKind.INSTANCE
    return instance_pb2.LogEvent(
        kind=int(event.kind),  # type: ignore[arg-type]  # the store's numbers are the wire's
        instance_id=event.id,
        evidence=encode_evidence(event, schema),
        conflict=event.conflict,
        values=encode_row(stored_values(event), schema) if is_row and wanted.with_values else None,
    )
