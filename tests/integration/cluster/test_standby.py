"""A primary dies, its standby takes over: what was acknowledged is there, once, and servers go on by themselves."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.postgres import Cluster, require_binaries

from quercus.client import Client, Numeric, Specification

ROWS = 40
"""Rows of a push."""
PUSHES = 60
KILLED_AFTER = 20
"""Pushes that are acknowledged when the primary is killed."""


@pytest.fixture
def primary() -> Iterator[Cluster]:
    made = Cluster(require_binaries())
    yield made
    made.remove()


@pytest.fixture
def standby(primary: Cluster) -> Iterator[Cluster]:
    made = primary.make_standby()
    yield made
    made.remove()


@pytest.mark.release
def test_no_acknowledged_row_is_lost_and_none_is_there_twice(
    primary: Cluster, standby: Cluster, tmp_path: Path
) -> None:
    database = primary.create()
    hosts = f"{primary.root},{standby.root}"
    ports = f"{primary.port},{standby.port}"
    store = (
        f"postgresql://{primary.user}@/{database}?host={hosts}&port={ports}&target_session_attrs=read-write"
    )
    serving = Serving(tmp_path, store=store)
    killed = threading.Event()

    def push() -> None:
        with Client(serving.address, outage_s=60.0) as client:
            for number in range(PUSHES):
                rows = [{"x": float(number * ROWS + each)} for each in range(ROWS)]
                client.push("m", rows, ids=[f"{number}-{each}" for each in range(ROWS)])
                acknowledged.append(number)
                if len(acknowledged) == KILLED_AFTER:
                    killed.set()

    acknowledged: list[int] = []
    with Client(serving.address) as client:
        client.create_model("m", Specification([Numeric("x")], ["o", "s"], budget=100))
        pusher = threading.Thread(target=push)
        pusher.start()
        assert killed.wait(60)
        primary.stop(signal.SIGQUIT)
        assert len(acknowledged) < PUSHES
        standby.promote()
        pusher.join(90)
        assert acknowledged == list(range(PUSHES))
        assert client.get_model("m").instance_count == PUSHES * ROWS
        client.push("m", [{"x": 1.0}, {"x": -1.0}], ["o", "s"])
        client.wait_grown("m", timeout_s=60)
        (query,) = client.lease("m", "ann", wait_s=30.0).queries
        client.answer(query, "o")
        assert client.get_model("m").queries_answered == 1
    assert serving.stop() == 0
