"""Metrics, request ids, logs, status, the health of the grower, traces."""

import json
import logging
import os
import signal
import socket
import sqlite3
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families
from support.http_calls import Http, free_port
from support.published import published_model
from support.waiting import until

from quercus import __version__
from quercus.client import Client, InvalidArgument, Nominal, Numeric, Specification
from quercus.inference import open_inference_pb2, open_inference_pb2_grpc
from quercus.server.app import GROWER_HEALTH
from quercus.server.growth import supervisor
from quercus.server.wire.errors import BadStart
from quercus.v1 import instance_pb2, model_pb2
from quercus.view.models import accuracy_line, attribute_words

DEADLINE_S = 60.0


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    """The level of the log is the process's, and servers of these tests run in it."""
    logger = logging.getLogger("quercus")
    before = logger.level
    yield
    logger.setLevel(before)


class Page:
    """The page of metrics that Prometheus would read."""

    def __init__(self, port: int) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S) as response:
            text = response.read().decode()
        self._samples = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    def __call__(self, name: str, **labels: str) -> float:
        found = [s.value for s in self._samples if s.name == name and labels.items() <= s.labels.items()]
        return sum(found) if found else float("nan")


def test_metrics_tell_of_calls_and_of_models(
    start_live: Callable[..., Any], tmp_path: Path, tools: Any
) -> None:
    port = free_port()
    live = start_live(tmp_path / "store.db", http_port=port)
    live.api.create("m", budget=3)
    live.api.push(tools.table_t("m"))
    live.api.grown("m", 21)
    with tools.refused(grpc.StatusCode.NOT_FOUND):
        live.api.get("nothing")
    until(lambda: Page(port)("quercus_model_queries_open", model="m") > 0)
    inference = open_inference_pb2_grpc.GRPCInferenceServiceStub(live.api.channel)
    inference.ServerLive(open_inference_pb2.ServerLiveRequest(), timeout=60)
    page = Page(port)
    assert page("grpc_server_handling_seconds_count", grpc_method="ServerLive", grpc_type="unary") == 1
    service = "quercus.v1.ModelService"
    assert page("grpc_server_handled_total", grpc_service=service, grpc_method="CreateModel") == 1
    assert (
        page("grpc_server_handled_total", grpc_method="GetModel", grpc_code="NotFound", grpc_type="unary")
        == 1
    )
    assert page("grpc_server_handling_seconds_count", grpc_method="CreateModel") == 1
    assert page("grpc_server_started_total", grpc_method="PushInstances") == 1
    assert page("grpc_server_msg_received_total", grpc_method="PushInstances") == 1
    assert page("grpc_server_msg_sent_total", grpc_method="PushInstances") == 1
    assert page("quercus_rows_pushed_total") == 21
    assert page("quercus_build_info", version=__version__) == 1
    assert page("quercus_grower_restarts_total") == 0
    assert page("quercus_model_instances", model="m") == 21
    assert page("quercus_model_sequence_grown", model="m") == 21
    assert page("quercus_model_budget", model="m") == 3
    assert (page("quercus_store_up"), page("quercus_grower_up")) == (1, 1)
    assert page("quercus_store_bytes") > 10_000
    assert page("process_resident_memory_bytes") > 10e6
    until(lambda: Page(port)("quercus_calls_in_flight") == 0)


@pytest.fixture(scope="module")
def growing(start_for_all: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, int]:
    """One server that grows trees, for tests that only look at it, and the port of its metrics."""
    port = free_port()
    return start_for_all(tmp_path_factory.mktemp("growing") / "store.db", http_port=port), port


def test_accuracy_counts_labels_that_came_after_their_prediction(growing: tuple[Any, int]) -> None:
    """The same numbers in `GetModel`, the metrics and `models show`."""
    live, port = growing
    with Client(live.server.address) as client:
        client.create_model("m", published_model([Numeric("x", edges=(0.0,))], ["low", "high"]))
        client.push("m", [[-1.0], [1.0]] * 20, ["low", "high"] * 20)
        client.wait_grown("m")
        assert client.get_model("m").accuracy is None
        client.push("m", [[-2.0], [2.0]] * 35, ["low", "high"] * 30 + [["low", "high"]] * 4 + ["low"] * 6)
        client.wait_grown("m")
        found = client.get_model("m").accuracy
    assert found is not None
    assert (found.rows, found.precise_rows, [block.rows for block in found.blocks]) == (66, 66, [50, 16])
    assert found.accuracy == found.expected == 63 / 66
    page = Page(port)
    assert (
        page("quercus_model_recent_rows", model="m"),
        page("quercus_model_recent_accuracy", model="m"),
    ) == (
        66,
        63 / 66,
    )
    assert accuracy_line(found) == "95 % right of the last 66 labels that came after a prediction  █▇"


@pytest.mark.parametrize("learner", ["active-forest", "abc45", "e2m", "c45"])
def test_rows_with_names_beyond_the_bound_are_counted(growing: tuple[Any, int], learner: str) -> None:
    """By attribute in `GetModel` and `models show`, together in the metrics; an attribute with room is not named."""
    live, port = growing
    name = f"others-{learner}"
    with Client(live.server.address) as client:
        attributes = [Nominal("A", ["a", "b"], max_values=3), Nominal("B", max_values=2), Nominal("C")]
        client.create_model(name, Specification(attributes, ["low", "high"], learner=learner))
        rows = [[None, "x", f"c{i}"] for i in range(20)]
        client.push(name, rows, ["low", "high"] * 10)
        client.wait_grown(name)
        assert client.get_model(name).other_names == {}
        rows = [[f"n{i % 5}", f"m{i % 4}", "c"] for i in range(20)]  # A keeps n0, B keeps m0
        client.push(name, rows, ["low", "high"] * 10)
        client.wait_grown(name)
        found = client.get_model(name)
    assert found.other_names == {"A": 16, "B": 15}
    assert Page(port)("quercus_model_other_names", model=name) == 31
    kinds = [
        attribute_words(each, found.other_names.get(each.name, 0))[1]
        for each in found.specification.attributes
    ]
    assert "others count as (other names), so far in 16 rows" in kinds[0]
    assert "so far" not in kinds[2]


def test_metrics_still_answer_when_the_store_does_not(start_live: Callable[..., Any], tmp_path: Path) -> None:
    port = free_port()
    start_live(tmp_path / "store.db", http_port=port, grower=False)
    assert Page(port)("quercus_store_up") == 1
    (tmp_path / "store.db").rename(tmp_path / "elsewhere.db")
    assert Page(port)("quercus_store_up") == 0
    (tmp_path / "elsewhere.db").rename(tmp_path / "store.db")
    assert Page(port)("quercus_store_up") == 1


def test_a_port_for_http_that_is_taken_is_named(start_live: Callable[..., Any], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            BadStart, match=rf"cannot listen on 127\.0\.0\.1:{port}: .*choose another with --http-port"
        ):
            start_live(tmp_path / "store.db", http_port=port)


def test_a_request_keeps_the_id_that_it_came_with(api: Any) -> None:
    def ids(call: Any) -> list[str]:
        return [value for key, value in call.trailing_metadata() if key == "x-request-id"]

    request = model_pb2.ListModelsRequest()
    _, call = api.models.ListModels.with_call(request, metadata=(("x-request-id", "abc.1-2_3"),))
    assert ids(call) == ["abc.1-2_3"]
    _, call = api.models.ListModels.with_call(request)
    assert len(ids(call)[0]) == 16
    _, call = api.models.ListModels.with_call(request, metadata=(("x-request-id", "a b" * 40),))
    assert len(ids(call)[0]) == 16
    with pytest.raises(grpc.RpcError) as caught:
        api.models.GetModel(
            model_pb2.GetModelRequest(name="models/none"), metadata=(("x-request-id", "lost"),)
        )
    assert ids(caught.value) == ["lost"]
    wrong = instance_pb2.PushInstancesRequest(model="models/none", batch_id="first")
    with pytest.raises(grpc.RpcError) as caught:
        list(api.instances.PushInstances(iter([wrong]), metadata=(("x-request-id", "pushed"),)))
    assert ids(caught.value) == ["pushed"]
    assert dict(caught.value.trailing_metadata())["quercus-batch-id-bin"] == b"first"


def test_logs_are_json_where_programs_read_them(
    start_child: Callable[..., Any], tmp_path: Path, tools: Any
) -> None:
    child = start_child(tmp_path / "store.db", log_format="json", log_level="debug", grower=False)
    child.api.models.ListModels(model_pb2.ListModelsRequest(), metadata=(("x-request-id", "mine"),))
    code, logged = child.finish(signal.SIGTERM)
    lines = [json.loads(line) for line in logged.splitlines()]
    assert code == 0
    (line,) = [line for line in lines if line.get("request_id") == "mine"]
    assert line["level"] == "DEBUG"
    assert line["logger"] == "quercus.calls"
    assert "ListModels OK in " in line["message"]
    assert line["time"].endswith("Z")


def test_status_and_the_log_level_at_run_time(growing: tuple[Any, int]) -> None:
    live, _ = growing
    live.api.create("seen")
    live.api.grown("seen", 0)
    with Client(live.server.address) as client:
        status = client.status()
        models = len(list(client.models()))
        assert (status.version, status.models, status.grower, status.tls) == (
            __version__,
            models,
            "running",
            False,
        )
        assert (status.is_healthy, status.store_trouble, status.tokens) == (True, "", False)
        assert status.grower_pid == live.server.supervisor.pid
        assert status.memory_bytes > 10e6
        before = client.set_log_level("error")
        assert client.status().log_level == "error"
        assert client.set_log_level(before) == "error"
        with pytest.raises(InvalidArgument, match="level: is 'loud', must be one of debug, info"):
            client.set_log_level("loud")


@pytest.mark.slow
def test_the_level_of_the_grower_changes_with_that_of_the_server(
    start_child: Callable[..., Any], tmp_path: Path, tools: Any
) -> None:
    child = start_child(tmp_path / "store.db", log_level="error")
    with Client(child.api.address) as client:
        client.set_log_level("debug")
    child.api.create("m")
    child.api.grown("m", 0)
    _, logged = child.finish(signal.SIGTERM)
    assert "quercus.server.growth.folding: model m: version 1" in logged


@pytest.mark.release
def test_a_grower_without_heartbeats_is_reported(
    start_live: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SILENCE_S", 3.0)
    http = Http(free_port())
    live = start_live(tmp_path / "store.db", http_port=http.port)
    health = health_pb2_grpc.HealthStub(live.api.channel)
    status = health_pb2.HealthCheckResponse

    def said(service: str = GROWER_HEALTH) -> int:
        request = health_pb2.HealthCheckRequest(service=service)
        return int(health.Check(request, timeout=DEADLINE_S).status)

    live.api.create("m")
    live.api.grown("m", 0)
    until(lambda: said() == status.SERVING)  # on a busy machine it was silent while it started
    pid = live.server.supervisor.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: said() == status.NOT_SERVING)
        with Client(live.server.address) as client:
            assert (client.status().grower, client.status().is_healthy) == ("silent", False)
        assert said("") == status.SERVING  # trees that are there still answer
        live_page = http.get("/livez")
        silent = b"grower: makes no progress: it hangs, or is stopped; trees wait for it"
        assert (live_page.status, live_page.body.splitlines()) == (503, [b"store: well", silent])
        assert http.get("/readyz").status == 503
        assert http.get("/readyz?exclude=grower").status == 200
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: said() == status.SERVING)
    os.kill(pid, signal.SIGKILL)
    until(lambda: live.server.supervisor.pid not in (None, pid) and said() == status.SERVING)
    with Client(live.server.address) as client:
        assert client.status().grower_restarts == 1
    assert http.get("/livez").body == b"store: well\ngrower: well\n"


@pytest.mark.slow
def test_a_hanging_grower_is_reported_with_its_model(
    start_live: Callable[..., Any], tmp_path: Path, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process runs, and its other threads: no progress is made, and that counts."""
    monkeypatch.setattr(supervisor, "SILENCE_S", 2.0)
    live = start_live(tmp_path / "store.db")
    health = health_pb2_grpc.HealthStub(live.api.channel)
    request = health_pb2.HealthCheckRequest(service=GROWER_HEALTH)
    live.api.create("wine")
    live.api.grown("wine", 0)
    pid = live.server.supervisor.pid
    os.kill(pid, signal.SIGSTOP)
    live.api.push(tools.table_t("wine"))
    with closing(sqlite3.connect(tmp_path / "store.db")) as other, Client(live.server.address) as client:
        other.execute("BEGIN IMMEDIATE")  # whoever publishes waits
        os.kill(pid, signal.SIGCONT)
        until(lambda: client.status().grower_at == "wine")
        assert client.status().grower == "silent"
        until(lambda: health.Check(request).status == health_pb2.HealthCheckResponse.NOT_SERVING)
        other.rollback()
        until(lambda: health.Check(request).status == health_pb2.HealthCheckResponse.SERVING)
        live.api.grown("wine", 21)
        assert (client.status().grower, client.status().grower_at) == ("running", "")


@pytest.mark.slow
def test_spans_go_to_opentelemetry_where_it_is_asked_for(
    start_child: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.instrumentation.grpc", reason="pip install 'quercus[tracing]'")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    http = Http(free_port())
    child = start_child(tmp_path / "store.db", grower=False, http_port=http.port)
    child.api.create("m")
    trace = "0af7651916cd43dd8448eb211c80319c"
    said = http.call("ModelService/ListModels", {}, traceparent=f"00-{trace}-b7ad6b7169203331-01")
    assert said.status == 200
    child.process.send_signal(signal.SIGTERM)
    printed, _ = child.process.communicate(timeout=DEADLINE_S)
    assert '"name": "/quercus.v1.ModelService/CreateModel"' in printed
    assert '"name": "/quercus.v1.ModelService/ListModels"' in printed
    assert f'"trace_id": "0x{trace}"' in printed
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "pigeon")
    with pytest.raises(
        AssertionError, match=r"OTEL_TRACES_EXPORTER: is .*pigeon.*must be otlp, console or none"
    ):
        start_child(tmp_path / "other.db")
