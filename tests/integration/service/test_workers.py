"""Several processes that serve one port: to callers they are one server."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.processes import children
from support.workers import client_of_each, workers_of

from quercus.client import AlreadyExists, Client, Nominal, NotFound, Numeric, Specification

SPECIFICATION = Specification([Numeric("x"), Nominal("kind", ("plain",))], ("a", "b"))
WAIT_S = 30.0


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    started = Serving(tmp_path_factory.mktemp("workers"), workers=2)
    yield started
    started.kill()


@pytest.fixture(scope="module")
def pair(serving: Serving) -> Iterator[tuple[Client, Client]]:
    """A client of the keeper, and one of the other worker."""
    with ExitStack() as closing:
        clients = client_of_each(serving, closing)
        yield clients[0], clients[1]


def test_each_worker_writes_and_reads_what_the_other_has_acknowledged(pair: tuple[Client, Client]) -> None:
    for turn, (one, other) in enumerate((pair, pair[::-1])):
        name = f"turns-{turn}"
        one.create_model(name, SPECIFICATION)
        assert other.model(name).name == name
        assert other.push(name, [[1.0, "plain"], [5.0, "plain"]] * 20, ["a", "b"] * 20).stored == 40
        one.wait_grown(name)
        assert [each.classify(name, [[5.0, "plain"]]).labels[0] for each in pair] == ["b", "b"]
        with pytest.raises(AlreadyExists, match=name):
            other.create_model(name, SPECIFICATION)
        assert other.lease(name, "ann").idle
        one.delete_model(name)
        with pytest.raises(NotFound):
            other.classify(name, [[5.0, "plain"]])


def _is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def _wait_until(pids: list[int]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not all(map(_is_gone, pids)):
        assert time.monotonic() < deadline, "a process outlives its server"
        time.sleep(0.02)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_server(tmp_path: Path, how: signal.Signals) -> None:
    """Nor when the parent is killed; the next server takes port and store."""
    serving = Serving(tmp_path, workers=2)
    workers = list(workers_of(serving.process.pid).values())
    growers = [grower for pid in workers for grower in children(pid)]
    assert (len(workers), len(growers)) == (2, 1)
    with Client(serving.address) as client:
        client.create_model("kept", SPECIFICATION)
        if how is signal.SIGKILL:
            serving.kill()
        else:
            assert serving.stop() == 0
        _wait_until([*workers, *growers])
    again = Serving(tmp_path, serving.port)
    with Client(again.address) as client:
        assert client.model("kept").name == "kept"
    assert again.stop() == 0
