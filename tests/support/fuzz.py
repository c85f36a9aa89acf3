"""Mutated messages for every RPC of a live server, and garbage where frames should be.

    python tests/support/fuzz.py 10000

A server must answer any message with a status that says what is wrong with it, and continue. Most messages are valid
ones with a few changed fields, so that they pass the first checks; others are random messages of their type, and some
have damaged bytes. One of the two models that messages speak of learns what the service learns by default, the forest
that asks, the other the published tree. One call in ten is left in the middle, and storms of callers that leave follow:
the server logs at level debug, since once it asked calls that were gone.
"""

from __future__ import annotations

import asyncio
import random
import socket
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import grpc
from integration.client.serving import Serving

from quercus.client import AlreadyExists, Client, Nominal, NotFound, Numeric, Specification, Statement
from quercus.inference import open_inference_pb2
from quercus.v1 import admin_pb2, classify_pb2, instance_pb2, model_pb2, query_pb2, tree_pb2
from support.mutated import Maker
from support.published import published_model
from support.right import Labelling, Queries, right_messages
from support.storm import BUGS, LONGEST_S, Storm, says_the_server

FILES: Final = (
    *(model_pb2, instance_pb2, query_pb2, classify_pb2, tree_pb2, admin_pb2),
    open_inference_pb2,
)
METHODS: Final = {
    f"{service.full_name}/{method.name}": method
    for file in FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
AT_ONCE: Final = 16
WAITING_AT_ONCE: Final = 128
"""Calls that wait for events cost nothing meanwhile."""

DEADLINE_S: Final = 60.0
WAITING: Final = ("/WatchTree", "/WatchEvents", "/StreamQueries", "/LeaseQueries")
WAITING_S: Final = 0.5
"""Deadline of calls that may wait for events; no other call should reach its deadline."""
LONG_S: Final = 60.0
ROWS: Final = 80
LEARNED: Final[tuple[Any, ...]] = (
    [Nominal("a", ["a", "b"]), Numeric("b", bins=3), Nominal("o", ["s", "t"])],
    ["o", "s"],
)
SETTINGS: Final[dict[str, Any]] = {"budget": 100_000, "alpha": 0.9, "min_instances": 2, "warmup_rows": 4}
MODELS: Final = {
    "m": Specification(*LEARNED, **SETTINGS),  # the forest that asks
    "n": published_model(*LEARNED, **SETTINGS),
}
AGAIN: Final = 250
"""Number of messages after which names and lease tokens are looked up anew."""

LEAVING: Final = 0.1
"""Share of the calls that are cancelled, or lose their connection, before or while they are answered."""

TRIES: Final = 3
PARTS: Final = 4
"""Memory is measured after each; the first ones load libraries and fill caches."""

MOST_GROWTH: Final = 1.05
"""Greatest growth of memory in the last part, as a factor."""


class Fuzz:
    """Sends messages to a live server, and keeps its answers.

    Parameters
    ----------
    address : of the server.
    seed : of the messages.
    model : of `MODELS`, that this one speaks of; another may speak of the other at the same time.
    """

    def __init__(self, address: str, seed: int = 0, model: str = "m") -> None:
        self.address = address
        self.model = model
        self.maker = Maker(random.Random(seed), model)  # noqa: S311
        self.codes: Counter[tuple[str, str]] = Counter()
        self.bugs: list[str] = []
        self._right: dict[str, list[Any]] = {}
        self._prepared = 0

    def prepare(self, anew: bool = False) -> None:
        """Have a model, a tree and leased queries that right messages speak of.

        Parameters
        ----------
        anew : begin with another model of this name; so it is as well when the messages have deleted the model, or
            nothing is left to ask.
        """
        self._prepared += 1
        with (
            Client(self.address, timeout_s=LONG_S) as client,
            closing(Labelling(self.address, self.model)) as queries,
        ):
            there = [model.name for model in client.models()]
            for name in there:
                if name.startswith(f"{self.model}-"):  # of CreateModel
                    client.delete_model(name)
            if self.model not in there:
                self._create(client)
            elif anew:
                self._create_again(client)
            held = self._lease(queries)
            if not queries.answered:
                self._create_again(client)
                held = self._lease(queries)
            client.create_model(f"{self.model}-gone", MODELS[self.model])
            self._right = right_messages(self.model, held, queries.answered, self._prepared)

    def _lease(self, queries: Labelling) -> Queries:
        try:
            return queries.lease()
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.FAILED_PRECONDITION:  # a policy that messages made
                return []
            raise

    def _create_again(self, client: Client) -> None:
        for _ in range(TRIES):  # a call that was left in the middle may still create the model, or delete it
            with suppress(NotFound):
                client.delete_model(self.model)
            try:
                return self._create(client)
            except (AlreadyExists, NotFound):
                continue
        raise AssertionError(f"{self.model} could not be created {TRIES} times")

    def _create(self, client: Client) -> None:
        client.create_model(self.model, MODELS[self.model])
        chance = random.Random(0)  # noqa: S311 - noise: much is left to ask
        rows = [[chance.choice("ab"), float(chance.randrange(5)), chance.choice("st")] for _ in range(ROWS)]
        labels = [chance.choice(["o", "s", None, None]) for _ in range(ROWS)]
        client.push(self.model, rows, labels, [f"row-{k}" for k in range(ROWS)])
        client.state(self.model, [Statement("row-1", "o")], labeller="bob")  # of which there may be a dispute
        client.wait_grown(self.model, timeout_s=10 * LONG_S)

    def run(self, count: int) -> None:
        """Send so many messages to every RPC."""
        self.prepare(anew=True)
        for method in METHODS:
            asyncio.run(self._send(method, count))

    async def _send(self, method: str, count: int) -> None:
        options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(self.address, options=options) as channel:
            for start in range(0, count, AGAIN):
                await asyncio.to_thread(self.prepare)
                # before the others, which may delete what it speaks of; those of other RPCs may have spoilt the model
                if start == 0 and await self._call(channel, method, as_it_is=True) != "OK":
                    await asyncio.to_thread(self.prepare, anew=True)
                    await self._call(channel, method, as_it_is=True)
                left = iter(range(max(start, 1), min(start + AGAIN, count)))

                async def one_after_another(left: Any = left) -> None:
                    for _ in left:
                        await self._call(channel, method, as_it_is=False)

                at_once = WAITING_AT_ONCE if method.endswith(WAITING) else AT_ONCE
                await asyncio.gather(*(one_after_another() for _ in range(at_once)))

    async def _call(self, channel: grpc.aio.Channel, method: str, as_it_is: bool) -> str:
        """Send a right message, as it is or changed; return the status, empty if the call was left."""
        descriptor, right = METHODS[method], self._right[method.rpartition("/")[2]]
        streams_in, streams_out = descriptor.client_streaming, descriptor.server_streaming
        if as_it_is:
            sent = [right[0].SerializeToString()]
        else:
            count = self.maker.rng.randrange(1, 4) if streams_in else 1
            sent = [self.maker.bytes(self.maker.rng.choice(right)) for _ in range(count)]
        kind = f"{'stream' if streams_in else 'unary'}_{'stream' if streams_out else 'unary'}"
        waits = method.endswith(WAITING)
        deadline_s = DEADLINE_S if not waits else 10 * WAITING_S if as_it_is else WAITING_S
        if not as_it_is and self.maker.rng.random() < LEAVING:
            await self._leave(method, kind, sent)
            return ""
        call = getattr(channel, kind)(f"/{method}")(iter(sent) if streams_in else sent[0], timeout=deadline_s)
        heard = False
        try:
            if streams_out:
                async for _ in call:
                    heard = True
            else:
                await call
            code = "OK"
        except grpc.aio.AioRpcError as error:
            code = error.code().name
            if code in BUGS and not await says_the_server(call):
                code = "CLOSED"  # while this client still wrote
            if code in BUGS:
                self.bugs.append(f"{method} {code} {error.details()} {[data.hex() for data in sent]}")
            if heard and code == "DEADLINE_EXCEEDED":
                code = "OK"  # answered, and went on: this client left
        except asyncio.CancelledError:
            if not (streams_in and call.cancelled()):
                raise
            code = "CLOSED"  # while this client still wrote: then gRPC cancels the call that it makes
        self.codes[method, code] += 1
        return code

    async def _leave(self, method: str, kind: str, sent: list[bytes]) -> None:
        """Make a call, and cancel it or drop its connection before or while it is answered."""
        rng = self.maker.rng
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(self.address, options=options) as channel:
            asked: Any = iter(sent) if kind.startswith("stream") else sent[0]
            call = getattr(channel, kind)(f"/{method}")(asked, timeout=DEADLINE_S)
            await asyncio.sleep(rng.uniform(0, LONGEST_S))
            if rng.random() < 0.5:
                call.cancel()
        self.codes[method, "LEFT"] += 1


def garbage(address: str, count: int, seed: int = 0) -> None:
    """Send bytes that are not HTTP/2, and such that begin like it."""
    rng = random.Random(seed)  # noqa: S311
    host, port = address.rsplit(":", 1)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for _ in range(count):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            head = rng.choice((b"", preface, preface + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
            try:
                connection.sendall(head + rng.randbytes(rng.randrange(1, 3000)))
                connection.settimeout(0.02)
                connection.recv(1000)
            except (TimeoutError, ConnectionError):
                continue


def _part(address: str, seed: int, model: str, count: int) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Fuzz from a process of its own."""
    fuzz = Fuzz(address, seed, model)
    fuzz.run(count)
    garbage(address, count, seed)
    fuzz.prepare(anew=True)
    storm = Storm(address, model, seed)
    asyncio.run(storm.blow(count))
    codes = fuzz.codes + Counter({("storm", code): number for code, number in storm.codes.items()})
    return codes, fuzz.bugs + storm.bugs


def main() -> None:
    """Fuzz every RPC as often as the first argument says, and print the result."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    started = time.monotonic()
    codes: Counter[tuple[str, str]] = Counter()
    bugs: list[str] = []
    memory = []
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(len(MODELS), get_context("spawn")) as pool,
    ):
        serving = Serving(Path(folder), 0, "--log-level", "debug")
        try:
            with Client(serving.address) as client:
                for part in range(PARTS):
                    each = -(-count // PARTS // len(MODELS))
                    work = [(serving.address, 2 * part + k, model, each) for k, model in enumerate(MODELS)]
                    for found, wrong in pool.map(_part, *zip(*work, strict=True)):
                        codes += found
                        bugs += wrong
                    memory.append(client.status().memory_bytes)
                    print(f"{codes.total():,} calls, memory {memory[-1] / 1e6:.0f} MB", flush=True)
        finally:
            serving.stop()
    print(
        f"{codes.total():,} calls of {len(METHODS)} RPCs in {time.monotonic() - started:.0f} s, {len(bugs)} bugs"
    )
    for (method, code), number in sorted(codes.items()):
        print(f"  {method} {code}: {number:,}")
    for bug in bugs[:20]:
        print(bug[:2000])
    flat = memory[-1] <= MOST_GROWTH * memory[-2]
    print("memory is flat" if flat else "memory grows")
    sys.exit(bool(bugs) or not flat)


if __name__ == "__main__":
    main()
