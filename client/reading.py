"""Conversions of protobuf values to plain Python types, for `quercus.client.results`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from quercus.client.values import Between
from quercus.specification.reasons import Fact, FactValue, Shares

if TYPE_CHECKING:
    from google.protobuf.duration_pb2 import Duration
    from google.protobuf.timestamp_pb2 import Timestamp

    from quercus.client.values import Value
    from quercus.specification.written_labels import Label
    from quercus.v1 import query_pb2, values_pb2


class Words(dict[int, Any]):
    """The words of an enum by the numbers of its values.

    Parameters
    ----------
    words
        The words.
    unknown
        The word for a number that only newer servers know.

    Examples
    --------
    >>> words = Words({1: "open", 2: "leased"})
    >>> words[1], words[99]
    ('open', 'unspecified')
    """

    def __init__(self, words: Mapping[int, str], unknown: str = "unspecified") -> None:
        super().__init__(words)
        self._unknown = unknown

    def __missing__(self, number: int) -> str:
        return self._unknown


def seconds_of(length: Duration) -> float:
    """Return a duration in seconds."""
    return length.ToNanoseconds() / 1e9


def to_datetime(timestamp: Timestamp) -> datetime:
    """Return a timestamp, in UTC."""
    return timestamp.ToDatetime(tzinfo=UTC)


def row_values(row: values_pb2.NamedRow) -> dict[str, Value]:
    """Return the values of a row by attribute."""
    values: dict[str, Value] = {}
    for name, value in row.values.items():
        kind = value.WhichOneof("kind")
        if kind == "nominals":
            values[name] = frozenset(value.nominals.values)
        elif kind == "range":
            values[name] = Between(value.range.low, value.range.high)
        else:
            values[name] = getattr(value, kind) if kind in {"nominal", "number", "other"} else None
    return values


def fact_of(message: query_pb2.Fact) -> Fact:
    """Return the fact in a message."""
    value: FactValue
    match message.WhichOneof("value"):
        case "shares":
            value = Shares(tuple(message.shares.theta), message.shares.who)
        case "interval":
            value = message.interval.lower, message.interval.upper
        case None:  # a kind unknown to this client
            value = ""
        case kind:
            value = getattr(message, kind)
    return Fact(message.name, value)


def label_of(message: values_pb2.Label, classes: Sequence[str]) -> Label:
    """Return the label in a message, in the form that people use."""
    kind = message.WhichOneof("kind")
    if kind == "class_name":
        return message.class_name
    if kind == "class_set":
        return frozenset(message.class_set.classes)
    if kind == "contour":
        return dict(zip(classes, message.contour.plausibilities, strict=False))
    if kind == "mass":
        pairs = zip(message.mass.focal_sets, message.mass.masses, strict=True)
        return {frozenset(c for i, c in enumerate(classes) if mask >> i & 1): mass for mask, mass in pairs}
    return None
