"""Checks of request fields: durations, names and counts."""

from __future__ import annotations

from typing import Final

from google.protobuf.duration_pb2 import Duration

from quercus.belief.errors import InvalidInput
from quercus.server.wire.limits import (
    DEFAULT_DELAY_S,
    DEFAULT_LEASE_S,
    MAX_LEASE_S,
    MAX_WAIT_S,
    MIN_DELAY_S,
    MIN_LEASE_S,
)
from quercus.specification.bounds import MAX_DELAY_S, MAX_LABELLER_CHARACTERS, MAX_TOOK_S

NANOS: Final = 1_000_000_000


def empty_stream(wanted: str) -> InvalidInput:
    """Return the error for a stream without a message."""
    return InvalidInput("stream", f"is empty, must have {wanted}")


def lease_s(duration: Duration, given: bool) -> float:
    """Return the duration of a lease in seconds, by default `DEFAULT_LEASE_S`."""
    if not given:
        return DEFAULT_LEASE_S
    return _checked_seconds(duration, "lease_duration", MIN_LEASE_S, MAX_LEASE_S)


def wait_s(duration: Duration) -> float:
    """Return the time in seconds that a call may wait for queries."""
    return _checked_seconds(duration, "wait", 0.0, MAX_WAIT_S)


def delay_s(duration: Duration, given: bool) -> float:
    """Return the time in seconds for which a query is postponed, by default `DEFAULT_DELAY_S`."""
    return _checked_seconds(duration, "delay", MIN_DELAY_S, MAX_DELAY_S) if given else DEFAULT_DELAY_S


def took_s(duration: Duration) -> float:
    """Return the seconds that a labeller took."""
    return _checked_seconds(duration, "took", 0.0, MAX_TOOK_S)


def check_labeller(labeller: str) -> str:
    """Return a labeller's name; raise `InvalidInput` if it is invalid."""
    if not labeller.strip() or len(labeller) > MAX_LABELLER_CHARACTERS or not labeller.isprintable():
        raise InvalidInput(
            "labeller",
            f"is {labeller[:60]!r}, must be 1 to {MAX_LABELLER_CHARACTERS} printable characters, not blank",
        )
    return labeller


def check_sequence(sequence: int) -> int:
    """Return `min_sequence`; raise `InvalidInput` if it is negative."""
    if sequence < 0:
        raise InvalidInput("min_sequence", f"is {sequence}, must be at least 0")
    return sequence


def check_count(value: int, field: str, low: int, high: int) -> int:
    """Return `value`; raise `InvalidInput` unless it lies in [low, high]."""
    if not low <= value <= high:
        raise InvalidInput(field, f"is {value}, must lie in [{low}, {high}]")
    return value


def _checked_seconds(duration: Duration, field: str, low: float, high: float) -> float:
    if not abs(duration.nanos) < NANOS or duration.seconds * duration.nanos < 0:
        raise InvalidInput(
            f"{field}.nanos",
            f"is {duration.nanos}, must lie in [-{NANOS - 1}, {NANOS - 1}] and have the sign of the seconds",
        )
    seconds = duration.seconds + duration.nanos / NANOS
    if not low <= seconds <= high:
        raise InvalidInput(field, f"is {seconds:g} s, must lie in [{low:g} s, {high:g} s]")
    return seconds
