"""Heartbeats are written by who makes progress: what is begun, and once a second that nothing is to do."""

import os
from collections.abc import Iterator

import pytest

from quercus.server.growth import heartbeat
from quercus.server.growth.heartbeat import Heartbeat, HeartbeatWriter


class Reader:
    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()

    def beats(self) -> list[Heartbeat]:
        return [Heartbeat.decode(line) for line in os.read(self.read_end, 1 << 20).splitlines()]


@pytest.fixture
def reader() -> Iterator[Reader]:
    made = Reader()
    yield made
    os.close(made.read_end)
    os.close(made.write_end)


def test_a_new_model_is_reported_at_once_and_repeats_once_a_second(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: now[0])
    beating = HeartbeatWriter(reader.write_end)
    for model in ("", "", "wine", "wine", "", "iris"):
        beating.report_model(model)
    assert [beat.at for beat in reader.beats()] == ["", "wine", "iris"]
    now[0] += heartbeat.BEAT_S
    beating.report_model("iris")
    beating.report_model("iris")
    beating.report_model("")
    assert reader.beats() == [Heartbeat("iris")]
    now[0] += heartbeat.BEAT_S
    beating.report_model("")
    beating.report_model("")
    assert reader.beats() == [Heartbeat()]
    beating.report_model("iris")
    assert reader.beats() == [Heartbeat("iris")]


def test_a_reader_that_does_not_read_delays_nothing(reader: Reader) -> None:
    beating = HeartbeatWriter(reader.write_end)
    for number in range(20_000):  # more than a pipe holds
        beating.report_model(f"model-{number}")
    assert reader.beats()[0] == Heartbeat("model-0")
