"""The store is taken away under a running server."""

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.http_calls import Http, free_port
from support.said import said
from support.waiting import until

from quercus.server.core import changes
from quercus.v1 import classify_pb2


def test_health_follows_the_store(
    start_live: Any, tools: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "store.db"
    http = Http(free_port())
    live = start_live(path, grower=False, http_port=http.port)
    api = live.api
    api.create("m", budget=0)
    assert (http.get("/livez").status, http.get("/readyz").status) == (200, 200)
    api.push(tools.batch("m", [[0, 0]]))
    status = health_pb2.HealthCheckResponse
    health = health_pb2_grpc.HealthStub(api.channel)
    watch = health.Watch(health_pb2.HealthCheckRequest(service="quercus.v1.InstanceService"), timeout=60)
    assert next(watch).status == status.SERVING
    path.rename(tmp_path / "kept")
    assert next(watch).status == status.NOT_SERVING
    page = http.get("/livez")
    assert (page.status, page.body) == (503, b"store: cannot be read: the log says why\ngrower: well\n")
    assert http.get("/readyz").status == 503
    assert http.get("/readyz?exclude=stor").error == (
        "invalid_argument",
        "exclude: is 'stor', must be one of store, grower, writes, stopping",
    )
    with tools.refused(grpc.StatusCode.UNAVAILABLE, str(path), "deleted or replaced"):
        api.push(tools.batch("m", [[1, 1]]))
    with tools.refused(grpc.StatusCode.UNAVAILABLE, "deleted or replaced"):
        api.get("m")
    assert not path.exists()
    (tmp_path / "kept").rename(path)
    assert next(watch).status == status.SERVING
    assert (http.get("/livez").status, http.get("/readyz").status) == (200, 200)
    (ack,) = api.push(tools.batch("m", [[1, 1]]))
    assert ack.committed_sequence == 2
    watch.cancel()
    (told,) = said(caplog, changes.__name__, logging.ERROR)
    assert told.startswith("the store cannot be read: ")


def test_a_grower_that_starts_without_the_store_waits_for_it(
    start_live: Any, tools: Any, tmp_path: Path
) -> None:
    """It makes no store of its own, which would hide the one that is put back."""
    path = tmp_path / "store.db"
    live = start_live(path)
    live.api.create("m", budget=0)
    live.api.push(tools.table_t("m"))
    live.api.grown("m", 21)
    kept = tmp_path / "kept"
    kept.mkdir()
    files = list(tmp_path.glob("store.db*"))  # with SQLite's log
    for file in files:
        file.rename(kept / file.name)
    supervisor = live.server.supervisor
    tools.kill(supervisor.pid, tools.signals.SIGKILL)
    until(lambda: supervisor.restart_count >= 3)  # of which two found no store
    assert not path.exists()
    for file in files:
        (kept / file.name).rename(file)
    live.api.push(tools.batch("m", [[1, 1]]))
    live.api.grown("m", 22)


def test_a_classification_needs_no_store(start_live: Any, tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    live = start_live(path)
    live.api.create("m", budget=0)
    live.api.push(tools.table_t("m"))
    live.api.grown("m", 21)
    row = classify_pb2.ClassifyRequest(model="models/m", rows=tools.packed([[0, 0]]))
    before = live.api.classifier.Classify(row, timeout=60)
    path.rename(tmp_path / "kept")
    assert live.api.classifier.Classify(row, timeout=60) == before


@pytest.mark.parametrize("program", ["learner_process", "grower"])
def test_a_process_that_starts_without_the_store_says_so_in_a_line(program: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", f"quercus.server.growth.{program}", f"sqlite:///{tmp_path / 'store.db'}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    told = process.stderr.read()  # its standard input stays open: its parent lives
    process.communicate()
    assert (process.returncode, len(told.splitlines())) == (1, 1), told
    assert told.endswith(f"the store cannot be opened: {tmp_path / 'store.db'} does not exist\n")
