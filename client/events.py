"""The events of a log, for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from quercus.client import convert
from quercus.client.errors import invalid
from quercus.client.messages import filled
from quercus.client.treeview import replaced_error
from quercus.v1 import instance_pb2

if TYPE_CHECKING:
    from quercus.client.results import Evidence, Value

KINDS: Final = {
    name.removeprefix("KIND_").lower(): number
    for name, number in instance_pb2.LogEvent.Kind.items()
    if number
}
"""Kinds of events by name: instance, answer, refusal, specification, correction, opinion, statement."""
OnPosition = Callable[[str, int], None]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_NAMES: Final = {number: name for name, number in KINDS.items()}


@dataclass(frozen=True)
class LogEvent:
    """An event of the log of a model.

    Attributes
    ----------
    sequence : number of the event in the log, from which a later watch continues.
    model, model_uid : name and uid of the model; no other model ever has this uid.
    kind : ``"instance"`` (a row was pushed), ``"answer"``, ``"refusal"``, ``"specification"``, ``"correction"``,
        ``"opinion"`` or ``"statement"``.
    instance : id of the row; empty for ``"specification"``.
    evidence : the labeller, the label and the time.
    conflict : whether an answer contradicted the earlier evidence totally, and replaced it.
    values : values of the row, if they were requested.
    """

    sequence: int
    model: str
    model_uid: str
    kind: str
    instance: str
    evidence: Evidence
    conflict: bool
    values: Mapping[str, Value] | None = None

    @property
    def id(self) -> str:
        """Identifier of the event, which no other event ever has.

        It ends in the time of the event, in microseconds since 1970: a log that was put back to an earlier state (a
        restored backup, a failover that lost commits) gives the numbers behind it to other events.
        """
        return f"{self.model_uid}/{self.sequence}/{(self.evidence.created_at - _EPOCH) // _MICROSECOND}"


class EventWatch:
    """The position of a watch of events: after an outage it continues behind the last event.

    Parameters
    ----------
    model
        Its name.
    after
        Number of the last event that the caller has handled.
    kinds
        Names of the wanted kinds; empty: all.
    with_values
        Whether the values of rows are wanted.
    uid
        Uid of the model that the number belongs to; empty: the model that has the name.
    on_position
        Called with the uid of the model and the number up to which all events were handled or are of other kinds.
    """

    def __init__(
        self,
        model: str,
        after: int,
        kinds: Iterable[str] = (),
        *,
        with_values: bool = False,
        uid: str = "",
        on_position: OnPosition | None = None,
    ) -> None:
        self._model, self._on_position = model, on_position
        given = [kinds] if isinstance(kinds, str) else list(kinds)
        for kind in given:
            if kind not in KINDS:
                raise invalid("kinds", f"{kind!r} is none of {', '.join(KINDS)}")
        self.classes: tuple[str, ...] = ()
        self.request = filled(
            instance_pb2.WatchEventsRequest,
            model=convert.model_resource(model),
            after_sequence=after,
            model_uid=uid,
            kinds=[KINDS[kind] for kind in given],
            include_values=with_values,
        )

    def read_events(self, page: instance_pb2.WatchEventsResponse) -> Iterator[LogEvent]:
        """Yield the events of a message; the position moves behind each when the next is requested."""
        if self.request.model_uid not in {"", page.model_uid}:
            raise replaced_error(self._model)
        self.request.model_uid = page.model_uid
        for each in page.events:
            yield self._read_event(each)
            self.request.after_sequence = each.evidence.sequence
        self.request.after_sequence = page.sequence
        if self._on_position is not None:
            self._on_position(page.model_uid, page.sequence)

    def _read_event(self, event: instance_pb2.LogEvent) -> LogEvent:
        values: Any = convert.row_values(event.values) if event.HasField("values") else None
        return LogEvent(
            event.evidence.sequence,
            self._model,
            self.request.model_uid,
            _NAMES.get(event.kind, str(event.kind)),
            event.instance_id,
            convert.evidence_from_proto(event.evidence, self.classes),
            event.conflict,
            values,
        )
