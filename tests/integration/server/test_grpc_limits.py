"""The limits of gRPC itself, as callers see them: each status is one that is declared."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from support import flood, frames
from support.frames import Peer

from quercus.server.gate.grpc_limits import (
    GRPC_LIMITS,
    MAX_CALLS_OF_CONNECTION,
    MAX_METADATA_BYTES,
)
from quercus.server.gate.rpcs import LIBRARY
from quercus.v1 import query_pb2

REFUSED_STREAM = 7
"""The error of HTTP/2 that a client of gRPC reports as UNAVAILABLE."""


def seen(call: Callable[[], Any]) -> grpc.StatusCode:
    """Return the status of a call that fails."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    code: grpc.StatusCode = caught.value.code()  # type: ignore[attr-defined]
    return code


def test_statuses_of_the_limits_are_declared(live: Any) -> None:
    def ask(method: str, request: bytes = b"", **options: Any) -> grpc.StatusCode:
        return seen(lambda: live.api.channel.unary_unary(method)(request, **options))

    large = [("x-filler", "y" * MAX_METADATA_BYTES)]
    live.api.create("has-no-queries")
    lease = query_pb2.LeaseQueriesRequest(model="models/has-no-queries", labeller="ann", wait={"seconds": 60})
    found = {
        "message": ask(flood.GET, bytes(17 * 1024 * 1024), timeout=flood.CALL_S),
        "metadata": ask(flood.GET, metadata=large, timeout=flood.CALL_S),
        "method": ask("/quercus.v1.ModelService/Nothing", timeout=flood.CALL_S),
        "deadline": seen(lambda: live.api.queries.LeaseQueries(lease, timeout=0.2)),
    }
    assert found == {
        "message": grpc.StatusCode.RESOURCE_EXHAUSTED,
        "metadata": grpc.StatusCode.RESOURCE_EXHAUSTED,
        "method": grpc.StatusCode.UNIMPLEMENTED,
        "deadline": grpc.StatusCode.DEADLINE_EXCEEDED,
    }
    assert set(found.values()) <= LIBRARY.keys()
    assert {limit.status for limit in GRPC_LIMITS if limit.status is not None} <= LIBRARY.keys()


def test_a_connection_has_no_more_calls_than_it_may(live: Any) -> None:
    with Peer(live.server.address) as peer:
        last = 2 * MAX_CALLS_OF_CONNECTION + 1
        for stream in range(1, last + 2, 2):
            assert peer.send(frames.opened(flood.PUSH, stream))
        refused = next(
            (stream, struct.unpack(">I", content)[0])
            for kind, _, stream, content in peer.frames(flood.CALL_S)
            if kind == frames.RST_STREAM
        )
    assert refused == (last, REFUSED_STREAM)


def test_a_call_beyond_those_that_wait_is_cancelled(
    start_live: Callable[..., Any], tmp_path: Path, set_grpc_option: Callable[[str, int], None]
) -> None:
    for option in ("grpc.server.max_pending_requests", "grpc.server.max_pending_requests_hard_limit"):
        set_grpc_option(option, 5)
    live = start_live(tmp_path / "store.db", grower=False)
    live.api.create("m")
    get = live.api.channel.unary_unary(flood.GET)
    calls = [get.future(b"\n\x08models/m", timeout=flood.CALL_S) for _ in range(300)]
    assert {call.code() for call in calls} == {grpc.StatusCode.OK, grpc.StatusCode.CANCELLED}
    assert grpc.StatusCode.CANCELLED in LIBRARY
