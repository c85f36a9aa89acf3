"""Callers that leave in the middle, at every level of the log: the server goes on, and says nothing it should not."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.storm import Storm

from quercus.specification.server import LOG_LEVELS
from quercus.v1 import admin_pb2, admin_pb2_grpc, tree_pb2

DEADLINE_S = 60.0


@pytest.mark.slow
def test_a_server_survives_callers_that_leave(
    start_child: Callable[..., Any], tmp_path: Path, tools: Any
) -> None:
    child = start_child(tmp_path / "store.db", grower=False)
    child.api.create("m")
    child.api.push(tools.table_t("m"))
    admin = admin_pb2_grpc.AdminServiceStub(child.api.channel)
    for level in LOG_LEVELS:
        admin.SetLogLevel(admin_pb2.SetLogLevelRequest(level=level), timeout=DEADLINE_S)
        storm = Storm(child.api.address, "m")
        asyncio.run(storm.blow(400 if level == "debug" else 100))
        assert child.api.get("m").instance_count >= len(tools.rows_t)
        assert storm.codes["CANCELLED"] > 25, storm.codes
    code, logged = child.finish(tools.signals.SIGTERM)
    assert code == 0, logged[-2000:]
    assert "WatchTree CANCELLED" in logged
    for unwanted in ("Traceback", "RuntimeWarning", "ERROR"):
        assert unwanted not in logged, logged


@pytest.mark.slow
def test_what_reads_a_stream_may_outlive_its_call(
    start_child: Callable[..., Any], tmp_path: Path, tools: Any
) -> None:
    child = start_child(tmp_path / "store.db", log_level="debug", grower=False)
    child.api.create("m")
    for k in range(100):
        batches = iter([tools.batch("m", [[0, 0]], ids=[f"{k}-{i}"]) for i in range(5)])
        call = child.api.instances.PushInstances(batches, timeout=DEADLINE_S)
        next(call)
        call.cancel()
    watch = child.api.trees.WatchTree(tree_pb2.WatchTreeRequest(model="models/m"), timeout=DEADLINE_S)
    watch.cancel()
    assert watch.code() is grpc.StatusCode.CANCELLED
    assert child.finish(tools.signals.SIGTERM)[0] == 0
