"""Heartbeats are written by who makes progress: what is begun, and once a second that nothing is to do."""

import os
import sys
import threading
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
    beating.report_compiling(2, 11, trees=False)
    beating.report_model("wine")
    beating.report_compiling(3, 11, trees=True)
    beating.report_compiling(0, 0, trees=True)
    assert reader.beats() == [
        Heartbeat("iris", True, 2, 11),
        Heartbeat("wine", True, 2, 11),
        Heartbeat("wine", False, 3, 11),
        Heartbeat("wine"),
    ]


def test_a_reader_that_does_not_read_delays_nothing(reader: Reader) -> None:
    beating = HeartbeatWriter(reader.write_end)
    for number in range(20_000):  # more than a pipe holds
        beating.report_model(f"model-{number}")
    assert reader.beats()[0] == Heartbeat("model-0")


def test_two_threads_do_not_undo_each_others_heartbeats() -> None:
    """The kernels are compiled beside the loop: its next line must not say again that they are not."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        beating = HeartbeatWriter(sink)
        for _ in range(200):
            beating.report_compiling(1, 2, trees=False)
            begun = threading.Barrier(2)

            def end(begun: threading.Barrier = begun) -> None:
                begun.wait()
                beating.report_compiling(0, 0, trees=True)

            other = threading.Thread(target=end)
            other.start()
            begun.wait()
            for number in range(20):
                beating.report_model(f"model {number}")
            other.join()
            assert not beating._last.compiling
    finally:
        sys.setswitchinterval(interval)
        os.close(sink)
