"""Bounds of a server that is running, and what a caller is told who passes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from quercus.client import Client, Nominal, ResourceExhausted, Specification
from quercus.proto.v1 import tree_pb2

SPECIFICATION = Specification([Nominal("X", "ab")], ["o", "s"])


def test_calls_of_one_caller_are_bounded(start_live: Callable[..., Any], tmp_path: Path) -> None:
    live = start_live(tmp_path / "store.db", calls_per_s=5.0)
    client = Client(live.server.address)
    with client, pytest.raises(ResourceExhausted, match="more than 5 calls a second; try again in"):
        [client.status() for _ in range(20)]


def test_messages_of_a_stream_count_as_calls(
    start_live: Callable[..., Any], tmp_path: Path, tools: Any
) -> None:
    live = start_live(tmp_path / "store.db", calls_per_s=5.0)
    live.api.create("m", attributes=[tools.nominal("X", "ab")])
    batches = [tools.batch("m", [[0]], ids=[str(i)]) for i in range(30)]
    with tools.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "more than 5 calls a second"):
        live.api.push(*batches)
    assert 0 < live.server.core.store.get_model("m").instance_count < 30


def test_streams_of_one_caller_are_bounded(
    start_live: Callable[..., Any], tmp_path: Path, tools: Any
) -> None:
    live = start_live(tmp_path / "store.db", max_streams=3)
    live.api.create("m")
    watches = [live.api.trees.WatchTree(tree_pb2.WatchTreeRequest(model="models/m")) for _ in range(3)]
    for watch in watches:
        next(watch)
    with tools.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "has 3 streams open, at most 3 are allowed"):
        next(live.api.trees.WatchTree(tree_pb2.WatchTreeRequest(model="models/m")))
    assert live.api.get("m").name == "models/m"
    for watch in watches:
        watch.cancel()


def test_models_are_bounded(start_live: Callable[..., Any], tmp_path: Path) -> None:
    live = start_live(tmp_path / "store.db", max_models=2)
    with Client(live.server.address) as client:
        for name in "ab":
            client.create_model(name, SPECIFICATION)
        with pytest.raises(ResourceExhausted, match="there are 2 models, the most there may be: delete one"):
            client.create_model("c", SPECIFICATION)
        client.delete_model("a")
        client.create_model("c", SPECIFICATION)


def test_work_is_refused_while_memory_is_short_and_status_is_not(
    start_live: Callable[..., Any], tmp_path: Path
) -> None:
    live = start_live(tmp_path / "store.db", max_memory_bytes=1)
    memory = live.server._memory
    memory.look()
    with Client(live.server.address) as client:
        with pytest.raises(ResourceExhausted, match=r"max_memory_bytes: .*try again in 1 s"):
            client.create_model("m", SPECIFICATION)
        assert client.status().memory_bytes > 1
        live.run(_roomy(memory))
        client.create_model("m", SPECIFICATION)


async def _roomy(memory: Any) -> None:
    memory.close()
    memory._most = 2**50
    memory.look()
