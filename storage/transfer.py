"""A model's log as lines of JSON, and back: everything that was ever said, nothing that follows from it.

The first line says what model it is, each further line is an event of the log as it is stored, with bytes in base64.
The tree is a function of the log, so a model that is read back grows the same one; queries that were open are asked
anew.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import Connection, LargeBinary, insert, select, update

from quercus.belief.errors import InvalidInput
from quercus.storage import checks, policies
from quercus.storage.errors import AlreadyExists
from quercus.storage.query_records import Policy
from quercus.storage.records import EventKind
from quercus.storage.rows import find
from quercus.storage.schema import log, model, vocabulary

FORMAT = "quercus-log"
VERSION = 1
MAY_BE_NONE = ("per_labeller", "per_hour")  # of a policy
CHUNK = 1_000  # events written by one statement
_COLUMNS = [column for column in log.columns if column.name != "model_id"]
_BYTES = frozenset(column.name for column in _COLUMNS if isinstance(column.type, LargeBinary))
_NEEDED = frozenset(column.name for column in _COLUMNS if not column.nullable)


def dump(connection: Connection, name: str) -> Iterator[str]:
    """Yield the lines of a model, without line ends."""
    row = find(connection, name)
    words = select(vocabulary.c.attribute, vocabulary.c.value).where(vocabulary.c.model_id == row.id)
    yield _line(
        {
            "format": FORMAT,
            "version": VERSION,
            "model": name,
            "specification": _text(row.initial_specification),
            "budget": row.budget,
            "created_at": row.created_at,
            "events": row.sequence_committed,
            "policy": asdict(policies.of(connection, row.id)),
            "vocabulary": [
                list(each)
                for each in connection.execute(words.order_by(vocabulary.c.attribute, vocabulary.c.position))
            ],
        }
    )
    events = select(*_COLUMNS).where(log.c.model_id == row.id).order_by(log.c.sequence)
    for event in connection.execute(events.execution_options(yield_per=CHUNK)):
        cells = zip(_COLUMNS, event, strict=True)
        yield _line(
            {
                column.name: _text(value) if column.name in _BYTES else value
                for column, value in cells
                if value is not None
            }
        )


def load(connection: Connection, lines: Iterable[str], name: str | None = None) -> int:
    """Make a model of the lines that `dump` yielded.

    Parameters
    ----------
    connection : of one write transaction: all or nothing.
    lines : with or without line ends.
    name : of the model, that of the lines unless given.

    Returns
    -------
    int : events read.

    Raises
    ------
    InvalidInput
        Naming the line that is wrong.
    AlreadyExists
        When the name is taken.
    """
    numbered = enumerate(lines, 1)
    head = _head(numbered)
    name = head["model"] if name is None else name
    checks.model_name("name", name)
    if connection.execute(select(model.c.id).where(model.c.name == name)).one_or_none() is not None:
        raise AlreadyExists("model", name)
    key = _insert_model(connection, head, name)
    if "policy" in head:  # a file of an earlier version has none
        policies.put(connection, name, _policy(head["policy"]))
    count = dict.fromkeys(EventKind, 0)
    conflicts, specification, sequence, queries = 0, None, 0, 0
    opinions: set[tuple[int, str]] = set()  # one of several answers each: query and labeller
    settled: list[int] = []  # query of each answer
    chunk: list[dict[str, Any]] = []
    for number, line in numbered:
        event = _event(line, number, sequence + 1)
        sequence += 1
        count[EventKind(event["kind"])] += 1
        conflicts += bool(event.get("conflict"))
        if event["kind"] == EventKind.OPINION:
            opinions.add((event.get("query", 0), event["author"]))
        elif event["kind"] == EventKind.ANSWER:
            settled.append(event.get("query", 0))
        queries = max(queries, event.get("query", 0))
        specification = event.get("specification") or specification
        chunk.append({column.name: event.get(column.name) for column in _COLUMNS} | {"model_id": key})
        if len(chunk) == CHUNK:
            connection.execute(insert(log), chunk)
            chunk = []
    if chunk:
        connection.execute(insert(log), chunk)
    if sequence != head["events"]:
        raise InvalidInput("file", f"ends after {sequence} events, its first line promises {head['events']}")
    counted = {
        "sequence_committed": sequence,
        "instance_count": count[EventKind.INSTANCE],
        # of several answers to a query each was asked for, and not what they say together
        "queries_answered": len(opinions) + sum(query not in {of for of, _ in opinions} for query in settled),
        "query_count": queries,  # their numbers are in the log, and not given again
        "queries_refused": count[EventKind.REFUSAL],
        "conflicts": conflicts,
    }
    if specification is not None:
        counted["specification"] = specification
    connection.execute(update(model).where(model.c.id == key).values(counted))
    return sequence


def _insert_model(connection: Connection, head: dict[str, Any], name: str) -> int:
    counts = [
        *("sequence_committed", "sequence_grown", "tree_version", "instance_count", "query_count"),
        *("queries_answered", "queries_refused", "conflicts"),
    ]
    specification = _bytes(head["specification"], 1, "specification")
    row = {
        "name": name,
        "initial_specification": specification,
        "specification": specification,
        "budget": head["budget"],
        "created_at": head["created_at"],
    }
    result = connection.execute(insert(model).values(row | dict.fromkeys(counts, 0)))
    (key,) = result.inserted_primary_key or (0,)
    positions: dict[int, int] = {}
    for attribute, value in head["vocabulary"]:
        position = positions[attribute] = positions.get(attribute, -1) + 1
        connection.execute(
            insert(vocabulary).values(model_id=key, attribute=attribute, position=position, value=value)
        )
    return int(key)


def _head(numbered: Iterator[tuple[int, str]]) -> dict[str, Any]:
    _, line = next(numbered, (1, ""))
    head = _parsed(line, 1)
    if head.get("format") != FORMAT:
        raise InvalidInput("file", f"is no exported log: its first line has no format {FORMAT!r}")
    if head.get("version") != VERSION:
        raise InvalidInput(
            "file", f"has version {head.get('version')!r}, this version of quercus reads {VERSION}"
        )
    kinds = {
        "model": str,
        "specification": str,
        "budget": int,
        "created_at": int | float,
        "events": int,
        "vocabulary": list,
    }
    for key, kind in kinds.items():
        if isinstance(head.get(key), bool) or not isinstance(head.get(key), kind):
            raise InvalidInput("line 1", f"has {key} {head.get(key)!r}, which cannot be")
    for entry in head["vocabulary"]:
        if not (isinstance(entry, list) and [type(each) for each in entry] == [int, str]):
            raise InvalidInput("line 1", f"has {entry!r} in its vocabulary, must be an attribute and a value")
    return head


def _policy(given: object) -> Policy:
    kinds: dict[str, Any] = {field.name: type(field.default) for field in fields(Policy)} | dict.fromkeys(
        MAY_BE_NONE, int
    )
    if not isinstance(given, dict) or not set(given) <= set(kinds):
        raise InvalidInput("line 1", f"has policy {given!r}, must be of {', '.join(kinds)}")
    found: dict[str, Any] = {}
    for key, value in given.items():
        kind = kinds[key]
        try:
            if value is None and key in MAY_BE_NONE:
                continue
            if kind is tuple:
                if not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
                    raise ValueError
            elif isinstance(value, bool) or not isinstance(value, int | float if kind is float else int):
                raise ValueError
            found[key] = kind(value)
        except ValueError:
            raise InvalidInput("line 1", f"has policy {key} {value!r}, which cannot be") from None
    return Policy(**found)


def _event(line: str, number: int, sequence: int) -> dict[str, Any]:
    event = _parsed(line, number)
    where = f"line {number}"
    unknown = sorted(set(event) - {column.name for column in _COLUMNS})
    missing = sorted(_NEEDED - set(event))
    if unknown or missing:
        raise InvalidInput(where, f"{'has' if unknown else 'lacks'} {', '.join(unknown or missing)}")
    if event["sequence"] != sequence:
        raise InvalidInput(where, f"is event {event['sequence']!r}, must be event {sequence}")
    if event["kind"] not in set(EventKind):
        raise InvalidInput(
            where, f"is of kind {event['kind']!r}, which is none of {[int(k) for k in EventKind]}"
        )
    for column in _COLUMNS:
        value = event.get(column.name)
        if value is None:
            continue
        if column.name in _BYTES:
            event[column.name] = _bytes(value, number, column.name)
        elif not isinstance(value, _python_types(column.type.python_type)):
            raise InvalidInput(where, f"has {column.name} {value!r}, which cannot be")
    return event


def _python_types(kind: type) -> tuple[type, ...]:
    return (int, float) if kind is float else (kind,)


def _parsed(line: str, number: int) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput(f"line {number}", f"is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"line {number}", "is not an object")
    return content


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: object, number: int, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)  # type: ignore[arg-type]  # what is no text is refused too
    except (ValueError, TypeError):
        raise InvalidInput(f"line {number}", f"has {name} that is not base64") from None
