"""The lines of an exported log: each is read as JSON, and its fields and types are checked."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import IO, Any

from sqlalchemy import Boolean, Double, LargeBinary, String

from quercus.belief.errors import InvalidInput, shown
from quercus.labelling import checks
from quercus.labelling.checks import MAX_COUNT, MAX_TIME
from quercus.labelling.event import EVENT_FIELDS, EventKind
from quercus.labelling.policy import Policy
from quercus.labelling.shapes import Shapes
from quercus.storage.queries import policies
from quercus.storage.schema import log

FORMAT = "quercus-log"
VERSION = 1
MAY_BE_NONE = ("per_labeller", "per_hour")  # of a policy
MAX_LINE_CHARACTERS = 2**25
"""Most characters of a line: enough for the largest specification in base64, and learned values."""
DISPLAY = "display"  # of an INSTANCE; not a column of the log
COLUMNS = [log.c[name] for name in EVENT_FIELDS]
NAMES = (*EVENT_FIELDS, DISPLAY)
BYTES = frozenset({DISPLAY, *(column.name for column in COLUMNS if isinstance(column.type, LargeBinary))})
_KINDS = frozenset(EventKind)
_NEEDED = frozenset(column.name for column in COLUMNS if not column.nullable)
_TYPES: dict[str, tuple[type, ...]] = {DISPLAY: (str,)} | {
    column.name: (bool,)
    if isinstance(column.type, Boolean)
    else (int, float)
    if isinstance(column.type, Double)
    else (str,)
    if isinstance(column.type, String | LargeBinary)
    else (int,)
    for column in COLUMNS
}
_WORDS: dict[tuple[type, ...], str] = {
    (bool,): "true or false",
    (int, float): "a number",
    (str,): "text",
    (int,): "a whole number",
    (list,): "a list",
    (dict,): "an object",
}
_HEAD: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "specification": (str,),
    "budget": (int,),
    "created_at": (int, float),
    "events": (int,),
    "policy": (dict,),
    "vocabulary": (list,),
}


@dataclass(frozen=True, slots=True)
class HeaderLine:
    """The first line, which describes the model."""

    model: str
    specification: bytes
    budget: int
    created_at: float
    events: int
    vocabulary: list[tuple[int, str]]
    policy: Policy
    shapes: Shapes


def lines_of(stream: IO[str]) -> Iterator[str]:
    """Yield the lines of a file.

    Raises
    ------
    InvalidInput
        If a line is too long; it is not read completely.
    """
    number = 0
    while line := stream.readline(MAX_LINE_CHARACTERS + 1):
        number += 1
        if len(line) > MAX_LINE_CHARACTERS:
            raise InvalidInput(
                f"line {number}",
                f"has more than {MAX_LINE_CHARACTERS:,} characters, more than any line of a log",
            )
        yield line


def line_of(content: dict[str, Any]) -> str:
    """Return an object as a line of JSON."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def text_of(data: bytes) -> str:
    """Return bytes in base64."""
    return base64.b64encode(data).decode("ascii")


def read_head(numbered: Iterator[tuple[int, str]]) -> HeaderLine:
    """Read and check the first line."""
    _, line = next(numbered, (1, ""))
    found = _parse_line(line, "line 1")
    if found.get("format") != FORMAT:
        raise InvalidInput("file", f"is not an exported log: its first line has no format {FORMAT!r}")
    return check_head(found, "line 1")


def check_head(found: dict[str, Any], where: str) -> HeaderLine:
    """Check the content of a first line, except for its format; errors name the location `where`."""
    if found.get("version") != VERSION:
        raise InvalidInput(
            where, f"has version {shown(found.get('version'))}, this version of quercus reads {VERSION}"
        )
    for key, kind in _HEAD.items():
        _check_type(where, key, found.get(key), kind)
    for key, most in (("budget", MAX_COUNT), ("events", MAX_COUNT), ("created_at", MAX_TIME)):
        check_range(where, key, found[key], 0, most)
    try:
        shapes = Shapes.of(found.get("shapes", []))
    except (InvalidInput, TypeError) as error:
        raise InvalidInput(where, f"has shapes that cannot be: {error}") from None
    return HeaderLine(
        found["model"],
        _decode_bytes(where, "specification", found["specification"]),
        found["budget"],
        found["created_at"],
        found["events"],
        _decode_vocabulary(found["vocabulary"], where),
        _decode_policy(found["policy"], where),
        shapes,
    )


def read_event(line: str, where: str) -> dict[str, Any]:
    """Read an event as its columns, and check their names and types; errors name the location `where`."""
    event = _parse_line(line, where)
    unknown = sorted(set(event) - set(_TYPES))
    missing = sorted(_NEEDED - set(event))
    if unknown or missing:
        raise InvalidInput(where, f"{'has' if unknown else 'lacks'} {', '.join(unknown or missing)}")
    for name, value in event.items():
        if value is None and name not in _NEEDED:
            continue
        _check_type(where, name, value, _TYPES[name])
        if name in BYTES:
            event[name] = _decode_bytes(where, name, value)
    check_kind(event["kind"], where)
    return event


def read_cells(cells: dict[str, Any], where: str) -> dict[str, Any]:
    """Check an event whose cells have the right types, and return it without empty cells."""
    event = {name: value for name, value in cells.items() if value is not None}
    if missing := sorted(_NEEDED - set(event)):
        raise InvalidInput(where, f"lacks {', '.join(missing)}")
    size = sum(len(value) for value in event.values() if isinstance(value, bytes | str))
    check_range(where, "cells of", size, 0, MAX_LINE_CHARACTERS)
    check_kind(event["kind"], where)
    return event


def check_kind(kind: int, where: str) -> None:
    """Raise `InvalidInput` if there is no kind of event with this number."""
    if kind not in _KINDS:
        raise InvalidInput(where, f"is of kind {kind}, which is none of {[int(k) for k in EventKind]}")


def check_range(where: str, name: str, value: float, low: float, high: float) -> None:
    """Raise `InvalidInput` if a number is out of bounds, or NaN."""
    if not low <= value <= high:
        raise InvalidInput(where, f"has {name} {shown(value)}, must lie in [{low}, {high}]")


def _decode_vocabulary(entries: list[Any], where: str) -> list[tuple[int, str]]:
    found: dict[tuple[int, str], None] = {}
    for entry in entries:
        if not (isinstance(entry, list) and [type(each) for each in entry] == [int, str]):
            raise InvalidInput(
                where, f"has {shown(entry)} in its vocabulary, must be an attribute and a value"
            )
        attribute, value = entry
        check_range(where, "an attribute in its vocabulary", attribute, 0, MAX_COUNT)
        if not value or (attribute, value) in found:
            raise InvalidInput(
                where, f"has value {shown(value)} of attribute {attribute} in its vocabulary, "
                f"{'twice' if value else 'which is empty'}"
            )  # fmt: skip
        checks.storable_text(where, value)
        found[attribute, value] = None
    return list(found)


def _decode_policy(given: dict[str, Any], where: str) -> Policy:
    kinds: dict[str, Any] = {field.name: type(field.default) for field in fields(Policy)} | dict.fromkeys(
        MAY_BE_NONE, int
    )
    if not set(given) <= set(kinds):
        raise InvalidInput(where, f"has policy {shown(given)}, must be of {', '.join(kinds)}")
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
        except (ValueError, OverflowError):
            raise InvalidInput(where, f"has policy {key} {shown(value)}, which cannot be") from None
    policy = Policy(**found)
    try:
        policies.check_policy(policy)
    except InvalidInput as error:
        raise InvalidInput(where, f"has a policy whose {error}") from None
    return policy


def _parse_line(line: str, where: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:  # ValueError also for integers with thousands of digits
        raise InvalidInput(where, f"is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise InvalidInput(where, "is not an object")
    return content


def _check_type(where: str, name: str, value: object, kinds: tuple[type, ...]) -> None:
    if type(value) not in kinds:
        raise InvalidInput(where, f"has {name} {shown(value)}, must be {_WORDS[kinds]}")


def _decode_bytes(where: str, name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise InvalidInput(where, f"has {name} that is not base64") from None
