"""Calls that a busy server takes up late: they wait for as long as their callers do."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from quercus.server.gate.grpc_limits import UNREQUESTED_CALL_S
from quercus.v1 import model_pb2

SHORT_S = 1
BUSY_S = 2.5
CALLS = 20


@pytest.mark.parametrize("untaken_s", [SHORT_S, UNREQUESTED_CALL_S])
def test_a_call_that_waits_to_be_taken_up_is_not_cancelled(
    untaken_s: int,
    start_live: Callable[..., Any],
    tmp_path: Path,
    set_grpc_option: Callable[[str, int], None],
) -> None:
    """With a short bound gRPC cancels them, which shows what the bound is for."""
    set_grpc_option("grpc.server_max_unrequested_time_in_server", untaken_s)
    live = start_live(tmp_path / "store.db", grower=False)
    live.api.create("m")
    ended, busy = threading.Event(), threading.Event()

    async def hold() -> None:
        busy.set()
        ended.wait(BUSY_S)  # the event loop does nothing else

    holding = threading.Thread(target=live.run, args=(hold(),))
    holding.start()
    busy.wait()
    request = model_pb2.GetModelRequest(name="models/m")
    calls = [live.api.models.GetModel.future(request, timeout=60) for _ in range(CALLS)]
    codes = {call.code() for call in calls}
    holding.join()
    assert (grpc.StatusCode.CANCELLED in codes) == (untaken_s == SHORT_S)
    assert codes <= {grpc.StatusCode.OK, grpc.StatusCode.CANCELLED}
