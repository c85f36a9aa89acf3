"""Durations that are none are refused by the field that is wrong."""

import pytest
from google.protobuf.duration_pb2 import Duration

from quercus.belief.errors import InvalidInput
from quercus.server.wire.request_checks import lease_s, took_s


@pytest.mark.parametrize(
    ("seconds", "nanos"), [(5, 1_000_000_000), (5, -1), (-5, 1), (0, -1_000_000_000), (1, 2**31 - 1)]
)
def test_nanos_out_of_range_are_refused(seconds: int, nanos: int) -> None:
    with pytest.raises(InvalidInput, match=rf"is {nanos}, must lie in \[-999999999, 999999999\]") as caught:
        lease_s(Duration(seconds=seconds, nanos=nanos), given=True)
    assert caught.value.field == "lease_duration.nanos"


def test_right_durations_are_read() -> None:
    assert lease_s(Duration(seconds=5, nanos=500_000_000), given=True) == 5.5
    assert took_s(Duration(nanos=999_999_999)) == 0.999999999
