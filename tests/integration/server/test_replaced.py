"""A model is deleted, and another of its name made, while clients work with the first."""

import gc
import queue
from pathlib import Path
from typing import Any

import grpc
import pytest

from quercus.v1 import classify_pb2, model_pb2, query_pb2, values_pb2

OTHER = {"classes": ["p", "q"]}


class Requests:
    """An open request stream that is fed from outside."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def send(self, request: Any) -> None:
        self._queue.put(request)

    def close(self) -> None:
        self._queue.put(None)

    def __iter__(self) -> Any:
        return iter(self._queue.get, None)


@pytest.fixture
def requests() -> Any:
    made = Requests()
    yield made
    made.close()


def replace(api: Any, tools: Any, model: str) -> None:
    api.models.DeleteModel(model_pb2.DeleteModelRequest(name=f"models/{model}"), timeout=60)
    api.create(model, attributes=[tools.nominal("Z", "ab")], **OTHER)


def test_a_push_stream_is_of_one_model(api: Any, tools: Any, requests: Any) -> None:
    api.create("replaced-push")
    stream = api.instances.PushInstances(iter(requests), timeout=60)
    requests.send(tools.batch("replaced-push", [[0, 0]], batch_id="b0"))
    next(stream)
    replace(api, tools, "replaced-push")
    # two values: one row of the first model, two rows of the second
    requests.send(tools.batch("replaced-push", [[0, 0]], batch_id="b1"))
    with tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "replaced-push", "another has its name"):
        next(stream)
    assert api.get("replaced-push").sequence_committed == 0
    (ack,) = api.push(tools.batch("replaced-push", [[0], [1]], batch_id="b2"))
    assert ack.rows_stored == 2


def test_a_query_stream_is_of_one_model(start_live: Any, tools: Any, tmp_path: Path, requests: Any) -> None:
    # it looks only when it is spoken to, so that it cannot see the moment without any model
    api = start_live(tmp_path / "store.db", poll_ms=10_000, grower=False).api
    api.create("m")
    stream = api.queries.StreamQueries(iter(requests), timeout=60)
    request = query_pb2.StreamQueriesRequest(model="models/m", labeller="ann", credits=1)
    requests.send(request)
    assert next(stream).idle
    replace(api, tools, "m")
    requests.send(request)
    with tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "model m", "another has its name"):
        next(stream)


def test_another_server_replaces_the_model(start_live: Any, tools: Any, tmp_path: Path) -> None:
    """The server does not use its memory of the first model for the second."""
    second = start_live(tmp_path / "store.db").api
    slow = start_live(tmp_path / "store.db", poll_ms=10_000, grower=False)  # it notices nothing by itself
    second.create("m")
    second.push(tools.table_t("m"))
    second.grown("m", 21)
    row = classify_pb2.ClassifyRequest(model="models/m", rows=tools.packed([[0, 0]]))
    assert list(slow.api.classifier.Classify(row, timeout=60).classes) == ["o", "s", "x"]
    catalogue = slow.server.core.catalogue
    first = slow.run(catalogue.schema("m"))
    second.models.DeleteModel(model_pb2.DeleteModelRequest(name="models/m"), timeout=60)
    attributes = [tools.nominal(name, "ab") for name in "UVW"]
    second.create("m", attributes=attributes, **OTHER)
    assert slow.run(catalogue.schema("m")) == first
    rows = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]
    (ack,) = slow.api.push(tools.batch("m", rows, ids=["a", "b", "c", "d"]))
    assert ack.committed_sequence == 4
    (query,) = second.lease("m").queries
    catalogue._schemas["m"] = first  # as if the push had gone elsewhere
    assert slow.api.answer(query, label=values_pb2.Label(class_name="q")).committed_sequence == 5
    second.grown("m", 5)
    answer = slow.api.classifier.Classify(
        classify_pb2.ClassifyRequest(model="models/m", rows=tools.packed(rows)), timeout=60
    )
    assert list(answer.classes) == ["p", "q"]


def test_a_refused_batch_leaves_nothing_in_the_log(
    start_live: Any, tools: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live = start_live(tmp_path / "store.db", grower=False)
    live.api.create("m", budget=0)
    live.api.push(tools.batch("m", [[0, 0]], ids=["taken"]))
    for _ in range(5):
        requests = Requests()  # stays open: the server awaits more when it refuses
        stream = live.api.instances.PushInstances(iter(requests), timeout=60)
        requests.send(tools.batch("m", [[1, 1]], ids=["taken"]))
        with tools.refused(grpc.StatusCode.ALREADY_EXISTS, "taken"):
            next(stream)
        requests.close()
    live.close()
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
