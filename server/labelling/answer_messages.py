"""The events of labellers as messages, and the filters on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.belief.label import contour
from quercus.labelling.history import (
    LabelEvent,
    LabelKind,
    LabelState,
    known_contour,
    stored_label,
    stored_values,
)
from quercus.server.wire.labels import class_named, encode_contour, encode_label, label_text
from quercus.server.wire.limits import MAX_FILTER
from quercus.server.wire.models import earliest_seconds, to_duration, to_timestamp
from quercus.server.wire.names import instance_name, query_name
from quercus.server.wire.rows import encode_row
from quercus.server.wire.schema import ModelSchema
from quercus.specification.names import check_id
from quercus.storage import Event
from quercus.v1 import query_pb2


@dataclass(frozen=True)
class AnswerSelection:
    """The answers that are wanted; an empty field excludes nothing. `since` and `until` in seconds since 1970."""

    labellers: tuple[str, ...] = ()
    classes: frozenset[str] = frozenset()
    kinds: frozenset[LabelKind] = frozenset()
    states: frozenset[LabelState] = frozenset()
    instances: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None

    def is_selected(self, words: LabelEvent, frame: Frame) -> bool:
        """Return whether kind, state and class match the request; the store has checked the rest."""
        if self.kinds and words.kind not in self.kinds:
            return False
        if self.states and words.state not in self.states:
            return False
        return not self.classes or bool(self.classes & most_plausible_classes(words.event, frame))


def read_filter(request: query_pb2.StreamAnswersRequest, frame: Frame) -> AnswerSelection:
    """Return the selection of a request; ``InvalidInput`` names an invalid field."""
    for name in ("labellers", "classes", "kinds", "states", "instances"):
        if (count := len(getattr(request, name))) > MAX_FILTER:
            raise InvalidInput(name, f"has {count:,} entries, at most {MAX_FILTER:,} are allowed")
    classes = [class_named(name, frame) for name in request.classes]
    for i, name in enumerate(classes):
        if name not in frame.classes:
            known = ", ".join(frame.classes)
            raise InvalidInput(
                f"classes[{i}]", f"is {name[:60]!r}, which is no class; the classes are {known}"
            )
    since = _seconds_of(request.since, "since") if request.HasField("since") else None
    until = _seconds_of(request.until, "until") if request.HasField("until") else None
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
) -> query_pb2.Answer:
    """Convert an answer to the wire.

    Parameters
    ----------
    words : the label and its history.
    history : everything said about the instance, oldest first; its INSTANCE event leads.
    schema : schema of the model.
    with_values : whether the instance's values come along.
    """
    event, former, frame = words.event, words.former, schema.frame
    known = known_contour(history, frame.size)
    values = encode_row(stored_values(history[0]), schema) if with_values else None
    message = query_pb2.Answer(
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
        class_name=_only_class(known, frame),
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
    """Return the most plausible classes of the label of an event; none if it has no label or a vacuous one."""
    if event.label is None:
        return frozenset()
    said = contour(stored_label(event.label, frame.size), frame.size)
    top = said == said.max()
    if top.all():
        return frozenset()
    return frozenset(name for name, wanted in zip(frame.classes, top, strict=True) if wanted)


def _only_class(known: NDArray[np.float64], frame: Frame) -> str | None:
    possible = np.flatnonzero(known > 0)
    return frame.classes[int(possible[0])] if len(possible) == 1 else None


def _known_number(number: int, field: str, i: int, most: int) -> int:
    if not 1 <= number <= most:
        raise InvalidInput(f"{field}[{i}]", f"is {number}, must be 1 to {most}")
    return number


def _seconds_of(stamp: Timestamp, field: str) -> float:
    if not (0 <= stamp.nanos < 1_000_000_000 and 0 <= stamp.seconds < 253_402_300_800):
        raise InvalidInput(
            field, f"is {stamp.seconds} s and {stamp.nanos} ns, must lie in the years 1970 to 9999"
        )
    return earliest_seconds(stamp)


def _shown_time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
