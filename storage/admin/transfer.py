"""Export of a model's log as lines of JSON, and import.

The first line describes the model. Each further line is an event of the log as it is stored, with bytes in base64; an
INSTANCE event also has its display. The tree is a function of the log, so an imported model grows the same tree; its
queries are opened anew.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from sqlalchemy import Connection, Select, select, update

from quercus.belief.errors import InvalidInput
from quercus.labelling.event import EVENT_FIELDS
from quercus.labelling.shapes import Shapes
from quercus.specification.bounds import MAX_GOLD, check_model_id
from quercus.specification.parameters import MAX_ATTRIBUTES
from quercus.storage.admin.transfer_lines import (
    BYTES,
    COLUMNS,
    DISPLAY,
    FORMAT,
    NAMES,
    VERSION,
    HeaderLine,
    line_of,
    read_event,
    read_head,
    text_of,
)
from quercus.storage.admin.transfer_log import LogReader
from quercus.storage.clocks import Clock
from quercus.storage.inserts import insert_rows
from quercus.storage.log.displays import insert_displays
from quercus.storage.log.event_log import learned_values
from quercus.storage.models import insert_empty
from quercus.storage.queries import policies
from quercus.storage.queries.gold import marked_instances
from quercus.storage.rows import find_model, shapes_of
from quercus.storage.schema import AnyRow, display, log, model, vocabulary

CHUNK = 1_000  # events read and written together


class LogValidator(Protocol):
    """Checks the contents of a log, which a store keeps as uninterpreted bytes.

    Both methods raise `InvalidInput` with the invalid field.
    """

    def check_head(
        self, specification: bytes, budget: int, learned: list[tuple[int, str]], shapes: Shapes
    ) -> None:
        """Check the first line: the specification, the budget, learned values by attribute, and the log's shapes."""

    def check_events(self, events: Sequence[dict[str, Any]]) -> None:
        """Check the next events, each with its columns as stored.

        After an error, it is called again with each of these events alone, to find the first invalid one.
        """


def dump_model(connection: Connection, name: str) -> Iterator[str]:
    """Yield the lines of a model, without line ends."""
    row = find_model(connection, name)
    yield line_of(head_of(connection, row, row.sequence_committed))
    for event in connection.execute(events_of(row.id).execution_options(yield_per=CHUNK)):
        cells = zip(NAMES, event, strict=True)
        yield line_of(
            {name: text_of(value) if name in BYTES else value for name, value in cells if value is not None}
        )


def head_of(connection: Connection, row: AnyRow, last: int) -> dict[str, Any]:
    """Return the content of the first line of an export that ends with event `last`; `row` is the model's."""
    shapes = shapes_of(row)
    known = shapes.shape_of(last).attributes if shapes.extensions else MAX_ATTRIBUTES
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": row.name,
        "specification": text_of(row.initial_specification),
        "budget": row.budget,
        "created_at": row.created_at,
        "events": last,
        "policy": asdict(policies.policy_of(connection, row.id)),
        "vocabulary": [[k, value] for k, value in learned_pairs(connection, row.id) if k < known],
        "shapes": shapes.up_to(last).rows,
    }


def learned_pairs(connection: Connection, key: int) -> list[tuple[int, str]]:
    """Return the learned values of a model as pairs of attribute and value, in order."""
    learned = learned_values(connection, key)
    return [(attribute, value) for attribute, values in learned.items() for value in values]


def events_of(key: int) -> Select[Any]:
    """Select the events of a model, in order, with the columns `NAMES`."""
    beside = (display.c.model_id == log.c.model_id) & (display.c.instance == log.c.sequence)
    events = select(*COLUMNS, display.c.data).select_from(log.outerjoin(display, beside))
    return events.where(log.c.model_id == key).order_by(log.c.sequence)


def load_model(
    connection: Connection,
    lines: Iterable[str],
    clock: Clock,
    name: str | None = None,
    meaning: LogValidator | None = None,
) -> tuple[str, int]:
    """Create a model from the lines that `dump_model` yielded.

    Parameters
    ----------
    connection : connection in a write transaction.
    lines : with or without line ends.
    clock : read once the model is locked.
    name : name of the model; None for the name in the lines.
    meaning : checks specifications, values, labels and reasons; None leaves their bytes unchecked.

    Returns
    -------
    tuple[str, int] : name of the model, and number of events.

    Raises
    ------
    InvalidInput
        For an invalid line; the message names line, field, value and bound.
    AlreadyExists
        If the name is taken.
    """
    numbered = enumerate(lines, 1)
    head = read_head(numbered)
    events = ((where := f"line {number}", read_event(line, where)) for number, line in numbered)
    name = head.model if name is None else name
    _, count = make_model(connection, head, events, clock, name=name, meaning=meaning)
    return name, count


def make_model(
    connection: Connection,
    head: HeaderLine,
    events: Iterable[tuple[str, dict[str, Any]]],
    clock: Clock,
    *,
    name: str,
    meaning: LogValidator | None = None,
    where_head: str = "line 1",
) -> tuple[int, int]:
    """Create a model from its events; see `load_model`.

    Parameters
    ----------
    connection
        A connection in a write transaction.
    head
        The first line.
    events
        The events in order, each with its location for error messages.
    clock, meaning
        See `load_model`.
    name
        Name of the model.
    where_head
        Location of the first line for error messages.

    Returns
    -------
    tuple[int, int]
        Key of the model, and number of events.
    """
    key = _insert_model(connection, head, name)
    if meaning is not None:
        _located_error(
            where_head, meaning.check_head, head.specification, head.budget, head.vocabulary, head.shapes
        )
    reading, now = LogReader(head.shapes), clock().clock
    for chunk in checked_chunks(events, reading, meaning):
        rows = ((key, now, *map(event.get, EVENT_FIELDS)) for event in chunk)
        insert_rows(connection, log, ("model_id", "clock", *EVENT_FIELDS), rows)
        insert_displays(
            connection, key, {event["sequence"]: event[DISPLAY] for event in chunk if event.get(DISPLAY)}
        )
    _check_end(head, reading, where_head)
    if (count := len(marked_instances(connection, key))) > MAX_GOLD:
        raise InvalidInput("file", f"has {count:,} gold questions, at most {MAX_GOLD:,} are allowed")
    counted = reading.model_counters() | {
        "specification": reading.specification or head.specification,
        "shapes": head.shapes.text,
    }
    connection.execute(update(model).where(model.c.id == key).values(counted))
    return key, reading.sequence


def checked_chunks(
    events: Iterable[tuple[str, dict[str, Any]]], reading: LogReader, meaning: LogValidator | None
) -> Iterator[list[dict[str, Any]]]:
    """Check events and yield them in chunks; the error is that of the first invalid event."""
    waiting: list[tuple[str, dict[str, Any]]] = []
    for where, event in events:
        try:
            reading.check_event(event, where)
        except InvalidInput:
            _check_meaning(meaning, waiting)
            raise
        waiting.append((where, event))
        if len(waiting) == CHUNK:
            yield _check_meaning(meaning, waiting)
            waiting = []
    yield _check_meaning(meaning, waiting)


def _check_meaning(
    meaning: LogValidator | None, located: Sequence[tuple[str, dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Check the contents of events, and return the events."""
    events = [event for _, event in located]
    if meaning is not None:
        try:
            meaning.check_events(events)
        except InvalidInput:
            for where, event in located:
                _located_error(where, meaning.check_events, [event])
            raise
    return events


def _insert_model(connection: Connection, head: HeaderLine, name: str) -> int:
    check_model_id(name, "name")
    key = insert_empty(connection, name, head.specification, head.budget, head.created_at)
    places: Counter[int] = Counter()
    for attribute, value in head.vocabulary:
        rows = [(key, attribute, places[attribute], value)]
        insert_rows(connection, vocabulary, ("model_id", "attribute", "position", "value"), rows)
        places[attribute] += 1
    policies.set_policy(connection, name, head.policy)
    return key


def _check_end(head: HeaderLine, reading: LogReader, where_head: str) -> None:
    if reading.sequence != head.events:
        raise InvalidInput(
            "file", f"ends after event {reading.sequence}, its first line promises {head.events} events"
        )
    if reading.uncombined_instances:
        raise InvalidInput(
            "file",
            f"has statements about instance {min(reading.uncombined_instances)}, "
            "and no later event that combines them",
        )
    if head.shapes.since > reading.sequence:
        raise InvalidInput(
            where_head, f"has shapes up to event {head.shapes.since}, the last is {reading.sequence}"
        )
    if reading.answer_count > head.budget:
        raise InvalidInput(
            where_head, f"has budget {head.budget}, but {reading.answer_count} answers are in the file"
        )


def _located_error(where: str, check: Any, *given: Any) -> None:
    """Call a check; its error names the location `where`."""
    try:
        check(*given)
    except InvalidInput as error:
        raise InvalidInput(where, str(error)) from None
