"""Attackers without a token who flood a server: the effects on other callers, and the cost for the server.

    python tests/support/flood.py 5

Every attack lasts so many seconds, against its own server that requires tokens, and comes from its own process.
Meanwhile honest callers call, without retries. A line for each attack says how much memory the server had before, at
most, and afterwards, the duration of the calls, and their status. A second argument selects attacks by words of their
names.
"""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import grpc

from quercus.client import Client, Nominal, Specification
from quercus.server.gate import access
from quercus.storage import Store, file_url
from quercus.v1 import model_pb2
from support import command_line, frames
from support.forked import ForkedProcess
from support.frames import Peer
from support.processes import resident_bytes

START_S: Final = 60.0
CALL_S: Final = 30.0
CALLERS: Final = 8
SAMPLE_S: Final = 0.02
HEAD_START_S: Final = 0.2
ATTACKING: Final = "attacking"
MODEL: Final = "m"
GET: Final = "/quercus.v1.ModelService/GetModel"
CREATE: Final = "/quercus.v1.ModelService/CreateModel"
PUSH: Final = "/quercus.v1.InstanceService/PushInstances"
CHECK: Final = "/grpc.health.v1.Health/Check"
CLASSIFY: Final = "/quercus.v1.ClassifyService/Classify"
MEGABYTES: Final = 15
MESSAGE: Final = memoryview(b"\0" + struct.pack(">I", MEGABYTES * 10**6) + bytes(MEGABYTES * 10**6))
"""A message of gRPC, after its length."""

Attack = Callable[[str], Any]
"""An attack on the server at an address, which lasts as long as a block."""


class Target:
    """A server that requires tokens, with a model and without a grower.

    Parameters
    ----------
    folder : where its store lies.
    trusted : PEM file of the authority of its certificate; None: it has none.
    settings : more of its settings.
    """

    def __init__(self, folder: Path, trusted: Path | None = None, **settings: Any) -> None:
        store = folder / "store.db"
        flags = {"store": str(store), "port": 0, "access": "tokens", "grower": False} | settings
        self._process = ForkedProcess(command_line.serve, flags)
        said = self._process.readline(START_S)
        assert said.startswith("listening on "), said
        self.address = said.removeprefix("listening on ").strip()
        self.pid = self._process.pid
        with Store.open(file_url(store)) as opened:
            self.token, _ = access.issue_token(opened.access, "operator", ["operator"])
        scheme = "" if trusted is None else "tls://"
        with Client(f"{scheme}{self.address}", token=self.token, ca=trusted) as client:
            client.create_model(MODEL, Specification([Nominal("X", "ab")], ["o", "s"]))

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of an honest caller."""
        return (("authorization", f"Bearer {self.token}"),)

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait(START_S)


@contextmanager
def target(**settings: Any) -> Iterator[Target]:
    """Run a server on an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        started = Target(Path(folder), **settings)
        try:
            yield started
        finally:
            started.close()


@dataclass
class Seen:
    """The ends of honest calls, and the server's memory."""

    codes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    before: int = 0
    most: int = 0
    after: int = 0
    said: str = ""

    @property
    def grown_mb(self) -> float:
        """Growth of the memory up to its peak, in megabytes."""
        return (self.most - self.before) / 10**6

    def line(self) -> str:
        """Return a line of the table."""
        took = sorted(self.seconds) or [0.0]
        p50, p99 = (1000 * took[int(share * (len(took) - 1))] for share in (0.5, 0.99))
        codes = ", ".join(f"{count} {code}" for code, count in self.codes.most_common())
        memory = f"{self.before / 1e6:4.0f} -> {self.most / 1e6:5.0f} -> {self.after / 1e6:5.0f} MB"
        return f"{memory} | p50 {p50:7.1f} ms, p99 {p99:8.1f} ms | {codes} {self.said}"


@contextmanager
def watched(pid: int) -> Iterator[Seen]:
    """Watch the memory of a server while a block runs."""
    seen, over = Seen(before=resident_bytes(pid)), threading.Event()

    def watch() -> None:
        while not over.wait(SAMPLE_S):
            seen.most = max(seen.most, resident_bytes(pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
        seen.after = resident_bytes(pid)
        seen.most = max(seen.most, seen.after)


class Honest:
    """Callers with a token, each on its own connection, that make one call after the other and never retry.

    Parameters
    ----------
    server : whom they call.
    """

    def __init__(self, server: Target) -> None:
        self._server = server
        self._request = model_pb2.GetModelRequest(name=f"models/{MODEL}").SerializeToString()

    def call(self, seen: Seen, is_over: Callable[[], bool], callers: int = CALLERS) -> None:
        """Call until it is over."""

        def run() -> None:
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
            with grpc.insecure_channel(self._server.address, options=options) as channel:
                get = channel.unary_unary(GET)
                while not is_over():
                    started = time.monotonic()
                    try:
                        get(self._request, timeout=CALL_S, metadata=self._server.metadata)
                        code = "OK"
                    except grpc.RpcError as error:
                        code = error.code().name  # type: ignore[attr-defined]
                    seen.codes[code] += 1
                    seen.seconds.append(time.monotonic() - started)

        threads = [threading.Thread(target=run) for _ in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@contextmanager
def many(attack: Callable[[Callable[[], bool]], None], count: int) -> Iterator[None]:
    """Run an attack in so many threads until the block ends."""
    over = threading.Event()

    def run() -> None:
        with suppress(OSError):
            attack(over.is_set)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(CALL_S)


@contextmanager
def resets(address: str, connections: int = 1) -> Iterator[None]:
    """Open streams and reset them at once."""

    def attack(is_over: Callable[[], bool]) -> None:
        while not is_over():
            with Peer(address) as peer:
                peer.drain()
                for first in itertools.count(1, 2_000):
                    streams = range(first, first + 2_000, 2)
                    if is_over() or not peer.send(frames.opened_and_reset(CLASSIFY, streams)):
                        break

    with many(attack, connections):
        yield


@contextmanager
def held_messages(
    address: str, method: str, connections: int = 60, trusted: Path | None = None
) -> Iterator[list[int]]:
    """Send a large message without its last byte, as far as the server accepts it; yield the bytes sent."""
    sent: list[int] = []

    def attack(is_over: Callable[[], bool]) -> None:
        stream = 1
        with Peer(address, trusted) as peer:
            while not is_over():
                peer.send(frames.opened(method, stream))
                sent.append(peer.send_data(stream, MESSAGE[:-1], 0.5))
                stream += 2

    with many(attack, connections):
        yield sent


@contextmanager
def unread_streams(address: str, connections: int = 20, streams: int = 1_000) -> Iterator[None]:
    """Open as many streams as a connection may have, each with as much data as its window takes."""

    def attack(is_over: Callable[[], bool]) -> None:
        block = frames.frame(frames.DATA, bytes(16_000))
        opened = itertools.count(1, 2)
        with Peer(address) as peer:
            peer.drain()
            while not is_over():
                stream = next(opened)
                data = struct.pack(">I", stream).join([block[:5], block[9:]])
                if not peer.send(frames.opened(PUSH, stream) + data):
                    return

    with many(attack, connections):
        yield


@contextmanager
def made_up_tokens(address: str, connections: int = 8) -> Iterator[None]:
    """Send different tokens that were never issued, on the maximum number of streams."""

    def attack(is_over: Callable[[], bool]) -> None:
        opened = itertools.count(1, 2)
        with Peer(address) as peer:
            peer.drain()
            while not is_over():
                token = f"quercus_{os.urandom(6).hex()}_{'A' * 43}"
                batch = b"".join(
                    frames.opened(GET, next(opened), ("authorization", f"Bearer {token}")) for _ in range(50)
                )
                if not peer.send(batch):
                    return
                time.sleep(0.01)

    with many(attack, connections):
        yield


@contextmanager
def of_frames(address: str, data: bytes, drains: bool, connections: int = 4) -> Iterator[None]:
    """Send the same frames for ever; without draining, their acknowledgements accumulate."""

    def attack(is_over: Callable[[], bool]) -> None:
        while not is_over():
            with Peer(address) as peer:
                if drains:
                    peer.drain()
                peer.socket.settimeout(0.5)
                while not is_over() and peer.send(data):
                    pass

    with many(attack, connections):
        yield


@contextmanager
def endless_headers(address: str, connections: int = 4) -> Iterator[None]:
    """Begin header fields that never end."""

    def attack(is_over: Callable[[], bool]) -> None:
        more = frames.frame(frames.CONTINUATION, frames.fields(("x-filler", "y" * 8_000)) * 2, 1)
        while not is_over():
            with Peer(address) as peer:
                peer.drain()
                peer.send(frames.frame(frames.HEADERS, frames.call(GET), 1))
                while not is_over() and peer.send(more):
                    pass

    with many(attack, connections):
        yield


@contextmanager
def large_metadata(address: str, connections: int = 4) -> Iterator[None]:
    """Send metadata of a hundred kilobytes with every call."""

    def attack(is_over: Callable[[], bool]) -> None:
        filler = [(f"x-filler-{k}", "y" * 8_000) for k in range(12)]
        block, stream = frames.call(GET, *filler), 1
        with Peer(address) as peer:
            peer.drain()
            while not is_over():
                parts = [block[k : k + 16_000] for k in range(0, len(block), 16_000)]
                sent = frames.frame(frames.HEADERS, parts[0], stream)
                for part in parts[1:-1]:
                    sent += frames.frame(frames.CONTINUATION, part, stream)
                sent += frames.frame(frames.CONTINUATION, parts[-1], stream, frames.END_HEADERS)
                if not peer.send(sent):
                    return
                stream += 2

    with many(attack, connections):
        yield


@contextmanager
def silent_connections(address: str, count: int = 1_500, sent: bytes = frames.PREFACE[:10]) -> Iterator[None]:
    """Hold connections on which hardly anything is sent, and reconnect when the server closes one."""
    with ExitStack() as stack:
        for _ in range(count):
            with suppress(OSError):
                peer = stack.enter_context(Peer(address, greets=False))
                peer.send(sent)
        yield


@contextmanager
def nobody(_: str) -> Iterator[None]:
    """Do not attack."""
    yield


def burst(server: Target, calls: int = 10_000) -> Seen:
    """Make very many calls at once over one connection."""
    request = model_pb2.GetModelRequest(name=f"models/{MODEL}").SerializeToString()
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    with watched(server.pid) as seen, grpc.insecure_channel(server.address, options=options) as channel:
        get, started = channel.unary_unary(GET), time.monotonic()
        pending = [get.future(request, timeout=10 * CALL_S, metadata=server.metadata) for _ in range(calls)]
        for each in pending:
            seen.codes["OK" if each.exception() is None else each.code().name] += 1
        seen.seconds.append(time.monotonic() - started)
    return seen


def under(server: Target, attack: Attack, seconds: float) -> Seen:
    """Return the calls of honest callers during an attack."""
    with watched(server.pid) as seen, attack(server.address):
        time.sleep(HEAD_START_S)
        until = time.monotonic() + seconds
        Honest(server).call(seen, lambda: time.monotonic() > until)
    return seen


@contextmanager
def elsewhere(address: str, name: str) -> Iterator[None]:
    """Attack from another process, so that the honest callers of this one lose no time."""
    command = [sys.executable, __file__, ATTACKING, name, address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as attacker:
        assert attacker.stdin is not None
        assert attacker.stdout is not None
        assert attacker.stdout.readline() == f"{ATTACKING}\n"
        try:
            yield
        finally:
            attacker.stdin.close()


BURST: Final = "10,000 calls at once"
PINGS: Final = frames.frame(frames.PING, bytes(8)) * 1_000
CHANGES: Final = frames.frame(frames.SETTINGS, struct.pack(">HI", frames.INITIAL_WINDOW, 65_535)) * 1_000

ATTACKS: Final[dict[str, Attack]] = {
    "nobody": nobody,
    "streams opened and reset, 1 connection": resets,
    "streams opened and reset, 4 connections": lambda address: resets(address, 4),
    "60 x 15 MB, CreateModel": lambda address: held_messages(address, CREATE),
    "60 x 15 MB, PushInstances": lambda address: held_messages(address, PUSH),
    "60 x 15 MB, GetModel": lambda address: held_messages(address, GET),
    "60 x 15 MB, Health.Check": lambda address: held_messages(address, CHECK),
    "streams with data, 20 connections": unread_streams,
    "made-up tokens": made_up_tokens,
    "pings": lambda address: of_frames(address, PINGS, drains=True),
    "pings, answers unread": lambda address: of_frames(address, PINGS, drains=False),
    "settings": lambda address: of_frames(address, CHANGES, drains=True),
    "settings, answers unread": lambda address: of_frames(address, CHANGES, drains=False),
    "headers without an end": endless_headers,
    "metadata of 100 kB": large_metadata,
    "1,500 connections with half a preface": silent_connections,
}


def main(seconds: float, wanted: str = "") -> None:
    """Run every attack, and print the results."""
    for name in ATTACKS:
        if wanted in name:
            with target() as server:
                seen = under(server, lambda address, name=name: elsewhere(address, name), seconds)  # type: ignore[misc]
                print(f"{name:42} | {seen.line()}", flush=True)
    if wanted in BURST:
        with target() as server:
            print(f"{BURST:42} | {burst(server).line()}", flush=True)


def attack_until_told(name: str, address: str) -> None:
    """Attack until standard input is closed."""
    with ATTACKS[name](address):
        print(ATTACKING, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1:2] == [ATTACKING]:
        attack_until_told(*sys.argv[2:])
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0, *sys.argv[2:3])
