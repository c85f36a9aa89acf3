"""Messages are read off the event loop when they are large, and counted before protobuf makes them."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from quercus.belief.errors import InvalidInput
from quercus.server.gate import message_reading
from quercus.server.gate.message_reading import MessageReader
from quercus.server.wire.limits import INLINE_BYTES, MAX_ENTRIES, UNCOUNTED_BYTES
from quercus.v1 import instance_pb2, query_pb2

Push = instance_pb2.PushInstancesRequest
SHAPE = message_reading.MessageShape.of(Push.DESCRIPTOR)


def part(number: int, data: bytes) -> bytes:
    """A field with a length, as it travels."""
    length, size = b"", len(data)
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def named(rows: bytes) -> bytes:
    return part(2, part(2, rows))


EMPTY_ROW = part(1, b"")
VALUE = part(1, part(1, b"X") + part(2, part(1, b"a")))


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (named(EMPTY_ROW * (MAX_ENTRIES + 1)), "rows.named.rows"),
        (named(part(1, part(1, b"") * (MAX_ENTRIES + 1))), "rows.named.rows.values"),
        (part(3, part(2, part(1, b"\x01" * (MAX_ENTRIES + 1)))), "labels.sets.masks"),
        (part(3, part(2, b"\x08\x01" * (MAX_ENTRIES + 1))), "labels.sets.masks"),
        (part(3, part(4, part(1, b"") * (MAX_ENTRIES + 1))), "labels.list.labels"),
        (part(4, b"") * (MAX_ENTRIES + 1), "ids"),
    ],
)
def test_a_list_that_is_too_long_is_named_before_it_is_made(
    data: bytes, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        message_reading, "MAX_PARTS", 30_000
    )  # of fewer parts lists are bounded where they are converted
    with pytest.raises(
        InvalidInput, match="more than 10,000 entries: send several smaller messages"
    ) as caught:
        message_reading.check_parts(data + part(15, b"\n" * 30_001), SHAPE)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (named(EMPTY_ROW * 90) * 12, "rows.named.rows"),
        (part(2, b"\x0a\x00\x12\x00" * 500), "rows.named"),
        (named(part(1, VALUE * 10) * 30), "rows.named.rows.values"),
        (b"\x8a\x00\x00" * 1001, "request"),
        (part(9, b"") * 1001, "request"),
    ],
)
def test_what_a_message_holds_in_all_is_bounded(
    data: bytes, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_reading, "MAX_PARTS", 1000)
    with pytest.raises(InvalidInput, match="is more than the 1,000 fields and entries of lists") as caught:
        message_reading.check_parts(data, SHAPE)
    assert caught.value.field == field


@given(st.binary(max_size=200))
def test_no_bytes_break_the_walk(data: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch, suppress(InvalidInput):
        patch.setattr(message_reading, "MAX_PARTS", 20)  # so that some are walked through
        message_reading.check_parts(data, SHAPE)


def test_right_messages_pass() -> None:
    request = Push(model="models/m", ids=[f"row-{k}" for k in range(MAX_ENTRIES)])
    request.rows.packed.values.extend(range(10 * MAX_ENTRIES))
    request.labels.sets.masks.extend([2**63] * MAX_ENTRIES)
    message_reading.check_parts(request.SerializeToString(), SHAPE)
    states = query_pb2.ListQueriesRequest(states=[1, 2, 3])
    message_reading.check_parts(
        states.SerializeToString(), message_reading.MessageShape.of(states.DESCRIPTOR)
    )


def read(data: bytes, deserialize: Any = Push.FromString) -> tuple[Any, int]:
    """Return the message that is read, and the number of requests for a thread."""
    threads = 0

    async def in_thread(function: Any, *arguments: Any) -> Any:
        nonlocal threads
        threads += 1
        return await asyncio.to_thread(function, *arguments)

    return asyncio.run(MessageReader(deserialize, in_thread).read_message(data)), threads


def test_large_messages_are_read_in_a_thread() -> None:
    small, large = Push(model="m"), Push(model="m" * (INLINE_BYTES + 1))
    assert read(small.SerializeToString()) == (small, 0)
    assert read(large.SerializeToString()) == (large, 1)


def test_parts_are_counted_before_a_large_message_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_reading, "MAX_PARTS", UNCOUNTED_BYTES // 4)
    fitting, larger = (named(EMPTY_ROW * (size // 2)) for size in (UNCOUNTED_BYTES - 16, UNCOUNTED_BYTES))
    assert len(fitting) <= UNCOUNTED_BYTES < len(larger)
    assert read(fitting) == (Push.FromString(fitting), 1)
    with pytest.raises(InvalidInput, match=r"rows\.named\.rows: .*more than"):
        read(larger)


@pytest.mark.parametrize("size", [1, INLINE_BYTES + 1])
def test_bytes_that_are_no_message_are_refused(size: int) -> None:
    with pytest.raises(InvalidInput, match=r"request: cannot be read \(.*PushInstancesRequest"):
        read(b"a" * size)


class NoArena:
    """Stands for protobuf when there is no memory: it says so by the exception for bytes that are not a message."""

    DESCRIPTOR = Push.DESCRIPTOR

    @classmethod
    def from_string(cls, data: bytes) -> Any:
        raise DecodeError(
            "Error parsing message with type 'quercus.v1.PushInstancesRequest': Arena alloc failed"
        )


def test_a_lack_of_memory_is_not_the_fault_of_the_message() -> None:
    with pytest.raises(DecodeError, match="Arena alloc failed"):
        read(b"", NoArena.from_string)
