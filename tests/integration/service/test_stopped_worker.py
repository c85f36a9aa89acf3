"""A worker that stands still is replaced: it holds connections that nobody answers."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import until
from support.workers import workers_of

from quercus.client import Client, Numeric, Specification

SERVE = """
import sys
from quercus.server.config import Config
from quercus.server.workers import parent
parent.SILENCE_S, parent.TICK_S = 3.0, 0.5
config = Config(store=sys.argv[1], port=0, workers=2, grower=False)
parent.serve_with_workers(config, lambda address: print(address, flush=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [pytest.param(0, id="keeper"), pytest.param(1, id="other", marks=pytest.mark.release)]
)
def test_a_worker_that_is_stopped_is_replaced(tmp_path: Path, number: int) -> None:
    command = [sys.executable, "-c", SERVE, str(tmp_path / "store.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            before = workers_of(server.pid)
            with Client(address, outage_s=60.0) as client:
                client.create_model("m", Specification([Numeric("x")], ("a", "b")))
                os.kill(before[number], signal.SIGSTOP)
                until(lambda: workers_of(server.pid).get(number, 0) not in {0, before[number]})
                assert client.push("m", [[1.0]], ["a"]).stored == 1
            assert workers_of(server.pid)[1 - number] == before[1 - number]  # who answers is left in peace
        finally:
            server.terminate()
            assert server.wait(60) == 0
