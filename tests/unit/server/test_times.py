"""Times on the wire are rounded to microseconds; a filter by a time that was shown misses nothing."""

import math

from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import example, given
from hypothesis import strategies as st

from quercus.server.wire.models import earliest_seconds, to_timestamp

LAST = 253_402_300_799.0  # of the year 9999, in seconds since the epoch


@given(st.floats(0, LAST))
@example(0.0)
@example(1763917000.1234565)
@example(1763917000.1234567)
def test_who_asks_from_a_shown_time_gets_what_happened_at_it(seconds: float) -> None:
    shown = to_timestamp(seconds)
    first = earliest_seconds(shown)
    assert first <= seconds
    assert to_timestamp(first) == shown
    before = math.nextafter(first, -math.inf)
    assert before < 0 or to_timestamp(before).ToNanoseconds() < shown.ToNanoseconds()


@given(st.integers(0, 2_000_000_000), st.integers(0, 999_999_999))
def test_parts_of_a_microsecond_are_later_than_what_was_shown_before_them(seconds: int, nanos: int) -> None:
    first = earliest_seconds(Timestamp(seconds=seconds, nanos=nanos))
    asked = seconds * 10**9 + nanos
    assert to_timestamp(max(0.0, first)).ToNanoseconds() >= asked
    before = math.nextafter(first, -math.inf)
    assert before < 0 or to_timestamp(before).ToNanoseconds() < asked
