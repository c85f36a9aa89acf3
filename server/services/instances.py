"""InstanceService: pushing rows, reading them and the log, and stating labels."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from zlib import crc32

from quercus.belief.errors import InvalidInput, shown
from quercus.labelling.row_values import unpack_rows
from quercus.labelling.shapes import Shapes
from quercus.server.core.model_status import STATUS_POLL_S
from quercus.server.core.row_index import Found, guess_classes
from quercus.server.core.service_core import STOPPING, OnCore
from quercus.server.labelling import stating
from quercus.server.wire.displays import decode_displays, encode_display
from quercus.server.wire.errors import Unavailable, error_fields
from quercus.server.wire.instances import encode_cells, encode_evidence, encode_instance
from quercus.server.wire.labels import decode_labels
from quercus.server.wire.limits import NEW_VALUE_ATTEMPTS, MessageLimits
from quercus.server.wire.models import stored_specification
from quercus.server.wire.names import (
    make_page_token,
    page_size,
    parse_instance,
    parse_model,
    read_number_token,
    read_row_token,
)
from quercus.server.wire.refusals import WHOLE, RowFault, RowFaults, encode_refusals, kept_rows
from quercus.server.wire.request_checks import empty_stream
from quercus.server.wire.row_filter import read_selection
from quercus.server.wire.rows import count_rows, decode_rows
from quercus.server.wire.schema import ModelSchema
from quercus.server.wire.trees import TreeClassifier
from quercus.specification.names import are_ids, check_id
from quercus.storage import (
    AlreadyExists,
    AppendedBatch,
    BeyondLog,
    ConflictingRows,
    EventKind,
    FailedPrecondition,
    NotFound,
    Push,
    Stale,
    Store,
)
from quercus.trees import UncertainValues
from quercus.v1 import instance_pb2 as pb
from quercus.v1 import instance_pb2_grpc, values_pb2

_log = logging.getLogger(__name__)
_Batch = pb.PushInstancesRequest | pb.PushBatchRequest
_Outcome = dict[str, Any]  # fields of an acknowledgement
PAGE_EVENTS: Final = 500
PAGE_VALUES: Final = 50_000
"""Most values of rows in a message of `WatchEvents`; by name, each takes about 30 bytes."""
BATCH_ID_KEY: Final = "quercus-batch-id-bin"
"""Trailing metadata of a failed stream of pushes: the batch_id of the batch that failed."""
BATCH_ERRORS: Final = (InvalidInput, AlreadyExists)
"""Errors of a single batch; the batches after it may be valid."""


class InstanceService(OnCore, instance_pb2_grpc.InstanceServiceServicer):
    """Converts requests, calls the writer or the store, and converts their results."""

    async def PushInstances(
        self, request_iterator: Any, context: Any
    ) -> AsyncIterator[pb.PushInstancesResponse]:
        """Store batches, and acknowledge each after its commit, in order.

        Up to ``push_window`` batches are read ahead, so that several share a commit. If the client asked for it,
        invalid rows are refused one by one, and a batch that is invalid as a whole gets an error instead of its
        acknowledgement. Otherwise an error ends the stream, after the acknowledgements of the batches before it.
        """
        acks: asyncio.Queue[_PendingAcknowledgement | None] = asyncio.Queue(self._core.config.push_window)
        reader = asyncio.create_task(self._read_batches(request_iterator, acks))
        try:
            while (ack := await acks.get()) is not None:
                try:
                    stored = await ack.pending
                except Exception as error:
                    fields = error_fields(error) if ack.goes_on and isinstance(error, BATCH_ERRORS) else None
                    if fields is None:
                        metadata = (*context.trailing_metadata(), (BATCH_ID_KEY, ack.batch_id.encode()))
                        context.set_trailing_metadata(metadata)
                        raise
                    yield pb.PushInstancesResponse(batch_id=ack.batch_id, error=pb.BatchError(**fields))
                else:
                    self._count_rows(stored)
                    yield pb.PushInstancesResponse(batch_id=ack.batch_id, **stored)
        finally:
            reader.cancel()

    async def PushBatch(self, request: pb.PushBatchRequest, context: Any) -> pb.PushBatchResponse:
        """Store one batch; the response is sent after the commit."""
        model = parse_model(request.model, "model")
        schema = await self._core.catalogue.schema(model)
        try:
            stored = await (await self._queue_batch(model, schema.key, request, request.continue_on_error))
        except FailedPrecondition:
            again = await self._core.catalogue.reload_schema(model)
            if again.key == schema.key:
                raise
            # the cached schema was of an earlier model of this name
            stored = await (await self._queue_batch(model, again.key, request, request.continue_on_error))
        self._count_rows(stored)
        return pb.PushBatchResponse(batch_id=request.batch_id, **stored)

    def _count_rows(self, stored: _Outcome) -> None:
        self._core.rows_pushed += stored["rows_stored"] + stored["rows_known"]

    async def _read_batches(
        self,
        requests: AsyncIterator[pb.PushInstancesRequest],
        acks: asyncio.Queue[_PendingAcknowledgement | None],
    ) -> None:
        name, key, batch_id, goes_on = "", None, "", False
        try:
            async for request in self._core.requests_until_stop(requests):
                batch_id, goes_on = request.batch_id, goes_on or (not name and request.continue_on_error)
                if request.model and name and request.model != name:
                    raise InvalidInput(
                        "model",
                        f"is {shown(request.model)}, but the stream is of {shown(name)}: open another stream",
                    )
                name = request.model or name
                model = parse_model(name, "model")
                if key is None:  # read it again, because another server may have replaced the model
                    key = (await self._core.catalogue.reload_schema(model)).key
                pending: Awaitable[_Outcome]
                try:
                    pending = await self._queue_batch(model, key, request, goes_on)
                except BATCH_ERRORS as error:
                    if not goes_on:
                        raise
                    pending = _FailedBatch(error)
                await acks.put(_PendingAcknowledgement(batch_id, pending, goes_on))
            if not name:
                raise empty_stream("at least one batch")
        except Exception as error:
            await acks.put(_PendingAcknowledgement(batch_id, _FailedBatch(error), goes_on=False))
        else:
            await acks.put(None)

    async def _queue_batch(
        self, model: str, key: int, request: _Batch, row_by_row: bool
    ) -> Awaitable[_Outcome]:
        """Queue one batch; one with new nominal values is awaited, since others may have taken the same numbers."""
        schema = await self._core.catalogue.schema(model)
        batch_id = request.batch_id or ("" if request.ids else uuid.uuid4().hex)
        sizes = self._core.config.message_limits
        conflicts: dict[
            int, Exception
        ] = {}  # by row whose id is stored with other content: it must add no values
        for _ in range(NEW_VALUE_ATTEMPTS):
            if schema.key != key or request.model_uid not in {"", schema.uid}:
                raise _replaced_error(model)
            faults = RowFaults(conflicts) if row_by_row else WHOLE
            try:
                push, unseen = await self._core.convert_message(
                    request, _decode_push, request, schema, batch_id, sizes, faults
                )
            except InvalidInput:
                before, schema = schema, await self._core.catalogue.reload_schema(model)
                if schema == before:
                    raise
                continue
            if faults.by_row:  # another server may have just learned the values
                before, schema = schema, await self._core.catalogue.reload_schema(model)
                if schema != before:
                    continue
            pending = await self._core.writer.queue_push(push)
            if not push.new_values:
                again = partial(self._queue_again, model, key, request, row_by_row)
                return _QueuedBatch(pending, len(push.ids), faults, unseen, again)
            try:
                await pending
            except ConflictingRows as error:
                sent = kept_rows(len(push.ids) + len(faults.by_row), faults.by_row)
                conflicts |= {sent[each.row]: each for each in error.refused if each.row is not None}
                continue
            except Stale:
                schema = await self._core.catalogue.reload_schema(model)
                continue
            _log_full_attributes(schema, await self._core.catalogue.reload_schema(model))
            return _QueuedBatch(pending, len(push.ids), faults, unseen)
        raise Stale(f"the nominal values of model {model} keep changing")

    async def _queue_again(self, model: str, key: int, request: _Batch, row_by_row: bool) -> _Outcome:
        """Encode and store a batch again, because the model was extended before it was written."""
        await self._core.catalogue.reload_schema(model)
        return await (await self._queue_batch(model, key, request, row_by_row))

    async def ListInstances(self, request: pb.ListInstancesRequest, context: Any) -> pb.ListInstancesResponse:
        """Return a page of instances, by the filter and order of the request."""
        core = self._core
        model = parse_model(request.model, "model")
        size = page_size(request.page_size)
        if not (request.filter or request.order_by or request.include_guesses):
            after = read_number_token("instances", request.page_token)
            return await core.read(_list_page, core.store, model, after, size)
        schema = await core.catalogue.reload_schema(model)
        wanted = read_selection(request.filter, request.order_by, schema.frame.classes)
        kind = f"rows-{crc32(f'{schema.key} {wanted}'.encode()):08x}"
        begin = read_row_token(kind, request.page_token)
        classifier = None
        if request.include_guesses or wanted.needs_guesses:
            with suppress(FailedPrecondition):  # no tree yet
                classifier, schema = await core.catalogue.classifier_and_schema(model)
        found = await core.row_indexes.find(wanted, schema, classifier, begin, size)
        token = "" if found.after is None else make_page_token(kind, "{!r}:{}".format(*found.after))
        return await core.read(_found_page, core.store, schema, found, token, classifier)

    async def StateEvidence(self, request: pb.StateEvidenceRequest, context: Any) -> pb.StateEvidenceResponse:
        """Store labels that labellers state without a query."""
        return await stating.state_evidence(self._core, request)

    async def WatchEvents(
        self, request: pb.WatchEventsRequest, context: Any
    ) -> AsyncIterator[pb.WatchEventsResponse]:
        """Send the log after a sequence number, page by page, and then each new event."""
        core = self._core
        model, after = parse_model(request.model, "model"), request.after_sequence
        if after < 0:
            raise InvalidInput("after_sequence", f"is {after}, must not be negative")
        for i, kind in enumerate(request.kinds):
            if not 1 <= kind <= max(EventKind):
                raise InvalidInput(
                    f"kinds[{i}]", f"is {kind}, must be a kind of event, 1 to {max(EventKind):d}"
                )
        record = (await core.model_statuses.get_status(model, fresh=True)).record
        if request.model_uid not in {"", record.uid}:
            raise _replaced_error(model)
        if after > record.sequence_committed:
            raise BeyondLog("after_sequence", after, model, record.sequence_committed)
        columns = (await core.catalogue.schema(model)).columns if request.include_values else ()
        most = max(1, min(PAGE_EVENTS, PAGE_VALUES // max(1, len(columns))))
        key = record.key
        while not core.stopping.is_set():
            seen = core.changes.change_stamp(model)
            record = (await core.model_statuses.get_status(model)).record
            if record.key != key:
                raise _replaced_error(model)
            if record.sequence_committed > after:
                page = await core.read(
                    _read_events, core.store, model, key, request, after, most, record.shapes
                )
                after = page.sequence
                yield page
            else:
                await core.wait_or_stop(core.changes.wait_for_change(model, seen, STATUS_POLL_S))
        raise Unavailable(STOPPING)

    async def ListExamples(self, request: pb.ListExamplesRequest, context: Any) -> pb.ListExamplesResponse:
        """Return the example rows of a model's guidance."""
        model = parse_model(request.model, "model")
        return await self._core.read(_read_examples, self._core.store, model)

    async def GetInstance(self, request: pb.GetInstanceRequest, context: Any) -> pb.Instance:
        """Return one instance with its history."""
        model, instance = parse_instance(request.name)
        return await self._core.read(_read_instance, self._core.store, model, instance)


@dataclass
class _PendingAcknowledgement:
    """The acknowledgement of a batch when it is due, and whether the stream continues if the batch is invalid."""

    batch_id: str
    pending: Awaitable[_Outcome]
    goes_on: bool


@dataclass
class _QueuedBatch:
    """A queued batch, of which `rows` rows will be written; await it for the outcome."""

    written: Awaitable[AppendedBatch]
    rows: int
    faults: RowFaults
    unseen: Sequence[values_pb2.UnseenNames]
    again: Callable[[], Awaitable[_Outcome]] | None = None
    """Stores the batch again if the model was extended before it was written."""

    def __await__(self) -> Generator[Any, None, _Outcome]:
        try:
            stored = yield from self.written.__await__()
        except Stale:
            if self.again is None:
                raise
            return (yield from self.again().__await__())
        refused: dict[int, Exception] = dict(self.faults.by_row)
        if stored.refused:
            kept = kept_rows(self.rows + len(refused), self.faults.by_row)
            refused |= {kept[each.row]: each for each in stored.refused if each.row is not None}
        return {
            "committed_sequence": stored.committed_sequence,
            "rows_stored": stored.stored,
            "rows_known": stored.known,
            "model_uid": stored.uid,
            "refused": encode_refusals(refused),
            "unseen": self.unseen,
        }


class _FailedBatch:
    """Stands in for the acknowledgement of a batch that cannot be stored; awaiting it raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __await__(self) -> Generator[None, None, _Outcome]:
        raise self._error
        yield


def _log_full_attributes(before: ModelSchema, now: ModelSchema) -> None:
    """Log each attribute that has just learned its last value."""
    if now.key != before.key:  # the model was replaced
        return
    for old, new in zip(before.columns, now.columns, strict=False):  # an extended model has more columns
        if new.values is not None and new.is_full and not old.is_full:
            _log.warning(
                "attribute %s of model %s has %d values, the most it may: %s",
                shown(new.name),
                now.model,
                new.most,
                "further names share one bucket" if new.has_bucket else "rows with further names are refused",
            )


def _decode_push(
    request: _Batch, schema: ModelSchema, batch_id: str, sizes: MessageLimits, faults: RowFaults
) -> tuple[Push, Sequence[values_pb2.UnseenNames]]:
    """Convert a batch without its invalid rows, which `faults` receives, and count names unknown to the model."""
    count = count_rows(request.rows, schema, sizes)
    ids = _ids_of_push(request, count, batch_id, faults)
    labels = decode_labels(
        request.labels if request.HasField("labels") else None, count, schema.frame, faults, schema.shapes
    )
    displays = decode_displays(request.displays, count, faults)
    # last, because it learns new values
    rows = decode_rows(request.rows, schema, learn=True, sizes=sizes, faults=faults)
    values, parts = rows.values, rows.parts
    if faults.by_row:
        kept = kept_rows(count, faults.by_row)
        ids, labels = tuple(ids[row] for row in kept), [labels[row] for row in kept]
        values, displays = values[kept], tuple(displays[row] for row in kept) if displays else ()
        place = {row: at for at, row in enumerate(kept)} if parts else {}
        parts = {(place[row], k): ranges for (row, k), ranges in parts.items() if row in place}
    row_by_row = faults is not WHOLE
    push = Push(
        schema.model, ids, values, labels, rows.new_values, schema.key, displays, row_by_row,
        schema.shapes.extensions, parts,
    )  # fmt: skip
    return push, rows.unseen


def _ids_of_push(request: _Batch, count: int, batch_id: str, faults: RowFaults) -> tuple[str, ...]:
    if not request.ids:
        ids = tuple(f"{batch_id}-{i}" for i in range(count))
        check_id(ids[-1], "batch_id")
        return ids
    if len(request.ids) != count:
        raise InvalidInput("ids", f"has {len(request.ids)} entries, must have one for each of {count} rows")
    ids = tuple(request.ids)
    if not are_ids(ids):
        for row, given in enumerate(ids):
            try:
                check_id(given, f"ids[{row}]")
            except InvalidInput as error:
                faults.add(RowFault(row, error.field, error.reason))
    return ids


def _replaced_error(model: str) -> FailedPrecondition:
    return FailedPrecondition(f"model {model} was deleted, and another has its name: start again")


def _read_events(
    store: Store,
    model: str,
    key: int,
    request: pb.WatchEventsRequest,
    after: int,
    most: int,
    shapes: Shapes,
) -> pb.WatchEventsResponse:
    events = store.read_events(model, after, most)
    schema = ModelSchema.read(store, model)  # after the events, so that it names all their values
    if schema.key != key:  # the events may be of another model
        raise _replaced_error(model)
    if schema.shapes != shapes:  # the model was extended, and the events may have its earlier shape
        return _read_events(store, model, key, request, after, most, schema.shapes)
    response = pb.WatchEventsResponse(sequence=events[-1].sequence if events else after, model_uid=schema.uid)
    kinds = set(map(int, request.kinds))
    for event in events:
        if kinds and event.kind not in kinds:
            continue
        shows_values = request.include_values and event.kind is EventKind.INSTANCE
        response.events.add(
            kind=int(event.kind),
            instance_id=event.id,
            evidence=encode_evidence(event, schema),
            conflict=event.conflict,
            values=encode_cells(event, schema) if shows_values else None,
        )
    return response


def _list_page(store: Store, model: str, after: int, size: int) -> pb.ListInstancesResponse:
    details = store.page_details(model, after, size + 1)
    page = list(details.histories)[:size]
    schema = ModelSchema.of(details.model, details.vocabulary)
    return pb.ListInstancesResponse(
        instances=[encode_instance(details.histories[sequence], schema) for sequence in page],
        next_page_token=make_page_token("instances", page[-1]) if len(details.histories) > size else "",
    )


def _found_page(
    store: Store, known: ModelSchema, found: Found, token: str, classifier: TreeClassifier | None
) -> pb.ListInstancesResponse:
    details = store.query_details(known.model, found.sequences)
    if details.model.key != known.key:  # the rows were of an earlier model of this name
        raise NotFound("model", known.model, "any more: another has its name")
    schema = ModelSchema.of(details.model, details.vocabulary)
    page = pb.ListInstancesResponse(next_page_token=token, total_size=found.total)
    histories = [details.histories[sequence] for sequence in found.sequences]
    page.instances.extend(encode_instance(history, schema) for history in histories)
    guesses = found.guesses
    if not guesses and histories and classifier is not None:
        cells = UncertainValues(*unpack_rows([each[0].values or b"" for each in histories]))
        klass, doubt = guess_classes(classifier, cells)
        guesses = list(zip(klass.tolist(), doubt.tolist(), strict=True))
    for each, (k, share) in zip(page.instances, guesses, strict=False):
        each.guess.CopyFrom(pb.Guess(class_name=schema.frame.classes[k], doubt=share))
    return page


def _read_examples(store: Store, model: str) -> pb.ListExamplesResponse:
    """Return the examples of a model whose rows exist."""
    response = pb.ListExamplesResponse()
    for each in stored_specification(store.get_model(model).specification).guidance.examples:
        try:
            found = _read_instance(store, model, each.instance)
        except NotFound:
            continue
        response.examples.add(
            class_name=each.class_name,
            instance=found.name,
            remark=each.remark,
            values=found.values,
            display=found.display,
        )
    return response


def _read_instance(store: Store, model: str, instance: str) -> pb.Instance:
    details = store.instance_details(model, instance)
    ((sequence, history),) = details.histories.items()
    found = encode_instance(history, ModelSchema.of(details.model, details.vocabulary))
    if (display := encode_display(details.displays.get(sequence))) is not None:
        found.display.CopyFrom(display)
    return found
