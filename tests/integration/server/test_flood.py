"""Strangers who flood a server: calls of others do not fail, and its memory is bounded."""

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from support import flood, frames
from support.flood import Attack, Target
from support.frames import Peer
from support.papers import Papers
from support.waiting import until

from quercus.client import Client
from quercus.v1 import tree_pb2

ATTACK_S = 1.0
GROWN_MB = 150
"""By which a server may grow under any attack; the arenas of the allocator keep some of it."""

PROBED_MB = 300
"""By which it may grow while strangers hold requests of probes: eight are read at a time, of 15 MB each."""

HELD_BEFORE = {"settings", "headers"}
"""Attacks of which gRPC itself takes care: the first words of their names.

Of pings it does only with its event engine, which an environment variable switches off.
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    started = Target(tmp_path_factory.mktemp("flood"))
    yield started
    started.close()


def attacks() -> Iterator[Any]:
    for name, attack in flood.ATTACKS.items():
        marks = [pytest.mark.release] if name.split(maxsplit=1)[0].strip(",") in HELD_BEFORE else []
        yield pytest.param(attack, PROBED_MB if "Health" in name else GROWN_MB, id=name, marks=marks)


@pytest.mark.parametrize(("attack", "grown_mb"), list(attacks()))
def test_strangers_neither_fail_calls_of_others_nor_fill_the_memory(
    attack: Attack, grown_mb: float, server: Target
) -> None:
    seen = flood.under(server, attack, ATTACK_S)
    assert set(seen.codes) == {"OK"}, seen.codes
    assert seen.grown_mb < grown_mb


def test_a_burst_of_one_caller_is_served(server: Target) -> None:
    """A third of the calls of `make flood`: many more than are taken up at a time."""
    seen = flood.burst(server, calls := 3_500)
    assert seen.codes == {"OK": calls}
    assert seen.grown_mb < GROWN_MB


def test_messages_of_strangers_are_not_read_under_tls_either(tmp_path: Path) -> None:
    papers = Papers(tmp_path, "ours")
    server = Target(tmp_path, trusted=papers.ca, **papers.server)
    try:
        with (
            flood.watched(server.pid) as seen,
            flood.held_messages(server.address, flood.CREATE, 20, papers.ca),
        ):
            time.sleep(ATTACK_S)
    finally:
        server.close()
    assert seen.grown_mb < GROWN_MB / 2


def test_a_connection_that_says_nothing_is_closed(
    start_live: Callable[..., Any], tmp_path: Path, set_grpc_option: Callable[..., None]
) -> None:
    set_grpc_option("grpc.server_handshake_timeout_ms", 300)
    set_grpc_option("grpc.http2.settings_timeout", 300)
    live = start_live(tmp_path / "store.db", grower=False)
    for said in (b"", frames.PREFACE[:10], frames.PREFACE, frames.PREFACE + frames.frame(frames.SETTINGS)):
        with Peer(live.server.address, greets=False) as peer:
            peer.send(said)
            while peer.socket.recv(65_536):  # the settings of the server, which nobody acknowledges
                pass


def test_connections_beyond_the_bound_are_closed_and_others_are_served(
    start_live: Callable[..., Any], tmp_path: Path
) -> None:
    live = start_live(tmp_path / "store.db", grower=False, max_connections=3)
    live.api.create("m")
    with Peer(live.server.address), Peer(live.server.address):
        one_too_many = socket.create_connection(live.server.address.rsplit(":", 1), flood.CALL_S)
        assert one_too_many.recv(1) == b""
        one_too_many.close()
        assert live.api.get("m").name == "models/m"
    until(lambda: _greets(live.server.address), "room again")


def _greets(address: str) -> bool:
    try:
        Peer(address).close()
    except OSError:
        return False
    return True


def test_calls_beyond_the_bound_are_refused_and_say_when_to_call_again(
    start_live: Callable[..., Any], tmp_path: Path, tools: Any
) -> None:
    live = start_live(tmp_path / "store.db", grower=False, max_calls=2)
    live.api.create("m")
    watches = [live.api.trees.WatchTree(tree_pb2.WatchTreeRequest(model="models/m")) for _ in range(2)]
    until(lambda: live.server._metrics.under_way.total == 2)
    with tools.refused(
        grpc.StatusCode.RESOURCE_EXHAUSTED, "max_calls: 2 calls are under way", "try again in 1 s"
    ):
        live.api.get("m")
    with Client(live.server.address) as client:
        watches[0].cancel()
        assert client.get_model("m").name == "m"  # at the latest after a second
    watches[1].cancel()
