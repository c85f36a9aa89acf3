"""Several processes that serve one port: to callers they are one server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from integration.client.serving import QUERCUS, Serving
from prometheus_client.parser import text_string_to_metric_families
from support.papers import Papers
from support.processes import children, resident_bytes
from support.waiting import until
from support.workers import (
    channel_of_each,
    client_of_each,
    http_of_each,
    kill_worker,
    workers_of,
)

from quercus.client import (
    AlreadyExists,
    Client,
    Nominal,
    NotFound,
    Numeric,
    PermissionDenied,
    Specification,
    Status,
    Unauthenticated,
    Unavailable,
)
from quercus.server.gate import access
from quercus.server.wire.limits import INLINE_BYTES
from quercus.storage import Store, file_url
from quercus.v1 import (
    classify_pb2,
    classify_pb2_grpc,
    instance_pb2,
    instance_pb2_grpc,
    model_pb2,
    model_pb2_grpc,
    query_pb2,
    query_pb2_grpc,
    tree_pb2,
    tree_pb2_grpc,
)

SPECIFICATION = Specification([Numeric("x"), Nominal("kind", ("plain",))], ("a", "b"), budget=100)
ROWS = [[1.0, "plain"], [5.0, "plain"]] * 20
LABELS = ["a", "b"] * 20
WAIT_S = 30.0


@pytest.fixture(scope="module")
def http_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, http_port: int) -> Iterator[Serving]:
    settings = {"max_streams": 4, "max_calls": 12, "http_port": http_port}
    started = Serving(tmp_path_factory.mktemp("workers"), workers=2, **settings)
    yield started
    started.kill()


@pytest.fixture
def pair(serving: Serving) -> Iterator[tuple[Client, Client]]:
    """A client of the keeper, and one of the other worker."""
    with ExitStack() as closing:
        clients = client_of_each(serving, closing)
        yield clients[0], clients[1]


@pytest.fixture
def channels(serving: Serving) -> Iterator[tuple[grpc.Channel, grpc.Channel]]:
    """A channel to the keeper, and one to the other worker."""
    with ExitStack() as closing:
        found = channel_of_each(serving, closing)
        yield found[0], found[1]


def test_each_worker_writes_and_reads_what_the_other_has_acknowledged(pair: tuple[Client, Client]) -> None:
    for turn, (one, other) in enumerate((pair, pair[::-1])):
        name = f"turns-{turn}"
        one.create_model(name, SPECIFICATION)
        assert other.get_model(name).name == name
        assert other.push(name, ROWS, LABELS).stored == 40
        one.wait_grown(name)
        assert [each.classify(name, [[5.0, "plain"]]).labels[0] for each in pair] == ["b", "b"]
        with pytest.raises(AlreadyExists, match=name):
            other.create_model(name, SPECIFICATION)
        for k in range(10):  # a name that another worker has learned a moment ago is known
            one.push(name, [[1.0, f"new {k}"]])
            assert other.classify(name, [[1.0, f"new {k}"]]).unseen == ()
        one.delete_model(name)
        with pytest.raises(NotFound):
            other.classify(name, [[5.0, "plain"]])


def test_queries_are_leased_through_one_worker_and_answered_through_another(
    pair: tuple[Client, Client],
) -> None:
    one, other = pair
    one.create_model("asking", SPECIFICATION)
    one.push("asking", ROWS)
    leased = []
    while len(leased) < 4:
        lease = (one, other)[len(leased) % 2].lease("asking", "ann", wait_s=WAIT_S)
        (query,) = lease.queries
        report = (other, one)[len(leased) % 2].answer(query, "a")
        leased.append(report.committed_sequence)
    assert leased == sorted(set(leased))
    with other.stream_queries("asking", "bob", prefetch=1) as stream:
        query = next(iter(stream))
        stream.answer(query, "b")
    assert len(list(one.answers("asking"))) == 5


def test_errors_and_request_ids_are_those_of_the_keeper(channels: tuple[grpc.Channel, grpc.Channel]) -> None:
    seen = set()
    for channel in channels:
        stub = model_pb2_grpc.ModelServiceStub(channel)
        request = model_pb2.DeleteModelRequest(name="models/none")
        with pytest.raises(grpc.RpcError) as caught:
            stub.DeleteModel(request, metadata=[("x-request-id", "mine")], timeout=WAIT_S)
        info = error_details_pb2.ResourceInfo()
        assert rpc_status.from_call(caught.value).details[0].Unpack(info)
        trailing = [value for key, value in caught.value.trailing_metadata() if key == "x-request-id"]
        seen.add((caught.value.code(), caught.value.details(), info.resource_name, *trailing))
    assert len(seen) == 1
    assert seen.pop()[0::2] == (grpc.StatusCode.NOT_FOUND, "none")


def test_large_messages_and_streams_pass_too(
    pair: tuple[Client, Client], channels: tuple[grpc.Channel, grpc.Channel]
) -> None:
    pair[0].create_model("large", SPECIFICATION)
    for number, channel in enumerate(channels):
        request = instance_pb2.PushBatchRequest(model="models/large", batch_id=f"batch-{number}")
        request.rows.packed.values.extend([1.0, 0.0] * 5_000)
        assert request.ByteSize() > INLINE_BYTES  # smaller ones take another way
        stub = instance_pb2_grpc.InstanceServiceStub(channel)
        assert stub.PushBatch(request, timeout=WAIT_S).rows_stored == 5_000
        request.rows.packed.values.append(1.0)
        with pytest.raises(grpc.RpcError) as caught:
            stub.PushBatch(request, timeout=WAIT_S)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        sent = [
            instance_pb2.PushInstancesRequest(
                model="models/large", batch_id=f"{number}-{k}", rows=request.rows
            )
            for k in range(3)
        ]
        for each in sent:
            each.rows.packed.values.pop()
        stored = [each.rows_stored for each in stub.PushInstances(iter(sent), timeout=WAIT_S)]
        assert stored == [5_000] * 3
    assert pair[1].get_model("large").instance_count == 40_000


def test_calls_by_http_are_those_of_one_server_through_either_worker(
    serving: Serving, http_port: int, pair: tuple[Client, Client]
) -> None:
    with ExitStack() as closing:
        connections = http_of_each(serving, http_port, closing)

        def ask(worker: int, method: str, body: object, **headers: str) -> tuple[int, dict[str, Any]]:
            sent = {"content-type": "application/json"} | headers
            connections[worker].request("POST", f"/quercus.v1.{method}", json.dumps(body), sent)
            response = connections[worker].getresponse()
            return response.status, json.loads(response.read())

        attributes = [{"name": "x", "numeric": {}}]
        for worker in connections:
            name = f"http-{worker}"
            made = {"modelId": name, "specification": {"classes": ["a", "b"], "attributes": attributes}}
            assert ask(worker, "ModelService/CreateModel", made)[0] == 200
            assert ask(1 - worker, "ModelService/GetModel", {"name": f"models/{name}"})[0] == 200
            large = {"model": f"models/{name}", "rows": {"packed": {"values": [1.5] * 8_000}}}
            assert len(json.dumps(large)) > INLINE_BYTES  # smaller ones take another way
            small = {"model": f"models/{name}", "rows": {"packed": {"values": [1.5]}}}
            stored = [
                ask(worker, "InstanceService/PushBatch", each)[1]["rowsStored"] for each in (large, small)
            ]
            assert stored == ["8000", "1"]
        wrong = [
            ask(each, "ModelService/CreateModel", {"modelid": 1}, **{"x-request-id": "w"}) for each in (0, 1)
        ]
        assert wrong[0] == wrong[1]
        assert wrong[0][1]["message"].startswith(
            "modelid: is not a field of CreateModelRequest, which has modelId"
        )
        gone = [ask(each, "ModelService/DeleteModel", {"name": "models/none"}) for each in (0, 1)]
        assert gone[0] == gone[1]
        assert (gone[0][0], gone[0][1]["details"][0]["debug"]["resourceName"]) == (404, "none")
        pages = []
        for connection in connections.values():
            connection.request("GET", "/readyz")
            assert (
                connection.getresponse().read()
                == b"store: well\ngrower: well\nwrites: well\nstopping: well\n"
            )
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
            pages.append([line for line in text.splitlines() if 'grpc_method="DeleteModel"' in line])
        assert pages[0] == pages[1] != []


def test_a_deadline_and_a_caller_that_leaves_end_the_call_at_the_keeper(
    pair: tuple[Client, Client], channels: tuple[grpc.Channel, grpc.Channel]
) -> None:
    pair[0].create_model("waiting", SPECIFICATION)
    stub = query_pb2_grpc.QueryServiceStub(channels[1])
    request = query_pb2.LeaseQueriesRequest(model="models/waiting", labeller="ann")
    request.wait.FromSeconds(60)
    with pytest.raises(grpc.RpcError) as caught:
        stub.LeaseQueries(request, timeout=0.5)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    leaving = stub.LeaseQueries.future(request)
    until(lambda: pair[0].status().calls == 2)
    leaving.cancel()
    for client in pair:
        until(lambda client=client: client.status().calls == 1)
    pair[0].push("waiting", ROWS[:2])
    (query,) = pair[0].lease("waiting", "bob", wait_s=WAIT_S).queries[:1]  # nobody who has left was given it
    assert query.name


def test_replays_are_few_at_once_in_all_workers_together(
    pair: tuple[Client, Client], channels: tuple[grpc.Channel, grpc.Channel]
) -> None:
    pair[0].create_model("replayed", SPECIFICATION)
    pair[0].push("replayed", ROWS, LABELS, [f"row-{k}" for k in range(len(ROWS))])
    pair[0].wait_grown("replayed")
    request = tree_pb2.ExplainRowRequest(name="models/replayed/instances/row-0")
    stubs = [tree_pb2_grpc.TreeServiceStub(channel) for channel in channels]
    calls = [stub.ExplainRow.future(request, timeout=WAIT_S) for stub in stubs * 2]
    refused = [call.exception() for call in calls if call.exception() is not None]
    assert [error.code() for error in refused] == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 2
    assert "2 replays are running" in refused[0].details()


def test_limits_hold_for_all_workers_together(
    pair: tuple[Client, Client], channels: tuple[grpc.Channel, grpc.Channel]
) -> None:
    pair[0].create_model("watched", SPECIFICATION)
    pair[0].push("watched", ROWS, LABELS)
    pair[0].wait_grown("watched")
    request = tree_pb2.WatchTreeRequest(model="models/watched")
    watches = []
    for channel in (*channels, *channels):
        watches.append(tree_pb2_grpc.TreeServiceStub(channel).WatchTree(request, timeout=WAIT_S))
        next(watches[-1])
    for channel in channels:
        with pytest.raises(grpc.RpcError, match="has 4 streams open, at most 4 are allowed"):
            next(tree_pb2_grpc.TreeServiceStub(channel).WatchTree(request, timeout=WAIT_S))
    pair[0].create_model("empty", SPECIFICATION)
    waiting = query_pb2.LeaseQueriesRequest(model="models/empty", labeller="ann")
    waiting.wait.FromSeconds(60)
    leases = [query_pb2_grpc.QueryServiceStub(channel).LeaseQueries for channel in (*channels * 4,)]
    calls = [lease.future(waiting) for lease in leases]
    get = model_pb2.GetModelRequest(name="models/empty")

    def is_full() -> bool:
        for at, call in enumerate(calls):
            if call.done():  # refused, since the calls before had not all ended
                calls[at] = leases[at].future(waiting)
        for channel in channels:
            try:
                model_pb2_grpc.ModelServiceStub(channel).GetModel(get, timeout=WAIT_S)
            except grpc.RpcError as error:
                if "max_calls: 12 calls are under way" not in error.details():
                    raise
            else:
                return False
        return True

    until(is_full)
    for call in (*calls, *watches):
        call.cancel()
    calls.clear()
    until(lambda: not is_full())


@pytest.mark.slow
def test_metrics_and_status_are_those_of_all_workers_and_outlive_them(
    serving: Serving, pair: tuple[Client, Client], http_port: int
) -> None:
    before = _listed(http_port)
    for client in pair:
        for _ in range(5):
            list(client.models())
    assert _listed(http_port) - before == 10
    workers = workers_of(serving.process.pid)
    assert pair[1].status().grower_pid in children(workers[0])
    assert pair[1].status().grower == "running"
    # once the other has told it
    until(lambda: pair[0].status().memory_bytes > 1.5 * resident_bytes(workers[0]))
    kill_worker(serving, 1)
    assert _listed(http_port) - before == 10
    kill_worker(serving, 0)
    until(lambda: _page_is_there(http_port))
    assert _listed(http_port) - before == 10


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_calls_of_others_go_on(serving: Serving) -> None:
    with ExitStack() as closing:
        channels = channel_of_each(serving, closing)
        keeper, other = (client_of_each(serving, closing, outage_s=WAIT_S)[number] for number in (0, 1))
        keeper.create_model("killed", SPECIFICATION)
        keeper.push("killed", ROWS, LABELS)
        keeper.wait_grown("killed")
        watch = tree_pb2_grpc.TreeServiceStub(channels[0]).WatchTree(
            tree_pb2.WatchTreeRequest(model="models/killed"), timeout=WAIT_S
        )
        next(watch)
        kill_worker(serving, 1)
        assert other.classify("killed", [[5.0, "plain"]]).labels == ["b"]
        assert other.push("killed", [[5.0, "plain"]], ["b"]).stored == 1
        assert next(watch).tree.version  # of the tree that the push made

        channels |= channel_of_each(serving, closing)
        stop, counts, wrong = threading.Event(), [0], []

        def classify() -> None:
            stub = classify_pb2_grpc.ClassifyServiceStub(channels[1])
            request = classify_pb2.ClassifyRequest(model="models/killed")
            request.rows.packed.values.extend([5.0, 0.0])
            while not stop.is_set():
                try:
                    stub.Classify(request, timeout=WAIT_S)
                    counts[0] += 1
                except grpc.RpcError as error:
                    wrong.append(error)
                    return

        thread = threading.Thread(target=classify)
        thread.start()
        health = health_pb2_grpc.HealthStub(channels[1])
        asked = health_pb2.HealthCheckRequest(service="quercus.v1.Writes")
        until(lambda: health.Check(asked).status == health_pb2.HealthCheckResponse.SERVING)
        os.kill(workers_of(serving.process.pid)[0], signal.SIGKILL)
        began = time.monotonic()
        assert other.push("killed", [[1.0, "plain"]], ["a"]).stored == 1  # it waits for the next keeper
        print(f"written {time.monotonic() - began:.2f} s after the writer was killed")
        assert keeper.get_model("killed").sequence_committed == 42  # nothing that was acknowledged is lost
        until(lambda: health.Check(asked).status == health_pb2.HealthCheckResponse.SERVING)
        stop.set()
        thread.join()
        assert (wrong, counts[0] > 10) == ([], True)


@pytest.mark.slow
def test_certificates_tokens_audit_and_log_level_reach_all_workers(tmp_path: Path) -> None:
    ours, theirs = Papers(tmp_path, "ours"), Papers(tmp_path, "theirs")
    with Store.open(file_url(tmp_path / "quercus.db")) as store, ExitStack() as closing:
        token, _ = access.issue_token(store.access, "op", ["operator"])
        log = closing.enter_context((tmp_path / "log").open("w"))
        serving = Serving(tmp_path, workers=2, stderr=log, access="tokens", grower=False, **ours.server)
        closing.callback(serving.kill)
        trusted = {"scheme": "tls://", "ca": ours.ca, "token": token}
        keeper, other = client_of_each(serving, closing, **trusted).values()

        late, _ = access.issue_token(store.access, "late", ["reader"])  # made while the server runs
        for client in client_of_each(serving, closing, **(trusted | {"token": late})).values():
            with pytest.raises(PermissionDenied, match="late has the role reader; this needs"):
                client.create_model("m", SPECIFICATION)
        other.create_model("m", SPECIFICATION)
        forged = token[:-8] + "00000000"
        for client in client_of_each(serving, closing, **(trusted | {"token": forged})).values():
            with pytest.raises(Unauthenticated, match="not known"):
                client.delete_model("m")
        audit = [
            (each.who.partition(" at ")[0], each.action, each.outcome)
            for each in store.access.newest_audit(10)
        ]
        assert set(audit) == {
            ("late", "CreateModel", "PERMISSION_DENIED"),
            ("op", "CreateModel", "OK"),
            ("a stranger", "DeleteModel", "UNAUTHENTICATED"),
        }
        assert audit.count(("a stranger", "DeleteModel", "UNAUTHENTICATED")) == 2  # refused by each worker

        assert keeper.set_log_level("debug") == "info"
        until(lambda: [*other.models()] and "ListModels OK" in (tmp_path / "log").read_text())

        began = other.status().uptime_s
        kill_worker(serving, 0)
        with Client(f"tls://{serving.address}", ca=ours.ca, token=token) as client:
            client.wait_ready(WAIT_S)
            until(lambda: _status_of(client) is not None)
            assert (client.status().log_level, client.status().uptime_s > began) == ("debug", True)

        for mine, new in ((ours.cert, theirs.cert), (ours.key, theirs.key)):
            mine.write_bytes(new.read_bytes())
        serving.process.send_signal(signal.SIGHUP)
        until(lambda: (tmp_path / "log").read_text().count("certificates are read again") == 2)
        client_of_each(serving, closing, "tls://", ca=theirs.ca, token=token)
        assert serving.stop() == 0


@pytest.mark.release
def test_workers_on_postgresql_write_by_themselves(postgres_url: str, tmp_path: Path) -> None:
    serving = Serving(tmp_path, store=postgres_url, workers=2)
    with ExitStack() as closing:
        closing.callback(serving.kill)
        keeper, other = client_of_each(serving, closing, outage_s=0).values()
        for turn, (one, another) in enumerate(((keeper, other), (other, keeper))):
            one.create_model(f"m{turn}", SPECIFICATION)
            assert another.push(f"m{turn}", ROWS, LABELS).stored == 40
            one.wait_grown(f"m{turn}")
            assert another.classify(f"m{turn}", [[5.0, "plain"]]).labels == ["b"]
        assert other.status().grower == "running"
        kill_worker(serving, 0)
        assert other.push("m0", [[5.0, "plain"]], ["b"]).stored == 1  # it waits for nobody
        assert other.lease("m1", "ann").idle
        keeper_of_now = client_of_each(serving, closing)[0]
        keeper_of_now.delete_model("m0")
        with pytest.raises(NotFound):
            other.classify("m0", [[5.0, "plain"]])
        assert serving.stop() == 0


def _status_of(client: Client) -> Status | None:
    try:
        return client.status()
    except Unavailable:
        return None


def _listed(port: int) -> float:
    """Number of calls of ListModels that the page of metrics tells."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=WAIT_S) as page:
        families = list(text_string_to_metric_families(page.read().decode()))
    return sum(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "grpc_server_handled_total" and sample.labels["grpc_method"] == "ListModels"
    )


def _page_is_there(port: int) -> bool:
    try:
        _listed(port)
    except OSError:
        return False
    return True


def _folder_of(worker: int) -> Path:
    """Folder of the sockets of a worker's server, from the sockets at which the system says it listens."""
    lines = Path(f"/proc/{worker}/net/unix").read_text().splitlines()
    inodes = {os.readlink(entry) for entry in Path(f"/proc/{worker}/fd").iterdir() if entry.is_symlink()}
    paths = [
        fields[7] for fields in map(str.split, lines) if len(fields) > 7 and f"socket:[{fields[6]}]" in inodes
    ]
    return Path(paths[0]).parent


@pytest.mark.release
def test_what_stands_in_the_way_of_a_start_is_told_in_words(serving: Serving, tmp_path: Path) -> None:
    for flags, said in (
        (
            ("--port", str(serving.port), "--store", str(tmp_path / "other.db")),
            "the port is in use by another program",
        ),
        (("--port", "0", "--store", serving.store), "is served by process"),
        (("--port", "0", "--store", str(tmp_path / "missing" / "a.db")), "cannot use the store"),
    ):
        refused = subprocess.run(
            [QUERCUS, "serve", "--workers", "2", *flags],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert (refused.returncode, said in refused.stderr, "Traceback" in refused.stderr) == (1, True, False)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.release)])
def test_no_process_outlives_the_server(tmp_path: Path, how: signal.Signals) -> None:
    """Nor when the parent is killed; the next server takes port and store."""
    serving = Serving(tmp_path, workers=2)
    workers = list(workers_of(serving.process.pid).values())
    growers = [grower for pid in workers for grower in children(pid)]
    assert (len(workers), len(growers)) == (2, 1)
    folder = _folder_of(workers[0])
    with ExitStack() as closing:
        client = client_of_each(serving, closing)[1]
        client.create_model("kept", SPECIFICATION)
        if how is signal.SIGKILL:
            serving.kill()
        else:
            request = query_pb2.LeaseQueriesRequest(model="models/kept", labeller="ann")
            request.wait.FromSeconds(60)
            waiting = [
                query_pb2_grpc.QueryServiceStub(channel).LeaseQueries.future(request, timeout=WAIT_S)
                for channel in channel_of_each(serving, closing).values()
            ]
            until(lambda: client.status().calls == 3)
            assert serving.stop() == 0
            assert [len(call.result().queries) for call in waiting] == [
                0,
                0,
            ]  # they end in order, and at once
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in (*workers, *growers)))
    assert not folder.exists()
    again = Serving(tmp_path, serving.port)
    with Client(again.address) as client:
        assert client.get_model("kept").name == "kept"
    assert again.stop() == 0
