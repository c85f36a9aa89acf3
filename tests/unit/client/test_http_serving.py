"""Connections to the console and to bridges on which no request arrives."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from quercus.client import http_serving

ARRIVAL_S = 1.0
WAIT_S = 30.0
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("ok")(scope, receive, send)


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(http_serving, "ARRIVAL_S", ARRIVAL_S)
    listening = http_serving.listen("127.0.0.1", 0)
    settings = uvicorn.Config(
        answer, http=http_serving.TimedProtocol, lifespan="off", log_level="warning", ws="none"
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    yield listening.getsockname()
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("said", [b"", b"GET / HT", REQUEST[:-2]])
def test_a_connection_on_which_no_request_arrives_is_closed(address: tuple[str, int], said: bytes) -> None:
    with socket.create_connection(address, WAIT_S) as peer:
        peer.sendall(said)
        assert peer.recv(1) == b""


def test_so_is_one_whose_next_request_does_not_arrive(address: tuple[str, int]) -> None:
    with socket.create_connection(address, WAIT_S) as peer:
        peer.sendall(REQUEST)
        answered = peer.recv(65_536)
        assert answered.startswith(b"HTTP/1.1 200")
        peer.sendall(REQUEST[:10])
        while peer.recv(65_536):
            pass


def test_a_request_that_arrives_in_parts_is_answered(address: tuple[str, int]) -> None:
    with socket.create_connection(address, WAIT_S) as peer:
        for part in (REQUEST[:10], REQUEST[10:20], REQUEST[20:]):
            peer.sendall(part)
            time.sleep(ARRIVAL_S / 50)
        assert peer.recv(65_536).startswith(b"HTTP/1.1 200")
