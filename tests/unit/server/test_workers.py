"""The things that workers of a server share: counts, limits, buckets, frames, and the cores that there are."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from quercus.server import machine
from quercus.server.config import BadConfiguration, Config
from quercus.server.gate.throttle import CallRates, CallsAtOnce, OpenStreams
from quercus.server.telemetry.metric_sums import SumOfWorkers
from quercus.server.wire.errors import BadStart, ResourceExhausted
from quercus.server.workers import parent
from quercus.server.workers.board import Board
from quercus.server.workers.line import CALL, REPLY, FrameReader, encode_frame


@pytest.fixture
def boards() -> Iterator[tuple[Board, Board]]:
    """The boards of two workers, as two processes would map them."""
    memory = os.memfd_create("test")
    yield Board(2, memory, 0, b"key"), Board(2, memory, 1, b"key")
    os.close(memory)


def test_calls_of_all_workers_count_and_those_of_a_dead_one_are_forgotten(
    boards: tuple[Board, Board],
) -> None:
    limits = [CallsAtOnce(3, count=board.tally("calls")) for board in boards]

    async def run() -> None:
        ended = asyncio.Event()

        async def call(limit: CallsAtOnce) -> None:
            limit.count_call()
            await ended.wait()

        calls = [asyncio.create_task(call(limits[k % 2])) for k in range(3)]
        await asyncio.sleep(0)
        for limit in limits:
            with pytest.raises(ResourceExhausted, match="max_calls: 3 calls are under way"):
                limit.count_call()
        boards[0].clear(1)  # the parent does when the worker is gone
        limits[0].count_call()
        ended.set()
        await asyncio.gather(*calls)

    asyncio.run(run())


def test_streams_of_a_caller_count_in_all_workers(boards: tuple[Board, Board]) -> None:
    one, other = (OpenStreams(2, board) for board in boards)
    with one.count_stream("ann"), other.count_stream("ann"):
        for streams in (one, other):
            with (
                pytest.raises(ResourceExhausted, match="ann has 2 streams open"),
                streams.count_stream("ann"),
            ):
                pass
            with streams.count_stream("bob"):
                pass
    with one.count_stream("ann"), one.count_stream("ann"):
        pass


def test_thousands_of_callers_do_not_pay_for_each_other(boards: tuple[Board, Board]) -> None:
    """Their places in the shared table collide, but hardly ever all of a caller's."""
    one, other = boards
    for k in range(2000):
        one.count_stream(f"caller {k}", 1)
    assert sum(other.streams_elsewhere(f"caller {k}") != 1 for k in range(2000)) < 200
    assert sum(other.streams_elsewhere(f"stranger {k}") == 0 for k in range(2000)) > 1800


def test_a_caller_has_one_rate_at_all_workers(boards: tuple[Board, Board]) -> None:
    now = [100.0]
    one, other = (CallRates(10.0, lambda: now[0], board) for board in boards)
    passed = 0
    for k in range(100):
        try:
            (one, other)[k % 2].admit_call("ann")
        except ResourceExhausted:
            continue
        passed += 1
    assert passed == 20
    now[0] += 1.0
    for rates in (one, other):
        for _ in range(5):
            rates.admit_call("ann")
        rates.admit_call("bob")
    with pytest.raises(ResourceExhausted):
        one.admit_call("ann")


def test_metrics_are_added_and_never_fall(tmp_path: Path) -> None:
    def process(calls: int, memory: int) -> CollectorRegistry:
        registry = CollectorRegistry()
        Counter("calls", "Calls.", ["method"], registry=registry).labels("Get").inc(calls)
        Gauge("memory", "Bytes.", registry=registry).set(memory)
        return registry

    def told(sums: SumOfWorkers) -> dict[str, float]:
        samples = [sample for family in sums.collect() for sample in family.samples]
        return {each.name: each.value for each in samples if not each.name.endswith("_created")}  # a time

    def text(calls: int, memory: int) -> str:
        return generate_latest(process(calls, memory)).decode()

    answers = {1: (11, text(5, 50))}
    sums = SumOfWorkers(process(3, 30), lambda: answers, tmp_path / "counted")
    assert told(sums) == {"calls_total": 8, "memory": 80}
    answers = {}
    assert told(sums) == {"calls_total": 8, "memory": 30}
    answers = {1: (12, text(1, 10))}
    assert told(sums) == {"calls_total": 9, "memory": 40}
    answers = {}  # and the next keeper, asked before the other worker answers it
    assert told(SumOfWorkers(process(2, 20), dict, tmp_path / "counted")) == {
        "calls_total": 11,
        "memory": 20,
    }


def test_frames_arrive_whole_however_they_are_cut() -> None:
    sent = [(CALL, 1, [b"method", b"", b"x" * 1000]), (REPLY, 2**40, []), (CALL, 3, [b"a"])]
    data = b"".join(encode_frame(*each) for each in sent)
    for step in (1, 7, 100, len(data)):
        reader = FrameReader()
        found = [frame for at in range(0, len(data), step) for frame in reader.read(data[at : at + step])]
        assert found == sent


def test_the_number_of_workers_is_configured_like_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Config.load({}, environ={}).workers == 1
    assert Config.load({"workers": "3"}, environ={"QUERCUS_WORKERS": "5"}).workers == 3
    for given in ("0", "65", "many", "2.5"):
        with pytest.raises(
            BadConfiguration, match=r"workers: is .* \(from environment variable QUERCUS_WORKERS\)"
        ):
            Config.load({}, environ={"QUERCUS_WORKERS": given})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(7)))
    monkeypatch.setattr(machine, "_group_bounds", lambda *_: iter([]))
    assert Config.load({"workers": "auto"}, environ={}).workers == 7


def test_quotas_of_control_groups_bound_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("1:cpu:/old\n0::/slice/service\n")
    inner = tmp_path / "sys/fs/cgroup/slice/service"
    inner.mkdir(parents=True)
    assert machine.usable_cores(tmp_path) == 16
    (inner / "cpu.max").write_text("max 100000\n")
    (inner.parent / "cpu.max").write_text("250000 100000\n")
    assert machine.usable_cores(tmp_path) == 3


def test_a_system_that_divides_no_connections_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "SHARES_PORTS", False)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(BadStart, match=r"workers: is 2, and darwin does not divide .*: leave workers at 1"):
        parent.serve_with_workers(Config(workers=2), print)


def test_sockets_lie_in_a_private_folder_with_a_short_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where in (tmp_path / ("long" * 30), tmp_path / "missing"):
        monkeypatch.setattr(tempfile, "tempdir", str(where))
        if where.name != "missing":
            where.mkdir()
        folder = parent.make_private_folder()
        assert (folder.stat().st_mode & 0o777, len(str(folder)) < 100) == (0o700, True)
        folder.rmdir()
    monkeypatch.setattr(parent, "PLACES", ())
    with pytest.raises(BadStart, match="set TMPDIR"):
        parent.make_private_folder()
