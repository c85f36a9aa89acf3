"""Hostile and random requests at the HTTP port: no fault of the server, and calls by gRPC go on."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from support.http_calls import Http, free_port
from support.papers import Papers

from quercus.client import Client, http_serving
from quercus.server.http.openapi import document

CHECKS = [
    *(not_a_server_error, status_code_conformance, content_type_conformance),
    *(response_headers_conformance, response_schema_conformance),
]
SCHEMA = schemathesis.openapi.from_dict(document())


@pytest.fixture(scope="module")
def served(start_for_all: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    live = start_for_all(tmp_path_factory.mktemp("fuzz") / "store.db", http_port=free_port(), grower=False)
    live.api.create("m")
    yield live
    live.api.create("still-there")  # and the server still writes


@SCHEMA.parametrize()
@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
def test_what_the_description_allows_has_an_answer_that_it_names(case: Any, served: Any) -> None:
    response = case.call(base_url=f"http://127.0.0.1:{served.http.port}", timeout=30)
    case.validate_response(response, checks=CHECKS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["model", "name", "rows", "packed", "values", "specification", "attributes", "wait"]
            )
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
METHODS = st.sampled_from(
    [
        "ModelService/CreateModel",
        "InstanceService/PushBatch",
        "QueryService/LeaseQueries",
        "ClassifyService/Classify",
    ]
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    METHODS, st.dictionaries(st.sampled_from(["model", "rows", "specification", "labels"]), JSON, max_size=4)
)
def test_random_json_is_refused_in_words(served: Any, method: str, body: dict[str, Any]) -> None:
    said = served.http.call(method, body, connect_timeout_ms="3000")
    assert said.status in {200, 400, 404}, said
    if said.status != 200:
        assert said.json["message"]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=200))
def test_random_bytes_are_no_fault(served: Any, data: bytes) -> None:
    for kind in ("application/json", "application/proto"):
        said = served.http.ask("POST", "/quercus.v1.ModelService/GetModel", data, content_type=kind)
        assert said.status in {400, 404}, said
    assert served.http.ask("POST", "/v2/models/m/infer", data).status in {400, 404}


HEAD = b"POST /quercus.v1.ModelService/GetModel HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = b'{"name": "models/m"}'
ATTACKS = {
    "huge headers": b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 20_000 + b"\r\n",
    "chunked garbage": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nnonsense\r\n0\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
    "length and chunks": HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "negative length": HEAD + b"Content-Length: -1\r\n\r\n{}",
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(100),
    "upgrade": HEAD + b"Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 20\r\n\r\n" + BODY,
    "a path of another machine": b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "half a request": HEAD[:40],
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_no_http_hurts_no_call(served: Any, attack: str) -> None:
    with socket.create_connection(("127.0.0.1", served.http.port), timeout=5) as stranger:
        try:
            stranger.sendall(ATTACKS[attack])
            stranger.shutdown(socket.SHUT_WR)
            answer = stranger.recv(65_536)
        except ConnectionError:
            answer = b""
    if answer:
        assert answer.split()[1] in {b"400", b"421", b"431", b"404", b"501", b"200"}, answer[:200]
    assert served.api.get("m").name == "models/m"
    assert served.http.call("ModelService/GetModel", {"name": "models/m"}).status == 200


def test_requests_one_behind_another_are_answered_in_order(served: Any) -> None:
    one = HEAD + b"Content-Length: 20\r\n\r\n" + BODY
    other = HEAD + b"Content-Length: 23\r\nConnection: close\r\n\r\n" + b'{"name": "models/none"}'
    said = served.http.raw(one * 5 + other)
    statuses = [part.split()[0] for part in said.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200"] * 5 + [b"404"]


def test_slow_requests_are_ended_and_others_are_answered_meanwhile(
    served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quercus.server.http import calls

    monkeypatch.setattr(http_serving, "ARRIVAL_S", 0.5)
    monkeypatch.setattr(calls, "BODY_S", 0.5)
    slow_head = threading.Thread(target=served.http.raw, args=(HEAD, 10))
    slow_head.start()
    said = served.http.raw(HEAD + b"Connection: close\r\nContent-Length: 100\r\n\r\n{", 10)
    assert said.split()[1] == b"408"
    assert served.api.get("m").name == "models/m"
    slow_head.join(10)
    assert not slow_head.is_alive()


@pytest.mark.parametrize("has_tls", [False, True])
def test_connections_beyond_the_bound_are_closed_and_grpc_goes_on(
    start_live: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_tls: bool
) -> None:
    monkeypatch.setattr(http_serving, "ARRIVAL_S", 2.0)
    papers = Papers(tmp_path, "ours")
    more = papers.server if has_tls else {}
    live = start_live(tmp_path / "store.db", http_port=free_port(), grower=False, max_connections=30, **more)
    scheme = "tls://" if has_tls else ""
    grpc_client = Client(f"{scheme}{live.server.address}", ca=papers.ca if has_tls else None)
    idle = [socket.create_connection(("127.0.0.1", live.http.port)) for _ in range(10)]
    time.sleep(0.3)
    closed = 0
    for each in idle:
        with closing(each):
            each.setblocking(False)
            try:
                closed += each.recv(1) == b""
            except BlockingIOError:
                pass
            except ConnectionError:
                closed += 1
    assert closed == 7  # a tenth of the connections of gRPC are left
    with grpc_client:
        assert list(grpc_client.models()) == []
    context = ssl.create_default_context(cafile=str(papers.ca)) if has_tls else None
    deadline = time.monotonic() + 10
    while True:  # the connections above have gone
        try:
            assert Http(live.http.port, context=context).get("/livez").status == 200
            break
        except ConnectionError:
            assert time.monotonic() < deadline
