"""The disk of the store is full: what can be read is answered, what would be written is refused, nothing is lost."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.http_calls import Http, free_port
from support.mounts import fill, small_disk
from support.waiting import until

from quercus.client import Client, ResourceExhausted
from quercus.server.app import WRITES_HEALTH
from quercus.storage.sqlite.disk_space import RESERVE_BYTES
from quercus.v1 import classify_pb2, query_pb2, tree_pb2


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", megabytes=16) as folder:
        yield folder


def is_taken(api: Any, batch: Any) -> bool:
    """Push; whether there was room for it."""
    try:
        api.push(batch)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
            raise
        assert "no space is left on the disk" in (said := error.details() or "")  # noqa: PT017
        assert "delete a model" in said
        return False
    return True


def push_until_full(api: Any, client: Client, tools: Any) -> list[str]:
    """Push until the service says that the disk is full; ids of the rows that were acknowledged.

    One refusal is not the end: the server then empties the write-ahead log, which gives some room back.
    """
    known: list[str] = []
    for number in range(2000):
        ids = [f"b{number}-{i}-{'long' * 30}" for i in range(200)]
        if is_taken(api, tools.batch("m", np.zeros((200, 2)), ids=ids)):
            known += ids
        elif not client.status().is_healthy:
            return known
    raise AssertionError("the disk was never full")


@pytest.mark.slow
def test_a_full_disk(start_live: Any, tools: Any, disk: Path) -> None:
    http = Http(free_port())
    live = start_live(disk / "store.db", http_port=http.port)
    api, client = live.api, Client(live.server.address, outage_s=1)
    api.create("m")
    api.push(tools.table_t("m"))
    api.grown("m", 21)
    (query,) = api.lease("m").queries
    row = classify_pb2.ClassifyRequest(model="models/m", rows=tools.packed([[0, 0]]))
    health = health_pb2_grpc.HealthStub(api.channel)

    def writes() -> int:
        return health.Check(health_pb2.HealthCheckRequest(service=WRITES_HEALTH), timeout=60).status

    until(lambda: writes() == health_pb2.HealthCheckResponse.SERVING)
    filler = fill(disk, left_bytes=500_000)
    known = push_until_full(api, client, tools)

    assert api.classifier.Classify(row, timeout=60).classes
    assert api.trees.GetTree(tree_pb2.GetTreeRequest(name="models/m/trees/latest"), timeout=60).as_of >= 21
    listed = api.queries.ListQueries(query_pb2.ListQueriesRequest(model="models/m"), timeout=60)
    assert query.name in {each.name for each in listed.queries}
    assert api.get("m").sequence_committed == 21 + len(known)

    def trouble() -> str:
        with pytest.raises(ResourceExhausted, match="no space is left"):
            client.push("m", [["a", "d"]] * 20_000)
        return client.status().store_trouble

    until(
        lambda: (
            "can only be read" in (said := trouble())
            and "no space is left on the disk" in said
            and writes() == health_pb2.HealthCheckResponse.NOT_SERVING
        )
    )

    page = http.get("/readyz")
    assert (page.status, b"writes: are refused: the log says why" in page.body) == (503, True)
    assert (http.get("/livez").status, http.get("/readyz?exclude=writes").status) == (200, 200)
    filler.unlink()
    until(lambda: writes() == health_pb2.HealthCheckResponse.SERVING)
    assert http.get("/readyz").status == 200
    assert client.status().store_trouble == ""
    assert api.answer(query).committed_sequence > 21 + len(known)
    api.push(tools.batch("m", np.zeros((1, 2)), ids=["last"]))
    with live.server.core.store as store:
        ids = [event.id for event in store.read_events("m", limit=10**6) if event.kind == 1]
    assert len(ids) == len(set(ids))
    assert set(known) | {"last"} <= set(ids)
    client.close()


@pytest.mark.slow
def test_a_model_can_be_deleted_from_a_full_disk(start_live: Any, tools: Any, tmp_path: Path) -> None:
    """And what it took is written to again, although nothing else was freed; it may be larger than what is reserved."""
    with small_disk(tmp_path / "disk", megabytes=64) as disk:
        live = start_live(disk / "store.db")
        api, client = live.api, Client(live.server.address, outage_s=1)
        for name in ("m", "kept"):
            api.create(name)
        api.push(tools.table_t("kept"))
        fill(disk, left_bytes=36_000_000)  # for the log too, which a grower that reads lets grow
        known = push_until_full(api, client, tools)
        assert (disk / "store.db").stat().st_size > 1.3 * RESERVE_BYTES

        client.delete_model("m")
        until(lambda: client.status().is_healthy)
        until(lambda: not live.server.core.store.removes)
        reserve = disk / "store.db-reserve"
        # Who reads in the log keeps its room, until the server looks again; meanwhile there may be no reserve.
        until(lambda: reserve.exists() and reserve.stat().st_size == RESERVE_BYTES)
        free = os.statvfs(disk)
        # less than is written below, which therefore needs the pages of the deleted model
        assert free.f_bavail * free.f_frsize < (disk / "store.db").stat().st_size / 2
        for number in range(len(known) // 400):  # half of what was there
            ids = [f"d{number}-{k}-{'long' * 30}" for k in range(200)]
            batch = tools.batch("kept", np.zeros((200, 2)), ids=ids)
            until(partial(is_taken, api, batch))  # the write-ahead log may fill the little that is left
        assert api.get("kept").instance_count == 21 + len(known) // 400 * 200
        client.close()


def test_a_damaged_store_takes_no_more_writes(start_live: Any, tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    live = start_live(path)
    live.api.create("m")
    live.api.push(tools.table_t("m"))
    live.api.grown("m", 21)
    row = classify_pb2.ClassifyRequest(model="models/m", rows=tools.packed([[0, 0]]))
    live.api.classifier.Classify(row, timeout=60)
    live.server.core.store._database._damage = (
        f"{path} is damaged"  # a page that SQLite could not make sense of
    )
    with tools.refused(
        grpc.StatusCode.FAILED_PRECONDITION, "is damaged", "nothing is written to it any more"
    ):
        live.api.push(tools.batch("m", [[1, 1]]))
    assert live.api.classifier.Classify(row, timeout=60).classes
    assert live.api.get("m").sequence_committed == 21
