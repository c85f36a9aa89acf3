"""Live servers: one in this process for most tests, others as processes of their own."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from support import command_line
from support.forked import ForkedProcess
from support.http_calls import Http, free_port
from support.published import published_message
from support.status_codes import undeclared

from quercus.server import app
from quercus.server.app import Server
from quercus.server.config import Config
from quercus.server.gate.grpc_limits import grpc_options
from quercus.v1 import (
    classify_pb2_grpc,
    instance_pb2,
    instance_pb2_grpc,
    model_pb2,
    model_pb2_grpc,
    query_pb2,
    query_pb2_grpc,
    tree_pb2,
    tree_pb2_grpc,
    values_pb2,
)

DEADLINE_S = 60.0


class Api:
    """Stubs of one server, and the calls that many tests make."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
        self.models = model_pb2_grpc.ModelServiceStub(self.channel)
        self.instances = instance_pb2_grpc.InstanceServiceStub(self.channel)
        self.queries = query_pb2_grpc.QueryServiceStub(self.channel)
        self.classifier = classify_pb2_grpc.ClassifyServiceStub(self.channel)
        self.trees = tree_pb2_grpc.TreeServiceStub(self.channel)

    def create(self, model: str, **changes: Any) -> model_pb2.Model:
        """A model of X in {a, b, c} and Y in {d, e}, classes o, s, x."""
        fields: dict[str, Any] = {
            "attributes": [nominal("X", "abc"), nominal("Y", "de")],
            "classes": ["o", "s", "x"],
            "alpha": 0.9,
            "budget": 5,
            "strategy": "published",
        }
        specification = published_message(**(fields | changes))
        return self.models.CreateModel(
            model_pb2.CreateModelRequest(model_id=model, specification=specification), timeout=DEADLINE_S
        )

    def get(self, model: str) -> model_pb2.Model:
        return self.models.GetModel(model_pb2.GetModelRequest(name=f"models/{model}"), timeout=DEADLINE_S)

    def push(self, *requests: instance_pb2.PushInstancesRequest) -> list[instance_pb2.PushInstancesResponse]:
        return list(self.instances.PushInstances(iter(requests), timeout=DEADLINE_S))

    def grown(self, model: str, sequence: int) -> tree_pb2.Tree:
        """The first tree that is grown up to `sequence`."""
        watch = self.trees.WatchTree(tree_pb2.WatchTreeRequest(model=f"models/{model}"), timeout=DEADLINE_S)
        try:
            for response in watch:
                if response.tree.as_of >= sequence:
                    return response.tree
        finally:
            watch.cancel()
        raise AssertionError("the watch ended before the tree was grown")

    def lease(
        self, model: str, labeller: str = "ann", count: int = 1, wait_s: int = 30, **fields: Any
    ) -> Any:
        sequence = self.get(model).sequence_committed
        request = query_pb2.LeaseQueriesRequest(
            model=f"models/{model}", labeller=labeller, max_queries=count, min_sequence=sequence, **fields
        )
        request.wait.FromSeconds(wait_s)
        return self.queries.LeaseQueries(request, timeout=DEADLINE_S)

    def answer(self, query: query_pb2.Query, **fields: Any) -> query_pb2.AnswerQueryResponse:
        fields.setdefault("label", values_pb2.Label(class_name="s"))
        request = query_pb2.AnswerQueryRequest(name=query.name, lease_token=query.lease_token, **fields)
        return self.queries.AnswerQuery(request, timeout=DEADLINE_S)

    def refuse(self, query: query_pb2.Query) -> query_pb2.RefuseQueryResponse:
        request = query_pb2.RefuseQueryRequest(name=query.name, lease_token=query.lease_token)
        return self.queries.RefuseQuery(request, timeout=DEADLINE_S)


def nominal(name: str, values: Sequence[str], **fields: Any) -> model_pb2.Attribute:
    return model_pb2.Attribute(name=name, nominal=model_pb2.NominalAttribute(values=values), **fields)


def numeric(name: str, *, missing: Any = None, **fields: Any) -> model_pb2.Attribute:
    return model_pb2.Attribute(name=name, numeric=model_pb2.NumericAttribute(**fields), missing=missing)


def packed(rows: Any) -> values_pb2.Rows:
    return values_pb2.Rows(packed=values_pb2.PackedRows(values=np.asarray(rows, dtype=float).ravel()))


def batch(model: str, rows: Any, **fields: Any) -> instance_pb2.PushInstancesRequest:
    return instance_pb2.PushInstancesRequest(model=f"models/{model}", rows=packed(rows), **fields)


# theory §3.7: X, Y as indices, then the contour over (o, s, x).
TABLE_T = np.array(
    [
        *[(0, 1, .8, .3, .3), (0, 1, .2, 1, .7), (0, 1, .1, .1, 1), (0, 1, .3, 0, 1), (1, 1, .7, 1, .7)],
        *[(1, 1, .5, 1, 0), (1, 1, .7, 1, .3), (1, 1, 1, 1, 1), (2, 1, 0, 1, 0), (2, 1, 0, 1, 0)],
        *[(2, 1, 0, 1, 0), (2, 1, .4, 1, 0), (0, 0, .2, .2, 1), (0, 0, 0, 0, 1), (0, 0, .3, 0, 1)],
        *[(0, 0, 0, 0, 1), (1, 0, .6, .6, 1), (2, 0, 1, 0, 0), (2, 0, 1, .2, 0), (2, 0, .5, .8, .4)],
        (2, 0, .7, .3, 0),
    ]
)  # fmt: skip
TRUTH_T = "xsxxssssssssxxxxxooso"


def table_t(model: str, **fields: Any) -> instance_pb2.PushInstancesRequest:
    fields.setdefault("ids", [f"row{i}" for i in range(1, len(TABLE_T) + 1)])
    contours = values_pb2.PackedContours(plausibilities=TABLE_T[:, 2:].ravel())
    return batch(model, TABLE_T[:, :2], labels=values_pb2.Labels(contours=contours), **fields)


def violation(error: grpc.RpcError) -> tuple[str, str]:
    """Field and description of the one field violation an error carries."""
    status = rpc_status.from_call(error)
    assert status is not None, error
    detail = error_details_pb2.BadRequest()
    assert status.details[0].Unpack(detail)
    (found,) = detail.field_violations
    return found.field, found.description


class Live:
    """A server in this process, its event loop in a thread."""

    def __init__(self, config: Config) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        try:
            self.server: Server = self.run(self._start(config))
        except BaseException:
            self._end_loop()
            raise
        self.api = Api(self.server.address)
        self.http = Http(config.http_port)

    @staticmethod
    async def _start(config: Config) -> Server:
        server = Server(config)
        await server.start()
        return server

    def run(self, coroutine: Any) -> Any:
        future: Future[Any] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return future.result(DEADLINE_S)

    def stop(self) -> None:
        self.run(self.server.stop())

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self.api.channel.close()
        if not self.server.core.stopping.is_set():
            self.stop()
        self._end_loop()
        assert not undeclared(self.server._metrics), "statuses of proto/quercus/v1/*.proto"

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Child:
    """A server in a process of its own."""

    def __init__(self, store: Path, **flags: Any) -> None:
        self.process = ForkedProcess(command_line.serve, {"store": str(store), "port": 0} | flags)
        line = self.process.readline(DEADLINE_S)
        assert line.startswith("listening on "), self.finish()
        self.api = Api(line.removeprefix("listening on ").strip())

    def finish(self, number: int | None = None) -> tuple[int | None, str]:
        """Send a signal and wait; exit code and what was logged."""
        if number is not None:
            self.process.send_signal(number)
        _, logged = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, logged

    def close(self) -> None:
        if hasattr(self, "api"):
            self.api.channel.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE_S)


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One server for all tests that use different models; idle for most of the run, it looks for changes less often."""
    store = str(tmp_path_factory.mktemp("live") / "store.db")
    server = Live(Config(store=store, port=0, poll_ms=50, http_port=free_port()))
    yield server
    server.close()


@pytest.fixture(scope="session")
def api(live: Live) -> Api:
    return live.api


def _starting() -> Iterator[Callable[..., Live]]:
    with ExitStack() as stack:

        def start(store: Path, **fields: Any) -> Live:
            server = Live(Config(store=str(store), **({"port": 0} | fields)))
            stack.callback(server.close)
            return server

        yield start


@pytest.fixture
def start_live() -> Iterator[Callable[..., Live]]:
    """Start servers in this process that end with the test."""
    yield from _starting()


@pytest.fixture
def set_grpc_option(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Give an option of gRPC another value in the servers that this test starts in this process."""
    changed: dict[str, int] = {}

    def options(*bounds: int, **more: bool) -> list[tuple[str, int]]:
        return list((dict(grpc_options(*bounds, **more)) | changed).items())

    monkeypatch.setattr(app, "grpc_options", options)
    return changed.__setitem__


@pytest.fixture(scope="module")
def start_for_all() -> Iterator[Callable[..., Live]]:
    """Start servers in this process that end with the tests of the module."""
    yield from _starting()


@pytest.fixture
def start_child() -> Iterator[Callable[..., Child]]:
    """Start servers as processes that end with the test."""
    with ExitStack() as stack:

        def start(store: Path, **flags: Any) -> Child:
            child = Child(store, **flags)
            stack.callback(child.close)
            return child

        yield start


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@contextmanager
def refused(code: grpc.StatusCode, *words: str, field: str | None = None) -> Iterator[None]:
    """The block fails with `code`, a message with all `words`, and a violation of `field`."""
    with pytest.raises(grpc.RpcError) as caught:
        yield
    error = caught.value
    assert error.code() is code, error
    for word in words:
        assert word in error.details(), error.details()
    if field is not None:
        assert violation(error)[0] == field


class Tools:
    """The helpers above, for test modules (which cannot import a conftest)."""

    nominal, numeric, packed, batch = (
        staticmethod(nominal),
        staticmethod(numeric),
        staticmethod(packed),
        staticmethod(batch),
    )
    table_t, refused, alive, violation = (
        staticmethod(table_t),
        staticmethod(refused),
        staticmethod(alive),
        staticmethod(violation),
    )
    truth_t, rows_t, api = TRUTH_T, TABLE_T, Api
    signals = signal
    kill = staticmethod(os.kill)


@pytest.fixture(scope="session")
def tools() -> Tools:
    return Tools()
