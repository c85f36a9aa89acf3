"""Callers that leave in the middle: streams and calls that are cancelled, connections that are dropped."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2

from quercus.v1 import classify_pb2, instance_pb2, query_pb2, tree_pb2

AT_ONCE: Final = 32
"""Callers of one connection."""

LONGEST_S: Final = 0.02
"""After which a caller leaves at the latest."""

DEADLINE_S: Final = 60.0
BUGS: Final = frozenset({"INTERNAL", "UNKNOWN", "UNIMPLEMENTED", "DATA_LOSS"})


def messages(model: str) -> dict[str, list[Any]]:
    """Return what callers send, by method: what makes a call wait, work, or stream."""
    name = f"models/{model}"
    rows = {"packed": {"values": [0.0, 1.0]}}
    lease = query_pb2.LeaseQueriesRequest(model=name, labeller="ann", wait={"seconds": 5})
    opened = query_pb2.StreamQueriesRequest(model=name, labeller="bob", credits=2)
    return {
        "quercus.v1.TreeService/WatchTree": [tree_pb2.WatchTreeRequest(model=name)],
        "quercus.v1.InstanceService/PushInstances": [
            instance_pb2.PushInstancesRequest(model=name, rows=rows) for _ in range(3)
        ],
        "quercus.v1.ClassifyService/ClassifyStream": [
            classify_pb2.ClassifyRequest(model=name, rows=rows) for _ in range(3)
        ],
        "quercus.v1.ClassifyService/Classify": [classify_pb2.ClassifyRequest(model=name, rows=rows)],
        "quercus.v1.QueryService/StreamQueries": [opened, query_pb2.StreamQueriesRequest(heartbeat=True)],
        "quercus.v1.QueryService/LeaseQueries": [lease],
        "grpc.health.v1.Health/Watch": [health_pb2.HealthCheckRequest()],
    }


KINDS: Final = {
    "WatchTree": "unary_stream",
    "PushInstances": "stream_stream",
    "ClassifyStream": "stream_stream",
    "Classify": "unary_unary",
    "StreamQueries": "stream_stream",
    "LeaseQueries": "unary_unary",
    "Watch": "unary_stream",
}


async def says_the_server(call: Any) -> bool:
    """Return whether the server ended a call: it names every request, which gRPC's own errors do not."""
    return any(key == "x-request-id" for key, _ in await call.trailing_metadata() or ())


class Storm:
    """Calls that are left in the middle.

    Parameters
    ----------
    address : of the server.
    model : with two attributes or more that were pushed to.
    seed : of who leaves when.

    Attributes
    ----------
    codes : how often calls ended with each status; some are what gRPC says of a connection that this dropped.
    bugs : what the server itself says must never be.
    """

    def __init__(self, address: str, model: str, seed: int = 0) -> None:
        self._address = address
        self._rng = random.Random(seed)  # noqa: S311
        self._messages = messages(model)
        self.codes: Counter[str] = Counter()
        self.bugs: list[str] = []

    async def blow(self, count: int) -> None:
        """Make so many calls, a connection for every `AT_ONCE` of them; half the connections are dropped."""
        for start in range(0, count, AT_ONCE):
            options = [("grpc.use_local_subchannel_pool", 1)]
            channel = grpc.aio.insecure_channel(self._address, options=options)
            calls = [asyncio.create_task(self._call(channel)) for _ in range(min(AT_ONCE, count - start))]
            if self._rng.random() < 0.5:
                await asyncio.sleep(self._rng.uniform(0, LONGEST_S))
                await channel.close()
            await asyncio.gather(*calls)
            await channel.close()

    async def _call(self, channel: grpc.aio.Channel) -> None:
        method = self._rng.choice(list(self._messages))
        kind = KINDS[method.rpartition("/")[2]]
        sent = [message.SerializeToString() for message in self._messages[method]]
        leave_s, waits = self._rng.uniform(0, LONGEST_S), self._rng.random() < 0.5
        try:
            asked: Any = iter(sent) if kind.startswith("stream") else sent[0]
            call = getattr(channel, kind)(f"/{method}")(asked, timeout=DEADLINE_S)
            if waits and kind.endswith("stream"):
                await asyncio.wait_for(call.read(), 10 * LONGEST_S)  # leave after the first answer
            else:
                await asyncio.sleep(leave_s)
            call.cancel()
            code = (await call.code()).name
            if code in BUGS and await says_the_server(call):
                self.bugs.append(f"storm: {method} {code} {await call.details()}")
        except grpc.aio.UsageError:  # the connection was closed before the call was made
            code = "CLOSED"
        except TimeoutError:
            code = "CANCELLED"
        except grpc.RpcError as error:
            code = error.code().name
        except asyncio.CancelledError:  # grpc.aio says so of calls whose connection was closed
            code = "CANCELLED"
        self.codes[code] += 1
