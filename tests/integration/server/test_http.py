"""The HTTP port: calls as JSON through the same gate as gRPC's, streams as lines, refusals in words."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.message_factory import GetMessageClass
from grpc_status import rpc_status
from support.http_calls import Http, free_port
from support.waiting import until

from quercus.client import Client
from quercus.server.gate import access
from quercus.server.gate.rpcs import ROLES, RPCS
from quercus.server.http.connect import HTTP_METHODS, HTTP_STATUS, code_word
from quercus.v1 import instance_pb2, model_pb2, tree_pb2

CREATE = {
    "modelId": "wine",
    "specification": {
        "classes": ["red", "white"],
        "attributes": [
            {"name": "alcohol", "numeric": {}},
            {"name": "colour", "nominal": {"values": ["r", "w"]}},
        ],
        "budget": 5,
    },
}
WAIT_S = 30.0


@pytest.fixture(scope="module")
def served(start_for_all: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Http]:
    """One server without tokens or grower, for all tests that use different models."""
    port = free_port()
    live = start_for_all(tmp_path_factory.mktemp("http") / "store.db", http_port=port, grower=False)
    return live, Http(port)


def status_of(error: grpc.RpcError) -> tuple[str, str, list[Any]]:
    status = rpc_status.from_call(error)
    details = [json_format.MessageToDict(each) for each in status.details] if status else []
    return code_word(error.code()), error.details(), [(d.pop("@type").rpartition("/")[2], d) for d in details]


# Unary calls


def test_a_call_as_json_is_that_of_grpc(served: tuple[Any, Http]) -> None:
    live, http = served
    made = http.call("ModelService/CreateModel", CREATE)
    assert (made.status, made.headers["content-type"]) == (200, "application/json")
    by_grpc = json_format.MessageToDict(live.api.get("wine"))
    get = {"name": "models/wine"}
    by_json = http.call("ModelService/GetModel", get, content_type="application/json; charset=utf-8")
    address = "/quercus.v1.ModelService/GetModel?encoding=json&connect=v1&message=" + quote(json.dumps(get))
    binary = model_pb2.GetModelRequest(name="models/wine").SerializeToString()
    by_proto = http.ask("POST", "/quercus.v1.ModelService/GetModel", binary, content_type="application/proto")
    assert by_proto.headers["content-type"] == "application/proto"
    found = json_format.MessageToDict(model_pb2.Model.FromString(by_proto.body))
    for each in (by_json.json, http.get(address).json, found):
        each.pop("lag", None)
        assert each == {key: value for key, value in by_grpc.items() if key != "lag"}
    text = "?encoding=proto&base64=1&message=Cgttb2RlbHMvd2luZQ"  # models/wine
    assert http.get("/quercus.v1.ModelService/GetModel" + text).body[:5] == by_proto.body[:5]
    assert http.ask("HEAD", address).status == 200


@pytest.mark.parametrize(
    ("method", "request_json"),
    [
        ("ModelService/GetModel", {"name": "models/none"}),
        ("ModelService/GetModel", {"name": "wine"}),
        ("ModelService/CreateModel", {"modelId": "taken", "specification": {"classes": ["a"]}}),
        ("ModelService/CreateModel", {"modelId": "a b"}),
        ("InstanceService/PushBatch", {"model": "models/none"}),
        ("QueryService/LeaseQueries", {"model": "models/none", "labeller": "ann", "maxQueries": 1000}),
        ("ClassifyService/Classify", {"model": "models/none", "rows": {"packed": {"values": ["NaN"]}}}),
        ("TreeService/GetTree", {"name": "models/none/trees/1"}),
        ("AdminService/SetLogLevel", {"level": "loud"}),
    ],
)
def test_an_error_has_the_words_and_details_of_grpc(
    served: tuple[Any, Http], method: str, request_json: dict[str, Any]
) -> None:
    live, http = served
    said = http.call(method, request_json)
    path = f"/quercus.v1.{method}"
    description = HTTP_METHODS[path].descriptor
    request = json_format.ParseDict(request_json, GetMessageClass(description.input_type)())
    stub = live.api.channel.unary_unary(path, request_serializer=lambda each: each.SerializeToString())
    with pytest.raises(grpc.RpcError) as caught:
        stub(request, timeout=WAIT_S)
    code, message, details = status_of(caught.value)
    assert said.error == (code, message)
    assert said.status == HTTP_STATUS[caught.value.code()]
    found = [(each["type"], each["debug"]) for each in said.json.get("details", [])]
    assert found == details
    assert len(said.headers["x-request-id"]) == 16


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ('{"modelId": "a", "specfication": {}}', "specfication", "is not a field of CreateModelRequest, wh"),
        ('{"specification": {"classes": [1]}}', "specification.classes[0]", "is 1, must be a text"),
        ('{"specification": {"budget": -1}}', "specification.budget", "is -1, must be a whole number in [0, 429"),
        (r'{"\ud800": 1}', r"\ud800", "is not a field of CreateModelRequest, which has"),
        (r'{"modelId": "\ud800"}', "modelId", r"is '\ud800', must be a text without half of a surrogate pair"),
        ('{"specification": {"attributes": [{"nme": 1}]}}', "specification.attributes[0].nme", "is not a field of"),
        ('{"specification": [{"budget": 1}]}', "specification", "must be a JSON object"),
        ('{"specification": 5}', "specification", "must be a JSON object"),
        ('{"modelId": "a", "modelId": "b"}', "request", "has a duplicate key 'modelId' in an object"),
        ("[]", "request", "a JSON object"),
        ("", "request", "a JSON object"),
        ("{", "request", "cannot be read"),
        ('{"a":' + "[" * 200_000, "request", "cannot be read"),
        ("{" + "[]," * 400_000, "request", "cannot be read"),
        ("{" + "[]," * 600_000, "request", "at most 1,000,000 are allowed"),
    ],
)  # fmt: skip
def test_wrong_json_is_refused_with_its_field(
    served: tuple[Any, Http], text: str, field: str, said: str
) -> None:
    found = served[1].call("ModelService/CreateModel", text)
    assert (found.status, found.json["code"]) == (400, "invalid_argument")
    (violation,) = found.json["details"][0]["debug"]["fieldViolations"]
    assert violation["field"] == field
    assert said in violation["description"]
    assert found.json["message"] == f"{field}: {violation['description']}"


@pytest.mark.parametrize(
    ("verb", "path", "headers", "status", "said"),
    [
        ("POST", "ModelService/GetModel", {"content_type": "text/plain"}, 415, "is 'text/plain', must be"),
        ("POST", "ModelService/GetModel", {"content_type": "application/json; charset=latin1"}, 415, "content-type"),
        ("POST", "ModelService/GetModel", {"content_encoding": "gzip"}, 415, "only identity is read"),
        ("POST", "ModelService/GetModel", {"connect_protocol_version": "2"}, 400, "must be 1"),
        ("POST", "ModelService/GetModel", {"connect_timeout_ms": "soon"}, 400, "a whole number of milliseconds"),
        ("POST", "ModelService/GetModel", {"connect_timeout_ms": "12345678901"}, 400, "at most 10 digits"),
        ("GET", "ModelService/CreateModel?message={}", {}, 405, "not called by GET, but by POST"),
        ("DELETE", "ModelService/GetModel", {}, 405, "but by GET or HEAD or POST"),
        ("GET", "ModelService/GetModel?mesage={}", {}, 400, "mesage: is not a parameter of a call, which has base64"),
        ("GET", "ModelService/GetModel?encoding=xml", {}, 400, "must be json or proto"),
        ("GET", "ModelService/GetModel?base64=1&message=%21", {}, 400, "is not base64"),
        ("GET", "ModelService/GetModel?encoding=proto&message=a", {}, 400, "base64=1"),
        ("POST", "InstanceService/PushInstances", {}, 501, "takes a stream of messages: call it by gRPC"),
        ("POST", "QueryService/StreamQueries", {}, 501, "takes a stream of messages: call it by gRPC"),
        ("POST", "ModelService/Nothing", {}, 404, "there is nothing at /quercus.v1.ModelService/Nothing"),
        ("GET", "../", {}, 404, "there is nothing at"),
    ],
)  # fmt: skip
def test_what_is_no_call_is_refused_in_words(
    served: tuple[Any, Http], verb: str, path: str, headers: dict[str, str], status: int, said: str
) -> None:
    headers = {"content_type": "application/json"} | headers
    found = served[1].ask(verb, f"/quercus.v1.{path}", b"{}" if verb == "POST" else None, **headers)
    assert found.status == status
    assert said in found.json["message"]
    assert found.headers["x-content-type-options"] == "nosniff"
    if status == 405:
        assert found.headers["allow"] in {"POST", "GET, HEAD, POST"}


def test_bodies_are_bounded_as_messages_are(start_live: Callable[..., Any], tmp_path: Path) -> None:
    port = free_port()
    start_live(tmp_path / "store.db", http_port=port, grower=False, max_message_bytes=1024)
    http = Http(port)
    assert http.call("ModelService/GetModel", " " * 1000 + '{"name": "models/a"}').status == 404
    for large in (
        http.call("ModelService/GetModel", " " * 1024 + "{}"),
        http.ask(
            "POST",
            "/quercus.v1.ModelService/GetModel",
            (b" " * 100 for _ in range(20)),
            content_type="application/json",
        ),  # type: ignore[arg-type]
    ):
        assert (large.status, large.json["code"]) == (413, "resource_exhausted")
        assert "max_message_bytes: the body has more than 1,024 bytes" in large.json["message"]


def test_a_deadline_and_a_client_that_leaves_end_a_call(served: tuple[Any, Http]) -> None:
    live, http = served
    live.api.create("waiting")
    ask = {"model": "models/waiting", "labeller": "ann", "wait": "60s"}
    late = http.call("QueryService/LeaseQueries", ask, connect_timeout_ms="200")
    assert (late.status, late.json["code"]) == (504, "deadline_exceeded")
    with Client(live.server.address) as client:
        with closing(http.connect()) as connection:
            connection.request(
                "POST",
                "/quercus.v1.QueryService/LeaseQueries",
                json.dumps(ask),
                {"content-type": "application/json"},
            )
            until(lambda: client.status().calls == 2)
        until(lambda: client.status().calls == 1)


def test_a_request_id_comes_back_and_is_in_the_metrics_of_grpc(served: tuple[Any, Http]) -> None:
    http = served[1]
    said = http.call("ModelService/ListModels", {}, x_request_id="mine.1")
    assert said.headers["x-request-id"] == "mine.1"
    page = http.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=")
    assert 'grpc_server_handled_total{grpc_code="OK",grpc_method="ListModels"' in page.body.decode()


# Streams


def test_a_stream_of_responses_is_a_message_a_line(served: tuple[Any, Http]) -> None:
    live, http = served
    live.api.create("events")
    with closing(http.connect()) as connection:
        connection.request(
            "POST",
            "/quercus.v1.InstanceService/WatchEvents",
            '{"model": "models/events"}',
            {"content-type": "application/json"},
        )
        live.api.push(instance_pb2.PushInstancesRequest(model="models/events", rows=rows(2)))
        response = connection.getresponse()
        assert response.getheader("content-type") == "application/x-ndjson"
        seen: list[Any] = []
        while len(seen) < 2:
            seen += [
                each for each in json.loads(response.readline()).get("events", []) if "instance" in str(each)
            ]
        live.api.models.DeleteModel(model_pb2.DeleteModelRequest(name="models/events"))
        last = {}
        while line := response.readline():
            last = json.loads(line)
    assert (last["error"]["code"], last["error"]["message"][:13]) == ("not_found", "model events ")


def rows(count: int) -> Any:
    from quercus.v1 import values_pb2

    return values_pb2.Rows(packed=values_pb2.PackedRows(values=[0.0, 1.0] * count))


def test_a_stream_that_fails_at_once_has_the_status_of_its_error(served: tuple[Any, Http]) -> None:
    live, http = served
    said = http.call("TreeService/WatchTree", {"model": "models/none"})
    with pytest.raises(grpc.RpcError) as caught:
        next(live.api.trees.WatchTree(tree_pb2.WatchTreeRequest(model="models/none")))
    assert (said.status, said.error) == (404, status_of(caught.value)[:2])
    live.api.create("answers")
    assert http.call("QueryService/StreamAnswers", {"model": "models/answers"}).lines == []


def test_no_message_of_a_stream_can_be_taken_for_its_error() -> None:
    streams = [
        each for each in HTTP_METHODS.values() if each.descriptor.server_streaming and not each.takes_stream
    ]
    assert len(streams) == 3
    for each in streams:
        assert "error" not in {field.json_name for field in each.descriptor.output_type.fields}


# The gate


def test_every_role_may_do_by_http_what_it_may_by_grpc(
    start_live: Callable[..., Any], tmp_path: Path
) -> None:
    port = free_port()
    live = start_live(tmp_path / "store.db", http_port=port, access="tokens", grower=False)
    tokens = live.server.core.store.access
    callers: dict[str, Http] = {
        role: Http(port, access.issue_token(tokens, f"the-{role}", [role])[0]) for role in ROLES
    }
    for path, method in HTTP_METHODS.items():
        if method.takes_stream:
            continue
        for role, http in callers.items():
            said = http.ask("POST", path, b"{}", content_type="application/json", connect_timeout_ms="5000")
            assert (said.status not in {401, 403}) == (role in RPCS[path].roles), (path, role, said)
        nobody = Http(port).ask("POST", path, b"{}", content_type="application/json")
        is_probe = path.endswith(("/ServerLive", "/ServerReady"))
        assert nobody.status == (200 if is_probe else 401), path
        if not is_probe:
            assert nobody.headers["www-authenticate"] == "Bearer"
    newcomer = Http(port, access.issue_token(tokens, "the-newcomer", ["reader"])[0])
    for said in (newcomer.call("ModelService/CreateModel", CREATE), Http(port).get("/metrics")):
        assert said.status == (403 if said.body.startswith(b"{") else 200)
    lines = {
        (line.who.rpartition(":")[0] or line.who, line.action, line.outcome)
        for line in tokens.newest_audit(200)
    }
    # refusals of one caller are written once a second, whatever was called: the first of a newcomer always is
    assert ("the-newcomer", "CreateModel", "PERMISSION_DENIED") in lines
    strangers = {outcome for who, _, outcome in lines if who == "a stranger at ipv4:127.0.0.1"}
    assert strangers == {"UNAUTHENTICATED"}
    assert ("the-operator", "CreateModel", "INVALID_ARGUMENT") in lines


def test_a_stranger_is_refused_before_the_body_is_read(
    start_live: Callable[..., Any], tmp_path: Path
) -> None:
    port = free_port()
    start_live(tmp_path / "store.db", http_port=port, access="tokens", grower=False)
    head = (
        b"POST /quercus.v1.ModelService/CreateModel HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nConnection: close\r\nContent-Length: 9000000\r\n\r\n"
    )
    answer = Http(port).raw(head, timeout_s=5)
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"this server asks for a token" in answer


def test_bounds_of_an_address_count_both_ways_of_calling(
    start_live: Callable[..., Any], tmp_path: Path
) -> None:
    port = free_port()
    live = start_live(tmp_path / "store.db", http_port=port, grower=False, max_streams=1, calls_per_s=2)
    live.api.create("m")
    http = Http(port)
    refused = [
        said for _ in range(20)
        if (said := http.call("ModelService/GetModel", {"name": "models/m"})).status != 200
    ]  # fmt: skip
    assert refused[0].status == 429
    assert refused[0].headers["retry-after"] == "1"
    assert "calls_per_s: ipv4:127.0.0.1 makes more than 2 calls a second" in refused[0].json["message"]
    with pytest.raises(grpc.RpcError, match=r"calls_per_s: ipv4:127\.0\.0\.1"):
        list(map(live.api.get, "mmmmm"))
    time.sleep(1.5)
    watch = live.api.trees.WatchTree(tree_pb2.WatchTreeRequest(model="models/m"))
    until(lambda: live.server._bounds.streams._open)
    said = http.call("TreeService/WatchTree", {"model": "models/m"}, connect_timeout_ms="2000")
    assert said.status == 429
    assert "max_streams: ipv4:127.0.0.1 has 1 streams open" in said.json["message"]
    watch.cancel()


@pytest.mark.parametrize("kind", ["unary", "stream"])
def test_a_stop_lets_calls_end(start_live: Callable[..., Any], tmp_path: Path, kind: str) -> None:
    port = free_port()
    live = start_live(tmp_path / "store.db", http_port=port, grower=False)
    live.api.create("m")
    live.api.push(instance_pb2.PushInstancesRequest(model="models/m", rows=rows(1)))
    said: list[Any] = []
    call = {
        "unary": ("QueryService/LeaseQueries", {"model": "models/m", "labeller": "ann", "wait": "30s"}),
        "stream": ("InstanceService/WatchEvents", {"model": "models/m"}),
    }[kind]
    thread = threading.Thread(target=lambda: said.append(Http(port).call(*call)))
    thread.start()
    until(lambda: live.server._metrics.under_way.total == 1)
    time.sleep(0.2)
    live.stop()
    thread.join(WAIT_S)
    if kind == "stream":
        assert said[0].status == 200
        assert said[0].lines[-1]["error"]["code"] == "unavailable"
    else:
        assert (said[0].status, said[0].json["idle"]) == (200, "IDLE_GROWING")
    with pytest.raises(ConnectionRefusedError):
        Http(port).get("/livez")


# The port


def test_it_answers_under_its_own_names_only(start_live: Callable[..., Any], tmp_path: Path) -> None:
    """A page whose name was made to lead here (DNS rebinding) sends that name."""
    port = free_port()
    start_live(tmp_path / "store.db", http_port=port, grower=False, http_names="Quercus.example, prometheus")
    http = Http(port)
    for path in ("/metrics", "/livez", "/quercus.v1.ModelService/ListModels"):
        for good in (f"127.0.0.1:{port}", f"[::1]:{port}", "LOCALHOST", "quercus.example:80", "prometheus"):
            assert http.get(path, host=good).status == 200, good
        for bad in (
            f"evil.example:{port}",
            "127.0.0.1.evil.example",
            "evil.example:127.0.0.1",
            "a@127.0.0.1",
        ):
            said = http.get(path, host=bad)
            assert (said.status, said.json["code"]) == (421, "permission_denied")
            assert said.json["message"].endswith("name it in http_names, or ask for the address")
    twice = http.raw(b"GET /livez HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n")
    assert twice.split()[1] in {b"400", b"421"}
    assert http.raw(b"GET /livez HTTP/1.0\r\n\r\n").split()[1] == b"421"
    assert http.raw(b"GET /livez HTTP/1.0\r\nHost: localhost\r\n\r\n").split()[1] == b"200"


def test_pages_of_other_origins_call_where_they_are_named(
    start_live: Callable[..., Any], tmp_path: Path
) -> None:
    port = free_port()
    start_live(tmp_path / "store.db", http_port=port, grower=False, http_origins="https://app.example.org")
    path = "/quercus.v1.ModelService/ListModels"
    asked = {
        "access_control_request_method": "POST",
        "access_control_request_headers": "authorization,content-type",
    }
    allowed = Http(port).ask("OPTIONS", path, origin="https://app.example.org", **asked)
    assert (allowed.status, allowed.headers["access-control-allow-origin"]) == (
        200,
        "https://app.example.org",
    )
    assert "access-control-allow-credentials" not in allowed.headers
    other = Http(port).ask("OPTIONS", path, origin="https://evil.example", **asked)
    assert (other.status, "access-control-allow-origin" in other.headers) == (400, False)
    said = Http(port).call("ModelService/ListModels", {}, origin="https://app.example.org")
    assert said.headers["access-control-allow-origin"] == "https://app.example.org"
    assert said.headers["access-control-expose-headers"] == "X-Request-Id, Retry-After"


def test_without_origins_no_page_of_another_origin_may_call(served: tuple[Any, Http]) -> None:
    said = served[1].ask("OPTIONS", "/quercus.v1.ModelService/ListModels", origin="https://app.example.org")
    assert (said.status, said.headers["allow"]) == (405, "GET, HEAD, POST")
    assert not [name for name in said.headers if name.startswith("access-control")]
