"""A grower that cannot be started at one moment is started at a later one."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from quercus.server import supervisor as module
from quercus.server.config import Config
from quercus.server.supervisor import Supervisor


def test_no_process_to_be_had_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "FIRST_DELAY_S", 0.001)
    spawn = asyncio.create_subprocess_exec
    calls: list[int] = []

    async def scarce(*command: str, **options: Any) -> asyncio.subprocess.Process:
        calls.append(len(calls))
        if len(calls) in {2, 3}:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return await spawn("sleep", "60", **options)

    async def run() -> None:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", scarce)
        running = Supervisor(Config(store=str(tmp_path / "store.db")))
        await running.start()
        first = running.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        async with asyncio.timeout(30):
            while running.pid in {None, first}:
                await asyncio.sleep(0.001)
        await running.close()

    asyncio.run(run())
    assert len(calls) == 4
    assert sum("cannot be started" in record.getMessage() for record in caplog.records) == 2
