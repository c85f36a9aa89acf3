"""The events of a log, for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from quercus.client import resources
from quercus.client.errors import invalid
from quercus.client.messages import filled
from quercus.client.results import KIND, LogEvent
from quercus.client.treeview import replaced_error
from quercus.v1 import instance_pb2

KINDS: Final[Mapping[str, Any]] = {word: number for number, word in KIND.items()}
"""Kinds of events by name: instance, answer, refusal, specification, correction, opinion, statement."""
OnPosition = Callable[[str, int], None]


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
            model=resources.model_resource(model),
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
            sequence = each.evidence.sequence
            yield LogEvent.from_message(
                each, self.classes, sequence=sequence, model=self._model, model_uid=page.model_uid
            )
            self.request.after_sequence = sequence
        self.request.after_sequence = page.sequence
        if self._on_position is not None:
            self._on_position(page.model_uid, page.sequence)
