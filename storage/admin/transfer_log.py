"""Check that each event of an exported log can follow those before it, and count them."""

from collections.abc import Mapping
from typing import Any

from quercus.belief.errors import InvalidInput, shown
from quercus.labelling import checks
from quercus.labelling.event import EVENT_FIELDS, UNASKED, EventKind
from quercus.labelling.row_values import WIDTH, attribute_count
from quercus.labelling.shapes import NEVER_EXTENDED, Shapes
from quercus.storage.admin.transfer_lines import DISPLAY, check_range

# The fields that each kind of event must have, and those that it may have.
_NEEDED: Mapping[EventKind, set[str]] = {
    kind: {name for name, stored in EVENT_FIELDS.items() if kind in stored.needed} for kind in EventKind
}
_ALLOWED: Mapping[EventKind, set[str]] = {
    kind: {name for name, stored in EVENT_FIELDS.items() if kind in stored.allowed}
    | ({DISPLAY} if kind is EventKind.INSTANCE else set())
    for kind in EventKind
}
_NOT_OF_ALL = frozenset({DISPLAY, *(name for name, stored in EVENT_FIELDS.items() if stored.may_be_null)})
_CHECKS = {name: stored for name, stored in EVENT_FIELDS.items() if stored.check or stored.bounds}


class LogReader:
    """Checks and counts the events of a log, one after the other.

    Parameters
    ----------
    shapes : Shapes
        The shapes of the log.
    is_unique : bool
        True if the database guarantees unique ids, so that they need not be remembered.
    """

    def __init__(self, shapes: Shapes = NEVER_EXTENDED, *, is_unique: bool = False) -> None:
        self._is_unique = is_unique
        self._shapes = shapes
        self.sequence = 0
        self.specification: bytes | None = None
        """That of the newest event that has one."""
        self._count = dict.fromkeys(EventKind, 0)
        self._conflicts = 0
        self._width = 0
        self._ids: set[str] = set()
        self._others: set[int] = set()  # events that are not instances
        self._asked: dict[int, int] = {}  # instance of each query
        self._opinions: dict[tuple[int, str], bool] = {}  # by query and labeller; False: taken back
        self._several: set[int] = set()  # queries that wanted several answers
        self._settled: set[int] = set()  # queries with an answer, or the combination of several
        self._answered = 0
        self._refused: set[int] = set()  # queries, without those whose refusal was taken back
        self._apart: set[int] = set()  # see `uncombined_instances`

    def check_event(self, event: dict[str, Any], where: str) -> None:
        """Check the next event and count it.

        Raises
        ------
        InvalidInput
            For an invalid event; the message names line, field and fault.
        """
        if event["sequence"] != self.sequence + 1:
            raise InvalidInput(where, f"is event {event['sequence']}, must be event {self.sequence + 1}")
        kind = EventKind(event["kind"])
        _check_fields(event, kind, where)
        _check_bounds(event, where)
        if kind is EventKind.INSTANCE:
            self._take_instance(event, where)
        else:
            self._others.add(event["sequence"])
            if kind is not EventKind.SPECIFICATION:
                self._take_statement(event, kind, where)
        self.sequence += 1
        self._count[kind] += 1
        self._conflicts += event["conflict"]
        self.specification = event.get("specification") or self.specification

    @property
    def answer_count(self) -> int:
        """Number of answers that count against the budget: each opinion, but not the combination of several."""
        return self._answered

    @property
    def uncombined_instances(self) -> set[int]:
        """Instances with statements that no later event combines."""
        return self._apart

    def model_counters(self) -> dict[str, int]:
        """Return the counters of the model's row, by column."""
        return {
            "sequence_committed": self.sequence,
            "instance_count": self._count[EventKind.INSTANCE],
            "queries_answered": self.answer_count,
            "query_count": max(self._asked, default=0),  # numbers in the log must not be used again
            "queries_refused": len(self._refused),
            "conflicts": self._conflicts,
        }

    def _take_instance(self, event: dict[str, Any], where: str) -> None:
        try:
            size = WIDTH * attribute_count(event["values"])
        except InvalidInput:
            raise InvalidInput(where, f"has values of {len(event['values'])} bytes, must be 8 each") from None
        if self._shapes.extensions:
            self._width = WIDTH * self._shapes.shape_of(event["sequence"]).attributes
        self._width = self._width or size
        if size != self._width:
            raise InvalidInput(where, f"has values of {size} bytes, must be {self._width} as those before")
        if event["id"] in self._ids:
            raise InvalidInput(where, f"has id {shown(event['id'])}, which an earlier instance has")
        if not self._is_unique:
            self._ids.add(event["id"])

    def _take_statement(self, event: dict[str, Any], kind: EventKind, where: str) -> None:
        instance, query = event["instance"], event.get("query")
        if not 1 <= instance <= self.sequence or instance in self._others:
            raise InvalidInput(where, f"has instance {instance}, which is not an instance of an earlier line")
        if query is not None and self._asked.setdefault(query, instance) != instance:
            raise InvalidInput(
                where, f"has instance {instance}, but query {query} was about instance {self._asked[query]}"
            )
        if kind is EventKind.OPINION:
            self._take_opinion(query or 0, event)
        elif kind is EventKind.ANSWER:
            self._answered += (query or 0) not in self._several
            self._settled.add(query or 0)
        elif kind in UNASKED:
            self._apart.add(instance)
        elif kind is EventKind.REFUSAL:
            self._refused.add(query or -event["sequence"])
        elif kind is EventKind.CORRECTION and query is None:
            self._apart.discard(instance)
        elif kind is EventKind.CORRECTION:
            self._refused.discard(query or 0)

    def _take_opinion(self, query: int, event: dict[str, Any]) -> None:
        """Count one of several answers, unless it corrects one that stands."""
        mine, says = (query, event["author"]), event.get("label") is not None
        self._answered += says and not self._opinions.get(mine, False) and query not in self._settled
        self._opinions[mine] = says
        self._several.add(query)


def _check_fields(event: dict[str, Any], kind: EventKind, where: str) -> None:
    there = {name for name in _NOT_OF_ALL if event.get(name) is not None}
    if missing := sorted(_NEEDED[kind] - there):
        raise InvalidInput(where, f"lacks {', '.join(missing)}, which an event of kind {int(kind)} has")
    if other := sorted(there - _NEEDED[kind] - _ALLOWED[kind]):
        raise InvalidInput(where, f"has {', '.join(other)}, which an event of kind {int(kind)} has not")


def _check_bounds(event: dict[str, Any], where: str) -> None:
    for name, stored in _CHECKS.items():
        value = event.get(name)
        if value is None:
            continue
        if stored.check is not None:
            try:
                stored.check(value)
            except InvalidInput as error:
                raise InvalidInput(where, str(error)) from None
        elif stored.bounds is not None:
            check_range(where, name, value, *stored.bounds)
    is_nobody = event["kind"] == EventKind.SPECIFICATION
    check_range(where, "author of length", len(event["author"]), 0 if is_nobody else 1, checks.MAX_TEXT)
