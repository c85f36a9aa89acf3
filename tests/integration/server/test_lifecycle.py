"""Starting, stopping, killing: nothing acknowledged is lost, nothing is left behind."""

import threading
import time
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from support.waiting import until

from quercus.server.services.trees import TreeService
from quercus.server.wire.errors import BadStart
from quercus.storage.store import Store
from quercus.v1 import classify_pb2, model_pb2, query_pb2, tree_pb2


class Pusher:
    """Pushes single rows until the server goes away; remembers which were acknowledged."""

    def __init__(self, api: Any, tools: Any, model: str, name: str) -> None:
        self.acked: list[str] = []
        self.some = threading.Event()
        self._api, self._tools, self._model, self._name = api, tools, model, name
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        requests = (
            self._tools.batch(
                self._model, [[i % 3, i % 2]], ids=[f"{self._name}-{i}"], batch_id=f"{self._name}-{i}"
            )
            for i in range(100_000)
        )
        try:
            for ack in self._api.instances.PushInstances(requests, timeout=60):
                self.acked.append(ack.batch_id)
                if len(self.acked) == 50:
                    self.some.set()
        except grpc.RpcError as error:
            self.code, self.details = error.code(), error.details() or ""

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()


def grower_of(pid: int) -> int:
    """The one child process of a server that is a grower."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            command = (entry / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == pid and b"quercus.server.growth.grower" in command:
            return int(entry.name)
    raise AssertionError("there is no grower")


@pytest.mark.slow
@pytest.mark.parametrize("number", ["SIGTERM", "SIGKILL"])
def test_no_orphan_is_left(number: str, start_child: Any, tools: Any, tmp_path: Path) -> None:
    child = start_child(tmp_path / "store.db")
    child.api.create("m")
    child.api.grown("m", 0)
    grower = grower_of(child.process.pid)
    child.finish(getattr(tools.signals, number))
    until(lambda: not tools.alive(grower))


@pytest.mark.slow
def test_no_stopped_grower_is_left(start_child: Any, tools: Any, tmp_path: Path) -> None:
    child = start_child(tmp_path / "store.db")
    child.api.create("m")
    child.api.grown("m", 0)
    grower = grower_of(child.process.pid)
    tools.kill(grower, tools.signals.SIGSTOP)  # it cannot notice anything by itself
    child.process.kill()
    until(lambda: not tools.alive(grower))


@pytest.mark.release
def test_a_stopped_grower_delays_neither_answers_nor_the_end(
    start_child: Any, tools: Any, tmp_path: Path
) -> None:
    child = start_child(tmp_path / "store.db")
    api = child.api
    api.create("m")
    api.push(tools.table_t("m"))
    api.grown("m", 21)
    grower = grower_of(child.process.pid)
    tools.kill(grower, tools.signals.SIGSTOP)
    api.push(tools.batch("m", [[0, 0]]))
    row = classify_pb2.ClassifyRequest(model="models/m", rows=tools.packed([[0, 0]]))
    assert api.classifier.Classify(row, timeout=60).as_of == 21
    code, _ = child.finish(tools.signals.SIGTERM)
    assert code == 0
    until(lambda: not tools.alive(grower))


def test_killed_grower_is_started_again_and_grows_the_same_tree(
    start_live: Any, tools: Any, tmp_path: Path
) -> None:
    live = start_live(tmp_path / "store.db")
    api = live.api
    for model in ("killed", "whole"):
        api.create(model, budget=0)
    rows = np.array([[i % 3, (i // 3) % 2] for i in range(600)])
    masks = [1 << int(row[0]) if i % 4 else 7 for i, row in enumerate(rows)]
    request = tools.batch("killed", rows, batch_id="b")
    request.labels.sets.masks.extend(masks)
    for i in range(0, 600, 100):
        part = tools.batch("killed", rows[i : i + 100], batch_id=f"b{i}")
        part.labels.sets.masks.extend(masks[i : i + 100])
        api.push(part)
        if i % 200 == 0:
            pid = live.server.supervisor.pid
            if pid is not None:
                tools.kill(pid, tools.signals.SIGKILL)
                until(lambda pid=pid: not tools.alive(pid))
    request.model = "models/whole"
    api.push(request)
    killed, whole = api.grown("killed", 600), api.grown("whole", 600)
    assert killed.nodes == whole.nodes
    assert len(killed.nodes.parents) > 1


@pytest.mark.slow
def test_model_that_cannot_be_grown_does_not_stop_the_others(
    start_live: Any, tools: Any, tmp_path: Path
) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        store.create_model("broken", b"\xff\xff\xff", budget=0)
    live = start_live(tmp_path / "store.db")
    live.api.create("fine")
    live.api.push(tools.table_t("fine"))
    assert live.api.grown("fine", 21).nodes.counts[0] == 21
    with tools.refused(grpc.StatusCode.DATA_LOSS, "model broken is damaged: specification"):
        live.api.get("broken")


@pytest.mark.slow
def test_open_streams_do_not_delay_a_stop(start_live: Any, tools: Any, tmp_path: Path) -> None:
    grace_s = 60.0
    live = start_live(tmp_path / "store.db", grace_s=grace_s)
    api = live.api
    api.create("m", budget=0)
    hold = threading.Event()

    def held(*requests: Any) -> Any:
        yield from requests
        hold.wait(60)

    request = query_pb2.LeaseQueriesRequest(model="models/m", labeller="ann")
    request.wait.FromSeconds(60)
    poll = api.queries.LeaseQueries.future(request)
    watch = api.trees.WatchTree(tree_pb2.WatchTreeRequest(model="models/m"))
    next(watch)
    healths = health_pb2_grpc.HealthStub(api.channel).Watch(health_pb2.HealthCheckRequest())
    next(healths)
    push = api.instances.PushInstances(held(tools.batch("m", [[0, 0]])))
    next(push)
    classify = api.classifier.ClassifyStream(
        held(classify_pb2.ClassifyRequest(model="models/m", rows=tools.packed([[0, 0]])))
    )
    next(classify)
    queries = api.queries.StreamQueries(
        held(query_pb2.StreamQueriesRequest(model="models/m", labeller="ann", credits=1))
    )
    next(queries)
    started = time.monotonic()
    live.stop()
    assert time.monotonic() - started < grace_s / 2
    hold.set()
    for stream in (watch, push, classify, queries):
        with tools.refused(grpc.StatusCode.UNAVAILABLE, "stopping"):
            list(stream)
    assert [each.status for each in healths] in ([], [health_pb2.HealthCheckResponse.NOT_SERVING])
    assert not poll.result(10).queries


def test_second_signal_ends_at_once(start_child: Any, tools: Any, tmp_path: Path) -> None:
    child = start_child(tmp_path / "store.db", grace_s=600.0)
    stub = reflection_pb2_grpc.ServerReflectionStub(child.api.channel)
    hold = threading.Event()

    def requests() -> Any:
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        hold.wait(60)

    stream = stub.ServerReflectionInfo(requests())  # does not know of our stop: the grace runs
    next(stream)
    health = health_pb2_grpc.HealthStub(child.api.channel).Watch(health_pb2.HealthCheckRequest())
    next(health)
    child.process.send_signal(tools.signals.SIGTERM)
    list(health)  # ends when the stop has begun
    assert child.process.poll() is None
    code, _ = child.finish(tools.signals.SIGTERM)
    hold.set()
    assert code == 128 + 15


def test_stores_that_cannot_be_used(start_live: Any, tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("this is not a database " * 100)
    for store in (text, tmp_path / "no" / "folder.db", tmp_path):
        with pytest.raises(BadStart, match="cannot use the store") as caught:
            start_live(store, grower=False)
        assert str(store) in str(caught.value)


def test_database_that_is_not_supported(start_live: Any) -> None:
    with pytest.raises(
        BadStart, match=r"cannot use the store oracle://…: store: 'oracle' is not supported; use"
    ):
        start_live("oracle://nowhere/x", grower=False)


def test_slow_reader_of_trees_skips_versions(live: Any, tools: Any) -> None:
    live.api.create("slow")
    watch = TreeService(live.server.core).WatchTree(tree_pb2.WatchTreeRequest(model="models/slow"), None)
    versions = [live.run(_next(watch)).tree.version]
    for i in range(4):  # the reader does not ask meanwhile
        (ack,) = live.api.push(tools.batch("slow", [[i % 3, 0]]))
        newest = live.api.grown("slow", ack.committed_sequence)
    skipped = live.run(_next(watch))
    assert (skipped.tree, skipped.committed_sequence) == (newest, 4)
    assert newest.version >= versions[0] + 4
    live.run(watch.aclose())


async def _next(stream: Any) -> Any:
    return await anext(stream)


@pytest.mark.slow
def test_a_steady_push_is_published_once_an_interval(start_live: Any, tools: Any, tmp_path: Path) -> None:
    interval_s, lasting_s = 0.5, 3.0
    api = start_live(tmp_path / "store.db", snapshot_interval_s=interval_s).api
    api.create("m", budget=0)
    api.grown("m", 0)
    started = time.monotonic()

    def batches() -> Any:
        number = 0
        while time.monotonic() - started < lasting_s:
            yield tools.batch("m", [[number % 3, number % 2]], batch_id=f"{number}")
            number += 1

    acks = 0
    for ack in api.instances.PushInstances(batches(), timeout=60):
        acks = ack.committed_sequence
    during = api.get("m").tree_version
    took_s = time.monotonic() - started
    assert 2 <= during <= 2 + took_s / interval_s
    assert acks > 5 * during  # there was something new all the time
    assert api.grown("m", acks).as_of == acks  # and the last of it, without another push


@pytest.mark.slow
def test_the_lag_is_seen_and_ends(start_live: Any, tools: Any, tmp_path: Path) -> None:
    idle = start_live(tmp_path / "store.db", grower=False)
    idle.api.create("m", budget=0)
    assert not idle.api.get("m").lag.ToNanoseconds()
    idle.api.push(tools.table_t("m"))
    first = idle.api.get("m")
    assert (first.sequence_committed, first.sequence_grown, first.tree_version) == (21, 0, 0)
    (listed,) = idle.api.models.ListModels(model_pb2.ListModelsRequest()).models
    assert 0 < first.lag.ToNanoseconds() < listed.lag.ToNanoseconds() < 60e9
    idle.close()
    api = start_live(tmp_path / "store.db").api
    assert api.grown("m", 21).as_of == 21
    last = api.get("m")
    assert (last.sequence_grown, last.lag.ToNanoseconds()) == (21, 0)


def test_a_stop_waits_for_the_ends_of_streams_to_be_read(start_live: Any, tools: Any, tmp_path: Path) -> None:
    """The connection stays while a client reads, though it sends without end; then every acknowledgement arrives."""
    live = start_live(tmp_path / "store.db", grower=False)
    live.api.create("m", budget=0)
    pushers = [Pusher(live.api, tools, "m", f"p{i}") for i in range(3)]
    for pusher in pushers:
        assert pusher.some.wait(60)
    live.stop()
    for pusher in pushers:
        pusher.join()
        assert "the server is stopping" in pusher.details
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        assert store.get_model("m").instance_count == sum(len(pusher.acked) for pusher in pushers)
