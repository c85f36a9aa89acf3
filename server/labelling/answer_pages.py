"""The events of labellers as messages, read page by page, oldest or newest first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.labelling.disputes import named_classes
from quercus.labelling.gold import as_known_to
from quercus.labelling.history import (
    LabelEvent,
    LabelKind,
    LabelState,
    known_contour,
    label_events,
    stored_label,
)
from quercus.server.core.service_core import STOPPING, ServiceCore
from quercus.server.wire.errors import PermissionDenied, Unavailable
from quercus.server.wire.instances import encode_cells
from quercus.server.wire.labels import class_named, encode_contour, encode_label, label_text
from quercus.server.wire.limits import ANSWER_PAGE, MAX_FILTER
from quercus.server.wire.models import earliest_seconds, to_duration, to_timestamp
from quercus.server.wire.names import instance_name, parse_model, query_name
from quercus.server.wire.schema import ModelSchema
from quercus.specification.names import check_id
from quercus.storage import Event, EventSelection, NotFound, Store
from quercus.v1 import query_pb2 as pb


async def stream_answers(
    core: ServiceCore, request: pb.StreamAnswersRequest, only: str | None
) -> AsyncIterator[pb.Answer]:
    """Yield the requested answers, of which one page is in memory at a time.

    Parameters
    ----------
    core : common part of all services.
    request : filter of the answers, and position to start from.
    only : the only labeller whose answers the caller may see; None for all.
    """
    model = parse_model(request.model, "model")
    for field in ("after_sequence", "limit"):
        if getattr(request, field) < 0:
            raise InvalidInput(field, f"is {getattr(request, field)}, must not be negative")
    schema = await core.catalogue.reload_schema(model)
    wanted = read_filter(request, schema.frame)
    if only is not None:
        if others := [name for name in wanted.labellers if name != only]:
            raise PermissionDenied(f"labellers: has {others[0][:60]!r}, but the token speaks for {only!r}")
        wanted = replace(wanted, labellers=(only,))
    instances = None
    if wanted.instances:
        places = await core.read(core.store.places, model, wanted.instances)
        if missing := [each for each in wanted.instances if each not in places]:
            raise NotFound("instance", f"{model}/{missing[0]}")
        instances = tuple(places.values())
    selection = EventSelection(
        request.after_sequence, ANSWER_PAGE, request.newest_first, wanted.labellers, wanted.since,
        wanted.until, instances,
    )  # fmt: skip
    left = request.limit or float("inf")
    while True:
        page, last = await core.read(
            _read_page, core.store, schema, wanted, selection, request.include_values, only
        )
        for answer in page:
            yield answer
            left -= 1
            if left <= 0:
                return
        if last is None:
            return
        if core.stopping.is_set():
            raise Unavailable(STOPPING)
        selection = replace(selection, after=last)


def _read_page(
    store: Store,
    schema: ModelSchema,
    wanted: AnswerSelection,
    selection: EventSelection,
    with_values: bool,
    only: str | None,
) -> tuple[list[pb.Answer], int | None]:
    """Return a page, and the event after which the next one begins, None if it is the last.

    Raise `NotFound` if the model was replaced by another of its name. For a labeller (`only`), gold questions look like
    other queries.
    """
    events, details = store.said_details(schema.model, selection)
    if details.model.key != schema.key:
        raise NotFound("model", schema.model, "any more: another has its name")
    is_extended = details.model.shapes != schema.shapes
    histories: Iterable[Sequence[Event]] = details.histories.values()
    if only is not None:
        rule = details.policy.combination
        histories = [as_known_to(only, each, schema.frame.size, rule) for each in histories]
    said = {each.event.sequence: (each, history) for history in histories for each in label_events(history)}
    fresh = ModelSchema.of(details.model, details.vocabulary) if with_values or is_extended else schema
    page = [
        encode_answer(*said[event.sequence], fresh, with_values=with_values)
        for event in events
        if event.sequence in said and wanted.is_selected(said[event.sequence][0], fresh.frame)
    ]
    return page, events[-1].sequence if len(events) == selection.limit else None


@dataclass(frozen=True)
class AnswerSelection:
    """A selection of answers; empty fields exclude nothing. `since` and `until` are in seconds since 1970."""

    labellers: tuple[str, ...] = ()
    classes: frozenset[str] = frozenset()
    kinds: frozenset[LabelKind] = frozenset()
    states: frozenset[LabelState] = frozenset()
    instances: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None

    def is_selected(self, words: LabelEvent, frame: Frame) -> bool:
        """Return whether kind, state and class match; the store has checked the rest."""
        if self.kinds and words.kind not in self.kinds:
            return False
        if self.states and words.state not in self.states:
            return False
        return not self.classes or bool(self.classes & most_plausible_classes(words.event, frame))


def read_filter(request: pb.StreamAnswersRequest, frame: Frame) -> AnswerSelection:
    """Return the selection of a request; raise ``InvalidInput`` for an invalid field."""
    for name in ("labellers", "classes", "kinds", "states", "instances"):
        if (count := len(getattr(request, name))) > MAX_FILTER:
            raise InvalidInput(name, f"has {count:,} entries, at most {MAX_FILTER:,} are allowed")
    classes = [class_named(name, frame) for name in request.classes]
    for i, name in enumerate(classes):
        if name not in frame.classes:
            known = ", ".join(frame.classes)
            raise InvalidInput(
                f"classes[{i}]", f"is {name[:60]!r}, which is not a class; the classes are {known}"
            )
    since = seconds_of(request.since, "since") if request.HasField("since") else None
    until = seconds_of(request.until, "until") if request.HasField("until") else None
    if since is not None and until is not None and until <= since:
        raise InvalidInput(
            "until", f"is {_shown_time(until)}, must be later than since, {_shown_time(since)}"
        )
    return AnswerSelection(
        tuple(dict.fromkeys(request.labellers)),
        frozenset(classes),
        frozenset(
            LabelKind(_known_number(kind, "kinds", i, max(LabelKind))) for i, kind in enumerate(request.kinds)
        ),
        frozenset(
            LabelState(_known_number(state, "states", i, max(LabelState)))
            for i, state in enumerate(request.states)
        ),
        tuple(dict.fromkeys(check_id(each, f"instances[{i}]") for i, each in enumerate(request.instances))),
        since,
        until,
    )


def encode_answer(
    words: LabelEvent, history: Sequence[Event], schema: ModelSchema, *, with_values: bool
) -> pb.Answer:
    """Convert an answer to the wire.

    Parameters
    ----------
    words : the label and its history.
    history : all events of the instance, oldest first, beginning with its INSTANCE event.
    schema : schema of the model.
    with_values : whether the message includes the instance's values.
    """
    event, former, frame = words.event, words.former, schema.frame
    known = known_contour(history, frame.size)
    possible = np.flatnonzero(known > 0).tolist()
    values = encode_cells(history[0], schema) if with_values else None
    message = pb.Answer(
        sequence=event.sequence,
        instance=instance_name(schema.model, history[0].id),
        labeller=event.author,
        create_time=to_timestamp(event.created_at),
        kind=int(words.kind),  # type: ignore[arg-type]  # our numbers are the wire's
        state=int(words.state),  # type: ignore[arg-type]
        reliability=event.reliability,
        comment=event.comment,
        took=None if event.took_s is None else to_duration(event.took_s),
        query=query_name(schema.model, event.query) if event.query else None,
        former_sequence=None if former is None else former.event.sequence,
        later_sequence=None if words.later is None else words.later.event.sequence,
        conflict=event.conflict,
        contour=encode_contour(known),
        class_name=frame.classes[possible[0]] if len(possible) == 1 else None,
        values=values,
        shown=event.shown,
    )
    if event.label is not None:
        message.label.CopyFrom(encode_label(event.label, frame))
        message.text = label_text(stored_label(event.label, frame.size), frame)
    if former is not None and former.event.label is not None:
        message.former_label.CopyFrom(encode_label(former.event.label, frame))
        message.former_text = label_text(stored_label(former.event.label, frame.size), frame)
    return message


def most_plausible_classes(event: Event, frame: Frame) -> frozenset[str]:
    """Return the most plausible classes of an event's label; an empty set if it has no label or a vacuous one."""
    return frozenset(frame.classes[k] for k in named_classes(event, frame.size))


def _known_number(number: int, field: str, i: int, most: int) -> int:
    if not 1 <= number <= most:
        raise InvalidInput(f"{field}[{i}]", f"is {number}, must be 1 to {most}")
    return number


def seconds_of(stamp: Timestamp, field: str) -> float:
    """Return a time in a request, in seconds since 1970; raise ``InvalidInput`` outside the years 1970 to 9999."""
    if not (0 <= stamp.nanos < 1_000_000_000 and 0 <= stamp.seconds < 253_402_300_800):
        raise InvalidInput(
            field, f"is {stamp.seconds} s and {stamp.nanos} ns, must lie in the years 1970 to 9999"
        )
    return earliest_seconds(stamp)


def _shown_time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
